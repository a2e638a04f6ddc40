//! The accesses of a lane function to memory.

use std::ops::Deref;

use super::runner::{Runner, Warp};
use super::{Machine, allocation};
use crate::entity::Entity;
use crate::interp::arena::{Allocation, Arena};
use crate::interp::elements::{Elements, dtype};
use crate::interp::lane_memory::{self, Accessor};
use crate::interp::mask::Mask;
use crate::interp::memory::{Buffer, Slot, Update};
use crate::interp::{Fault, FaultKind};
use crate::ir::{DType, Inst, MemoryAccess, Space, Value, op};
use crate::target::WARP_LANES;

/// The lanes that take part in an access, in order, each with its offset.
#[derive(Clone, Copy)]
pub(super) struct Offsets {
    count: usize,
    each: [(usize, i64); WARP_LANES as usize],
}

impl Deref for Offsets {
    type Target = [(usize, i64)];

    fn deref(&self) -> &Self::Target {
        &self.each[..self.count]
    }
}

impl FromIterator<(usize, i64)> for Offsets {
    fn from_iter<I: IntoIterator<Item = (usize, i64)>>(lanes: I) -> Self {
        let (mut count, mut each) = (0, [(0, 0); WARP_LANES as usize]);
        for lane in lanes {
            each[count] = lane;
            count += 1;
        }
        Self { count, each }
    }
}

/// The memory behind a pointer.
pub(super) enum Place<'m, 'a> {
    Global(&'m mut Buffer<'a>),
    Local(&'m mut Arena, Allocation),
}

impl Place<'_, '_> {
    fn load(&mut self, who: Accessor<'_>, index: i64) -> Result<u64, FaultKind> {
        match self {
            Self::Global(buffer) => lane_memory::load_global(buffer, who, index),
            Self::Local(arena, allocation) => arena.load(*allocation, who, index),
        }
    }

    fn store(&mut self, who: Accessor<'_>, index: i64, bits: u64) -> Result<(), FaultKind> {
        match self {
            Self::Global(buffer) => lane_memory::store_global(buffer, who, index, bits),
            Self::Local(arena, allocation) => arena.store(*allocation, who, index, bits),
        }
    }

    fn combine(
        &mut self,
        who: Accessor<'_>,
        index: i64,
        update: &Update,
    ) -> Result<u64, FaultKind> {
        match self {
            Self::Global(buffer) => lane_memory::combine_global(buffer, who, index, update),
            Self::Local(arena, allocation) => arena.combine(*allocation, who, index, update),
        }
    }
}

impl<'a> Machine<'a> {
    pub(super) fn place(&mut self, warp: &Warp, base: Value) -> Place<'_, 'a> {
        let index = warp.values[base].scalar() as usize;
        match self.func.ty(base).pointee() {
            Some((_, Space::Global)) => match &mut self.slots[index] {
                Slot::Buffer(buffer) => Place::Global(buffer),
                Slot::Scalar(_) => unreachable!("broken invariant: a verified base is memory"),
            },
            Some((_, space @ (Space::Shared | Space::Scratch))) => {
                let allocation = allocation(self.func, Inst::new(index))
                    .expect("broken invariant: a local base is an allocation");
                let shared = space == Space::Shared;
                let arena = if shared {
                    &mut self.shared
                } else {
                    &mut self.scratch
                };
                Place::Local(arena, allocation)
            }
            None => unreachable!("broken invariant: a verified base is a pointer"),
        }
    }
}

impl Runner<'_, '_> {
    /// The signed offsets in the lanes where the mask operand holds, of the offset at this place among the several of
    /// a lane.
    pub(super) fn offsets(
        &self,
        offset: Value,
        operand: Option<Value>,
        (mask, at): (Mask, usize),
    ) -> Offsets {
        let narrow = dtype(self.machine.func, offset) == DType::I32;
        let offset = &self.warp.values[offset];
        let first = at * self.warp.lanes;
        let operand = operand.map(|operand| &self.warp.values[operand]);
        let holds = |lane| operand.is_none_or(|operand| operand.get(first + lane) != 0);
        let wanted = mask.lanes().filter(|&lane| holds(lane));
        let signed = wanted.map(|lane| match offset.get(first + lane) {
            bits if narrow => (lane, i64::from(bits as u32 as i32)),
            bits => (lane, bits.cast_signed()),
        });
        signed.collect()
    }

    /// The same where there is one offset.
    pub(super) fn offset(&self, offset: Value, operand: Option<Value>, mask: Mask) -> Offsets {
        self.offsets(offset, operand, (mask, 0))
    }

    /// Checks the alignment of an access and counts its traffic.
    pub(super) fn begin_access(
        &mut self,
        inst: Inst,
        base: Value,
        offsets: &[(usize, i64)],
        (width, align): (usize, i64),
    ) -> Result<(), Fault> {
        let (dtype, space) = self
            .machine
            .func
            .ty(base)
            .pointee()
            .expect("broken invariant: a verified base is a pointer");
        let size = i64::from(dtype.bytes());
        let (start, promised) = match self.machine.place(self.warp, base) {
            Place::Global(buffer) => (0, buffer.align),
            Place::Local(_, allocation) => (allocation.offset, i64::MAX),
        };
        let addressed = offsets
            .iter()
            .map(|&(lane, index)| (lane, start.wrapping_add(index.wrapping_mul(size))));
        let addressed: Offsets = addressed.collect();
        let wrong = addressed
            .iter()
            .position(|&(_, at)| align > promised || at % align != 0);
        if let Some(wrong) = wrong {
            let (lane, index) = offsets[wrong];
            let lane = self.warp.lane(lane) as u64;
            let buffer = match self.machine.place(self.warp, base) {
                Place::Global(buffer) => buffer.name.clone(),
                Place::Local(_, allocation) => allocation.name().to_string(),
            };
            let kind = FaultKind::Unaligned {
                buffer,
                index,
                align,
                lane,
            };
            return Err(self.fault(inst, kind));
        }
        if self.machine.func.warps > 0 {
            let traffic = self.machine.report.traffic.entry(inst).or_default();
            traffic.count(space, &addressed, size * width as i64);
        }
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        inst: Inst,
        op: &op::LaneLoad,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        let op::LaneLoad {
            base,
            offset,
            mask: operand,
            other,
            align,
            ..
        } = op;
        let result = self.machine.func.inst(inst).results[0];
        let (width, lanes) = (self.width(result), self.warp.lanes);
        let (count, program) = (self.width(*offset), self.machine.program);
        let run = width / count;
        let mut result = match other.map(|other| &self.warp.values[other]) {
            None => vec![0; width * lanes],
            Some(other) => (0..width * lanes).map(|place| other.get(place)).collect(),
        };
        for at in 0..count {
            let offsets = self.offsets(*offset, *operand, (mask, at));
            self.begin_access(inst, *base, &offsets, (run, *align))?;
            let mut place = self.machine.place(self.warp, *base);
            let loaded = offsets.iter().try_for_each(|&(lane, first)| {
                let who = self.warp.accessor(program, lane);
                for element in 0..run {
                    let index = first.wrapping_add(element as i64);
                    result[(at * run + element) * lanes + lane] = place.load(who, index)?;
                }
                Ok(())
            });
            loaded.map_err(|kind| self.fault(inst, kind))?;
        }
        Ok(Elements::new(result))
    }

    pub(super) fn store(
        &mut self,
        inst: Inst,
        op: &op::LaneStore,
        mask: Mask,
    ) -> Result<(), Fault> {
        let op::LaneStore {
            base,
            offset,
            value,
            mask: operand,
            align,
            ..
        } = op;
        let (width, lanes) = (self.width(*value), self.warp.lanes);
        let (count, program) = (self.width(*offset), self.machine.program);
        let run = width / count;
        for at in 0..count {
            let offsets = self.offsets(*offset, *operand, (mask, at));
            self.begin_access(inst, *base, &offsets, (run, *align))?;
            let value = &self.warp.values[*value];
            let mut place = self.machine.place(self.warp, *base);
            let stored = offsets.iter().try_for_each(|&(lane, first)| {
                let who = self.warp.accessor(program, lane);
                for element in 0..run {
                    let index = first.wrapping_add(element as i64);
                    let bits = value.get((at * run + element) * lanes + lane);
                    place.store(who, index, bits)?;
                }
                Ok(())
            });
            stored.map_err(|kind| self.fault(inst, kind))?;
        }
        Ok(())
    }

    pub(super) fn combine(
        &mut self,
        inst: Inst,
        op: &op::LaneAtomic,
        mask: Mask,
    ) -> Result<(), Fault> {
        let value = self.read(op.value);
        let update = |at| Update::reduce(op.op, value.get(at)).ordered(op.order, op.scope);
        self.updated(inst, &op.access(), mask, &update).map(|_| ())
    }

    /// What memory held where it is combined; zero bits elsewhere.
    pub(super) fn fetch(
        &mut self,
        inst: Inst,
        op: &op::LaneFetch,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        let (value, expected) = (self.read(op.value), op.expected.map(|it| self.read(it)));
        let update = |at| {
            let expected = expected.as_ref().map(|expected| expected.get(at));
            Update::fetch(op.op, value.get(at), expected).ordered(op.order, op.scope)
        };
        self.updated(inst, &op.access(), mask, &update)
    }

    /// Does to memory what `update` says for each place; what was there.
    fn updated(
        &mut self,
        inst: Inst,
        access: &MemoryAccess,
        mask: Mask,
        update: &dyn Fn(usize) -> Update,
    ) -> Result<Elements, Fault> {
        let pointee = self.machine.func.ty(access.base).pointee();
        let align = pointee.map_or(1, |(dtype, _)| i64::from(dtype.bytes()));
        let (lanes, program) = (self.warp.lanes, self.machine.program);
        let count = self.width(access.offsets);
        let mut old = vec![0; count * lanes];
        for at in 0..count {
            let offsets = self.offsets(access.offsets, access.mask, (mask, at));
            self.begin_access(inst, access.base, &offsets, (1, align))?;
            let mut place = self.machine.place(self.warp, access.base);
            let combined = offsets.iter().try_for_each(|&(lane, index)| {
                let who = self.warp.accessor(program, lane);
                let update = update(at * lanes + lane);
                old[at * lanes + lane] = place.combine(who, index, &update)?;
                Ok(())
            });
            combined.map_err(|kind| self.fault(inst, kind))?;
        }
        Ok(Elements::new(old))
    }
}
