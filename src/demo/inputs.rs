//! Inputs that are the same everywhere.

use exactile_core::ir::{Literal, Number};

fn number<T: Number>(value: f64) -> T {
    T::from_bits(Literal::from_f64(T::DTYPE, value).bits)
}

/// `len` numbers from -1 to 1, uniformly spread, the same for the same seed on every machine.
pub fn random<T: Number>(seed: u64, len: usize) -> Vec<T> {
    (0..len as u64)
        .map(|index| {
            let bits = mix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index));
            // 53 bits make a number below 1 exactly.
            let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
            number(2.0 * unit - 1.0)
        })
        .collect()
}

/// The finaliser of SplitMix64: a permutation of 64-bit numbers that looks random.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `len` numbers from `first` to `last` at equal distances, each rounded once from `f64`.
pub fn linspace<T: Number>(first: f64, last: f64, len: usize) -> Vec<T> {
    let step = (last - first) / (len.saturating_sub(1).max(1)) as f64;
    (0..len)
        .map(|index| number(first + step * index as f64))
        .collect()
}
