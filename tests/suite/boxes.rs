//! Products by tensor cores whose operands come to shared memory in boxes of arrays, or by lanes where they cannot.

use exactile::prelude::*;
use exactile::{Inspection, ListingStage, Target, TensorView, bf16};
use exactile_kernels::linear::linear;
use exactile_kernels::tensor_matmul::tensor_matmul;

#[kernel(BM = 64, BN = 64, BK = 64)]
fn tiles<const BM: usize, const BN: usize, const BK: usize>(
    a: Tensor<bf16, 2>,
    b: Tensor<bf16, 2>,
    c: TensorMut<f32, 2>,
) {
    let (row, column) = (program_id(0) * BM, program_id(1) * BN);
    let mut sum = zeros::<f32>([BM, BN]);
    for k in range(0, a.extent(1)).step(BK).stages(3) {
        let left = a.tile([BM, BK]).at_offset([row, k]).load();
        let right = b.tile([BK, BN]).at_offset([k, column]).load();
        sum = dot_with(Precision::Hopper, left, right, sum);
    }
    c.tile([BM, BN]).at_offset([row, column]).store(sum);
}

/// Bits that are all kinds of small numbers.
fn numbers(count: usize, seed: usize) -> Vec<bf16> {
    let number = |at: usize| ((at * 7919 + seed * 104_729) % 2003) as f32 / 64.0 - 15.0;
    (0..count).map(|at| bf16::from_f32(number(at))).collect()
}

/// The product of `[m, k]` and `[k, n]`, where rows of `a` begin `stride` elements apart; `back` names axes of `a` and of
/// `b` that run backwards.
fn product(
    device: &Device,
    [m, n, k]: [usize; 3],
    stride: usize,
    back: [Option<usize>; 2],
) -> Vec<u32> {
    let upload = |data: &[bf16]| Buffer::from_slice(device, data).expect("fits");
    let (left, right) = (
        upload(&numbers((m - 1) * stride + k, 1)),
        upload(&numbers(k * n, 2)),
    );
    let mut out = Buffer::<f32>::zeros(device, m * n).expect("fits");
    let left = left.view_strided([m, k], [stride, 1]).expect("fits");
    let right = right.view([k, n]).expect("fits");
    let left = back[0].map_or(left, |axis| left.flip(axis).expect("is one"));
    let right = back[1].map_or(right, |axis| right.flip(axis).expect("is one"));
    multiplied([left, right], &mut out, n)
}

/// The bits of the product of two matrices, in an array whose rows begin `stride` elements apart.
fn multiplied(
    [left, right]: [TensorView<'_, bf16, 2>; 2],
    out: &mut Buffer<f32>,
    stride: usize,
) -> Vec<u32> {
    let device = out.device().clone();
    let [m, n] = [left.extents()[0], right.extents()[1]];
    let sums = out.view_strided_mut([m, n], [stride, 1]).expect("fits");
    let grid = (m.div_ceil(64), n.div_ceil(64));
    let kernel = tiles().warps(4);
    kernel
        .launch(&device, grid, (left, right, sums))
        .expect("runs");
    let sums = out.to_vec().expect("reads");
    sums.into_iter().map(f32::to_bits).collect()
}

/// Whole tiles, tiles that end, rows that are padded, and those that copies of boxes do not take: of odd lengths, that
/// overlap, or whose axes run backwards.
#[test]
fn boxes_have_the_bits_of_the_cpu() {
    let (cpu, lanes, gpu) = (Device::cpu(), Device::lanes(), Device::cuda(0).ok());
    for (extents, stride) in [
        ([64, 64, 64], 64),
        ([72, 136, 200], 200),
        ([40, 72, 8], 24),
        ([65, 64, 96], 104),
        ([64, 63, 80], 80),
        ([64, 64, 72], 75),
        ([64, 64, 72], 8),
        ([64, 64, 72], 0),
        ([1, 1, 1], 1),
    ] {
        let product = |device| product(device, extents, stride, [None; 2]);
        let want = product(&cpu);
        for device in [&lanes].into_iter().chain(&gpu) {
            assert_eq!(product(device), want, "{extents:?} {stride}, {device}");
        }
    }
    for back in [
        [Some(0), None],
        [Some(1), None],
        [None, Some(0)],
        [Some(1), Some(0)],
    ] {
        let product = |device| product(device, [72, 136, 64], 64, back);
        let [want, found] = [&cpu, &lanes].map(product);
        assert_eq!(found, want, "{back:?}");
    }
}

/// The product of `[m, k]` and the transpose of `[n, k]`, where rows of the result begin `stride` elements apart.
fn of_rows(device: &Device, [m, n, k]: [usize; 3], stride: usize) -> Vec<u32> {
    let upload = |data: &[bf16]| Buffer::from_slice(device, data).expect("fits");
    let (left, right) = (upload(&numbers(m * k, 3)), upload(&numbers(n * k, 4)));
    let mut out = Buffer::<f32>::zeros(device, (m - 1) * stride + n).expect("fits");
    let left = left.view([m, k]).expect("fits");
    let right = right.view_strided([k, n], [1, k]).expect("fits");
    multiplied([left, right], &mut out, stride)
}

/// Operands are boxes, and results are where their rows are such: else lanes store them. What is beside the rows stays.
#[test]
fn results_have_the_bits_of_the_cpu_wherever_they_go() {
    let (cpu, lanes, gpu) = (Device::cpu(), Device::lanes(), Device::cuda(0).ok());
    for (extents, stride) in [
        ([64, 64, 64], 64),
        ([65, 70, 72], 72),
        ([40, 63, 64], 64),
        ([40, 63, 64], 63),
        ([72, 64, 8], 65),
        ([1, 1, 8], 1),
    ] {
        let want = of_rows(&cpu, extents, stride);
        for device in [&lanes].into_iter().chain(&gpu) {
            let found = of_rows(device, extents, stride);
            assert_eq!(found, want, "{extents:?} {stride}, {device}");
        }
    }
}

/// Whether bulk copies bring the factors of a product `[m, k]` and `[k, n]` on a Hopper GPU, and whether they take the result. The
/// first element of the left factor is this one of its array.
fn copies([m, n, k]: [usize; 3], start: usize) -> [bool; 2] {
    let device = Device::cpu();
    let zeros = |count: usize| Buffer::<bf16>::zeros(&device, count).expect("fits");
    let (left, right) = (zeros(start + m * k), zeros(k * n));
    let mut out = Buffer::<f32>::zeros(&device, m * n).expect("fits");
    let left = left.slice(start..).expect("is there");
    let arguments = (
        left.view([m, k]).expect("fits"),
        right.view([k, n]).expect("fits"),
        out.view_mut([m, n]).expect("fits"),
    );
    let grid = (m.div_ceil(64), n.div_ceil(64));
    bulk_copies(tiles().warps(4).inspect(&device, grid, arguments))
}

fn bulk_copies(inspection: exactile::Result<Inspection>) -> [bool; 2] {
    let inspection = inspection.expect("compiles").on(Target::SM_90A);
    let lane = inspection.text(ListingStage::Lane).expect("is there");
    ["copy_in", "copy_out"].map(|op| lane.contains(op))
}

/// Large products take copies of rows that no bulk copy takes, small ones do not; results are never copied.
#[test]
fn boxes_are_those_of_copies_where_that_is_worth_while() {
    for (extents, start, expected) in [
        ([1024, 1024, 1024], 0, [true, true]),
        ([1023, 1025, 1021], 0, [true, false]),
        ([1024, 1024, 1024], 1, [true, true]),
        ([1024, 1028, 1021], 0, [true, true]),
        ([255, 257, 253], 0, [false, false]),
        ([256, 256, 256], 4, [false, false]),
    ] {
        assert_eq!(copies(extents, start), expected, "{extents:?} {start}");
    }
}

/// The strides of pointers are extents too.
#[test]
fn ready_products_of_odd_extents_go_by_boxes_of_copies() {
    let device = Device::cpu();
    let zeros = |count: usize| Buffer::<bf16>::zeros(&device, count).expect("fits");
    for ([m, n, k], expected) in [([4095, 4097, 4099], true), ([255, 257, 259], false)] {
        let (a, b, mut c) = (zeros(m * k), zeros(k * n), zeros(m * n));
        let extents = [m, n, k].map(|it| it as i32);
        let kernel = tensor_matmul::<bf16>().bm(128).bn(256).warps(8);
        let arguments = (&a, &b, &mut c, extents[0], extents[1], extents[2]);
        let found = bulk_copies(kernel.inspect(&device, (), arguments));
        assert_eq!(found, [expected, false], "{m} {n} {k}");
        let views = (
            a.view([m, k]).expect("fits"),
            b.view_strided([k, n], [1, k]).expect("fits"),
            None,
            c.view_mut([m, n]).expect("fits"),
        );
        let kernel = linear::<bf16>().function(99).turned(false);
        let kernel = kernel.bm(128).bn(256).warps(8);
        let found = bulk_copies(kernel.inspect(&device, (), views));
        assert_eq!(found, [expected, false], "linear {m} {n} {k}");
    }
}
