//! The gamma function, its logarithm and the inverse of the error function, to judge results by.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use super::wide::{self, Wide};
use super::{erf, erfc};

const HALF_LOG_TWO_PI: Wide = Wide {
    high: 0.918_938_533_204_672_8,
    low: -3.878_294_158_067_241_4e-17,
};

const LOG_PI: Wide = Wide {
    high: 1.144_729_885_849_400_2,
    low: 1.026_595_116_270_782_6e-17,
};

const WIDE_PI: Wide = Wide {
    high: PI,
    low: 1.224_646_799_147_353_2e-16,
};

/// Bernoulli's numbers of even index from 2 on, over `2 k (2 k - 1)`.
const STIRLING: [(f64, f64); 11] = [
    (1.0, 12.0),
    (-1.0, 360.0),
    (1.0, 1260.0),
    (-1.0, 1680.0),
    (5.0, 5940.0),
    (-691.0, 360_360.0),
    (7.0, 1092.0),
    (-3617.0, 122_400.0),
    (43_867.0, 244_188.0),
    (-174_611.0, 125_400.0),
    (854_513.0, 63_756.0),
];

/// The logarithm of a positive number.
fn log(x: Wide) -> Wide {
    let ratio = Wide::new(x.low).div(Wide::new(x.high));
    let curve = ratio.mul(ratio).mul(Wide::new(-0.5));
    wide::log(x.high).add(ratio).add(curve)
}

/// `log(gamma(y))` of a positive number: by the recurrence to 40, from there on by Stirling's formula.
fn positive(y: f64) -> Wide {
    let mut y = Wide::new(y);
    let mut product = Wide::new(1.0);
    while y.high < 40.0 {
        product = product.mul(y);
        y = y.add(Wide::new(1.0));
    }
    let inverse = Wide::new(1.0).div(y);
    let square = inverse.mul(inverse);
    let rest = STIRLING.iter().rev().fold(Wide::new(0.0), |sum, &(a, b)| {
        sum.mul(square).add(Wide::new(a).div(Wide::new(b)))
    });
    let linear = y.add(Wide::new(-0.5)).mul(log(y));
    let formula = linear.add(y.negated()).add(HALF_LOG_TWO_PI);
    formula.add(rest.mul(inverse)).add(log(product).negated())
}

/// `sin(pi t)` by its series, of a magnitude up to 1/2.
fn sine_of_turns(t: f64) -> Wide {
    let x = WIDE_PI.mul(Wide::new(t));
    let square = x.mul(x).negated();
    let (mut term, mut sum) = (x, x);
    for n in 1..20 {
        let divisor = f64::from(2 * n * (2 * n + 1));
        term = term.mul(square).div(Wide::new(divisor));
        sum = sum.add(term);
    }
    sum
}

/// `log |gamma(x)|`, of `f32` numbers to all digits of an `f64`.
pub(in crate::semantics) fn lgamma(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x == 0.0 || x.is_infinite() || x.abs() > 1e37 || x < 0.0 && x == x.trunc() {
        return f64::INFINITY;
    }
    if x == 1.0 || x == 2.0 {
        return 0.0;
    }
    if x > 0.0 {
        return positive(x).high;
    }
    let sine = sine_of_turns(x - x.round());
    let sine = if sine.high < 0.0 {
        sine.negated()
    } else {
        sine
    };
    let product = sine.mul(Wide::new(-x));
    let reflected = LOG_PI.add(log(product).negated());
    reflected.add(positive(-x).negated()).high
}

/// `gamma(x)`, of `f32` numbers nearly to all digits of an `f64`.
pub(in crate::semantics) fn tgamma(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0 / x;
    }
    if x.is_nan() || x < 0.0 && (x == x.trunc() || x.is_infinite()) {
        return f64::NAN;
    }
    if x > 150.0 {
        return f64::INFINITY;
    }
    if x > 0.0 {
        return wide::power(positive(x)).high;
    }
    let sine = sine_of_turns(x - x.round());
    let is_odd = x.round() % 2.0 != 0.0;
    let sine = if is_odd { sine.negated() } else { sine };
    if x < -150.0 {
        return 0.0_f64.copysign(sine.high);
    }
    let divisor = sine.mul(Wide::new(x)).mul(wide::power(positive(-x)));
    // gamma(x) gamma(-x) is -pi / (x sin(pi x)).
    WIDE_PI.negated().div(divisor).high
}

/// The number whose error function is `x`, by Newton's iteration, beyond 1/2 on the complement.
pub(in crate::semantics) fn erfinv(x: f64) -> f64 {
    let magnitude = x.abs();
    if x.is_nan() || magnitude > 1.0 {
        return f64::NAN;
    }
    if magnitude == 1.0 {
        return x * f64::INFINITY;
    }
    // S. Winitzki, A handy approximation for the error function and its inverse, 2008.
    let logarithm = (-magnitude * magnitude).ln_1p();
    let part = 2.0 / (PI * 0.147) + logarithm / 2.0;
    let start = ((part * part - logarithm / 0.147).sqrt() - part)
        .max(0.0)
        .sqrt();
    let mut root = if magnitude < 1e-3 {
        magnitude / FRAC_2_SQRT_PI
    } else {
        start
    };
    for _ in 0..6 {
        let beyond = match magnitude < 0.5 {
            true => erf(root) - magnitude,
            false => (1.0 - magnitude) - erfc(root),
        };
        let slope = FRAC_2_SQRT_PI * (-root * root).exp();
        let step = beyond / slope;
        // Halley's factor.
        root -= step / (1.0 + root * step);
    }
    root.copysign(x)
}
