//! One warp: what it holds, and its next instruction.

use super::control::Frame;
use super::issued::Issued;
use super::schedule::Wait;
use super::{Machine, lanes};
use crate::entity::{Entity, EntityMap};
use crate::interp::clock::Clock;
use crate::interp::copies::Copies;
use crate::interp::elements::{Elements, elementwise};
use crate::interp::lane_memory::Accessor;
use crate::interp::mask::Mask;
use crate::interp::memory::Slot;
use crate::interp::{Fault, FaultKind};
use crate::ir::op::{LaneOp, WorkerOp};
use crate::ir::{Inst, Region, Value, op, program_coordinates};

/// A warp of a thread block, or a CPU worker: it stands between two instructions.
pub(super) struct Warp {
    /// Which one.
    pub(super) index: usize,
    pub(super) lanes: usize,
    pub(super) values: EntityMap<Value, Elements>,
    /// The regions that it is in, innermost last; none once it has ended.
    pub(super) frames: Vec<Frame>,
    /// The instruction that it waits at, and for what.
    pub(super) wait: Option<(Inst, Wait)>,
    pub(super) clock: Clock,
    pub(super) copies: Copies,
    /// Its copies out, as they write, and as they read.
    pub(super) out: Issued,
    pub(super) read: Issued,
    pub(super) products: Issued,
}

impl Warp {
    pub(super) fn new(machine: &Machine<'_>, index: usize) -> Self {
        let func = machine.func;
        let mut values = EntityMap::filled(func.value_count(), Elements::uniform(0));
        let slots = func.arguments().iter().zip(&machine.slots);
        for (number, (&value, slot)) in slots.enumerate() {
            values[value] = match slot {
                Slot::Buffer(_) => Elements::uniform(number as u64),
                Slot::Scalar(bits) => Elements::uniform(*bits),
            };
        }
        Self {
            index,
            lanes: lanes(func),
            values,
            frames: Vec::new(),
            wait: None,
            clock: Clock::new(super::warps(func)),
            copies: Copies::new(lanes(func)),
            out: Issued::new(super::warps(func) + index),
            products: Issued::new(2 * super::warps(func) + index),
            read: Issued::new(3 * super::warps(func) + index),
        }
    }

    /// The number of a lane in the thread block.
    pub(super) fn lane(&self, lane: usize) -> usize {
        self.index * self.lanes + lane
    }

    pub(super) fn accessor(&self, program: u64, lane: usize) -> Accessor<'_> {
        Accessor {
            program,
            lane: self.lane(lane),
            clock: &self.clock,
            alone: self.lanes == 1,
        }
    }
}

/// A warp whose turn it is, and what it shares with the others.
pub(super) struct Runner<'r, 'a> {
    pub(super) machine: &'r mut Machine<'a>,
    pub(super) warp: &'r mut Warp,
}

impl Runner<'_, '_> {
    pub(super) fn fault(&self, inst: Inst, kind: FaultKind) -> Fault {
        self.machine.fault(inst, kind)
    }

    pub(super) fn read(&self, value: Value) -> Elements {
        self.warp.values[value].clone()
    }

    pub(super) fn read_all(&self, values: &[Value]) -> Vec<Elements> {
        values.iter().map(|&value| self.read(value)).collect()
    }

    pub(super) fn width(&self, value: Value) -> usize {
        self.machine.func.ty(value).shape.elements()
    }

    /// The places of each element of all lanes: (element, lane).
    pub(super) fn places(&self, width: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let lanes = self.warp.lanes;
        (0..width * lanes).map(move |place| (place / lanes, place % lanes))
    }

    pub(super) fn each_lane(&self, of: impl Fn(usize) -> usize) -> Elements {
        Elements::new((0..self.warp.lanes).map(|lane| of(lane) as u64).collect())
    }

    /// Gives the results of an instruction their elements.
    pub(super) fn define(&mut self, inst: Inst, results: Vec<Elements>) {
        let func = self.machine.func;
        for (&value, result) in func.inst(inst).results.iter().zip(results) {
            self.warp.values[value] = result;
        }
    }

    /// Enters a region.
    pub(super) fn enter(&mut self, region: Region, arguments: Vec<Elements>, frame: Frame) {
        let func = self.machine.func;
        let parameters = func.region(region).parameters.iter();
        for (&parameter, argument) in parameters.zip(arguments) {
            self.warp.values[parameter] = argument;
        }
        self.warp.frames.push(frame);
    }

    /// Executes the next instruction of a warp that has not ended.
    pub(super) fn step(&mut self) -> Result<(), Fault> {
        let func = self.machine.func;
        let Some(frame) = self.warp.frames.last_mut() else {
            return Ok(());
        };
        let mask = frame.mask;
        let Some(&inst) = func.region(frame.region).insts.get(frame.next) else {
            self.warp.frames.pop();
            return Ok(());
        };
        frame.next += 1;
        let result = self.inst(inst, func.lane_op(inst), mask)?;
        if let Some(result) = result {
            self.warp.values[func.inst(inst).results[0]] = result;
        }
        Ok(())
    }

    /// The result of an instruction that has one at once.
    fn inst(&mut self, inst: Inst, op: LaneOp<'_>, mask: Mask) -> Result<Option<Elements>, Fault> {
        let func = self.machine.func;
        let results = &func.inst(inst).results;
        let result = match op {
            LaneOp::Elementwise(op) => elementwise(func, op, results[0], &self.warp.values),
            LaneOp::Raw(op) => self.raw(inst, op, mask)?,
            LaneOp::RawCast(op) => self.raw_cast(inst, op, mask)?,
            LaneOp::Constant(op::Constant { value }) => Elements::uniform(value.bits),
            LaneOp::ProgramId(op::ProgramId { axis }) => {
                let coordinates = program_coordinates(self.machine.grid, self.machine.program);
                Elements::uniform(coordinates[axis.index()])
            }
            LaneOp::NumPrograms(op::NumPrograms { axis }) => {
                Elements::uniform(u64::from(self.machine.grid[axis.index()]))
            }
            LaneOp::Alloc(_) => Elements::uniform(inst.index() as u64),
            LaneOp::Splat(op::Splat { x }) => {
                let places = self.places(self.width(results[0]));
                self.warp.values[*x].gather(places.map(|(_, lane)| lane))
            }
            LaneOp::Extract(op::Extract { vector, index }) => {
                let first = *index as usize * self.warp.lanes;
                self.warp.values[*vector].gather(first..first + self.warp.lanes)
            }
            LaneOp::Vector(op) => self.vector(op),
            LaneOp::ShuffleVector(op) => self.shuffle_vector(op),
            LaneOp::LaneLoad(op) => self.load(inst, op, mask)?,
            LaneOp::LaneFetch(op) => self.fetch(inst, op, mask)?,
            LaneOp::InBounds(op) => self.in_bounds(op, mask),
            LaneOp::WarpOp(op) => return self.warp_op(inst, op, mask),
            LaneOp::TransferOp(op) => return self.transfer(inst, op, mask),
            LaneOp::WorkerOp(WorkerOp::CheckBounds(op)) => self.check_bounds(op, mask),
            LaneOp::WorkerOp(WorkerOp::CheckIndex(op)) => {
                self.check_index(op, mask);
                return Ok(None);
            }
            LaneOp::WorkerOp(WorkerOp::CheckAssertion(op)) => {
                self.check_assertion(op, mask);
                return Ok(None);
            }
            LaneOp::LaneStore(op) => return self.store(inst, op, mask).map(|()| None),
            LaneOp::LaneAtomic(op) => return self.combine(inst, op, mask).map(|()| None),
            LaneOp::For(op) => return self.start_for(inst, op, mask).map(|()| None),
            LaneOp::While(op) => return self.start_while(inst, op, mask).map(|()| None),
            LaneOp::If(op) => return self.branch(inst, op, mask).map(|()| None),
            LaneOp::Yield(op::Yield { values }) => {
                let values = self.read_all(values);
                return self.leave(values).map(|()| None);
            }
        };
        Ok(Some(result))
    }

    fn vector(&self, op::Vector { elements }: &op::Vector) -> Elements {
        let values = &self.warp.values;
        let places = self.places(elements.len());
        let picked = places.map(|(element, lane)| values[elements[element]].get(lane));
        Elements::new(picked.collect())
    }

    fn shuffle_vector(&self, op::ShuffleVector { a, b, indices }: &op::ShuffleVector) -> Elements {
        let (width, lanes) = (self.width(*a), self.warp.lanes);
        let values = &self.warp.values;
        let picked =
            self.places(indices.len())
                .map(|(element, lane)| match indices[element] as usize {
                    index if index < width => values[*a].get(index * lanes + lane),
                    index => values[*b].get((index - width) * lanes + lane),
                });
        Elements::new(picked.collect())
    }
}
