//! The function of Hopper's tensor cores by `f64` arithmetic, which is exact in every step of it.
//!
//! A product of two operands has 22 bits at most, and the sum of a step 33. The place where terms are cut is a power
//! of two, so a term is `trunc(product * scale)`. Operands are first written as `f64` numbers and as
//! exponents, which subnormal numbers do not have of their own.

use super::dot::{at, in_batch};
use super::index::Scalar;
use super::lowerer::{Binding, Buffer, Lowerer};
use super::pull::Pulled;

use crate::ir::{BinaryOp, CompareOp, DType, Inst, Literal, Shape, Type, UnaryOp, Value, op};
use crate::semantics::mma::{EXPONENT_OF_ZERO, Form};

/// Rows of the result that are computed together.
const ROWS: usize = 2;

/// Columns of the result that are computed together.
const COLUMNS: usize = 4;

/// Below every exponent, and the sum of two does not wrap.
const NO_EXPONENT: i32 = -1000;

/// Bits of the fraction of an `f32`, of an `f64`, and its bias.
const SINGLE: u32 = 23;
const DOUBLE: u32 = 52;
const DOUBLE_BIAS: i32 = 1023;

/// The exponent of the least normal `f32`.
const LEAST: i32 = -126;

/// An operand in scratch memory.
#[derive(Clone, Copy)]
struct Operand {
    /// The numbers (`f64`).
    numbers: Buffer,
    /// Their exponents (`i32`).
    exponents: Buffer,
}

/// What is computed together: the rows from `top` on and the columns from `left` on, of one matrix of the batch.
#[derive(Clone, Copy)]
struct Block<'a> {
    batch: &'a [Scalar],
    top: Scalar,
    left: Scalar,
    columns: usize,
    form: Form,
}

impl Lowerer<'_> {
    pub(super) fn tensor_dot(&mut self, inst: Inst, op: &op::Dot) {
        let result = self.source.inst(inst).results[0];
        let shape = self.shape(result);
        let operands = [op.a, op.b].map(|operand| self.decoded(operand));
        let buffer = self.allocate(DType::F32, shape);
        let inner = shape.rank() - 1;
        let rows = ROWS.min(shape.extent(inner - 1));
        let columns = COLUMNS.min(shape.extent(inner));
        let mut steps = vec![1; inner - 1];
        steps.extend([rows as i64, columns as i64]);
        let cover = super::index::Cover { shape, steps };
        let (operand, depth) = (self.dtype(op.a), self.shape(op.a).extent(inner));
        let (form, step) = (Form::of(operand), op.precision.step(operand));
        self.nest(&cover, &mut |this, bases| {
            let (batch, corner) = bases.split_at(inner - 1);
            let (top, left) = (corner[0], corner[1]);
            let block = Block {
                batch,
                top,
                left,
                columns,
                form,
            };
            let mut init = Vec::new();
            for row in 0..rows {
                let index = in_batch(batch, at((top, row as i64), (left, 0), columns));
                let pulled = this.pull(op.accumulator, &index);
                init.push(this.vector(&pulled, DType::F32, columns));
            }
            let bounds = (Scalar::Known(0), Scalar::Known(depth as i64));
            let sums = this.count(bounds, step as i64, &init, &mut |this, k, sums| {
                this.step(&operands, block, (Scalar::Emitted(k), step), sums)
            });
            for (row, sum) in sums.into_iter().enumerate() {
                let index = in_batch(batch, at((top, row as i64), (left, 0), columns));
                this.store_buffer(&buffer, &index, sum);
            }
        });
        self.bindings.insert(result, Binding::Buffer(buffer));
    }

    /// Writes an operand as numbers and exponents.
    fn decoded(&mut self, operand: Value) -> Operand {
        let (dtype, shape) = (self.dtype(operand), self.shape(operand));
        let [numbers, exponents] =
            [DType::F64, DType::I32].map(|dtype| self.allocate(dtype, shape));
        let least = dtype.format().map_or(0, |format| format.least_exponent());
        self.fill_together(&[numbers, exponents], &[operand], &mut |this, index| {
            let pulled = this.pull(operand, index);
            let x = this.vector(&pulled, dtype, index.lanes);
            let x = this.counting(x, Form::of(dtype).ignored);
            let number = this.builder.cast(x, DType::F64);
            let x = this.builder.cast(x, DType::F32);
            [number, this.exponents(x, least)]
                .map(Pulled::Vector)
                .to_vec()
        });
        Operand { numbers, exponents }
    }

    /// `f32` numbers without their lowest bits.
    fn counting(&mut self, x: Value, ignored: u32) -> Value {
        if ignored == 0 {
            return x;
        }
        // `canonical_reads` makes the bits of a NaN canonical, of which none is lost here.
        let bits = self.builder.bitcast(x, DType::U32);
        let kept = self.all(bits, -1 << ignored);
        let bits = self.builder.and(bits, kept);
        self.builder.bitcast(bits, DType::F32)
    }

    /// The exponents (`i32`) of `f32` numbers of a type whose least exponent is `least`.
    fn exponents(&mut self, x: Value, least: i32) -> Value {
        let bits = self.builder.bitcast(x, DType::I32);
        let shift = self.all(bits, SINGLE.into());
        let field = self.builder.shr(bits, shift);
        let mask = self.all(bits, 0xff);
        let field = self.builder.and(field, mask);
        let bias = self.all(bits, 127);
        let exponent = self.builder.sub(field, bias);
        let least = self.all(bits, least.into());
        let exponent = self.builder.binary(BinaryOp::Maximum, exponent, least);
        let zero = self.builder.constant_like(x, 0.0);
        let is_zero = self.builder.compare(CompareOp::Eq, x, zero);
        let none = self.all(bits, NO_EXPONENT.into());
        self.builder.select(is_zero, none, exponent)
    }

    /// An integer, as many times as `like` has elements, of its type.
    fn all(&mut self, like: Value, number: i64) -> Value {
        let ty = self.builder.ty(like);
        let dtype = ty.dtype().unwrap_or(DType::I32);
        let bits = number.cast_unsigned() & dtype.mask();
        let number = self.constant(Literal::from_bits(dtype, bits));
        self.builder.splat(number, ty.shape)
    }

    /// The sums (`f32`) of the rows of a block after `step` products from `k` on.
    fn step(
        &mut self,
        [a, b]: &[Operand; 2],
        block: Block<'_>,
        (k, step): (Scalar, usize),
        sums: &[Value],
    ) -> Vec<Value> {
        let Block {
            batch,
            top,
            left,
            columns,
            form,
        } = block;
        let shape = Type::vector(DType::F64, columns).shape;
        let greatest = self.greatest([&a.exponents, &b.exponents], block, (k, step), sums);
        let scales: Vec<Value> = greatest
            .iter()
            .map(|&greatest| self.power(greatest, form.fraction, true))
            .collect();
        let mut totals = Vec::new();
        for (&sum, &scale) in sums.iter().zip(&scales) {
            let sum = self.builder.cast(sum, DType::F64);
            totals.push(self.term(sum, scale));
        }
        for product in 0..step as i64 {
            let index = in_batch(batch, at((k, product), (left, 0), columns));
            let right = self.buffered(&b.numbers, &index);
            for (row, total) in totals.iter_mut().enumerate() {
                let index = in_batch(batch, at((top, row as i64), (k, product), 1));
                let number = self.buffered(&a.numbers, &index);
                let number = self.builder.splat(number, shape);
                let exact = self.builder.mul(number, right);
                let term = self.term(exact, scales[row]);
                *total = self.builder.add(*total, term);
            }
        }
        let units = greatest
            .iter()
            .map(|&greatest| self.power(greatest, -form.fraction, false));
        let units: Vec<Value> = units.collect();
        let pairs = totals.into_iter().zip(units);
        pairs
            .map(|(total, unit)| {
                let sum = self.builder.mul(total, unit);
                self.cut(sum, form.kept)
            })
            .collect()
    }

    /// The greatest exponent of a term of each element.
    fn greatest(
        &mut self,
        [a, b]: [&Buffer; 2],
        Block {
            batch,
            top,
            left,
            columns,
            ..
        }: Block<'_>,
        (k, step): (Scalar, usize),
        sums: &[Value],
    ) -> Vec<Value> {
        let shape: Shape = Type::vector(DType::I32, columns).shape;
        let mut greatest = Vec::new();
        for &sum in sums {
            let exponent = self.exponents(sum, 1 - 127);
            let zero = self.all(exponent, EXPONENT_OF_ZERO.into());
            greatest.push(self.builder.binary(BinaryOp::Maximum, exponent, zero));
        }
        for product in 0..step as i64 {
            let index = in_batch(batch, at((k, product), (left, 0), columns));
            let right = self.buffered(b, &index);
            for (row, greatest) in greatest.iter_mut().enumerate() {
                let index = in_batch(batch, at((top, row as i64), (k, product), 1));
                let left = self.buffered(a, &index);
                let left = self.builder.splat(left, shape);
                let exponent = self.builder.add(left, right);
                *greatest = self.builder.binary(BinaryOp::Maximum, *greatest, exponent);
            }
        }
        greatest
    }

    fn buffered(&mut self, buffer: &Buffer, index: &super::index::Index) -> Value {
        let pulled = self.load_buffer(buffer, index);
        self.vector(&pulled, buffer.dtype, index.lanes)
    }

    fn term(&mut self, x: Value, scale: Value) -> Value {
        let scaled = self.builder.mul(x, scale);
        self.builder.unary(UnaryOp::Trunc, scaled)
    }

    /// `2^(offset + exponent)`, or `2^(offset - exponent)`, as `f64`.
    fn power(&mut self, exponent: Value, offset: i32, negated: bool) -> Value {
        let exponent = self.builder.cast(exponent, DType::I64);
        let offset = self.all(exponent, (DOUBLE_BIAS + offset).into());
        let field = if negated {
            self.builder.sub(offset, exponent)
        } else {
            self.builder.add(offset, exponent)
        };
        let shift = self.all(field, DOUBLE.into());
        let bits = self.builder.shl(field, shift);
        self.builder.bitcast(bits, DType::F64)
    }

    /// `f64` numbers as `f32` with so many bits of fraction, cut toward zero; what is too large is infinite, and
    /// zeros are +0.
    fn cut(&mut self, x: Value, fraction: i32) -> Value {
        let scale = self
            .builder
            .constant_like(x, 2.0_f64.powi(fraction - LEAST));
        let unit = self
            .builder
            .constant_like(x, 2.0_f64.powi(LEAST - fraction));
        let whole = self.term(x, scale);
        let x = self.builder.mul(whole, unit);
        let bits = self.builder.bitcast(x, DType::I64);
        let kept = self.all(bits, -1 << (DOUBLE.cast_signed() - fraction));
        let bits = self.builder.and(bits, kept);
        let x = self.builder.bitcast(bits, DType::F64);
        let x = self.builder.cast(x, DType::F32);
        self.builder.positive_zero(x)
    }
}
