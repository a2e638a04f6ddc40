//! The derived functions against the oracles, as their definitions compute them.

use crate::ir::{DType, Function};
use crate::semantics::derived::{Definition, Domain, accuracy, domains, special_values};
use crate::semantics::oracle::{reference, reference_wide, ulp_error};
use crate::semantics::{canonical, cast, function};

/// Arguments of a wide float: half of them any bit pattern, half of magnitude 2^-14 to 2^11.
fn spread(dtype: DType, count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |i| {
        let random = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29);
        if i % 2 == 0 {
            return random & dtype.mask();
        }
        let bits = random & (u64::MAX >> 12) | (1023 - 14 + i / 2 % 25) << 52;
        cast(DType::F64, dtype, bits | (i / 2 % 2) << 63)
    })
}

/// The greatest error in units in the last place over `arguments`, and the argument.
fn worst(op: Function, dtype: DType, arguments: impl Iterator<Item = u64>) -> (f64, u64) {
    let mut worst = (0.0, 0);
    for bits in arguments {
        let x = f64::from_bits(cast(dtype, DType::F64, bits));
        let expected = reference(op, x);
        let (expected, rest) = match reference_wide(op, x).filter(|_| dtype == DType::F64) {
            Some(wide) => (wide.high, wide.low),
            None => (expected, 0.0),
        };
        let found = function(op, dtype, bits);
        let error = ulp_error(dtype, found, expected, rest).expect("is a float");
        if error > worst.0 {
            worst = (error, bits);
        }
    }
    worst
}

#[test]
fn errors_stay_within_the_table() {
    for row in accuracy() {
        let (op, dtype) = (row.op, row.dtype);
        let (error, at) = match dtype.bits() {
            ..=8 => worst(op, dtype, 0..=dtype.mask()),
            9..=16 => worst(op, dtype, (0..=dtype.mask()).step_by(5)),
            _ => worst(op, dtype, spread(dtype, 30_000)),
        };
        println!("{op:?} {dtype} {error:.4} at {at:#x}");
        assert!(
            error <= row.max_ulp,
            "{op:?} {dtype}: {error} at {at:#x}, table {}",
            row.max_ulp
        );
    }
}

const NAN: f64 = f64::NAN;

#[test]
fn special_arguments() {
    for &op in Function::ALL {
        let dtypes = [DType::F16, DType::BF16, DType::F32, DType::F64].into_iter();
        for dtype in dtypes.filter(|&dtype| op.accepts().admits(dtype)) {
            for &(x, expected) in special_values(op).iter().chain(&[(NAN, NAN), (-NAN, NAN)]) {
                let number = |value: f64| cast(DType::F64, dtype, value.to_bits());
                let found = canonical(dtype, function(op, dtype, number(x)));
                assert_eq!(
                    found,
                    canonical(dtype, number(expected)),
                    "{op:?} {dtype} {x:e}"
                );
            }
        }
    }
}

#[test]
fn powers_of_two_are_exact() {
    for dtype in [DType::F32, DType::F64] {
        let (least, greatest) = if dtype == DType::F32 {
            (-149, 127)
        } else {
            (-1074, 1023)
        };
        for exponent in least..=greatest {
            let number = |value: f64| cast(DType::F64, dtype, value.to_bits());
            let power = number(2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2));
            let exponent = number(f64::from(exponent));
            assert_eq!(function(Function::Exp2, dtype, exponent), power);
            assert_eq!(function(Function::Log2, dtype, power), exponent);
        }
    }
}

#[test]
fn tanh_is_odd_and_sigmoid_stays_in_the_unit_interval() {
    for dtype in [DType::F32, DType::F64] {
        let sign = 1 << (dtype.bits() - 1);
        let one = cast(DType::F64, dtype, 1f64.to_bits());
        for bits in spread(dtype, 5_000) {
            let x = f64::from_bits(cast(dtype, DType::F64, bits));
            if x.is_nan() {
                continue;
            }
            let tanh = function(Function::Tanh, dtype, bits);
            assert_eq!(function(Function::Tanh, dtype, bits ^ sign), tanh ^ sign);
            // Bits of positive floats are ordered as the floats.
            assert!(tanh & !sign <= one);
            assert!(function(Function::Sigmoid, dtype, bits) <= one, "{x:e}");
        }
    }
}

/// Where an argument is reduced to the ends of the interval of a series, which random arguments hardly meet.
#[test]
fn errors_stay_within_the_table_at_the_ends_of_intervals() {
    let ends = |i: u64| {
        let random = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29);
        let near = 1.0 + (random as f64 / u64::MAX as f64 - 0.5) * 0.05;
        let odd = [1.0, -1.0, 3.0, -3.0][i as usize % 4];
        (odd * std::f64::consts::LN_2 / 2.0 * near).to_bits()
    };
    for row in accuracy() {
        let is_exponential = matches!(row.op, Function::Exp | Function::Expm1);
        if is_exponential && row.dtype == DType::F64 {
            let (error, at) = worst(row.op, DType::F64, (0..40_000).map(ends));
            let x = f64::from_bits(at);
            assert!(error <= row.max_ulp, "{:?}: {error} at {x}", row.op);
        }
    }
}

/// What is known of an argument changes no bit: every sign, exponent and special value, and random
/// significands.
#[test]
fn domains_agree() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let admitted = |op: &&Function| op.accepts().admits(dtype);
        let pairs = Function::ALL.iter().filter(admitted).flat_map(|&op| {
            let shorter = domains(op).skip(1);
            shorter.map(move |domain| (op, domain))
        });
        let sign = 1 << (dtype.bits() - 1);
        for (op, domain) in pairs {
            let anything = Definition::new(op, dtype);
            let within = Definition::within(op, dtype, domain);
            let special = [0, sign, canonical(dtype, dtype.mask())];
            let arguments = spread(dtype, 200_000).filter(|&bits| {
                let x = f64::from_bits(cast(dtype, DType::F64, bits));
                domain.holds(Domain {
                    least: x,
                    greatest: x,
                })
            });
            for bits in arguments.chain(special) {
                let expected = anything.evaluate(bits);
                let found = within.evaluate(bits);
                assert_eq!(found, expected, "{op:?} {dtype} {domain:?} {bits:#x}");
            }
        }
    }
}

/// Arguments with J0, J1, Y0 and Y1 there, by mpmath 1.3 with 60 digits: at zeros, on both sides of where the expansions of
/// the oracle meet, and far away.
const WAVES: [(f64, [f64; 4]); 6] = [
    (
        0.5,
        [
            0.938_469_807_240_812_9,
            0.242_268_457_674_873_9,
            -0.444_518_733_506_706_56,
            -1.471_472_392_670_243,
        ],
    ),
    (
        2.404_825_687_408_447_3,
        [
            -6.734_000_851_573_297e-8,
            0.519_147_469_287_428_6,
            0.509_924_370_120_928_2,
            0.102_746_743_039_911_2,
        ],
    ),
    (
        8.0,
        [
            0.171_650_807_137_553_9,
            0.234_636_346_853_914_63,
            0.223_521_489_387_566_22,
            -0.158_060_461_731_247_5,
        ],
    ),
    (
        24.899_999_618_530_273,
        [
            0.083_245_916_909_642_4,
            -0.134_855_733_353_214_66,
            -0.136_499_216_804_127_55,
            -0.086_002_506_842_806_55,
        ],
    ),
    (
        25.5,
        [
            0.144_062_157_546_847_87,
            -0.062_048_536_491_484_105,
            -0.064_859_765_498_783_49,
            -0.145_361_058_723_049_4,
        ],
    ),
    (
        1_048_576.0,
        [
            0.000_702_097_275_867_912,
            -0.000_337_915_840_384_888_35,
            -0.000_337_916_175_170_919_7,
            -0.000_702_097_436_998_980_5,
        ],
    ),
];

/// Arguments with I0 and I1 there.
const GROWING: [(f64, [f64; 2]); 3] = [
    (0.5, [1.063_483_370_741_323_6, 0.257_894_305_390_896_3]),
    (7.5, [268.161_311_515_189_37, 249.584_365_422_688_14]),
    (
        91.0,
        [1.389_271_406_098_962_2e38, 1.381_616_841_459_321_6e38],
    ),
];

/// Arguments next to zeros, where the terms of a wave cancel, and what is nearest by `mpmath` 1.3 at 600 bits.
const NEXT_TO_ZEROS: [(Function, u64, u64); 3] = [
    (Function::BesselJ0, 0x4ba3_32e9, 0x2725_0206),
    (Function::BesselJ1, 0x6ef9_be45, 0x987d_8a8f),
    (Function::BesselY0, 0x6ef9_be45, 0x987d_8a8f),
];

#[test]
fn bessel_functions_are_right_next_to_zeros() {
    for (op, x, want) in NEXT_TO_ZEROS {
        let found = function(op, DType::F32, x);
        assert_eq!(found, want, "{op:?} {x:#x}: {found:#x}");
    }
}

#[test]
fn the_oracle_of_bessel_functions_has_their_values() {
    use Function::{BesselI0, BesselI1, BesselJ0, BesselJ1, BesselY0, BesselY1};
    let first = [BesselJ0, BesselJ1, BesselY0, BesselY1];
    let check = |op: Function, x: f64, value: f64| {
        let found = reference(op, x);
        let error = (found - value).abs();
        assert!(
            error <= value.abs() * 1e-15,
            "{op:?} {x}: {found:e}, not {value:e}"
        );
    };
    for (x, values) in WAVES {
        first
            .into_iter()
            .zip(values)
            .for_each(|(op, value)| check(op, x, value));
    }
    for (x, [zero, one]) in GROWING {
        check(BesselI0, x, zero);
        check(BesselI1, x, one);
    }
}
