//! The nearest integers.

use super::Meaning;
use super::formula::Formula;
use super::hyperbolic::signed;
use super::meaning::{Double, Tried};
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::Wide;

const INF: f64 = f64::INFINITY;

pub(super) const ROUND: Meaning = Meaning {
    double: Some(Double {
        reference: |x| Wide::new(x.round_ties_even()),
        max_ulp: 0.0,
    }),
    tried: Tried::All,
    ..Meaning::single(
        round,
        f64::round_ties_even,
        0.0,
        &[
            (0.5, 0.0),
            (-0.5, -0.0),
            (1.5, 2.0),
            (2.5, 2.0),
            (-0.0, -0.0),
            (INF, INF),
        ],
    )
};

pub(super) const ROUND_HALF_AWAY: Meaning = Meaning {
    double: Some(Double {
        reference: |x| Wide::new(x.round()),
        max_ulp: 0.0,
    }),
    tried: Tried::All,
    ..Meaning::single(
        round_half_away,
        f64::round,
        0.0,
        &[
            (0.5, 1.0),
            (-0.5, -1.0),
            (0.25, 0.0),
            (-0.25, -0.0),
            (2.5, 3.0),
            (-0.0, -0.0),
            (-INF, -INF),
        ],
    )
};

/// The nearest integer, of two the even one: what a sum with a number rounds to whose last place is 1.
fn round(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let great = 2f64.powi(formula.format.significand() as i32);
    let unit = formula.number(great);
    let sum = formula.add(magnitude, unit);
    let whole = formula.sub(sum, unit);
    let has_fraction = formula.compare(CompareOp::Lt, magnitude, great);
    let nearest = signed(formula, x, whole);
    formula.select(has_fraction, nearest, x)
}

/// The nearest integer, of two the one farther from zero.
fn round_half_away(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let whole = formula.trunc(magnitude);
    let fraction = formula.sub(magnitude, whole);
    let one = formula.number(1.0);
    let next = formula.add(whole, one);
    let is_up = formula.compare(CompareOp::Ge, fraction, 0.5);
    let nearest = formula.select(is_up, next, whole);
    signed(formula, x, nearest)
}
