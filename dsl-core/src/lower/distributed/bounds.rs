//! Bounds checks of accesses: vector by vector, and before that all of a lane at once.

use std::collections::BTreeMap;

use super::Lowering;
use super::memory::Access;
use crate::ir::{Op, Type, Value};
use crate::layout::{Holder, LinearLayout, Point};

impl Lowering<'_> {
    /// The mask of one vector: the tile's mask, the owner's condition, and the bounds check.
    pub(super) fn checked(
        &mut self,
        access: &Access,
        vector: &[u32],
        owner: Option<Value>,
    ) -> Option<Value> {
        let first = vector[0] as usize;
        let mut mask = access.masks.as_ref().map(|masks| masks[first]);
        if let Some(owner) = owner {
            mask = Some(self.both(mask, owner));
        }
        let Some((site, elements)) = &access.check else {
            return mask;
        };
        let op = Op::CheckBounds {
            base: access.base(),
            offset: access.offsets()[first],
            element: elements[first],
            mask,
            count: vector.len() as i64,
            site: *site,
        };
        Some(self.builder.value(op))
    }

    /// Whether all that a lane accesses is in bounds, by few comparisons: one for each run of offsets
    /// that count up over its registers. `None` where that would not be fewer than the checks, and
    /// where a mask may allow less.
    pub(super) fn inside(
        &mut self,
        access: &Access,
        offsets: Value,
        layout: &LinearLayout,
    ) -> Option<Value> {
        if access.check.is_none() || access.masks.is_some() {
            return None;
        }
        let runs = self.runs(offsets, layout)?;
        if 2 * runs.len() > access.vectors().len() {
            return None;
        }
        let mut all = None;
        for (register, count) in runs {
            let op = Op::InBounds {
                base: access.base(),
                offset: access.offsets()[register as usize],
                count,
            };
            let inside = self.builder.value(op);
            all = Some(self.both(all, inside));
        }
        all
    }

    /// The first register and the extent of each run of offsets that count up by one over registers.
    fn runs(&self, offsets: Value, layout: &LinearLayout) -> Option<Vec<(u32, i64)>> {
        let facts = self.assignment.contiguity.of(offsets);
        let rank = layout.dim_bits().len();
        let axis = (0..rank).max_by_key(|&axis| facts.axis(axis).contiguous)?;
        let first_bit = layout.dim_mask(axis).ok()?.trailing_zeros().min(63);
        let run = ((1_u64 << facts.axis(axis).contiguous) - 1) << first_bit;
        let of_registers: u64 = layout
            .register_columns()
            .iter()
            .fold(0, |bits, column| bits | column);
        let held = |bit: u32| matches!(layout.holder(bit), Holder::Register(_));
        if !(0..64).all(|bit| of_registers >> bit & 1 == 0 || held(bit)) {
            return None;
        }
        let mut runs: BTreeMap<u64, (u32, i64)> = BTreeMap::new();
        for register in 0..layout.registers() {
            let point = Point {
                register,
                lane: 0,
                warp: 0,
            };
            let flat = layout.apply(point);
            let count = ((flat & run) >> first_bit) as i64 + 1;
            let entry = runs.entry(flat & !run).or_insert((register, count));
            entry.1 = entry.1.max(count);
        }
        Some(runs.into_values().collect())
    }

    /// `if condition { emit(true) } else { emit(false) }`.
    pub(super) fn either(
        &mut self,
        condition: Value,
        types: &[Type],
        emit: &mut dyn FnMut(&mut Self, bool) -> Vec<Value>,
    ) -> Vec<Value> {
        let [on_true, on_false] = [true, false].map(|holds| {
            let region = self.builder.new_region(&[]);
            let outer = self.builder.enter(region);
            let values = emit(self, holds);
            self.builder.emit(Op::Yield { values }, &[]);
            self.builder.enter(outer);
            region
        });
        let op = Op::If {
            condition,
            on_true,
            on_false,
        };
        let inst = self.builder.emit_unchecked(op, types);
        self.builder.results(inst).to_vec()
    }
}
