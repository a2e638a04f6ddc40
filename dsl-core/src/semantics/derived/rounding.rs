//! The nearest integer, with ties away from zero.

use super::Meaning;
use super::formula::Formula;
use super::hyperbolic::signed;
use super::meaning::{Double, Tried};
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::Wide;

const INF: f64 = f64::INFINITY;

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
