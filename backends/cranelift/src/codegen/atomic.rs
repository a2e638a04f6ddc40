//! Atomic accesses: programs run on several threads.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData};
use exactile_core::ir::{AtomicOp, Class, DType, op};

use super::Codegen;
use super::lanes::lane_type;
use super::memory::flags;

impl Codegen<'_> {
    /// Combines a scalar into memory where the scalar mask is true.
    pub(super) fn combine(&mut self, op: &op::LaneAtomic) {
        let after = self.enter_masked(op.mask);
        let dtype = self.dtype(op.value);
        let address = self.address(op.base, op.offset, dtype);
        let value = self.single(op.value);
        if dtype.is_float() {
            self.add_float(dtype, address, value);
        } else {
            let (ty, op) = (lane_type(dtype), machine_op(op.op, dtype));
            self.builder
                .ins()
                .atomic_rmw(ty, flags(), op, address, value);
        }
        self.leave_masked(after);
    }

    /// Tries the sum with what memory holds until nothing came between.
    fn add_float(&mut self, dtype: DType, address: clif::Value, value: clif::Value) {
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
    }
}

fn machine_op(op: AtomicOp, dtype: DType) -> AtomicRmwOp {
    let signed = dtype.class() == Class::Signed;
    match op {
        AtomicOp::Add => AtomicRmwOp::Add,
        AtomicOp::Min if signed => AtomicRmwOp::Smin,
        AtomicOp::Min => AtomicRmwOp::Umin,
        AtomicOp::Max if signed => AtomicRmwOp::Smax,
        AtomicOp::Max => AtomicRmwOp::Umax,
        AtomicOp::And => AtomicRmwOp::And,
        AtomicOp::Or => AtomicRmwOp::Or,
        AtomicOp::Xor => AtomicRmwOp::Xor,
    }
}
