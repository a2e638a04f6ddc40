//! Powers of two that attention is made of: its weights, which are rounded to 8 significant bits, and the integer
//! powers by which rows are rescaled.

use super::Meaning;
use super::exponential::exp2;
use super::formula::Formula;
use super::meaning::Tried;
use crate::ir::{Approximate, CompareOp, DType, Literal, Value};

const INF: f64 = f64::INFINITY;

/// What is subtracted from the argument of a weight. From 1024 to 2048 the unit in the last place of an `f32` is 2^-13.
const OFFSET: f64 = 1536.0;

/// Of lesser powers a weight is zero.
const LEAST: f64 = -126.0;

/// No `2^u` with `u` a multiple of 2^-13 is nearer than 2^-20.5 of its value to a number halfway between two of `bf16`, but
/// for those that are `bf16` numbers; so every function with an error below 2^-20.6 rounds to the same number, the
/// device's own too, which is off by 2^-21.6 at most (PTX ISA, "ex2").
pub(super) const EXP2_WEIGHT: Meaning = Meaning {
    native: Some(|formula, x| weight(formula, x, by_device)),
    values: Some(|_| (0.0, INF)),
    tried: Tried::All,
    ..Meaning::single(
        |formula, x| weight(formula, x, by_definition),
        |x| round_to_bf16(flushed((x - OFFSET).exp2())),
        0.0,
        &[
            (1536.0, 1.0),
            (1544.0, 256.0),
            (1000.0, 0.0),
            (-INF, 0.0),
            (INF, INF),
        ],
    )
};

/// What a device's own function gives where subnormal results are zero.
pub(super) const NORMAL_EXP2: Meaning = Meaning {
    values: Some(|_| (0.0, INF)),
    ..Meaning::single(
        by_definition,
        |x| flushed(x.exp2()),
        0.8785,
        &[(0.0, 1.0), (-127.0, 0.0)],
    )
};

pub(super) const POWER_OF_TWO: Meaning = Meaning {
    values: Some(|_| (0.0, INF)),
    tried: Tried::All,
    ..Meaning::single(
        power_of_two,
        |n| flushed(n.round_ties_even().exp2()),
        0.0,
        &[
            (0.0, 1.0),
            (-126.0, 1.175_494_350_822_287_5e-38),
            (-127.0, 0.0),
            (3.0, 8.0),
            (128.0, INF),
            (-INF, 0.0),
            (INF, INF),
        ],
    )
};

fn weight(
    formula: &mut Formula<'_>,
    x: Value,
    power: fn(&mut Formula<'_>, Value) -> Value,
) -> Value {
    let offset = formula.number(OFFSET);
    let x = formula.sub(x, offset);
    let power = power(formula, x);
    let rounded = formula.to(power, DType::BF16);
    formula.to(rounded, DType::F32)
}

fn by_device(formula: &mut Formula<'_>, x: Value) -> Value {
    formula.approximate(Approximate::NormalExp2, x)
}

fn by_definition(formula: &mut Formula<'_>, x: Value) -> Value {
    let power = exp2(formula, x);
    let small = formula.compare(CompareOp::Lt, x, LEAST);
    let zero = formula.number(0.0);
    formula.select(small, zero, power)
}

/// The bits of the exponent alone.
fn power_of_two(formula: &mut Formula<'_>, n: Value) -> Value {
    let format = formula.format;
    let limited = formula.at_least(n, -(format.bias() as f64));
    let limited = formula.at_most(limited, format.bias() as f64 + 1.0);
    let magic = formula.number(format.magic(0));
    let sum = formula.add(limited, magic);
    let bits = formula.bits_of(sum);
    let bias = formula.integer(format.bias());
    let biased = formula.add(bits, bias);
    let exponent = formula.shl(biased, format.significand());
    let power = formula.float_from(exponent);
    let is_number = formula.compare_values(CompareOp::Eq, n, n);
    formula.select(is_number, power, n)
}

fn flushed(power: f64) -> f64 {
    match power < LEAST.exp2() {
        true => 0.0,
        false => power,
    }
}

fn round_to_bf16(power: f64) -> f64 {
    let rounded = Literal::from_f64(DType::BF16, power).float();
    rounded.expect("broken invariant: a float")
}
