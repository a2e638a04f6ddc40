//! Elementwise ops on one scalar.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use exactile_core::ir::{BinaryOp, CompareOp, DType, RawOp, TernaryOp, UnaryOp};

use super::Codegen;
use crate::runtime::ScalarCall;

/// The integer condition of a comparison.
pub(super) const fn integer_condition(op: CompareOp, signed: bool) -> IntCC {
    match (op, signed) {
        (CompareOp::Eq, _) => IntCC::Equal,
        (CompareOp::Ne, _) => IntCC::NotEqual,
        (CompareOp::Lt, true) => IntCC::SignedLessThan,
        (CompareOp::Le, true) => IntCC::SignedLessThanOrEqual,
        (CompareOp::Gt, true) => IntCC::SignedGreaterThan,
        (CompareOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
        (CompareOp::Lt, false) => IntCC::UnsignedLessThan,
        (CompareOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
        (CompareOp::Gt, false) => IntCC::UnsignedGreaterThan,
        (CompareOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
    }
}

/// The float condition of a comparison: false on NaN, except `ne`.
pub(super) const fn float_condition(op: CompareOp) -> FloatCC {
    match op {
        CompareOp::Eq => FloatCC::Equal,
        CompareOp::Ne => FloatCC::NotEqual,
        CompareOp::Lt => FloatCC::LessThan,
        CompareOp::Le => FloatCC::LessThanOrEqual,
        CompareOp::Gt => FloatCC::GreaterThan,
        CompareOp::Ge => FloatCC::GreaterThanOrEqual,
    }
}

impl Codegen<'_> {
    /// Calls the definition of a scalar op.
    pub(super) fn call_scalar(
        &mut self,
        call: ScalarCall,
        operands: &[(DType, clif::Value)],
        result: DType,
    ) -> clif::Value {
        let mut arguments = vec![self.bits(clif::types::I64, call.code() as u64)];
        for &(dtype, operand) in operands {
            arguments.push(self.bits_of_scalar(dtype, operand));
        }
        while arguments.len() < 4 {
            arguments.push(self.bits(clif::types::I64, 0));
        }
        let inst = self.builder.ins().call(self.helpers.scalar, &arguments);
        let slot = self.builder.inst_results(inst)[0];
        self.scalar_from_bits(result, slot)
    }

    pub(super) fn unary_scalar(
        &mut self,
        op: UnaryOp,
        dtype: DType,
        x: clif::Value,
    ) -> clif::Value {
        if dtype == DType::Bool {
            return self.builder.ins().bxor_imm_u(x, 1);
        }
        if let Some(value) = self.unary_piece(op, dtype, x) {
            return value;
        }
        self.call_scalar(ScalarCall::Unary(op, dtype), &[(dtype, x)], dtype)
    }

    pub(super) fn binary_scalar(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: clif::Value,
        y: clif::Value,
    ) -> clif::Value {
        if let Some(value) = self.binary_piece(op, dtype, x, y) {
            return value;
        }
        let operands = [(dtype, x), (dtype, y)];
        self.call_scalar(ScalarCall::Binary(op, dtype), &operands, dtype)
    }

    /// The machine's own instruction.
    pub(super) fn raw_scalar(
        &mut self,
        op: RawOp,
        dtype: DType,
        x: clif::Value,
        y: clif::Value,
    ) -> clif::Value {
        let ins = self.builder.ins();
        match (op, dtype.is_signed()) {
            (RawOp::Div, true) => ins.sdiv(x, y),
            (RawOp::Div, false) => ins.udiv(x, y),
            (RawOp::Rem, true) => ins.srem(x, y),
            (RawOp::Rem, false) => ins.urem(x, y),
            (RawOp::Shl, _) => ins.ishl(x, y),
            (RawOp::Shr, true) => ins.sshr(x, y),
            (RawOp::Shr, false) => ins.ushr(x, y),
        }
    }

    pub(super) fn ternary_scalar(
        &mut self,
        op: TernaryOp,
        dtype: DType,
        operands: [clif::Value; 3],
    ) -> clif::Value {
        let [a, b, c] = operands;
        match op {
            TernaryOp::Fma if self.has_fma => self.builder.ins().fma(a, b, c),
            TernaryOp::Fma => {
                let operands = [(dtype, a), (dtype, b), (dtype, c)];
                self.call_scalar(ScalarCall::Ternary(op, dtype), &operands, dtype)
            }
        }
    }

    pub(super) fn compare_scalar(
        &mut self,
        op: CompareOp,
        dtype: DType,
        x: clif::Value,
        y: clif::Value,
    ) -> clif::Value {
        if dtype.is_float() {
            return self.compare_floats(op, x, y);
        }
        self.builder
            .ins()
            .icmp(integer_condition(op, dtype.is_signed()), x, y)
    }
}
