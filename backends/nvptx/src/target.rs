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
    Ok(spell_signs(text.trim_end_matches('\0')))
}

/// Replaces the negations and absolute values that `ptxas` 13.0 gets wrong for the least integer.
///
/// It takes what `abs` makes for positive, and computes `neg` and `abs` of 16 bits in registers of 32
/// bits that it takes for sign-extended. LLVM makes them of many expressions, so they are replaced in
/// its text: an absolute value is the greater of a number and its negation.
fn spell_signs(text: &str) -> String {
    let mut spelt = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match sign(line) {
            Some(sign) => spelt.push_str(&sign),
            None => spelt.push_str(line),
        }
    }
    spelt
}

/// What stands for a negation of 16 bits or an absolute value of an integer.
fn sign(line: &str) -> Option<String> {
    let (instruction, operands) = line
        .trim()
        .strip_suffix(';')?
        .split_once(char::is_whitespace)?;
    let (target, source) = operands.split_once(',')?;
    let (target, source) = (target.trim(), source.trim());
    let (computed, bits) = match instruction {
        "neg.s16" => ("neg.s32 %to, %from;", 16),
        "abs.s16" => ("abs.s32 %to, %from;", 16),
        "abs.s32" => ("neg.s32 %to, %from; max.s32 %to, %to, %from;", 32),
        "abs.s64" => ("neg.s64 %to, %from; max.s64 %to, %to, %from;", 64),
        _ => return None,
    };
    let wide = bits.max(32);
    let (enter, leave) = match bits {
        16 => ("cvt.s32.s16", "cvt.u16.u32"),
        32 => ("mov.b32", "mov.b32"),
        _ => ("mov.b64", "mov.b64"),
    };
    Some(format!(
        "\t{{ .reg .b{wide} %from, %to; {enter} %from, {source}; {computed} {leave} {target}, %to; }}\n"
    ))
}
