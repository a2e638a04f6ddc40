//! Runs a lane function: a thread block of warps that each run by themselves, or one CPU worker.
//!
//! The lanes of a warp run in lockstep. A value of a warp holds the elements of all its lanes,
//! element by element: element `e` of lane `l` is at `e * lanes + l`. Control flow that lanes take
//! differently runs under a mask of active lanes. Warps take turns in any order; that no order gives
//! another result is what the checks for races and convergence establish.

use std::collections::BTreeMap;

use self::schedule::{Meeting, Scheduler};
use self::transfer::Transfer;
use super::arena::{Allocation, Arena};
use super::block::{WHILE_LIMIT, launch_fault};
use super::memory::{Slot, bind, program_count};
use super::{Fault, FaultKind};
use crate::ir::{Func, Grid, Inst, Op, Space, op};
use crate::launch::{Argument, LaunchError};
use crate::target::{BoundsError, WARP_LANES};
use crate::verify::LaneFunc;

pub use super::traffic::Traffic;

/// What a launch did, besides its results.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The traffic of each access to memory.
    pub traffic: BTreeMap<Inst, Traffic>,
    /// How often a warp shuffled one element.
    pub shuffles: u64,
    /// How often a thread block waited.
    pub barriers: u64,
    /// The least out-of-bounds access that a check found.
    pub out_of_bounds: Option<BoundsError>,
}

impl Report {
    /// The traffic of all accesses together.
    pub fn total(&self) -> Traffic {
        self.traffic
            .values()
            .fold(Traffic::default(), |mut total, &traffic| {
                total.add(traffic);
                total
            })
    }
}

/// Whose turn it is among the warps of a thread block that can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turns {
    /// One instruction of each, lowest warp first.
    #[default]
    RoundRobin,
    /// Each goes on as long as it can, lowest warp first.
    Ascending,
    /// Each goes on as long as it can, highest warp first.
    Descending,
    /// Some instructions of each, in an order that follows from this seed.
    Random(u64),
}

/// When an asynchronous copy happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Moment {
    /// Where somebody waits for it.
    #[default]
    Latest,
    /// Where it starts.
    Earliest,
    /// At some time between, element by element, as follows from this seed.
    Random(u64),
}

/// What a machine is free to do: the order of warps and the time of copies. No legal function has other
/// results for another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timing {
    /// Whose turn it is.
    pub turns: Turns,
    /// When copies happen.
    pub copies: Moment,
}

impl Timing {
    /// Different ones, among them the extremes; the others follow from a seed.
    pub fn several(seed: u64) -> [Self; 6] {
        let timing = |turns, copies| Self { turns, copies };
        let random = |offset| seed.wrapping_mul(4).wrapping_add(offset);
        [
            timing(Turns::RoundRobin, Moment::Latest),
            timing(Turns::Ascending, Moment::Earliest),
            timing(Turns::Descending, Moment::Latest),
            timing(Turns::Descending, Moment::Random(random(0))),
            timing(Turns::Random(random(1)), Moment::Earliest),
            timing(Turns::Random(random(2)), Moment::Random(random(3))),
        ]
    }
}

/// Runs every program of the grid, axis 0 fastest, each on `warps` warps or one CPU worker.
///
/// An access that a check refuses is part of the report, as other programs go on after it; everything
/// else that is wrong is a fault.
pub fn run(func: &LaneFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<Report, Fault> {
    run_timed(func, grid, arguments, Timing::default())
}

/// Runs every program as [`run`] does, at times that the caller chooses.
pub fn run_timed(
    func: &LaneFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    timing: Timing,
) -> Result<Report, Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    launch(func, grid, arguments, 0..count, timing)
}

/// Runs some programs of the grid, by linear index, in the order given.
pub fn run_programs(
    func: &LaneFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    programs: impl IntoIterator<Item = u64>,
) -> Result<Report, Fault> {
    launch(func, grid, arguments, programs, Timing::default())
}

fn launch(
    func: &LaneFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    programs: impl IntoIterator<Item = u64>,
    timing: Timing,
) -> Result<Report, Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    let slots = bind(func, arguments).map_err(|error| launch_fault(func, error))?;
    let mut scheduler = Scheduler::new(Machine::new(func, grid, slots, timing.copies), timing);
    for program in programs {
        if program >= count {
            let message = format!("program {program} is not one of {count}");
            return Err(launch_fault(func, LaunchError::Grid(grid, message)));
        }
        scheduler.run(program)?;
    }
    Ok(scheduler.into_report())
}

/// What the warps of a thread block have in common.
struct Machine<'a> {
    func: &'a LaneFunc,
    grid: Grid,
    program: u64,
    slots: Vec<Slot<'a>>,
    copies: Moment,
    shared: Arena,
    scratch: Arena,
    meeting: Meeting,
    transfer: Transfer,
    /// Whether a warp has found an access that ends the program once all have met.
    refused: bool,
    /// Whether the running program has ended early.
    stopped: bool,
    report: Report,
}

impl<'a> Machine<'a> {
    fn new(func: &'a LaneFunc, grid: Grid, slots: Vec<Slot<'a>>, copies: Moment) -> Self {
        let insts = func.all_insts().into_iter();
        let allocations = insts.filter_map(|inst| allocation(func, inst));
        let (scratch, shared): (Vec<Allocation>, Vec<Allocation>) =
            allocations.partition(|allocation| allocation.space == Space::Scratch);
        Self {
            func,
            grid,
            program: 0,
            slots,
            copies,
            shared: Arena::shared(&shared),
            scratch: Arena::private(&scratch, warps(func) * lanes(func)),
            meeting: Meeting::new(warps(func)),
            transfer: Transfer::default(),
            refused: false,
            stopped: false,
            report: Report::default(),
        }
    }

    fn fault(&self, inst: Inst, kind: FaultKind) -> Fault {
        Fault {
            kernel: self.func.name.clone(),
            loc: self.func.inst(inst).loc.clone(),
            program: self.program,
            kind,
        }
    }
}

/// How many warps run; a worker is one.
fn warps(func: &Func) -> usize {
    func.warps.max(1) as usize
}

/// The lanes of a warp.
fn lanes(func: &Func) -> usize {
    match func.warps {
        0 => 1,
        _ => WARP_LANES as usize,
    }
}

fn allocation(func: &Func, inst: Inst) -> Option<Allocation> {
    let data = func.inst(inst);
    let Op::Alloc(op::Alloc { offset, count }) = data.op else {
        return None;
    };
    let (dtype, space) = func.ty(data.results[0]).pointee()?;
    Some(Allocation {
        dtype,
        space,
        offset,
        count,
    })
}

mod access;
mod bulk;
mod check;
mod control;
mod copy;
mod issued;
mod mma;
mod raw;
mod runner;
mod schedule;
#[cfg(test)]
mod tests;
mod transfer;
mod warp;
