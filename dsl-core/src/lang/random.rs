//! Random numbers by counters: Philox 4x32-10, and the same of 64 bits.
//!
//! J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, 2011.
//! Each number is a function of a seed and an offset and of nothing else, so that neither tile sizes nor the grid
//! nor the machine change it. The functions of a seed and an offset are those of Triton, and give its integers.

use super::bits::mulhi;
use super::element::{HostNumber, Int, LiteralOf};
use super::math::{cos, log, maximum, sin, sqrt};
use super::tile::{DeviceValue, IntoTile, Tile, full};
use crate::ir::Number;

const ROUNDS: usize = 10;
const FACTORS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const LONG_FACTORS: [u64; 2] = [0xd2e7_470e_e14c_6c93, 0xca5a_8263_9512_1157];
const LONG_KEY_STEPS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbb67_ae85_84ca_a73b];

/// Four random words for each counter of four words, lowest first, by Philox 4x32-10 with a key of two words.
///
/// All are scalars, or tiles of shapes that broadcast; the words are of the kind of the counter.
#[track_caller]
pub fn philox4x32<K, V>(key: [K; 2], counter: [V; 4]) -> [V; 4]
where
    K: DeviceValue<Element = u32>,
    V: DeviceValue<Element = u32>,
{
    philox4x32_rounds(ROUNDS, key, counter)
}

/// [`philox4x32`] by another number of rounds than 10: fewer are faster, and pass fewer tests of randomness.
#[track_caller]
pub fn philox4x32_rounds<K, V>(rounds: usize, key: [K; 2], counter: [V; 4]) -> [V; 4]
where
    K: DeviceValue<Element = u32>,
    V: DeviceValue<Element = u32>,
{
    let (key, counter) = (key.map(K::as_tile), counter.map(V::as_tile));
    words(rounds, key, counter).map(V::of_tile)
}

/// Four random words of 64 bits for each counter of four words, lowest first, by Philox 4x64-10 with a key of two words.
///
/// All are scalars, or tiles of shapes that broadcast; the words are of the kind of the counter.
#[track_caller]
pub fn philox4x64<K, V>(key: [K; 2], counter: [V; 4]) -> [V; 4]
where
    K: DeviceValue<Element = u64>,
    V: DeviceValue<Element = u64>,
{
    let (key, counter) = (key.map(K::as_tile), counter.map(V::as_tile));
    long_words(key, counter).map(V::of_tile)
}

#[track_caller]
fn words(rounds: usize, key: [Tile<u32>; 2], counter: [Tile<u32>; 4]) -> [Tile<u32>; 4] {
    mixed(rounds, KEY_STEPS, key, counter, |words| {
        [(words[0], FACTORS[0]), (words[1], FACTORS[1])].map(product)
    })
}

#[track_caller]
fn long_words(key: [Tile<u64>; 2], counter: [Tile<u64>; 4]) -> [Tile<u64>; 4] {
    mixed(ROUNDS, LONG_KEY_STEPS, key, counter, |words| {
        [(words[0], LONG_FACTORS[0]), (words[1], LONG_FACTORS[1])]
            .map(|(x, factor)| (x * factor, mulhi(x, factor)))
    })
}

/// The rounds, of which each multiplies the first and the third word.
#[track_caller]
fn mixed<T: Int, S>(
    rounds: usize,
    steps: [S; 2],
    mut key: [Tile<T>; 2],
    counter: [Tile<T>; 4],
    products: impl Fn([Tile<T>; 2]) -> [(Tile<T>, Tile<T>); 2],
) -> [Tile<T>; 4]
where
    S: Copy + HostNumber + LiteralOf<T>,
{
    let mut next = counter;
    for round in 0..rounds {
        if round > 0 {
            key = [key[0] + steps[0], key[1] + steps[1]];
        }
        let [first, third] = products([next[0], next[2]]);
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

/// Words of the kind of a value.
type Of<V, T> = <V as DeviceValue>::With<T>;

#[track_caller]
fn words_of<V: DeviceValue<Element: Int>>(seed: impl IntoTile<u64>, offset: V) -> [Tile<u32>; 4] {
    let seed: Tile<u64> = full([0; 0], seed);
    let zero: Tile<u32> = full([0; 0], 0);
    let offset = offset.as_tile();
    let upper = match <V::Element as Number>::DTYPE.bits() > 32 {
        true => (offset.to::<u64>() >> 32).to::<u32>(),
        false => zero,
    };
    let key = [seed.to::<u32>(), (seed >> 32).to::<u32>()];
    words(ROUNDS, key, [offset.to::<u32>(), upper, zero, zero])
}

/// Random words four times, each of the shape of `offset`, a tile or a scalar, by Philox 4x32-10.
///
/// The key is the seed, one number; the counter is the offset, of which negative ones are read as unsigned, and has
/// room for 2^64 of them. Different offsets give independent words.
#[track_caller]
pub fn randint4x<V: DeviceValue<Element: Int>>(
    seed: impl IntoTile<u64>,
    offset: V,
) -> [Of<V, u32>; 4] {
    let [a, b, c, d] = words_of(seed, offset);
    [
        Of::<V, u32>::of_tile(a),
        Of::<V, u32>::of_tile(b),
        Of::<V, u32>::of_tile(c),
        Of::<V, u32>::of_tile(d),
    ]
}

/// Random words of the shape of `offset`: the first of [`randint4x`].
#[track_caller]
pub fn randint<V: DeviceValue<Element: Int>>(seed: impl IntoTile<u64>, offset: V) -> Of<V, u32> {
    Of::<V, u32>::of_tile(words_of(seed, offset)[0])
}

/// Random words of 64 bits of the shape of `offset`, a tile or a scalar: the first by Philox 4x64-10, whose key is the seed and
/// whose counter is the offset, of which negative ones are read as unsigned.
#[track_caller]
pub fn randint64<V: DeviceValue<Element: Int>>(seed: impl IntoTile<u64>, offset: V) -> Of<V, u64> {
    let seed: Tile<u64> = full([0; 0], seed);
    let zero: Tile<u64> = full([0; 0], 0);
    let offset = match <V::Element as Number>::DTYPE.bits() > 32 {
        true => offset.as_tile().to::<u64>(),
        false => offset.as_tile().to::<u32>().to::<u64>(),
    };
    let [first, ..] = long_words([seed, zero], [offset, zero, zero, zero]);
    Of::<V, u64>::of_tile(first)
}

/// Random `f32` from 0 to below 1, of the shape of `offset`, equally distributed.
#[track_caller]
pub fn rand<V: DeviceValue<Element: Int>>(seed: impl IntoTile<u64>, offset: V) -> Of<V, f32> {
    Of::<V, f32>::of_tile(word_to_uniform(words_of(seed, offset)[0]))
}

/// Four values as that of [`rand`], of all words of [`randint4x`].
#[track_caller]
pub fn rand4x<V: DeviceValue<Element: Int>>(
    seed: impl IntoTile<u64>,
    offset: V,
) -> [Of<V, f32>; 4] {
    let [a, b, c, d] = words_of(seed, offset);
    [
        Of::<V, f32>::of_tile(word_to_uniform(a)),
        Of::<V, f32>::of_tile(word_to_uniform(b)),
        Of::<V, f32>::of_tile(word_to_uniform(c)),
        Of::<V, f32>::of_tile(word_to_uniform(d)),
    ]
}

/// Random `f32` of the shape of `offset`, normally distributed with mean 0 and variance 1: the first of
/// [`randn4x`].
#[track_caller]
pub fn randn<V: DeviceValue<Element: Int>>(seed: impl IntoTile<u64>, offset: V) -> Of<V, f32> {
    let [a, b, ..] = words_of(seed, offset);
    let (first, _) = uniforms_to_normals(word_to_uniform(a), word_to_uniform(b));
    Of::<V, f32>::of_tile(first)
}

/// Four values as that of [`randn`], by the transform of G. E. P. Box and M. E. Muller of two pairs of [`rand4x`].
#[track_caller]
pub fn randn4x<V: DeviceValue<Element: Int>>(
    seed: impl IntoTile<u64>,
    offset: V,
) -> [Of<V, f32>; 4] {
    let [a, b, c, d] = words_of(seed, offset);
    let (a, b) = uniforms_to_normals(word_to_uniform(a), word_to_uniform(b));
    let (c, d) = uniforms_to_normals(word_to_uniform(c), word_to_uniform(d));
    [
        Of::<V, f32>::of_tile(a),
        Of::<V, f32>::of_tile(b),
        Of::<V, f32>::of_tile(c),
        Of::<V, f32>::of_tile(d),
    ]
}

/// A number from 0 to below 1 of a random word: the word read as signed and without its sign, times the greatest `f32`
/// below 2^-31. Equally distributed if the words are.
#[track_caller]
pub fn word_to_uniform<V: DeviceValue<Element = u32>>(word: V) -> Of<V, f32> {
    let signed = word.as_tile().bitcast::<i32>();
    // -x - 1 of a negative number.
    let magnitude = signed ^ (signed >> 31);
    Of::<V, f32>::of_tile(magnitude.to::<f32>() * 4.656_612_734_2e-10)
}

/// Two independent normally distributed numbers with mean 0 and variance 1, of two equally distributed ones from 0 to
/// below 1, by the transform of G. E. P. Box and M. E. Muller. What is below 10^-7 counts as that in the first.
#[track_caller]
pub fn uniforms_to_normals<V: DeviceValue<Element = f32>>(a: V, b: V) -> (V, V) {
    let angle = b.as_tile() * std::f64::consts::TAU;
    let radius = sqrt(log(maximum(a.as_tile(), 1e-7)) * -2.0);
    let (cosine, sine) = (radius * cos(angle), radius * sin(angle));
    (V::of_tile(cosine), V::of_tile(sine))
}
