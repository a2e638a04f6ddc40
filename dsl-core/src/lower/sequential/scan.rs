//! Scans: blocks of a few vectors are scanned in registers, and take what lies before them from a
//! stack.
//!
//! The stack holds the complete subtrees before a block, the latest on top: as many as the number
//! of the block has bits set. Every element takes them as left operands from the top down, which is
//! the right-nested order of the canonical tree. Then the block itself is a subtree: it merges with
//! those of its own size and more, as a binary counter carries, and is pushed.

use super::index::{Coordinate, Cover, Index, Scalar};
use super::lowerer::{Binding, Lowerer};
use super::pull::Pulled;
use super::scratch::Buffer;
use super::tree::Reduction;
use crate::ir::{DType, Direction, Inst, Literal, Op, Shape, Type, Value, op};
use crate::semantics::reduction::{identity, only_op};

/// Machine registers that a block holds its elements in.
const HELD: usize = 8;
/// The most vectors of a block.
const VECTORS: usize = 4;

/// One scan and how blocks cover its tile.
struct Scan {
    reduction: Reduction,
    sources: Vec<Value>,
    results: Vec<Buffer>,
    /// A left operand of the combiner that changes nothing.
    neutral: Option<Literal>,
    axis: usize,
    direction: Direction,
    cover: Cover,
    lanes: usize,
    vectors: usize,
    /// One buffer for each source where there is more than one block along the axis.
    stack: Vec<Buffer>,
}

/// How a block finds and leaves the stack.
#[derive(Clone, Copy)]
struct Heights {
    /// How many subtrees lie before the block.
    before: Scalar,
    /// How many of them it merges with.
    merged: Scalar,
}

fn part(dims: &[usize]) -> Shape {
    Shape::new(dims).expect("broken invariant: a part of a shape is valid")
}

/// The position of the last element before the upper half that `position` is in at `level`; `None`
/// in a lower half.
fn last_before(position: usize, level: u32, flipped: usize) -> Option<usize> {
    let position = position ^ flipped;
    (position >> level & 1 == 1).then(|| ((position >> level << level) - 1) ^ flipped)
}

impl Scan {
    fn shape(&self) -> Shape {
        self.cover.shape
    }

    fn extent(&self) -> i64 {
        self.shape().extent(self.axis) as i64
    }

    /// Positions along the axis of a block.
    fn step(&self) -> i64 {
        self.cover.steps[self.axis]
    }

    /// The bits that the direction inverts in positions along the axis.
    fn flipped(&self) -> usize {
        match self.direction {
            Direction::Forward => 0,
            Direction::Reverse => self.step() as usize - 1,
        }
    }

    /// Of the bits of a position in a block, those that are the lane.
    fn lane_bits(&self) -> u32 {
        match self.reduction.along_vector {
            true => (self.lanes as u32).min(self.step() as u32).ilog2(),
            false => 0,
        }
    }
}

impl Lowerer<'_> {
    pub(super) fn scan(&mut self, inst: Inst, op: &op::Scan) {
        let scan = self.scan_plan(op);
        let axis = scan.axis;
        let dims = scan.shape().dims();
        let before = Cover {
            shape: part(&dims[..axis]),
            steps: scan.cover.steps[..axis].to_vec(),
        };
        self.nest(&before, &mut |this, bases| {
            if scan.stack.is_empty() {
                return this.scan_blocks(&scan, bases, Scalar::Known(0), None);
            }
            let (extent, step) = (scan.extent(), scan.step());
            let bounds = (Scalar::Known(0), Scalar::Known(extent));
            let empty = this.value(Scalar::Known(0));
            this.count(bounds, step, &[empty], &mut |this, position, carried| {
                let position = Scalar::Emitted(position);
                let number = this.bits(position, step.trailing_zeros(), 62);
                let base = match scan.direction {
                    Direction::Forward => position,
                    Direction::Reverse => this.sub(Scalar::Known(extent - step), position),
                };
                let height = Scalar::Emitted(carried[0]);
                let heights = Heights {
                    before: height,
                    merged: this.trailing_ones(number),
                };
                this.scan_blocks(&scan, bases, base, Some(heights));
                let left = this.sub(height, heights.merged);
                let next = this.add(left, Scalar::Known(1));
                vec![this.value(next)]
            });
        });
        let results = self.source.inst(inst).results.clone();
        for (result, buffer) in results.into_iter().zip(scan.results) {
            self.bindings.insert(result, Binding::Buffer(buffer));
        }
    }

    /// How many vectors a block holds, if the tile has as many.
    fn wanted_vectors(&self, sources: &[Value], dtypes: &[DType]) -> usize {
        let cost: u64 = sources.iter().map(|&source| self.plan.cost(source)).sum();
        let branching = sources.iter().any(|&source| self.plan.is_branching(source));
        let most = match cost {
            _ if branching => 1,
            41.. => 1,
            13.. => 2,
            _ => VECTORS,
        };
        let bytes: usize = dtypes.iter().map(|dtype| dtype.bytes() as usize).sum();
        let held = HELD * self.target.vector_bytes as usize;
        let fitting = (held / (bytes * self.target.nest_lanes)).clamp(1, most);
        1 << fitting.ilog2()
    }

    fn scan_plan(&mut self, op: &op::Scan) -> Scan {
        let op::Scan {
            sources,
            axis,
            direction,
            combine,
            ..
        } = op.clone();
        let axis = axis.index();
        let shape = self.shape(sources[0]);
        let dtypes: Vec<_> = sources.iter().map(|&source| self.dtype(source)).collect();
        let wanted = self.wanted_vectors(&sources, &dtypes);
        let dims = shape.dims();
        let along_vector = axis + 1 == dims.len();
        let (cover, lanes, vectors) = if along_vector {
            let lanes = self.target.nest_lanes.min(shape.elements());
            let vectors = wanted.min(shape.elements() / lanes);
            (Cover::new(shape, lanes * vectors), lanes, vectors)
        } else {
            let inner = part(&dims[axis + 1..]);
            let lanes = self.target.nest_lanes.min(inner.elements());
            let vectors = wanted.min(dims[axis]);
            let mut steps = vec![1; axis];
            steps.push(vectors as i64);
            steps.extend(Cover::new(inner, lanes).steps);
            (Cover { shape, steps }, lanes, vectors)
        };
        let blocks = dims[axis] / cover.steps[axis] as usize;
        let mut stack = Vec::new();
        if blocks > 1 {
            let inner = if along_vector { &[] } else { &dims[axis + 1..] };
            let levels = (blocks.ilog2() as usize).next_power_of_two();
            let shape = part(&[&[levels], inner].concat());
            stack.extend(dtypes.iter().map(|&dtype| self.allocate(dtype, shape)));
        }
        let results = dtypes.iter().map(|&dtype| self.allocate(dtype, shape));
        let results = results.collect();
        let neutral = only_op(self.source, combine).and_then(|op| identity(op, dtypes[0]));
        let reduction = Reduction {
            combine,
            dtypes,
            along_vector,
        };
        Scan {
            reduction,
            sources,
            results,
            neutral,
            axis,
            direction,
            cover,
            lanes,
            vectors,
            stack,
        }
    }

    /// How many of the lowest bits are set before the first one that is clear.
    fn trailing_ones(&mut self, number: Scalar) -> Scalar {
        let init = vec![self.value(number), self.value(Scalar::Known(0))];
        let types = [Type::INDEX; 2];
        let before = self.in_region(&types, &mut |this, values| {
            let one = this.value(Scalar::Known(1));
            let bit = this.builder.and(values[0], one);
            let set = this.builder.eq(bit, one);
            vec![set, values[0], values[1]]
        });
        let body = self.in_region(&types, &mut |this, values| {
            let one = this.value(Scalar::Known(1));
            let rest = this.builder.shr(values[0], one);
            vec![rest, this.builder.add(values[1], one)]
        });
        let inst = self
            .builder
            .emit(Op::While(op::While { init, before, body }), &[]);
        Scalar::Emitted(self.builder.results(inst)[1])
    }

    /// The blocks that start at one position of the axis.
    fn scan_blocks(
        &mut self,
        scan: &Scan,
        before: &[Scalar],
        base: Scalar,
        heights: Option<Heights>,
    ) {
        let after = Cover {
            shape: part(&scan.shape().dims()[scan.axis + 1..]),
            steps: scan.cover.steps[scan.axis + 1..].to_vec(),
        };
        self.nest(&after, &mut |this, inner| {
            let bases = [before, &[base], inner].concat();
            this.scan_block(scan, &bases, heights);
        });
    }

    fn scan_block(&mut self, scan: &Scan, bases: &[Scalar], heights: Option<Heights>) {
        let places: Vec<Index> = (0..scan.vectors)
            .map(|vector| scan.cover.index(bases, vector * scan.lanes, scan.lanes))
            .collect();
        let mut block: Vec<Vec<Pulled>> = places
            .iter()
            .map(|index| scan.sources.iter().map(|&x| self.pull(x, index)).collect())
            .collect();
        self.scan_registers(scan, &mut block);
        if let Some(heights) = heights {
            let total = self.last_prefix(scan, &block, scan.vectors - 1);
            block = self.add_stack(scan, block, &places[0], heights.before);
            self.push(scan, total, &places[0], heights);
        }
        for (index, vector) in places.iter().zip(&block) {
            for ((buffer, pulled), &dtype) in
                scan.results.iter().zip(vector).zip(&scan.reduction.dtypes)
            {
                let value = self.vector(pulled, dtype, scan.lanes);
                self.store_buffer(buffer, index, value);
            }
        }
    }

    /// The prefixes within a block.
    fn scan_registers(&mut self, scan: &Scan, block: &mut [Vec<Pulled>]) {
        let lane_bits = scan.lane_bits();
        for level in 0..lane_bits {
            for vector in &mut *block {
                *vector = self.scan_lanes(scan, vector, level);
            }
        }
        let flipped = scan.flipped() >> lane_bits;
        for level in 0..(scan.step() as u64).ilog2() - lane_bits {
            for vector in 0..scan.vectors {
                let Some(last) = last_before(vector, level, flipped) else {
                    continue;
                };
                let lower = self.last_prefix(scan, block, last ^ flipped);
                block[vector] = self.combine(&scan.reduction, &lower, &block[vector], scan.lanes);
            }
        }
    }

    /// The prefix of the last element of a vector, which is given in the order of the scan.
    fn last_prefix(&mut self, scan: &Scan, block: &[Vec<Pulled>], vector: usize) -> Vec<Pulled> {
        let lane_bits = scan.lane_bits();
        let vector = &block[vector ^ (scan.flipped() >> lane_bits)];
        if !scan.reduction.along_vector {
            return vector.clone();
        }
        let lane = match scan.direction {
            Direction::Forward => scan.lanes - 1,
            Direction::Reverse => 0,
        };
        vector
            .iter()
            .map(|pulled| Pulled::Uniform(self.lane(pulled, lane)))
            .collect()
    }

    /// One level across the lanes of a vector.
    fn scan_lanes(&mut self, scan: &Scan, vector: &[Pulled], level: u32) -> Vec<Pulled> {
        let lanes = scan.lanes;
        let flipped = scan.flipped() & ((1 << scan.lane_bits()) - 1);
        let last = |lane: usize| last_before(lane, level, flipped);
        let mut own = Vec::new();
        let mut lower = Vec::new();
        for (pulled, &dtype) in vector.iter().zip(&scan.reduction.dtypes) {
            let a = self.vector(pulled, dtype, lanes);
            let b = match scan.neutral {
                Some(neutral) => {
                    let neutral = Pulled::Uniform(Scalar::Emitted(self.constant(neutral)));
                    self.vector(&neutral, dtype, lanes)
                }
                None => a,
            };
            let indices = (0..lanes).map(|lane| last(lane).unwrap_or(lanes + lane) as u32);
            let indices = indices.collect();
            let picked = self
                .builder
                .value(Op::ShuffleVector(op::ShuffleVector { a, b, indices }));
            own.push(Pulled::Vector(a));
            lower.push(Pulled::Vector(picked));
        }
        let combined = self.combine(&scan.reduction, &lower, &own, lanes);
        if scan.neutral.is_some() {
            return combined;
        }
        let mut mixed = Vec::new();
        for ((combined, own), &dtype) in combined.iter().zip(&own).zip(&scan.reduction.dtypes) {
            let a = self.vector(combined, dtype, lanes);
            let b = self.vector(own, dtype, lanes);
            let indices = (0..lanes).map(|lane| match last(lane) {
                Some(_) => lane as u32,
                None => (lanes + lane) as u32,
            });
            let indices = indices.collect();
            let value = self
                .builder
                .value(Op::ShuffleVector(op::ShuffleVector { a, b, indices }));
            mixed.push(Pulled::Vector(value));
        }
        mixed
    }

    /// The entry `number` of the stack, for the elements at `place`.
    fn stack_index(&mut self, scan: &Scan, number: Scalar, place: &Index) -> Index {
        let inner = match scan.reduction.along_vector {
            true => &[],
            false => &place.coordinates[scan.axis + 1..],
        };
        let lanes = match scan.reduction.along_vector {
            true => 1,
            false => scan.lanes,
        };
        let entry = Coordinate {
            base: number,
            lanes: vec![0; lanes],
        };
        Index {
            coordinates: [&[entry], inner].concat(),
            lanes,
        }
    }

    /// The entry that lies `depth` below the top of the stack, `height` entries high.
    fn below_top(
        &mut self,
        scan: &Scan,
        (height, depth): (Scalar, Value),
        place: &Index,
    ) -> Vec<Pulled> {
        let top = self.sub(height, Scalar::Known(1));
        let number = self.sub(top, Scalar::Emitted(depth));
        let index = self.stack_index(scan, number, place);
        let stack = scan.stack.iter();
        stack
            .map(|buffer| self.load_buffer(buffer, &index))
            .collect()
    }

    /// Every element takes what is on the stack, from the top down.
    fn add_stack(
        &mut self,
        scan: &Scan,
        block: Vec<Vec<Pulled>>,
        place: &Index,
        height: Scalar,
    ) -> Vec<Vec<Pulled>> {
        let (lanes, dtypes) = (scan.lanes, &scan.reduction.dtypes);
        let mut init = Vec::new();
        for vector in &block {
            for (pulled, &dtype) in vector.iter().zip(dtypes) {
                init.push(self.vector(pulled, dtype, lanes));
            }
        }
        let bounds = (Scalar::Known(0), height);
        let prefixes = self.count(bounds, 1, &init, &mut |this, depth, carried| {
            let lower = this.below_top(scan, (height, depth), place);
            let mut next = Vec::new();
            for vector in carried.chunks(dtypes.len()) {
                let own: Vec<Pulled> = vector.iter().map(|&x| wrapped(x, lanes)).collect();
                let combined = this.combine(&scan.reduction, &lower, &own, lanes);
                for (pulled, &dtype) in combined.iter().zip(dtypes) {
                    next.push(this.vector(pulled, dtype, lanes));
                }
            }
            next
        });
        let vectors = prefixes.chunks(dtypes.len());
        vectors
            .map(|vector| vector.iter().map(|&x| wrapped(x, lanes)).collect())
            .collect()
    }

    /// Merges a block's last prefix with the subtrees on the stack that it completes.
    fn push(&mut self, scan: &Scan, total: Vec<Pulled>, place: &Index, heights: Heights) {
        let dtypes = &scan.reduction.dtypes;
        let lanes = match scan.reduction.along_vector {
            true => 1,
            false => scan.lanes,
        };
        let mut init = Vec::new();
        for (pulled, &dtype) in total.iter().zip(dtypes) {
            init.push(self.vector(pulled, dtype, lanes));
        }
        let bounds = (Scalar::Known(0), heights.merged);
        let merged = self.count(bounds, 1, &init, &mut |this, depth, carried| {
            let lower = this.below_top(scan, (heights.before, depth), place);
            let own: Vec<Pulled> = carried.iter().map(|&x| wrapped(x, lanes)).collect();
            let combined = this.combine(&scan.reduction, &lower, &own, lanes);
            let pairs = combined.iter().zip(dtypes);
            pairs
                .map(|(pulled, &dtype)| this.vector(pulled, dtype, lanes))
                .collect()
        });
        let number = self.sub(heights.before, heights.merged);
        let index = self.stack_index(scan, number, place);
        for (buffer, value) in scan.stack.iter().zip(merged) {
            self.store_buffer(buffer, &index, value);
        }
    }
}

/// A lane value as elements.
fn wrapped(value: Value, lanes: usize) -> Pulled {
    match lanes {
        1 => Pulled::Uniform(Scalar::Emitted(value)),
        _ => Pulled::Vector(value),
    }
}
