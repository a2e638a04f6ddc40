//! The derived functions against the oracles, as their definitions compute them.

use crate::ir::{DType, UnaryOp};
use crate::semantics::derived::{ACCURACY, Definition, Domain, evaluate};
use crate::semantics::oracle::{reference, reference_wide, ulp_error};
use crate::semantics::{canonical, cast};

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
fn worst(op: UnaryOp, dtype: DType, arguments: impl Iterator<Item = u64>) -> (f64, u64) {
    let mut worst = (0.0, 0);
    for bits in arguments {
        let x = f64::from_bits(cast(dtype, DType::F64, bits));
        let expected = reference(op, x).expect("has a value");
        let (expected, rest) = match reference_wide(op, x).filter(|_| dtype == DType::F64) {
            Some(wide) => (wide.high, wide.low),
            None => (expected, 0.0),
        };
        let found = evaluate(op, dtype, bits);
        let error = ulp_error(dtype, found, expected, rest).expect("is a float");
        if error > worst.0 {
            worst = (error, bits);
        }
    }
    worst
}

#[test]
fn errors_stay_within_the_table() {
    for row in ACCURACY {
        let (op, dtype) = (row.op, row.dtype);
        let (error, at) = match dtype.bits() {
            16 => worst(op, dtype, 0..=0xffff),
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

#[test]
fn the_table_covers_every_derived_function() {
    use crate::ir::Kind;
    let derived = UnaryOp::ALL.iter().filter(|op| op.kind() == Kind::Derived);
    for &op in derived {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let rows = ACCURACY
                .iter()
                .filter(|row| (row.op, row.dtype) == (op, dtype));
            assert_eq!(rows.count(), 1, "{op:?} {dtype}");
        }
    }
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// Arguments with the results that every type must give exactly.
const SPECIAL: &[(UnaryOp, &[(f64, f64)])] = &[
    (
        UnaryOp::Exp,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (1e30, INF),
            (-1e30, 0.0),
        ],
    ),
    (
        UnaryOp::Exp2,
        &[
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (3.0, 8.0),
            (-2.0, 0.25),
        ],
    ),
    (
        UnaryOp::Log,
        &[
            (1.0, 0.0),
            (0.0, -INF),
            (-0.0, -INF),
            (INF, INF),
            (-INF, NAN),
            (-1.0, NAN),
        ],
    ),
    (
        UnaryOp::Log2,
        &[
            (1.0, 0.0),
            (0.0, -INF),
            (-0.0, -INF),
            (INF, INF),
            (-1.0, NAN),
            (8.0, 3.0),
        ],
    ),
    (
        UnaryOp::Rsqrt,
        &[
            (4.0, 0.5),
            (0.0, INF),
            (-0.0, -INF),
            (INF, 0.0),
            (-1.0, NAN),
        ],
    ),
    (
        UnaryOp::Sigmoid,
        &[
            (0.0, 0.5),
            (-0.0, 0.5),
            (INF, 1.0),
            (-INF, 0.0),
            (100.0, 1.0),
        ],
    ),
    (
        UnaryOp::Tanh,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, 1.0),
            (-INF, -1.0),
            (50.0, 1.0),
        ],
    ),
    (
        UnaryOp::Erf,
        &[
            (0.0, 0.0),
            (-0.0, -0.0),
            (INF, 1.0),
            (-INF, -1.0),
            (9.0, 1.0),
        ],
    ),
];

#[test]
fn special_values() {
    for &(op, cases) in SPECIAL {
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for &(x, expected) in cases.iter().chain(&[(NAN, NAN), (-NAN, NAN)]) {
                let number = |value: f64| cast(DType::F64, dtype, value.to_bits());
                let found = canonical(dtype, evaluate(op, dtype, number(x)));
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
            assert_eq!(evaluate(UnaryOp::Exp2, dtype, exponent), power);
            assert_eq!(evaluate(UnaryOp::Log2, dtype, power), exponent);
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
            let tanh = evaluate(UnaryOp::Tanh, dtype, bits);
            assert_eq!(evaluate(UnaryOp::Tanh, dtype, bits ^ sign), tanh ^ sign);
            // Bits of positive floats are ordered as the floats.
            assert!(tanh & !sign <= one);
            assert!(evaluate(UnaryOp::Sigmoid, dtype, bits) <= one, "{x:e}");
        }
    }
}

/// What is known of an argument changes no bit: every sign, exponent and special value, and random
/// significands.
#[test]
fn domains_agree() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for op in [UnaryOp::Exp, UnaryOp::Exp2] {
            let anything = Definition::new(op, dtype);
            let within = Definition::within(op, dtype, Domain::NotPositive);
            let sign = 1 << (dtype.bits() - 1);
            let special = [0, sign, canonical(dtype, dtype.mask())];
            let random = spread(dtype, 200_000).map(|bits| bits | sign);
            for bits in random.chain(special) {
                let expected = anything.evaluate(bits);
                assert_eq!(within.evaluate(bits), expected, "{op:?} {dtype} {bits:#x}");
            }
        }
    }
}
