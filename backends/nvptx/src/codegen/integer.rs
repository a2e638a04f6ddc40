//! Integer and `bool` arithmetic, with every case that LLVM leaves undefined guarded.

use exactile_core::ir::{BinaryOp, DType, UnaryOp};
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
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => {
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
            BinaryOp::Div | BinaryOp::Rem => self.divide(op, signed, lhs, rhs),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, signed, lhs, rhs),
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

    /// Divides by 1 where the divisor is 0 or the quotient overflows: the least integer / 1 is
    /// itself and its remainder 0, as the contract wants of / -1.
    fn divide(
        &self,
        op: BinaryOp,
        signed: bool,
        lhs: IntValue<'c>,
        rhs: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let builder = &self.builder;
        let bits = rhs.get_type().get_bit_width();
        let by_zero = builder.build_int_compare(IntPredicate::EQ, rhs, self.int(bits, 0), "")?;
        let mut guard = by_zero;
        if signed {
            let least = self.int(bits, i64::MIN >> (64 - bits));
            let is_least = builder.build_int_compare(IntPredicate::EQ, lhs, least, "")?;
            let by_minus_one =
                builder.build_int_compare(IntPredicate::EQ, rhs, self.int(bits, -1), "")?;
            let overflows = builder.build_and(is_least, by_minus_one, "")?;
            guard = builder.build_or(by_zero, overflows, "")?;
        }
        let divisor = self.choose_int(guard, self.int(bits, 1), rhs)?;
        let is_quotient = op == BinaryOp::Div;
        let result = match (is_quotient, signed) {
            (true, true) => builder.build_int_signed_div(lhs, divisor, "")?,
            (true, false) => builder.build_int_unsigned_div(lhs, divisor, "")?,
            (false, true) => builder.build_int_signed_rem(lhs, divisor, "")?,
            (false, false) => builder.build_int_unsigned_rem(lhs, divisor, "")?,
        };
        let of_zero = if is_quotient { self.int(bits, -1) } else { lhs };
        self.choose_int(by_zero, of_zero, result)
    }

    fn shift(
        &self,
        op: BinaryOp,
        signed: bool,
        lhs: IntValue<'c>,
        amount: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let builder = &self.builder;
        let bits = lhs.get_type().get_bit_width();
        let width = self.int(bits, i64::from(bits));
        let fits = builder.build_int_compare(IntPredicate::ULT, amount, width, "")?;
        if op == BinaryOp::Shr && signed {
            let amount = self.choose_int(fits, amount, self.int(bits, i64::from(bits) - 1))?;
            return Ok(builder.build_right_shift(lhs, amount, true, "")?);
        }
        if bits == 64 && amount.get_zero_extended_constant().is_none() {
            return self.shift_wide(op, lhs, amount);
        }
        let amount = self.choose_int(fits, amount, self.int(bits, 0))?;
        let shifted = if op == BinaryOp::Shl {
            builder.build_left_shift(lhs, amount, "")?
        } else {
            builder.build_right_shift(lhs, amount, false, "")?
        };
        self.choose_int(fits, shifted, self.int(bits, 0))
    }

    /// A 64-bit shift that fills with zeros, by PTX's own instruction: it takes a 32-bit amount and
    /// gives 0 from the width on (PTX ISA 9.7.8). LLVM 22 knows that rule and drops the guard
    /// around its own shift, also where the amount has bits above the 32 that remain.
    fn shift_wide(
        &self,
        op: BinaryOp,
        lhs: IntValue<'c>,
        amount: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        let fits =
            self.builder
                .build_int_compare(IntPredicate::ULT, amount, self.int(64, 64), "")?;
        let clamped = self.choose_int(fits, amount, self.int(64, 64))?;
        let clamped = self
            .builder
            .build_int_truncate(clamped, self.context.i32_type(), "")?;
        let text = match op {
            BinaryOp::Shl => "shl.b64 $0, $1, $2;",
            _ => "shr.u64 $0, $1, $2;",
        };
        let call = self.inline_ptx(
            Some(self.context.i64_type().into()),
            text.to_string(),
            "=l,l,r".to_string(),
            &[lhs.into(), clamped.into()],
            false,
        )?;
        let value = call.try_as_basic_value().basic();
        let value = value.ok_or_else(|| Error::Llvm("a shift has no result".to_string()))?;
        Ok(value.into_int_value())
    }
}
