//! What divisions of floats of at most 32 bits leave: fmod, and the remainder of IEEE 754. Both are exact.
//!
//! The significand of the dividend is moved up by the difference of the exponents, some places at a time, and
//! reduced by a division of integers after each step.

use super::formula::Formula;
use super::pairs::{is_negative, pair_in_double};
use crate::builder::Builder;
use crate::ir::{CompareOp, Value};

/// Bits of the significand of an `f64` below those that an `f32` has.
const SPARE: u64 = 29;

/// Places of one step: what is moved has 26 bits.
const STEP: u64 = 38;

/// Steps from the greatest exponent to the least: 277 places.
const STEPS: usize = 8;

/// `x - n y` with `x / y` rounded toward zero for `n`, of two floats of at most 32 bits, one type and one shape.
pub fn fmod(builder: &mut Builder, x: Value, y: Value) -> Value {
    pair_in_double(builder, x, y, |formula, x, y| left(formula, x, y, false))
}

/// `x - n y` with the integer nearest to `x / y` for `n`, of two the even one, of two floats of at most 32 bits,
/// one type and one shape.
pub fn remainder(builder: &mut Builder, x: Value, y: Value) -> Value {
    pair_in_double(builder, x, y, |formula, x, y| left(formula, x, y, true))
}

fn left(formula: &mut Formula<'_>, x: Value, y: Value, nearest: bool) -> Value {
    let (dividend, divisor) = (formula.abs(x), formula.abs(y));
    let division = divide(formula, dividend, divisor);
    let mut rest = formula.to(division.rest, formula.format.float());
    if nearest {
        let twice = formula.add(division.rest, division.rest);
        let above = formula.compare_values(CompareOp::Gt, twice, division.divisor);
        let tie = formula.compare_values(CompareOp::Eq, twice, division.divisor);
        let tie = formula.and(tie, division.is_odd);
        let is_upper = formula.or(above, tie);
        let whole = formula.to(division.divisor, formula.format.float());
        let less = formula.sub(rest, whole);
        rest = formula.select(is_upper, less, rest);
    }
    let rest = formula.mul(rest, division.unit);
    let negated = formula.neg(rest);
    let negative = is_negative(formula, x);
    let rest = formula.select(negative, negated, rest);
    let half = formula.number(0.5);
    let half = formula.mul(divisor, half);
    let is_small = formula.compare_values(CompareOp::Lt, dividend, half);
    // Between a half and a whole one the steps reduce nothing.
    let rest = formula.select(is_small, x, rest);
    let is_finite = formula.compare(CompareOp::Lt, dividend, f64::INFINITY);
    let is_divisor = formula.compare(CompareOp::Gt, divisor, 0.0);
    let has_rest = formula.and(is_finite, is_divisor);
    let nan = formula.number(f64::NAN);
    formula.select(has_rest, rest, nan)
}

/// A division of magnitudes, of which the dividend is at least half of the divisor.
struct Division {
    /// What is left, and the divisor, as integers.
    rest: Value,
    divisor: Value,
    /// Whether the integral quotient is odd.
    is_odd: Value,
    /// What an integer of 1 stands for.
    unit: Value,
}

fn divide(formula: &mut Formula<'_>, x: Value, y: Value) -> Division {
    let ((x, above), (y, below)) = (scientific(formula, x), scientific(formula, y));
    let one = formula.integer(1);
    let most = formula.integer(STEP);
    let divisor = formula.shl(y, 1);
    // Twice the divisor, so that the rest tells whether the quotient is odd.
    let modulus = formula.shl(y, 2);
    let raised = formula.add(above, one);
    let mut places = formula.sub(raised, below);
    let mut rest = x;
    for _ in 0..STEPS {
        let step = formula.lesser(places, most);
        let moved = formula.shift_left(rest, step);
        rest = formula.rem(moved, modulus);
        places = formula.sub(places, step);
    }
    let is_odd = formula.compare_values(CompareOp::Ge, rest, divisor);
    let less = formula.sub(rest, divisor);
    let places = formula.format.significand();
    let lower = formula.integer(places - SPARE + 1);
    let unit = formula.sub(below, lower);
    let unit = formula.shl(unit, places);
    Division {
        rest: formula.select(is_odd, less, rest),
        divisor,
        is_odd,
        unit: formula.float_from(unit),
    }
}

/// The significand of an `f32` magnitude, of 24 bits, and the field of its exponent as an `f64`.
fn scientific(formula: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let places = formula.format.significand();
    let bits = formula.bits_of(x);
    let fraction = formula.integer((1 << places) - 1);
    let leading = formula.integer(1 << places);
    let significand = formula.and(bits, fraction);
    let significand = formula.or(significand, leading);
    (formula.shr(significand, SPARE), formula.shr(bits, places))
}
