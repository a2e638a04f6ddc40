//! 1 / x and 1 / sqrt(x), by correctly rounded operations.

use super::Meaning;
use super::formula::Formula;
use crate::ir::{Approximate, Value};
use crate::semantics::oracle::wide;

const INF: f64 = f64::INFINITY;

pub(super) const RSQRT: Meaning = Meaning {
    define: rsqrt,
    not_positive: None,
    fraction: None,
    approximate: Some(|formula, x| formula.approximate(Approximate::Rsqrt, x)),
    reference: |x| 1.0 / x.sqrt(),
    reference_wide: wide::rsqrt,
    max_ulp: [1.4904, 1.4807],
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
    not_positive: None,
    fraction: None,
    approximate: Some(|formula, x| formula.approximate(Approximate::Reciprocal, x)),
    reference: |x| 1.0 / x,
    reference_wide: wide::reciprocal,
    max_ulp: [0.5, 0.5],
    special: &[(1.0, 1.0), (0.0, INF), (-0.0, -INF), (INF, 0.0)],
};

/// `1 / sqrt(x)`.
fn rsqrt(formula: &mut Formula<'_>, x: Value) -> Value {
    let root = formula.sqrt(x);
    reciprocal(formula, root)
}

/// `1 / x`.
fn reciprocal(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    formula.div(one, x)
}
