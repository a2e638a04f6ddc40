//! Atomic accesses: those without a result are reductions into memory, which nobody waits for.
//!
//! They are inline PTX: of an atomic sum of floats LLVM makes a loop, and of a masked atomic a
//! branch. Order is relaxed unless an access says otherwise. What no instruction is are loops of
//! [`super::attempts`].

use exactile_core::ir::{AtomicOp, Class, DType, MemoryOrder, Scope, Space, op};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, PointerValue};

use super::Emitter;
use super::attempts::{Attempts, Operands};
use super::value::Elements;
use crate::error::{Error, Result};
use crate::memory::element_address;

impl<'c> Emitter<'_, 'c> {
    /// Emits `lane_atomic`.
    pub(super) fn lane_atomic(&self, op: &op::LaneAtomic) -> Result<()> {
        let op::LaneAtomic {
            base,
            offset,
            value,
            mask,
            op: kind,
            order,
            scope,
        } = op;
        let place = match self.func.ty(*base).pointee() {
            Some((_, Space::Global)) => format!("{}.global", scope_name(*scope)),
            Some((_, Space::Shared)) => "cta.shared".to_string(),
            Some((_, Space::Scratch)) | None => {
                return Err(Error::Unsupported("access of scratch memory".to_string()));
            }
        };
        let dtype = self.func.ty(*value).dtype();
        let dtype = dtype.ok_or_else(|| Error::Llvm("an atomic of no number".to_string()))?;
        let name =
            name(*kind).ok_or_else(|| Error::Unsupported("a load without a result".to_string()))?;
        let capability = self.target.gpu.capability;
        let attempts = Attempts::of((*kind, false), dtype, capability, *order, &place);
        let suffix = suffix(*kind, dtype);
        let order = order_name(*order);
        let text = |masked: bool| match &attempts {
            Some(attempts) => attempts.text(&Operands {
                result: None,
                address: "$0",
                value: "$1",
                expected: None,
                mask: masked.then_some("$2"),
            }),
            None => {
                let guard = if masked { "@$2 " } else { "" };
                format!("{guard}red.{order}.{place}.{name}.{suffix} [$0], $1;")
            }
        };
        let pointer = self.values[*base][0].into_pointer_value();
        let element = self.memory_type(dtype);
        let numbers = self.get(*value);
        let masks = mask.map(|mask| self.get(mask));
        for (at, index) in self.indices(*offset)?.into_iter().enumerate() {
            let address = element_address(&self.builder, element, pointer, index)?;
            let mask = masks.as_ref().map(|masks| masks[at].into_int_value());
            self.reduction(&text, (address, numbers[at]), (dtype, mask))?;
        }
        Ok(())
    }

    /// What memory held where `lane_fetch` combined it.
    pub(super) fn lane_fetch(&self, op: &op::LaneFetch) -> Result<Elements<'c>> {
        let dtype = self.dtype(op.value)?;
        let pointer = self.values[op.base][0].into_pointer_value();
        let element = self.memory_type(dtype);
        let (order, scope) = (order_name(op.order), scope_name(op.scope));
        let (kind, capability) = ((op.op, op.expected.is_some()), self.target.gpu.capability);
        let place = format!("{scope}.global");
        let attempts = Attempts::of(kind, dtype, capability, op.order, &place);
        let (name, suffix) = match op.expected {
            Some(_) => (Some("cas"), format!("b{}", dtype.bits())),
            None => (name(op.op), suffix(op.op, dtype)),
        };
        let instruction = match name {
            Some(name) => format!("atom.{order}.{place}.{name}.{suffix}"),
            None => format!("ld.{order}.{place}.{suffix}"),
        };
        let value = name.map(|_| op.value);
        let numbers = op.expected.into_iter().chain(value);
        let numbers: Vec<Elements<'c>> = numbers.map(|value| self.get(value)).collect();
        let masks = op.mask.map(|mask| self.get(mask));
        let mut fetched = Vec::new();
        for (at, index) in self.indices(op.offset)?.into_iter().enumerate() {
            let address = element_address(&self.builder, element, pointer, index)?;
            let mask = masks.as_ref().map(|masks| masks[at].into_int_value());
            let numbers: Vec<_> = numbers.iter().map(|numbers| numbers[at]).collect();
            let text = |masked: bool| fetch_text(&instruction, attempts.as_ref(), &numbers, masked);
            fetched.push(self.fetched(&text, (address, &numbers), (dtype, mask))?);
        }
        Ok(fetched)
    }

    /// What one instruction finds, zero bits without its mask.
    fn fetched(
        &self,
        text: &dyn Fn(bool) -> String,
        (address, numbers): (PointerValue<'c>, &[BasicValueEnum<'c>]),
        (dtype, mask): (DType, Option<IntValue<'c>>),
    ) -> Result<BasicValueEnum<'c>> {
        let ty = self.element_type(dtype);
        let letter = register_letter(dtype);
        let wide = self.context.i64_type();
        let address = self.builder.build_ptr_to_int(address, wide, "")?;
        let mut arguments = vec![BasicMetadataValueEnum::from(address)];
        arguments.extend(numbers.iter().map(|&it| BasicMetadataValueEnum::from(it)));
        let mut constraints = format!("={letter},l{}", format!(",{letter}").repeat(numbers.len()));
        if let Some(mask) = mask {
            constraints.push_str(",b,0");
            arguments.push(mask.into());
            arguments.push(ty.const_zero().into());
        }
        constraints.push_str(",~{memory}");
        let text = text(mask.is_some());
        let call = self.inline_ptx(Some(ty), text, constraints, &arguments, true)?;
        let fetched = call.try_as_basic_value().basic();
        fetched.ok_or_else(|| Error::Llvm("an atomic has no result".to_string()))
    }

    /// One reduction into memory, by the PTX `text`.
    fn reduction(
        &self,
        text: &dyn Fn(bool) -> String,
        (address, number): (PointerValue<'c>, BasicValueEnum<'c>),
        (dtype, mask): (DType, Option<IntValue<'c>>),
    ) -> Result<()> {
        let wide = self.context.i64_type();
        let address = self.builder.build_ptr_to_int(address, wide, "")?;
        let mut arguments = vec![
            BasicMetadataValueEnum::from(address),
            BasicMetadataValueEnum::from(number),
        ];
        let mut constraints = format!("l,{}", register_letter(dtype));
        let mut masked = false;
        match mask.map(|mask| (mask, mask.get_zero_extended_constant())) {
            None | Some((_, Some(1))) => {}
            Some((_, Some(_))) => return Ok(()),
            Some((mask, None)) => {
                masked = true;
                constraints.push_str(",b");
                arguments.push(mask.into());
            }
        }
        constraints.push_str(",~{memory}");
        self.inline_ptx(None, text(masked), constraints, &arguments, true)?;
        Ok(())
    }
}

/// The text of an atomic with a result, `$0`: at the address `$1`, of these numbers, and with a mask behind them.
fn fetch_text(
    instruction: &str,
    attempts: Option<&Attempts>,
    numbers: &[BasicValueEnum<'_>],
    masked: bool,
) -> String {
    let names: Vec<String> = (2..=2 + numbers.len()).map(|it| format!("${it}")).collect();
    let (mask, numbers) = names
        .split_last()
        .expect("broken invariant: a name for the mask");
    let mask = masked.then_some(mask.as_str());
    let Some((attempts, (value, expected))) = attempts.zip(numbers.split_last()) else {
        let operands: String = numbers.iter().map(|it| format!(", {it}")).collect();
        let access = format!("{instruction} $0, [$1]{operands};");
        return mask.map_or(access.clone(), |mask| format!("@{mask} {access}"));
    };
    attempts.text(&Operands {
        result: Some("$0"),
        address: "$1",
        value,
        expected: expected.first().map(String::as_str),
        mask,
    })
}

fn register_letter(dtype: DType) -> &'static str {
    match (dtype, dtype.bits()) {
        (DType::F32, _) => "f",
        (DType::F64, _) => "d",
        (_, 64) => "l",
        (_, 16) => "h",
        _ => "r",
    }
}

pub(super) fn order_name(order: Option<MemoryOrder>) -> &'static str {
    match order {
        None => "relaxed",
        Some(MemoryOrder::Acquire) => "acquire",
        Some(MemoryOrder::Release) => "release",
        Some(MemoryOrder::AcquireRelease) => "acq_rel",
    }
}

fn scope_name(scope: Option<Scope>) -> &'static str {
    match scope {
        None => "gpu",
        Some(Scope::Program) => "cta",
        Some(Scope::System) => "sys",
    }
}

/// The operation in the name of an instruction; `None` for a load.
fn name(op: AtomicOp) -> Option<&'static str> {
    Some(match op {
        AtomicOp::Add => "add",
        AtomicOp::Min => "min",
        AtomicOp::Max => "max",
        AtomicOp::And => "and",
        AtomicOp::Or => "or",
        AtomicOp::Xor => "xor",
        AtomicOp::Exchange => "exch",
        AtomicOp::Load => return None,
    })
}

/// The PTX type: a sum of integers is the same for both signs, and is stated for unsigned ones.
fn suffix(op: AtomicOp, dtype: DType) -> String {
    let letter = match (op, dtype.class()) {
        (AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange | AtomicOp::Load, _) => {
            'b'
        }
        _ if dtype.is_narrow_float() => return format!("noftz.{dtype}"),
        (AtomicOp::Min | AtomicOp::Max, Class::Signed) => 's',
        (_, Class::Float) => 'f',
        (AtomicOp::Add | AtomicOp::Min | AtomicOp::Max, _) => 'u',
    };
    format!("{letter}{}", dtype.bits())
}
