//! Moves the elements of tiles.

use std::cmp::Ordering;

use super::elements::Elements;
use crate::ir::{Shape, unflatten};

/// Repeats along the axes whose extent is 1.
pub(super) fn broadcast(x: &Elements, from: Shape, to: Shape) -> Elements {
    let strides = from.strides();
    let strides = strides
        .iter()
        .zip(from.extents())
        .map(|(&stride, &extent)| if extent == 1 { 0 } else { stride });
    walk(x, to, &strides.collect::<Vec<_>>())
}

/// Permutes axes: axis `i` of the result is axis `permutation[i]` of `x`.
pub(super) fn transpose(x: &Elements, from: Shape, permutation: &[u32]) -> Elements {
    let strides = from.strides();
    let axes = permutation.iter().map(|&axis| axis as usize);
    let dims: Vec<usize> = axes.clone().map(|axis| from.extent(axis)).collect();
    let to = Shape::new(&dims).expect("broken invariant: a permuted shape is a shape");
    walk(x, to, &axes.map(|axis| strides[axis]).collect::<Vec<_>>())
}

/// The places of the elements of a tile whose axis holds, in order, the `count` least along it.
pub(super) fn first_places(
    shape: Shape,
    axis: usize,
    count: usize,
    order: &dyn Fn(&usize, &usize) -> Ordering,
) -> Vec<usize> {
    let (extent, stride) = (shape.extent(axis), shape.strides()[axis]);
    let outer = shape.elements() / (extent * stride);
    let mut places = vec![0; outer * count * stride];
    for line in 0..outer * stride {
        let (block, inner) = (line / stride, line % stride);
        let first = block * extent * stride + inner;
        let mut own: Vec<usize> = (0..extent).map(|at| first + at * stride).collect();
        own.sort_by(order);
        for (at, place) in own.into_iter().take(count).enumerate() {
            places[(block * count + at) * stride + inner] = place;
        }
    }
    places
}

/// The tile of shape `to` whose axes step through `x` by `strides`.
fn walk(x: &Elements, to: Shape, strides: &[usize]) -> Elements {
    x.gather((0..to.elements()).map(|flat| {
        let coordinates = unflatten(&to, flat);
        coordinates
            .iter()
            .zip(strides)
            .map(|(at, stride)| at * stride)
            .sum()
    }))
}
