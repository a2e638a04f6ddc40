//! Random numbers by counters: Philox 4x32-10.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
//! Each number is a function of a seed and an offset and of nothing else, so that neither tile sizes nor the grid
//! nor the machine change it. The functions of a seed and an offset are those of Triton, and give its integers.

use super::element::Int;
use super::math::{cos, log, maximum, sin, sqrt};
use super::tile::{IntoTile, Tile, full};

const ROUNDS: usize = 10;
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// Four random words for each counter of four words, lowest first, by Philox 4x32-10 with a key of two words.
///
/// All are tiles of shapes that broadcast.
#[track_caller]
pub fn philox4x32(key: [Tile<u32>; 2], counter: [Tile<u32>; 4]) -> [Tile<u32>; 4] {
    let (mut key, mut next) = (key, counter);
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0] + KEY_STEPS[0], key[1] + KEY_STEPS[1]];
        }
        let [first, third] = [(next[0], FACTORS[0]), (next[2], FACTORS[1])].map(product);
        next = [
            third.1 ^ next[1] ^ key[0],
            third.0,
            first.1 ^ next[3] ^ key[1],
            first.0,
        ];
    }
    next
}

/// The lower and the upper word of a product.
#[track_caller]
fn product((x, factor): (Tile<u32>, u32)) -> (Tile<u32>, Tile<u32>) {
    let product = x.to::<u64>() * u64::from(factor);
    (product.to::<u32>(), (product >> 32).to::<u32>())
}

/// Four tiles of random words, each of the shape of `offset`, by Philox 4x32-10.
///
/// The key is the seed; the counter is the offset, of which negative ones are read as unsigned, and has
/// room for 2^64 of them. Different offsets give independent words.
#[track_caller]
pub fn randint4x<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> [Tile<u32>; 4] {
    let seed: Tile<u64> = full([0; 0], seed);
    let zero: Tile<u32> = full([0; 0], 0);
    let upper = match T::DTYPE.bits() > 32 {
        true => (offset.to::<u64>() >> 32).to::<u32>(),
        false => zero,
    };
    let key = [seed.to::<u32>(), (seed >> 32).to::<u32>()];
    philox4x32(key, [offset.to::<u32>(), upper, zero, zero])
}

/// Random words of the shape of `offset`: the first of [`randint4x`].
#[track_caller]
pub fn randint<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> Tile<u32> {
    randint4x(seed, offset)[0]
}

/// Random `f32` from 0 to below 1, of the shape of `offset`, equally distributed.
#[track_caller]
pub fn rand<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> Tile<f32> {
    uniform(randint(seed, offset))
}

/// Four tiles as that of [`rand`], of all words of [`randint4x`].
#[track_caller]
pub fn rand4x<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> [Tile<f32>; 4] {
    randint4x(seed, offset).map(uniform)
}

/// Random `f32` of the shape of `offset`, normally distributed with mean 0 and variance 1: the first of
/// [`randn4x`].
#[track_caller]
pub fn randn<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> Tile<f32> {
    let [first, second, ..] = randint4x(seed, offset);
    normal(uniform(first), uniform(second)).0
}

/// Four tiles as that of [`randn`], by the transform of G. E. P. Box and M. E. Muller of two pairs of [`rand4x`].
#[track_caller]
pub fn randn4x<T: Int>(seed: impl IntoTile<u64>, offset: Tile<T>) -> [Tile<f32>; 4] {
    let [a, b, c, d] = rand4x(seed, offset);
    let ((a, b), (c, d)) = (normal(a, b), normal(c, d));
    [a, b, c, d]
}

/// A number from 0 to below 1 of a word, read as signed and without its sign, times the greatest `f32` below 2^-31.
#[track_caller]
fn uniform(word: Tile<u32>) -> Tile<f32> {
    let signed = word.bitcast::<i32>();
    // -x - 1 of a negative number.
    let magnitude = signed ^ (signed >> 31);
    magnitude.to::<f32>() * 4.656_612_734_2e-10
}

/// Two independent normally distributed numbers of two uniformly distributed ones.
#[track_caller]
fn normal(a: Tile<f32>, b: Tile<f32>) -> (Tile<f32>, Tile<f32>) {
    let angle = b * std::f64::consts::TAU;
    let radius = sqrt(log(maximum(a, 1e-7)) * -2.0);
    (radius * cos(angle), radius * sin(angle))
}
