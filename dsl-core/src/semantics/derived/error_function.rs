//! erf: an odd polynomial up to 1, beyond it `1 - e^Q(|x|)` with a polynomial for `log(erfc(|x|))`.

use super::Meaning;
use super::coefficients::{self, LOG_ERFC};
use super::exponential::exp_near;
use super::formula::{Format, Formula};
use super::meaning::Double;
use crate::ir::{CompareOp, Value};
use crate::semantics::oracle::{self, wide};

pub(super) const ERF: Meaning = Meaning {
    define: erf,
    shorter: &[],
    approximate: None,
    reference: oracle::erf,
    double: Some(Double {
        reference: wide::erf,
        max_ulp: 0.9499,
    }),
    max_ulp: 1.0851,
    values: Some(|_| (-1.0, 1.0)),
    special: &[
        (0.0, 0.0),
        (-0.0, -0.0),
        (f64::INFINITY, 1.0),
        (f64::NEG_INFINITY, -1.0),
        (9.0, 1.0),
    ],
};

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
