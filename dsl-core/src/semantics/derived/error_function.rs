//! erf, erfc and erfinv. erf: an odd polynomial up to 1, beyond it `1 - e^Q(|x|)` with a polynomial for
//! `log(erfc(|x|))`.

use super::coefficients::{self, ERFC_DOUBLE, ERFINV_FAR, ERFINV_NEAR, LOG_ERFC};
use super::exponential::{exp, exp_near};
use super::formula::{Format, Formula};
use super::logarithm::log;
use super::meaning::{Double, Tried};
use super::{Domain, Meaning, rounded};
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::{self, wide};

pub(super) const ERF: Meaning = Meaning {
    define: erf,
    shorter: &[],
    approximate: None,
    native: None,
    rounded: Some((Domain::ANYTHING, rounded::erf)),
    reference: oracle::erf,
    double: Some(Double {
        reference: wide::erf,
        max_ulp: 0.9499,
    }),
    max_ulp: 1.0851,
    tried: Tried::All,
    values: Some(|_| (-1.0, 1.0)),
    special: &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (f64::INFINITY, 1.0),
        (f64::NEG_INFINITY, -1.0),
        (9.0, 1.0),
    ],
};

pub(super) const ERFC: Meaning = Meaning {
    values: Some(|_| (0.0, 2.0)),
    ..Meaning::single(
        |formula, x| formula.in_double(x, erfc),
        oracle::erfc,
        0.51,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (f64::INFINITY, 0.0),
            (f64::NEG_INFINITY, 2.0),
            (11.0, 0.0),
        ],
    )
};

pub(super) const ERFINV: Meaning = Meaning::single(
    |formula, x| formula.in_double(x, erfinv),
    oracle::gamma::erfinv,
    0.5003,
    &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (1.0, f64::INFINITY),
        (-1.0, f64::NEG_INFINITY),
        (2.0, f64::NAN),
        (f64::NEG_INFINITY, f64::NAN),
    ],
);

/// `x P(w)` with `w = -log(1 - x^2)`, or with the root of `w` where that is above 5 (M. Giles, Approximating the
/// erfinv function, 2010).
fn erfinv(formula: &mut Formula<'_>, x: Value) -> Value {
    let one = formula.number(1.0);
    let three = formula.number(3.0);
    let below = formula.sub(one, x);
    let above = formula.add(one, x);
    let product = formula.mul(below, above);
    let logarithm = log(formula, product);
    let w = formula.neg(logarithm);
    // Of an f32 below 1 it is at most 16.
    let w = formula.at_most(w, 16.0);
    let near = formula.horner(ERFINV_NEAR.iter().copied(), w);
    let root = formula.sqrt(w);
    let root = formula.sub(root, three);
    let far = formula.horner(ERFINV_FAR.iter().copied(), root);
    let is_near = formula.compare(CompareOp::Lt, w, 5.0);
    let slope = formula.select(is_near, near, far);
    let magnitude = formula.abs(x);
    let is_one = formula.compare(CompareOp::Eq, magnitude, 1.0);
    let infinity = formula.number(f64::INFINITY);
    let slope = formula.select(is_one, infinity, slope);
    formula.mul(x, slope)
}

/// `1 - erf(x)`: `e^(-x^2) (1 + 2 a)^-1` times a polynomial in `(a - 3) / (a + 3)` with `a = |x|` (M. M. Shepherd and
/// J. G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc x, 1981), and 2 less that for negative `x`.
fn erfc(formula: &mut Formula<'_>, x: Value) -> Value {
    let magnitude = formula.abs(x);
    let limited = formula.at_most(magnitude, 10.25);
    let one = formula.number(1.0);
    let two = formula.number(2.0);
    let three = formula.number(3.0);
    let below = formula.sub(limited, three);
    let above = formula.add(limited, three);
    let ratio = formula.div(below, above);
    let series = formula.horner(ERFC_DOUBLE.iter().copied(), ratio);
    let divisor = formula.fma(limited, two, one);
    let slope = formula.div(series, divisor);
    let square = formula.mul(limited, limited);
    let negated = formula.neg(square);
    let power = exp(formula, negated);
    let right = formula.mul(power, slope);
    let left = formula.sub(two, right);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    formula.select(negative, left, right)
}

/// Where the second polynomial is centred.
const CENTER: f64 = 1.25;

/// From this magnitude on erf is 1 in every bit.
const fn saturation(format: Format) -> f64 {
    match format {
        Format::Single => 4.0,
        Format::Double => 6.0,
    }
}

/// Error function.
fn erf(formula: &mut Formula<'_>, x: Value) -> Value {
    let square = formula.mul(x, x);
    let slope = formula.polynomial(coefficients::ERF, square);
    let near = formula.fma(slope, x, x);

    let magnitude = formula.abs(x);
    let limited = formula.number_at_most(magnitude, saturation(formula.format));
    let center = formula.number(CENTER);
    let from_center = formula.sub(limited, center);
    let log_erfc = formula.polynomial(LOG_ERFC, from_center);
    let erfc = exp_near(formula, log_erfc);
    let one = formula.number(1.0);
    let far = formula.sub(one, erfc);
    let negated = formula.neg(far);
    let negative = formula.compare(CompareOp::Lt, x, 0.0);
    let far = formula.select(negative, negated, far);
    // NaN is in `near`.
    let is_far = formula.compare(CompareOp::Ge, magnitude, 1.0);
    formula.select(is_far, far, near)
}
