//! Scans: blocks of a few vectors are scanned in registers, and take what lies before them from a
//! stack.
//!
//! A worker's vector is its lanes, and blocks follow each other as if each were done by a warp: the
//! steps are those of a GPU. What warps do in shared memory is done by a stack of the complete subtrees
//! before a block, the latest on top: as many as the number of the block has bits set. Every element
//! takes them as left operands from the top down, which is the right-nested order of the canonical
//! tree. Then the block itself is a subtree: it merges with those of its own size and more, as a
//! binary counter carries, and is pushed.

use super::index::{Coordinate, Cover, Index, Scalar};
use super::lowerer::{Binding, Buffer, Lowerer};
use crate::ir::{DType, Direction, Inst, Literal, Op, Region, Shape, Type, Value, op};
use crate::layout::LinearLayout;
use crate::layout::scan::{ScanLevels, ScanStep, last, scan_steps};
use crate::lower::combine::Combines;
use crate::semantics::reduction::{identity, only_op};

/// Machine registers that a block holds its elements in.
const HELD: usize = 8;
/// The most vectors of a block.
const VECTORS: usize = 4;

/// One scan and how blocks cover its tile.
struct Scan {
    combine: Region,
    sources: Vec<Value>,
    results: Vec<Buffer>,
    /// A left operand of the combiner that changes nothing.
    neutral: Option<Literal>,
    axis: usize,
    direction: Direction,
    cover: Cover,
    lanes: usize,
    vectors: u32,
    steps: Vec<ScanStep>,
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

impl Scan {
    /// Whether neighbours along the axis are neighbours in a vector.
    fn along_vector(&self) -> bool {
        self.axis + 1 == self.cover.shape.rank()
    }

    /// The last prefixes in a vector of each source: numbers where the axis is along the vector.
    fn last(&self, lowerer: &mut Lowerer<'_>, vector: &[Value]) -> Vec<Value> {
        if !self.along_vector() || self.lanes == 1 {
            return vector.to_vec();
        }
        let lane = last(self.lanes as u32 - 1, self.direction);
        lowerer.lanes(vector, vector, &[lane])
    }

    /// The entry `number` of the stack, for the elements at `place`.
    fn entry(&self, number: Scalar, place: &Index) -> Index {
        let (inner, lanes) = match self.along_vector() {
            true => (&[][..], 1),
            false => (&place.coordinates[self.axis + 1..], self.lanes),
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
}

impl Lowerer<'_> {
    pub(super) fn scan(&mut self, inst: Inst, op: &op::Scan) {
        let scan = self.scan_plan(op);
        self.in_versions((&op.sources, None), &mut |this, masked| match masked {
            true => this.with_kept(&op.sources, &mut |this| this.scan_rows(&scan)),
            false => this.scan_rows(&scan),
        });
        let results = self.source.inst(inst).results.clone();
        for (result, buffer) in results.into_iter().zip(scan.results) {
            self.bindings.insert(result, Binding::Buffer(buffer));
        }
    }

    /// Scans along the axis, at each place of the axes before it. It makes no numbers.
    fn scan_rows(&mut self, scan: &Scan) -> Vec<Value> {
        let extent = scan.cover.shape.extent(scan.axis) as i64;
        let step = scan.cover.steps[scan.axis];
        self.nest(&scan.cover.axes(0..scan.axis), &mut |this, bases| {
            if scan.stack.is_empty() {
                return this.scan_blocks(scan, bases, Scalar::Known(0), None);
            }
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
                this.scan_blocks(scan, bases, base, Some(heights));
                let left = this.sub(height, heights.merged);
                let next = this.add(left, Scalar::Known(1));
                vec![this.value(next)]
            });
        });
        Vec::new()
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
        let (sources, axis) = (op.sources.clone(), op.axis.index());
        let shape = self.shape(sources[0]);
        let dtypes: Vec<_> = sources.iter().map(|&source| self.dtype(source)).collect();
        let wanted = self.wanted_vectors(&sources, &dtypes);
        let dims = shape.dims();
        let inner = part(&dims[axis + 1..]);
        let along_vector = axis + 1 == dims.len();
        let held = if along_vector { shape } else { inner }.elements();
        let lanes = self.target.nest_lanes.min(held);
        let (cover, vectors) = if along_vector {
            let vectors = wanted.min(held / lanes);
            (Cover::new(shape, lanes * vectors), vectors)
        } else {
            let vectors = wanted.min(dims[axis]);
            let mut steps = vec![1; axis];
            steps.push(vectors as i64);
            steps.extend(Cover::new(inner, lanes).steps);
            (Cover { shape, steps }, vectors)
        };
        let steps = steps_of_blocks(&cover, axis, (vectors, lanes));
        let mut stack = Vec::new();
        let blocks = dims[axis] / cover.steps[axis] as usize;
        if blocks > 1 {
            let levels = (blocks.ilog2() as usize).next_power_of_two();
            let shape = part(&[&[levels], &dims[axis + 1..]].concat());
            stack.extend(dtypes.iter().map(|&dtype| self.allocate(dtype, shape)));
        }
        let results = dtypes.iter().map(|&dtype| self.allocate(dtype, shape));
        Scan {
            combine: op.combine,
            sources,
            results: results.collect(),
            neutral: only_op(self.source, op.combine).and_then(|op| identity(op, dtypes[0])),
            axis,
            direction: op.direction,
            cover,
            lanes,
            vectors: vectors as u32,
            steps,
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
        let after = scan.cover.axes(scan.axis + 1..scan.cover.steps.len());
        self.nest(&after, &mut |this, inner| {
            let bases = [before, &[base], inner].concat();
            this.scan_block(scan, &bases, heights);
        });
    }

    fn scan_block(&mut self, scan: &Scan, bases: &[Scalar], heights: Option<Heights>) {
        let places: Vec<Index> = (0..scan.vectors as usize)
            .map(|vector| scan.cover.index(bases, vector * scan.lanes, scan.lanes))
            .collect();
        let mut block: Vec<Vec<Value>> = Vec::new();
        for index in &places {
            let pull = |&source| {
                let pulled = self.pull(source, index);
                self.vector(&pulled, self.dtype(source), scan.lanes)
            };
            block.push(scan.sources.iter().map(pull).collect());
        }
        for step in &scan.steps {
            match (&step.levels, heights) {
                (ScanLevels::Lane(_), _) => {
                    for vector in &mut block {
                        *vector = self.scan_lanes(scan, step, vector);
                    }
                }
                (ScanLevels::Register(_), _) => self.scan_registers(scan, step, &mut block),
                (ScanLevels::Warps(_), None) => {}
                (ScanLevels::Warps(_), Some(heights)) => {
                    self.scan_blocks_before(scan, &mut block, &places[0], heights);
                }
            }
        }
        for (index, vector) in places.iter().zip(&block) {
            for (buffer, &value) in scan.results.iter().zip(vector) {
                self.store_buffer(buffer, index, value);
            }
        }
    }

    /// One level across the lanes of a vector.
    fn scan_lanes(&mut self, scan: &Scan, step: &ScanStep, own: &[Value]) -> Vec<Value> {
        let lanes = scan.lanes as u32;
        let last: Vec<Option<u32>> = (0..lanes)
            .map(|lane| step.lane(lane, scan.direction))
            .collect();
        let others = match scan.neutral {
            Some(neutral) => {
                let neutral = self.constant(neutral);
                self.splats(&[neutral], scan.lanes)
            }
            None => own.to_vec(),
        };
        let indices = (0..lanes).zip(&last);
        let indices: Vec<u32> = indices
            .map(|(lane, last)| last.unwrap_or(lanes + lane))
            .collect();
        let lower = self.lanes(own, &others, &indices);
        let Ok(combined) = self.combine(scan.combine, &lower, own);
        if scan.neutral.is_some() {
            return combined;
        }
        let indices = (0..lanes).zip(&last);
        let indices: Vec<u32> = indices
            .map(|(lane, last)| last.map_or(lanes + lane, |_| lane))
            .collect();
        self.lanes(&combined, own, &indices)
    }

    /// One level across the vectors of a block.
    fn scan_registers(&mut self, scan: &Scan, step: &ScanStep, block: &mut [Vec<Value>]) {
        for vector in 0..scan.vectors {
            if let Some(source) = step.register(vector, scan.direction) {
                let lower = scan.last(self, &block[source as usize]);
                let lower = self.splats(&lower, scan.lanes);
                let own = &mut block[vector as usize];
                let Ok(combined) = self.combine(scan.combine, &lower, own);
                *own = combined;
            }
        }
    }

    /// Every element takes what is on the stack, from the top down, and the last prefix of the block merges with
    /// the subtrees that it completes.
    fn scan_blocks_before(
        &mut self,
        scan: &Scan,
        block: &mut Vec<Vec<Value>>,
        place: &Index,
        heights: Heights,
    ) {
        let vector = last(scan.vectors - 1, scan.direction);
        let total = scan.last(self, &block[vector as usize]);
        let init = block.concat();
        let sources = scan.sources.len();
        let prefixes = self.add_stack(scan, &init, (place, heights.before), heights.before);
        *block = prefixes.chunks(sources).map(<[Value]>::to_vec).collect();
        let merged = self.add_stack(scan, &total, (place, heights.before), heights.merged);
        let number = self.sub(heights.before, heights.merged);
        let index = scan.entry(number, place);
        for (buffer, value) in scan.stack.iter().zip(merged) {
            self.store_buffer(buffer, &index, value);
        }
    }

    /// Vectors of each source with the `count` entries on top of a stack of some height as left
    /// operands, from the top down.
    fn add_stack(
        &mut self,
        scan: &Scan,
        init: &[Value],
        (place, height): (&Index, Scalar),
        count: Scalar,
    ) -> Vec<Value> {
        let lanes = self.builder.ty(init[0]).shape.elements();
        let bounds = (Scalar::Known(0), count);
        self.count(bounds, 1, init, &mut |this, depth, carried| {
            let top = this.sub(height, Scalar::Known(1));
            let number = this.sub(top, Scalar::Emitted(depth));
            let index = scan.entry(number, place);
            let mut lower = Vec::new();
            for buffer in &scan.stack {
                let loaded = this.load_buffer(buffer, &index);
                lower.push(this.vector(&loaded, buffer.dtype, lanes));
            }
            let mut next = Vec::new();
            for own in carried.chunks(lower.len()) {
                let Ok(combined) = this.combine(scan.combine, &lower, own);
                next.extend(combined);
            }
            next
        })
    }
}

/// The steps of a scan by blocks: the lowest bits of the index are lanes, the next ones registers, and
/// the rest counts blocks.
fn steps_of_blocks(cover: &Cover, axis: usize, (vectors, lanes): (usize, usize)) -> Vec<ScanStep> {
    let mut dim_bits: Vec<u32> = cover.steps.iter().map(|step| step.ilog2()).collect();
    dim_bits[axis] = cover.shape.extent(axis).ilog2();
    let columns = |bits: std::ops::Range<u32>| bits.map(|bit| 1 << bit).collect::<Vec<u64>>();
    let (lanes, block) = (lanes.ilog2(), (lanes * vectors).ilog2());
    let bits = dim_bits.iter().sum();
    let layout = LinearLayout::new(
        dim_bits,
        columns(lanes..block),
        columns(0..lanes),
        columns(block..bits),
    );
    let layout = layout.expect("broken invariant: each bit of a line has one holder");
    let steps = scan_steps(&layout, axis).expect("broken invariant: a block has the axis");
    steps.expect("broken invariant: no bits are mixed")
}
