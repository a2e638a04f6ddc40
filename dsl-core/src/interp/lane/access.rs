//! The accesses of a lane function to memory.

use super::{Machine, allocation};
use crate::entity::Entity;
use crate::interp::elements::{Elements, dtype};
use crate::interp::lane_memory::{self, Accessor, Allocation, Arena};
use crate::interp::mask::Mask;
use crate::interp::memory::{Buffer, Slot};
use crate::interp::{Fault, FaultKind};
use crate::ir::{DType, Inst, Space, Value, op};
use crate::target::BoundsError;

/// The memory behind a pointer.
enum Place<'m, 'a> {
    Global(&'m mut Buffer<'a>),
    Local(&'m mut Arena, Allocation),
}

impl<'a> Machine<'a> {
    /// The signed offsets in the lanes where the mask operand holds, by lane, of each of several
    /// offsets of a lane.
    pub(super) fn offsets(
        &self,
        offset: Value,
        operand: Option<Value>,
        mask: &Mask,
    ) -> Vec<Vec<(usize, i64)>> {
        let narrow = dtype(self.func, offset) == DType::I32;
        let count = self.width(offset);
        let offset = &self.values[offset];
        let of_one = |at: usize| {
            let first = at * self.lanes;
            let holds = |lane| operand.is_none_or(|m| self.values[m].get(first + lane) != 0);
            let wanted = mask.lanes().filter(|&lane| holds(lane));
            let signed = wanted.map(|lane| match offset.get(first + lane) {
                bits if narrow => (lane, i64::from(bits as u32 as i32)),
                bits => (lane, bits.cast_signed()),
            });
            signed.collect()
        };
        (0..count).map(of_one).collect()
    }

    /// The same where there is one offset.
    pub(super) fn offset(
        &self,
        offset: Value,
        operand: Option<Value>,
        mask: &Mask,
    ) -> Vec<(usize, i64)> {
        self.offsets(offset, operand, mask).swap_remove(0)
    }

    fn place(&mut self, base: Value) -> Place<'_, 'a> {
        let index = self.values[base].scalar() as usize;
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

    /// Checks the alignment of an access and counts its traffic.
    pub(super) fn begin_access(
        &mut self,
        inst: Inst,
        base: Value,
        offsets: &[(usize, i64)],
        (width, align): (usize, i64),
    ) -> Result<(), Fault> {
        let (dtype, space) = self
            .func
            .ty(base)
            .pointee()
            .expect("broken invariant: a verified base is a pointer");
        let size = i64::from(dtype.bytes());
        let (start, promised, name) = match self.place(base) {
            Place::Global(buffer) => (0, buffer.align, buffer.name.clone()),
            Place::Local(_, allocation) => {
                (allocation.offset, i64::MAX, allocation.name().to_string())
            }
        };
        let addressed = offsets
            .iter()
            .map(|&(lane, index)| (lane, start.wrapping_add(index.wrapping_mul(size))));
        let addressed: Vec<(usize, i64)> = addressed.collect();
        let wrong = addressed
            .iter()
            .position(|&(_, at)| align > promised || at % align != 0);
        if let Some(wrong) = wrong {
            let (lane, index) = offsets[wrong];
            let lane = lane as u64;
            let kind = FaultKind::Unaligned {
                buffer: name,
                index,
                align,
                lane,
            };
            return Err(self.fault(inst, kind));
        }
        if self.func.warps > 0 {
            let traffic = self.report.traffic.entry(inst).or_default();
            traffic.count(space, &addressed, size * width as i64);
        }
        Ok(())
    }

    pub(super) fn accessor(&self, lane: usize) -> Accessor {
        Accessor {
            program: self.program,
            lane,
            epoch: self.epoch,
            alone: self.lanes == 1,
        }
    }

    pub(super) fn load(
        &mut self,
        inst: Inst,
        op: &op::LaneLoad,
        mask: &Mask,
    ) -> Result<Elements, Fault> {
        let op::LaneLoad {
            base,
            offset,
            mask: operand,
            other,
            align,
        } = op;
        let result = self.func.inst(inst).results[0];
        let (width, lanes) = (self.width(result), self.lanes);
        let other = other.map_or(Elements::uniform(0), |other| self.read(other));
        let offsets = self.offsets(*offset, *operand, mask);
        let run = width / offsets.len();
        let mut result: Vec<u64> = (0..width * lanes).map(|place| other.get(place)).collect();
        for (at, offsets) in offsets.into_iter().enumerate() {
            self.begin_access(inst, *base, &offsets, (run, *align))?;
            for (lane, first) in offsets {
                let who = self.accessor(lane);
                for element in 0..run {
                    let index = first.wrapping_add(element as i64);
                    let loaded = match self.place(*base) {
                        Place::Global(buffer) => lane_memory::load_global(buffer, who, index),
                        Place::Local(arena, allocation) => arena.load(allocation, who, index),
                    };
                    let loaded = loaded.map_err(|kind| self.fault(inst, kind))?;
                    result[(at * run + element) * lanes + lane] = loaded;
                }
            }
        }
        Ok(Elements::new(result))
    }

    pub(super) fn store(
        &mut self,
        inst: Inst,
        op: &op::LaneStore,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let op::LaneStore {
            base,
            offset,
            value,
            mask: operand,
            align,
        } = op;
        let (width, lanes) = (self.width(*value), self.lanes);
        let offsets = self.offsets(*offset, *operand, mask);
        let run = width / offsets.len();
        let value = self.read(*value);
        for (at, offsets) in offsets.into_iter().enumerate() {
            self.begin_access(inst, *base, &offsets, (run, *align))?;
            for (lane, first) in offsets {
                let who = self.accessor(lane);
                for element in 0..run {
                    let index = first.wrapping_add(element as i64);
                    let bits = value.get((at * run + element) * lanes + lane);
                    let stored = match self.place(*base) {
                        Place::Global(buffer) => {
                            lane_memory::store_global(buffer, who, index, bits)
                        }
                        Place::Local(arena, allocation) => {
                            arena.store(allocation, who, index, bits)
                        }
                    };
                    stored.map_err(|kind| self.fault(inst, kind))?;
                }
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn combine(
        &mut self,
        inst: Inst,
        op: &op::LaneAtomic,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        let op::LaneAtomic {
            base,
            offset,
            value,
            mask: operand,
            op,
        } = op;
        let offsets = self.offsets(*offset, *operand, mask);
        let align = i64::from(dtype(self.func, *value).bytes());
        let value = self.read(*value);
        for (at, offsets) in offsets.into_iter().enumerate() {
            self.begin_access(inst, *base, &offsets, (1, align))?;
            for (lane, index) in offsets {
                let bits = value.get(at * self.lanes + lane);
                let (who, change) = (self.accessor(lane), (*op, bits));
                let combined = match self.place(*base) {
                    Place::Global(buffer) => {
                        lane_memory::combine_global(buffer, who, index, change)
                    }
                    Place::Local(arena, allocation) => {
                        arena.combine(allocation, who, index, change)
                    }
                };
                combined.map_err(|kind| self.fault(inst, kind))?;
            }
        }
        Ok(Vec::new())
    }

    pub(super) fn check_bounds(&mut self, op: &op::CheckBounds, mask: &Mask) -> Elements {
        let offsets = self.offset(op.offset, op.mask, mask);
        self.check(op.base, &offsets, op.count, (op.element, op.site))
            .0
    }

    /// Records what a check finds, and ends the program if there is something.
    pub(super) fn stop_outside(
        &mut self,
        inst: Inst,
        op: &op::StopOutside,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        self.converged(inst, mask, self.lanes)?;
        let offsets = self.offset(op.offset, op.mask, mask);
        let (_, refused) = self.check(op.base, &offsets, op.count, (op.element, op.site));
        self.stopped = refused;
        Ok(Vec::new())
    }

    /// The lanes that may access, and whether an access is out of bounds.
    fn check(
        &mut self,
        base: Value,
        offsets: &[(usize, i64)],
        count: i64,
        (element, site): (Value, i64),
    ) -> (Elements, bool) {
        let length = self.length(base);
        let mut refused = false;
        let mut result = vec![0; self.lanes];
        for &(lane, first) in offsets {
            if is_inside(first, count, length) {
                result[lane] = 1;
                continue;
            }
            refused = true;
            // The first of the elements that is outside.
            let inside = (i128::from(length) - i128::from(first)).max(0) as u64;
            let skipped = if first < 0 { 0 } else { inside };
            self.keep_least(BoundsError {
                program: self.program,
                site: site.cast_unsigned(),
                element: self.values[element].get(lane).wrapping_add(skipped),
                offset: first + skipped.cast_signed(),
            });
        }
        (Elements::new(result), refused)
    }

    pub(super) fn in_bounds(&mut self, op: &op::InBounds, mask: &Mask) -> Elements {
        let length = self.length(op.base);
        let offsets = self.offsets(op.offset, None, mask);
        let mut result = vec![0; offsets.len() * self.lanes];
        for (at, offsets) in offsets.into_iter().enumerate() {
            for (lane, first) in offsets {
                let inside = is_inside(first, op.count, length);
                result[at * self.lanes + lane] = u64::from(inside);
            }
        }
        Elements::new(result)
    }

    /// How many elements an array has.
    fn length(&mut self, base: Value) -> u64 {
        match self.place(base) {
            Place::Global(buffer) => buffer.length(),
            Place::Local(_, allocation) => allocation.count.cast_unsigned(),
        }
    }

    fn keep_least(&mut self, error: BoundsError) {
        let known = self.report.out_of_bounds;
        self.report.out_of_bounds = Some(known.map_or(error, |least| least.min(error)));
    }

    pub(super) fn check_index(&mut self, op: &op::CheckIndex, mask: &Mask) -> Vec<Elements> {
        let indices = self.offset(op.index, None, mask);
        self.check_indices(&indices, op.extent, (op.element, op.site));
        Vec::new()
    }

    /// Records what a check finds, and ends the program if there is something.
    pub(super) fn stop_index(
        &mut self,
        inst: Inst,
        op: &op::StopIndex,
        mask: &Mask,
    ) -> Result<Vec<Elements>, Fault> {
        self.converged(inst, mask, self.lanes)?;
        let indices = self.offset(op.index, op.mask, mask);
        self.stopped = self.check_indices(&indices, op.extent, (op.element, op.site));
        Ok(Vec::new())
    }

    /// Whether an index is out of range.
    fn check_indices(
        &mut self,
        indices: &[(usize, i64)],
        extent: i64,
        (element, site): (Value, i64),
    ) -> bool {
        let wrong = indices
            .iter()
            .filter(|(_, index)| !(0..extent).contains(index));
        let wrong = wrong.map(|&(lane, offset)| BoundsError {
            program: self.program,
            site: site.cast_unsigned(),
            element: self.values[element].get(lane),
            offset,
        });
        let least = wrong.min();
        least.into_iter().for_each(|least| self.keep_least(least));
        least.is_some()
    }
}

/// Whether `count` elements from `first` on are among `length`.
fn is_inside(first: i64, count: i64, length: u64) -> bool {
    first >= 0 && i128::from(first) + i128::from(count) <= i128::from(length)
}
