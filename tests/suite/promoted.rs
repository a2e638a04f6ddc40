//! Products of matrices whose sums are promoted: parts of so many products, added in `f32`.

use exactile::prelude::*;
use exactile::{Number, Schedule};

const SIDE: usize = 64;

/// A tile of `a b` in parts of `COUNT` products, `BK` products at a time.
#[kernel(BK = 128, COUNT = 128)]
fn promoted<T: Float, const BK: usize, const COUNT: usize>(
    a: Tensor<T, 2>,
    b: Tensor<T, 2>,
    out: TensorMut<f32, 2>,
) {
    let mut sum = zeros::<f32>([SIDE, SIDE]);
    for k in range(0, a.extent(1)).step(BK).stages(3) {
        let left = a.tile([SIDE, BK]).at_offset((0, k)).load();
        let right = b.tile([BK, SIDE]).at_offset((k, 0)).load();
        sum = dot_promoted(Precision::Hopper, COUNT, left, right, sum);
    }
    out.tile([SIDE, SIDE]).at([0, 0]).store(sum);
}

/// The sums of each part alone, one below the other; of all products in one chain, `COUNT` as many as there are.
#[kernel(COUNT = 128)]
fn parts<T: Float, const COUNT: usize>(a: Tensor<T, 2>, b: Tensor<T, 2>, out: TensorMut<f32, 2>) {
    let part = program_id(0);
    let left = a.tile([SIDE, COUNT]).at((0, part)).load();
    let right = b.tile([COUNT, SIDE]).at((part, 0)).load();
    let sum = dot_with(Precision::Hopper, left, right, zeros([SIDE, SIDE]));
    out.tile([SIDE, SIDE]).at((part, 0)).store(sum);
}

/// Operands on a device, the second one by columns.
struct Operands<T> {
    a: Buffer<T>,
    b: Buffer<T>,
    k: usize,
}

impl<T: Float + Number> Operands<T> {
    fn new(device: &Device, k: usize, number: fn(f32) -> T) -> Self {
        let numbers = |seed: usize| -> Vec<T> {
            let one = |at: usize| ((at * 7919 + seed * 104_729) % 29) as f32 / 8.0 + 0.25;
            (0..SIDE * k).map(|at| number(one(at))).collect()
        };
        let [a, b] = [1, 2].map(|seed| Buffer::from_slice(device, &numbers(seed)).expect("fits"));
        Self { a, b, k }
    }

    fn promoted(&self, (tile, count): (usize, usize), schedule: Schedule) -> Vec<u32> {
        let mut out = Buffer::zeros(self.a.device(), SIDE * SIDE).expect("fits");
        let kernel = promoted::<T>().bk(tile).count(count).schedule(schedule);
        let arguments = (
            self.a.view([SIDE, self.k]).expect("fits"),
            self.b
                .view_strided([self.k, SIDE], [1, self.k])
                .expect("fits"),
            out.view_mut([SIDE, SIDE]).expect("fits"),
        );
        kernel
            .run(self.a.device(), 1, arguments)
            .unwrap_or_else(|error| panic!("{tile} by {count} with {schedule:?}: {error}"));
        bits(out.to_vec().expect("reads"))
    }

    /// The sums of parts of so many products.
    fn parts(&self, count: usize) -> Vec<f32> {
        let several = self.k / count;
        let mut out = Buffer::zeros(self.a.device(), several * SIDE * SIDE).expect("fits");
        let arguments = (
            self.a.view([SIDE, self.k]).expect("fits"),
            self.b
                .view_strided([self.k, SIDE], [1, self.k])
                .expect("fits"),
            out.view_mut([several * SIDE, SIDE]).expect("fits"),
        );
        parts::<T>()
            .count(count)
            .run(self.a.device(), several, arguments)
            .expect("runs");
        out.to_vec().expect("reads")
    }

    /// What the definition gives: the host adds the parts.
    fn defined(&self, count: usize) -> Vec<u32> {
        let parts = self.parts(count);
        let mut sums = vec![0.0f32; SIDE * SIDE];
        for part in parts.chunks(SIDE * SIDE) {
            for (sum, part) in sums.iter_mut().zip(part) {
                *sum += part;
            }
        }
        bits(sums)
    }
}

fn bits(numbers: Vec<f32>) -> Vec<u32> {
    numbers.into_iter().map(f32::to_bits).collect()
}

/// The bits of the definition, in tiles of each size, on every device and over some warps.
fn holds<T: Float + Number>(number: fn(f32) -> T, k: usize, count: usize, tiles: &[usize]) {
    let cpu = Device::cpu();
    let want = Operands::new(&cpu, k, number).defined(count);
    for device in crate::language::devices() {
        let operands = Operands::new(&device, k, number);
        for &tile in tiles {
            for warps in [4, 8] {
                let schedule = Schedule::default().warps(warps);
                let found = operands.promoted((tile, count), schedule);
                assert!(found == want, "{tile} by {count}, {warps} warps, {device}");
            }
        }
    }
}

#[test]
fn halves_are_added_by_parts() {
    holds(f16::from_f32, 128, 16, &[16, 64]);
    holds(bf16::from_f32, 128, 32, &[32, 128]);
}

#[test]
fn bytes_are_added_by_parts() {
    holds(F8E4M3::from_f32, 512, 128, &[128, 256]);
}

/// The sums of tensor cores keep 13 bits: what is lost grows with the products of a part.
#[test]
fn promotion_keeps_what_long_sums_lose() {
    let (device, k) = (Device::cpu(), 4096);
    let operands = Operands::new(&device, k, F8E4M3::from_f32);
    let exact = |at: usize| -> f64 {
        let numbers = |buffer: &Buffer<F8E4M3>, row: usize| {
            let all = buffer.to_vec().expect("reads");
            all[row * k..][..k]
                .iter()
                .map(|it| f64::from(it.to_f32()))
                .collect::<Vec<_>>()
        };
        let [a, b] = [
            numbers(&operands.a, at / SIDE),
            numbers(&operands.b, at % SIDE),
        ];
        a.iter().zip(&b).map(|(a, b)| a * b).sum()
    };
    let error = |sums: &[u32]| {
        let places = (0..sums.len()).step_by(97);
        let relative = places.map(|at| {
            let exact = exact(at);
            (f64::from(f32::from_bits(sums[at])) - exact).abs() / exact
        });
        relative.fold(0.0, f64::max)
    };
    let whole = error(&operands.promoted((128, 128), Schedule::default()));
    let chain = error(&bits(operands.parts(k)));
    assert!(whole * 8.0 < chain, "{whole:e} beside {chain:e}");
}

#[kernel(COUNT = 3)]
fn adds_by<const COUNT: usize>(x: Ptr<f16>, out: PtrMut<f32>) {
    let at = arange(0, 1024).reshape([32, 32]);
    let tile = load(x + at);
    store(
        out + at,
        dot_promoted(Precision::Hopper, COUNT, tile, tile, zeros::<f32>([32, 32])),
    );
}

#[kernel]
fn adds_integers(x: Ptr<i32>, out: PtrMut<i32>) {
    let at = arange(0, 1024).reshape([32, 32]);
    let tile = load(x + at);
    store(
        out + at,
        dot_promoted(Precision::Ieee, 16, tile, tile, zeros::<i32>([32, 32])),
    );
}

#[test]
fn other_parts_are_refused() {
    for count in [0, 3, 8, 64, usize::MAX] {
        let error = adds_by()
            .count(count)
            .check()
            .expect_err("is refused")
            .to_string();
        let wanted = "`dot_promoted` with precision `hopper` of `tile<32x32xf16>` adds parts of a power of two from 16 to 32 \
                      products";
        assert!(
            error.contains(wanted) && error.contains("promoted.rs"),
            "{error}"
        );
    }
    let error = adds_integers().check().expect_err("is refused").to_string();
    assert!(
        error.contains("`dot_promoted` adds floats, found `tile<32x32xi32>`"),
        "{error}"
    );
}
