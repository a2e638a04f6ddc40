//! Makes offsets and masks of the tiles of tensors.

use std::collections::BTreeMap;

use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::ir::op::TensorOp;
use crate::ir::{Axis, CompareOp, Func, Op, Shape, Type, Value, op};
use crate::launch::Inside;

/// Replaces accesses to tiles of tensors by loads and stores with a mask that holds inside of the tensor, and
/// notes which memory is reached so alone.
pub fn expand_tiles(func: &mut Func) {
    let inside = Inside::of(func);
    for (index, parameter) in func.parameters.iter_mut().enumerate() {
        parameter.tiled = inside.covers(index);
    }
    let tensors = func.values().any(|value| func.ty(value).tensor().is_some());
    if !tensors {
        return;
    }
    let mut tensors = BTreeMap::new();
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let data = builder.func().inst(inst).clone();
        match data.op.tensor()? {
            TensorOp::Tensor(op) => {
                tensors.insert(data.results[0], op.clone());
                Some(data.results)
            }
            TensorOp::TileLoad(op) => {
                let shape = builder.ty(data.results[0]).shape;
                Some(vec![load(builder, &tensors[&op.tensor], op, shape)])
            }
            TensorOp::TileStore(op) => {
                let shape = builder.ty(op.value).shape;
                let tensor = &tensors[&op.tensor];
                let (offsets, mask) = masked(builder, tensor, (&op.origin, op.mask), shape);
                let store = Op::Store(op::Store {
                    base: tensor.base,
                    offsets,
                    value: op.value,
                    mask,
                    cache: op.cache,
                });
                builder.emit(store, &[]);
                Some(Vec::new())
            }
            TensorOp::TileAtomic(op) => {
                atomic(builder, &tensors[&op.tensor], op);
                Some(Vec::new())
            }
            TensorOp::TileFetch(op) => Some(vec![fetch(builder, &tensors[&op.tensor], op)]),
        }
    });
}

/// The load of a tile. One of one element is that of a number.
fn load(builder: &mut Builder, tensor: &op::Tensor, tile: &op::TileLoad, shape: Shape) -> Value {
    let is_single = shape.elements() == 1;
    let mut scalar = |value: Option<Value>| match value {
        Some(x) if is_single => {
            let ty = builder.ty(x).with_shape(Shape::SCALAR);
            Some(builder.declared(Op::Reshape(op::Reshape { x }), ty))
        }
        _ => value,
    };
    let (mask, other) = (scalar(tile.mask), scalar(tile.other));
    let own = if is_single { Shape::SCALAR } else { shape };
    let (offsets, mask) = masked(builder, tensor, (&tile.origin, mask), own);
    let loaded = builder.value(Op::Load(op::Load {
        base: tensor.base,
        offsets,
        mask,
        other,
        cache: tile.cache,
    }));
    builder.splat(loaded, shape)
}

fn atomic(builder: &mut Builder, tensor: &op::Tensor, tile: &op::TileAtomic) {
    let shape = builder.ty(tile.value).shape;
    let (offsets, mask) = masked(builder, tensor, (&tile.origin, tile.mask), shape);
    let atomic = Op::AtomicReduce(op::AtomicReduce {
        base: tensor.base,
        offsets,
        value: tile.value,
        mask,
        op: tile.op,
        order: tile.order,
        scope: tile.scope,
    });
    builder.emit(atomic, &[]);
}

fn fetch(builder: &mut Builder, tensor: &op::Tensor, tile: &op::TileFetch) -> Value {
    let shape = builder.ty(tile.value).shape;
    let (offsets, mask) = masked(builder, tensor, (&tile.origin, tile.mask), shape);
    builder.value(Op::AtomicFetch(op::AtomicFetch {
        base: tensor.base,
        offsets,
        value: tile.value,
        mask,
        expected: tile.expected,
        op: tile.op,
        order: tile.order,
        scope: tile.scope,
    }))
}

/// The offsets of a tile, and which of its elements are in the tensor and let through.
fn masked(
    builder: &mut Builder,
    tensor: &op::Tensor,
    (origin, mask): (&[Value], Option<Value>),
    shape: Shape,
) -> (Value, Option<Value>) {
    let (offsets, inside) = place(builder, tensor, origin, shape);
    let mask = mask.map_or(inside, |mask| builder.and(inside, mask));
    (offsets, Some(mask))
}

/// The offsets of a tile, and which of its elements are in the tensor.
pub(super) fn place(
    builder: &mut Builder,
    tensor: &op::Tensor,
    origin: &[Value],
    shape: Shape,
) -> (Value, Value) {
    let mut sums: Option<(Value, Value)> = None;
    for (axis, &start) in origin.iter().enumerate() {
        let scalars = [start, tensor.extents[axis], tensor.strides[axis]];
        let (offset, within) = along(builder, shape, axis, scalars);
        sums = Some(match sums {
            Some((offsets, inside)) => {
                let [sum, offset] = common(builder, [offsets, offset]);
                let sum = builder.add(sum, offset);
                let [all, within] = common(builder, [inside, within]);
                (sum, builder.and(all, within))
            }
            None => (offset, within),
        });
    }
    let (offsets, inside) = sums.expect("broken invariant: a tensor has an axis");
    let Some(start) = tensor.offset else {
        return (offsets, inside);
    };
    let start = builder.splat(start, shape);
    (builder.add(offsets, start), inside)
}

/// Offsets along one axis and which indices exist, with extent 1 along all others; of a number, those of its own.
fn along(
    builder: &mut Builder,
    shape: Shape,
    axis: usize,
    [start, extent, stride]: [Value; 3],
) -> (Value, Value) {
    let mut index = start;
    if !shape.is_scalar() {
        let end = shape.extent(axis) as i64;
        let steps = builder.value(Op::Arange(op::Arange { start: 0, end }));
        let start = builder.splat(start, builder.ty(steps).shape);
        index = builder.add(start, steps);
    }
    for other in (0..shape.rank()).filter(|&other| other != axis) {
        let axis = Axis(other as u8);
        index = builder.value(Op::ExpandDims(op::ExpandDims { x: index, axis }));
    }
    let shape = builder.ty(index).shape;
    let extent = builder.splat(extent, shape);
    let below = builder.compare(CompareOp::Lt, index, extent);
    let zero = builder.constant_like(index, 0.0);
    let above = builder.compare(CompareOp::Ge, index, zero);
    let within = builder.and(above, below);
    let stride = builder.splat(stride, shape);
    (builder.mul(index, stride), within)
}

/// Both values, repeated along the axes that only the other has.
fn common(builder: &mut Builder, values: [Value; 2]) -> [Value; 2] {
    let [a, b] = values.map(|value| builder.ty(value).shape.dims());
    let dims: Vec<usize> = a.iter().zip(&b).map(|(&a, &b)| a.max(b)).collect();
    let shape = Shape::new(&dims).expect("broken invariant: a part of a shape is a shape");
    values.map(|x| {
        let ty = builder.ty(x);
        if ty.shape == shape {
            return x;
        }
        let repeated: Type = ty.with_shape(shape);
        builder.declared(Op::Broadcast(op::Broadcast { x }), repeated)
    })
}
