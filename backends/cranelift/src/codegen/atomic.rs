//! Atomic accesses: programs run on several threads. Each orders all other accesses, whatever it asks for.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder};
use exactile_core::ir::{AtomicOp, Class, DType, MemoryOrder, op};

use super::Codegen;
use super::half_float::is_half;
use super::lanes::{Repr, lane_type};
use super::memory::flags;

impl Codegen<'_> {
    /// Combines a scalar into memory where the scalar mask is true.
    pub(super) fn combine(&mut self, op: &op::LaneAtomic) {
        let after = self.enter_masked(op.mask, &[]);
        let dtype = self.dtype(op.value);
        let address = self.address(op.base, op.offset, dtype);
        let value = self.single(op.value);
        self.update((op.op, op.order), (dtype, address), value);
        self.leave_masked(after, &[]);
    }

    /// Combines a scalar into memory where the scalar mask is true; what memory held.
    pub(super) fn fetch(&mut self, op: &op::LaneFetch) -> Repr {
        let dtype = self.dtype(op.value);
        let ty = lane_type(dtype);
        let none = self.bits(ty, 0);
        let after = self.enter_masked(op.mask, &[none]);
        let address = self.address(op.base, op.offset, dtype);
        let value = self.single(op.value);
        let old = match op.expected {
            Some(expected) => {
                let expected = self.single(expected);
                self.replace((dtype, address), expected, value)
            }
            None => self.update((op.op, op.order), (dtype, address), value),
        };
        Repr::Scalar(self.leave_masked(after, &[old])[0])
    }

    /// Combines a number into memory at an address; what it held.
    fn update(
        &mut self,
        (op, order): (AtomicOp, Option<MemoryOrder>),
        (dtype, address): (DType, clif::Value),
        value: clif::Value,
    ) -> clif::Value {
        let ty = lane_type(dtype);
        let bits = ty.as_int();
        let Some(machine_op) = machine_op(op, dtype) else {
            let held = self.builder.ins().atomic_load(bits, flags(), address);
            return self.reinterpret(ty, held);
        };
        if !dtype.is_float() {
            let ins = self.builder.ins();
            return ins.atomic_rmw(ty, flags(), machine_op, address, value);
        }
        if op == AtomicOp::Exchange {
            let value = self.reinterpret(bits, value);
            let ins = self.builder.ins();
            let old = ins.atomic_rmw(bits, flags(), AtomicRmwOp::Xchg, address, value);
            return self.reinterpret(ty, old);
        }
        self.attempts((op, order), (dtype, address), value)
    }

    /// Tries what the op makes of what memory holds until nothing came between; what it held. An extreme that changes
    /// nothing writes nothing, unless it orders other accesses.
    fn attempts(
        &mut self,
        (op, order): (AtomicOp, Option<MemoryOrder>),
        (dtype, address): (DType, clif::Value),
        value: clif::Value,
    ) -> clif::Value {
        let ty = lane_type(dtype);
        let bits = ty.as_int();
        let value = match is_half(dtype) {
            true => self.widen_scalar(dtype, value),
            false => value,
        };
        let (attempt, done) = (self.builder.create_block(), self.builder.create_block());
        let old = self.builder.append_block_param(attempt, bits);
        let first = self.builder.ins().load(bits, flags(), address, 0);
        self.builder.ins().jump(attempt, &[first.into()]);
        self.builder.switch_to_block(attempt);
        let known = self.reinterpret(ty, old);
        let new = self.combined(op, dtype, known, value);
        let new = self.reinterpret(bits, new);
        if op != AtomicOp::Add && order.is_none() {
            let write = self.builder.create_block();
            let stays = self.builder.ins().icmp(IntCC::Equal, new, old);
            self.builder.ins().brif(stays, done, &[], write, &[]);
            self.builder.switch_to_block(write);
        }
        let found = self.builder.ins().atomic_cas(flags(), address, old, new);
        let same = self.builder.ins().icmp(IntCC::Equal, found, old);
        let again = [found.into()];
        self.builder.ins().brif(same, done, &[], attempt, &again);
        self.builder.switch_to_block(done);
        known
    }

    /// What an op on floats makes of what memory holds; `value` is as wide as sums are computed.
    fn combined(
        &mut self,
        op: AtomicOp,
        dtype: DType,
        known: clif::Value,
        value: clif::Value,
    ) -> clif::Value {
        if op == AtomicOp::Add {
            if !is_half(dtype) {
                return self.builder.ins().fadd(known, value);
            }
            let known = self.widen_scalar(dtype, known);
            let sum = self.builder.ins().fadd(known, value);
            return self.narrow_scalar(dtype, sum);
        }
        let both = match op == AtomicOp::Min {
            true => self.builder.ins().fmin(known, value),
            false => self.builder.ins().fmax(known, value),
        };
        let [known_is_nan, value_is_nan] = [known, value].map(|it| self.is_nan(dtype, it));
        let number = self.builder.ins().select(known_is_nan, value, both);
        self.builder.ins().select(value_is_nan, known, number)
    }

    fn is_nan(&mut self, dtype: DType, x: clif::Value) -> clif::Value {
        let x = match is_half(dtype) {
            true => self.widen_scalar(dtype, x),
            false => x,
        };
        self.builder.ins().fcmp(FloatCC::Unordered, x, x)
    }

    /// Puts a number where memory holds `expected`, of which a NaN is any NaN; what it held.
    fn replace(
        &mut self,
        (dtype, address): (DType, clif::Value),
        expected: clif::Value,
        value: clif::Value,
    ) -> clif::Value {
        let ty = lane_type(dtype);
        if !dtype.is_float() {
            let ins = self.builder.ins();
            return ins.atomic_cas(flags(), address, expected, value);
        }
        let bits = ty.as_int();
        let first = self.reinterpret(bits, expected);
        let value = self.reinterpret(bits, value);
        let (attempt, done) = (self.builder.create_block(), self.builder.create_block());
        let wanted = self.builder.append_block_param(attempt, bits);
        self.builder.ins().jump(attempt, &[first.into()]);
        self.builder.switch_to_block(attempt);
        let ins = self.builder.ins();
        let found = ins.atomic_cas(flags(), address, wanted, value);
        let same = self.builder.ins().icmp(IntCC::Equal, found, wanted);
        let old = self.reinterpret(ty, found);
        // Only another NaN is tried for.
        let [wanted_nan, found_nan] = [expected, old].map(|it| self.is_nan(dtype, it));
        let differs = self.builder.ins().bxor_imm_u(same, 1);
        let both = self.builder.ins().band(wanted_nan, found_nan);
        let again = self.builder.ins().band(both, differs);
        let next = [found.into()];
        self.builder.ins().brif(again, attempt, &next, done, &[]);
        self.builder.switch_to_block(done);
        old
    }
}

/// The instruction that changes memory so; `None` for a load.
fn machine_op(op: AtomicOp, dtype: DType) -> Option<AtomicRmwOp> {
    let signed = dtype.class() == Class::Signed;
    Some(match op {
        AtomicOp::Add => AtomicRmwOp::Add,
        AtomicOp::Min if signed => AtomicRmwOp::Smin,
        AtomicOp::Min => AtomicRmwOp::Umin,
        AtomicOp::Max if signed => AtomicRmwOp::Smax,
        AtomicOp::Max => AtomicRmwOp::Umax,
        AtomicOp::And => AtomicRmwOp::And,
        AtomicOp::Or => AtomicRmwOp::Or,
        AtomicOp::Xor => AtomicRmwOp::Xor,
        AtomicOp::Exchange => AtomicRmwOp::Xchg,
        AtomicOp::Load => return None,
    })
}
