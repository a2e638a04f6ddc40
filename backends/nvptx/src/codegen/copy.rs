//! Asynchronous copies from global to shared memory.

use exactile_core::ir::{DType, Value, op};
use inkwell::values::{IntValue, PointerValue};

use super::Emitter;
use super::address::Addresses;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    /// Emits `start_copy`. Copies of 16 bytes pass by the first-level cache; behind what is read the hardware fills with zeros.
    pub(super) fn start_copy(&self, op: &op::StartCopy) -> Result<()> {
        let op::StartCopy {
            target,
            offset,
            source,
            source_offset,
            read,
            count,
        } = *op;
        let dtype = self.func.ty(source).pointee().map(|(dtype, _)| dtype);
        let dtype = dtype.ok_or_else(|| Error::Llvm("a copy of no memory".to_string()))?;
        let bytes = count * i64::from(dtype.bytes());
        let cache = if bytes == 16 { "cg" } else { "ca" };
        let name = format!("llvm.nvvm.cp.async.{cache}.shared.global.{bytes}");
        let targets = self.indices(offset)?;
        let sources = self.indices(source_offset)?;
        let sizes = read.map(|read| self.get(read));
        let (mut targeted, mut sourced) = (Addresses::default(), Addresses::default());
        for (at, (&to, &from)) in targets.iter().zip(&sources).enumerate() {
            let target = self.element_at(&mut targeted, dtype, (target, to))?;
            let source = self.element_at(&mut sourced, dtype, (source, from))?;
            match sizes.as_ref().map(|sizes| sizes[at].into_int_value()) {
                None => {
                    self.intrinsic(&name, &[], &[target.into(), source.into()])?;
                }
                Some(elements) => {
                    let element = self.int(32, dtype.bytes().into());
                    let size = self.builder.build_int_mul(elements, element, "")?;
                    let arguments = [target.into(), source.into(), size.into()];
                    self.intrinsic(&format!("{name}.s"), &[], &arguments)?;
                }
            }
        }
        Ok(())
    }

    fn element_at(
        &self,
        known: &mut Addresses<'c>,
        dtype: DType,
        (base, index): (Value, IntValue<'c>),
    ) -> Result<PointerValue<'c>> {
        let pointer = self.values[base][0].into_pointer_value();
        let element = self.memory_type(dtype);
        let place = self.common_address(known, element, (pointer, index))?;
        self.address_behind(element, place)
    }

    /// Emits `group_copies`.
    pub(super) fn group_copies(&self) -> Result<()> {
        self.intrinsic("llvm.nvvm.cp.async.commit.group", &[], &[])?;
        Ok(())
    }

    /// Emits `wait_copies`.
    pub(super) fn wait_copies(&self, pending: i64) -> Result<()> {
        let pending = self.int(32, pending);
        self.intrinsic("llvm.nvvm.cp.async.wait.group", &[], &[pending.into()])?;
        Ok(())
    }
}
