//! Inline PTX of a kernel, once for each element.

use exactile_core::ir::{DType, Inst, Value, op};
use inkwell::attributes::AttributeLoc;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};
use crate::inlined;

impl<'c> Emitter<'_, 'c> {
    /// The elements of the result that an inline text is asked for.
    pub(super) fn inlined(&self, op: &op::InlinePtx, inst: Inst) -> Result<Elements<'c>> {
        let count = self.get(op.operands[0]).len();
        (0..count)
            .map(|element| self.inlined_element(op, inst, element))
            .collect()
    }

    fn inlined_element(
        &self,
        op: &op::InlinePtx,
        inst: Inst,
        element: usize,
    ) -> Result<BasicValueEnum<'c>> {
        let dtypes = |values: &[Value]| -> Result<Vec<DType>> {
            values.iter().map(|&value| self.dtype(value)).collect()
        };
        let (results, operands) = (dtypes(&op.meaning)?, dtypes(&op.operands)?);
        let written = results.iter().map(|&it| format!("={}", constraint(it)));
        let read = operands.iter().map(|&it| constraint(it).to_string());
        let constraints: Vec<String> = written.chain(read).collect();
        let mut arguments: Vec<BasicMetadataValueEnum<'c>> = Vec::new();
        for (&operand, &dtype) in op.operands.iter().zip(&operands) {
            let register = self.register_type(dtype);
            let value = self.values[operand][element];
            let value = self.builder.build_bit_cast(value, register, "")?;
            arguments.push(value.into());
        }
        let types: Vec<BasicTypeEnum<'c>> =
            results.iter().map(|&it| self.register_type(it)).collect();
        let given = match types[..] {
            [single] => single,
            _ => self.context.struct_type(&types, false).into(),
        };
        let text = inlined::comment(&self.func.inst(inst).loc) + &op.text;
        let constraints = constraints.join(",");
        let call = self.inline_ptx(Some(given), text, constraints, &arguments, false)?;
        let none = self.enum_attribute_value("memory", 0);
        call.add_attribute(AttributeLoc::Function, none);
        let given = call.try_as_basic_value().basic();
        let given = given.ok_or_else(|| Error::Llvm("inline PTX has no result".to_string()))?;
        let asked = op.result as usize;
        let given = match types[..] {
            [_] => given,
            _ => {
                let all = given.into_struct_value();
                self.builder.build_extract_value(all, asked as u32, "")?
            }
        };
        let element = self.element_type(results[asked]);
        Ok(self.builder.build_bit_cast(given, element, "")?)
    }

    /// The type that holds a number in a register of PTX: narrow floats are their bits there.
    fn register_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        match dtype.is_float() && dtype.bits() > 16 {
            true => self.element_type(dtype),
            false => self.int_type(dtype.bits()).into(),
        }
    }
}

/// The register of PTX that a number is in.
fn constraint(dtype: DType) -> char {
    match (dtype.is_float(), dtype.bits()) {
        (true, 32) => 'f',
        (true, 64) => 'd',
        (_, 16) => 'h',
        (_, 64) => 'l',
        _ => 'r',
    }
}
