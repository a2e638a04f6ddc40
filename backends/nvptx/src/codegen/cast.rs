//! Conversions: each rounds once, saturates where the contract says so, and hides NaN payloads.

use exactile_core::ir::{Class, DType};
use inkwell::values::{BasicValueEnum, FloatValue, IntValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::Emitter;
use crate::error::Result;

impl<'c> Emitter<'_, 'c> {
    /// `x`, of data type `from`, as one of data type `to`.
    pub(super) fn convert(
        &self,
        from: DType,
        to: DType,
        x: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        match (from.class(), to.class()) {
            (Class::Float, Class::Float) => {
                Ok(self.float_to_float(from, to, x.into_float_value())?.into())
            }
            (Class::Float, Class::Bool) => {
                let wide = self.widen(from, x.into_float_value())?;
                let zero = wide.get_type().const_zero();
                let nonzero =
                    self.builder
                        .build_float_compare(FloatPredicate::UNE, wide, zero, "")?;
                Ok(nonzero.into())
            }
            (Class::Float, Class::Signed | Class::Unsigned) => {
                self.float_to_integer(from, to, x.into_float_value())
            }
            (Class::Bool | Class::Signed | Class::Unsigned, Class::Float) => {
                Ok(self.integer_to_float(from, to, x.into_int_value())?.into())
            }
            (Class::Bool | Class::Signed | Class::Unsigned, Class::Bool) => {
                let x = x.into_int_value();
                let zero = x.get_type().const_zero();
                Ok(self
                    .builder
                    .build_int_compare(IntPredicate::NE, x, zero, "")?
                    .into())
            }
            (Class::Bool | Class::Signed | Class::Unsigned, Class::Signed | Class::Unsigned) => {
                Ok(self.resize(from, to.bits(), x.into_int_value())?.into())
            }
        }
    }

    /// `x` cut or extended to `bits`, by the sign of `from`.
    pub(super) fn resize(&self, from: DType, bits: u32, x: IntValue<'c>) -> Result<IntValue<'c>> {
        let target = self.int_type(bits);
        if bits == from.bits() {
            Ok(x)
        } else if bits < from.bits() {
            Ok(self.builder.build_int_truncate(x, target, "")?)
        } else if from.is_signed() {
            Ok(self.builder.build_int_s_extend(x, target, "")?)
        } else {
            Ok(self.builder.build_int_z_extend(x, target, "")?)
        }
    }

    fn float_to_float(&self, from: DType, to: DType, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        if from == to {
            return Ok(x);
        }
        let target = self.float_type(to);
        let x = self.widen(from, x)?;
        match (from.compute(), to) {
            (DType::F32, DType::F64) => Ok(self.builder.build_float_ext(x, target, "")?),
            (from, to) if from == to => Ok(x),
            _ => Ok(self.builder.build_float_trunc(x, target, "")?),
        }
    }

    fn float_to_integer(
        &self,
        from: DType,
        to: DType,
        x: FloatValue<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let name = if to.is_signed() {
            "llvm.fptosi.sat"
        } else {
            "llvm.fptoui.sat"
        };
        let x = self.widen(from, x)?;
        let overloads = [self.element_type(to), x.get_type().into()];
        self.intrinsic_value(name, &overloads, &[x.into()])
    }

    fn integer_to_float(&self, from: DType, to: DType, x: IntValue<'c>) -> Result<FloatValue<'c>> {
        let target = self.float_type(to);
        let x = self.resize(from, from.bits().max(32), x)?;
        if from.is_signed() {
            Ok(self.builder.build_signed_int_to_float(x, target, "")?)
        } else {
            Ok(self.builder.build_unsigned_int_to_float(x, target, "")?)
        }
    }
}
