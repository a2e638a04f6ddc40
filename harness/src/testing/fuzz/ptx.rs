//! PTX of what is lowered for a GPU: LLVM may refuse nothing that the verifier lets pass, and end nothing.

use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;

use crate::testing::programs::generate::Program;
use crate::testing::programs::subject::{Checked, Subject};

/// Whether LLVM takes code of lanes. What the machine has no op or no room for is refused before it is asked.
#[cfg(feature = "nvptx")]
pub(super) fn takes(func: &LaneFunc, target: &Target) -> Result<(), String> {
    match exactile_nvptx::emit(func, target, "fuzz") {
        Err(error @ exactile_nvptx::Error::Llvm(_)) => {
            Err(format!("PTX for `{}`: {error}", target.name))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A build without LLVM makes no PTX.
#[cfg(not(feature = "nvptx"))]
pub(super) fn takes(_func: &LaneFunc, _target: &Target) -> Result<(), String> {
    Ok(())
}

/// Whether LLVM takes a program over so many warps of its GPU, if that has room for it.
pub(super) fn takes_program(
    program: &Program,
    checked: &Checked<'_>,
    warps: u32,
) -> Result<(), String> {
    let Some(gpu) = program.gpu else {
        return Ok(());
    };
    match checked.lowered(Subject::Distributed(warps)) {
        Some(Ok(func)) => takes(&func, &gpu),
        Some(Err(_)) | None => Ok(()),
    }
}
