//! Counts, gathers, assertions and prints.

use exactile_core::ir::prints::COUNTERS;
use exactile_core::ir::{Axis, DType, NumberFormat, Op, Shape, Type, Value, op};

use super::super::values::Fill;
use super::Generator;

/// What a program prints to.
#[derive(Clone, Copy)]
pub(super) struct Record {
    value: Value,
    words: i64,
    /// How many prints there are.
    prints: i64,
    /// The program that makes them.
    program: usize,
}

/// How many words a record has: none but the counters, few, or enough for most prints.
const WORDS: &[i64] = &[COUNTERS, 40, 4096, 4096, 4096];

impl Generator {
    /// Counts of the numbers below the extent of `shape`, sometimes over the iterations of a loop.
    pub(super) fn histogram(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let bins = shape.elements() as i64;
        if self.nesting == 2 || !self.random.one_in(2) {
            return self.counts(dtype, bins, depth);
        }
        let (lower, upper, step, _) = self.bounds();
        self.nesting += 1;
        let ty = Type::tile(DType::I32, shape);
        let init = self.make(DType::I32, shape, depth.min(1));
        let branches = self.random.one_in(2);
        let disturbed = self.random.one_in(4);
        let body = self.region(&[Type::INDEX, ty], |generator, parameters| {
            let mut sum = parameters[1];
            // What else is made in the loop must not see the sum, or it is a tile like any other.
            generator.scope.pop();
            if disturbed {
                generator.store(sum, false);
            }
            if branches {
                sum = generator.counted_in_branches(dtype, sum);
            }
            let counts = generator.counts(dtype, bins, 1);
            vec![generator.builder.add(sum, counts)]
        });
        self.nesting -= 1;
        let op = Op::For(op::For {
            lower,
            upper,
            init: vec![init],
            step,
            stages: 1,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst)[0]
    }

    /// `sum` with counts added in one branch.
    fn counted_in_branches(&mut self, dtype: DType, sum: Value) -> Value {
        let bins = self.builder.ty(sum).shape.elements() as i64;
        let condition = self.condition();
        let on_true = self.region(&[], |generator, _| {
            let counts = generator.counts(dtype, bins, 0);
            vec![generator.builder.add(counts, sum)]
        });
        let on_false = self.region(&[], |_, _| vec![sum]);
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let ty = self.builder.ty(sum);
        let inst = self.builder.emit(op, &[ty]);
        self.builder.results(inst)[0]
    }

    /// Counts of a tile of any shape, most of whose numbers have a bin.
    fn counts(&mut self, dtype: DType, bins: i64, depth: u32) -> Value {
        let shape = self.random_shape();
        let x = if self.random.one_in(3) {
            self.make(dtype, shape, depth)
        } else {
            self.filled_load(dtype, shape, Fill::Below(bins as u64 + 3))
        };
        let masked = self.random.one_in(2);
        let mask = masked.then(|| self.mask(shape, depth.min(1)));
        self.builder
            .value(Op::Histogram(op::Histogram { x, mask, bins }))
    }

    /// Asserts that a mask holds or does not.
    pub(super) fn assert(&mut self, value: Value) {
        let other = self.builder.not(value);
        let condition = self.builder.or(value, other);
        let message = "either".to_string();
        let op = Op::Assert(op::Assert { condition, message });
        self.builder.emit(op, &[]);
    }

    /// Prints a tile, or the part of it where a mask holds. One program makes all prints: several print in any order.
    pub(super) fn print(&mut self, x: Value) {
        let record = match self.record {
            Some(record) => record,
            None => {
                let words = self.random.pick(WORDS);
                let value = self.cleared(DType::U64, words as usize);
                let prints = 0;
                Record {
                    value,
                    words,
                    prints,
                    program: self.random.below(self.programs()),
                }
            }
        };
        self.record = Some(Record {
            prints: record.prints + 1,
            ..record
        });
        let shape = self.builder.ty(x).shape;
        let masked = self.random.one_in(2);
        let mask = masked.then(|| self.mask(shape, 1));
        let format = self.random.one_in(4).then_some(NumberFormat::Hexadecimal);
        let print = Op::Print(op::Print {
            record: record.value,
            x,
            mask,
            label: "x".to_string(),
            number: record.prints,
            words: record.words,
            format,
        });
        if self.programs() == 1 {
            self.builder.emit(print, &[]);
            return;
        }
        let one = self.builder.index(record.program as i64);
        let condition = self.builder.eq(self.program, one);
        let on_true = self.region(&[], |generator, _| {
            generator.builder.emit(print, &[]);
            Vec::new()
        });
        let on_false = self.region(&[], |_, _| Vec::new());
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        self.builder.emit(op, &[]);
    }

    /// Elements of a tile by indices in range.
    pub(super) fn gather(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let axis = self.random.below(shape.rank());
        let others = shape.elements() / shape.extent(axis);
        let room = (self.limits.elements / others).max(1).ilog2() as usize;
        let extent = 1 << self.random.below(room.min(8) + 1);
        let mut dims = shape.dims();
        dims[axis] = extent;
        let from = Shape::new(&dims).expect("broken invariant: extents are powers of two");
        let x = self.make(dtype, from, depth);
        let indices = if self.random.one_in(2) {
            let kind = self
                .random
                .pick(&[DType::I64, DType::I32, DType::U64, DType::I16]);
            self.filled_load(kind, shape, Fill::Below(extent as u64))
        } else {
            let index = self.make(DType::I64, shape, depth.min(1));
            let limit = self.integers(extent as i64 - 1, shape);
            self.builder.and(index, limit)
        };
        let axis = Axis(axis as u8);
        self.builder
            .value(Op::Gather(op::Gather { x, indices, axis }))
    }
}
