//! Reductions: passes of the canonical tree, or free accumulators where every order agrees.
//!
//! One pass combines 2^p neighbours in registers and leaves the partial results in scratch memory,
//! in order; passes repeat until one is left. An aligned range of 2^p elements is a complete
//! subtree, so the passes compute exactly the tree. What one iteration does is planned as for the
//! registers and lanes of a GPU: the lanes of a worker are those of a vector.

use std::convert::Infallible;

use super::index::{Cover, Index, Scalar};
use super::lowerer::{Binding, Buffer, Lowerer};
use super::pull::scalar_index;
use crate::builder::Builder;
use crate::ir::{DType, Func, Inst, Order, Region, Shape, Value, op};
use crate::layout::reduction::{Division, ReductionStep, ReductionSteps};
use crate::layout::{LinearLayout, Point};
use crate::lower::combine::Combines;
use crate::semantics::reduction::evaluation_order;
use crate::target::Target;

/// Instructions of an element that is little more than loaded.
const CHEAP: u64 = 3;

/// Vectors that free accumulation combines side by side.
const ACCUMULATORS: usize = 2;

/// Where a pass reads.
enum Input {
    /// The sources of the op.
    Tiles(Vec<Value>),
    /// The partial results of the pass before.
    Partials(Vec<Buffer>),
}

/// What a reduction combines: neighbours along the axis of a shape.
struct Reduction {
    combine: Region,
    order: Order,
    dtypes: Vec<DType>,
    shape: Shape,
    axis: usize,
}

impl Reduction {
    /// Whether neighbours along the axis are neighbours in a vector.
    fn along_vector(&self) -> bool {
        self.axis + 1 == self.shape.rank()
    }

    fn extent(&self) -> usize {
        self.shape.extent(self.axis)
    }

    fn with_extent(&self, extent: usize) -> Shape {
        let mut dims = self.shape.dims();
        dims[self.axis] = extent;
        Shape::new(&dims).expect("broken invariant: a shrunk shape is valid")
    }
}

/// How many elements a pass computes side by side.
#[derive(Clone, Copy)]
struct Width {
    /// Those of one tree.
    lanes: usize,
    /// Those of all trees of one iteration.
    span: usize,
}

impl Width {
    /// A tree of cheap leaves works on single registers: all its leaves are loaded before the first
    /// two are combined, and sixteen fit the machine. What lies in other places than along the axis
    /// is taken by whole cache lines where it is not `at_hand`, in scratch memory.
    fn new(
        target: &Target,
        reduction: &Reduction,
        partials: Shape,
        (cheap, at_hand): (bool, bool),
    ) -> Self {
        let bytes = |dtype: &DType| dtype.bytes() as usize;
        let widest = reduction.dtypes.iter().map(bytes).max().unwrap_or(1);
        let alike = reduction.dtypes.iter().all(|dtype| bytes(dtype) == widest);
        let lanes = target.nest_lanes;
        let line = target.line_bytes as usize / widest;
        let by_lines = cheap && !reduction.along_vector();
        let lanes = match cheap && alike {
            true => lanes.min(target.vector_bytes as usize / widest),
            false => lanes,
        };
        let span = match by_lines {
            true if at_hand => lanes,
            true => target.nest_lanes.max(line),
            false => target.nest_lanes,
        };
        let span = span.min(partials.elements());
        let lanes = lanes.min(span);
        Self { lanes, span }
    }

    /// One tree of a few elements.
    fn one(target: &Target, elements: usize) -> Self {
        Self {
            lanes: target.nest_lanes.min(elements),
            span: 1,
        }
    }
}

/// What one iteration reduces, as the registers and lanes of a worker.
struct Chunk {
    cover: Cover,
    /// The same of what is left.
    reduced: Cover,
    levels: u32,
    /// Whether an iteration goes through all chunks of a row.
    carries: bool,
    layout: LinearLayout,
    steps: Vec<ReductionStep>,
    /// Elements of a vector of the result.
    lanes: usize,
    /// The registers of the layout that the vectors of the result come from.
    left: Vec<u32>,
}

impl Chunk {
    /// The first `levels` of a reduction, which leave `span` elements.
    fn new(reduction: &Reduction, levels: u32, Width { lanes, span }: Width) -> Self {
        let axis = reduction.axis;
        let reduced = Cover::new(reduction.with_extent(reduction.extent() >> levels), span);
        let mut cover = Cover {
            shape: reduction.shape,
            steps: reduced.steps.clone(),
        };
        cover.steps[axis] <<= levels;
        let mut dim_bits: Vec<u32> = reduced.steps.iter().map(|step| step.ilog2()).collect();
        let inner: u32 = dim_bits[axis + 1..].iter().sum();
        dim_bits.insert(axis + 1, levels);
        let bits = 0..dim_bits.iter().sum();
        let along = reduction.along_vector();
        let is_lane = |bit: u32| match bit {
            _ if along || bit < inner => bit < lanes.ilog2(),
            _ => bit >= inner + levels && bit - levels < lanes.ilog2(),
        };
        let columns = |of_lanes: bool| -> Vec<u64> {
            let bits = bits.clone().filter(|&bit| is_lane(bit) == of_lanes);
            bits.map(|bit| 1 << bit).collect()
        };
        let layout = LinearLayout::new(dim_bits, columns(false), columns(true), Vec::new());
        let layout = layout.expect("broken invariant: each bit of a chunk has one holder");
        let plan = ReductionSteps::plan(&layout, axis + 1, reduction.order, Division::All);
        let plan = plan.expect("broken invariant: a chunk has the axis");
        let steps = plan.expect("broken invariant: no bits are mixed").steps;
        let gone = steps.iter().fold(0, |gone, step| gone | step.register());
        let left = (0..layout.registers()).filter(|register| register & gone == 0);
        Self {
            cover,
            reduced,
            levels,
            carries: false,
            steps,
            lanes: lanes.min(span),
            left: left.collect(),
            layout,
        }
    }

    /// Rows, by independent accumulators that are combined at the end: every order gives the same bits.
    fn carried(target: &Target, reduction: &Reduction) -> Self {
        let step = target.nest_lanes * ACCUMULATORS;
        let part = Reduction {
            shape: reduction.with_extent(step),
            dtypes: reduction.dtypes.clone(),
            ..*reduction
        };
        Self {
            cover: Cover::new(reduction.shape, reduction.extent()),
            carries: true,
            ..Self::new(&part, step.ilog2(), Width::one(target, step))
        }
    }

    /// Where the elements of a register are.
    fn index(&self, bases: &[Scalar], register: u32) -> Index {
        let flat = |lane| {
            let point = Point {
                register,
                lane,
                warp: 0,
            };
            self.layout.apply(point) as usize
        };
        let lanes = 1 << self.layout.lane_bits();
        self.cover.places(bases, (0..lanes).map(flat))
    }
}

impl<'a> Combines<'a> for Lowerer<'a> {
    type Failure = Infallible;

    fn source(&self) -> &'a Func {
        self.source
    }

    fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    fn outer(&mut self, value: Value) -> Result<Value, Infallible> {
        let scalar = self.pull_scalar(value, &scalar_index());
        Ok(self.value(scalar))
    }

    fn combine_scalars(
        &mut self,
        region: Region,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Infallible> {
        let parameters = &self.source.region(region).parameters;
        for (&parameter, &argument) in parameters.iter().zip(arguments) {
            let scalar = Binding::Scalar(Scalar::Emitted(argument));
            self.bindings.insert(parameter, scalar);
        }
        self.region(region);
        let yielded = self.source.yielded(region).iter();
        yielded.map(|&value| self.outer(value)).collect()
    }
}

impl Lowerer<'_> {
    pub(super) fn reduce(&mut self, inst: Inst, op: &op::Reduce) {
        let sources = &op.sources;
        let dtypes: Vec<DType> = sources.iter().map(|&source| self.dtype(source)).collect();
        let reduction = Reduction {
            combine: op.combine,
            order: evaluation_order(self.source, op.order, op.combine, dtypes[0]),
            dtypes,
            shape: self.shape(sources[0]),
            axis: op.axis.index(),
        };
        self.reduce_by_passes(reduction, sources, &self.source.inst(inst).results);
    }

    fn reduce_by_passes(&mut self, mut reduction: Reduction, sources: &[Value], results: &[Value]) {
        let step = self.target.nest_lanes * ACCUMULATORS;
        let is_long = reduction.along_vector() && reduction.extent() >= 2 * step;
        let carries = is_long && reduction.order == Order::Any;
        if !carries {
            // Passes leave their elements in order.
            reduction.order = Order::Tree;
        }
        let cost: u64 = sources.iter().map(|&source| self.plan.cost(source)).sum();
        let branching = sources.iter().any(|&source| self.plan.is_branching(source));
        let mut levels = reduction.extent().trailing_zeros();
        let mut input = Input::Tiles(sources.to_vec());
        loop {
            let most = match &input {
                Input::Tiles(_) if carries => levels,
                Input::Tiles(_) if cost > 40 || branching => 2,
                Input::Tiles(_) if cost > 12 => 3,
                // Rows whose distance is a power of two share one set of the cache.
                Input::Tiles(_) if !reduction.along_vector() => 3,
                Input::Tiles(_) | Input::Partials(_) => 4,
            };
            let taken = levels.min(most);
            levels -= taken;
            let shape = reduction.with_extent(reduction.extent() >> taken);
            let cheap = cost <= CHEAP && !branching;
            let to_numbers = levels == 0 && self.shape(results[0]).is_scalar();
            let partials = self.partials(&reduction, to_numbers, shape);
            let pass = |this: &mut Self, at_hand: bool| {
                let cheap = (cheap || at_hand, at_hand);
                let width = match to_numbers {
                    true => Width::one(this.target, 1 << taken),
                    false => Width::new(this.target, &reduction, shape, cheap),
                };
                let chunk = match carries {
                    true => Chunk::carried(this.target, &reduction),
                    false => Chunk::new(&reduction, taken, width),
                };
                let left = this.pass(&reduction, &input, &chunk, &partials);
                // What a loop has left is in its buffers.
                if to_numbers { left } else { Vec::new() }
            };
            let numbers = match &input {
                Input::Tiles(tiles) => {
                    self.in_versions((tiles, None), &mut |this, masked| match masked {
                        true => this.with_kept(tiles, &mut |this| pass(this, true)),
                        false => pass(this, false),
                    })
                }
                Input::Partials(_) => pass(self, true),
            };
            if levels == 0 {
                return self.bind_reduced(results, &partials, numbers);
            }
            reduction.shape = shape;
            input = Input::Partials(partials);
        }
    }

    /// A buffer of each source for what is left of a shape; none for single numbers.
    fn partials(&mut self, reduction: &Reduction, numbers: bool, shape: Shape) -> Vec<Buffer> {
        let dtypes = reduction.dtypes.iter().filter(|_| !numbers);
        dtypes.map(|&dtype| self.allocate(dtype, shape)).collect()
    }

    /// The results of a reduction are its last buffers without the axis of extent 1, or numbers.
    fn bind_reduced(&mut self, results: &[Value], buffers: &[Buffer], numbers: Vec<Value>) {
        for (&result, &buffer) in results.iter().zip(buffers) {
            let shape = self.shape(result);
            let buffer = Binding::Buffer(Buffer { shape, ..buffer });
            self.bindings.insert(result, buffer);
        }
        if buffers.is_empty() {
            for (&result, number) in results.iter().zip(numbers) {
                let number = Binding::Scalar(Scalar::Emitted(number));
                self.bindings.insert(result, number);
            }
        }
    }

    /// One pass over a shape. Returns what its last iteration left.
    fn pass(
        &mut self,
        reduction: &Reduction,
        input: &Input,
        chunk: &Chunk,
        partials: &[Buffer],
    ) -> Vec<Value> {
        let mut left = Vec::new();
        let axis = reduction.axis;
        let cover = match reduction.along_vector() {
            true => &chunk.cover,
            false => &chunk.reduced,
        };
        self.nest(cover, &mut |this, bases| {
            let (mut from, mut to) = (bases.to_vec(), bases.to_vec());
            match reduction.along_vector() {
                true => to[axis] = this.bits(bases[axis], chunk.levels, 62 - chunk.levels),
                false => from[axis] = this.mul(bases[axis], Scalar::Known(1 << chunk.levels)),
            }
            let carried = match chunk.carries {
                true => this.carry(reduction, input, chunk, &from),
                false => Vec::new(),
            };
            let mut leaf = |this: &mut Self, register: u32| match carried.get(register as usize) {
                Some(values) => values.clone(),
                None => this.fetch(input, &chunk.index(&from, register)),
            };
            for (number, &register) in chunk.left.iter().enumerate() {
                left = this.after(reduction.combine, &chunk.steps, register, &mut leaf);
                let index = chunk.reduced.index(&to, number * chunk.lanes, chunk.lanes);
                for (buffer, &value) in partials.iter().zip(&left) {
                    this.store_buffer(buffer, &index, value);
                }
            }
        });
        left
    }

    fn fetch(&mut self, input: &Input, index: &Index) -> Vec<Value> {
        let mut fetched = Vec::new();
        match input {
            Input::Tiles(tiles) => {
                for &tile in tiles {
                    fetched.push((self.pull(tile, index), self.dtype(tile)));
                }
            }
            Input::Partials(buffers) => {
                for buffer in buffers {
                    fetched.push((self.load_buffer(buffer, index), buffer.dtype));
                }
            }
        }
        let fetched = fetched.iter();
        fetched
            .map(|(pulled, dtype)| self.vector(pulled, *dtype, index.lanes))
            .collect()
    }

    /// A register after some steps, of which each takes those that it needs of the step before: few
    /// leaves are in registers at a time.
    fn after(
        &mut self,
        combine: Region,
        steps: &[ReductionStep],
        register: u32,
        leaf: &mut dyn FnMut(&mut Self, u32) -> Vec<Value>,
    ) -> Vec<Value> {
        let Some((step, before)) = steps.split_last() else {
            return leaf(self, register);
        };
        let lower = self.after(combine, before, register, leaf);
        let higher = match step.register() {
            0 => lower.clone(),
            other => self.after(combine, before, register | other, leaf),
        };
        let Ok(combined) = match step {
            ReductionStep::Registers(_) => self.combine(combine, &lower, &higher),
            ReductionStep::Lanes { divided, .. } => {
                let lanes = self.builder.ty(lower[0]).shape.elements() as u32;
                let end = lanes << u32::from(divided.is_some());
                let [evens, odds] = [0, 1].map(|first| {
                    let indices: Vec<u32> = (first..end).step_by(2).collect();
                    self.lanes(&lower, &higher, &indices)
                });
                self.combine(combine, &evens, &odds)
            }
            ReductionStep::Warps { .. } => unreachable!("broken invariant: a worker has no warps"),
        };
        combined
    }

    /// The registers of a chunk after all chunks of a row, combined in any order.
    fn carry(
        &mut self,
        reduction: &Reduction,
        input: &Input,
        chunk: &Chunk,
        bases: &[Scalar],
    ) -> Vec<Vec<Value>> {
        let take = |this: &mut Self, position: Scalar| -> Vec<Value> {
            let mut bases = bases.to_vec();
            bases[reduction.axis] = position;
            let registers = 0..chunk.layout.registers();
            registers
                .flat_map(|register| this.fetch(input, &chunk.index(&bases, register)))
                .collect()
        };
        let sources = reduction.dtypes.len();
        let init = take(self, Scalar::Known(0));
        let step = 1 << chunk.levels;
        let bounds = [step, reduction.extent() as i64].map(Scalar::Known);
        let sums = self.count(
            bounds.into(),
            step,
            &init,
            &mut |this, position, carried| {
                let taken = take(this, Scalar::Emitted(position));
                let mut next = Vec::new();
                for (lower, higher) in carried.chunks(sources).zip(taken.chunks(sources)) {
                    let Ok(combined) = this.combine(reduction.combine, lower, higher);
                    next.extend(combined);
                }
                next
            },
        );
        sums.chunks(sources).map(<[Value]>::to_vec).collect()
    }
}
