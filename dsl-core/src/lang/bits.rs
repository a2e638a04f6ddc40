//! Bits of integers: counts, orders, rotations, and what needs no sum of twice the width.

use super::element::Int;
use super::elementwise::{pair, triple};
use super::operators::Elementwise;
use super::tile::{DeviceValue, map};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Number, Value};

/// How many bits of each number are 1, of the width of `T`.
#[track_caller]
pub fn count_ones<V: DeviceValue<Element: Int>>(x: V) -> V {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let word = word(builder, x);
        let ones = ones(builder, word);
        builder.cast(ones, dtype_of::<V>())
    })
}

/// How many bits above the highest that is 1 are 0; the width of `T` of a zero.
#[track_caller]
pub fn leading_zeros<V: DeviceValue<Element: Int>>(x: V) -> V {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let mut filled = word(builder, x);
        let mut places = 1;
        while places < u64::from(dtype_of::<V>().bits()) {
            let lower = shifted_right(builder, filled, places);
            filled = builder.or(filled, lower);
            places *= 2;
        }
        let ones = ones(builder, filled);
        let width = number(builder, ones, u64::from(dtype_of::<V>().bits()));
        let zeros = builder.sub(width, ones);
        builder.cast(zeros, dtype_of::<V>())
    })
}

/// How many bits below the lowest that is 1 are 0; the width of `T` of a zero.
#[track_caller]
pub fn trailing_zeros<V: DeviceValue<Element: Int>>(x: V) -> V {
    map(x, |context, x| {
        let builder = &mut context.builder;
        let mut value = word(builder, x);
        let bits = dtype_of::<V>().bits();
        if bits < 32 {
            let above = number(builder, value, 1 << bits);
            value = builder.or(value, above);
        }
        // The bits below the lowest that is 1, and all of zero.
        let one = number(builder, value, 1);
        let less = builder.sub(value, one);
        let not = builder.not(value);
        let below = builder.and(not, less);
        let ones = ones(builder, below);
        builder.cast(ones, dtype_of::<V>())
    })
}

/// The number of the lowest bit that is 1, from 1 on; 0 of a zero: C's `ffs`.
#[track_caller]
pub fn find_first_set<V: DeviceValue<Element: Int>>(x: V) -> V {
    let zeros = trailing_zeros(x);
    map(x, |context, x| {
        let zeros = context.value(zeros.handle());
        let builder = &mut context.builder;
        let (none, one) = (number(builder, x, 0), number(builder, x, 1));
        let place = builder.add(zeros, one);
        let is_none = builder.compare(CompareOp::Eq, x, none);
        builder.select(is_none, none, place)
    })
}

/// The bits of each number in reverse: the lowest becomes the highest of the width of `T`.
#[track_caller]
pub fn reverse_bits<V: DeviceValue<Element: Int>>(x: V) -> V {
    map(x, |context, x| {
        let dtype = dtype_of::<V>();
        let builder = &mut context.builder;
        let mut value = builder.bitcast(x, dtype.unsigned());
        // Neighbours change places: bits, pairs of them, fours, and so on.
        for (places, lower) in [(1, 0x5555_5555_5555_5555), (2, 0x3333_3333_3333_3333)]
            .into_iter()
            .chain([(4, 0x0f0f_0f0f_0f0f_0f0f), (8, 0x00ff_00ff_00ff_00ff)])
            .chain([(16, 0x0000_ffff_0000_ffff), (32, 0x0000_0000_ffff_ffff)])
            .take_while(|&(places, _)| places < u64::from(dtype.bits()))
        {
            let shifted = shifted_right(builder, value, places);
            let down = masked(builder, shifted, lower);
            let kept = masked(builder, value, lower);
            let by = number(builder, kept, places);
            let up = builder.shl(kept, by);
            value = builder.or(down, up);
        }
        builder.bitcast(value, dtype)
    })
}

/// Half the sum of two integers, rounded down, without overflow: CUDA's `hadd`.
#[track_caller]
pub fn average_floor<A, B>(a: A, b: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    let define = |builder: &mut Builder, a, b| {
        let (both, differ) = (builder.and(a, b), builder.xor(a, b));
        let half = shifted_right(builder, differ, 1);
        builder.add(both, half)
    };
    pair("average_floor", define, a, b)
}

/// Half the sum of two integers, rounded up, without overflow: CUDA's `rhadd`.
#[track_caller]
pub fn average_ceiling<A, B>(a: A, b: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    let define = |builder: &mut Builder, a, b| {
        let (either, differ) = (builder.or(a, b), builder.xor(a, b));
        let half = shifted_right(builder, differ, 1);
        builder.sub(either, half)
    };
    pair("average_ceiling", define, a, b)
}

/// The distance of two integers, whose bits are those of an unsigned number of their width: `i32` numbers that are more
/// than 2^31 - 1 apart give a negative one, and `.bitcast::<u32>()` reads it. CUDA's `sad(x, y, z)` adds `z`.
#[track_caller]
pub fn absolute_difference<A, B>(a: A, b: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    let define = |builder: &mut Builder, a, b| {
        let (greater, lesser) = (builder.maximum(a, b), builder.minimum(a, b));
        builder.sub(greater, lesser)
    };
    pair("absolute_difference", define, a, b)
}

/// The bits of each number moved up by `places` modulo the width of the type; what leaves at the top enters below.
#[track_caller]
pub fn rotate_left<A, B>(x: A, places: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    let define = |builder: &mut Builder, x, places| rotated(builder, x, places, true);
    pair("rotate_left", define, x, places)
}

/// The bits of each number moved down by `places` modulo the width of the type; what leaves below enters at the top.
#[track_caller]
pub fn rotate_right<A, B>(x: A, places: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    let define = |builder: &mut Builder, x, places| rotated(builder, x, places, false);
    pair("rotate_right", define, x, places)
}

fn rotated(builder: &mut Builder, x: Value, places: Value, up: bool) -> Value {
    let Some(dtype) = builder.ty(x).dtype() else {
        return x;
    };
    let [value, places] = [x, places].map(|it| builder.bitcast(it, dtype.unsigned()));
    let mask = number(builder, places, u64::from(dtype.bits()) - 1);
    let forth = builder.and(places, mask);
    let negated = builder.neg(places);
    let back = builder.and(negated, mask);
    let (left, right) = if up { (forth, back) } else { (back, forth) };
    let upper = builder.shl(value, left);
    let lower = builder.shr(value, right);
    let both = builder.or(upper, lower);
    builder.bitcast(both, dtype)
}

/// The upper half of the product of twice the width, element by element.
#[track_caller]
pub fn mulhi<A, B>(a: A, b: B) -> A::Output
where
    A: Elementwise<B, Output: DeviceValue<Element: Int>>,
{
    pair("mulhi", upper_of_product, a, b)
}

/// The upper half of the product of twice the width of two integers.
pub(super) fn upper_of_product(builder: &mut Builder, a: Value, b: Value) -> Value {
    let Some(dtype) = builder.ty(a).dtype() else {
        return a;
    };
    let bits = dtype.bits();
    if bits == 64 {
        return upper_half(builder, a, b, dtype);
    }
    let wide = if dtype.is_signed() {
        DType::I64
    } else {
        DType::U64
    };
    let (a, b) = (builder.cast(a, wide), builder.cast(b, wide));
    let product = builder.mul(a, b);
    let upper = shifted_right(builder, product, u64::from(bits));
    builder.cast(upper, dtype)
}

/// Four bytes of the eight of `low` and `high`, numbered from the lowest of `low`: the lowest three bits of each
/// four of `selector` say which, lowest first.
#[track_caller]
pub fn byte_permute<A, B, C>(low: A, high: B, selector: C) -> <A::Output as Elementwise<C>>::Output
where
    A: Elementwise<B, Output: Elementwise<C, Output: DeviceValue<Element = u32>>>,
{
    triple("byte_permute", permuted, (low, high, selector))
}

fn permuted(builder: &mut Builder, operands: [Value; 3]) -> Value {
    let [low, high, selector] = operands.map(|it| builder.cast(it, DType::U64));
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
}

/// The type of the numbers of a value.
fn dtype_of<V: DeviceValue>() -> DType {
    <V::Element as Number>::DTYPE
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

/// The bits of `x` that are 1 in `mask`.
fn masked(builder: &mut Builder, x: Value, mask: u64) -> Value {
    let mask = number(builder, x, mask);
    builder.and(x, mask)
}

/// How many bits of a word are 1: pairs, fours and bytes, whose sum a product gathers at the top.
fn ones(builder: &mut Builder, word: Value) -> Value {
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
