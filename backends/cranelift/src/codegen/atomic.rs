//! Atomic accesses: programs run on several threads. Each orders all other accesses, whatever it asks for.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData};
use exactile_core::ir::{AtomicOp, Class, DType, op};

use super::Codegen;
use super::lanes::{Repr, lane_type};
use super::memory::flags;

impl Codegen<'_> {
    /// Combines a scalar into memory where the scalar mask is true.
    pub(super) fn combine(&mut self, op: &op::LaneAtomic) {
        let after = self.enter_masked(op.mask);
        let dtype = self.dtype(op.value);
        let address = self.address(op.base, op.offset, dtype);
        let value = self.single(op.value);
        self.update(op.op, (dtype, address), value);
        self.leave_masked(after);
    }

    /// Combines a scalar into memory where the scalar mask is true; what memory held.
    pub(super) fn fetch(&mut self, op: &op::LaneFetch) -> Repr {
        let dtype = self.dtype(op.value);
        let ty = lane_type(dtype);
        let none = op.mask.map(|_| self.bits(ty, 0));
        let mask = op.mask.map(|mask| self.single(mask));
        let after = mask.zip(none).map(|(mask, none)| {
            let (inside, after) = (self.builder.create_block(), self.builder.create_block());
            self.builder.append_block_param(after, ty);
            let skipped = [none.into()];
            self.builder.ins().brif(mask, inside, &[], after, &skipped);
            self.builder.switch_to_block(inside);
            after
        });
        let address = self.address(op.base, op.offset, dtype);
        let value = self.single(op.value);
        let old = match op.expected {
            Some(expected) => {
                let expected = self.single(expected);
                let ins = self.builder.ins();
                ins.atomic_cas(flags(), address, expected, value)
            }
            None => self.update(op.op, (dtype, address), value),
        };
        let Some(after) = after else {
            return Repr::Scalar(old);
        };
        self.builder.ins().jump(after, &[old.into()]);
        self.builder.switch_to_block(after);
        Repr::Scalar(self.builder.block_params(after)[0])
    }

    /// Combines a number into memory at an address; what it held.
    fn update(
        &mut self,
        op: AtomicOp,
        (dtype, address): (DType, clif::Value),
        value: clif::Value,
    ) -> clif::Value {
        let (ty, plain) = (lane_type(dtype), MemFlagsData::new());
        let bits = if dtype.bits() == 32 { I32 } else { I64 };
        let Some(machine_op) = machine_op(op, dtype) else {
            let held = self.builder.ins().atomic_load(bits, flags(), address);
            return match dtype.is_float() {
                true => self.builder.ins().bitcast(ty, plain, held),
                false => held,
            };
        };
        if !dtype.is_float() {
            let ins = self.builder.ins();
            return ins.atomic_rmw(ty, flags(), machine_op, address, value);
        }
        if op == AtomicOp::Exchange {
            let value = self.builder.ins().bitcast(bits, plain, value);
            let ins = self.builder.ins();
            let old = ins.atomic_rmw(bits, flags(), AtomicRmwOp::Xchg, address, value);
            return self.builder.ins().bitcast(ty, plain, old);
        }
        self.add_float(dtype, address, value)
    }

    /// Tries the sum with what memory holds until nothing came between; what it held.
    fn add_float(&mut self, dtype: DType, address: clif::Value, value: clif::Value) -> clif::Value {
        let float = lane_type(dtype);
        let bits = if float == F32 { I32 } else { I64 };
        let (attempt, done) = (self.builder.create_block(), self.builder.create_block());
        let old = self.builder.append_block_param(attempt, bits);
        let first = self.builder.ins().load(bits, flags(), address, 0);
        self.builder.ins().jump(attempt, &[first.into()]);
        self.builder.switch_to_block(attempt);
        let plain = MemFlagsData::new();
        let known = self.builder.ins().bitcast(float, plain, old);
        let sum = self.builder.ins().fadd(known, value);
        let new = self.builder.ins().bitcast(bits, plain, sum);
        let found = self.builder.ins().atomic_cas(flags(), address, old, new);
        let same = self.builder.ins().icmp(IntCC::Equal, found, old);
        let again = [found.into()];
        self.builder.ins().brif(same, done, &[], attempt, &again);
        self.builder.switch_to_block(done);
        known
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
