//! Where the lanes of a program meet: those of other programs in the thread block take no part.

use exactile_core::ir::{Func, Op};
use exactile_core::target::WARP_LANES;
use inkwell::values::{BasicMetadataValueEnum, IntValue};

use super::Emitter;
use crate::error::Result;

/// Whom a program meets.
enum Met<'c> {
    /// The lanes of its only warp.
    Warp,
    /// Its warps, which are all of the thread block, or those of a barrier of their own: its number, and how many
    /// threads it counts.
    Warps(&'static str, Vec<BasicMetadataValueEnum<'c>>),
}

/// Whether lanes of a warp may go apart at an atomic. The assembler branches over what a mask leaves out, and takes an aligned
/// barrier further on for a promise that the warp is whole again: lanes then reached barriers one by one, which count warps.
pub(super) fn lanes_part(func: &Func) -> bool {
    let insts = func.all_insts();
    let mut ops = insts.iter().map(|&inst| func.op(inst));
    ops.any(|op| matches!(op, Op::LaneFetch(_) | Op::LaneAtomic(_)))
}

impl<'c> Emitter<'_, 'c> {
    /// A thread block has 16 barriers, and at most as many programs of more than one warp.
    fn met(&self) -> Result<Met<'c>> {
        Ok(match (self.func.warps, self.programs) {
            (1, _) => Met::Warp,
            (_, 1) => Met::Warps("all", vec![self.int(32, 0).into()]),
            (warps, _) => {
                let threads = self.int(32, i64::from(warps * WARP_LANES));
                Met::Warps("count", vec![self.place()?.into(), threads.into()])
            }
        })
    }

    /// Emits `barrier`: for the program, with order of shared and global memory.
    pub(super) fn barrier(&mut self) -> Result<()> {
        let (name, arguments) = match self.met()? {
            Met::Warp => ("bar.warp.sync".to_string(), vec![self.int(32, -1).into()]),
            Met::Warps(kind, whom) => {
                let aligned = if self.lanes_part { "" } else { ".aligned" };
                (format!("barrier.cta.sync{aligned}.{kind}"), whom)
            }
        };
        self.intrinsic(&format!("llvm.nvvm.{name}"), &[], &arguments)?;
        Ok(())
    }

    /// A barrier, and whether a flag holds in any lane.
    pub(super) fn meet_any(&mut self, flag: IntValue<'c>) -> Result<IntValue<'c>> {
        let (name, mut arguments) = match self.met()? {
            Met::Warp => {
                self.barrier()?;
                ("vote.any.sync".to_string(), vec![self.int(32, -1).into()])
            }
            // Its unaligned form ended launches in which lanes came to it one by one; before this one a warp is brought together.
            Met::Warps(kind, whom) => (format!("barrier.cta.red.or.aligned.{kind}"), whom),
        };
        arguments.push(flag.into());
        let any = self.intrinsic_value(&format!("llvm.nvvm.{name}"), &[], &arguments)?;
        Ok(any.into_int_value())
    }
}
