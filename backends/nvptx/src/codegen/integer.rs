//! Integer and `bool` arithmetic. Cases that LLVM leaves undefined were guarded by `legalise`.

use exactile_core::ir::{BinaryOp, DType, RawOp, UnaryOp};
use inkwell::IntPredicate;
use inkwell::values::IntValue;

use super::Emitter;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    pub(super) fn integer_unary(
        &self,
        op: UnaryOp,
        dtype: DType,
        x: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        match op {
            UnaryOp::Neg => Ok(self.builder.build_int_neg(x, "")?),
            UnaryOp::Not => Ok(self.builder.build_not(x, "")?),
            UnaryOp::Abs if !dtype.is_signed() => Ok(x),
            UnaryOp::Abs => {
                let least_is_poison = self.int(1, 0);
                let arguments = [x.into(), least_is_poison.into()];
                let ty = x.get_type().into();
                let result = self.intrinsic_value("llvm.abs", &[ty], &arguments)?;
                Ok(result.into_int_value())
            }
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => {
                Err(Error::Unsupported(op.mnemonic().to_string()))
            }
        }
    }

    pub(super) fn integer_binary(
        &self,
        op: BinaryOp,
        dtype: DType,
        lhs: IntValue<'c>,
        rhs: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let builder = &self.builder;
        let signed = dtype.is_signed();
        match op {
            BinaryOp::Add => Ok(builder.build_int_add(lhs, rhs, "")?),
            BinaryOp::Sub => Ok(builder.build_int_sub(lhs, rhs, "")?),
            BinaryOp::Mul => Ok(builder.build_int_mul(lhs, rhs, "")?),
            BinaryOp::And => Ok(builder.build_and(lhs, rhs, "")?),
            BinaryOp::Or => Ok(builder.build_or(lhs, rhs, "")?),
            BinaryOp::Xor => Ok(builder.build_xor(lhs, rhs, "")?),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => {
                Err(Error::Unsupported(op.mnemonic().to_string()))
            }
            BinaryOp::Minimum | BinaryOp::Minnum => self.ordered(
                if signed {
                    IntPredicate::SLT
                } else {
                    IntPredicate::ULT
                },
                lhs,
                rhs,
            ),
            BinaryOp::Maximum | BinaryOp::Maxnum => self.ordered(
                if signed {
                    IntPredicate::SGT
                } else {
                    IntPredicate::UGT
                },
                lhs,
                rhs,
            ),
        }
    }

    fn ordered(
        &self,
        predicate: IntPredicate,
        lhs: IntValue<'c>,
        rhs: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let first = self.builder.build_int_compare(predicate, lhs, rhs, "")?;
        self.choose_int(first, lhs, rhs)
    }

    /// The machine's own instruction.
    pub(super) fn raw_integer(
        &self,
        op: RawOp,
        dtype: DType,
        lhs: IntValue<'c>,
        rhs: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let builder = &self.builder;
        let is_wide = dtype.bits() == 64 && rhs.get_zero_extended_constant().is_none();
        Ok(match (op, dtype.is_signed()) {
            (RawOp::Div, true) => builder.build_int_signed_div(lhs, rhs, "")?,
            (RawOp::Div, false) => builder.build_int_unsigned_div(lhs, rhs, "")?,
            (RawOp::Rem, true) => builder.build_int_signed_rem(lhs, rhs, "")?,
            (RawOp::Rem, false) => builder.build_int_unsigned_rem(lhs, rhs, "")?,
            (RawOp::Shr, true) => builder.build_right_shift(lhs, rhs, true, "")?,
            (RawOp::Shl, _) if is_wide => self.shift_wide("shl.b64 $0, $1, $2;", lhs, rhs)?,
            (RawOp::Shr, false) if is_wide => self.shift_wide("shr.u64 $0, $1, $2;", lhs, rhs)?,
            (RawOp::Shl, _) => builder.build_left_shift(lhs, rhs, "")?,
            (RawOp::Shr, false) => builder.build_right_shift(lhs, rhs, false, "")?,
        })
    }

    /// A 64-bit shift that fills with zeros, by PTX's own instruction: it takes a 32-bit amount and
    /// gives 0 from the width on (PTX ISA 9.7.8). LLVM 22 knows that rule and drops the guard
    /// around its own shift, also where the amount has bits above the 32 that remain.
    fn shift_wide(
        &self,
        text: &str,
        lhs: IntValue<'c>,
        amount: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let amount = self
            .builder
            .build_int_truncate(amount, self.context.i32_type(), "")?;
        let call = self.inline_ptx(
            Some(self.context.i64_type().into()),
            text.to_string(),
            "=l,l,r".to_string(),
            &[lhs.into(), amount.into()],
            false,
        )?;
        let value = call.try_as_basic_value().basic();
        let value = value.ok_or_else(|| Error::Llvm("a shift has no result".to_string()))?;
        Ok(value.into_int_value())
    }
}
