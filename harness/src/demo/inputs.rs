//! Inputs that are the same everywhere.

use exactile_core::ir::{Literal, Number};
use exactile_core::random::Random;
use rayon::prelude::*;

fn number<T: Number>(value: f64) -> T {
    T::from_bits(Literal::from_f64(T::DTYPE, value).bits)
}

/// `len` numbers from -1 to 1, uniformly spread, the same for the same seed on every machine.
pub fn random<T: Number>(seed: u64, len: usize) -> Vec<T> {
    uniform(seed, len, -1.0, 1.0)
}

/// `len` numbers from `first` to `last`, uniformly spread; for integers `last` is excluded.
pub fn uniform<T: Number>(seed: u64, len: usize, first: f64, last: f64) -> Vec<T> {
    (0..len)
        .into_par_iter()
        .map(|index| {
            let bits = Random::new(index as u64).skip(seed).bits();
            // 53 bits make a number below 1 exactly.
            let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
            number(first + (last - first) * unit)
        })
        .collect()
}

/// `len` numbers from `first` to `last` at equal distances, each rounded once from `f64`.
pub fn linspace<T: Number>(first: f64, last: f64, len: usize) -> Vec<T> {
    let step = (last - first) / (len.saturating_sub(1).max(1)) as f64;
    (0..len)
        .into_par_iter()
        .map(|index| number(first + step * index as f64))
        .collect()
}
