//! Float arithmetic, of `f32` and `f64`.

use exactile_core::ir::{Approximate, BinaryOp, DType, UnaryOp};
use inkwell::values::FloatValue;

use super::Emitter;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    pub(super) fn float_unary(
        &self,
        op: UnaryOp,
        dtype: DType,
        x: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        match op {
            UnaryOp::Neg => Ok(self.builder.build_float_neg(x, "")?),
            UnaryOp::Abs => self.float_intrinsic("llvm.fabs", dtype, x),
            UnaryOp::Sqrt => self.float_intrinsic("llvm.sqrt", dtype, x),
            UnaryOp::Floor => self.float_intrinsic("llvm.floor", dtype, x),
            UnaryOp::Ceil => self.float_intrinsic("llvm.ceil", dtype, x),
            UnaryOp::Trunc => self.float_intrinsic("llvm.trunc", dtype, x),
            UnaryOp::Round => self.float_intrinsic("llvm.roundeven", dtype, x),
            UnaryOp::Not => Err(Error::Unsupported(op.mnemonic().to_string())),
        }
    }

    /// One PTX instruction, in the form that keeps subnormals unless there are none.
    pub(super) fn approximate(&self, op: Approximate, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        let instruction = match op {
            Approximate::Exp2 => "ex2.approx.f32",
            Approximate::NormalExp2 => "ex2.approx.ftz.f32",
            Approximate::Log2 => "lg2.approx.f32",
            Approximate::Reciprocal => "rcp.approx.f32",
            Approximate::NormalReciprocal => "rcp.approx.ftz.f32",
            Approximate::Rsqrt => "rsqrt.approx.f32",
            Approximate::Sin => "sin.approx.f32",
            Approximate::Cos => "cos.approx.f32",
            Approximate::Tanh => "tanh.approx.f32",
        };
        let text = format!("{instruction} $0, $1;");
        let ty = self.context.f32_type().into();
        let call = self.inline_ptx(Some(ty), text, "=f,f".to_string(), &[x.into()], false)?;
        call.try_as_basic_value()
            .basic()
            .map(|value| value.into_float_value())
            .ok_or_else(|| Error::Llvm(format!("`{instruction}` has no result")))
    }

    fn float_intrinsic(
        &self,
        name: &str,
        dtype: DType,
        x: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        let ty = self.float_type(dtype).into();
        Ok(self
            .intrinsic_value(name, &[ty], &[x.into()])?
            .into_float_value())
    }

    pub(super) fn float_binary(
        &self,
        op: BinaryOp,
        dtype: DType,
        lhs: FloatValue<'c>,
        rhs: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        match op {
            BinaryOp::Add => Ok(self.builder.build_float_add(lhs, rhs, "")?),
            BinaryOp::Sub => Ok(self.builder.build_float_sub(lhs, rhs, "")?),
            BinaryOp::Mul => Ok(self.builder.build_float_mul(lhs, rhs, "")?),
            BinaryOp::Div => Ok(self.builder.build_float_div(lhs, rhs, "")?),
            BinaryOp::Minimum => self.extremum("llvm.minimum", dtype, lhs, rhs),
            BinaryOp::Maximum => self.extremum("llvm.maximum", dtype, lhs, rhs),
            BinaryOp::Minnum => self.extremum("llvm.minimumnum", dtype, lhs, rhs),
            BinaryOp::Maxnum => self.extremum("llvm.maximumnum", dtype, lhs, rhs),
            BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => Err(Error::Unsupported(op.mnemonic().to_string())),
        }
    }

    /// PTX `min` and `max` order -0 < +0.
    fn extremum(
        &self,
        name: &str,
        dtype: DType,
        lhs: FloatValue<'c>,
        rhs: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        let ty = self.float_type(dtype).into();
        let result = self.intrinsic_value(name, &[ty], &[lhs.into(), rhs.into()])?;
        Ok(result.into_float_value())
    }
}
