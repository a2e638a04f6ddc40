//! pow, atan2 and hypot of `f64`: sums of two numbers where one would lose digits.

use super::coefficients::{ATAN_LONG, ATANH_LONG, EXP2, LOG2_E_HIGH, LOG2_E_LOW};
use super::exponential::exp2_limits;
use super::formula::Formula;
use super::logarithm::{scale, special};
use super::pairs::{Slope, finished, is_negative, slope};
use crate::ir::{CompareOp, Value};

const INF: f64 = f64::INFINITY;

/// An unevaluated sum.
#[derive(Clone, Copy)]
struct Pair {
    high: Value,
    low: Value,
}

impl Pair {
    fn numbers(formula: &mut Formula<'_>, high: f64, low: f64) -> Self {
        Self {
            high: formula.number(high),
            low: formula.number(low),
        }
    }

    /// `a + b` where the exponent of `a` is at least that of `b`, or `a` is zero.
    fn sum(formula: &mut Formula<'_>, a: Value, b: Value) -> Self {
        let high = formula.add(a, b);
        let lost = formula.sub(a, high);
        let low = formula.add(lost, b);
        Self { high, low }
    }

    fn product(formula: &mut Formula<'_>, a: Self, b: Self) -> Self {
        let high = formula.mul(a.high, b.high);
        let negated = formula.neg(high);
        let low = formula.fma(a.high, b.high, negated);
        let low = formula.fma(a.high, b.low, low);
        let low = formula.fma(a.low, b.high, low);
        Self { high, low }
    }
}

/// `x^y`: the logarithm to base 2 to 65 bits, times `y`, and the power of that.
pub(super) fn power(formula: &mut Formula<'_>, x: Value, y: Value) -> Value {
    let magnitude = formula.abs(x);
    let logarithm = log2(formula, magnitude);
    let high = special(formula, magnitude, logarithm.high);
    // An infinite multiple of 0 would be NaN.
    let multiple = formula.at_most(y, 1e300);
    let multiple = formula.at_least(multiple, -1e300);
    let exponent = formula.mul(multiple, high);
    let negated = formula.neg(exponent);
    let low = formula.fma(multiple, high, negated);
    let low = formula.fma(multiple, logarithm.low, low);
    let (least, greatest) = exp2_limits(formula.format);
    let limited = formula.at_least(exponent, least);
    let limited = formula.at_most(limited, greatest);
    // Of infinite ones it would be NaN.
    let zero = formula.number(0.0);
    let is_within = formula.compare_values(CompareOp::Eq, limited, exponent);
    let low = formula.select(is_within, low, zero);

    let scaling = formula.scaling(limited);
    let rounded = formula.rounded(scaling, limited, None);
    let rest = formula.sub(limited, rounded.whole);
    let slope = formula.polynomial(EXP2, rest);
    let one = formula.number(1.0);
    let ln_2 = formula.number(std::f64::consts::LN_2);
    let low = formula.mul(low, ln_2);
    let less_one = formula.mul(slope, rest);
    let low = formula.fma(less_one, low, low);
    let less_one = formula.fma(slope, rest, low);
    let power = formula.add(less_one, one);
    let result = formula.scale(power, rounded.power);
    finished(formula, x, y, result)
}

/// `k + log2(1 + f)` as `k` and a product of `2 atanh(f / (2 + f))`.
fn log2(formula: &mut Formula<'_>, x: Value) -> Pair {
    let scaled = scale(formula, x);
    let fraction = scaled.fraction;
    let two = formula.number(2.0);
    let sum = Pair::sum(formula, two, fraction);
    let high = formula.div(fraction, sum.high);
    let negated = formula.neg(high);
    let rest = formula.fma(negated, sum.high, fraction);
    let rest = formula.fma(negated, sum.low, rest);
    let low = formula.div(rest, sum.high);
    let s = Pair { high, low };

    let square = Pair::product(formula, s, s);
    let third = Pair::numbers(formula, 1.0 / 3.0, 1.850_371_707_708_594e-17);
    let cubic = Pair::product(formula, square, third);
    let series = formula.horner(ATANH_LONG.iter().copied(), square.high);
    let fourth = formula.mul(square.high, square.high);
    let tail = formula.mul(fourth, series);
    let curve = Pair::sum(formula, cubic.high, tail);
    let low = formula.add(curve.low, cubic.low);
    let curve = Pair { low, ..curve };
    let beyond = Pair::product(formula, s, curve);
    let arc = Pair::sum(formula, s.high, beyond.high);
    let low = formula.add(s.low, beyond.low);
    let low = formula.add(arc.low, low);
    let arc = Pair { low, ..arc };

    let unit = Pair {
        high: formula.scaled(LOG2_E_HIGH, 2.0),
        low: formula.scaled(LOG2_E_LOW, 2.0),
    };
    let logarithm = Pair::product(formula, arc, unit);
    let sum = Pair::sum(formula, scaled.exponent, logarithm.high);
    let low = formula.add(sum.low, logarithm.low);
    Pair::sum(formula, sum.high, low)
}

/// The inverse of the tangent of the lesser coordinate over the greater with what the quotient lost, placed in its
/// eighth of the plane.
pub(super) fn angle(formula: &mut Formula<'_>, y: Value, x: Value) -> Value {
    let Slope {
        value,
        lesser,
        greater,
        is_steep,
    } = slope(formula, y, x);
    let zero = formula.number(0.0);
    let one = formula.number(1.0);
    let negated = formula.neg(value);
    let rest = formula.fma(negated, greater, lesser);
    let lost = formula.div(rest, greater);
    // Of infinite or zero coordinates it is NaN; the slope itself then says all.
    let is_number = formula.compare_values(CompareOp::Eq, lost, lost);
    let lost = formula.select(is_number, lost, zero);
    let square = formula.mul(value, value);
    let sum = formula.add(square, one);
    let lost = formula.div(lost, sum);
    let negated = formula.neg(square);
    let square_lost = formula.fma(value, value, negated);
    let cube = formula.mul(value, square);
    let negated = formula.neg(cube);
    let cube_lost = formula.fma(value, square, negated);
    let cube_lost = formula.fma(value, square_lost, cube_lost);
    let (series, series_lost) = formula.horner_pair(ATAN_LONG, square);
    let lost = formula.fma(cube_lost, series, lost);
    let lost = formula.fma(cube, series_lost, lost);
    let low = formula.fma(cube, series, lost);
    let angle = Pair { high: value, low };

    let quarter = Pair::numbers(
        formula,
        std::f64::consts::FRAC_PI_2,
        6.123_233_995_736_766e-17,
    );
    let steep = less(formula, quarter, angle);
    let angle = chosen(formula, is_steep, steep, angle);
    let half = Pair::numbers(formula, std::f64::consts::PI, 1.224_646_799_147_353_2e-16);
    let left = less(formula, half, angle);
    let is_left = is_negative(formula, x);
    let angle = chosen(formula, is_left, left, angle);
    let angle = formula.add(angle.high, angle.low);
    let negated = formula.neg(angle);
    let is_below = is_negative(formula, y);
    formula.select(is_below, negated, angle)
}

/// `a - b` of a greater `a`.
fn less(formula: &mut Formula<'_>, a: Pair, b: Pair) -> Pair {
    let negated = formula.neg(b.high);
    let sum = Pair::sum(formula, a.high, negated);
    let low = formula.sub(a.low, b.low);
    let low = formula.add(sum.low, low);
    Pair { low, ..sum }
}

fn chosen(formula: &mut Formula<'_>, condition: Value, on_true: Pair, on_false: Pair) -> Pair {
    Pair {
        high: formula.select(condition, on_true.high, on_false.high),
        low: formula.select(condition, on_true.low, on_false.low),
    }
}

/// `sqrt(x^2 + y^2)` of numbers brought near 1 where their squares might not be normal.
pub(super) fn length(formula: &mut Formula<'_>, x: Value, y: Value) -> Value {
    let (width, height) = (formula.abs(x), formula.abs(y));
    let is_high = formula.compare_values(CompareOp::Gt, height, width);
    let greater = formula.select(is_high, height, width);
    let lesser = formula.select(is_high, width, height);
    let is_great = formula.compare(CompareOp::Gt, greater, 2f64.powi(500));
    let is_little = formula.compare(CompareOp::Lt, greater, 2f64.powi(-500));
    let factor = |formula: &mut Formula<'_>, exponent: i32| {
        let [up, down, one] = [exponent, -exponent, 0].map(|it| formula.number(2f64.powi(it)));
        let factor = formula.select(is_great, down, one);
        formula.select(is_little, up, factor)
    };
    let scale = factor(formula, 600);
    let [a, b] = [greater, lesser].map(|it| formula.mul(it, scale));
    let square = formula.mul(b, b);
    let sum = formula.fma(a, a, square);
    let root = formula.sqrt(sum);
    let scale = factor(formula, -600);
    let root = formula.mul(root, scale);
    let infinity = formula.number(INF);
    let is_wide = formula.compare(CompareOp::Eq, width, INF);
    let is_tall = formula.compare(CompareOp::Eq, height, INF);
    let is_far = formula.or(is_wide, is_tall);
    formula.select(is_far, infinity, root)
}
