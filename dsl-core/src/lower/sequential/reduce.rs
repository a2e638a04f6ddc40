//! Reductions: passes of the canonical tree, or free accumulators where every order agrees.
//!
//! One pass combines 2^p neighbours in registers and leaves the partial results in scratch memory,
//! in order; passes repeat until one is left. An aligned range of 2^p elements is a complete
//! subtree, so the passes compute exactly the tree.

use super::index::{Coordinate, Cover, Index, Scalar};
use super::lowerer::{Binding, Lowerer};
use super::pull::Pulled;
use super::scratch::Buffer;
use super::tree::Reduction;
use crate::ir::{DType, Inst, Order, Shape, Value, op};
use crate::semantics::reduction::evaluation_order;
use crate::target::Target;

/// Where a pass reads.
enum Input {
    /// The sources of the op.
    Tiles(Vec<Value>),
    /// The partial results of the pass before.
    Partials(Vec<Buffer>),
}

/// Instructions of an element that is little more than loaded.
const CHEAP: u64 = 3;

/// How many elements a pass computes side by side.
#[derive(Clone, Copy)]
struct Width {
    /// Those of one tree.
    lanes: usize,
    /// Those of all trees of one iteration.
    span: usize,
}

/// Vectors that free accumulation combines side by side.
const ACCUMULATORS: usize = 2;

fn with_extent(shape: Shape, axis: usize, extent: usize) -> Shape {
    let mut dims = shape.dims();
    dims[axis] = extent;
    Shape::new(&dims).expect("broken invariant: a shrunk shape is valid")
}

/// A tree of cheap leaves works on single registers: all its leaves are loaded before the first two
/// are combined, and sixteen fit the machine. What lies in other places than along the axis is taken
/// by whole cache lines.
fn width(target: &Target, reduction: &Reduction, partials: Shape, cheap: bool) -> Width {
    let bytes = |dtype: &DType| dtype.bytes() as usize;
    let widest = reduction.dtypes.iter().map(bytes).max().unwrap_or(1);
    let alike = reduction.dtypes.iter().all(|dtype| bytes(dtype) == widest);
    let lanes = target.nest_lanes;
    let span = match reduction.along_vector {
        false if cheap => lanes.max(target.line_bytes as usize / widest),
        _ => lanes,
    };
    let lanes = match cheap && alike {
        true => lanes.min(target.vector_bytes as usize / widest),
        false => lanes,
    };
    let span = span.min(partials.elements());
    Width {
        lanes: lanes.min(span),
        span,
    }
}

impl Lowerer<'_> {
    pub(super) fn reduce(&mut self, inst: Inst, op: &op::Reduce) {
        let op::Reduce {
            sources,
            axis,
            order,
            combine,
        } = op.clone();
        let axis = axis.index();
        let shape = self.shape(sources[0]);
        let reduction = Reduction {
            combine,
            dtypes: sources.iter().map(|&source| self.dtype(source)).collect(),
            along_vector: axis + 1 == shape.rank(),
        };
        let results = self.source.inst(inst).results.clone();
        let dtype = reduction.dtypes[0];
        let free = evaluation_order(self.source, order, combine, dtype) == Order::Any;
        if free
            && reduction.along_vector
            && shape.extent(axis) >= 2 * self.target.nest_lanes * ACCUMULATORS
        {
            return self.accumulate(&reduction, &sources, shape, &results);
        }
        self.reduce_by_passes(&reduction, sources, (shape, axis), &results);
    }

    fn reduce_by_passes(
        &mut self,
        reduction: &Reduction,
        sources: Vec<Value>,
        (mut shape, axis): (Shape, usize),
        results: &[Value],
    ) {
        let cost: u64 = sources.iter().map(|&source| self.plan.cost(source)).sum();
        let branching = sources.iter().any(|&source| self.plan.is_branching(source));
        let mut levels = shape.extent(axis).trailing_zeros();
        let mut input = Input::Tiles(sources);
        loop {
            let most = match &input {
                Input::Tiles(_) if cost > 40 || branching => 2,
                Input::Tiles(_) if cost > 12 => 3,
                // Rows whose distance is a power of two share one set of the cache.
                Input::Tiles(_) if !reduction.along_vector => 3,
                Input::Tiles(_) | Input::Partials(_) => 4,
            };
            let taken = levels.min(most);
            levels -= taken;
            let reduced = with_extent(shape, axis, shape.extent(axis) >> taken);
            if levels == 0 && self.shape(results[0]).is_scalar() {
                let numbers = self.pass_to_numbers(reduction, &input, shape);
                for (&result, number) in results.iter().zip(numbers) {
                    self.bindings.insert(result, Binding::Scalar(number));
                }
                return;
            }
            let partials: Vec<Buffer> = reduction
                .dtypes
                .iter()
                .map(|&dtype| self.allocate(dtype, reduced))
                .collect();
            let cheap = match &input {
                Input::Tiles(_) => cost <= CHEAP && !branching,
                Input::Partials(_) => true,
            };
            let width = width(self.target, reduction, reduced, cheap);
            self.pass(reduction, &input, (shape, axis, taken), width, &partials);
            self.scratch.tick();
            if levels == 0 {
                return self.bind_reduced(results, &partials);
            }
            shape = reduced;
            input = Input::Partials(partials);
        }
    }

    /// The results of a reduction are its last buffers without the axis of extent 1.
    fn bind_reduced(&mut self, results: &[Value], buffers: &[Buffer]) {
        for (&result, buffer) in results.iter().zip(buffers) {
            let buffer = Buffer {
                shape: self.shape(result),
                ..*buffer
            };
            self.bindings.insert(result, Binding::Buffer(buffer));
        }
    }

    fn fetch(&mut self, input: &Input, index: &Index) -> Vec<Pulled> {
        match input {
            Input::Tiles(tiles) => tiles.iter().map(|&tile| self.pull(tile, index)).collect(),
            Input::Partials(buffers) => buffers
                .iter()
                .map(|buffer| self.load_buffer(buffer, index))
                .collect(),
        }
    }

    /// The last pass of a tile without other axes; its few elements are taken one by one.
    fn pass_to_numbers(
        &mut self,
        reduction: &Reduction,
        input: &Input,
        shape: Shape,
    ) -> Vec<Scalar> {
        let count = shape.elements();
        let cover = Cover::new(shape, count);
        let bases = vec![Scalar::Known(0); shape.rank()];
        let lanes = self.target.nest_lanes.min(count);
        let vectors = self.tree(reduction, lanes, (0, count / lanes), &mut |this, leaf| {
            this.fetch(input, &cover.index(&bases, leaf * lanes, lanes))
        });
        self.across(reduction, vectors, lanes)
    }

    fn pass(
        &mut self,
        reduction: &Reduction,
        input: &Input,
        (shape, axis, levels): (Shape, usize, u32),
        Width { lanes, span }: Width,
        partials: &[Buffer],
    ) {
        let leaves = 1usize << levels;
        let reduced = Cover::new(partials[0].shape, span);
        if reduction.along_vector {
            let cover = Cover::new(shape, span << levels);
            self.nest(&cover, &mut |this, bases| {
                let mut to = bases.to_vec();
                to[axis] = this.bits(bases[axis], levels, 62 - levels);
                for first in (0..span).step_by(lanes) {
                    let vectors = this.tree(reduction, lanes, (0, leaves), &mut |this, leaf| {
                        let from = (first << levels) + leaf * lanes;
                        this.fetch(input, &cover.index(bases, from, lanes))
                    });
                    let index = reduced.index(&to, first, lanes);
                    this.store_partials(reduction, partials, &index, &vectors);
                }
            });
            return;
        }
        self.nest(&reduced, &mut |this, bases| {
            let scale = Scalar::Known(leaves as i64);
            let base = this.mul(bases[axis], scale);
            for first in (0..span).step_by(lanes) {
                let index = reduced.index(bases, first, lanes);
                let vectors = this.tree(reduction, lanes, (0, leaves), &mut |this, leaf| {
                    let mut index = index.clone();
                    let coordinate = &mut index.coordinates[axis];
                    coordinate.base = base;
                    for lane in &mut coordinate.lanes {
                        *lane = *lane * leaves as i64 + leaf as i64;
                    }
                    this.fetch(input, &index)
                });
                this.store_partials(reduction, partials, &index, &vectors);
            }
        });
    }

    fn store_partials(
        &mut self,
        reduction: &Reduction,
        partials: &[Buffer],
        index: &Index,
        vectors: &[Pulled],
    ) {
        for ((buffer, pulled), &dtype) in partials.iter().zip(vectors).zip(&reduction.dtypes) {
            let value = self.vector(pulled, dtype, index.lanes);
            self.store_buffer(buffer, index, value);
        }
    }

    /// Reduces rows by independent vector accumulators: every order gives the same bits.
    fn accumulate(
        &mut self,
        reduction: &Reduction,
        sources: &[Value],
        shape: Shape,
        results: &[Value],
    ) {
        let axis = shape.rank() - 1;
        let extent = shape.extent(axis);
        let rows = Cover::new(shape, extent);
        let scalar = self.shape(results[0]).is_scalar();
        let buffers: Vec<Buffer> = match scalar {
            true => Vec::new(),
            false => reduction
                .dtypes
                .iter()
                .map(|&dtype| self.allocate(dtype, with_extent(shape, axis, 1)))
                .collect(),
        };
        let mut numbers = Vec::new();
        self.nest(&rows, &mut |this, bases| {
            numbers = this.accumulate_row(reduction, sources, (shape, bases));
            let place = |&base: &Scalar| Coordinate {
                base,
                lanes: vec![0],
            };
            let index = Index {
                coordinates: bases.iter().map(place).collect(),
                lanes: 1,
            };
            for (buffer, number) in buffers.iter().zip(&numbers) {
                let value = this.value(*number);
                this.store_buffer(buffer, &index, value);
            }
        });
        if !scalar {
            return self.bind_reduced(results, &buffers);
        }
        for (&result, number) in results.iter().zip(numbers) {
            self.bindings.insert(result, Binding::Scalar(number));
        }
    }

    fn accumulate_row(
        &mut self,
        reduction: &Reduction,
        sources: &[Value],
        (shape, bases): (Shape, &[Scalar]),
    ) -> Vec<Scalar> {
        let axis = shape.rank() - 1;
        let step = self.target.nest_lanes * ACCUMULATORS;
        let mut steps = vec![1; shape.rank()];
        steps[axis] = step as i64;
        let cover = Cover { shape, steps };
        let take = |this: &mut Self, bases: &[Scalar]| -> Vec<Value> {
            let mut taken = Vec::new();
            for accumulator in 0..ACCUMULATORS {
                let index = cover.index(
                    bases,
                    accumulator * self.target.nest_lanes,
                    self.target.nest_lanes,
                );
                for &source in sources {
                    let pulled = this.pull(source, &index);
                    taken.push(this.vector(&pulled, this.dtype(source), self.target.nest_lanes));
                }
            }
            taken
        };
        let init = take(self, bases);
        let bounds = (
            Scalar::Known(step as i64),
            Scalar::Known(shape.extent(axis) as i64),
        );
        let sum = self.count(
            bounds,
            step as i64,
            &init,
            &mut |this, position, carried| {
                let mut bases = bases.to_vec();
                bases[axis] = Scalar::Emitted(position);
                let taken = take(this, &bases);
                let pairs = carried
                    .chunks(sources.len())
                    .zip(taken.chunks(sources.len()));
                let mut next = Vec::new();
                for (lower, higher) in pairs {
                    next.extend(this.combine_values(reduction, lower, higher));
                }
                next
            },
        );
        let mut vectors = sum[..sources.len()].to_vec();
        for other in sum[sources.len()..].chunks(sources.len()) {
            vectors = self.combine_values(reduction, &vectors, other);
        }
        let vectors = vectors.into_iter().map(Pulled::Vector).collect();
        self.across(reduction, vectors, self.target.nest_lanes)
    }

    fn combine_values(
        &mut self,
        reduction: &Reduction,
        lower: &[Value],
        higher: &[Value],
    ) -> Vec<Value> {
        let wrap = |values: &[Value]| -> Vec<Pulled> {
            values.iter().copied().map(Pulled::Vector).collect()
        };
        let combined = self.combine(
            reduction,
            &wrap(lower),
            &wrap(higher),
            self.target.nest_lanes,
        );
        combined
            .iter()
            .zip(&reduction.dtypes)
            .map(|(pulled, &dtype)| self.vector(pulled, dtype, self.target.nest_lanes))
            .collect()
    }
}
