//! Addresses as a sum that several share, and a distance from it.
//!
//! LLVM finds out which addresses differ by constants for each pair of them, and asks of each whether it could be
//! poison: that was half of what its code generator took. So what is added to all offsets of an access is added once here.

use std::collections::BTreeMap;

use inkwell::types::BasicTypeEnum;
use inkwell::values::{AsValueRef, InstructionOpcode, IntValue, Operand, PointerValue};

use super::Emitter;
use crate::error::Result;
use crate::memory::element_address;

/// An index as a sum without constants, nothing where that is 0, and a constant.
type Parts<'c> = (Option<IntValue<'c>>, i64);

/// What is known of the addresses of one access.
#[derive(Default)]
pub(super) struct Addresses<'c> {
    /// The parts of indices.
    parts: BTreeMap<usize, Parts<'c>>,
    /// What was emitted for an operation on two numbers.
    emitted: BTreeMap<(Operation, usize, usize), IntValue<'c>>,
    /// The addresses that are shared.
    shared: BTreeMap<usize, PointerValue<'c>>,
}

/// An operation that a constant can be taken out of, as numbers of 64 bits wrap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Add,
    Sub,
    Mul,
}

impl Operation {
    fn of(opcode: InstructionOpcode) -> Option<Self> {
        let known = [
            (InstructionOpcode::Add, Self::Add),
            (InstructionOpcode::Sub, Self::Sub),
            (InstructionOpcode::Mul, Self::Mul),
        ];
        known.into_iter().find(|it| it.0 == opcode).map(|it| it.1)
    }

    fn on(self, lhs: i64, rhs: i64) -> i64 {
        match self {
            Self::Add => lhs.wrapping_add(rhs),
            Self::Sub => lhs.wrapping_sub(rhs),
            Self::Mul => lhs.wrapping_mul(rhs),
        }
    }
}

/// How many operations of an index are looked through.
const DEPTH: usize = 16;

fn key(value: IntValue<'_>) -> usize {
    value.as_value_ref() as usize
}

impl<'c> Emitter<'_, 'c> {
    /// The address that the element at `index` from `pointer` on shares with others, and how many elements it is behind that.
    pub(super) fn common_address(
        &self,
        known: &mut Addresses<'c>,
        element: BasicTypeEnum<'c>,
        (pointer, index): (PointerValue<'c>, IntValue<'c>),
    ) -> Result<(PointerValue<'c>, i64)> {
        let (sum, distance) = self.parts(known, index, DEPTH)?;
        let Some(sum) = sum else {
            return Ok((pointer, distance));
        };
        if let Some(&address) = known.shared.get(&key(sum)) {
            return Ok((address, distance));
        }
        let address = element_address(&self.builder, element, pointer, sum)?;
        known.shared.insert(key(sum), address);
        Ok((address, distance))
    }

    /// The address of the element that is `distance` elements behind an address.
    pub(super) fn address_behind(
        &self,
        element: BasicTypeEnum<'c>,
        (address, distance): (PointerValue<'c>, i64),
    ) -> Result<PointerValue<'c>> {
        if distance == 0 {
            return Ok(address);
        }
        let distance = self.int(64, distance);
        Ok(element_address(&self.builder, element, address, distance)?)
    }

    fn parts(
        &self,
        known: &mut Addresses<'c>,
        index: IntValue<'c>,
        depth: usize,
    ) -> Result<Parts<'c>> {
        if let Some(constant) = index.get_sign_extended_constant() {
            return Ok((None, constant));
        }
        if let Some(&parts) = known.parts.get(&key(index)) {
            return Ok(parts);
        }
        let parts = self.parts_of_operation(known, index, depth)?;
        let parts = parts.unwrap_or((Some(index), 0));
        known.parts.insert(key(index), parts);
        Ok(parts)
    }

    /// Nothing where no constant can be taken out.
    fn parts_of_operation(
        &self,
        known: &mut Addresses<'c>,
        index: IntValue<'c>,
        depth: usize,
    ) -> Result<Option<Parts<'c>>> {
        let inst = index.as_instruction().filter(|_| depth > 0);
        let operation = inst.and_then(|inst| Operation::of(inst.get_opcode()));
        let operand = |at| inst?.get_operand(at).and_then(Operand::value);
        let (Some(operation), Some(lhs), Some(rhs)) = (operation, operand(0), operand(1)) else {
            return Ok(None);
        };
        let (lhs, rhs) = (lhs.into_int_value(), rhs.into_int_value());
        let (one, first) = self.parts(known, lhs, depth - 1)?;
        let (other, second) = self.parts(known, rhs, depth - 1)?;
        let sum = match (operation, one, other) {
            (Operation::Add | Operation::Sub, sum, None) | (Operation::Add, None, sum) => sum,
            (Operation::Add | Operation::Sub, Some(one), Some(other)) => {
                Some(self.once(known, index, (operation, one, other))?)
            }
            (Operation::Mul, Some(one), None) => {
                let factor = self.int(64, second);
                Some(self.once(known, index, (operation, one, factor))?)
            }
            (Operation::Mul, None, Some(other)) => {
                let factor = self.int(64, first);
                Some(self.once(known, index, (operation, factor, other))?)
            }
            (Operation::Mul, None, None) => None,
            (Operation::Mul, Some(_), Some(_)) | (Operation::Sub, None, Some(_)) => {
                return Ok(None);
            }
        };
        Ok(Some((sum, operation.on(first, second))))
    }

    /// What an operation gives, which is `index` if that is the same.
    fn once(
        &self,
        known: &mut Addresses<'c>,
        index: IntValue<'c>,
        (operation, lhs, rhs): (Operation, IntValue<'c>, IntValue<'c>),
    ) -> Result<IntValue<'c>> {
        let inst = index.as_instruction();
        let is_operand = |at, value: IntValue<'c>| {
            let operand = inst
                .and_then(|inst| inst.get_operand(at))
                .and_then(Operand::value);
            operand.is_some_and(|operand| operand.into_int_value() == value)
        };
        if is_operand(0, lhs) && is_operand(1, rhs) {
            return Ok(index);
        }
        let place = (operation, key(lhs), key(rhs));
        if let Some(&value) = known.emitted.get(&place) {
            return Ok(value);
        }
        let value = match operation {
            Operation::Add => self.builder.build_int_add(lhs, rhs, "")?,
            Operation::Sub => self.builder.build_int_sub(lhs, rhs, "")?,
            Operation::Mul => self.builder.build_int_mul(lhs, rhs, "")?,
        };
        known.emitted.insert(place, value);
        Ok(value)
    }
}
