//! Coefficients of the derived functions. Printed by `tools/remez.py`: do not edit.
#![expect(
    clippy::approx_constant,
    clippy::unreadable_literal,
    reason = "printed by a program, digit for digit"
)]

/// A number in both formats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    /// For `f32`.
    pub(super) single: f32,
    /// For `f64`.
    pub(super) double: f64,
}

/// Coefficients in both formats, highest power first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polynomial {
    /// For `f32`.
    pub(super) single: &'static [f32],
    /// For `f64`.
    pub(super) double: &'static [f64],
}

/// ln 2.
pub(super) const LN_2_HIGH: Constant = Constant {
    single: 0.6931472,
    double: 0.6931471805599453,
};

/// What [`LN_2_HIGH`] lacks.
pub(super) const LN_2_LOW: Constant = Constant {
    single: -1.9046542e-09,
    double: 2.3190468138462996e-17,
};

/// 1 / ln 2.
pub(super) const LOG2_E_HIGH: Constant = Constant {
    single: 1.442695,
    double: 1.4426950408889634,
};

/// What [`LOG2_E_HIGH`] lacks.
pub(super) const LOG2_E_LOW: Constant = Constant {
    single: 1.925963e-08,
    double: 2.0355273740931033e-17,
};

/// (e^x - 1 - x) / x^2 for |x| up to ln 2 / 2; weighted error 2^-28.3 and 2^-57.9.
pub(super) const EXP: Polynomial = Polynomial {
    single: &[
        0.0013820895,
        0.008368671,
        0.041668262,
        0.16666521,
        0.49999994,
    ],
    double: &[
        2.500643412488163e-08,
        2.7630279595962764e-07,
        2.7557561995597172e-06,
        2.48014929556919e-05,
        0.00019841269540762452,
        0.001388888894387659,
        0.008333333333473787,
        0.04166666666652834,
        0.16666666666666458,
        0.5000000000000011,
    ],
};

/// (2^x - 1) / x for |x| up to 1/2; weighted error 2^-28.3 and 2^-57.8.
pub(super) const EXP2: Polynomial = Polynomial {
    single: &[
        0.00015326471,
        0.0013390806,
        0.009618506,
        0.0555036,
        0.24022648,
        0.6931472,
    ],
    double: &[
        4.4388636988228384e-10,
        7.073232611295231e-09,
        1.017816004775519e-07,
        1.3215438838482254e-06,
        1.5252733633946587e-05,
        0.00015403530449031245,
        0.0013333558146546361,
        0.009618129107601608,
        0.05550410866482172,
        0.24022650695910108,
        0.6931471805599453,
    ],
};

/// (log(1 + x) - x) / x^2 for |x| up to 1/3; weighted error 2^-27.7.
pub(super) const LOG_SINGLE: &[f32] = &[
    -0.12880231,
    0.1398461,
    -0.12187445,
    0.14005733,
    -0.16680197,
    0.20010427,
    -0.24999806,
    0.33333215,
    -0.5,
];

/// (log2(1 + x) - x / ln 2) / x^2 for |x| up to 1/3; weighted error 2^-29.7.
pub(super) const LOG2_SINGLE: &[f32] = &[
    0.1731437,
    -0.19387023,
    0.15522003,
    -0.1738441,
    0.2063605,
    -0.24080938,
    0.28853354,
    -0.3606657,
    0.48089838,
    -0.7213476,
];

/// (2 atanh(s) / s - 2) / z with z = s^2 for |s| up to 0.1716; weighted error 2^-59.5.
pub(super) const ATANH_DOUBLE: &[f64] = &[
    0.14795744573076403,
    0.15314074892524995,
    0.18183563189616275,
    0.22222198599651896,
    0.28571428742068,
    0.39999999999416536,
    0.6666666666666734,
];
