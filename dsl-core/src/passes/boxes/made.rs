//! Accesses to boxes in place of those with offsets and masks, and the other way round.

use super::Array;
use crate::builder::Builder;
use crate::diagnostic::Loc;
use crate::ir::{Func, Inst, Op, Region, op};
use crate::passes::expand_tiles::place;

/// Appends the numbers of an array, and makes an access one of a box of it.
pub(super) fn raised(func: &mut Func, region: Region, access: Inst, array: &Array) {
    let [origin, extents, strides] = within(func, region, access, |builder| {
        [&array.origin, &array.extents, &array.strides]
            .map(|sums| sums.iter().map(|sum| sum.scalar(builder)).collect())
    });
    let op = &mut func.inst_mut(access).op;
    if let Op::Load(op::Load { base, cache, .. }) = *op {
        *op = Op::LoadBox(op::LoadBox {
            base,
            origin,
            extents,
            strides,
            cache,
        });
    } else if let Op::Store(op::Store {
        base, value, cache, ..
    }) = *op
    {
        *op = Op::StoreBox(op::StoreBox {
            base,
            origin,
            extents,
            strides,
            value,
            cache,
        });
    }
}

/// Appends the offsets and the mask of a box, and makes it an access of them.
pub(super) fn expanded(func: &mut Func, region: Region, inst: Inst) {
    let op = func.op(inst).clone();
    let (origin, tensor, value, cache) = if let Op::LoadBox(op) = op {
        let array = (op.base, op.extents, op.strides);
        (op.origin, array, None, op.cache)
    } else if let Op::StoreBox(op) = op {
        let array = (op.base, op.extents, op.strides);
        (op.origin, array, Some(op.value), op.cache)
    } else {
        return;
    };
    let (base, extents, strides) = tensor;
    let moved = value.unwrap_or_else(|| func.inst(inst).results[0]);
    let shape = func.ty(moved).shape;
    let tensor = op::Tensor {
        base,
        extents,
        strides,
        offset: None,
    };
    let (offsets, mask) = within(func, region, inst, |builder| {
        place(builder, &tensor, &origin, shape)
    });
    let mask = Some(mask);
    func.inst_mut(inst).op = match value {
        Some(value) => Op::Store(op::Store {
            base,
            offsets,
            value,
            mask,
            cache,
        }),
        None => Op::Load(op::Load {
            base,
            offsets,
            mask,
            other: None,
            cache,
        }),
    };
}

/// Appends to a region what `fill` builds, at the place of an instruction.
fn within<T>(
    func: &mut Func,
    region: Region,
    inst: Inst,
    fill: impl FnOnce(&mut Builder) -> T,
) -> T {
    let loc: Loc = func.inst(inst).loc.clone();
    let owned = std::mem::replace(func, Func::new("", func.stage));
    let mut builder = Builder::resume(owned);
    builder.set_loc(loc);
    builder.enter(region);
    let filled = fill(&mut builder);
    *func = builder
        .finish()
        .expect("broken invariant: numbers of indices are of one type");
    filled
}
