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

/// erf(x) / x - 1 in x^2 for |x| up to 1; weighted error 2^-29.4 and 2^-56.0.
pub(super) const ERF: Polynomial = Polynomial {
    single: &[
        7.806903e-05,
        -0.0007997853,
        0.005187162,
        -0.026853347,
        0.11283579,
        -0.37612626,
        0.12837917,
    ],
    double: &[
        -7.594147305746992e-10,
        1.3610159215752158e-08,
        -1.618266299549158e-07,
        1.6444001392411666e-06,
        -1.4924455516742093e-05,
        0.00012055280071047127,
        -0.0008548325474085013,
        0.005223977596574619,
        -0.02686617064194706,
        0.11283791670936917,
        -0.37612638903183343,
        0.12837916709551256,
    ],
};

/// log(erfc(1.25 + u)) for arguments from 1 to 4 in `f32` and to 6 in `f64`; error of erfc; weighted error 2^-26.7 and 2^-56.8.
pub(super) const LOG_ERFC: Polynomial = Polynomial {
    single: &[
        0.00018864864,
        -0.0014971322,
        0.0077052405,
        -0.03267994,
        -0.8708012,
        -3.0677242,
        -2.5626538,
    ],
    double: &[
        -5.160688323106489e-12,
        1.0376487594630154e-10,
        -9.216930999751022e-10,
        4.5812563062471025e-09,
        -1.1681928035076574e-08,
        -9.83105022142702e-09,
        2.570900807058528e-07,
        -1.4483708400668246e-06,
        5.166691379781923e-06,
        -1.0830528811765464e-05,
        -1.0041802731134486e-05,
        0.0002467839856882156,
        -0.0016069509544311392,
        0.00779196161158976,
        -0.0326870086827851,
        -0.8708101640587852,
        -3.067723941669239,
        -2.5626536619221256,
    ],
};

/// (sin(x) / x - 1) / z with z = x^2 for |x| up to 0.82; weighted error 2^-32.4.
pub(super) const SIN_SINGLE: &[f32] = &[2.8037257e-06, -0.0001985064, 0.008333375, -0.16666667];

/// (cos(x) - 1 + z / 2) / z^2 with z = x^2 for |x| up to 0.82; weighted error 2^-32.3.
pub(super) const COS_SINGLE: &[f32] = &[2.439365e-05, -0.0013886959, 0.041666638];

/// (sinh(x) / x - 1) / z with z = x^2 for |x| up to 1; weighted error 2^-31.6.
pub(super) const SINH_SINGLE: &[f32] = &[2.7822132e-06, 0.00019842896, 0.0083333105, 0.16666667];

/// (asin(x) / x - 1) / z with z = x^2 for |x| up to 1/2; weighted error 2^-35.8.
pub(super) const ASIN_DOUBLE: &[f64] = &[
    0.03464614806559794,
    0.007509642119346154,
    0.024604649714514898,
    0.030112536848421616,
    0.0446599710808684,
    0.07499948902322548,
    0.16666667180194697,
];

/// (atan(x) / x - 1) / z with z = x^2 for |x| up to 1; weighted error 2^-28.5.
pub(super) const ATAN_SINGLE: &[f32] = &[
    -0.0017831312,
    0.010869627,
    -0.031098079,
    0.057881992,
    -0.08399322,
    0.10950882,
    -0.14264016,
    0.1999853,
    -0.333333,
];
