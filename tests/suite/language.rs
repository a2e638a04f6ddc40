//! What the language means, executed on every device of the host: reductions, accumulators,
//! tensors, control flow.
#![expect(clippy::eq_op, reason = "zero made from an argument")]

use std::collections::BTreeMap;

use exactile::prelude::*;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, Options};
use exactile_core::ir::{DType, Literal};
use exactile_core::random::Random;

pub(super) fn devices() -> Vec<Device> {
    let all = [Device::interpreter(), Device::lanes(), Device::cpu()];
    all.into_iter().chain(Device::cuda(0).ok()).collect()
}

pub(super) fn upload<T: exactile::Number>(device: &Device, numbers: &[T]) -> Buffer<T> {
    Buffer::from_slice(device, numbers).expect("fits")
}

/// Numbers of both signs and many magnitudes, so that every order of adding shows.
pub(super) fn noise(count: usize) -> Vec<f32> {
    let mut random = Random::new(1);
    (0..count)
        .map(|_| {
            let bits = random.bits();
            let magnitude = f32::from_bits(((bits >> 40) as u32 & 0x7f_ffff) | 0x3f80_0000);
            let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
            sign * magnitude * [1e-3, 1.0, 1e3, 1e6][(bits >> 1) as usize & 3]
        })
        .collect()
}

#[kernel]
fn row_sum<T: Float, const BLOCK: usize, const TILES: usize>(x: Ptr<T>, out: PtrMut<T>, n: i32) {
    let mut sum = sum_accumulator::<T>([]).at_most(TILES);
    for start in range(0, n).step(BLOCK) {
        let offsets = start + arange(0, BLOCK);
        sum.add(load(x + offsets).mask(offsets < n), 0);
    }
    store(out, sum.finish());
}

#[kernel]
fn whole_sum<T: Float, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<T>, n: i32) {
    let offsets = arange(0, BLOCK);
    store(out, load(x + offsets).mask(offsets < n).sum(0));
}

fn tree(x: &[f32]) -> f32 {
    match x {
        [] => 0.0,
        [one] => *one,
        _ => {
            let half = x.len().next_power_of_two() / 2;
            tree(&x[..half]) + tree(&x[half..])
        }
    }
}

/// A sum over tiles has the bits of one sum, for every tile size and every length.
#[test]
fn accumulators_add_as_one_tree() {
    for device in devices() {
        for n in [0usize, 1, 2, 7, 63, 64, 65, 100, 129, 200] {
            let numbers = noise(n.max(1));
            let x = upload(&device, &numbers);
            let want = tree(&numbers[..n]) + 0.0;
            let mut whole = upload(&device, &[-1.0f32]);
            whole_sum::<f32>()
                .block(256)
                .run(&device, 1, (&x, &mut whole, n as i32))
                .expect("runs");
            assert_eq!(whole.to_vec().expect("reads")[0].to_bits(), want.to_bits());
            for block in [1usize, 2, 4, 16, 64] {
                let mut out = upload(&device, &[-1.0f32]);
                let kernel = row_sum::<f32>()
                    .block(block)
                    .tiles(n.div_ceil(block).max(1));
                kernel
                    .run(&device, 1, (&x, &mut out, n as i32))
                    .expect("runs");
                let found = out.to_vec().expect("reads")[0];
                assert_eq!(
                    found.to_bits(),
                    want.to_bits(),
                    "n {n}, block {block}: {found} {want}"
                );
            }
        }
    }
}

/// More tiles than stated still add up.
#[test]
fn a_full_accumulator_still_sums() {
    for device in devices() {
        let x = upload(&device, &[1.0f32; 21]);
        let mut out = upload(&device, &[0.0f32]);
        row_sum::<f32>()
            .block(2)
            .tiles(3)
            .run(&device, 1, (&x, &mut out, 21))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [21.0]);
    }
}

/// `f16` adds in `f32` and rounds once: 2048 + 1 would be lost in `f16`.
#[test]
fn half_sums_round_once() {
    for device in devices() {
        let one = f16::from_f32(1.0);
        let mut numbers = vec![one; 8];
        numbers[0] = f16::from_f32(2048.0);
        let x = upload(&device, &numbers);
        for kernel in [
            whole_sum::<f16>().block(8).into_kernel(),
            row_sum::<f16>().block(2).tiles(4).into_kernel(),
        ] {
            let mut out = upload(&device, &[one]);
            kernel.run(&device, 1, (&x, &mut out, 8)).expect("runs");
            assert_eq!(out.to_vec().expect("reads")[0].to_f32(), 2056.0);
        }
    }
}

#[kernel(ROWS = 4, COLUMNS = 8)]
fn extremes<T: Numeric, const ROWS: usize, const COLUMNS: usize>(
    x: Ptr<T>,
    largest: PtrMut<T>,
    at: PtrMut<i64>,
    least: PtrMut<T>,
    least_at: PtrMut<i64>,
) {
    let rows = arange(0, ROWS);
    let tile = load(x + rows.expand(1) * COLUMNS + arange(0, COLUMNS).expand(0));
    store(largest + rows, tile.max(1));
    store(at + rows, tile.argmax(1));
    store(least + rows, tile.min(1));
    store(least_at + rows, tile.argmin(1));
}

#[test]
fn extremes_order_zeros_and_ignore_nan() {
    for device in devices() {
        let nan = f32::NAN;
        let rows = [
            [1.0, 5.0, -2.0, 5.0, 0.0, -2.0, 3.0, 4.0],
            [-0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -0.0, 0.0],
            [nan, -1.0, nan, 2.0, nan, 2.0, -1.0, nan],
            [nan; 8],
        ];
        let x = upload(&device, rows.as_flattened());
        let mut largest = upload(&device, &[0.0f32; 4]);
        let mut least = upload(&device, &[0.0f32; 4]);
        let mut at = upload(&device, &[-1i64; 4]);
        let mut least_at = upload(&device, &[-1i64; 4]);
        extremes::<f32>()
            .run(
                &device,
                1,
                (&x, &mut largest, &mut at, &mut least, &mut least_at),
            )
            .expect("runs");
        let largest = largest.to_vec().expect("reads");
        let least = least.to_vec().expect("reads");
        assert_eq!(largest[0], 5.0);
        assert_eq!(largest[1].to_bits(), 0.0f32.to_bits());
        assert_eq!(largest[2], 2.0);
        assert!(largest[3].is_nan() && least[3].is_nan());
        assert_eq!((least[0], least[2]), (-2.0, -1.0));
        assert_eq!(least[1].to_bits(), (-0.0f32).to_bits());
        assert_eq!(at.to_vec().expect("reads"), [1, 1, 3, 0]);
        assert_eq!(least_at.to_vec().expect("reads"), [2, 0, 1, 0]);
    }
}

#[kernel(BLOCK = 8)]
fn combines<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let offsets = arange(0, BLOCK);
    let values = load(x + offsets);
    // A product that only sees the masked elements, and the last element under a pair combine.
    let product = reduce_masked(values, offsets < n, 0, |a, b| a * b);
    let (last, _) = reduce((values, offsets), 0, |a, b| if a.1 > b.1 { a } else { b });
    store(out, product);
    store(out + 1, last);
}

#[test]
fn closures_combine() {
    for device in devices() {
        let x = upload(&device, &[2.0f32, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0]);
        for (n, product) in [(0, 0.0), (1, 2.0), (3, 30.0), (8, 9_699_690.0)] {
            let mut out = upload(&device, &[0.0f32; 2]);
            combines().run(&device, 1, (&x, &mut out, n)).expect("runs");
            assert_eq!(out.to_vec().expect("reads"), [product, 19.0]);
        }
    }
}

/// Collatz steps: a `while` with a branch inside, through a device function.
#[device]
fn step(value: Scalar<i64>) -> Scalar<i64> {
    if value % 2 == 0 {
        return value / 2;
    }
    3 * value + 1
}

#[device]
fn advance(value: &mut Scalar<i64>, steps: &mut Scalar<i32>) {
    if *value != 1 {
        *value = step(*value);
        *steps += 1;
    }
}

#[kernel]
fn collatz(out: PtrMut<i32>, start: i64) {
    let mut value = start + program_id(0);
    let mut steps = zeros::<i32>([]).scalar();
    while value > 1 {
        advance(&mut value, &mut steps);
    }
    store(out + program_id(0), steps);
}

#[test]
fn loops_and_branches_run() {
    for device in devices() {
        let mut out = upload(&device, &[-1i32; 8]);
        collatz().run(&device, 8, (&mut out, 1i64)).expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [0, 1, 7, 2, 5, 8, 16, 3]);
    }
}

#[kernel(BLOCK = 8)]
fn numbers<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, flags: PtrMut<bool>) {
    let at = arange(0, BLOCK);
    let v = load(x + at);
    let clamped = minimum(maximum(v, -1.0), 1.0);
    let chosen = select(at % 2 == 0, clamped, fma(v, v, 0.5));
    store(out + at, -chosen + 1.0 / 2.0 - (1 - at).to::<f32>());
    store(flags + at, !((v >= 0.0) & (at != 3)) | (v == 2.0));
}

#[test]
fn operators_agree_with_rust() {
    for device in devices() {
        let v = [-3.0f32, -0.5, 0.25, 0.75, 2.0, 5.0, -0.0, 1.5];
        let x = upload(&device, &v);
        let mut out = upload(&device, &[0.0f32; 8]);
        let mut flags = upload(&device, &[false; 8]);
        numbers()
            .run(&device, 1, (&x, &mut out, &mut flags))
            .expect("runs");
        let want: Vec<f32> = v
            .iter()
            .enumerate()
            .map(|(at, &v)| {
                let clamped = v.clamp(-1.0, 1.0);
                let chosen = if at % 2 == 0 { clamped } else { v * v + 0.5 };
                -chosen + 0.5 - (1.0 - at as f32)
            })
            .collect();
        assert_eq!(out.to_vec().expect("reads"), want);
        let want: Vec<bool> = v
            .iter()
            .enumerate()
            .map(|(at, &v)| !(v >= 0.0 && at != 3) || v == 2.0)
            .collect();
        assert_eq!(flags.to_vec().expect("reads"), want);
    }
}

#[kernel]
fn carries_structures(out: PtrMut<f32>, n: i32) {
    let mut pair = (zeros::<f32>([]).scalar(), [zeros::<f32>([]); 2]);
    let mut history = vec![full::<f32>([], 1.0), full::<f32>([], 1.0)];
    for _ in 0..n {
        pair.0 += 1.0;
        pair.1[1] += 2.0;
        let next = history[0] + history[1];
        history[0] = history[1];
        history[1] = next;
    }
    store(out, pair.0);
    store(out + 1, pair.1[0] + pair.1[1]);
    store(out + 2, history[1]);
}

#[test]
fn tuples_arrays_and_vectors_are_carried() {
    for device in devices() {
        let mut out = upload(&device, &[0.0f32; 3]);
        carries_structures()
            .run(&device, 1, (&mut out, 5))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), [5.0, 10.0, 13.0]);
    }
}

#[kernel(ROWS = 4, COLUMNS = 8)]
fn transposes<T: Numeric, const ROWS: usize, const COLUMNS: usize>(
    x: Tensor<T, 2>,
    out: TensorMut<T, 2>,
) {
    let (i, j) = (program_id(0), program_id(1));
    let tile = load(x.tile([ROWS, COLUMNS]).at([i, j]));
    store(out.tile([COLUMNS, ROWS]).at([j, i]), tile.transpose());
}

/// Tiles reach over every edge of the tensor; nothing outside of it is read or written.
#[test]
fn tiles_of_tensors_stop_at_the_edges() {
    for device in devices() {
        let (rows, columns) = (7, 11);
        let numbers: Vec<i32> = (0..rows * columns).map(|at| at as i32 + 1).collect();
        let x = upload(&device, &numbers);
        let mut out = upload(&device, &vec![-1; rows * columns + 3]);
        transposes::<i32>()
            .run(
                &device,
                (2, 2),
                (
                    x.view([rows, columns]).expect("fits"),
                    out.view_mut([columns, rows]).expect("fits"),
                ),
            )
            .expect("runs");
        let found = out.to_vec().expect("reads");
        for row in 0..rows {
            for column in 0..columns {
                assert_eq!(found[column * rows + row], numbers[row * columns + column]);
            }
        }
        assert_eq!(found[rows * columns..], [-1; 3]);
    }
}

#[kernel]
fn shifted(x: Tensor<f32, 1>, out: TensorMut<f32, 1>, by: i32) {
    let tile = x.tile([8]).at_offset([by]).load();
    out.tile([8]).at_offset([by - by]).store(tile);
}

/// Coordinates before the start are outside too.
#[test]
fn negative_coordinates_read_zero() {
    for device in devices() {
        let x = upload(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0]);
        let mut out = upload(&device, &[9.0f32; 8]);
        let arguments = (
            x.view([5]).expect("fits"),
            out.view_mut([7]).expect("fits"),
            -2,
        );
        shifted().run(&device, 1, arguments).expect("runs");
        let want = [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0];
        assert_eq!(out.to_vec().expect("reads"), want);
    }
}

#[kernel]
fn checkered(out: TensorMut<i32, 5>) {
    let at = arange(0, 4);
    let even = (at % 2 == 0).expand(0).expand(0).expand(0).expand(0);
    let tile = out
        .tile([1, 1, 1, 1, 4])
        .at_offset((0, 1, program_id(0), 0, -1));
    store(tile, 7).mask(even);
}

/// A mask holds beside the extents of five axes.
#[test]
fn tiles_are_stored_where_a_mask_holds() {
    for device in devices() {
        let mut out = upload(&device, &[9; 24]);
        let view = out.view_mut([1, 2, 3, 1, 4]).expect("fits");
        checkered().launch(&device, 3, (view,)).expect("runs");
        let row = [9, 7, 9, 9];
        let want = [[9; 12].as_slice(), &[row; 3].concat()].concat();
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
    }
}

/// Rows dealt to the programs of any grid; `from` may lie beyond the end.
#[kernel]
fn dealt(out: PtrMut<i64>, from: i64, rows: i64, step: i64) {
    for row in range(from + program_id(0) * step, rows).step(num_programs(0) * step) {
        store(out + row, row + 1);
    }
}

#[test]
fn loops_step_by_numbers_of_the_device() {
    for device in &devices() {
        for (grid, from, rows, step) in [
            (1, 0, 7, 1),
            (3, 0, 7, 1),
            (9, 0, 7, 1),
            (2, 1, 16, 3),
            (2, 7, 7, 1),
            (1, 9, 3, 1),
        ] {
            let mut out = Buffer::<i64>::zeros(device, 16).expect("fits");
            let arguments = (&mut out, from, rows, step);
            dealt().run(device, grid, arguments).expect("runs");
            let want: Vec<i64> = (0..16)
                .map(|row| {
                    let dealt = row >= from && row < rows && (row - from) % step == 0;
                    if dealt { row + 1 } else { 0 }
                })
                .collect();
            assert_eq!(
                out.to_vec().expect("reads"),
                want,
                "{device} {grid} {from} {rows}"
            );
        }
    }
}

#[kernel]
fn counted(out: PtrMut<i64>, from: i64, to: i64, step: i64) {
    let mut count = from - from;
    let mut last = from;
    for index in range(from, to).step(step) {
        count += 1;
        last = index;
    }
    store(out, count);
    store(out + 1, last);
}

#[test]
fn steps_of_the_device_reach_every_number() {
    for device in devices() {
        for (from, to, step, count, last) in [
            (0, 10, 0, 0, 0),
            (0, 10, -1, 0, 0),
            (i64::MIN, i64::MAX, 1 << 62, 4, 1 << 62),
            (i64::MIN, i64::MAX, i64::MAX, 3, i64::MAX - 1),
            (i64::MAX - 2, i64::MAX, 5, 1, i64::MAX - 2),
        ] {
            let mut out = Buffer::<i64>::zeros(&device, 2).expect("fits");
            counted()
                .run(&device, 1, (&mut out, from, to, step))
                .expect("runs");
            assert_eq!(
                out.to_vec().expect("reads"),
                [count, last],
                "{device} {from} {step}"
            );
        }
    }
}

/// The number of trips of the loop of `counted`, by a kernel that stops before the loop.
fn trips(from: i64, to: i64, step: i64) -> i64 {
    let ir = counted().ir().expect("traces");
    let (before, rest) = ir.split_once(" = for ").expect("has a loop");
    let (before, _) = before.rsplit_once('\n').expect("has lines");
    let upper = rest.split(", ").nth(1).expect("has bounds");
    let text = format!("{before}\n%at = constant value=i64(0) : i64\nstore %0, %at, {upper}\n}}");
    let kernel = TextKernel::parse(&text, "counted", Options::default()).expect("parses");
    let out = Array::zeros(DType::I64, [1]).expect("fits");
    let mut arguments = BTreeMap::from([("out".to_string(), TextArgument::Array(out))]);
    for (name, number) in [("from", from), ("to", to), ("step", step)] {
        let number = TextArgument::Scalar(Literal::from_bits(DType::I64, number as u64));
        arguments.insert(name.to_string(), number);
    }
    kernel
        .run(&Device::interpreter(), [1, 1, 1], &mut arguments)
        .expect("runs");
    let Some(TextArgument::Array(out)) = arguments.get("out") else {
        unreachable!("it was inserted above");
    };
    out.to_vec::<i64>().expect("reads")[0]
}

#[test]
fn loops_that_nobody_sees_end_do_not_end_at_once() {
    assert_eq!(trips(i64::MIN, i64::MAX, 1), i64::MAX);
    assert_eq!(trips(i64::MIN, i64::MAX, 2), i64::MAX);
    assert_eq!(trips(-1, i64::MAX, 1), i64::MAX);
    assert_eq!(trips(0, i64::MAX, 1), i64::MAX);
    assert_eq!(trips(i64::MIN, i64::MAX, 3), 6_148_914_691_236_517_205);
    assert_eq!(trips(i64::MAX, i64::MIN, 1), 0);
}
