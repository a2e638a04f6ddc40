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

/// Whether lanes of a warp may go apart at an atomic. The assembler branches over what a mask leaves out, and takes any aligned
/// barrier of the function for a promise that the warp is whole between there and here.
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

    /// The name of what several warps do at a barrier, where each is brought together first if its lanes may be apart: lanes that
    /// come to a barrier one by one each count as a warp.
    fn of_warps(&self, what: &str, kind: &str) -> Result<String> {
        if !self.lanes_part {
            return Ok(format!("barrier.cta.{what}.aligned.{kind}"));
        }
        self.bring_warp_together()?;
        Ok(format!("barrier.cta.{what}.{kind}"))
    }

    pub(super) fn bring_warp_together(&self) -> Result<()> {
        let all = self.int(32, -1).into();
        self.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[all])?;
        Ok(())
    }

    /// Emits `barrier`: for the program, with order of shared and global memory.
    pub(super) fn barrier(&mut self) -> Result<()> {
        match self.met()? {
            Met::Warp => self.bring_warp_together(),
            Met::Warps(kind, whom) => {
                let name = self.of_warps("sync", kind)?;
                self.intrinsic(&format!("llvm.nvvm.{name}"), &[], &whom)?;
                Ok(())
            }
        }
    }

    /// A barrier, and whether a flag holds in any lane.
    pub(super) fn meet_any(&mut self, flag: IntValue<'c>) -> Result<IntValue<'c>> {
        let (name, mut arguments) = match self.met()? {
            Met::Warp => {
                self.barrier()?;
                ("vote.any.sync".to_string(), vec![self.int(32, -1).into()])
            }
            Met::Warps(kind, whom) => (self.of_warps("red.or", kind)?, whom),
        };
        arguments.push(flag.into());
        let any = self.intrinsic_value(&format!("llvm.nvvm.{name}"), &[], &arguments)?;
        Ok(any.into_int_value())
    }
}
