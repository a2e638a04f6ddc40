//! Integer literals that no `i32` holds take the type of what is beside them, beside the same text as plain Rust.

use exactile::prelude::*;

use super::language::{devices, upload};

#[kernel]
fn masks(x: Ptr<u32>, y: Ptr<i64>, z: Ptr<u64>, out: PtrMut<u64>) {
    let mut s = load(x);
    s &= 0xFFFF_FFF0;
    s = 0xF000_000F ^ s;
    let kind = match s {
        0xFFFF_0000..=0xFFFF_FFFF => scalar::<u64>(1),
        _ => scalar::<u64>(0x1_0000_0000_0000),
    };
    let a = load(y) * 0x9E37_79B9_7F4A - (1 << 40);
    let b = load(z) | 0x8000_0000_0000_0000;
    store(out, s.to::<u64>());
    store(out + 1, a.to::<u64>());
    store(out + 2, b);
    store(out + 3, kind);
    store(
        out + 4,
        select(
            a > -0x1_0000_0000 && 0xFFFF_FFFF_FFFF >= a,
            scalar::<u64>(1),
            2,
        ),
    );
    let tile = load(z + arange(0, 2)) % 0xFFFF_FFFB;
    store(out + 5 + arange(0, 2), tile);
    let host: u64 = 5;
    let mut hashed = (host + 0xFFFF_FFFF_FFFF) * 3;
    hashed ^= 0xABCD_EF01_2345;
    store(out + 7, hashed);
}

fn on_host(x: u32, y: i64, z: [u64; 2]) -> [u64; 8] {
    let mut s = x;
    s &= 0xFFFF_FFF0;
    let turned = 0xF000_000F ^ s;
    s = turned;
    let kind = match s {
        0xFFFF_0000..=0xFFFF_FFFF => 1,
        _ => 0x1_0000_0000_0000,
    };
    let a = y.wrapping_mul(0x9E37_79B9_7F4A).wrapping_sub(1 << 40);
    let between = a > -0x1_0000_0000 && 0xFFFF_FFFF_FFFF >= a;
    let [c, d] = z.map(|z| z % 0xFFFF_FFFB);
    let hashed = ((5u64 + 0xFFFF_FFFF_FFFF) * 3) ^ 0xABCD_EF01_2345;
    let between = if between { 1 } else { 2 };
    [
        u64::from(s),
        a as u64,
        z[0] | 0x8000_0000_0000_0000,
        kind,
        between,
        c,
        d,
        hashed,
    ]
}

#[test]
fn literals_of_more_than_32_bits_have_the_type_beside_them() {
    for device in devices() {
        for (x, y, z) in [
            (0x1234_5678, 3, [7, u64::MAX]),
            (0x0FFF_FFF7, -2, [0xFFFF_FFFB, 0x8000_0000_0000_0001]),
            (0, 0, [0, 1]),
        ] {
            let (x1, y1, z1) = (
                upload(&device, &[x]),
                upload(&device, &[y]),
                upload(&device, &z),
            );
            let mut out = upload(&device, &[9u64; 8]);
            masks()
                .run(&device, 1, (&x1, &y1, &z1, &mut out))
                .expect("runs");
            assert_eq!(out.to_vec().expect("reads"), on_host(x, y, z), "{device}");
        }
    }
}

#[kernel]
fn too_large(x: Ptr<u32>, y: Ptr<i8>, out: PtrMut<u32>) {
    store(out, load(x) + 0x1_0000_0000);
    store(out + 1, (load(y) & 0xFFFF_FFFF).to::<u32>());
    store(out + 2, scalar::<u32>(5_000_000_000));
}

#[test]
fn literals_that_do_not_fit_name_their_place_and_the_range() {
    let error = too_large().check().expect_err("is refused").to_string();
    for part in [
        "`4294967296` does not fit `u32`, whose numbers are 0..=4294967295",
        "`4294967295` does not fit `i8`, whose numbers are -128..=127",
        "`5000000000` does not fit `u32`, whose numbers are 0..=4294967295",
        "literals.rs:",
    ] {
        assert!(error.contains(part), "{error}");
    }
}

/// Constants that shifts make.
#[kernel]
fn shifts(x: Ptr<i32>, y: Ptr<u64>, out: PtrMut<i64>) {
    let (x, y) = (load(x), load(y));
    let mut z = x;
    z |= 1 << 31;
    let host: i32 = 7;
    store(out, (x ^ (1 << 31)).to::<i64>());
    store(out + 1, (x & (0xFF << 24 | 3)).to::<i64>());
    store(out + 2, (y ^ (1 << 31)).to::<i64>());
    store(out + 3, (y | (0xFF << 60)).to::<i64>());
    store(out + 4, z.to::<i64>());
    store(out + 5, scalar::<i32>(1 << 31).to::<i64>());
    store(out + 6, i64::from(host ^ (1 << 31)));
}

#[test]
fn shifts_of_literals_are_those_of_the_type_beside_them() {
    for device in devices() {
        for (x, y) in [(5, 9), (-3, u64::MAX), (i32::MIN, 1 << 31)] {
            let (x1, y1) = (upload(&device, &[x]), upload(&device, &[y]));
            let mut out = upload(&device, &[9i64; 7]);
            shifts()
                .run(&device, 1, (&x1, &y1, &mut out))
                .expect("runs");
            let want = [
                i64::from(x ^ (1 << 31)),
                i64::from(x & (0xFF << 24 | 3)),
                (y ^ (1 << 31)) as i64,
                (y | (0xFF << 60)) as i64,
                i64::from(x | 1 << 31),
                i64::from(i32::MIN),
                i64::from(7 ^ (1 << 31)),
            ];
            assert_eq!(out.to_vec().expect("reads"), want, "{device} {x} {y}");
        }
    }
}

#[kernel]
fn shifts_too_far(x: Ptr<i32>, out: PtrMut<i32>) {
    store(out, load(x) ^ (1 << 32));
}

#[test]
fn a_shift_beyond_the_type_is_an_error() {
    let error = shifts_too_far().check().expect_err("is refused");
    let error = error.to_string();
    assert!(error.contains("`4294967296` does not fit `i32`"), "{error}");
}

/// Numbers of the host of 128 bits.
#[device]
fn hosts_of_128_bits(a: u128, b: i128) -> (u128, i128, bool) {
    let mut c = a ^ 0xFFFF_FFFF_FFFF;
    c |= 0x1_0000_0000_0000_0000;
    let d = 0x1_0000_0000 - b * -0x8000_0000_0001;
    (c, d, a > 0x1_0000_0000 && 0x1_0000_0000 != b)
}

#[test]
fn numbers_of_128_bits_stand_beside_wide_literals() {
    let want = (
        (9 ^ 0xFFFF_FFFF_FFFF) | 0x1_0000_0000_0000_0000,
        0x1_0000_0000 + 3 * 0x8000_0000_0001,
        false,
    );
    assert_eq!(hosts_of_128_bits(9, 3), want);
}

#[kernel]
fn fills(out: PtrMut<u64>) {
    store(out + arange(0, 2), full([2], 0x1_0000_0000));
    let number: Scalar<u64> = scalar(0x2_0000_0000);
    store(out + 2, number);
    store(out + 3, own::fills(3));
}

mod own {
    use exactile::prelude::{Scalar, device};

    fn scalar(number: u64) -> u64 {
        number + 1
    }

    fn full(shape: [usize; 1], number: u64) -> u64 {
        number + shape[0] as u64
    }

    #[device]
    pub(super) fn fills(count: usize) -> Scalar<u64> {
        exactile::prelude::scalar(scalar(0x3_0000_0000) + full([count], 0x4_0000_0000))
    }
}

#[test]
fn functions_named_as_those_of_one_number_take_numbers_of_the_host() {
    for device in devices() {
        let mut out = upload(&device, &[9u64; 4]);
        fills().run(&device, 1, (&mut out,)).expect("runs");
        let want = [0x1_0000_0000, 0x1_0000_0000, 0x2_0000_0000, 0x7_0000_0004];
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}
