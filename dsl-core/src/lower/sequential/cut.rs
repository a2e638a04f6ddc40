//! Vectors that a mask cuts: their lanes one after the other, in a loop. Few vectors are cut, and code for each lane
//! takes long to compile.

use super::index::{Coordinate, Index, Scalar};
use super::lowerer::{Buffer, Lowerer};
use super::pull::Pulled;
use crate::ir::{DType, Inst, Shape, Value, op};

/// Lanes that lie in a row: each is one step after the one before along one axis.
pub(super) struct Row<'a> {
    index: &'a Index,
    axis: usize,
    step: i64,
}

impl<'a> Row<'a> {
    /// The row of an index, unless its lanes lie otherwise or are too few for a loop.
    pub(super) fn of(index: &'a Index) -> Option<Self> {
        let is_moving = |own: &&Coordinate| own.lanes.iter().any(|&lane| lane != own.lanes[0]);
        if index.lanes < 4 || index.coordinates.iter().filter(is_moving).count() != 1 {
            return None;
        }
        let axis = index.coordinates.iter().position(|own| is_moving(&own))?;
        let lanes = &index.coordinates[axis].lanes;
        let step = lanes[1] - lanes[0];
        let mut pairs = lanes.windows(2);
        let is_even = pairs.all(|pair| pair[1] - pair[0] == step);
        is_even.then_some(Self { index, axis, step })
    }
}

/// Elements of a buffer of one row.
fn elements(first: Scalar, lanes: usize) -> Index {
    let along = Coordinate {
        base: first,
        lanes: (0..lanes as i64).collect(),
    };
    Index {
        coordinates: vec![along],
        lanes,
    }
}

impl Lowerer<'_> {
    /// A buffer for as many elements as a row has.
    fn row_buffer(&mut self, row: &Row<'_>, dtype: DType) -> Buffer {
        let shape = Shape::new(&[row.index.lanes]);
        let shape = shape.expect("broken invariant: vectors have a power of two of lanes");
        self.allocate(dtype, shape)
    }

    /// Runs `each` for the place of each lane, and which one it is.
    fn each_lane(
        &mut self,
        Row { index, axis, step }: &Row<'_>,
        each: &mut dyn FnMut(&mut Self, &Index, &Index),
    ) {
        let bounds = (Scalar::Known(0), Scalar::Known(index.lanes as i64));
        self.count(bounds, 1, &[], &mut |this, lane, _| {
            let lane = Scalar::Emitted(lane);
            let mut place = index.lane(0);
            let along = &mut place.coordinates[*axis];
            let first = this.add(along.base, Scalar::Known(along.lanes[0]));
            let moved = this.mul(lane, Scalar::Known(*step));
            along.base = this.add(first, moved);
            along.lanes = vec![0];
            each(this, &place, &elements(lane, 1));
            Vec::new()
        });
    }

    /// Reads each lane of a row where its own mask holds, and takes `other` where it does not.
    pub(super) fn load_cut(
        &mut self,
        (inst, op): (Inst, &op::Load),
        row: &Row<'_>,
        mask: Value,
        other: Option<Scalar>,
    ) -> Pulled {
        let dtype = self.dtype(self.source.inst(inst).results[0]);
        let buffer = self.row_buffer(row, dtype);
        self.each_lane(row, &mut |this, place, lane| {
            let access = this.access(inst, op.base, op.offsets, place);
            let [offset, mask] = [op.offsets, mask].map(|it| this.pull_scalar(it, place));
            let mask = this.value(mask);
            let other = other.map(|other| this.value(other));
            let loaded = this.load_run(&access, offset, (0, 1), Some(mask), other);
            this.store_buffer(&buffer, lane, loaded);
        });
        self.load_buffer(&buffer, &elements(Scalar::Known(0), row.index.lanes))
    }

    /// Writes each lane of a row where its own mask holds.
    pub(super) fn store_cut(
        &mut self,
        (inst, op): (Inst, &op::Store),
        row: &Row<'_>,
        mask: Value,
        value: Value,
    ) {
        let buffer = self.row_buffer(row, self.dtype(op.value));
        self.store_buffer(&buffer, &elements(Scalar::Known(0), row.index.lanes), value);
        self.each_lane(row, &mut |this, place, lane| {
            let access = this.access(inst, op.base, op.offsets, place);
            let [offset, mask] = [op.offsets, mask].map(|it| this.pull_scalar(it, place));
            let mask = this.value(mask);
            let value = this.load_buffer(&buffer, lane);
            let value = this.lane(&value, 0);
            let value = this.value(value);
            this.store_run(&access, offset, (0, 1), value, Some(mask));
        });
    }
}
