//! What the definitions are written with: constants, polynomials, powers of two, selections.

use super::coefficients::{Constant, Polynomial};
use crate::builder::Builder;
use crate::ir::{Approximate, CompareOp, DType, Literal, Value};

/// The two formats that functions are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Format {
    /// The format of a type that functions are computed in.
    pub(super) const fn of(dtype: DType) -> Option<Self> {
        if matches!(dtype, DType::F32) {
            Some(Self::Single)
        } else if matches!(dtype, DType::F64) {
            Some(Self::Double)
        } else {
            None
        }
    }

    pub(super) const fn float(self) -> DType {
        match self {
            Self::Single => DType::F32,
            Self::Double => DType::F64,
        }
    }

    /// The integers of the same width; unsigned, since shifts of them are cheap on every machine.
    pub(super) const fn integer(self) -> DType {
        match self {
            Self::Single => DType::U32,
            Self::Double => DType::U64,
        }
    }

    /// Explicit bits of the significand.
    pub(super) const fn significand(self) -> u64 {
        match self {
            Self::Single => 23,
            Self::Double => 52,
        }
    }

    pub(super) const fn bias(self) -> u64 {
        match self {
            Self::Single => 127,
            Self::Double => 1023,
        }
    }

    /// 1.5 * 2^significand + `offset`. A number of small magnitude added to it rounds to an integer
    /// `n`, and the low bits of the sum are the bits of `n + offset`.
    pub(super) const fn magic(self, offset: u64) -> f64 {
        let start = match self {
            Self::Single => 12_582_912.0,
            Self::Double => 6_755_399_441_055_744.0,
        };
        start + offset as f64
    }

    /// The bits of `magic(0)`.
    pub(super) const fn magic_bits(self) -> u64 {
        match self {
            Self::Single => 0x4b40_0000,
            Self::Double => 0x4338_0000_0000_0000,
        }
    }

    /// The last factor of a scaling is 2 to this power or to its negative.
    const fn last_exponent(self) -> u64 {
        match self {
            Self::Single => 64,
            Self::Double => 512,
        }
    }

    /// The last factor of a [`Scaling`] downwards.
    const fn last_factor_down(self) -> f64 {
        f64::from_bits((1023 - self.last_exponent()) << 52)
    }

    /// The least `n` of a [`Scaling`] downwards: its first factor is 0.
    pub(super) const fn vanishing_exponent(self) -> f64 {
        -((self.bias() + self.last_exponent()) as f64)
    }
}

/// Appends one definition, in the shape of its argument.
pub(super) struct Formula<'a> {
    builder: &'a mut Builder,
    like: Value,
    pub(super) format: Format,
}

/// How `2^n` becomes two factors: the first has its exponent from the bits of `n + magic`, the last is
/// a power of two far from 1, so that the first is a normal number wherever the product is not zero.
/// A number near 1 multiplied by one and then by the other rounds once, in the last step.
#[derive(Clone, Copy)]
pub(super) struct Scaling {
    magic: Value,
    last: Value,
}

/// A number that was rounded to an integer `n`, and `2^n`.
pub(super) struct Rounded<P> {
    /// `n` as a float.
    pub(super) whole: Value,
    /// `2^n`, or a product of that value.
    pub(super) power: P,
}

/// Two factors of `2^n`.
pub(super) type Factors = [Value; 2];

impl<'a> Formula<'a> {
    /// A formula in `x`, a value of the format's float type.
    pub(super) fn new(builder: &'a mut Builder, x: Value, format: Format) -> Self {
        Self {
            builder,
            like: x,
            format,
        }
    }

    /// What `compute` makes of `x` in `f64`, rounded to the format.
    pub(super) fn in_double(
        &mut self,
        x: Value,
        compute: impl FnOnce(&mut Formula<'_>, Value) -> Value,
    ) -> Value {
        let wide = self.builder.cast(x, DType::F64);
        let result = compute(&mut Formula::new(self.builder, wide, Format::Double), wide);
        self.builder.cast(result, self.format.float())
    }

    pub(super) fn number(&mut self, value: f64) -> Value {
        self.builder.constant_like(self.like, value)
    }

    pub(super) fn constant(&mut self, constant: Constant) -> Value {
        self.scaled(constant, 1.0)
    }

    /// The constant times a power of two or its negative.
    pub(super) fn scaled(&mut self, constant: Constant, by: f64) -> Value {
        self.number(
            by * match self.format {
                Format::Single => f64::from(constant.single),
                Format::Double => constant.double,
            },
        )
    }

    pub(super) fn integer(&mut self, value: u64) -> Value {
        let dtype = self.format.integer();
        self.builder.bits_like(self.like, dtype, value)
    }

    pub(super) fn add(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.add(lhs, rhs)
    }

    pub(super) fn sub(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.sub(lhs, rhs)
    }

    pub(super) fn mul(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.mul(lhs, rhs)
    }

    pub(super) fn div(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.div(lhs, rhs)
    }

    /// `a * b + c`, rounded once.
    pub(super) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.builder.fma(a, b, c)
    }

    pub(super) fn neg(&mut self, x: Value) -> Value {
        self.builder.neg(x)
    }

    pub(super) fn abs(&mut self, x: Value) -> Value {
        self.builder.abs(x)
    }

    pub(super) fn sqrt(&mut self, x: Value) -> Value {
        self.builder.sqrt(x)
    }

    pub(super) fn trunc(&mut self, x: Value) -> Value {
        self.builder.trunc(x)
    }

    pub(super) fn approximate(&mut self, op: Approximate, x: Value) -> Value {
        self.builder.approximate(op, x)
    }

    pub(super) fn or(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.or(lhs, rhs)
    }

    pub(super) fn and(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.and(lhs, rhs)
    }

    pub(super) fn shr(&mut self, x: Value, places: u64) -> Value {
        let places = self.integer(places);
        self.builder.shr(x, places)
    }

    pub(super) fn shl(&mut self, x: Value, places: u64) -> Value {
        let places = self.integer(places);
        self.builder.shl(x, places)
    }

    /// The lesser of two integers.
    pub(super) fn lesser(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.minimum(lhs, rhs)
    }

    /// What a division of integers leaves.
    pub(super) fn rem(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.rem(lhs, rhs)
    }

    pub(super) fn xor(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.xor(lhs, rhs)
    }

    /// An integer of 64 bits.
    pub(super) fn double_integer(&mut self, value: u64) -> Value {
        self.builder.bits_like(self.like, DType::U64, value)
    }

    pub(super) fn shift_left(&mut self, x: Value, places: Value) -> Value {
        self.builder.shl(x, places)
    }

    pub(super) fn shift_right(&mut self, x: Value, places: Value) -> Value {
        self.builder.shr(x, places)
    }

    /// `x` converted to another type.
    pub(super) fn to(&mut self, x: Value, dtype: DType) -> Value {
        self.builder.cast(x, dtype)
    }

    /// The float with the bits of an integer.
    pub(super) fn float_from(&mut self, bits: Value) -> Value {
        self.builder.bitcast(bits, self.format.float())
    }

    /// The bits of a float as an integer.
    pub(super) fn bits_of(&mut self, x: Value) -> Value {
        self.builder.bitcast(x, self.format.integer())
    }

    pub(super) fn compare(&mut self, op: CompareOp, lhs: Value, rhs: f64) -> Value {
        let rhs = self.number(rhs);
        self.compare_values(op, lhs, rhs)
    }

    pub(super) fn compare_values(&mut self, op: CompareOp, lhs: Value, rhs: Value) -> Value {
        self.builder.compare(op, lhs, rhs)
    }

    pub(super) fn select(&mut self, condition: Value, on_true: Value, on_false: Value) -> Value {
        self.builder.select(condition, on_true, on_false)
    }

    /// `x`, but not above `limit`; NaN becomes `limit`. One instruction on most machines.
    pub(super) fn number_at_most(&mut self, x: Value, limit: f64) -> Value {
        let limit = self.number(limit);
        let below = self.builder.compare(CompareOp::Lt, x, limit);
        self.select(below, x, limit)
    }

    /// `x`, but not above `limit`; keeps NaN. One instruction on most machines.
    pub(super) fn at_most(&mut self, x: Value, limit: f64) -> Value {
        let limit = self.number(limit);
        let above = self.builder.compare(CompareOp::Gt, x, limit);
        self.select(above, limit, x)
    }

    /// `x`, but not below `limit`; keeps NaN. One instruction on most machines.
    pub(super) fn at_least(&mut self, x: Value, limit: f64) -> Value {
        let limit = self.number(limit);
        let below = self.builder.compare(CompareOp::Lt, x, limit);
        self.select(below, limit, x)
    }

    /// The polynomial at `x` by Horner's scheme, one fused multiply-add for each power.
    pub(super) fn polynomial(&mut self, polynomial: Polynomial, x: Value) -> Value {
        self.polynomial_scaled(polynomial, x, (1.0, 1.0))
    }

    /// As [`Self::polynomial`], with all coefficients multiplied by the last factor of a scaling down.
    pub(super) fn polynomial_scaled_down(&mut self, polynomial: Polynomial, x: Value) -> Value {
        self.polynomial_scaled(polynomial, x, (self.format.last_factor_down(), 1.0))
    }

    /// The polynomial at `x * step`, times `unit`; both are powers of two or their negatives, which the
    /// coefficients take in, so that all sums round alike.
    pub(super) fn polynomial_scaled(
        &mut self,
        polynomial: Polynomial,
        x: Value,
        (unit, step): (f64, f64),
    ) -> Value {
        let coefficients: Vec<f64> = match self.format {
            Format::Single => polynomial.single.iter().map(|&c| f64::from(c)).collect(),
            Format::Double => polynomial.double.to_vec(),
        };
        let degree = coefficients.len() as i32 - 1;
        let powers = (0..=degree).rev().map(|power| unit * step.powi(power));
        let scaled = coefficients.into_iter().zip(powers).map(|(c, by)| c * by);
        self.horner(scaled, x)
    }

    /// The last factor of a scaling down.
    pub(super) fn unit_down(&mut self) -> Value {
        self.number(self.format.last_factor_down())
    }

    /// As [`Self::polynomial`], from coefficients of the format, highest power first.
    pub(super) fn horner(&mut self, coefficients: impl Iterator<Item = f64>, x: Value) -> Value {
        let mut sum: Option<Value> = None;
        for coefficient in coefficients {
            let coefficient = self.number(coefficient);
            sum = Some(match sum {
                None => coefficient,
                Some(sum) => self.fma(sum, x, coefficient),
            });
        }
        sum.expect("broken invariant: a polynomial has coefficients")
    }

    /// As [`Self::horner`], and what its last step loses.
    pub(super) fn horner_pair(&mut self, coefficients: &[f64], x: Value) -> (Value, Value) {
        let (&last, rest) = coefficients
            .split_last()
            .expect("broken invariant: a polynomial has coefficients");
        let sum = self.horner(rest.iter().copied(), x);
        let last = self.number(last);
        let high = self.fma(sum, x, last);
        let lost = self.sub(last, high);
        let low = self.fma(sum, x, lost);
        (high, low)
    }

    /// The scaling for `n` from [`Format::vanishing_exponent`] up to about 60.
    pub(super) fn scaling_down(&mut self) -> Scaling {
        let (bias, last) = (self.format.bias(), self.format.last_exponent());
        Scaling {
            magic: self.number(self.format.magic(bias + last)),
            last: self.unit_down(),
        }
    }

    /// The scaling for every `n` that [`Self::scaling_down`] takes, and for all greater ones up to
    /// that of infinity. `x` has the sign of `n`.
    pub(super) fn scaling(&mut self, x: Value) -> Scaling {
        let (bias, last) = (self.format.bias(), self.format.last_exponent());
        let down = self.scaling_down();
        let magic = self.number(self.format.magic(bias - last));
        let up = self.power(bias + last);
        let positive = self.compare(CompareOp::Gt, x, 0.0);
        Scaling {
            magic: self.select(positive, magic, down.magic),
            last: self.select(positive, up, down.last),
        }
    }

    /// The number with this exponent field and no fraction.
    fn power(&mut self, field: u64) -> Value {
        let literal = Literal::from_bits(self.format.float(), field << self.format.significand());
        let value = literal.float().expect("broken invariant: a float");
        self.number(value)
    }

    /// `x` rounded to an integer; `x * factor` if there is a factor.
    pub(super) fn rounded(
        &mut self,
        scaling: Scaling,
        x: Value,
        factor: Option<Value>,
    ) -> Rounded<Factors> {
        let Rounded { whole, power } = self.rounded_by(scaling.magic, x, factor);
        Rounded {
            whole,
            power: [power, scaling.last],
        }
    }

    /// `x * factor` rounded to an integer that is the exponent of a normal number.
    pub(super) fn rounded_near(&mut self, x: Value, factor: Value) -> Rounded<Value> {
        self.rounded_less(x, factor, 0)
    }

    /// `x * factor` rounded to an integer `n`, and `2^(n - less)`, which is a normal number.
    pub(super) fn rounded_less(&mut self, x: Value, factor: Value, less: u64) -> Rounded<Value> {
        let magic = self.number(self.format.magic(self.format.bias() - less));
        self.rounded_by(magic, x, Some(factor))
    }

    fn rounded_by(&mut self, magic: Value, x: Value, factor: Option<Value>) -> Rounded<Value> {
        let sum = match factor {
            Some(factor) => self.fma(x, factor, magic),
            None => self.add(x, magic),
        };
        let whole = self.sub(sum, magic);
        let bits = self.bits_of(sum);
        // The high bits of the sum are gone after the shift.
        let shifted = self.shl(bits, self.format.significand());
        let power = self.float_from(shifted);
        Rounded { whole, power }
    }

    /// `x * factors[0] * factors[1]`.
    pub(super) fn scale(&mut self, x: Value, factors: Factors) -> Value {
        let once = self.mul(x, factors[0]);
        self.mul(once, factors[1])
    }
}
