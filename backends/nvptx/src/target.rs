//! The LLVM target: which PTX is written, and the passes that run before.

use std::sync::Once;

use exactile_core::target::Target as Gpu;
use inkwell::OptimizationLevel;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};

use crate::error::{Error, Result};

/// The oldest driver interface that takes this PTX, as `cuDriverGetVersion` counts.
pub const LEAST_DRIVER: i32 = 12080;

static INITIALIZED: Once = Once::new();

/// A machine for `target`. It belongs to one thread.
pub(crate) fn machine(target: &Gpu) -> Result<TargetMachine> {
    INITIALIZED.call_once(|| Target::initialize_nvptx(&InitializationConfig::default()));
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    Target::from_triple(&triple)?
        .create_target_machine(
            &triple,
            target.name,
            &format!("+ptx{}", target.gpu.ptx),
            OptimizationLevel::Aggressive,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| Error::Llvm(format!("no target machine for `{}`", target.name)))
}

/// Gives `module` the machine's triple and data layout.
pub(crate) fn configure(module: &Module<'_>, machine: &TargetMachine) {
    module.set_triple(&machine.get_triple());
    module.set_data_layout(&machine.get_target_data().get_data_layout());
}

/// Runs the optimiser. It gets the machine, so that its decisions fit the target.
pub(crate) fn optimize(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    module.run_passes("default<O3>", machine, PassBuilderOptions::create())?;
    Ok(())
}

/// Writes the PTX text.
pub(crate) fn write_ptx(module: &Module<'_>, machine: &TargetMachine) -> Result<String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Assembly)?;
    let text = std::str::from_utf8(buffer.as_slice())
        .map_err(|error| Error::Llvm(format!("PTX is not UTF-8: {error}")))?;
    Ok(widen_signs(text.trim_end_matches('\0')))
}

/// Replaces negations and absolute values of 16 bits by those of 32 bits.
///
/// `ptxas` 13.0 computes `neg.s16` and `abs.s16` in registers of 32 bits and takes what it gets for
/// sign-extended, so that both make 32768 of -32768 where the result is compared or converted. LLVM
/// makes them of many expressions, so they are replaced in its text.
fn widen_signs(text: &str) -> String {
    let mut widened = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match narrow_sign(line) {
            Some((op, target, source)) => widened.push_str(&format!(
                "\t{{ .reg .b32 %wide; cvt.s32.s16 %wide, {source}; {op}.s32 %wide, %wide; \
                 cvt.u16.u32 {target}, %wide; }}\n"
            )),
            None => widened.push_str(line),
        }
    }
    widened
}

/// The op, the target and the source of a negation or an absolute value of 16 bits.
fn narrow_sign(line: &str) -> Option<(&str, &str, &str)> {
    let (op, operands) = line.trim().strip_suffix(';')?.split_once(".s16")?;
    let (target, source) = operands.split_once(',')?;
    matches!(op, "neg" | "abs").then_some((op, target.trim(), source.trim()))
}
