//! What masks say of the indices along the axes of a tile: they are conjunctions of comparisons, each of an index along one axis.

use super::indices::Indices;
use crate::entity::EntityMap;
use crate::ir::index_map::{dim_bits, dim_offset};
use crate::ir::{BinaryOp, DType, Func, Inst, Op, Shape, Value, op};

/// What is known of the values of a function.
pub(crate) struct MaskAxes<'a> {
    pub(crate) func: &'a Func,
    pub(crate) definitions: &'a EntityMap<Value, Option<Inst>>,
    pub(crate) indices: &'a Indices,
}

impl MaskAxes<'_> {
    /// The values whose conjunction a mask is, each with the bit of its own index for each bit of the mask's.
    pub(crate) fn leaves(&self, mask: Value, shape: &Shape) -> Vec<(Value, Vec<Option<u32>>)> {
        let all = (0..dim_bits(shape).iter().sum()).map(Some).collect();
        let mut pending: Vec<(Value, Vec<Option<u32>>)> = vec![(mask, all)];
        let mut found = Vec::new();
        while let Some((value, bits)) = pending.pop() {
            let op = self.definitions[value].map(|inst| self.func.op(inst));
            if let Some(Op::View(view)) = op
                && view.offset == 0
            {
                let through = |&bit: &Option<u32>| view.bits.get(bit? as usize)?.map(u32::from);
                pending.push((view.x, bits.iter().map(through).collect()));
            } else if let Some(Op::Binary(op::Binary {
                op: BinaryOp::And,
                lhs,
                rhs,
            })) = op
            {
                pending.extend([(*lhs, bits.clone()), (*rhs, bits)]);
            } else {
                found.push((value, bits));
            }
        }
        found
    }

    /// The axis of the mask along which an index, with these bits of its own, counts up by one.
    pub(crate) fn axis_of(
        &self,
        index: Value,
        bits: &[Option<u32>],
        shape: &Shape,
    ) -> Option<usize> {
        if self.func.ty(index).dtype() != Some(DType::I64) {
            return None;
        }
        let fact = self.indices.fact(index);
        let own = self.func.ty(index).shape;
        let steps = fact.steps()?;
        let mut moving =
            (0..own.rank()).filter(|&axis| own.extent(axis) > 1 && !steps[axis].is_zero());
        let (from, None) = (moving.next()?, moving.next()) else {
            return None;
        };
        let (own_bits, mask_bits) = (dim_bits(&own), dim_bits(shape));
        let first = dim_offset(&own_bits, from);
        let goes_along = |axis: &usize| {
            mask_bits[*axis] == own_bits[from]
                && bits.iter().enumerate().all(|(at, &bit)| {
                    let start = dim_offset(&mask_bits, *axis);
                    let inside = (at as u32)
                        .checked_sub(start)
                        .filter(|&at| at < mask_bits[*axis]);
                    let moved = bit.filter(|&bit| (first..first + own_bits[from]).contains(&bit));
                    moved == inside.map(|at| first + at)
                })
        };
        let axis = (0..shape.rank()).find(goes_along)?;
        (steps[from].constant() == Some(1)).then_some(axis)
    }
}
