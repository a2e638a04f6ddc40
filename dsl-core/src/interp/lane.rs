//! Runs a lane function: a whole thread block in lockstep, or one CPU worker.
//!
//! A value holds the elements of all lanes, element by element: element `e` of lane `l` is at
//! `e * lanes + l`. Control flow that lanes take differently runs under a mask of active lanes.
//! Lockstep is one legal order of execution; that no other gives another result is what the checks
//! for races and convergence establish.

use std::collections::BTreeMap;

use super::block::{WHILE_LIMIT, launch_fault};
use super::copies::Copies;
use super::elements::{Elements, elementwise};
use super::lane_memory::{Allocation, Arena};
use super::mask::Mask;
use super::memory::{Slot, bind, program_coordinates, program_count};
use super::{Fault, FaultKind};
use crate::entity::{Entity, EntityMap};
use crate::ir::op::{LaneOp, WorkerOp};
use crate::ir::{Func, Grid, Inst, Op, Region, Space, Trait, Value, op};
use crate::launch::{Argument, LaunchError};
use crate::target::{BoundsError, WARP_LANES};
use crate::verify::LaneFunc;

pub use super::lane_memory::Traffic;

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

/// Runs every program of the grid, axis 0 fastest, each on `warps` warps or one CPU worker.
///
/// An access that a check refuses is part of the report, as other programs go on after it; everything
/// else that is wrong is a fault.
pub fn run(func: &LaneFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<Report, Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    run_programs(func, grid, arguments, 0..count)
}

/// Runs some programs of the grid, by linear index, in the order given.
pub fn run_programs(
    func: &LaneFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    programs: impl IntoIterator<Item = u64>,
) -> Result<Report, Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    let slots = bind(func, arguments).map_err(|error| launch_fault(func, error))?;
    let mut machine = Machine::new(func, grid, slots);
    for program in programs {
        if program >= count {
            let message = format!("program {program} is not one of {count}");
            return Err(launch_fault(func, LaunchError::Grid(grid, message)));
        }
        machine.program = program;
        machine.epoch += 1;
        machine.region(func.body(), &[], &Mask::all(machine.lanes))?;
        if std::mem::take(&mut machine.stopped) {
            machine.abandon_copies();
        }
        machine.all_waited()?;
    }
    Ok(machine.report)
}

struct Machine<'a> {
    func: &'a LaneFunc,
    grid: Grid,
    program: u64,
    lanes: usize,
    epoch: u64,
    slots: Vec<Slot<'a>>,
    shared: Arena,
    scratch: Arena,
    copies: Copies,
    values: EntityMap<Value, Elements>,
    /// Whether the running program has ended early.
    stopped: bool,
    report: Report,
}

impl<'a> Machine<'a> {
    fn new(func: &'a LaneFunc, grid: Grid, slots: Vec<Slot<'a>>) -> Self {
        let lanes = (func.warps * WARP_LANES).max(1) as usize;
        let mut sizes = [0, 0];
        for inst in func.all_insts() {
            if let Some(allocation) = allocation(func, inst) {
                let bytes = i64::from(allocation.dtype.bytes());
                let end = (allocation.offset + allocation.count * bytes) as usize;
                let size = &mut sizes[usize::from(allocation.space == Space::Scratch)];
                *size = end.max(*size);
            }
        }
        let mut values = EntityMap::filled(func.value_count(), Elements::uniform(0));
        for (index, (&value, slot)) in func.arguments().iter().zip(&slots).enumerate() {
            values[value] = match slot {
                Slot::Buffer(_) => Elements::uniform(index as u64),
                Slot::Scalar(bits) => Elements::uniform(*bits),
            };
        }
        Self {
            func,
            grid,
            program: 0,
            lanes,
            epoch: 0,
            slots,
            shared: Arena::shared(sizes[0]),
            scratch: Arena::private(sizes[1], lanes),
            copies: Copies::new(lanes),
            values,
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

    fn read(&self, value: Value) -> Elements {
        self.values[value].clone()
    }

    fn read_all(&self, values: &[Value]) -> Vec<Elements> {
        values.iter().map(|&value| self.read(value)).collect()
    }

    fn width(&self, value: Value) -> usize {
        self.func.ty(value).shape.elements()
    }

    /// The places of each element of all lanes: (element, lane).
    fn places(&self, width: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let lanes = self.lanes;
        (0..width * lanes).map(move |place| (place / lanes, place % lanes))
    }

    fn region(
        &mut self,
        region: Region,
        arguments: &[Elements],
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let func = self.func;
        let data = func.region(region);
        for (&parameter, argument) in data.parameters.iter().zip(arguments) {
            self.values[parameter] = argument.clone();
        }
        for &inst in &data.insts {
            let results = self.inst(inst, mask)?;
            if func.op(inst).is(Trait::terminator) {
                return Ok(results);
            }
            for (&value, result) in func.inst(inst).results.iter().zip(results) {
                self.values[value] = result;
            }
            if self.stopped {
                return Ok(self.read_all(func.yielded(region)));
            }
        }
        Ok(Vec::new())
    }

    fn inst(&mut self, inst: Inst, mask: &Mask) -> Result<Vec<Elements>, Fault> {
        let func = self.func;
        let results = &func.inst(inst).results;
        let result = match func.lane_op(inst) {
            LaneOp::Elementwise(op) => elementwise(func, op, results[0], |value| self.read(value)),
            LaneOp::Raw(op) => self.raw(inst, op, mask)?,
            LaneOp::RawCast(op) => self.raw_cast(inst, op, mask)?,
            LaneOp::Constant(op::Constant { value }) => Elements::uniform(value.bits),
            LaneOp::ProgramId(op::ProgramId { axis }) => {
                Elements::uniform(program_coordinates(self.grid, self.program)[axis.index()])
            }
            LaneOp::NumPrograms(op::NumPrograms { axis }) => {
                Elements::uniform(u64::from(self.grid[axis.index()]))
            }
            LaneOp::Alloc(_) => Elements::uniform(inst.index() as u64),
            LaneOp::Splat(op::Splat { x }) => {
                let places = self.places(self.width(results[0]));
                self.values[*x].gather(places.map(|(_, lane)| lane))
            }
            LaneOp::Extract(op::Extract { vector, index }) => {
                let first = *index as usize * self.lanes;
                self.values[*vector].gather(first..first + self.lanes)
            }
            LaneOp::Vector(op) => self.vector(op),
            LaneOp::ShuffleVector(op) => self.shuffle_vector(op),
            LaneOp::LaneLoad(op) => self.load(inst, op, mask)?,
            LaneOp::InBounds(op) => self.in_bounds(op, mask),
            LaneOp::WarpOp(op) => return self.warp(inst, op, mask),
            LaneOp::WorkerOp(WorkerOp::CheckBounds(op)) => self.check_bounds(op, mask),
            LaneOp::WorkerOp(WorkerOp::CheckIndex(op)) => return Ok(self.check_index(op, mask)),
            LaneOp::For(op) => return self.for_loop(inst, op, mask),
            LaneOp::While(op) => return self.while_loop(inst, op, mask),
            LaneOp::If(op) => return self.branch(inst, op, mask),
            LaneOp::Yield(op::Yield { values }) => return Ok(self.read_all(values)),
            LaneOp::LaneStore(op) => return self.store(inst, op, mask),
            LaneOp::LaneAtomic(op) => return self.combine(inst, op, mask),
        };
        Ok(vec![result])
    }

    fn each_lane(&self, of: impl Fn(usize) -> usize) -> Elements {
        Elements::new((0..self.lanes).map(|lane| of(lane) as u64).collect())
    }

    fn vector(&self, op::Vector { elements }: &op::Vector) -> Elements {
        let places = self.places(elements.len());
        let picked = places.map(|(element, lane)| self.values[elements[element]].get(lane));
        Elements::new(picked.collect())
    }

    fn shuffle_vector(&self, op::ShuffleVector { a, b, indices }: &op::ShuffleVector) -> Elements {
        let (width, lanes) = (self.width(*a), self.lanes);
        let picked =
            self.places(indices.len())
                .map(|(element, lane)| match indices[element] as usize {
                    index if index < width => self.values[*a].get(index * lanes + lane),
                    index => self.values[*b].get((index - width) * lanes + lane),
                });
        Elements::new(picked.collect())
    }

    fn branch(&mut self, inst: Inst, op: &op::If, mask: &Mask) -> Result<Vec<Elements>, Fault> {
        let op::If {
            condition,
            on_true,
            on_false,
        } = op;
        let condition = self.read(*condition);
        let (on, off) = (mask.and(&condition, true), mask.and(&condition, false));
        match (on.any(), off.any()) {
            (true, false) => self.region(*on_true, &[], &on),
            (false, _) => self.region(*on_false, &[], &off),
            (true, true) => {
                let taken = self.region(*on_true, &[], &on)?;
                let other = self.region(*on_false, &[], &off)?;
                Ok(self.merge_all(inst, &on, &taken, &other))
            }
        }
    }

    /// Values like the results of `inst`: `on` in the lanes of the mask, `off` in the others.
    fn merge_all(
        &self,
        inst: Inst,
        mask: &Mask,
        on: &[Elements],
        off: &[Elements],
    ) -> Vec<Elements> {
        let results = &self.func.inst(inst).results;
        let merged = results.iter().zip(on.iter().zip(off));
        merged
            .map(|(&value, (on, off))| mask.merge(on, off, self.width(value)))
            .collect()
    }

    fn for_loop(&mut self, inst: Inst, op: &op::For, mask: &Mask) -> Result<Vec<Elements>, Fault> {
        let upper = self.read(op.upper);
        let mut index = self.read(op.lower);
        let mut carried = self.read_all(&op.init);
        let mut active = mask.clone();
        loop {
            active =
                active.filter(|lane| index.get(lane).cast_signed() < upper.get(lane).cast_signed());
            if !active.any() || self.stopped {
                return Ok(carried);
            }
            let arguments = [vec![index.clone()], carried.clone()].concat();
            let next = self.region(op.body, &arguments, &active)?;
            carried = self.merge_all(inst, &active, &next, &carried);
            let stepped = |lane: usize| index.get(lane).cast_signed().checked_add(op.step);
            active = active.filter(|lane| stepped(lane).is_some());
            let entries = if index.is_uniform() { 1 } else { self.lanes };
            let bits = (0..entries).map(|lane| stepped(lane).unwrap_or(0).cast_unsigned());
            index = Elements::new(bits.collect());
        }
    }

    fn while_loop(
        &mut self,
        inst: Inst,
        op: &op::While,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let mut carried = self.read_all(&op.init);
        let mut results = carried.clone();
        let mut active = mask.clone();
        for _ in 0..WHILE_LIMIT {
            let mut next = self.region(op.before, &carried, &active)?;
            let condition = next.remove(0);
            results = self.merge_all(inst, &active, &next, &results);
            active = active.and(&condition, true);
            if !active.any() || self.stopped {
                return Ok(results);
            }
            carried = self.region(op.body, &next, &active)?;
        }
        Err(self.fault(inst, FaultKind::Endless(WHILE_LIMIT)))
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
mod copy;
mod raw;
#[cfg(test)]
mod tests;
mod warp;
