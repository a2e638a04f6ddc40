//! Reductions, scans and matrix products.

use exactile_core::ir::{
    Axis, Class, CompareOp, DType, Direction, Literal, Op, Order, Precision, Region, Shape,
    SortOrder, Type, Value, op,
};

use super::super::target::{Combine, Target, added_in};
use super::super::values::Fill;
use super::Generator;

impl Generator {
    /// A reduction whose result has this type.
    pub(super) fn reduce(
        &mut self,
        combine: Combine,
        dtype: DType,
        shape: Shape,
        depth: u32,
    ) -> Value {
        let axis = self.random.below(shape.rank() + 1);
        let room = (self.limits.elements / shape.elements()).max(2).ilog2() as usize;
        let extent = 1 << self.random.below(room.min(7) + 1);
        let source_shape = self.with_axis(shape, axis, extent);
        self.combined(combine, dtype, source_shape, (axis, None), depth)
    }

    /// A scan whose result has this type.
    pub(super) fn scan(
        &mut self,
        combine: Combine,
        dtype: DType,
        shape: Shape,
        depth: u32,
    ) -> Value {
        let axis = self.random.below(shape.rank());
        let direction = self.random.pick(Direction::ALL);
        self.combined(combine, dtype, shape, (axis, Some(direction)), depth)
    }

    /// A reduction of sources of this type and shape, or a scan in a direction.
    fn combined(
        &mut self,
        combine: Combine,
        dtype: DType,
        shape: Shape,
        along: (usize, Option<Direction>),
        depth: u32,
    ) -> Value {
        match combine {
            Combine::Op(op) => {
                let source = self.make(dtype, shape, depth);
                let make = |generator: &mut Self, values: &[Value]| {
                    vec![generator.builder.binary(op, values[0], values[1])]
                };
                self.combining(&[source], along, make)[0]
            }
            Combine::Closure => {
                let source = self.make(dtype, shape, depth);
                let outside = self.outside(dtype, depth);
                let make = |generator: &mut Self, values: &[Value]| {
                    let mixed = generator.mix(values[0], values[1]);
                    let last = outside.unwrap_or_else(|| generator.everyday(dtype));
                    vec![generator.any_binary(dtype, mixed, last)]
                };
                self.combining(&[source], along, make)[0]
            }
            Combine::Several if self.random.one_in(2) && dtype != DType::Bool => {
                self.argument_of_extreme(dtype, shape, along, depth)
            }
            Combine::Several => {
                let second = self.random.pick(DType::ALL);
                let sources = [dtype, second].map(|it| self.make(it, shape, depth));
                let outside = self.outside(dtype, depth);
                let make = |generator: &mut Self, values: &[Value]| {
                    let mut first = generator.mix(values[0], values[2]);
                    if let Some(outside) = outside {
                        first = generator.any_binary(dtype, first, outside);
                    }
                    let second = generator.mix(values[1], values[3]);
                    vec![first, second]
                };
                self.combining(&sources, along, make)[0]
            }
        }
    }

    /// A scalar for a region to capture, sometimes.
    pub(super) fn outside(&mut self, dtype: DType, depth: u32) -> Option<Value> {
        let captures = self.random.one_in(3);
        captures.then(|| self.make(dtype, Shape::SCALAR, depth))
    }

    fn combining(
        &mut self,
        sources: &[Value],
        (axis, direction): (usize, Option<Direction>),
        make: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let elements: Vec<Type> = sources
            .iter()
            .map(|&source| self.builder.ty(source).with_shape(Shape::SCALAR))
            .collect();
        let combine = self.combiner(&elements, make);
        let (sources, axis, order) = (sources.to_vec(), Axis(axis as u8), Order::Tree);
        let op = match direction {
            None => Op::Reduce(op::Reduce {
                sources,
                axis,
                order,
                combine,
            }),
            Some(direction) => Op::Scan(op::Scan {
                sources,
                axis,
                order,
                direction,
                combine,
            }),
        };
        let inst = self.builder.emit(op, &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results);
        results
    }

    /// A region that combines elements of these types.
    pub(super) fn combiner(
        &mut self,
        elements: &[Type],
        make: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let parameters = [elements, elements].concat();
        let outer = self.combiner.replace(self.scope.len());
        let combine = self.region(&parameters, make);
        self.combiner = outer;
        combine
    }

    /// A function of two scalars that is seldom commutative or associative.
    pub(super) fn mix(&mut self, lower: Value, higher: Value) -> Value {
        let Some(dtype) = self.builder.ty(lower).dtype() else {
            return lower;
        };
        let mut mixed = higher;
        if self.random.one_in(2) {
            let other = self.make(dtype, Shape::SCALAR, 1);
            mixed = self.any_binary(dtype, mixed, other);
        }
        if dtype.is_float() && self.random.one_in(3) {
            let factor = self.everyday(dtype);
            return self.builder.fma(lower, factor, mixed);
        }
        self.any_binary(dtype, lower, mixed)
    }

    pub(super) fn any_binary(&mut self, dtype: DType, lhs: Value, rhs: Value) -> Value {
        loop {
            if let Some(Target::Binary(op, _)) = self.any_op(dtype) {
                return self.builder.binary(op, lhs, rhs);
            }
        }
    }

    /// The greatest or least element with its index; of equal ones the lowest index.
    fn argument_of_extreme(
        &mut self,
        dtype: DType,
        shape: Shape,
        along: (usize, Option<Direction>),
        depth: u32,
    ) -> Value {
        let source = self.make(dtype, shape, depth);
        let mut strides = vec![0; shape.rank()];
        strides[along.0] = 1;
        let start = self.builder.index(0);
        let mut index = self.strided_tile(shape, &strides, start);
        if self.random.one_in(2) {
            index = self.builder.cast(index, DType::I32);
        }
        let better = self.random.pick(&[CompareOp::Gt, CompareOp::Lt]);
        let results = self.combining(&[source, index], along, |generator, values| {
            let &[low, low_index, high, high_index] = values else {
                return values.to_vec();
            };
            let builder = &mut generator.builder;
            let takes = builder.compare(better, high, low);
            let value = builder.select(takes, high, low);
            let index = builder.select(takes, high_index, low_index);
            vec![value, index]
        });
        self.store(results[1], false);
        results[0]
    }

    /// The first elements along an axis, so many that the result has this shape; sometimes with
    /// sources that move along or decide between equals.
    pub(super) fn sort(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let axis = self.random.below(shape.rank());
        let room = (self.limits.elements / shape.elements()).max(1).ilog2() as usize;
        let dropped = self.random.below(room.min(4) + 1);
        let mut dims = shape.dims();
        let count = dims[axis] as i64;
        if self.random.one_in(2) {
            dims[axis] <<= dropped;
        }
        let source_shape = Shape::new(&dims).expect("broken invariant: there is room");
        let mut sources = vec![self.make(dtype, source_shape, depth)];
        for _ in 0..self.random.pick(&[0, 0, 1, 2]) {
            let other = self.random.pick(DType::ALL);
            sources.push(self.make(other, source_shape, depth));
        }
        let op = Op::Sort(op::Sort {
            keys: 1 + self.random.below(sources.len()) as i64,
            sources,
            axis: Axis(axis as u8),
            direction: self.random.pick(SortOrder::ALL),
            count,
        });
        let inst = self.builder.emit(op, &[]);
        let results = self.builder.results(inst).to_vec();
        self.scope.extend(&results[1..]);
        if let Some(&last) = results[1..].last() {
            self.store(last, false);
        }
        results[0]
    }

    /// `[m, k] x [k, n] + [m, n]` of operands of this type, or a batch of that.
    pub(super) fn dot(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let dims = shape.dims();
        let (batch, matrix) = dims.split_at(shape.rank() - 2);
        let (rows, columns) = (matrix[0], matrix[1]);
        let widest = rows.max(columns) * batch.iter().product::<usize>();
        let room = (self.limits.elements / widest).max(1).ilog2() as usize;
        let step = Precision::Hopper.step(dtype).ilog2() as usize;
        let by_steps = Precision::Hopper.admits(dtype) && step <= room && self.random.one_in(3);
        let (least, precision) = match by_steps {
            true => (step, Precision::Hopper),
            false => (0, Precision::Ieee),
        };
        let inner = 1 << self.random.between(least as i64, room.min(5) as i64);
        let shapes = [
            self.matrices(batch, rows, inner),
            self.matrices(batch, inner, columns),
            shape,
        ];
        let narrowest = added_in(dtype);
        let sum = match precision == Precision::Ieee && self.random.one_in(8) {
            false => narrowest,
            true => match dtype.class() {
                Class::Float | Class::Bool => DType::F64,
                Class::Signed => DType::I64,
                Class::Unsigned => DType::U64,
            },
        };
        let types = [dtype, dtype, sum];
        let [a, b, accumulator] = if dtype.is_float() && self.random.one_in(4) {
            // All products are -0: only the end of the definition makes the result +0.
            let b = self.filled_load(dtype, shapes[1], Fill::Moderate);
            let b = self.builder.abs(b);
            let [a, accumulator] = [0, 2].map(|at| {
                let zero = Literal::from_f64(types[at], -0.0);
                self.builder.filled(zero, shapes[at])
            });
            [a, b, accumulator]
        } else if dtype.is_float() && self.random.one_in(4) {
            let fills = [Fill::Zeros, Fill::Moderate, Fill::Zeros];
            [0, 1, 2].map(|at| self.filled_load(types[at], shapes[at], fills[at]))
        } else {
            [0, 1, 2].map(|at| self.make(types[at], shapes[at], depth))
        };
        let dot = op::Dot {
            a,
            b,
            accumulator,
            precision,
        };
        let product = self.product(dot, dtype, inner);
        self.builder.cast(product, narrowest)
    }

    /// The product, of some floats by parts of its `inner` terms.
    fn product(&mut self, dot: op::Dot, dtype: DType, inner: usize) -> Value {
        if !dtype.is_float() || !self.random.one_in(4) {
            return self.builder.value(Op::Dot(dot));
        }
        let op::Dot {
            a,
            b,
            accumulator,
            precision,
        } = dot;
        let [least, most] = [precision.step(dtype), inner].map(|it| i64::from(it.ilog2()));
        let count = 1 << self.random.between(least, most);
        self.builder.value(Op::DotPromoted(op::DotPromoted {
            a,
            b,
            accumulator,
            precision,
            count,
        }))
    }
}
