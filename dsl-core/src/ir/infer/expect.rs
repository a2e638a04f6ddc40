//! What operands are checked for, and the words for what is wrong.

use crate::ir::{DType, Func, Op, Space, Type, Value};

pub(super) fn expect(op: &Op, what: &str, found: Type, expected: Type) -> Result<(), String> {
    if found == expected || found.is_poison() || expected.is_poison() {
        return Ok(());
    }
    Err(format!(
        "{what} of `{}` is `{found}`, expected `{expected}`",
        op.mnemonic()
    ))
}

pub(super) fn number(op: &Op, ty: Type) -> Result<DType, String> {
    ty.dtype()
        .ok_or_else(|| format!("`{}` takes numbers, found `{ty}`", op.mnemonic()))
}

pub(super) fn pointer(op: &Op, ty: Type) -> Result<(DType, Space), String> {
    ty.pointee()
        .ok_or_else(|| format!("base of `{}` is `{ty}`, expected a pointer", op.mnemonic()))
}

pub(super) fn scalar_index(op: &Op, what: &str, ty: Type) -> Result<(), String> {
    if ty.is_scalar() && matches!(ty.dtype(), Some(DType::I64 | DType::I32)) {
        return Ok(());
    }
    Err(format!(
        "{what} of `{}` is `{ty}`, expected `i64` or `i32`",
        op.mnemonic()
    ))
}

pub(super) fn check_mask(op: &Op, like: Type, mask: Option<Type>) -> Result<(), String> {
    mask.map_or(Ok(()), |mask| {
        expect(op, "mask", mask, like.with_dtype(DType::Bool))
    })
}

pub(super) fn region_types(func: &Func, values: &[Value]) -> Vec<Type> {
    values.iter().map(|&value| func.ty(value)).collect()
}

pub(super) fn at_least(op: &Op, what: &str, found: i64, least: i64) -> Result<(), String> {
    if found >= least {
        return Ok(());
    }
    Err(format!(
        "{what} of `{}` is {found}, expected at least {least}",
        op.mnemonic()
    ))
}
