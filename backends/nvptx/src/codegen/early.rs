//! Kernels whose thread blocks begin before the end of the launch before theirs: they wait for it before all else.
//!
//! The wait stands first, and every thread reaches it, so the end of a launch that begins early comes after the end of the one
//! before it, and of all before that. Only then a kernel lets the next launch begin, which waits for all of this: a kernel of
//! others that reads before its wait what this one does not write finds it whole.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Module;

use super::Emitter;
use crate::error::{Error, Result};

/// PTX ISA, "griddepcontrol".
const WAIT: &str = "griddepcontrol.wait;";
const LET_BEGIN: &str = "griddepcontrol.launch_dependents;";

impl Emitter<'_, '_> {
    /// Whether the kernel begins before the end of the launch before.
    pub(super) fn begins_early(&self) -> bool {
        self.func.schedule.early == Some(2) && self.target.gpu.begins_early
    }

    /// The first instructions of a kernel that begins early; whether it does.
    pub(super) fn begin_early(&self) -> Result<bool> {
        if !self.begins_early() {
            return Ok(false);
        }
        for text in [WAIT, LET_BEGIN] {
            let memory = "~{memory}".to_string();
            self.inline_ptx(None, text.to_string(), memory, &[], true)?;
        }
        Ok(true)
    }
}

/// Loads of constant memory are made of what nobody else reaches and the kernel only reads, and such memory must not change
/// while the kernel is there (PTX ISA, "ld.global.nc"): here the launch before may still write it. They may also pass the wait.
pub(super) fn forget_what_is_constant(module: &Module<'_>, kernel: &str) {
    let Some(kernel) = module.get_function(kernel) else {
        return;
    };
    let alone = Attribute::get_named_enum_kind_id("noalias");
    for index in 0..kernel.count_params() {
        kernel.remove_enum_attribute(AttributeLoc::Param(index), alone);
    }
}

/// How instructions begin that touch memory, or may.
const TOUCHES: [&str; 12] = [
    "ld.",
    "ldu.",
    "st.",
    "atom.",
    "red.",
    "cp.",
    "prefetch",
    "multimem.",
    "tensormap.",
    "discard.",
    "applypriority.",
    "call",
];

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || letter == '{')
}

/// Sees that before the wait, which is in the first block, nothing but parameters is read, and that no load is of constant
/// memory.
pub(super) fn check(text: &str) -> Result<()> {
    let kernel = text.split_once(".entry").map(|(_, kernel)| kernel);
    let around = kernel.and_then(|kernel| kernel.split_once(WAIT));
    let touches = |word: &str| {
        let touches = TOUCHES.iter().any(|start| word.starts_with(start));
        touches && !word.starts_with("ld.param.")
    };
    let is_first = around.is_some_and(|(before, _)| !words(before).any(touches));
    let is_constant = |word: &str| word.starts_with("ld.") && word.contains(".nc");
    match is_first && !words(text).any(is_constant) {
        true => Ok(()),
        false => Err(Error::Llvm(
            "memory is touched before the launch before has ended".to_string(),
        )),
    }
}
