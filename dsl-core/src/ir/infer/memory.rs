//! Type rules of memory accesses.

use super::expect::{at_least, check_mask, expect, pointer, scalar_index};
use crate::ir::{AtomicOp, DType, Func, Op, Space, Type, Value, op};

/// The most groups of copies that a wait may leave.
const MAX_PENDING: i64 = 31;

/// The greatest alignment in bytes: that of a launch's promises.
const MAX_ALIGN: i64 = 1 << 31;

/// The pointee in the shape of the offsets.
pub(super) fn infer_load(func: &Func, op: &Op) -> Result<Type, String> {
    let Op::Load(op::Load {
        base,
        offsets,
        mask,
        other,
    }) = op
    else {
        return Ok(Type::POISON);
    };
    let ty = |value: &Value| func.ty(*value);
    let (dtype, _) = pointer(op, ty(base))?;
    let result = access_type(op, ty(offsets), dtype)?;
    check_mask(op, result, mask.map(|mask| ty(&mask)))?;
    match other {
        Some(_) if mask.is_none() => Err("`load` has `other` but no mask".to_string()),
        Some(other) => expect(op, "`other`", ty(other), result).map(|()| result),
        None => Ok(result),
    }
}

fn access_type(op: &Op, offsets: Type, dtype: DType) -> Result<Type, String> {
    if offsets.dtype() != Some(DType::I64) {
        return Err(format!(
            "offsets of `{}` are `{offsets}`, expected i64",
            op.mnemonic()
        ));
    }
    Ok(offsets.with_dtype(dtype))
}

pub(super) fn check_store(func: &Func, op: &Op) -> Result<(), String> {
    let (Op::Store(op::Store {
        base,
        offsets,
        value,
        mask,
    })
    | Op::AtomicReduce(op::AtomicReduce {
        base,
        offsets,
        value,
        mask,
        ..
    })) = op
    else {
        return Ok(());
    };
    let (dtype, _) = pointer(op, func.ty(*base))?;
    check_atomic(op, dtype)?;
    let expected = access_type(op, func.ty(*offsets), dtype)?;
    expect(op, "value", func.ty(*value), expected)?;
    check_mask(op, expected, mask.map(|mask| func.ty(mask)))
}

/// That an atomic op can combine memory of this type.
fn check_atomic(op: &Op, dtype: DType) -> Result<(), String> {
    let (Op::AtomicReduce(op::AtomicReduce { op: kind, .. })
    | Op::LaneAtomic(op::LaneAtomic { op: kind, .. })) = op
    else {
        return Ok(());
    };
    if kind.admits(dtype) {
        return Ok(());
    }
    let floats = match kind {
        AtomicOp::Add => ", f32 and f64",
        AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => "",
    };
    Err(format!(
        "`{}` with op `{}` takes integers of 32 and 64 bits{floats}, found `{dtype}`",
        op.mnemonic(),
        kind.word()
    ))
}

fn check_lane_atomic(func: &Func, op: &Op) -> Result<(), String> {
    let Op::LaneAtomic(op::LaneAtomic {
        base,
        offset,
        value,
        mask,
        ..
    }) = op
    else {
        return Ok(());
    };
    let (dtype, space) = pointer(op, func.ty(*base))?;
    check_atomic(op, dtype)?;
    if space == Space::Scratch {
        return Err("`lane_atomic` of scratch memory, which one lane has alone".to_string());
    }
    scalar_index(op, "offset", func.ty(*offset))?;
    expect(op, "value", func.ty(*value), Type::scalar(dtype))?;
    mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))
}

/// Ops of the lane stage without a result.
pub(super) fn check_lane_effect(func: &Func, op: &Op) -> Result<(), String> {
    match op {
        Op::LaneStore(op::LaneStore {
            base,
            offset,
            value,
            mask,
            align,
        }) => check_lane_access(func, op, *base, *offset, func.ty(*value), *mask, *align),
        Op::LaneAtomic(_) => check_lane_atomic(func, op),
        Op::CheckIndex(op::CheckIndex {
            index,
            element,
            extent,
            site,
            ..
        }) => {
            expect(op, "index", func.ty(*index), Type::INDEX)?;
            at_least(op, "extent", *extent, 1)?;
            at_least(op, "site", *site, 0)?;
            scalar_index(op, "element", func.ty(*element))
        }
        Op::StopIndex(op::StopIndex {
            index,
            element,
            mask,
            extent,
            site,
            ..
        }) => {
            expect(op, "index", func.ty(*index), Type::INDEX)?;
            at_least(op, "extent", *extent, 1)?;
            at_least(op, "site", *site, 0)?;
            scalar_index(op, "element", func.ty(*element))?;
            mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))
        }
        Op::StopOutside(op::StopOutside {
            base,
            offset,
            element,
            mask,
            count,
            site,
        }) => {
            at_least(op, "count", *count, 1)?;
            at_least(op, "site", *site, 0)?;
            check_outside(func, op, [*base, *offset, *element], *mask)
        }
        Op::StartCopy(_) => check_copy(func, op),
        Op::WaitCopies(op::WaitCopies { pending }) if !(0..=MAX_PENDING).contains(pending) => Err(
            format!("`wait_copies` leaves {pending} groups, expected 0 to {MAX_PENDING}"),
        ),
        _ => Ok(()),
    }
}

/// The operands of a bounds check: base, offset and element, and the mask.
pub(super) fn check_outside(
    func: &Func,
    op: &Op,
    [base, offset, element]: [Value; 3],
    mask: Option<Value>,
) -> Result<(), String> {
    pointer(op, func.ty(base))?;
    scalar_index(op, "offset", func.ty(offset))?;
    scalar_index(op, "element", func.ty(element))?;
    mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))
}

fn check_copy(func: &Func, op: &Op) -> Result<(), String> {
    let Op::StartCopy(op::StartCopy {
        target,
        offset,
        source,
        source_offset,
        mask,
        count,
    }) = op
    else {
        return Ok(());
    };
    let (dtype, from) = pointer(op, func.ty(*source))?;
    expect(
        op,
        "target",
        func.ty(*target),
        Type::pointer(dtype, Space::Shared),
    )?;
    if from != Space::Global {
        return Err("`start_copy` copies from global memory".to_string());
    }
    scalar_index(op, "offset", func.ty(*offset))?;
    scalar_index(op, "source offset", func.ty(*source_offset))?;
    mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))?;
    let bytes = count.saturating_mul(i64::from(dtype.bytes()));
    if [4, 8, 16].contains(&bytes) {
        return Ok(());
    }
    Err(format!(
        "`start_copy` moves {count} elements of `{dtype}`, expected 4, 8 or 16 bytes"
    ))
}

pub(super) fn check_lane_access(
    func: &Func,
    op: &Op,
    base: Value,
    offset: Value,
    value: Type,
    mask: Option<Value>,
    align: i64,
) -> Result<(), String> {
    let (dtype, _) = pointer(op, func.ty(base))?;
    scalar_index(op, "offset", func.ty(offset))?;
    expect(op, "value", value, value.with_dtype(dtype))?;
    mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))?;
    if align < i64::from(dtype.bytes()) || align > MAX_ALIGN || !(align as u64).is_power_of_two() {
        return Err(format!("`{align}` is no alignment for `{dtype}`"));
    }
    Ok(())
}
