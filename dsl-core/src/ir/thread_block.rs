//! What a lane function asks of its thread block.

use super::{Func, Inst, Op, Space, op};

impl Func {
    /// Bytes of shared memory that the buffers of one program span.
    pub fn shared_bytes(&self) -> i64 {
        let end = |inst: Inst| {
            let Op::Alloc(op::Alloc { offset, count }) = self.op(inst) else {
                return 0;
            };
            let pointee = self.ty(self.inst(inst).results[0]).pointee();
            let shared = pointee.filter(|&(_, space)| space == Space::Shared);
            let bytes = shared.map_or(0, |(dtype, _)| i64::from(dtype.bytes()));
            offset.saturating_add(count.saturating_mul(bytes))
        };
        self.all_insts().into_iter().map(end).max().unwrap_or(0)
    }

    /// Whether programs have their thread blocks to themselves: barriers by number and roles are those of a block,
    /// and so are the warps that multiply as a group.
    pub fn takes_thread_block(&self) -> bool {
        let mut insts = self.all_insts().into_iter();
        insts.any(|inst| {
            let op = self.op(inst);
            op.transfer().is_some() || matches!(op, Op::GroupMma(_))
        })
    }
}
