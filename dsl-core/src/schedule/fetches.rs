//! Atomics with a result of fewer elements than there are lanes, for machines that hold a tile in lanes.
//!
//! Such a tile is in several lanes at once, of which one may touch memory. So that all learn what it found, each
//! element stands in a row of its own in a larger tile, of which the first row is not masked off, and a
//! reduction by `or` brings the rows together: the others are zero bits.

use crate::ir::{BinaryOp, CompareOp, DType, Func, Op, Order, Shape, Type, Value, op};
use crate::passes::rewrite::{Rewriter, rewrite};
use crate::target::WARP_LANES;

/// Gives each atomic with a result at least as many elements as there are lanes.
pub(super) fn spread_fetches(func: &mut Func) {
    let lanes = WARP_LANES as usize * func.warps as usize;
    func.keep_sites();
    rewrite(func, &mut |rewriter, inst| {
        let func = rewriter.builder.func();
        let Op::AtomicFetch(fetch) = func.op(inst).clone() else {
            return None;
        };
        let ty = func.ty(fetch.value);
        let site = func.inst(inst).site;
        let rows = lanes / ty.shape.elements();
        (rows > 1).then(|| vec![spread(rewriter, &fetch, (ty, rows), site)])
    });
}

fn spread(
    rewriter: &mut Rewriter,
    fetch: &op::AtomicFetch,
    (ty, rows): (Type, usize),
    site: Option<u32>,
) -> Value {
    let builder = &mut rewriter.builder;
    let count = ty.shape.elements();
    let row = Shape::new(&[count]).expect("broken invariant: as many elements as a tile");
    let whole = Shape::new(&[rows, count]).expect("broken invariant: as many elements as lanes");
    let mut repeated = |x: Value| {
        let of = builder.ty(x);
        if of.is_scalar() {
            return builder.splat(x, whole);
        }
        let x = builder.declared(Op::Reshape(op::Reshape { x }), of.with_shape(row));
        let axis = crate::ir::Axis(0);
        let x = builder.value(Op::ExpandDims(op::ExpandDims { x, axis }));
        builder.declared(Op::Broadcast(op::Broadcast { x }), of.with_shape(whole))
    };
    let [offsets, value] = [fetch.offsets, fetch.value].map(&mut repeated);
    let [mask, expected] = [fetch.mask, fetch.expected].map(|it| it.map(&mut repeated));
    let index = builder.index_along(0, whole);
    let zero = builder.constant_like(index, 0.0);
    let first = builder.compare(CompareOp::Eq, index, zero);
    let mask = Some(match mask {
        Some(mask) => builder.and(mask, first),
        None => first,
    });
    let fetch = Op::AtomicFetch(op::AtomicFetch {
        offsets,
        value,
        mask,
        expected,
        ..fetch.clone()
    });
    let inst = builder.emit(fetch, &[]);
    builder.func_mut().inst_mut(inst).site = site;
    let old = builder.results(inst)[0];
    let dtype = ty.dtype().unwrap_or(DType::Bool);
    let bits = match dtype.is_float() {
        true => builder.bitcast(old, dtype.unsigned()),
        false => old,
    };
    let rows = builder.reduce(&[bits], 0, Order::Tree, |builder, lower, higher| {
        vec![builder.binary(BinaryOp::Or, lower[0], higher[0])]
    });
    let bits = builder.ty(rows[0]).with_shape(ty.shape);
    let old = builder.declared(Op::Reshape(op::Reshape { x: rows[0] }), bits);
    match dtype.is_float() {
        true => builder.bitcast(old, dtype),
        false => old,
    }
}
