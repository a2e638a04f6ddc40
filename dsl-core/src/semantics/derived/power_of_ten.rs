//! exp10, as a power of two and of e.

use super::Meaning;
use super::coefficients;
use super::exponential::limited;
use super::formula::Formula;
use crate::ir::{Approximate, Value};
use crate::semantics::oracle::{Wide, wide};

const INF: f64 = f64::INFINITY;

pub(super) const EXP10: Meaning = Meaning {
    approximate: Some(exp10_approximate),
    values: Some(|_| (0.0, INF)),
    ..Meaning::single(
        exp10,
        |x| wide::power(wide::LN_10.mul(Wide::new(x.clamp(-400.0, 400.0)))).high,
        1.0,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (1.0, 10.0),
            (1e30, INF),
            (-1e30, 0.0),
        ],
    )
};

/// `10^x`, with `x = n log10 2 + rest`, as `2^n e^(rest ln 10)`.
fn exp10(formula: &mut Formula<'_>, x: Value) -> Value {
    let x = limited(formula, x, (-57.4, 38.9));
    let scaling = formula.scaling(x);
    let log2_10 = formula.number(std::f64::consts::LOG2_10);
    let rounded = formula.rounded(scaling, x, Some(log2_10));
    let log10_2 = formula.number(-LOG10_2_HIGH);
    let log10_2_low = formula.number(LOG10_2_HIGH - std::f64::consts::LOG10_2);
    // Exact, as in `rest`.
    let high = formula.fma(rounded.whole, log10_2, x);
    let rest = formula.fma(rounded.whole, log10_2_low, high);
    let lost = formula.sub(high, rest);
    let tail = formula.fma(rounded.whole, log10_2_low, lost);
    let ln_10 = formula.number(std::f64::consts::LN_10);
    let ln_10_single = f64::from(std::f64::consts::LN_10 as f32);
    let ln_10_low = formula.number(std::f64::consts::LN_10 - ln_10_single);
    let power = formula.mul(rest, ln_10);
    let negated = formula.neg(power);
    let lost = formula.fma(rest, ln_10, negated);
    let lost = formula.fma(rest, ln_10_low, lost);
    let lost = formula.fma(tail, ln_10, lost);
    let series = formula.polynomial(coefficients::EXP, power);
    let square = formula.mul(power, power);
    let curve = formula.fma(series, square, lost);
    let less_one = formula.add(power, curve);
    let one = formula.number(1.0);
    let power = formula.add(one, less_one);
    formula.scale(power, rounded.power)
}

/// log10 2 in 24 bits.
const LOG10_2_HIGH: f64 = 0.301_029_980_182_647_7;

/// `2^(x log2 10)`.
fn exp10_approximate(formula: &mut Formula<'_>, x: Value) -> Value {
    let log2_10 = formula.number(std::f64::consts::LOG2_10);
    let scaled = formula.mul(x, log2_10);
    formula.approximate(Approximate::Exp2, scaled)
}
