//! Proof that a function is well formed: the only maker of [`BlockFunc`], [`ScheduleFunc`] and [`LaneFunc`].

mod bulk;
mod pending;
mod placement;
mod structure;
#[cfg(test)]
mod tests;

use std::ops::Deref;

use crate::diagnostic::Diagnostics;
use crate::ir::op::{BlockOp, LaneOp, ScheduleOp};
use crate::ir::{Func, Inst, Stage};
pub(crate) use placement::left_by_branches;
pub use placement::placement;
pub use structure::MAX_PARAMETERS;

macro_rules! proven {
    ($(#[doc = $doc:literal])* $Name:ident, $check:ident, $stage:ident, $StageOp:ident, $stage_op:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub struct $Name(Func);

        impl $Name {
            /// The function, to change; it must be verified again.
            pub fn into_inner(self) -> Func {
                self.0
            }

            /// The op of an instruction that the body reaches.
            pub fn $stage_op(&self, inst: Inst) -> $StageOp<'_> {
                self.0.op(inst).$check().expect("broken invariant: a verified op is one of its stage")
            }
        }

        impl Deref for $Name {
            type Target = Func;
            fn deref(&self) -> &Func {
                &self.0
            }
        }

        /// Verifies a function of this stage; all errors come at once.
        pub fn $check(func: Func) -> Result<$Name, Diagnostics> {
            structure::check(&func, Stage::$stage).into_result(()).map(|()| $Name(func))
        }
    };
}

proven!(
    /// A function proven valid at stage block.
    BlockFunc, block, Block, BlockOp, block_op
);
proven!(
    /// A function proven valid at stage schedule. A tile without a layout is made in those that its uses
    /// ask for.
    ScheduleFunc, schedule, Schedule, ScheduleOp, schedule_op
);
proven!(
    /// A function proven valid at stage lane: what a backend takes.
    LaneFunc, lane, Lane, LaneOp, lane_op
);
