//! What operands are checked for, and the words for what is wrong.

use crate::ir::{DType, Func, Op, Space, Type, Value};

/// An op whose types are asked for, and the function that its operands are of.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) func: &'a Func,
    pub(super) op: &'a Op,
}

impl Rules<'_> {
    pub(super) fn ty(self, value: Value) -> Type {
        self.func.ty(value)
    }

    pub(super) fn types(self, values: &[Value]) -> Vec<Type> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    pub(super) fn name(self) -> &'static str {
        self.op.mnemonic()
    }

    pub(super) fn expect(self, what: &str, found: Type, expected: Type) -> Result<(), String> {
        if found == expected || found.is_poison() || expected.is_poison() {
            return Ok(());
        }
        Err(format!(
            "{what} of `{}` is `{found}`, expected `{expected}`",
            self.name()
        ))
    }

    pub(super) fn number(self, ty: Type) -> Result<DType, String> {
        ty.dtype()
            .ok_or_else(|| format!("`{}` takes numbers, found `{ty}`", self.name()))
    }

    /// The type of an operand that is a number of one of these types.
    pub(super) fn one_of(self, x: Value, admitted: &[DType]) -> Result<Type, String> {
        let ty = self.ty(x);
        let dtype = self.number(ty)?;
        if admitted.contains(&dtype) {
            return Ok(ty);
        }
        let names: Vec<String> = admitted.iter().map(|dtype| format!("`{dtype}`")).collect();
        let (name, admitted) = (self.name(), names.join(" or "));
        Err(format!("`{name}` takes {admitted}, found `{dtype}`"))
    }

    pub(super) fn pointer(self, base: Value) -> Result<(DType, Space), String> {
        let ty = self.ty(base);
        ty.pointee()
            .ok_or_else(|| format!("base of `{}` is `{ty}`, expected a pointer", self.name()))
    }

    pub(super) fn scalar_index(self, what: &str, value: Value) -> Result<(), String> {
        let ty = self.ty(value);
        if ty.is_scalar() && matches!(ty.dtype(), Some(DType::I64 | DType::I32)) {
            return Ok(());
        }
        Err(format!(
            "{what} of `{}` is `{ty}`, expected `i64` or `i32`",
            self.name()
        ))
    }

    /// The type of one offset, or of a vector of them in a lane of a GPU.
    pub(super) fn offsets(self, what: &str, value: Value) -> Result<Type, String> {
        let ty = self.ty(value);
        if ty.is_scalar() || self.func.warps == 0 {
            return self.scalar_index(what, value).map(|()| ty);
        }
        self.one_of(value, &[DType::I64, DType::I32])
    }

    /// A mask of the shape of `like`.
    pub(super) fn mask(self, like: Type, mask: Option<Value>) -> Result<(), String> {
        mask.map_or(Ok(()), |mask| {
            self.expect("mask", self.ty(mask), like.with_dtype(DType::Bool))
        })
    }

    pub(super) fn at_least(self, what: &str, found: i64, least: i64) -> Result<(), String> {
        if found >= least {
            return Ok(());
        }
        Err(format!(
            "{what} of `{}` is {found}, expected at least {least}",
            self.name()
        ))
    }
}
