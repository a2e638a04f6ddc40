//! Ranges of `f32` that follow from how a number was made, and not from the ranges of operands alone: what the
//! definitions of functions are made of.

use super::{Facts, Floats, Range, Rounding};
use crate::ir::{BinaryOp, DType, Op, TernaryOp, UnaryOp, Value, op};

/// From the first number on the last bit of an `f32` is 1, up to the second.
const INTEGERS: (f64, f64) = ((1 << 23) as f64, ((1 << 24) - 1) as f64);

impl Floats<'_> {
    /// The range of what `op` makes, an `f32`, by all that this page knows.
    pub(super) fn identity(&self, ranges: &Facts<Range>, op: &Op) -> Option<Range> {
        self.power(ranges, op)
            .or_else(|| self.fraction(ranges, op))
            .or_else(|| self.rest(ranges, op))
            .or_else(|| self.lost(ranges, op))
    }

    fn fma(op: &Op) -> Option<(Value, Value, Value)> {
        let Op::Ternary(op::Ternary {
            op: TernaryOp::Fma,
            a,
            b,
            c,
        }) = op
        else {
            return None;
        };
        Some((*a, *b, *c))
    }

    fn binary(op: &Op, wanted: BinaryOp) -> Option<(Value, Value)> {
        let Op::Binary(op::Binary { op, lhs, rhs }) = op else {
            return None;
        };
        (*op == wanted).then_some((*lhs, *rhs))
    }

    /// The number that fills an `f32`.
    fn number(&self, value: Value) -> Option<f64> {
        let literal = self.constant(value)?;
        (literal.dtype == DType::F32).then(|| literal.float())?
    }

    /// `x - (x + b)` and `x - fma(a, b, x)`: what is added, negated, and the error of one rounding.
    fn lost(&self, ranges: &Facts<Range>, op: &Op) -> Option<Range> {
        let (x, sum) = Self::binary(op, BinaryOp::Sub)?;
        let made = self.definition(sum)?;
        let added = match (Self::fma(made), Self::binary(made, BinaryOp::Add)) {
            (Some((a, b, c)), _) if c == x => ranges[a].product(ranges[b], Rounding::Exact),
            (_, Some((lhs, rhs))) if lhs == x => ranges[rhs],
            (_, Some((lhs, rhs))) if rhs == x => ranges[lhs],
            _ => return None,
        };
        let sum = ranges[sum];
        let error = sum.magnitude().high * f64::from(f32::EPSILON) + f64::from(f32::MIN_POSITIVE);
        let bounded = error.is_finite() && added.low.is_finite() && added.high.is_finite();
        let bounds = [-added.high - error, -added.low + error];
        bounded.then(|| Range::hull(&bounds, sum.nan || ranges[x].nan, Rounding::Single))
    }

    /// A power of two of which the exponent is the low bits of an integer in a float: between 2^23 and 2^24
    /// the last bit of an `f32` is 1, and the shift leaves the exponent alone.
    fn power(&self, ranges: &Facts<Range>, op: &Op) -> Option<Range> {
        let Op::Bitcast(op::Bitcast { x: shifted }) = op else {
            return None;
        };
        let (bits, places) = Self::binary(self.definition(*shifted)?, BinaryOp::Shl)?;
        let Some(Op::Bitcast(op::Bitcast { x: sum })) = self.definition(bits) else {
            return None;
        };
        let is_single = self.func.ty(*sum).dtype() == Some(DType::F32);
        let is_shifted = self.constant(places).is_some_and(|it| it.bits == 23);
        let sum = ranges[*sum];
        let is_hidden = || self.hidden.is_some_and(|hidden| hidden[bits]);
        if !is_single || !is_shifted || !is_within(sum, INTEGERS) {
            return None;
        }
        if sum.nan && !is_hidden() {
            return None;
        }
        let whole = |bound: f64| bound as u32 & ((1 << 23) - 1);
        let (low, high) = (whole(sum.low), whole(sum.high));
        if low >> 9 != high >> 9 || high & 0x1ff > 0xfe {
            return None;
        }
        let power = |whole: u32| f64::from(f32::from_bits(whole << 23));
        Some(Range::new((power(low), power(high)), false))
    }

    /// `x - round(x)`, which is exact; infinities leave NaN.
    fn fraction(&self, ranges: &Facts<Range>, op: &Op) -> Option<Range> {
        let (x, whole) = Self::binary(op, BinaryOp::Sub)?;
        let Op::Unary(op::Unary {
            op: UnaryOp::Round,
            x: rounded,
        }) = self.definition(whole)?
        else {
            return None;
        };
        let range = ranges[x];
        let is_unbounded = range.low.is_infinite() || range.high.is_infinite();
        (*rounded == x).then(|| Range::new((-0.5, 0.5), range.nan || is_unbounded))
    }

    /// What is left of `x` where `n` times a constant is added to it, and `n` is `x` times a constant rounded
    /// to an integer: `n` is at most 1/2 off. `n` is `(x * factor + start) - start` in `f32`, with `start` and
    /// the sum between 2^23 and 2^24; the difference is exact.
    fn rest(&self, ranges: &Facts<Range>, op: &Op) -> Option<Range> {
        let (whole, step, x) = Self::fma(op)?;
        let step = self.number(step)?;
        let (sum, start) = Self::binary(self.definition(whole)?, BinaryOp::Sub)?;
        let (of, factor, magic) = Self::fma(self.definition(sum)?)?;
        let (factor, start) = (self.number(factor)?, self.number(start)?);
        let x_range = ranges[x];
        let bound = x_range.magnitude().high;
        let fits = of == x && self.number(magic)? == start;
        let (first, last) = INTEGERS;
        let is_start = start >= first && start <= last;
        if !fits || !is_start || !is_within(ranges[sum], INTEGERS) || bound.is_infinite() {
            return None;
        }
        let most = 0.5 * step.abs() + bound * (1.0 + factor * step).abs();
        // The sum here is of `f64`, whose roundings are far below those of `f32`.
        let most = most * (1.0 + f64::from(f32::EPSILON)) + f64::from(f32::MIN_POSITIVE);
        Some(Range::new((-most, most), x_range.nan))
    }
}

fn is_within(range: Range, (low, high): (f64, f64)) -> bool {
    range.low >= low && range.high <= high
}
