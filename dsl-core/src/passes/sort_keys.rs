//! Turns the keys of sorts into integers: one comparison, or one minimum, then decides.
//!
//! Afterwards every `sort` is ascending, its keys are signed integers, and no two elements of a line
//! agree in all keys unless there is nothing else to tell them apart: where other sources move
//! along, the index is the last key. So every network that sorts gives the same bits.

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::{Class, DType, Func, Inst, Op, SortOrder, Value, op};

/// Rewrites each `sort` into one of integer keys.
pub fn sort_keys(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| sorted(rewriter, inst));
}

/// One key as bits that are compared as an unsigned number, or as a signed one if it comes first.
#[derive(Clone, Copy)]
struct Word {
    /// A signed integer whose order is the order of the key.
    value: Value,
    bits: u32,
}

/// Words that are one integer, the first in its high bits.
struct Packed {
    value: Value,
    widths: Vec<u32>,
}

fn sorted(rewriter: &mut Rewriter, inst: Inst) -> Option<Vec<Value>> {
    let Op::Sort(op::Sort {
        sources,
        keys,
        axis,
        direction,
        count,
    }) = rewriter.builder.func().op(inst).clone()
    else {
        return None;
    };
    let builder = &mut rewriter.builder;
    let (keys, payloads) = sources.split_at(keys as usize);
    let mut words: Vec<Word> = keys
        .iter()
        .map(|&key| encode(builder, key, direction))
        .collect();
    if !payloads.is_empty() {
        let shape = builder.ty(keys[0]).shape;
        let index = builder.narrow_index_along(axis.index(), shape);
        words.push(encode(builder, index, SortOrder::Ascending));
    }
    let packed = pack(builder, &words);
    let sources = packed
        .iter()
        .map(|group| group.value)
        .chain(payloads.iter().copied());
    let op = Op::Sort(op::Sort {
        sources: sources.collect(),
        keys: packed.len() as i64,
        axis,
        direction: SortOrder::Ascending,
        count,
    });
    let sort = builder.emit(op, &[]);
    let results = builder.results(sort).to_vec();
    let (groups, moved) = results.split_at(packed.len());
    let mut unpacked = Vec::new();
    for (group, &value) in packed.iter().zip(groups) {
        unpacked.extend(unpack(builder, group, value));
    }
    let dtypes: Vec<DType> = keys
        .iter()
        .filter_map(|&key| builder.ty(key).dtype())
        .collect();
    let decoded = unpacked.into_iter().zip(dtypes);
    let decoded = decoded.map(|(word, dtype)| decode(builder, word, dtype, direction));
    let mut values: Vec<Value> = decoded.collect();
    values.extend(moved);
    Some(values)
}

fn signed(bits: u32) -> DType {
    match bits {
        ..=8 => DType::I8,
        9..=16 => DType::I16,
        17..=32 => DType::I32,
        _ => DType::I64,
    }
}

fn unsigned(bits: u32) -> DType {
    match bits {
        ..=8 => DType::U8,
        9..=16 => DType::U16,
        17..=32 => DType::U32,
        _ => DType::U64,
    }
}

/// Bits as a signed integer with the order of the float whose bits they are: those below the sign
/// are flipped where it is set. It undoes itself.
fn flip_negative(builder: &mut Builder, bits: Value, width: u32) -> Value {
    let dtype = signed(width);
    let amount = builder.bits_like(bits, dtype, u64::from(width) - 1);
    let sign = builder.shr(bits, amount);
    let below = builder.bits_like(bits, dtype, (1 << (width - 1)) - 1);
    let flipped = builder.and(sign, below);
    builder.xor(bits, flipped)
}

/// Exchanges the signed and the unsigned reading of bits. It undoes itself.
fn flip_sign(builder: &mut Builder, bits: Value, dtype: DType) -> Value {
    let sign = builder.bits_like(bits, dtype, 1 << (dtype.bits() - 1));
    builder.xor(bits, sign)
}

fn encode(builder: &mut Builder, key: Value, direction: SortOrder) -> Word {
    let dtype = builder.ty(key).dtype().unwrap_or(DType::I32);
    let bits = 8 * dtype.bytes();
    let value = match dtype.class() {
        Class::Bool => builder.cast(key, DType::I8),
        Class::Signed => key,
        Class::Unsigned => {
            let flipped = flip_sign(builder, key, dtype);
            builder.bitcast(flipped, signed(bits))
        }
        Class::Float => {
            let own = builder.bitcast(key, signed(bits));
            flip_negative(builder, own, bits)
        }
    };
    let value = match direction {
        SortOrder::Ascending => value,
        SortOrder::Descending => builder.not(value),
    };
    Word { value, bits }
}

fn decode(builder: &mut Builder, word: Value, dtype: DType, direction: SortOrder) -> Value {
    let value = match direction {
        SortOrder::Ascending => word,
        SortOrder::Descending => builder.not(word),
    };
    match dtype.class() {
        Class::Bool => builder.cast(value, DType::Bool),
        Class::Signed => value,
        Class::Unsigned => {
            let own = builder.bitcast(value, dtype);
            flip_sign(builder, own, dtype)
        }
        Class::Float => {
            let own = flip_negative(builder, value, dtype.bits());
            builder.bitcast(own, dtype)
        }
    }
}

/// Joins neighbouring words as far as 64 bits hold them.
fn pack(builder: &mut Builder, words: &[Word]) -> Vec<Packed> {
    let mut groups: Vec<Vec<Word>> = Vec::new();
    for &word in words {
        match groups.last_mut() {
            Some(group) if group.iter().map(|word| word.bits).sum::<u32>() + word.bits <= 64 => {
                group.push(word);
            }
            Some(_) | None => groups.push(vec![word]),
        }
    }
    groups
        .iter()
        .map(|group| pack_group(builder, group))
        .collect()
}

fn pack_group(builder: &mut Builder, group: &[Word]) -> Packed {
    let widths: Vec<u32> = group.iter().map(|word| word.bits).collect();
    let dtype = signed(widths.iter().sum());
    let mut value = builder.cast(group[0].value, dtype);
    for word in &group[1..] {
        let amount = builder.bits_like(value, dtype, u64::from(word.bits));
        let high = builder.shl(value, amount);
        let own = builder.bitcast(word.value, unsigned(word.bits));
        let low = flip_sign(builder, own, unsigned(word.bits));
        let low = builder.cast(low, dtype);
        value = builder.or(high, low);
    }
    Packed { value, widths }
}

/// The words of a group, as [`encode`] made them.
fn unpack(builder: &mut Builder, group: &Packed, value: Value) -> Vec<Value> {
    let mut rest = value;
    let mut words = Vec::new();
    for &bits in group.widths[1..].iter().rev() {
        let low = builder.cast(rest, unsigned(bits));
        let flipped = flip_sign(builder, low, unsigned(bits));
        words.push(builder.bitcast(flipped, signed(bits)));
        let dtype = builder.ty(rest).dtype().unwrap_or(DType::I64);
        let amount = builder.bits_like(rest, dtype, u64::from(bits));
        rest = builder.shr(rest, amount);
    }
    words.push(builder.cast(rest, signed(group.widths[0])));
    words.reverse();
    words
}
