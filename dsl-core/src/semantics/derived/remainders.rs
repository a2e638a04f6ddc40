//! What divisions of floats leave: fmod, and the remainder of IEEE 754. Both are exact.
//!
//! The significand of the dividend is moved up by the difference of the exponents and reduced by the significand of the
//! divisor: of `f32` some places at a time, by divisions of integers, of `f64` by one product with the power of two that
//! squarings give.

use super::formula::Formula;
use super::pairs::{by_width, is_negative};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Value};

/// Bits of the significand of an `f64` below those that an `f32` has.
const SPARE: u64 = 29;

/// Places of one step: what is moved has 26 bits.
const STEP: u64 = 38;

/// Steps from the greatest exponent to the least: 277 places.
const STEPS: usize = 8;

/// Squarings after which a power of two has any exponent of 11 bits, the highest five of which it begins with.
const SQUARINGS: u64 = 6;

/// Half of what the exponent of the unit of a significand of `f64` lacks to that of half of the least number, 1076.
const HALF_LEAST: u64 = 538;

/// `x - n y` with `x / y` rounded toward zero for `n`, of two floats of one type and one shape.
pub fn fmod(builder: &mut Builder, x: Value, y: Value) -> Value {
    by_width(
        builder,
        [x, y],
        |formula, x, y| left(formula, [x, y], false, divide),
        |formula, x, y| left(formula, [x, y], false, divide_long),
    )
}

/// `x - n y` with the integer nearest to `x / y` for `n`, of two the even one, of two floats of one type
/// and one shape.
pub fn remainder(builder: &mut Builder, x: Value, y: Value) -> Value {
    by_width(
        builder,
        [x, y],
        |formula, x, y| left(formula, [x, y], true, divide),
        |formula, x, y| left(formula, [x, y], true, divide_long),
    )
}

fn left(formula: &mut Formula<'_>, [x, y]: [Value; 2], nearest: bool, divide: Divide) -> Value {
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
    for factor in division.unit {
        rest = formula.mul(rest, factor);
    }
    let negated = formula.neg(rest);
    let negative = is_negative(formula, x);
    let rest = formula.select(negative, negated, rest);
    let beyond = formula.sub(divisor, dividend);
    let is_small = formula.compare_values(CompareOp::Lt, dividend, beyond);
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
    /// Factors of what an integer of 1 stands for.
    unit: Vec<Value>,
}

type Divide = fn(&mut Formula<'_>, Value, Value) -> Division;

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
        unit: vec![formula.float_from(unit)],
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

fn divide_long(formula: &mut Formula<'_>, x: Value, y: Value) -> Division {
    let ((x, above), (y, below)) = (scientific_long(formula, x), scientific_long(formula, y));
    let divisor = formula.shl(y, 1);
    // Twice the divisor, so that the rest tells whether the quotient is odd.
    let modulus = formula.shl(y, 2);
    let one = formula.integer(1);
    let raised = formula.add(above, one);
    let places = formula.sub(raised, below);
    let ring = Ring::new(formula, modulus);
    let power = ring.power_of_two(formula, places);
    let rest = ring.product(formula, x, power);
    let is_odd = formula.compare_values(CompareOp::Ge, rest, divisor);
    let less = formula.sub(rest, divisor);
    let half = formula.shr(below, 1);
    let other = formula.sub(below, half);
    let unit = [half, other].map(|exponent| {
        let bias = formula.integer(formula.format.bias() - HALF_LEAST);
        let field = formula.add(exponent, bias);
        let bits = formula.shl(field, formula.format.significand());
        formula.float_from(bits)
    });
    Division {
        rest: formula.select(is_odd, less, rest),
        divisor,
        is_odd,
        unit: unit.to_vec(),
    }
}

/// The significand of an `f64` magnitude, of 53 bits, and the field of its exponent, which of a subnormal number is 1.
fn scientific_long(formula: &mut Formula<'_>, x: Value) -> (Value, Value) {
    let places = formula.format.significand();
    let bits = formula.bits_of(x);
    let fraction = formula.integer((1 << places) - 1);
    let significand = formula.and(bits, fraction);
    let field = formula.shr(bits, places);
    let one = formula.integer(1);
    let leading = formula.lesser(field, one);
    let raised = formula.add(field, one);
    let exponent = formula.sub(raised, leading);
    let leading = formula.shl(leading, places);
    (formula.or(significand, leading), exponent)
}

/// Integers by a modulus below 2^55.
struct Ring {
    modulus: Value,
    /// Near 1 / modulus.
    reciprocal: Value,
    /// 32 times the modulus.
    raise: Value,
}

impl Ring {
    fn new(formula: &mut Formula<'_>, modulus: Value) -> Self {
        let float = formula.to(modulus, DType::F64);
        let one = formula.number(1.0);
        Self {
            modulus,
            reciprocal: formula.div(one, float),
            raise: formula.shl(modulus, 5),
        }
    }

    /// What is left of `a b`, with `a` below 2^53 or the modulus, and `b` below the modulus. The quotient that floats give
    /// is off by 25 at most: six roundings of a number below 2^55, and what is cut off.
    fn product(&self, formula: &mut Formula<'_>, a: Value, b: Value) -> Value {
        let [x, y] = [a, b].map(|it| formula.to(it, DType::F64));
        let product = formula.mul(x, y);
        let quotient = formula.mul(product, self.reciprocal);
        let quotient = formula.to(quotient, DType::U64);
        let product = formula.mul(a, b);
        let reduced = formula.mul(quotient, self.modulus);
        let rest = formula.sub(product, reduced);
        let rest = formula.add(rest, self.raise);
        formula.rem(rest, self.modulus)
    }

    /// What is left of 2^exponent, with an exponent below 2048.
    fn power_of_two(&self, formula: &mut Formula<'_>, exponent: Value) -> Value {
        let one = formula.integer(1);
        let highest = formula.shr(exponent, SQUARINGS);
        let power = formula.shift_left(one, highest);
        let mut power = formula.rem(power, self.modulus);
        for bit in (0..SQUARINGS).rev() {
            let squared = self.product(formula, power, power);
            let moved = formula.shr(exponent, bit);
            let is_set = formula.and(moved, one);
            let doubled = formula.shift_left(squared, is_set);
            let less = formula.sub(doubled, self.modulus);
            let is_beyond = formula.compare_values(CompareOp::Ge, doubled, self.modulus);
            power = formula.select(is_beyond, less, doubled);
        }
        power
    }
}
