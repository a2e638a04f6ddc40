//! Functions whose `f32` results are correctly rounded for every argument.
//!
//! Each is its function of `f64` rounded once. That is right but where the value lies within the error of `f64` of
//! the middle between two numbers, which is at most five arguments of the 2^32; their results are stated. They were
//! found by comparing that, for all arguments of each, with CORE-MATH (A. Sibidanov, P. Zimmermann and S. Glondu, The
//! CORE-MATH Project, ARITH 2022), whose names, those of C23 (7.33.8), these are.

use super::formula::Formula;
use super::meaning::{Define, Tried};
use super::{Meaning, error_function, exponential, logarithm, trigonometric};
use crate::ir::{CompareOp, Value};

/// Half a unit in the last place, and what the true values of tests are off.
const MAX_ULP: f64 = 0.500_000_1;

/// Bits of arguments in `f32`, with the bits of their results.
type Exceptions = &'static [(u32, u32)];

pub(super) const EXP: Meaning = correct(&exponential::EXP, |formula, x| {
    rounded(formula, x, exponential::EXP.define, &[])
});

pub(super) const EXP2: Meaning = correct(&exponential::EXP2, |formula, x| {
    let exceptions = &[(0x3b42_9d37, 0x3f80_4385), (0xbcf3_a937, 0x3f7a_c6b1)];
    rounded(formula, x, exponential::EXP2.define, exceptions)
});

pub(super) const LOG: Meaning = correct(&logarithm::LOG, |formula, x| {
    let exceptions = &[
        (0x3c41_3d3a, 0xc08e_158f),
        (0x4117_8feb, 0x400f_e5e7),
        (0x4c5d_65a5, 0x418f_034b),
        (0x65d8_90d3, 0x4254_d1f9),
        (0x6f31_a8ec, 0x4284_5a89),
    ];
    rounded(formula, x, logarithm::LOG.define, exceptions)
});

pub(super) const LOG2: Meaning = correct(&logarithm::LOG2, |formula, x| {
    rounded(formula, x, logarithm::LOG2.define, &[])
});

pub(super) const SIN: Meaning = correct(&trigonometric::SIN, |formula, x| {
    let exceptions = &[(0x4619_9998, 0xbeb1_fa5d), (0xc619_9998, 0x3eb1_fa5d)];
    rounded(formula, x, trigonometric::SIN.define, exceptions)
});

pub(super) const COS: Meaning = correct(&trigonometric::COS, |formula, x| {
    let exceptions = &[
        (0x5f18_b878, 0x3f7f_14bb),
        (0x6115_cb11, 0x3f78_142f),
        (0xdf18_b878, 0x3f7f_14bb),
        (0xe115_cb11, 0x3f78_142f),
    ];
    rounded(formula, x, trigonometric::COS.define, exceptions)
});

pub(super) const TANH: Meaning = correct(&exponential::TANH, |formula, x| {
    rounded(formula, x, exponential::TANH.define, &[])
});

pub(super) const ERF: Meaning = correct(&error_function::ERF, |formula, x| {
    rounded(formula, x, error_function::ERF.define, &[])
});

/// What is known of `of` holds of its correctly rounded form; a device's own functions do not make that.
const fn correct(of: &Meaning, define: Define) -> Meaning {
    Meaning {
        values: of.values,
        tried: Tried::All,
        ..Meaning::single(define, of.reference, MAX_ULP, of.special)
    }
}

fn rounded(formula: &mut Formula<'_>, x: Value, define: Define, exceptions: Exceptions) -> Value {
    let result = formula.in_double(x, define);
    exceptions
        .iter()
        .fold(result, |result, &(argument, value)| {
            let is_it = formula.compare(CompareOp::Eq, x, f64::from(f32::from_bits(argument)));
            let value = formula.number(f64::from(f32::from_bits(value)));
            formula.select(is_it, value, result)
        })
}
