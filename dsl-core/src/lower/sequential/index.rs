//! Where in a tile a vector of elements lies.

use std::ops::Range;

use crate::ir::{Shape, Value};

/// An `i64` scalar that may be known while lowering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Scalar {
    /// A constant.
    Known(i64),
    /// A value of the lane function, of any type.
    Emitted(Value),
}

/// Position of each lane along one axis: `base + lanes[lane]`.
///
/// No bit is set in both the base and a lane's part, so that a position can be split and joined by
/// shifts and masks of the two parts alone. Extents are powers of two: every reshape does that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Coordinate {
    /// The part that all lanes share.
    pub base: Scalar,
    /// Each lane's own part.
    pub lanes: Vec<i64>,
}

/// Positions of the elements of a vector in a tile.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Index {
    /// One for each axis.
    pub coordinates: Vec<Coordinate>,
    /// The number of elements.
    pub lanes: usize,
}

impl Index {
    /// Whether all lanes name the same element.
    pub(super) fn is_uniform(&self) -> bool {
        self.coordinates.iter().all(|coordinate| {
            coordinate
                .lanes
                .iter()
                .all(|&lane| lane == coordinate.lanes[0])
        })
    }

    /// The position of one lane.
    pub(super) fn lane(&self, lane: usize) -> Self {
        let one = |coordinate: &Coordinate| Coordinate {
            base: coordinate.base,
            lanes: vec![coordinate.lanes[lane]],
        };
        Self {
            coordinates: self.coordinates.iter().map(one).collect(),
            lanes: 1,
        }
    }
}

/// How a loop nest covers a shape: one iteration handles `chunk` consecutive row-major elements.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    /// The shape.
    pub shape: Shape,
    /// Positions that one iteration covers along each axis.
    pub steps: Vec<i64>,
}

impl Cover {
    /// The cover of `shape` by chunks of `chunk` elements; the shape has at least as many.
    pub(super) fn new(shape: Shape, chunk: usize) -> Self {
        let mut left = chunk;
        let mut steps = vec![1; shape.rank()];
        for axis in (0..shape.rank()).rev() {
            let covered = shape.extent(axis).min(left);
            steps[axis] = covered as i64;
            left /= covered;
        }
        debug_assert_eq!(left, 1, "broken invariant: a chunk fits its shape");
        Self { shape, steps }
    }

    /// The same of some axes alone.
    pub(super) fn axes(&self, axes: Range<usize>) -> Self {
        let shape = Shape::new(&self.shape.dims()[axes.clone()]);
        Self {
            shape: shape.expect("broken invariant: a part of a shape is valid"),
            steps: self.steps[axes].to_vec(),
        }
    }

    /// The index of elements `offset .. offset + lanes` of the chunk that starts at `bases`.
    pub(super) fn index(&self, bases: &[Scalar], offset: usize, lanes: usize) -> Index {
        self.places(bases, offset..offset + lanes)
    }

    /// The index of these elements of the chunk that starts at `bases`.
    pub(super) fn places(
        &self,
        bases: &[Scalar],
        elements: impl ExactSizeIterator<Item = usize>,
    ) -> Index {
        let lanes = elements.len();
        let mut coordinates: Vec<Coordinate> = bases
            .iter()
            .map(|&base| Coordinate {
                base,
                lanes: vec![0; lanes],
            })
            .collect();
        for (lane, element) in elements.enumerate() {
            let mut flat = element as i64;
            for axis in (0..self.steps.len()).rev() {
                coordinates[axis].lanes[lane] = flat % self.steps[axis];
                flat /= self.steps[axis];
            }
        }
        Index { coordinates, lanes }
    }
}
