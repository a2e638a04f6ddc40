//! The accumulator of logarithms of sums of exponentials beside plain Rust, whose exponents have no ends: the bits of one tree,
//! whatever the tile size.

use exactile::prelude::*;
use exactile_core::ir::{DType, Function};
use exactile_core::random::Random;
use exactile_core::semantics::derived::Definition;

use super::language::{devices, upload};

#[kernel]
fn of_row<T: SingleFloat, const BLOCK: usize>(x: Ptr<T>, out: PtrMut<f32>, n: i32) {
    let mut sum = log_sum_exp_accumulator([]);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        sum.add_masked(load(x + at).mask(at < n), at < n, 0);
    }
    store(out, sum.finish());
}

/// Of two columns, and of two rows that hold the same.
#[kernel]
fn of_columns<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut columns = log_sum_exp_accumulator([2]);
    let mut rows = log_sum_exp_accumulator([2]).at_most(256);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let there = at < n;
        let pairs = x + 2 * at.expand(1) + arange(0, 2).expand(0);
        let pairs = load(pairs).mask(there.expand(1)).other(f64::NEG_INFINITY);
        columns.add(pairs, 0);
        rows.add(pairs.transpose(), 1);
    }
    store(out + arange(0, 2), columns.finish());
    store(out + 2 + arange(0, 2), rows.finish());
}

struct Oracle {
    exp2: Definition,
    log: Definition,
}

impl Oracle {
    fn new() -> Self {
        Self {
            exp2: Definition::new(Function::Exp2, DType::F32),
            log: Definition::new(Function::Log, DType::F32),
        }
    }

    fn evaluate(definition: &Definition, x: f32) -> f32 {
        f32::from_bits(definition.evaluate(u64::from(x.to_bits())) as u32)
    }

    /// The exponent of a weight and the rest of it.
    fn weight(&self, x: f32) -> (f32, f32) {
        let y = x * std::f32::consts::LOG2_E;
        if y.is_nan() {
            return (0.0, y);
        }
        if y.is_infinite() {
            return (y.clamp(f32::MIN, f32::MAX), y.max(0.0));
        }
        let n = y.round_ties_even();
        (n, Self::evaluate(&self.exp2, y - n))
    }

    /// The sum over two to the power of its greatest exponent, by the tree that is balanced over the index.
    fn sum(&self, x: &[f32]) -> (f32, f32) {
        let [left, right] = match x {
            [] => return (0.0, 0.0),
            [x] => return self.weight(*x),
            _ => {
                let (head, rest) = x.split_at(x.len().next_power_of_two() / 2);
                [self.sum(head), self.sum(rest)]
            }
        };
        let power = left.0.max(right.0);
        // Two numbers of 24 bits: rounding their sum to 53 and then to 24 bits is rounding once.
        let scaled = |(n, s): (f32, f32)| f64::from(s) * (f64::from(n) - f64::from(power)).exp2();
        (power, (scaled(left) + scaled(right)) as f32)
    }

    fn logarithm(&self, x: &[f32]) -> u32 {
        let (mut power, mut sum) = self.sum(x);
        if sum > 0.0 && sum < f32::INFINITY {
            let exponent = (sum.to_bits() >> 23) as f32 - 127.0;
            power += exponent;
            sum = f32::from_bits(sum.to_bits() & 0x7f_ffff | 0x3f80_0000);
        }
        let low = (std::f64::consts::LN_2 - f64::from(std::f32::consts::LN_2)) as f32;
        let low = power.mul_add(low, Self::evaluate(&self.log, sum));
        canonical(power.mul_add(std::f32::consts::LN_2, low))
    }
}

fn canonical(x: f32) -> u32 {
    match x.is_nan() {
        true => 0x7fff_ffff,
        false => x.to_bits(),
    }
}

fn read(out: &Buffer<f32>) -> Vec<u32> {
    let numbers = out.to_vec().expect("reads").into_iter();
    numbers.map(canonical).collect()
}

fn exponents(random: &mut Random) -> i32 {
    (random.bits() >> 33) as i32 % 9
}

/// Scores as of classes; weights each about 2^-24 of another one, so that what a sum loses shows in the next one; and numbers of any
/// size.
fn scores(kind: usize, n: usize) -> Vec<f32> {
    let mut random = Random::new(7 + kind as u64);
    let mut number = || {
        let unit = (random.bits() >> 40) as f32 / (1 << 24) as f32 - 0.5;
        match kind {
            0 => unit * 20.0,
            1 => -24.0 * std::f32::consts::LN_2 * (exponents(&mut random) as f32 + unit * 0.1),
            2 => unit * 600.0,
            _ => unit * 10f32.powi(6 * exponents(&mut random)),
        }
    };
    (0..n).map(|_| number()).collect()
}

const BLOCKS: [usize; 6] = [1, 2, 8, 16, 64, 256];

#[test]
fn bits_are_those_of_one_tree() {
    let oracle = Oracle::new();
    for device in devices() {
        for (kind, n) in (0..4).flat_map(|kind| [1, 7, 64, 200].map(move |n| (kind, n))) {
            let x = scores(kind, n);
            let (input, expected) = (upload(&device, &x), oracle.logarithm(&x));
            for block in BLOCKS {
                let mut out = upload(&device, &[0.0]);
                let kernel = of_row::<f32>().block(block);
                kernel
                    .run(&device, 1, (&input, &mut out, n as i32))
                    .expect("runs");
                assert_eq!(read(&out), [expected], "{kind} {n} {block} {device:?}");
            }
        }
    }
}

#[test]
fn narrow_floats_and_other_axes_have_them_too() {
    let oracle = Oracle::new();
    for device in devices() {
        for kind in 0..3 {
            let narrow: Vec<bf16> = scores(kind, 150).into_iter().map(bf16::from_f32).collect();
            let x: Vec<f32> = narrow.iter().map(|x| x.to_f32()).collect();
            let halves: [Vec<f32>; 2] =
                [0, 1].map(|half| x.iter().skip(half).step_by(2).copied().collect());
            let (narrow, wide) = (upload(&device, &narrow), upload(&device, &x));
            let expected = oracle.logarithm(&x);
            let [first, second] = halves.map(|half| oracle.logarithm(&half));
            for block in [1, 4, 32, 256] {
                let mut out = upload(&device, &[0.0]);
                let kernel = of_row::<bf16>().block(block);
                kernel
                    .run(&device, 1, (&narrow, &mut out, 150))
                    .expect("runs");
                assert_eq!(read(&out), [expected], "{kind} {block} {device:?}");
                let mut out = upload(&device, &[0.0; 4]);
                let kernel = of_columns().block(block);
                kernel.run(&device, 1, (&wide, &mut out, 75)).expect("runs");
                let found = read(&out);
                assert_eq!(found, [first, second, first, second], "{block} {device:?}");
            }
        }
    }
}

/// The last level of the accumulator begins with nothing.
#[test]
fn as_many_tiles_as_are_stated_have_them() {
    #[kernel]
    fn filled<const TILES: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
        let mut sum = log_sum_exp_accumulator([]).at_most(TILES);
        for start in range(0, TILES * 4).step(4) {
            sum.add(load(x + start + arange(0, 4)), 0);
        }
        store(out, sum.finish());
    }
    let oracle = Oracle::new();
    for device in devices() {
        for (tiles, shift) in [1, 2, 4, 7].into_iter().zip([-900.0, 0.0, 900.0, -300.0]) {
            let x: Vec<f32> = scores(1, 4 * tiles).iter().map(|x| x + shift).collect();
            let (input, mut out) = (upload(&device, &x), upload(&device, &[0.0]));
            let kernel = filled().tiles(tiles);
            kernel.run(&device, 1, (&input, &mut out)).expect("runs");
            assert_eq!(read(&out), [oracle.logarithm(&x)], "{tiles} {device:?}");
        }
    }
}

#[test]
fn special_numbers_are_told() {
    const INF: f32 = f32::INFINITY;
    let rows: [(&[f32], f32); 9] = [
        (&[], -INF),
        (&[-INF], -INF),
        (&[-INF, -INF, -INF], -INF),
        (&[-INF, 2.0, -INF], 2.0),
        (&[INF, 2.0, -INF], INF),
        (&[INF, f32::NAN, 3.0], f32::NAN),
        (&[f32::NAN, -INF], f32::NAN),
        (&[-1e30, -1e30], -1e30),
        (&[f32::MIN, 3e38], INF),
    ];
    for device in devices() {
        for (row, expected) in rows {
            let input = upload(&device, &[row, &[0.0]].concat());
            for block in [1, 2, 16] {
                let mut out = upload(&device, &[0.0]);
                let kernel = of_row::<f32>().block(block);
                kernel
                    .run(&device, 1, (&input, &mut out, row.len() as i32))
                    .expect("runs");
                assert_eq!(
                    read(&out),
                    [canonical(expected)],
                    "{row:?} {block} {device:?}"
                );
            }
        }
    }
}

/// Each number alone, of all of its type but for those that a stride of `f32` leaves out: its own logarithm but for two roundings.
#[test]
fn one_number_is_its_own_logarithm() {
    #[kernel]
    fn alone(x: Ptr<f32>, out: PtrMut<f32>) {
        let at = program_id(0) * 1024 + arange(0, 1024);
        let mut sum = log_sum_exp_accumulator([1024]);
        sum.add(load(x + at).expand(1), 1);
        store(out + at, sum.finish());
    }
    let oracle = Oracle::new();
    let stride: usize = match std::env::var("EVERY_F32") {
        Ok(_) => 1,
        Err(_) => 4099,
    };
    let device = Device::cpu();
    let count = (1usize << 32) / stride / (1 << 20) + 1;
    for part in 0..count {
        let bits = |at: usize| (((part << 20) + at) * stride) as u32;
        let x: Vec<f32> = (0..1 << 20).map(|at| f32::from_bits(bits(at))).collect();
        let (input, mut out) = (upload(&device, &x), upload(&device, &vec![0.0; x.len()]));
        let programs = x.len() / 1024;
        alone()
            .run(&device, programs, (&input, &mut out))
            .expect("runs");
        for (&x, found) in x.iter().zip(read(&out)) {
            assert_eq!(found, oracle.logarithm(&[x]), "{x:e}");
            let error = (f64::from(f32::from_bits(found)) - f64::from(x)).abs();
            let bound = f64::from(x.abs()) * 2f64.powi(-22) + 1e-6;
            assert!(x.is_nan() || x.abs() > 2.3e38 || error <= bound, "{x:e}");
        }
    }
}
