//! What the definitions are written with: constants, polynomials, powers of two, selections.

use super::coefficients::{Constant, Polynomial};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};

/// The two formats that functions are computed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

impl Format {
    pub(super) const fn float(self) -> DType {
        match self {
            Self::Single => DType::F32,
            Self::Double => DType::F64,
        }
    }

    /// The integers of the same width.
    pub(super) const fn integer(self) -> DType {
        match self {
            Self::Single => DType::I32,
            Self::Double => DType::I64,
        }
    }

    /// Explicit bits of the significand.
    pub(super) const fn significand(self) -> u64 {
        match self {
            Self::Single => 23,
            Self::Double => 52,
        }
    }

    pub(super) const fn bias(self) -> i64 {
        match self {
            Self::Single => 127,
            Self::Double => 1023,
        }
    }

    /// 1.5 * 2^significand. A small number added to it rounds to an integer, which is then the
    /// difference of the bits.
    pub(super) const fn magic(self) -> f64 {
        match self {
            Self::Single => 12_582_912.0,
            Self::Double => 6_755_399_441_055_744.0,
        }
    }

    pub(super) const fn magic_bits(self) -> i64 {
        match self {
            Self::Single => 0x4b40_0000,
            Self::Double => 0x4338_0000_0000_0000,
        }
    }
}

/// Appends one definition, in the shape of its argument.
pub(super) struct Formula<'a> {
    builder: &'a mut Builder,
    like: Value,
    pub(super) format: Format,
}

/// A number `whole + rest` with `whole` an integer, also given as one in the integer type.
pub(super) struct Split {
    pub(super) whole: Value,
    pub(super) exponent: Value,
}

impl<'a> Formula<'a> {
    /// A formula in `x`, a value of the format's float type.
    pub(super) fn new(builder: &'a mut Builder, x: Value, format: Format) -> Self {
        Self {
            builder,
            like: x,
            format,
        }
    }

    pub(super) fn number(&mut self, value: f64) -> Value {
        self.builder.constant_like(self.like, value)
    }

    pub(super) fn constant(&mut self, constant: Constant) -> Value {
        self.number(match self.format {
            Format::Single => f64::from(constant.single),
            Format::Double => constant.double,
        })
    }

    pub(super) fn negated(&mut self, constant: Constant) -> Value {
        self.constant(Constant {
            single: -constant.single,
            double: -constant.double,
        })
    }

    pub(super) fn integer(&mut self, value: i64) -> Value {
        let dtype = self.format.integer();
        self.builder.bits_like(self.like, dtype, value as u64)
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

    pub(super) fn and(&mut self, lhs: Value, rhs: Value) -> Value {
        self.builder.and(lhs, rhs)
    }

    pub(super) fn shr(&mut self, x: Value, places: u64) -> Value {
        let places = self.integer(places as i64);
        self.builder.shr(x, places)
    }

    pub(super) fn shl(&mut self, x: Value, places: u64) -> Value {
        let places = self.integer(places as i64);
        self.builder.shl(x, places)
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
        self.builder.compare(op, lhs, rhs)
    }

    pub(super) fn select(&mut self, condition: Value, on_true: Value, on_false: Value) -> Value {
        self.builder.select(condition, on_true, on_false)
    }

    /// `x`, but not above `limit`; keeps NaN.
    pub(super) fn at_most(&mut self, x: Value, limit: f64) -> Value {
        let above = self.compare(CompareOp::Gt, x, limit);
        let limit = self.number(limit);
        self.select(above, limit, x)
    }

    /// `x`, but not below `limit`; keeps NaN.
    pub(super) fn at_least(&mut self, x: Value, limit: f64) -> Value {
        let below = self.compare(CompareOp::Lt, x, limit);
        let limit = self.number(limit);
        self.select(below, limit, x)
    }

    /// The polynomial at `x` by Horner's scheme, one fused multiply-add for each power.
    pub(super) fn polynomial(&mut self, polynomial: Polynomial, x: Value) -> Value {
        match self.format {
            Format::Single => self.horner(polynomial.single.iter().map(|&c| f64::from(c)), x),
            Format::Double => self.horner(polynomial.double.iter().copied(), x),
        }
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

    /// Splits off the integer from a number that was rounded by adding [`Format::magic`].
    pub(super) fn split_magic(&mut self, sum: Value) -> Split {
        let magic = self.number(self.format.magic());
        let whole = self.sub(sum, magic);
        let bits = self.bits_of(sum);
        let magic_bits = self.integer(self.format.magic_bits());
        let exponent = self.sub(bits, magic_bits);
        Split { whole, exponent }
    }

    /// `2^exponent` for the exponent of a normal number.
    pub(super) fn power_of_two(&mut self, exponent: Value) -> Value {
        let bias = self.integer(self.format.bias());
        let biased = self.add(exponent, bias);
        let bits = self.shl(biased, self.format.significand());
        self.float_from(bits)
    }

    /// `2^exponent` as a product of two factors, both normal for twice the range of exponents.
    /// A number near 1 multiplied by one and then by the other rounds once, in the last step.
    pub(super) fn two_powers(&mut self, exponent: Value) -> [Value; 2] {
        let half = self.shr(exponent, 1);
        let rest = self.sub(exponent, half);
        [self.power_of_two(half), self.power_of_two(rest)]
    }

    /// `x * factors[0] * factors[1]`.
    pub(super) fn scale(&mut self, x: Value, factors: [Value; 2]) -> Value {
        let once = self.mul(x, factors[0]);
        self.mul(once, factors[1])
    }
}
