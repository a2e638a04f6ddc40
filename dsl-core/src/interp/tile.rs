//! Moves the elements of tiles.

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
