//! The LLVM target: which PTX is written, and the passes that run before.

use std::ffi::CStr;
use std::sync::Once;

use exactile_core::target::Target as Gpu;
use inkwell::OptimizationLevel;
use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::AnyTypeEnum;
use inkwell::values::{CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue};

use crate::contained::set_options;
use crate::error::{Error, Result};
use crate::loops;
use crate::mend::mend;

static INITIALIZED: Once = Once::new();

/// A machine for `target`. It belongs to one thread.
pub(crate) fn machine(target: &Gpu) -> Result<TargetMachine> {
    INITIALIZED.call_once(|| {
        Target::initialize_nvptx(&InitializationConfig::default());
        set_options(OPTIONS);
    });
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    Target::from_triple(&triple)?
        .create_target_machine(
            &triple,
            target.name,
            &format!("+ptx{}", target.gpu.ptx),
            // One level more numbers all values twice again: more than half of this time, for the same code.
            OptimizationLevel::Default,
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

/// The passes of `default<O3>` that change the code of a kernel, in its order, without the numbering of values:
/// that takes longest, and the loads that it moves ahead of loops take registers.
const PASSES: &str = "function(\
    nvvm-intr-range,simplifycfg,early-cse,instcombine<no-verify-fixpoint>,\
    early-cse<memssa>,correlated-propagation,instcombine<no-verify-fixpoint>,reassociate,\
    loop-mssa(loop-rotate,licm),instcombine<no-verify-fixpoint>,\
    loop(indvars,loop-deletion,loop-unroll-full),vector-combine,\
    early-cse<memssa>,instcombine<no-verify-fixpoint>,correlated-propagation,\
    simplifycfg<hoist-common-insts;sink-common-insts>,instcombine<no-verify-fixpoint>,loop-unroll<O3>)";

/// What pairs arithmetic on numbers of 16 bits, between the others.
const PAIRS: &str = "function(slp-vectorizer)";

/// The last ones.
const LAST: &str = "function(loop-mssa(licm),div-rem-pairs)";

/// Limits of `slp-vectorizer`, which pairs operations on numbers of 16 bits: what it tries grows with the square of
/// the straight-line code otherwise. Reductions, none of which it may reorder, are not looked for.
///
/// And the heads of loops are not duplicated: a loop that is entered in two places is no loop to `ptxas` 13.0, which then leaves the
/// lanes of a warp apart that a division before it in an outer loop has parted, and shuffles between them give other bits.
const OPTIONS: [&CStr; 4] = [
    c"-disable-early-taildup",
    c"-slp-vectorize-hor=false",
    c"-slp-recursion-max-depth=8",
    c"-slp-schedule-budget=5000",
];

/// Runs the optimiser. It gets the machine, so that its decisions fit the target.
pub(crate) fn optimize(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    let run = |passes| module.run_passes(passes, machine, PassBuilderOptions::create());
    run(PASSES)?;
    // It takes the square of the straight-line code, whether there are pairs or not.
    if computes_narrow(module) {
        run(PAIRS)?;
    }
    run(LAST)?;
    Ok(())
}

/// Whether numbers of 16 bits or fewer are computed with, and not only loaded, converted and stored.
fn computes_narrow(module: &Module<'_>) -> bool {
    module
        .get_functions()
        .flat_map(FunctionValue::get_basic_block_iter)
        .flat_map(BasicBlock::get_instructions)
        .any(|inst| is_narrow(inst.get_type()) && computes(inst))
}

fn is_narrow(ty: AnyTypeEnum<'_>) -> bool {
    let is_float = matches!(ty, AnyTypeEnum::FloatType(ty) if ty.get_bit_width() == 16);
    is_float || matches!(ty, AnyTypeEnum::IntType(ty) if [8, 16].contains(&ty.get_bit_width()))
}

fn computes(inst: InstructionValue<'_>) -> bool {
    use InstructionOpcode::{Add, Call, FAdd, FMul, FSub, Mul, Sub};
    let opcode = inst.get_opcode();
    if opcode != Call {
        return matches!(opcode, Add | FAdd | FMul | FSub | Mul | Sub);
    }
    let call = CallSiteValue::try_from(inst).ok();
    let called = call.and_then(CallSiteValue::get_called_fn_value);
    called.is_some_and(|called| {
        let name = called.get_name().to_string_lossy();
        PAIRED.iter().any(|start| name.starts_with(start))
    })
}

/// How the names of functions begin that exist for pairs.
const PAIRED: [&str; 6] = [
    "llvm.fma",
    "llvm.max",
    "llvm.min",
    "llvm.smax",
    "llvm.smin",
    "llvm.um",
];

/// Writes the PTX text.
pub(crate) fn write_ptx(module: &Module<'_>, machine: &TargetMachine) -> Result<String> {
    let buffer = machine.write_to_memory_buffer(module, FileType::Assembly)?;
    let text = std::str::from_utf8(buffer.as_slice())
        .map_err(|error| Error::Llvm(format!("PTX is not UTF-8: {error}")))?;
    let text = text.trim_end_matches('\0');
    loops::check(text)?;
    mend(text)
}
