//! sin, cos and tan of `f32`.
//!
//! `|x| = n pi/2 + r`: `r` by three constants whose first product is exact (W. J. Cody and W. Waite,
//! Software Manual for the Elementary Functions, 1980) and, for great arguments, by those 96 bits of 2/pi that
//! decide the fraction of a quarter turn (M. Payne and R. Hanek, Radian Reduction for Trigonometric Functions,
//! 1983). `r` is a sum of two numbers.

use super::coefficients::{COS_SINGLE, SIN_SINGLE};
use super::formula::Formula;
use super::{Domain, Meaning};
use crate::ir::{CompareOp, DType, Value};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

pub(super) const SIN: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| sin(formula, x, reduce_moderate))],
    ..Meaning::single(
        |formula, x| sin(formula, x, reduce),
        f64::sin,
        1.0,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    )
};

pub(super) const COS: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| cos(formula, x, reduce_moderate))],
    ..Meaning::single(
        |formula, x| cos(formula, x, reduce),
        f64::cos,
        1.0,
        &[(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    )
};

pub(super) const TAN: Meaning = Meaning {
    shorter: &[(MODERATE, |formula, x| tan(formula, x, reduce_moderate))],
    ..Meaning::single(
        |formula, x| tan(formula, x, reduce),
        f64::tan,
        1.0,
        &[(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    )
};

/// Up to this magnitude the products of `n` and three constants suffice.
const MODERATE: Domain = Domain {
    least: -524_288.0,
    greatest: 524_288.0,
};

/// pi/2 in three numbers; the first is below it, so that an exact zero keeps to be one.
const HALF_PI: [f64; 3] = [
    1.570796251296997,
    7.549790126404332e-08,
    -1.7151245100058819e-15,
];

/// 2/pi in 32-bit words, the highest first, after 25 zero bits: the bits that decide the quarter of a number
/// with exponent `e` and the fraction within it begin at bit `e`.
const TWO_OVER_PI: [u32; 7] = [
    0x51,
    0x7cc1_b727,
    0x220a_94fe,
    0x13ab_e8fa,
    0x9a6e_e06d,
    0xb14a_cc9e,
    0x21c8_20ff,
];

/// Below this magnitude sin and tan are their argument.
const TINY: f64 = 0.000_244_140_625;

/// A magnitude as `quarter * pi/2 + high + low`.
struct Reduced {
    /// An integer, of which the lowest two bits count.
    quarter: Value,
    high: Value,
    low: Value,
}

type Reduce = fn(&mut Formula<'_>, Value) -> Reduced;

/// An unevaluated sum.
struct Pair {
    high: Value,
    low: Value,
}

/// Sine.
fn sin(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let is_odd = bit(formula, reduced.quarter, 1);
    let high = formula.select(is_odd, cosine.high, sine.high);
    let low = formula.select(is_odd, cosine.low, sine.low);
    let value = formula.add(high, low);
    let is_lower = bit(formula, reduced.quarter, 2);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let is_negated = formula.xor(is_lower, is_negative);
    let negated = formula.neg(value);
    let value = formula.select(is_negated, negated, value);
    or_itself(formula, x, magnitude, value)
}

/// Cosine.
fn cos(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let is_odd = bit(formula, reduced.quarter, 1);
    let high = formula.select(is_odd, sine.high, cosine.high);
    let low = formula.select(is_odd, sine.low, cosine.low);
    let value = formula.add(high, low);
    let one = formula.integer(1);
    let next = formula.add(reduced.quarter, one);
    let is_negated = bit(formula, next, 2);
    let negated = formula.neg(value);
    formula.select(is_negated, negated, value)
}

/// Sine over cosine. The quotient is corrected by what both and the division lost.
fn tan(formula: &mut Formula<'_>, x: Value, reduce: Reduce) -> Value {
    let magnitude = formula.abs(x);
    let reduced = reduce(formula, magnitude);
    let (sine, cosine) = both(formula, &reduced);
    let (sine, cosine) = (sum(formula, &sine), sum(formula, &cosine));
    let is_odd = bit(formula, reduced.quarter, 1);
    let above = formula.select(is_odd, cosine.high, sine.high);
    let above_low = formula.select(is_odd, cosine.low, sine.low);
    let below = formula.select(is_odd, sine.high, cosine.high);
    let below_low = formula.select(is_odd, sine.low, cosine.low);
    let one = formula.number(1.0);
    let reciprocal = formula.div(one, below);
    let quotient = formula.mul(above, reciprocal);
    let negated = formula.neg(quotient);
    let rest = formula.fma(negated, below, above);
    let low = formula.fma(negated, below_low, above_low);
    let rest = formula.add(rest, low);
    let value = formula.fma(rest, reciprocal, quotient);
    let is_negative = formula.compare(CompareOp::Lt, x, 0.0);
    let is_negated = formula.xor(is_odd, is_negative);
    let negated = formula.neg(value);
    let value = formula.select(is_negated, negated, value);
    or_itself(formula, x, magnitude, value)
}

/// `x` where that is tiny, which keeps -0; else `value`.
fn or_itself(formula: &mut Formula<'_>, x: Value, magnitude: Value, value: Value) -> Value {
    let is_tiny = formula.compare(CompareOp::Lt, magnitude, TINY);
    formula.select(is_tiny, x, value)
}

/// Whether an integer has this bit.
fn bit(formula: &mut Formula<'_>, x: Value, bit: u64) -> Value {
    let mask = formula.integer(bit);
    let zero = formula.integer(0);
    let masked = formula.and(x, mask);
    formula.compare_values(CompareOp::Ne, masked, zero)
}

fn sum(formula: &mut Formula<'_>, pair: &Pair) -> Pair {
    let high = formula.add(pair.high, pair.low);
    let lost = formula.sub(pair.high, high);
    let low = formula.add(lost, pair.low);
    Pair { high, low }
}

/// Sine and cosine of a reduced argument.
fn both(formula: &mut Formula<'_>, reduced: &Reduced) -> (Pair, Pair) {
    let Reduced { high: r, low, .. } = *reduced;
    let square = formula.mul(r, r);
    let one = formula.number(1.0);
    let minus_half = formula.number(-0.5);
    let flat = formula.fma(square, minus_half, one);

    let series = formula.horner(SIN_SINGLE.iter().map(|&c| f64::from(c)), square);
    let cube = formula.mul(r, square);
    let tail = formula.mul(low, flat);
    let sine = Pair {
        high: r,
        low: formula.fma(cube, series, tail),
    };

    let series = formula.horner(COS_SINGLE.iter().map(|&c| f64::from(c)), square);
    let fourth = formula.mul(square, square);
    // Exact: what rounding `flat` lost, and what rounding the square did.
    let lost = formula.sub(one, flat);
    let lost = formula.fma(square, minus_half, lost);
    let negated = formula.neg(square);
    let square_low = formula.fma(r, r, negated);
    let lost = formula.fma(square_low, minus_half, lost);
    let curve = formula.fma(fourth, series, lost);
    let negated = formula.neg(low);
    let cosine = Pair {
        high: flat,
        low: formula.fma(negated, r, curve),
    };
    (sine, cosine)
}

/// Reduces a magnitude within [`MODERATE`], or NaN.
fn reduce_moderate(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let number = formula.number_at_most(x, MODERATE.greatest);
    let two_over_pi = formula.number(std::f64::consts::FRAC_2_PI);
    let magic = formula.number(formula.format.magic(0));
    let sum = formula.fma(number, two_over_pi, magic);
    let whole = formula.sub(sum, magic);
    let quarter = formula.bits_of(sum);
    let [first, second, third] = HALF_PI.map(|part| formula.number(-part));
    // Exact: the product and x agree in their leading bits.
    let rest = formula.fma(whole, first, x);
    let product = formula.mul(whole, second);
    let negated = formula.neg(product);
    let product_low = formula.fma(whole, second, negated);
    // What the sum loses is found exactly even where the product is greater than the rest, since the rest
    // is a multiple of the product's last place.
    let high = formula.add(rest, product);
    let taken = formula.sub(high, rest);
    let lost = formula.sub(product, taken);
    let low = formula.fma(whole, third, product_low);
    let low = formula.add(lost, low);
    Reduced { quarter, high, low }
}

/// Reduces any magnitude.
fn reduce(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let moderate = reduce_moderate(formula, x);
    let great = reduce_great(formula, x);
    let is_great = formula.compare(CompareOp::Gt, x, MODERATE.greatest);
    Reduced {
        quarter: formula.select(is_great, great.quarter, moderate.quarter),
        high: formula.select(is_great, great.high, moderate.high),
        low: formula.select(is_great, great.low, moderate.low),
    }
}

/// Reduces a magnitude from 1 on: the significand times 96 bits of 2/pi, modulo 4, is a quarter and
/// a fraction of 62 bits.
fn reduce_great(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let number = formula.number_at_most(x, f64::from(f32::MAX));
    let bits = formula.bits_of(number);
    let words = window(formula, bits);
    let fraction_mask = formula.integer(0x007f_ffff);
    let leading = formula.integer(0x0080_0000);
    let significand = formula.and(bits, fraction_mask);
    let significand = formula.or(significand, leading);
    let thirty_two = formula.double_integer(32);
    let top = formula.mul(significand, words[0]);
    let top = formula.to(top, DType::U64);
    let top = formula.shift_left(top, thirty_two);
    let wide = formula.to(significand, DType::U64);
    let [_, middle, last] = words.map(|word| formula.to(word, DType::U64));
    let middle = formula.mul(wide, middle);
    let last = formula.mul(wide, last);
    let last = formula.shift_right(last, thirty_two);
    let turn = formula.add(top, middle);
    let turn = formula.add(turn, last);

    let upper = formula.shift_right(turn, thirty_two);
    let upper = formula.to(upper, DType::U32);
    let quarter = formula.shr(upper, 29);
    let one = formula.integer(1);
    let quarter = formula.add(quarter, one);
    let quarter = formula.shr(quarter, 1);
    // Without the quarter, and signed, it is the distance to the nearest one.
    let two = formula.double_integer(2);
    let fraction = formula.shift_left(turn, two);
    // inf - inf is NaN.
    let nothing = formula.sub(x, x);
    let (high, low) = radians(formula, fraction, nothing);
    Reduced { quarter, high, low }
}

/// Three words of 2/pi that begin at the bit which is the exponent.
fn window(formula: &mut Formula<'_>, bits: Value) -> [Value; 3] {
    let one = formula.integer(0x0080_0000);
    let raised = formula.add(bits, one);
    // The field of the exponent, one higher, is the exponent modulo 128.
    let by_two = bit(formula, raised, 1 << 29);
    let by_one = bit(formula, raised, 1 << 28);
    let words = TWO_OVER_PI.map(|word| formula.integer(u64::from(word)));
    let words: [Value; 5] =
        std::array::from_fn(|at| formula.select(by_two, words[at + 2], words[at]));
    let words: [Value; 4] =
        std::array::from_fn(|at| formula.select(by_one, words[at + 1], words[at]));
    let places = formula.shr(raised, 23);
    let mask = formula.integer(31);
    let places = formula.and(places, mask);
    let places = formula.to(places, DType::U64);
    let thirty_two = formula.double_integer(32);
    let words = words.map(|word| formula.to(word, DType::U64));
    std::array::from_fn(|at| {
        let upper = formula.shift_left(words[at], thirty_two);
        let both = formula.or(upper, words[at + 1]);
        let shifted = formula.shift_left(both, places);
        let word = formula.shift_right(shifted, thirty_two);
        formula.to(word, DType::U32)
    })
}

/// `fraction / 2^64` quarter turns, signed, in radians, as a sum of two numbers. `nothing` is 0 or NaN.
fn radians(formula: &mut Formula<'_>, fraction: Value, nothing: Value) -> (Value, Value) {
    let upper = piece(formula, fraction, 32, 0xffff_ff00);
    let middle = piece(formula, fraction, 16, 0x00ff_ffff);
    let lower = piece(formula, fraction, 0, 0xffff);
    let middle_unit = formula.number(2f64.powi(-16));
    let lower_unit = formula.number(2f64.powi(-32));
    let high = formula.fma(middle, middle_unit, upper);
    let taken = formula.sub(upper, high);
    let low = formula.fma(middle, middle_unit, taken);
    let low = formula.fma(lower, lower_unit, low);
    let half_pi = std::f64::consts::FRAC_PI_2;
    let unit = formula.number(half_pi * 2f64.powi(-32));
    let unit_low = (half_pi - f64::from(half_pi as f32)) * 2f64.powi(-32);
    let unit_low = formula.number(unit_low);
    let angle = formula.fma(high, unit, nothing);
    let negated = formula.neg(angle);
    let lost = formula.fma(high, unit, negated);
    let lost = formula.fma(high, unit_low, lost);
    let lost = formula.fma(low, unit, lost);
    (angle, lost)
}

/// The bits of `fraction` from `from` on that are in the mask, as a float: exact, and signed.
fn piece(formula: &mut Formula<'_>, fraction: Value, from: u64, mask: u64) -> Value {
    let from = formula.double_integer(from);
    let shifted = formula.shift_right(fraction, from);
    let word = formula.to(shifted, DType::U32);
    let mask = formula.integer(mask);
    let masked = formula.and(word, mask);
    let signed = formula.to(masked, DType::I32);
    formula.to(signed, DType::F32)
}
