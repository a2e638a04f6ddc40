//! Writes out what is said of each element: `map`, and inline PTX for a CPU.
//!
//! A map whose region is straight becomes its ops on tiles, and one of scalars the region. Any other one becomes the
//! reduction of each element with itself, whose combine is the region: both lowerings run combines that branch and
//! repeat, element by element.

use std::collections::BTreeMap;

use super::duplicate::duplicate;
use super::rewrite::rewrite;
use super::straight::{is_straight, on_tiles};
use crate::builder::Builder;
use crate::ir::{Axis, Func, Literal, Op, Order, Region, RegionData, Shape, Type, Value, op};
use crate::target::Distribution;

/// Replaces each `map`, and on a CPU each `inline_ptx` by what it means.
pub fn expand_elements(func: &mut Func, distribution: Distribution) {
    let insts = func.all_insts();
    let is_here = |op: &Op| matches!(op, Op::Map(_) | Op::InlinePtx(_));
    if !insts.iter().any(|&inst| is_here(func.op(inst))) {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let op = builder.func().op(inst).clone();
        if let Op::Map(map) = &op {
            return Some(expand(builder, map));
        }
        let Op::InlinePtx(op) = op else {
            return None;
        };
        match distribution {
            Distribution::Sequential => Some(vec![op.meant()]),
            Distribution::Distributed => None,
        }
    });
}

fn expand(builder: &mut Builder, map: &op::Map) -> Vec<Value> {
    let shape = builder.ty(map.sources[0]).shape;
    if is_straight(builder.func(), map.body) {
        return on_tiles(builder, map.body, shape, &map.sources);
    }
    match shape.is_scalar() {
        true => in_place(builder, map),
        false => by_reduction(builder, map, shape),
    }
}

/// The instructions of a map of scalars.
fn in_place(builder: &mut Builder, map: &op::Map) -> Vec<Value> {
    let here = builder.region();
    let func = builder.func_mut();
    let RegionData { parameters, insts } = func.region(map.body).clone();
    let mut known: BTreeMap<Value, Value> =
        parameters.into_iter().zip(map.sources.clone()).collect();
    let yielded = func.yielded(map.body).to_vec();
    let copied = duplicate(func, &insts[..insts.len() - 1], &mut known);
    func.region_mut(here).insts.extend(copied);
    let given = yielded.iter();
    given
        .map(|it| known.get(it).copied().unwrap_or(*it))
        .collect()
}

/// The reduction of each element with itself. The results are sources too, which begin with zero bits.
fn by_reduction(builder: &mut Builder, map: &op::Map, shape: Shape) -> Vec<Value> {
    let count = shape.elements();
    let [flat, column, pairs] = [vec![count], vec![count, 1], vec![count, 2]].map(|dims| {
        Shape::new(&dims).expect("broken invariant: a verified map leaves room for pairs")
    });
    let yielded = builder.func().yielded(map.body).to_vec();
    let results: Vec<Type> = yielded.iter().map(|&value| builder.ty(value)).collect();
    let mut sources = Vec::new();
    for &x in &map.sources {
        let ty = builder.ty(x);
        let x = builder.declared(Op::Reshape(op::Reshape { x }), ty.with_shape(column));
        let pair = Op::Broadcast(op::Broadcast { x });
        sources.push(builder.declared(pair, ty.with_shape(pairs)));
    }
    for dtype in results.iter().filter_map(|ty| ty.dtype()) {
        sources.push(builder.filled(Literal::from_bits(dtype, 0), pairs));
    }
    as_combine(builder, map.body, &results);
    let reduce = Op::Reduce(op::Reduce {
        sources,
        axis: Axis(1),
        order: Order::Tree,
        combine: map.body,
    });
    let inst = builder.emit(reduce, &[]);
    let reduced = builder.results(inst)[map.sources.len()..].to_vec();
    let shaped = reduced.into_iter().map(|x| {
        let ty = builder.ty(x);
        match shape == flat {
            true => x,
            false => builder.declared(Op::Reshape(op::Reshape { x }), ty.with_shape(shape)),
        }
    });
    shaped.collect()
}

/// Makes a combine of the region of a map: of elements and results, twice, of which the lower elements count.
fn as_combine(builder: &mut Builder, body: Region, results: &[Type]) {
    let func = builder.func_mut();
    let elements = func.region(body).parameters.clone();
    let types: Vec<Type> = elements.iter().map(|&value| func.ty(value)).collect();
    for ty in [results, &types, results].concat() {
        func.add_region_parameter(body, ty);
    }
    let last = func.region(body).insts.last().copied();
    if let Some(Op::Yield(op::Yield { values })) = last.map(|last| &mut func.inst_mut(last).op) {
        values.splice(0..0, elements);
    }
}
