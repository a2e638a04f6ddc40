//! Conversions, of those that the target has in one step.

use exactile_core::ir::{Class, DType};
use inkwell::values::{BasicValueEnum, FloatValue, InstructionOpcode, IntValue};

use super::Emitter;
use crate::error::{Error, Result};

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
            (Class::Float, Class::Bool | Class::Signed | Class::Unsigned) => {
                self.float_to_integer(from, to, x.into_float_value())
            }
            (Class::Bool | Class::Signed | Class::Unsigned, Class::Float) => {
                Ok(self.integer_to_float(from, to, x.into_int_value())?.into())
            }
            (
                Class::Bool | Class::Signed | Class::Unsigned,
                Class::Bool | Class::Signed | Class::Unsigned,
            ) => Ok(self.resize(from, to.bits(), x.into_int_value())?.into()),
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
        let target = self.float_type(to);
        if from == to {
            Ok(x)
        } else if to.bits() > from.bits() {
            Ok(self.builder.build_float_ext(x, target, "")?)
        } else if to == DType::BF16 && is_of_integer(x) {
            self.round_apart(from, x)
        } else {
            Ok(self.builder.build_float_trunc(x, target, "")?)
        }
    }

    /// `x` as a `bf16`, by PTX's own instruction and out of LLVM's sight: LLVM 22 would join it with the
    /// conversion of an integer before it, which rounds twice on devices before 9.0 and reads a
    /// sign-extended condition as unsigned.
    fn round_apart(&self, from: DType, x: FloatValue<'c>) -> Result<FloatValue<'c>> {
        let (text, constraints) = if from == DType::F64 {
            ("cvt.rn.bf16.f64 $0, $1;", "=h,d")
        } else {
            ("cvt.rn.bf16.f32 $0, $1;", "=h,f")
        };
        let bits = self.inline_ptx(
            Some(self.context.i16_type().into()),
            text.to_string(),
            constraints.to_string(),
            &[x.into()],
            false,
        )?;
        let bits = bits.try_as_basic_value().basic();
        let bits = bits.ok_or_else(|| Error::Llvm(format!("`{text}` has no result")))?;
        let rounded = self
            .builder
            .build_bit_cast(bits, self.context.bf16_type(), "")?;
        Ok(rounded.into_float_value())
    }

    /// PTX saturates, and makes 0 of NaN for integers of 32 bits and `f32` (PTX ISA 9.7.9).
    fn float_to_integer(
        &self,
        from: DType,
        to: DType,
        x: FloatValue<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let source = if from == DType::F64 { "d" } else { "f" };
        let target = match (to.is_signed(), to.bits()) {
            (true, 64) => "ll",
            (true, _) => "i",
            (false, 64) => "ull",
            (false, _) => "ui",
        };
        self.intrinsic_value(&format!("llvm.nvvm.{source}2{target}.rz"), &[], &[x.into()])
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

/// Whether `x` is made of an integer.
fn is_of_integer(x: FloatValue<'_>) -> bool {
    x.as_instruction().is_some_and(|made| {
        let opcode = made.get_opcode();
        matches!(
            opcode,
            InstructionOpcode::SIToFP | InstructionOpcode::UIToFP
        )
    })
}
