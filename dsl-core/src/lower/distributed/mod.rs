//! Schedule IR to lane IR for a GPU: each tile becomes registers spread over lanes and warps.
//!
//! A tile is one lane value, the vector of its registers. Elementwise ops act on it whole; shape ops
//! rename registers; loads and stores are as wide as the layout and what is known of the offsets allow,
//! and one instruction each; a level of a reduction is a bit of the index, which is a register, a lane
//! (shuffle) or a warp (shared memory). For a `convert` a [`Conversion`](crate::layout::Conversion) is
//! planned and walked.
//!
//! All control flow is uniform: scalars are equal in all lanes of the thread block, so shuffles and
//! barriers are always reached together.

mod alike;
mod bounds;
mod boxes;
mod control;
mod convert;
mod dot;
mod edges;
mod element;
mod gather;
mod histogram;
mod level;
mod memory;
mod mma;
mod order;
mod point;
mod reduce;
mod registers;
mod rescale;
mod resident;
mod rows;
mod runs;
mod scan;
mod scatter;
mod search;
mod sharing;
mod slots;
mod sort;
mod surpass;
#[cfg(test)]
mod tests;
mod thread;
mod tile;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::builder::Builder;
use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::entity::EntityMap;
use crate::facts::Facts;
use crate::ir::{Func, Inst, Op, Stage, Value};
use crate::layout::{LayoutError, LinearLayout};
use crate::passes::allocate::{allocate, run_buffers};
use crate::passes::indices::Indices;
use crate::schedule::PlacedFunc;
use crate::schedule::room::stores_apart;
use crate::target::{Bounds, LANE_BITS, Options, Schedule, Target};
use crate::verify::{self, LaneFunc};
use histogram::Counters;
use order::Pending;
use registers::Registers;
use resident::Residents;
use surpass::Questions;
use tile::Scope;

/// An error at a place of the source.
type Result<T> = std::result::Result<T, Diagnostic>;

/// Lowers a schedule function to what one lane of a thread block does.
///
/// The schedule decides how deep pipelines are, the bounds option whether
/// accesses through plain pointers are checked, the facts which stores need not look for equal offsets;
/// none changes a bit of a result.
///
/// # Errors
/// When a tile needs too many registers or too much shared memory.
pub(crate) fn lower(
    block: &PlacedFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> std::result::Result<LaneFunc, Diagnostics> {
    let nowhere = |message: String| Diagnostic::new(Loc::none(), message);
    check_occupancy(target, &options.schedule, block.warps).map_err(nowhere)?;
    let mut residents = Residents::find(block);
    let apart = stores_apart(block, facts);
    let indices = Indices::of(block);
    let questions = Questions::find(block);
    loop {
        let mut lowering = Lowering::new(block, target, options, indices.clone());
        lowering.apart.clone_from(&apart);
        lowering.residents = residents.clone();
        lowering.questions = questions.clone();
        lowering.function()?;
        let mut func = lowering.builder.finish()?;
        func.schedule.occupancy = sharing::occupancy(block, &options.schedule);
        // What does not fit stays in place no longer.
        let Err(error) = allocate(&mut func, target) else {
            verify::placement(&func)?;
            func.schedule.programs = sharing::programs(&func, target, &options.schedule);
            return verify::lane(func);
        };
        if !residents.drop_last() {
            return Err(error);
        }
    }
}

fn leaves_products(block: &Func) -> bool {
    let mut insts = block.all_insts().into_iter();
    insts.any(|inst| matches!(block.op(inst), Op::WaitProducts(_)))
}

/// Whether a multiprocessor can hold as many thread blocks.
fn check_occupancy(
    target: &Target,
    schedule: &Schedule,
    warps: u32,
) -> std::result::Result<(), String> {
    let most = (target.gpu.resident_warps / warps).min(target.gpu.resident_blocks);
    let occupancy = schedule.occupancy.unwrap_or(1);
    if occupancy <= most {
        return Ok(());
    }
    Err(format!(
        "an occupancy of {occupancy} thread blocks, expected at most {most} of {warps} warps each"
    ))
}

/// The state of lowering one function.
struct Lowering<'a> {
    block: &'a PlacedFunc,
    builder: Builder,
    /// The layouts of the function, in order.
    layouts: Vec<Rc<LinearLayout>>,
    warp_bits: u32,
    /// What is known about offsets and masks.
    indices: Indices,
    definitions: EntityMap<Value, Option<Inst>>,
    sites: BTreeMap<Inst, u32>,
    /// For each value the first that holds the same elements.
    firsts: EntityMap<Value, Value>,
    /// The stores that write no element twice.
    apart: BTreeSet<Inst>,
    target: &'a Target,
    bounds: Bounds,
    /// The accesses that are checked before their own places.
    checked: BTreeSet<Inst>,
    /// What is bound and known in the regions around the current instruction, innermost last.
    scopes: Vec<Scope>,
    pending: Pending,
    /// Whether products may be under way somewhere.
    multiplies: bool,
    /// How many loops are around the current instruction.
    loops: u32,
    /// Whether the current instruction is for programs at an edge alone.
    at_edge: bool,
    /// The bytes of the largest buffer with slots so far. Outside of loops those of pipelines hold nothing any more.
    ring_bytes: i64,
    /// The barriers of buffers that boxes are copied to, one for each slot.
    phases: BTreeMap<Value, boxes::Phases>,
    /// The rows that are copied, or have come.
    rows: BTreeMap<Value, rows::Row>,
    box_buffers: boxes::BoxBuffers,
    /// For each buffer the one whose slots lie behind its own.
    behind: BTreeMap<Value, Value>,
    /// The buffers to which runs are copied.
    run_buffers: BTreeSet<Value>,
    /// Whether lanes may have touched shared memory.
    uses_shared: bool,
    residents: Residents,
    questions: Questions,
    /// The counters that residents stand for, by their roots.
    counters: BTreeMap<Value, Counters>,
    lane: Option<Value>,
    warp: Option<Value>,
}

impl<'a> Lowering<'a> {
    fn new(block: &'a PlacedFunc, target: &'a Target, options: &Options, indices: Indices) -> Self {
        let mut func = Func::new(&block.name, Stage::Lane);
        func.warps = block.warps;
        func.schedule = options.schedule.kept();
        Self {
            block,
            builder: Builder::resume(func),
            layouts: block.linears().cloned().map(Rc::new).collect(),
            warp_bits: block.warps.trailing_zeros(),
            indices,
            definitions: block.definitions(),
            sites: block.access_sites(),
            firsts: alike::firsts(block),
            apart: BTreeSet::new(),
            target,
            bounds: options.bounds,
            checked: BTreeSet::new(),
            scopes: vec![Scope::default()],
            pending: Pending::default(),
            multiplies: leaves_products(block),
            loops: 0,
            at_edge: false,
            ring_bytes: 0,
            phases: BTreeMap::new(),
            rows: BTreeMap::new(),
            box_buffers: boxes::BoxBuffers::of(block),
            behind: slots::behind(block),
            run_buffers: run_buffers(block),
            uses_shared: false,
            residents: Residents::default(),
            questions: Questions::default(),
            counters: BTreeMap::new(),
            lane: None,
            warp: None,
        }
    }

    fn function(&mut self) -> Result<()> {
        for (parameter, &value) in self.block.parameters.iter().zip(self.block.arguments()) {
            let argument = self
                .builder
                .parameter(parameter.clone(), self.block.ty(value));
            self.bind(value, Registers::uniform(argument, 1));
        }
        self.insts(self.block.body())
    }

    /// An error at the current instruction.
    fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.builder.loc().clone(), message)
    }

    fn layout_error(&self, error: &LayoutError) -> Diagnostic {
        self.error(error.to_string())
    }

    /// The layout of scalars: every lane has the one element.
    fn scalar_layout(&self) -> Rc<LinearLayout> {
        let layout = LinearLayout::replicated(Vec::new(), LANE_BITS, self.warp_bits);
        Rc::new(layout.expect("broken invariant: a scalar is small enough for a layout"))
    }
}
