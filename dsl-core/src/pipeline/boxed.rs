//! Boxes of arrays that bulk copies bring or take, and what lanes do in place of others.

use std::borrow::Cow;

use crate::diagnostic::Diagnostics;
use crate::facts::{Boxed, Facts};
use crate::ir::{Func, Inst, Op};
use crate::passes::boxes::{self, Share};
use crate::passes::tidy;
use crate::schedule::assign::warps_of;
use crate::target::{Bounds, Options, Target};
use crate::verify::{self, BlockFunc};

/// A function that is prepared for a GPU with those boxes alone that launches show to be such as are copied, and that go to shared
/// memory or come from there; the rest are loads and stores of lanes.
///
/// # Errors
/// None for a valid function.
pub fn with_copied_boxes<'a>(
    block: &'a BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<Cow<'a, BlockFunc>, Diagnostics> {
    let share = share(block, target, options);
    let checked = options.bounds == Bounds::Checked;
    let may_end = |op: &Op| {
        let ends = match facts.inside {
            true => block.may_end_at(op),
            false => op.is_checked(),
        };
        checked && ends
    };
    let shown = |op: &Op| {
        let stores = matches!(op, Op::StoreBox(_));
        facts.boxes >= if stores { Boxed::All } else { Boxed::Loads }
    };
    let keep = |func: &Func, inst: Inst| {
        shown(func.op(inst)) && boxes::is_copied(func, inst, share, &may_end)
    };
    without_boxes(Cow::Borrowed(block), &keep)
}

pub(super) fn share(func: &Func, target: &Target, options: &Options) -> Share {
    Share {
        warps: warps_of(func, target, &options.schedule),
        shared_bytes: target.gpu.shared_bytes,
    }
}

/// The function with loads and stores in place of boxes that `keep` does not tell.
pub(super) fn without_boxes<'a>(
    block: Cow<'a, BlockFunc>,
    keep: &dyn Fn(&Func, Inst) -> bool,
) -> Result<Cow<'a, BlockFunc>, Diagnostics> {
    if boxes::boxes_of(&block) == Boxed::Nothing {
        return Ok(block);
    }
    let mut func = block.into_owned().into_inner();
    boxes::expand_boxes(&mut func, keep);
    tidy(&mut func);
    verify::block(func).map(Cow::Owned)
}
