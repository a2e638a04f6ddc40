//! Which elements of a tile come first.

use std::cmp::Ordering;

use crate::ir::Shape;

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
