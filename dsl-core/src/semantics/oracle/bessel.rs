//! Bessel functions of orders 0 and 1 to more digits than an `f64` has, to judge results by: their series up to 25,
//! Hankel's expansion beyond.

use super::angle;
use super::wide::{self, Wide};

/// Euler's constant.
const EULER: Wide = Wide {
    high: 0.577_215_664_901_532_9,
    low: -4.942_915_152_430_645e-18,
};

const TWO_OVER_PI: Wide = Wide {
    high: std::f64::consts::FRAC_2_PI,
    low: -3.935_735_335_036_497e-17,
};

/// From here on Hankel's expansion has all digits.
const FAR: f64 = 25.0;

fn whole(number: u32) -> Wide {
    Wide::new(f64::from(number))
}

/// `sum of sign^k weight(k) (x / 2)^(2 k + n) / (k! (k + n)!)`.
fn series(order: u32, x: f64, sign: f64, mut weight: impl FnMut(u32) -> Wide) -> Wide {
    let half = Wide::new(x / 2.0);
    let square = half.mul(half).mul(Wide::new(sign));
    let mut term = if order == 0 { Wide::new(1.0) } else { half };
    let mut sum = term.mul(weight(0));
    for k in 1..1000 {
        term = term.mul(square).div(whole(k * (k + order)));
        let next = term.mul(weight(k));
        sum = sum.add(next);
        if f64::from(k) > x.abs() && next.high.abs() <= sum.high.abs() * 1e-34 {
            break;
        }
    }
    sum
}

/// J or Y of an order, by Hankel's expansion.
fn hankel(order: u32, x: f64, second: bool) -> f64 {
    let squared = f64::from(4 * order * order);
    let inverse = Wide::new(1.0).div(Wide::new(8.0).mul(Wide::new(x)));
    let (mut p, mut q) = (Wide::new(1.0), Wide::new(0.0));
    let mut term = Wide::new(1.0);
    for k in 1..60_u32 {
        let odd = f64::from(2 * k - 1);
        let next = term
            .mul(Wide::new(squared - odd * odd))
            .mul(inverse)
            .div(whole(k));
        if next.high.abs() >= term.high.abs() || next.high == 0.0 {
            break;
        }
        term = next;
        let signed = if k / 2 % 2 == 0 { term } else { term.negated() };
        match k % 2 {
            0 => p = p.add(signed),
            _ => q = q.add(signed),
        }
    }
    let (sine, cosine) = (angle::sin(x), angle::cos(x));
    let sum = sine.add(cosine);
    let difference = sine.add(cosine.negated());
    // sqrt(2) times the cosine and the sine of x - (2 n + 1) pi / 4.
    let [cosine, sine] = match order {
        0 => [sum, difference],
        _ => [difference, sum.negated()],
    };
    let value = match second {
        false => p.mul(cosine).add(q.mul(sine).negated()),
        true => p.mul(sine).add(q.mul(cosine)),
    };
    // 1 / sqrt(pi x).
    let size = wide::sqrt(TWO_OVER_PI.div(Wide::new(2.0 * x)));
    value.mul(size).high
}

fn first(order: u32, x: f64) -> f64 {
    let y = x.abs();
    let value = if y.is_infinite() {
        return 0.0;
    } else if y < FAR {
        series(order, y, -1.0, |_| Wide::new(1.0)).high
    } else {
        hankel(order, y, false)
    };
    if order == 1 && x.is_sign_negative() {
        return -value;
    }
    value
}

pub(in crate::semantics) fn j0(x: f64) -> f64 {
    first(0, x)
}

pub(in crate::semantics) fn j1(x: f64) -> f64 {
    first(1, x)
}

/// Y of an order at a positive number.
fn second(order: u32, x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x >= FAR {
        return hankel(order, x, true);
    }
    let mut harmonic = Wide::new(0.0);
    // The sum of the digamma functions at k + 1 and at k + n + 1, without Euler's constants.
    let digammas = |k: u32| {
        if k > 0 {
            harmonic = harmonic.add(Wide::new(1.0).div(whole(k)));
        }
        let next = match order {
            0 => Wide::new(0.0),
            _ => Wide::new(1.0).div(whole(k + 1)),
        };
        harmonic.add(harmonic).add(next)
    };
    let rest = series(order, x, -1.0, digammas).mul(Wide::new(-0.5));
    let j = series(order, x, -1.0, |_| Wide::new(1.0));
    let logarithm = wide::log(x / 2.0).add(EULER);
    let mut sum = logarithm.mul(j).add(rest);
    if order == 1 {
        sum = sum.add(Wide::new(1.0).div(Wide::new(x)).negated());
    }
    sum.mul(TWO_OVER_PI).high
}

fn of_positive(order: u32, x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    second(order, x)
}

pub(in crate::semantics) fn y0(x: f64) -> f64 {
    of_positive(0, x)
}

pub(in crate::semantics) fn y1(x: f64) -> f64 {
    of_positive(1, x)
}

/// I of an order; infinite where no `f32` is as large.
fn modified(order: u32, x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let value = match x.abs() > 120.0 {
        true => f64::INFINITY,
        false => series(order, x.abs(), 1.0, |_| Wide::new(1.0)).high,
    };
    if order == 1 && x.is_sign_negative() {
        return -value;
    }
    value
}

pub(in crate::semantics) fn i0(x: f64) -> f64 {
    modified(0, x)
}

pub(in crate::semantics) fn i1(x: f64) -> f64 {
    modified(1, x)
}
