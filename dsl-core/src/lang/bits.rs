//! Bits of integers: counts, rotations, the upper half of a product.

use super::element::Int;
use super::tile::{IntoTile, Tile, map};
use crate::builder::Builder;
use crate::ir::{DType, Value};

/// How many bits of each number are 1, of the width of `T`.
#[track_caller]
pub fn count_ones<T: Int>(x: Tile<T>) -> Tile<T> {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let word = word(builder, x);
        let ones = ones(builder, word);
        builder.cast(ones, T::DTYPE)
    })
}

/// How many bits above the highest that is 1 are 0; the width of `T` of a zero.
#[track_caller]
pub fn leading_zeros<T: Int>(x: Tile<T>) -> Tile<T> {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let mut filled = word(builder, x);
        let mut places = 1;
        while places < u64::from(T::DTYPE.bits()) {
            let lower = shifted_right(builder, filled, places);
            filled = builder.or(filled, lower);
            places *= 2;
        }
        let ones = ones(builder, filled);
        let width = number(builder, ones, u64::from(T::DTYPE.bits()));
        let zeros = builder.sub(width, ones);
        builder.cast(zeros, T::DTYPE)
    })
}

/// How many bits below the lowest that is 1 are 0; the width of `T` of a zero.
#[track_caller]
pub fn trailing_zeros<T: Int>(x: Tile<T>) -> Tile<T> {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let mut value = word(builder, x);
        if T::DTYPE.bits() < 32 {
            let above = number(builder, value, 1 << T::DTYPE.bits());
            value = builder.or(value, above);
        }
        // The bits below the lowest that is 1, and all of zero.
        let one = number(builder, value, 1);
        let less = builder.sub(value, one);
        let not = builder.not(value);
        let below = builder.and(not, less);
        let ones = ones(builder, below);
        builder.cast(ones, T::DTYPE)
    })
}

/// The bits of each number moved up by `places` modulo the width of `T`; what leaves at the top enters below.
#[track_caller]
pub fn rotate_left<T: Int>(x: Tile<T>, places: impl IntoTile<T>) -> Tile<T> {
    rotate(x, places, true)
}

/// The bits of each number moved down by `places` modulo the width of `T`; what leaves below enters at the top.
#[track_caller]
pub fn rotate_right<T: Int>(x: Tile<T>, places: impl IntoTile<T>) -> Tile<T> {
    rotate(x, places, false)
}

#[track_caller]
fn rotate<T: Int>(x: Tile<T>, places: impl IntoTile<T>, up: bool) -> Tile<T> {
    map(x, |context, x| {
        let places = places.into_value(context);
        let (x, places) = context.broadcast_pair("rotate", x, places);
        if context.ty(x).is_poison() {
            return x;
        }
        let builder = &mut context.builder;
        let unsigned = T::DTYPE.unsigned();
        let (value, places) = (
            builder.bitcast(x, unsigned),
            builder.bitcast(places, unsigned),
        );
        let mask = number(builder, places, u64::from(T::DTYPE.bits()) - 1);
        let forth = builder.and(places, mask);
        let negated = builder.neg(places);
        let back = builder.and(negated, mask);
        let (left, right) = if up { (forth, back) } else { (back, forth) };
        let upper = builder.shl(value, left);
        let lower = builder.shr(value, right);
        let both = builder.or(upper, lower);
        builder.bitcast(both, T::DTYPE)
    })
}

/// The upper half of the product of twice the width, element by element.
#[track_caller]
pub fn mulhi<T: Int>(a: Tile<T>, b: impl IntoTile<T>) -> Tile<T> {
    map(a, |context, a| {
        let b = b.into_value(context);
        let (a, b) = context.broadcast_pair("mulhi", a, b);
        if context.ty(a).is_poison() {
            return a;
        }
        let builder = &mut context.builder;
        let bits = T::DTYPE.bits();
        if bits == 64 {
            return upper_half(builder, a, b, T::DTYPE);
        }
        let wide = if T::DTYPE.is_signed() {
            DType::I64
        } else {
            DType::U64
        };
        let (a, b) = (builder.cast(a, wide), builder.cast(b, wide));
        let product = builder.mul(a, b);
        let upper = shifted_right(builder, product, u64::from(bits));
        builder.cast(upper, T::DTYPE)
    })
}

/// Four bytes of the eight of `low` and `high`, numbered from the lowest of `low`: the lowest three bits of each
/// four of `selector` say which, lowest first.
#[track_caller]
pub fn byte_permute(
    low: Tile<u32>,
    high: impl IntoTile<u32>,
    selector: impl IntoTile<u32>,
) -> Tile<u32> {
    map(low, |context, low| {
        let (high, selector) = (high.into_value(context), selector.into_value(context));
        let (low, high) = context.broadcast_pair("byte_permute", low, high);
        let (low, selector) = context.broadcast_pair("byte_permute", low, selector);
        let (high, selector) = context.broadcast_pair("byte_permute", high, selector);
        if [low, high, selector]
            .iter()
            .any(|&it| context.ty(it).is_poison())
        {
            return context.builder.poison();
        }
        let builder = &mut context.builder;
        let [low, high, selector] = [low, high, selector].map(|it| builder.cast(it, DType::U64));
        let places = number(builder, high, 32);
        let high = builder.shl(high, places);
        let all = builder.or(low, high);
        let mut result = number(builder, all, 0);
        for at in 0..4 {
            // Eight times the number of the byte.
            let eights = match at {
                0 => {
                    let three = number(builder, selector, 3);
                    builder.shl(selector, three)
                }
                at => shifted_right(builder, selector, 4 * at - 3),
            };
            let mask = number(builder, eights, 0x38);
            let places = builder.and(eights, mask);
            let moved = builder.shr(all, places);
            let mask = number(builder, moved, 0xff);
            let byte = builder.and(moved, mask);
            let places = number(builder, byte, 8 * at);
            let byte = builder.shl(byte, places);
            result = builder.or(result, byte);
        }
        builder.cast(result, DType::U32)
    })
}

/// The number in an unsigned word of 32 or 64 bits, with zeros above.
fn word(builder: &mut Builder, x: Value) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let unsigned = builder.bitcast(x, dtype.unsigned());
    match dtype.bits() == 64 {
        true => unsigned,
        false => builder.cast(unsigned, DType::U32),
    }
}

/// An integer of the type and shape of `like`.
fn number(builder: &mut Builder, like: Value, value: u64) -> Value {
    match builder.ty(like).dtype() {
        Some(dtype) => builder.bits_like(like, dtype, value),
        None => like,
    }
}

fn shifted_right(builder: &mut Builder, x: Value, places: u64) -> Value {
    let places = number(builder, x, places);
    builder.shr(x, places)
}

/// How many bits of a word are 1: pairs, fours and bytes, whose sum a product gathers at the top.
fn ones(builder: &mut Builder, word: Value) -> Value {
    let masked = |builder: &mut Builder, x: Value, mask: u64| {
        let mask = number(builder, x, mask);
        builder.and(x, mask)
    };
    let half = shifted_right(builder, word, 1);
    let odd = masked(builder, half, 0x5555_5555_5555_5555);
    let pairs = builder.sub(word, odd);
    let even = masked(builder, pairs, 0x3333_3333_3333_3333);
    let upper = shifted_right(builder, pairs, 2);
    let upper = masked(builder, upper, 0x3333_3333_3333_3333);
    let fours = builder.add(even, upper);
    let upper = shifted_right(builder, fours, 4);
    let both = builder.add(fours, upper);
    let bytes = masked(builder, both, 0x0f0f_0f0f_0f0f_0f0f);
    let each = number(builder, bytes, 0x0101_0101_0101_0101);
    let sums = builder.mul(bytes, each);
    let width = builder.ty(word).dtype().map_or(32, DType::bits);
    shifted_right(builder, sums, u64::from(width) - 8)
}

/// The upper 64 bits of a product of 128.
fn upper_half(builder: &mut Builder, a: Value, b: Value, dtype: DType) -> Value {
    let signs = match dtype.is_signed() {
        true => {
            // A negative number is read as 2^64 more than it is.
            let [of_a, of_b] = [a, b].map(|it| shifted_right(builder, it, 63));
            let (of_a, of_b) = (builder.and(of_a, b), builder.and(of_b, a));
            let sum = builder.add(of_a, of_b);
            Some(builder.bitcast(sum, DType::U64))
        }
        false => None,
    };
    let [a, b] = [a, b].map(|it| builder.bitcast(it, DType::U64));
    let lower = |builder: &mut Builder, x: Value| {
        let mask = number(builder, x, u64::from(u32::MAX));
        builder.and(x, mask)
    };
    let [a_low, b_low] = [a, b].map(|it| lower(builder, it));
    let [a_high, b_high] = [a, b].map(|it| shifted_right(builder, it, 32));
    let least = builder.mul(a_low, b_low);
    let carried = shifted_right(builder, least, 32);
    let middle = builder.mul(a_high, b_low);
    let middle = builder.add(middle, carried);
    let other = builder.mul(a_low, b_high);
    let part = lower(builder, middle);
    let other = builder.add(other, part);
    let [middle, other] = [middle, other].map(|it| shifted_right(builder, it, 32));
    let greatest = builder.mul(a_high, b_high);
    let sum = builder.add(greatest, middle);
    let sum = builder.add(sum, other);
    let result = match signs {
        Some(signs) => builder.sub(sum, signs),
        None => sum,
    };
    builder.bitcast(result, dtype)
}
