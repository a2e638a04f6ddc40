//! LLVM types of data types, constants, and small builders that every family uses.

use exactile_core::ir::{DType, Literal, Value};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum, FloatType, IntType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValueEnum, CallSiteValue, IntValue, VectorValue,
};

use super::Emitter;
use crate::error::{Error, Result};

/// The elements of a lane value: numbers, or one pointer. A `bool` is an `i1`.
pub(super) type Elements<'c> = Vec<BasicValueEnum<'c>>;

impl<'c> Emitter<'_, 'c> {
    /// The data type of a value of numbers.
    pub(super) fn dtype(&self, value: Value) -> Result<DType> {
        let ty = self.func.ty(value);
        ty.dtype()
            .ok_or_else(|| Error::Unsupported(format!("arithmetic on `{ty}`")))
    }

    /// The integer type of this many bits.
    pub(super) fn int_type(&self, bits: u32) -> IntType<'c> {
        int_type(self.context, bits)
    }

    /// The float type of a `dtype` that the machine has; `f32` of another.
    pub(super) fn float_type(&self, dtype: DType) -> FloatType<'c> {
        float_type(self.context, dtype).unwrap_or(self.context.f32_type())
    }

    /// The type of one element in registers.
    pub(super) fn element_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        element_type(self.context, dtype)
    }

    /// The type of one element in memory: a `bool` is a byte.
    pub(super) fn memory_type(&self, dtype: DType) -> BasicTypeEnum<'c> {
        memory_type(self.context, dtype)
    }

    /// An integer constant.
    pub(super) fn int(&self, bits: u32, value: i64) -> IntValue<'c> {
        self.int_type(bits).const_int(value as u64, true)
    }

    /// A constant with these bits.
    pub(super) fn literal(&self, literal: Literal) -> Result<BasicValueEnum<'c>> {
        let integer = self
            .int_type(literal.dtype.bits())
            .const_int(literal.bits, false);
        let integer = match is_misjudged(literal) {
            true => self.opaque(integer)?,
            false => integer,
        };
        let ty = self.element_type(literal.dtype);
        Ok(self.builder.build_bit_cast(integer, ty, "")?)
    }

    /// The same 16 or 32 bits, of which the optimiser knows nothing.
    fn opaque(&self, bits: IntValue<'c>) -> Result<IntValue<'c>> {
        let ty = bits.get_type();
        let (suffix, register) = match ty.get_bit_width() {
            16 => ("b16", "h"),
            _ => ("b32", "r"),
        };
        let text = format!("mov.{suffix} $0, $1;");
        let constraints = format!("={register},{register}");
        let call = self.inline_ptx(Some(ty.into()), text, constraints, &[bits.into()], false)?;
        let moved = call.try_as_basic_value().basic();
        let moved = moved.ok_or_else(|| Error::Llvm("a move has no result".to_string()))?;
        Ok(moved.into_int_value())
    }

    /// Calls an LLVM intrinsic.
    pub(super) fn intrinsic(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> Result<Option<BasicValueEnum<'c>>> {
        let function = Intrinsic::find(name)
            .and_then(|intrinsic| intrinsic.get_declaration(self.module, overloads))
            .ok_or_else(|| Error::Llvm(format!("no intrinsic `{name}`")))?;
        let call = self.builder.build_call(function, arguments, "")?;
        Ok(call.try_as_basic_value().basic())
    }

    /// Calls an LLVM intrinsic that has a result.
    pub(super) fn intrinsic_value(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        arguments: &[BasicMetadataValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>> {
        self.intrinsic(name, overloads, arguments)?
            .ok_or_else(|| Error::Llvm(format!("intrinsic `{name}` has no result")))
    }

    /// Calls inline PTX. Without `effects` it may be removed, repeated and moved.
    pub(super) fn inline_ptx(
        &self,
        result: Option<BasicTypeEnum<'c>>,
        text: String,
        constraints: String,
        arguments: &[BasicMetadataValueEnum<'c>],
        effects: bool,
    ) -> Result<CallSiteValue<'c>> {
        let types = arguments
            .iter()
            .map(argument_type)
            .collect::<Result<Vec<_>>>()?;
        let ty = match result {
            Some(result) => result.fn_type(&types, false),
            None => self.context.void_type().fn_type(&types, false),
        };
        let function =
            self.context
                .create_inline_asm(ty, text, constraints, effects, false, None, false);
        let call = self
            .builder
            .build_indirect_call(ty, function, arguments, "")?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("nounwind"));
        Ok(call)
    }

    /// An attribute without value.
    pub(super) fn enum_attribute(&self, name: &str) -> Attribute {
        self.enum_attribute_value(name, 0)
    }

    /// An attribute with an integer value.
    pub(super) fn enum_attribute_value(&self, name: &str, value: u64) -> Attribute {
        self.context
            .create_enum_attribute(Attribute::get_named_enum_kind_id(name), value)
    }

    /// `on_true` where the condition holds.
    pub(super) fn choose(
        &self,
        condition: IntValue<'c>,
        on_true: BasicValueEnum<'c>,
        on_false: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        Ok(self
            .builder
            .build_select(condition, on_true, on_false, "")?)
    }

    /// [`Self::choose`] of integers.
    pub(super) fn choose_int(
        &self,
        condition: IntValue<'c>,
        on_true: IntValue<'c>,
        on_false: IntValue<'c>,
    ) -> Result<IntValue<'c>> {
        Ok(self
            .choose(condition, on_true.into(), on_false.into())?
            .into_int_value())
    }

    /// An LLVM vector of scalars of one type; there is at least one.
    pub(super) fn pack(&self, elements: &[BasicValueEnum<'c>]) -> Result<VectorValue<'c>> {
        let lanes = elements.len() as u32;
        let element = elements[0].get_type();
        let ty = if let BasicTypeEnum::FloatType(ty) = element {
            ty.vec_type(lanes)
        } else if let BasicTypeEnum::IntType(ty) = element {
            ty.vec_type(lanes)
        } else {
            return Err(Error::Llvm(format!("no vector of `{element}`")));
        };
        let mut vector = ty.get_poison();
        for (index, &element) in elements.iter().enumerate() {
            let index = self.int(32, index as i64);
            vector = self
                .builder
                .build_insert_element(vector, element, index, "")?;
        }
        Ok(vector)
    }

    /// The scalars of an LLVM vector.
    pub(super) fn unpack(&self, vector: VectorValue<'c>) -> Result<Elements<'c>> {
        (0..vector.get_type().get_size())
            .map(|index| {
                let index = self.int(32, i64::from(index));
                Ok(self.builder.build_extract_element(vector, index, "")?)
            })
            .collect()
    }
}

fn int_type(context: &Context, bits: u32) -> IntType<'_> {
    match bits {
        1 => context.bool_type(),
        8 => context.i8_type(),
        16 => context.i16_type(),
        32 => context.i32_type(),
        _ => context.i64_type(),
    }
}

/// The floats that machines have; another is its bits.
fn float_type(context: &Context, dtype: DType) -> Option<FloatType<'_>> {
    let known = [
        (DType::F16, context.f16_type()),
        (DType::BF16, context.bf16_type()),
        (DType::F32, context.f32_type()),
        (DType::F64, context.f64_type()),
    ];
    let found = known.into_iter().find(|(of, _)| *of == dtype);
    found.map(|(_, ty)| ty)
}

fn element_type(context: &Context, dtype: DType) -> BasicTypeEnum<'_> {
    match float_type(context, dtype) {
        Some(float) => float.into(),
        None => int_type(context, dtype.bits()).into(),
    }
}

/// The type of one element in memory and among the arguments: a `bool` is a byte.
pub(super) fn memory_type(context: &Context, dtype: DType) -> BasicTypeEnum<'_> {
    if dtype == DType::Bool {
        return context.i8_type().into();
    }
    element_type(context, dtype)
}

fn argument_type<'c>(argument: &BasicMetadataValueEnum<'c>) -> Result<BasicMetadataTypeEnum<'c>> {
    if let BasicMetadataValueEnum::IntValue(value) = argument {
        return Ok(value.get_type().into());
    }
    if let BasicMetadataValueEnum::FloatValue(value) = argument {
        return Ok(value.get_type().into());
    }
    if let BasicMetadataValueEnum::PointerValue(value) = argument {
        return Ok(value.get_type().into());
    }
    Err(Error::Llvm(
        "inline PTX takes numbers and pointers".to_string(),
    ))
}

/// Whether LLVM 22 compares what was rounded to `bf16` wrongly with a constant: it takes half of the sum of that and the number next
/// to it for the place where rounding changes, and from 2^127 on such a sum is infinite. Of all finite constants of `bf16` and `f16`,
/// and all predicates, it is wrong with these alone.
fn is_misjudged(literal: Literal) -> bool {
    let large = 0x7f00..=0x7f7f;
    let bits = literal.bits;
    let narrow = literal.dtype == DType::BF16 && large.contains(&(bits & 0x7fff));
    let wide = literal.dtype == DType::F32 && bits & 0xffff == 0;
    narrow || wide && large.contains(&(bits >> 16 & 0x7fff))
}
