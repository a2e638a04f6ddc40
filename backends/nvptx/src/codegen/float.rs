//! Float arithmetic: `f16` and `bf16` are computed in `f32` and rounded once.

use exactile_core::ir::{Approximate, BinaryOp, DType, UnaryOp};
use inkwell::FloatPredicate;
use inkwell::values::FloatValue;

use super::Emitter;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    /// `x` in the compute type of `dtype`, exactly.
    pub(super) fn widen(&self, dtype: DType, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        if dtype.compute() == dtype {
            return Ok(x);
        }
        let wide = self.float_type(dtype.compute());
        Ok(self.builder.build_float_ext(x, wide, "")?)
    }

    /// `x`, of the compute type of `dtype`, rounded to `dtype`.
    pub(super) fn narrow(&self, dtype: DType, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        if dtype.compute() == dtype {
            return Ok(x);
        }
        Ok(self
            .builder
            .build_float_trunc(x, self.float_type(dtype), "")?)
    }

    pub(super) fn float_unary(
        &self,
        op: UnaryOp,
        dtype: DType,
        x: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        match op {
            UnaryOp::Neg => Ok(self.builder.build_float_neg(x, "")?),
            UnaryOp::Abs => self.float_intrinsic("llvm.fabs", dtype, x),
            UnaryOp::Sqrt => self.rounded("llvm.sqrt", dtype, x),
            UnaryOp::Floor => self.rounded("llvm.floor", dtype, x),
            UnaryOp::Ceil => self.rounded("llvm.ceil", dtype, x),
            UnaryOp::Not => Err(Error::Unsupported(op.mnemonic().to_string())),
        }
    }

    /// One PTX instruction, in the form that keeps subnormals.
    pub(super) fn approximate(&self, op: Approximate, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        let instruction = match op {
            Approximate::Exp2 => "ex2.approx.f32",
            Approximate::Log2 => "lg2.approx.f32",
            Approximate::Reciprocal => "rcp.approx.f32",
            Approximate::Rsqrt => "rsqrt.approx.f32",
        };
        let text = format!("{instruction} $0, $1;");
        let ty = self.context.f32_type().into();
        let call = self.inline_ptx(Some(ty), text, "=f,f".to_string(), &[x.into()], false)?;
        call.try_as_basic_value()
            .basic()
            .map(|value| value.into_float_value())
            .ok_or_else(|| Error::Llvm(format!("`{instruction}` has no result")))
    }

    fn rounded(&self, name: &str, dtype: DType, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        let wide = self.widen(dtype, x)?;
        let result = self.float_intrinsic(name, dtype.compute(), wide)?;
        self.narrow(dtype, result)
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
        let (lhs, rhs) = (self.widen(dtype, lhs)?, self.widen(dtype, rhs)?);
        let compute = dtype.compute();
        let result = match op {
            BinaryOp::Add => self.builder.build_float_add(lhs, rhs, "")?,
            BinaryOp::Sub => self.builder.build_float_sub(lhs, rhs, "")?,
            BinaryOp::Mul => self.builder.build_float_mul(lhs, rhs, "")?,
            BinaryOp::Div => self.builder.build_float_div(lhs, rhs, "")?,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => {
                self.extremum(op, compute, lhs, rhs)?
            }
            BinaryOp::Rem
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return Err(Error::Unsupported(op.mnemonic().to_string())),
        };
        self.narrow(dtype, result)
    }

    /// PTX `min` and `max` order -0 < +0 for `f32`. The device has no such instruction for `f64`.
    fn extremum(
        &self,
        op: BinaryOp,
        dtype: DType,
        lhs: FloatValue<'c>,
        rhs: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        if dtype == DType::F64 {
            return self.extremum_by_compare(op, lhs, rhs);
        }
        let name = match op {
            BinaryOp::Minimum => "llvm.minimum",
            BinaryOp::Maximum => "llvm.maximum",
            BinaryOp::Minnum => "llvm.minimumnum",
            _ => "llvm.maximumnum",
        };
        let ty = self.float_type(dtype).into();
        let result = self.intrinsic_value(name, &[ty], &[lhs.into(), rhs.into()])?;
        Ok(result.into_float_value())
    }

    /// Equal operands have equal bits or are zeros, so that `or` (`and`) of the bits gives the
    /// smaller (larger) one.
    fn extremum_by_compare(
        &self,
        op: BinaryOp,
        lhs: FloatValue<'c>,
        rhs: FloatValue<'c>,
    ) -> Result<FloatValue<'c>> {
        let builder = &self.builder;
        let smaller = matches!(op, BinaryOp::Minimum | BinaryOp::Minnum);
        let propagates = matches!(op, BinaryOp::Minimum | BinaryOp::Maximum);
        let predicate = if smaller {
            FloatPredicate::OLT
        } else {
            FloatPredicate::OGT
        };
        let before = builder.build_float_compare(predicate, lhs, rhs, "")?;
        let picked = self.choose_float(before, lhs, rhs)?;
        let bits = self.context.i64_type();
        let left = builder.build_bit_cast(lhs, bits, "")?.into_int_value();
        let right = builder.build_bit_cast(rhs, bits, "")?.into_int_value();
        let merged = if smaller {
            builder.build_or(left, right, "")?
        } else {
            builder.build_and(left, right, "")?
        };
        let merged = builder
            .build_bit_cast(merged, lhs.get_type(), "")?
            .into_float_value();
        let equal = builder.build_float_compare(FloatPredicate::OEQ, lhs, rhs, "")?;
        let ordered = self.choose_float(equal, merged, picked)?;
        let left_nan = builder.build_float_compare(FloatPredicate::UNO, lhs, lhs, "")?;
        let right_nan = builder.build_float_compare(FloatPredicate::UNO, rhs, rhs, "")?;
        let (if_left, if_right) = if propagates { (lhs, rhs) } else { (rhs, lhs) };
        let result = self.choose_float(right_nan, if_right, ordered)?;
        self.choose_float(left_nan, if_left, result)
    }
}
