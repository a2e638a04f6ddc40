//! 1 / x and 1 / sqrt(x), by correctly rounded operations, and the cube root.

use super::Meaning;
use super::formula::{Format, Formula};
use super::hyperbolic::signed;
use super::meaning::{Double, Tried};
use crate::ir::{Approximate, CompareOp, Value};
use crate::semantics::oracle::wide;

const INF: f64 = f64::INFINITY;

pub(super) const RSQRT: Meaning = Meaning {
    define: rsqrt,
    shorter: &[],
    approximate: Some(|formula, x| formula.approximate(Approximate::Rsqrt, x)),
    native: None,
    rounded: None,
    reference: |x| 1.0 / x.sqrt(),
    double: Some(Double {
        reference: wide::rsqrt,
        max_ulp: 0.5001,
    }),
    max_ulp: 0.5001,
    tried: Tried::All,
    values: None,
    special: &[
        (4.0, 0.5),
        (0.0, INF),
        (-0.0, -INF),
        (INF, 0.0),
        (-1.0, f64::NAN),
    ],
};

pub(super) const RECIPROCAL: Meaning = Meaning {
    define: reciprocal,
    shorter: &[],
    approximate: Some(|formula, x| formula.approximate(Approximate::Reciprocal, x)),
    native: None,
    rounded: None,
    reference: |x| 1.0 / x,
    double: Some(Double {
        reference: wide::reciprocal,
        max_ulp: 0.5,
    }),
    max_ulp: 0.5,
    tried: Tried::All,
    values: None,
    special: &[(1.0, 1.0), (0.0, INF), (-0.0, -INF), (INF, 0.0)],
};

pub(super) const CBRT: Meaning = Meaning {
    double: Some(Double {
        reference: wide::cbrt,
        max_ulp: 0.51,
    }),
    ..Meaning::single(
        |formula, x| match formula.format {
            Format::Single => formula.in_double(x, cbrt),
            Format::Double => cbrt_double(formula, x),
        },
        f64::cbrt,
        0.5001,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (8.0, 2.0),
            (-27.0, -3.0),
            (INF, INF),
            (-INF, -INF),
        ],
    )
};

/// The cube root of a number from `f32`, by two steps of Halley's iteration, from a third of the exponent
/// and of the fraction (W. Kahan and FreeBSD's `cbrtf`).
fn cbrt(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let number = formula.number_at_most(magnitude, f64::from(f32::MAX));
    let root = halley(formula, number);
    let is_finite = formula.compare(CompareOp::Lt, magnitude, INF);
    let root = formula.select(is_finite, root, magnitude);
    signed(formula, x, root)
}

/// The cube root of any number: of one whose cubes are normal, and a step of Newton's iteration with the exact
/// rest.
fn cbrt_double(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let number = formula.number_at_most(magnitude, f64::MAX);
    let one = formula.number(1.0);
    let is_little = formula.compare(CompareOp::Lt, number, 2f64.powi(-600));
    let is_great = formula.compare(CompareOp::Gt, number, 2f64.powi(600));
    let factor = |formula: &mut Formula<'_>, exponent: i32| {
        let (up, down) = (
            formula.number(2f64.powi(exponent)),
            formula.number(2f64.powi(-exponent)),
        );
        let factor = formula.select(is_great, down, one);
        formula.select(is_little, up, factor)
    };
    let scale = factor(formula, 600);
    let number = formula.mul(number, scale);
    let root = halley(formula, number);
    let square = formula.mul(root, root);
    let negated = formula.neg(square);
    let square_low = formula.fma(root, root, negated);
    let rest = formula.fma(negated, root, number);
    let minus_low = formula.neg(square_low);
    let rest = formula.fma(minus_low, root, rest);
    let third = formula.number(1.0 / 3.0);
    let slope = formula.div(rest, square);
    let root = formula.fma(slope, third, root);
    let scale = factor(formula, -200);
    let root = formula.mul(root, scale);
    let is_finite = formula.compare(CompareOp::Lt, magnitude, INF);
    let root = formula.select(is_finite, root, magnitude);
    signed(formula, x, root)
}

/// The cube root of a positive normal number to 45 bits.
fn halley(formula: &mut Formula<'_>, number: Value) -> Value {
    let bits = formula.bits_of(number);
    let upper = formula.shr(bits, 32);
    // A third of an integer of 32 bits.
    let third = formula.integer(0xaaaa_aaab);
    let product = formula.mul(upper, third);
    let upper = formula.shr(product, 33);
    let offset = formula.integer(715_094_163);
    let upper = formula.add(upper, offset);
    let guess = formula.shl(upper, 32);
    let mut root = formula.float_from(guess);
    for _ in 0..2 {
        let square = formula.mul(root, root);
        let cube = formula.mul(square, root);
        let twice = formula.add(number, number);
        let above = formula.add(twice, cube);
        let twice = formula.add(cube, cube);
        let below = formula.add(twice, number);
        let quotient = formula.div(above, below);
        root = formula.mul(root, quotient);
    }
    root
}

/// `1 / sqrt(x)`: the quotient of rounded operations, and what both roundings left, each exact or of one rounding.
fn rsqrt(formula: &mut Formula<'_>, x: Value) -> Value {
    let root = formula.sqrt(x);
    let quotient = reciprocal(formula, root);
    let minus_root = formula.neg(root);
    let one = formula.number(1.0);
    let of_quotient = formula.fma(minus_root, quotient, one);
    let of_both = formula.fma(x, quotient, minus_root);
    let minus_both = formula.neg(of_both);
    let twice = formula.fma(minus_both, quotient, of_quotient);
    let half = formula.number(0.5);
    let slope = formula.mul(quotient, half);
    let corrected = formula.fma(slope, twice, quotient);
    // Zero and infinity leave NaN.
    let is_ordinary = formula.compare(CompareOp::Lt, of_quotient, 1.0);
    formula.select(is_ordinary, corrected, quotient)
}

/// `1 / x`.
fn reciprocal(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    formula.div(one, x)
}
