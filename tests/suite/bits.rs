//! Bits of integers, and functions made of others.

use exactile::prelude::*;

use crate::language::devices;

#[kernel]
fn bits<T: Int>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, 16);
    let (x, y) = (load(x + at), load(y + at));
    let found = [
        count_ones(x),
        leading_zeros(x),
        trailing_zeros(x),
        rotate_left(x, y),
        rotate_right(x, y),
        mulhi(x, y),
        find_first_set(x),
        reverse_bits(x),
        average_floor(x, y),
        average_ceiling(x, y),
        absolute_difference(x, y),
    ];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + row * 16, found);
    }
}

macro_rules! against_the_host {
    ($($name:ident $T:ident $Wide:ident;)*) => { $(
        #[test]
        fn $name() {
            let random = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_right(29)) as $T;
            let mut x: Vec<$T> = (0..16).map(|i| random(i) >> (i % 5)).collect();
            x[..4].copy_from_slice(&[0, 1, $T::MAX, $T::MIN]);
            let mut y: Vec<$T> = (0..16).map(|i| random(i + 77)).collect();
            y[1] = 0;
            let each = |function: fn($T, $T) -> $T| x.iter().zip(&y).map(move |(&x, &y)| function(x, y));
            let mask = $T::BITS - 1;
            assert!(mask.is_power_of_two() || mask > 0);
            let want: Vec<$T> = each(|x, _| x.count_ones() as $T)
                .chain(each(|x, _| x.leading_zeros() as $T))
                .chain(each(|x, _| x.trailing_zeros() as $T))
                .chain(each(|x, y| x.rotate_left(y as u32 & ($T::BITS - 1))))
                .chain(each(|x, y| x.rotate_right(y as u32 & ($T::BITS - 1))))
                .chain(each(|x, y| (($Wide::from(x) * $Wide::from(y)) >> $T::BITS) as $T))
                .chain(each(|x, _| if x == 0 { 0 } else { x.trailing_zeros() as $T + 1 }))
                .chain(each(|x, _| x.reverse_bits()))
                .chain(each(|x, y| (i128::from(x) + i128::from(y)).div_euclid(2) as $T))
                .chain(each(|x, y| (i128::from(x) + i128::from(y) + 1).div_euclid(2) as $T))
                .chain(each(|x, y| i128::from(x).abs_diff(i128::from(y)) as $T))
                .collect();
            for device in devices() {
                let [x, y] = [&x, &y].map(|it| Buffer::from_slice(&device, it).expect("fits"));
                let mut out = Buffer::<$T>::zeros(&device, want.len()).expect("fits");
                bits::<$T>()
                    .run(&device, 1, (&x, &y, &mut out))
                    .expect("runs");
                assert_eq!(out.to_vec().expect("reads"), want);
            }
        }
    )* };
}
against_the_host! {
    bits_of_u8 u8 u128;
    bits_of_i8 i8 i128;
    bits_of_i16 i16 i128;
    bits_of_u32 u32 u128;
    bits_of_i32 i32 i128;
    bits_of_u64 u64 u128;
    bits_of_i64 i64 i128;
}

#[kernel]
fn choose(x: Ptr<u32>, y: Ptr<u32>, selector: Ptr<u32>, out: PtrMut<u32>) {
    let at = arange(0, 4);
    let found = byte_permute(load(x + at), load(y + at), load(selector + at));
    store(out + at, found);
}

#[test]
fn bytes_by_their_numbers() {
    let x = [0x3322_1100u32; 4];
    let y = [0x7766_5544u32; 4];
    let selector = [0x3210, 0x7654, 0x0246, 0x7531];
    let want = [0x3322_1100, 0x7766_5544, 0x0022_4466, 0x7755_3311];
    for device in devices() {
        let [x, y, selector] =
            [x, y, selector].map(|it| Buffer::from_slice(&device, &it).expect("fits"));
        let mut out = Buffer::<u32>::zeros(&device, 4).expect("fits");
        choose()
            .run(&device, 1, (&x, &y, &selector, &mut out))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want);
    }
}

#[kernel]
fn activate<T: SingleFloat>(x: Ptr<T>, out: PtrMut<T>) {
    let at = arange(0, 64);
    let x = load(x + at);
    let found = [
        clamp(x, -1.0, 2.0),
        relu(x),
        silu(x),
        softplus(x),
        gelu(x),
        gelu_tanh(x),
    ];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + row * 64, found);
    }
}

#[test]
fn activations_are_near_their_formulas() {
    let x: Vec<f32> = (0..64).map(|i| (i - 32) as f32 * 0.37).collect();
    let rows: [fn(f64) -> f64; 6] = [
        |x| x.clamp(-1.0, 2.0),
        |x| x.max(0.0),
        |x| x / (1.0 + (-x).exp()),
        |x| x.exp().ln_1p(),
        |x| {
            let erf = exactile_core::semantics::oracle::reference;
            let erf = erf(exactile_core::ir::Function::Erf, x / 2f64.sqrt());
            0.5 * x * (1.0 + erf)
        },
        |x| {
            0.5 * x
                * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        },
    ];
    for device in devices() {
        let input = Buffer::from_slice(&device, &x).expect("fits");
        let mut out = Buffer::<f32>::zeros(&device, rows.len() * 64).expect("fits");
        activate::<f32>()
            .run(&device, 1, (&input, &mut out))
            .expect("runs");
        let found = out.to_vec().expect("reads");
        for (row, function) in rows.iter().enumerate() {
            for (at, &x) in x.iter().enumerate() {
                let (found, want) = (f64::from(found[row * 64 + at]), function(f64::from(x)));
                assert!((found - want).abs() < 2e-6, "{row} {x}: {found} {want}");
            }
        }
    }
}

#[kernel]
fn combine(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 256);
    let (x, y) = (load(x + at), load(y + at));
    let found = [
        pow(x, y),
        atan2(x, y),
        hypot(x, y),
        copysign(x, y),
        nextafter(x, y),
    ];
    for (row, found) in found.into_iter().enumerate() {
        store(out + at + row * 256, found);
    }
}

/// The number next to `x` toward `y`.
fn next(x: f32, y: f32) -> f32 {
    match x.partial_cmp(&y) {
        None => f32::NAN,
        Some(std::cmp::Ordering::Equal) => y,
        Some(std::cmp::Ordering::Less) => x.next_up(),
        Some(std::cmp::Ordering::Greater) => x.next_down(),
    }
}

#[test]
fn functions_of_two_numbers_have_the_special_values_of_c() {
    let inf = f32::INFINITY;
    let some = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        -0.7,
        3.0,
        -3.5,
        inf,
        -inf,
        f32::NAN,
        1e-40,
        3e38,
        7.25,
    ];
    let x: Vec<f32> = (0..256).map(|at| some[at / 16]).collect();
    let y: Vec<f32> = (0..256).map(|at| some[at % 16]).collect();
    let wide = |function: fn(f64, f64) -> f64, x: f32, y: f32| function(x.into(), y.into()) as f32;
    for device in devices() {
        let [a, b] = [&x, &y].map(|it| Buffer::from_slice(&device, it).expect("fits"));
        let mut out = Buffer::<f32>::zeros(&device, 5 * 256).expect("fits");
        combine().run(&device, 1, (&a, &b, &mut out)).expect("runs");
        let found = out.to_vec().expect("reads");
        for (at, (&x, &y)) in x.iter().zip(&y).enumerate() {
            let want = [
                wide(f64::powf, x, y),
                wide(f64::atan2, x, y),
                wide(f64::hypot, x, y),
                x.copysign(if y.is_nan() { 1.0 } else { y }),
                next(x, y),
            ];
            for (row, want) in want.into_iter().enumerate() {
                let found = found[row * 256 + at];
                let apart = found.to_bits().abs_diff(want.to_bits());
                let same = (found.is_nan() && want.is_nan()) || apart <= u32::from(row < 3);
                assert!(same, "{row} of {x:e} and {y:e}: {found:e}, not {want:e}");
            }
        }
    }
}
