//! Sorting on every device of the host, against the standard library.

use std::collections::BTreeSet;

use exactile::ListingStage;
use exactile::prelude::*;
use exactile_core::random::Random;

use crate::language::devices;

#[kernel]
fn everything<const N: usize>(x: Ptr<f32>, sorted: PtrMut<f32>, order: PtrMut<i64>) {
    let offsets = arange(0, N);
    let numbers = load(x + offsets);
    store(sorted + offsets, numbers.sort(0));
    store(sorted + N + offsets, numbers.sort_descending(0));
    store(order + offsets, numbers.argsort(0));
    store(order + N + offsets, numbers.argsort_descending(0));
}

#[kernel]
fn firsts<const N: usize, const K: usize>(x: Ptr<i16>, out: PtrMut<i16>, order: PtrMut<i64>) {
    let numbers = load(x + arange(0, N));
    let offsets = arange(0, K);
    let (greatest, places) = numbers.topk_with_indices(K, 0);
    store(out + offsets, greatest);
    store(order + offsets, places);
    let (least, places) = numbers.bottomk_with_indices(K, 0);
    store(out + K + offsets, least);
    store(order + K + offsets, places);
    store(out + 2 * K + offsets, numbers.topk(K, 0));
    store(order + 2 * K + offsets, numbers.argbottomk(K, 0));
}

#[kernel]
fn along<const N: usize>(x: Ptr<u8>, y: Ptr<f64>, out: PtrMut<f64>) {
    let offsets = arange(0, N);
    let (keys, others) = (load(x + offsets), load(y + offsets));
    let (_, (moved, places)) = keys.sort_with((others, offsets), 0);
    store(out + offsets, moved + places.to::<f64>());
    let (_, moved) = keys.sort_descending_with(others, 0);
    store(out + N + offsets, moved);
}

fn noise(count: usize) -> Vec<u64> {
    let mut random = Random::new(1);
    (0..count).map(|_| random.bits()).collect()
}

/// The indices in stable order.
fn stable<T>(x: &[T], order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..x.len()).collect();
    places.sort_by(|&a, &b| order(&x[a], &x[b]));
    places
}

fn pick<T: Copy>(x: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| x[place]).collect()
}

fn indices(places: &[usize]) -> Vec<i64> {
    places.iter().map(|&place| place as i64).collect()
}

#[test]
fn floats_sort_in_the_total_order_and_stably() {
    const N: usize = 512;
    let special = [f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45];
    let number = |bits: u64| match bits >> 60 {
        0..6 => special[(bits >> 60) as usize],
        6..9 => (bits % 7) as f32 - 3.0,
        _ => f32::from_bits(bits as u32),
    };
    let x: Vec<f32> = noise(N).into_iter().map(number).collect();
    let canonical = |x: f32| if x.is_nan() { f32::NAN } else { x };
    let x: Vec<f32> = x.into_iter().map(canonical).collect();
    let up = stable(&x, f32::total_cmp);
    let down = stable(&x, |a, b| b.total_cmp(a));
    for device in devices() {
        for warps in [1, 4, 8] {
            let input = Buffer::from_slice(&device, &x).expect("fits");
            let mut sorted = Buffer::<f32>::zeros(&device, 2 * N).expect("fits");
            let mut order = Buffer::<i64>::zeros(&device, 2 * N).expect("fits");
            everything()
                .n(N)
                .warps(warps)
                .run(&device, 1, (&input, &mut sorted, &mut order))
                .expect("runs");
            let want = [pick(&x, &up), pick(&x, &down)].concat();
            exactile::assert_bits_equal(&sorted.to_vec().expect("reads"), &want);
            let want = [indices(&up), indices(&down)].concat();
            assert_eq!(
                order.to_vec().expect("reads"),
                want,
                "{device}, {warps} warps"
            );
        }
    }
}

#[test]
fn the_first_elements_come_with_the_lowest_indices() {
    const N: usize = 256;
    let x: Vec<i16> = noise(N)
        .into_iter()
        .map(|bits| (bits % 40) as i16 - 20)
        .collect();
    let up = stable(&x, i16::cmp);
    let down = stable(&x, |a, b| b.cmp(a));
    for device in devices() {
        for k in [1, 8, 64, 256] {
            let input = Buffer::from_slice(&device, &x).expect("fits");
            let mut out = Buffer::<i16>::zeros(&device, 3 * k).expect("fits");
            let mut order = Buffer::<i64>::zeros(&device, 3 * k).expect("fits");
            firsts()
                .n(N)
                .k(k)
                .run(&device, 1, (&input, &mut out, &mut order))
                .expect("runs");
            let (least, greatest) = (&up[..k], &down[..k]);
            let want = [pick(&x, greatest), pick(&x, least), pick(&x, greatest)].concat();
            assert_eq!(out.to_vec().expect("reads"), want, "{device}, k = {k}");
            let want = [indices(greatest), indices(least), indices(least)].concat();
            assert_eq!(order.to_vec().expect("reads"), want, "{device}, k = {k}");
        }
    }
}

#[test]
fn what_moves_along_keeps_its_order_among_equals() {
    const N: usize = 128;
    let x: Vec<u8> = noise(N).into_iter().map(|bits| (bits % 5) as u8).collect();
    let y: Vec<f64> = (0..N).map(|index| index as f64 / 8.0).collect();
    let up = stable(&x, u8::cmp);
    let down = stable(&x, |a, b| b.cmp(a));
    let sums: Vec<f64> = up.iter().map(|&place| y[place] + place as f64).collect();
    for device in devices() {
        let keys = Buffer::from_slice(&device, &x).expect("fits");
        let others = Buffer::from_slice(&device, &y).expect("fits");
        let mut out = Buffer::<f64>::zeros(&device, 2 * N).expect("fits");
        along()
            .n(N)
            .run(&device, 1, (&keys, &others, &mut out))
            .expect("runs");
        let want = [sums.clone(), pick(&y, &down)].concat();
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

#[kernel]
fn wrong(x: Ptr<f32>, out: PtrMut<f32>) {
    let numbers = load(x + arange(0, 8));
    store(out + arange(0, 3), numbers.topk(3, 0));
    store(out + arange(0, 16), numbers.topk(16, 0));
    store(out + arange(0, 8), numbers.sort(1));
    store(out + arange(0, 8), numbers.argsort(2).to::<f32>());
}

#[test]
fn wrong_counts_and_axes_are_errors_of_the_trace() {
    let errors = wrong().ir().expect_err("is wrong").to_string();
    for message in [
        "`topk` of 3 elements, expected a power of two up to 8, the extent of axis 0",
        "`topk` of 16 elements, expected a power of two up to 8",
        "`sort`: axis 1 is out of range for `tile<8xf32>`",
        "`argsort`: axis 2 is out of range for `tile<8xf32>`",
    ] {
        assert!(errors.contains(message), "{errors}");
    }
}

#[kernel]
fn of_rows<const N: usize>(x: Ptr<f32>, y: Ptr<u8>, out: PtrMut<f32>, moved: PtrMut<u8>) {
    let offsets = arange(0, N);
    let (sorted, along) = load(x + offsets).sort_with(load(y + offsets), 0);
    store(out + offsets, sorted);
    store(moved + offsets, along);
}

/// What comparisons of a sort give stays a flag: no number is made of it, on its way to a choice or between lanes.
#[test]
fn comparisons_of_a_sort_stay_flags() {
    for n in [32, 256] {
        let text = of_rows().n(n).listing(ListingStage::Lane);
        let text = text.expect("compiles");
        let lines = || {
            text.lines()
                .filter_map(|line| line.trim().split_once(" = "))
        };
        let is_flag = |ty: &str| ty.ends_with("bool") || ty.ends_with("bool>");
        let flags: BTreeSet<&str> = lines()
            .filter(|(_, op)| op.rsplit_once(" : ").is_some_and(|(_, ty)| is_flag(ty)))
            .map(|(name, _)| name)
            .collect();
        let compared = lines().any(|(name, op)| flags.contains(name) && op.starts_with("lt "));
        assert!(compared, "{text}");
        for (_, op) in lines() {
            let (mnemonic, operands) = op.split_once(' ').unwrap_or((op, ""));
            let names = operands.split([' ', ',', '[', ']']);
            let widens = ["cast", "bitcast", "shuffle_xor", "shuffle_index"].contains(&mnemonic)
                && names.into_iter().any(|name| flags.contains(name));
            assert!(!widens, "{op}");
        }
    }
}
