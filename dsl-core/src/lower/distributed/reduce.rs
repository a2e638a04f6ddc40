//! Reductions: each level of the tree is one bit of the index, lowest first.

use std::rc::Rc;

use super::level::{Combiner, Partial};
use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{BinaryOp, DType, Op, Order, Region, Value};
use crate::layout::{Holder, IndexMap, LinearLayout};

impl Lowering<'_> {
    pub(super) fn reduce(
        &mut self,
        results: &[Value],
        sources: &[Value],
        axis: usize,
        (order, region): (Order, Region),
    ) -> Result<()> {
        let layout = self.reduction_layout(sources, axis)?;
        let mut columns = Vec::new();
        let mut dtypes = Vec::new();
        for &source in sources {
            columns.push(self.get(source, &layout)?);
            dtypes.push(self.dtype(source)?);
        }
        let only = self.only_op(region);
        let order = match only {
            Some(op) if is_associative(op, dtypes[0]) => Order::Any,
            Some(_) | None => order,
        };
        let combiner = Combiner {
            region,
            commutative: order == Order::Any || only.is_some_and(BinaryOp::is_commutative),
            dtypes,
        };
        let registers = (0..layout.registers()).map(|register| {
            (
                register,
                columns.iter().map(|c| c[register as usize]).collect(),
            )
        });
        let mask = self.axis_mask(&layout, axis)?;
        let mut partial = Partial::new(&layout, mask, registers.collect());
        let mut rest: Vec<u32> = (0..64).filter(|bit| mask >> bit & 1 == 1).collect();
        while !rest.is_empty() {
            let next = match order {
                Order::Tree => 0,
                Order::Any => partial.cheapest(&rest),
            };
            let bit = rest.remove(next);
            match partial.holder(bit) {
                Holder::Register(register) => {
                    self.across_registers(&mut partial, register, &combiner)?;
                }
                Holder::Lane(lane) => self.across_lanes(&mut partial, lane, &combiner)?,
                Holder::Warp(warp) => {
                    let mut warps = vec![warp];
                    while let Some(Holder::Warp(warp)) =
                        rest.first().map(|&bit| partial.holder(bit))
                    {
                        warps.push(warp);
                        rest.remove(0);
                    }
                    self.across_warps(&mut partial, &warps, &combiner)?;
                }
                Holder::Mixed => return Err(self.error("a reduction over mixed index bits")),
            }
        }
        self.bind_results(results, &layout, axis, &partial)
    }

    /// Binds the results in the layout that the reduction leaves them in: the operand's without the
    /// axis, some of its register bits now in lanes.
    fn bind_results(
        &mut self,
        results: &[Value],
        layout: &LinearLayout,
        axis: usize,
        partial: &Partial,
    ) -> Result<()> {
        let map = IndexMap::reduce(layout.dim_bits(), axis);
        let map = map.map_err(|error| self.layout_error(&error))?;
        let reduced = partial
            .layout(&map)
            .map_err(|error| self.layout_error(&error))?;
        let reduced = Rc::new(reduced);
        for (position, &result) in results.iter().enumerate() {
            // The keys ascend as the register numbers of the result do.
            let registers = partial
                .registers
                .values()
                .map(|values| values[position])
                .collect();
            self.bind(
                result,
                Tile {
                    layout: Rc::clone(&reduced),
                    registers,
                },
            );
        }
        Ok(())
    }

    fn axis_mask(&self, layout: &LinearLayout, axis: usize) -> Result<u64> {
        layout
            .dim_mask(axis)
            .map_err(|error| self.layout_error(&error))
    }

    /// The layout of the first source, if each bit along the axis has one holder.
    fn reduction_layout(&mut self, sources: &[Value], axis: usize) -> Result<Rc<LinearLayout>> {
        let layout = self.natural(sources[0])?;
        let mask = self.axis_mask(&layout, axis)?;
        let mut bits = (0..layout.tile_bits()).filter(|bit| mask >> bit & 1 == 1);
        if bits.all(|bit| layout.holder(bit) != Holder::Mixed) {
            return Ok(layout);
        }
        Ok(self.plain(layout.dim_bits()))
    }

    /// The one op of a combine of one source that is no more than that op on its two operands.
    fn only_op(&self, region: Region) -> Option<BinaryOp> {
        let data = self.block.region(region);
        let [first, second] = data.parameters.as_slice() else {
            return None;
        };
        let [inst, _] = data.insts.as_slice() else {
            return None;
        };
        let inst = self.block.inst(*inst);
        match &inst.op {
            Op::Binary { op, lhs, rhs }
                if (lhs, rhs) == (first, second)
                    && self.block.yielded(region) == inst.results.as_slice() =>
            {
                Some(*op)
            }
            _ => None,
        }
    }
}

/// Whether any order of combining with `op` gives the same bits, NaN payloads aside.
fn is_associative(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul => !dtype.is_float(),
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
        BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => false,
    }
}
