//! From a lane function to executable memory.

#![expect(
    unsafe_code,
    reason = "executable memory is freed by hand and called through its address"
)]

use std::sync::OnceLock;

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleReloc, default_libcall_names};
use exactile_core::ir::{Op, Space, op};
use exactile_core::launch::{Signature, parameters};
use exactile_core::verify::LaneFunc;

use crate::Error;
use crate::codegen::{self, Helpers};
use crate::prefetch;
use crate::preserving::{self, Callee};
use crate::run::{Entry, LaunchContext};
use crate::runtime::scalar_call;

/// A compiled kernel.
pub struct Executable {
    name: String,
    pub(crate) signature: Signature,
    module: Option<JITModule>,
    entry: Entry,
    scratch_bytes: usize,
    code_bytes: usize,
    stack_bytes: usize,
}

// SAFETY: after compilation the module is only kept to be freed; its code is immutable and reads no
// state but its parameters.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    /// Bytes of scratch memory that a worker needs.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// Bytes of machine code.
    pub fn code_bytes(&self) -> usize {
        self.code_bytes
    }

    /// Bytes of the stack that a worker needs for the frame of the code.
    pub fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, bytes) = (&self.name, self.code_bytes);
        write!(f, "Executable({name}, {bytes} bytes of code)")
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the code's address lives in this value only, and nothing runs it any more:
            // a launch borrows the value until all programs ended.
            unsafe { module.free_memory() };
        }
    }
}

struct Compilation {
    module: JITModule,
    id: FuncId,
    code_bytes: usize,
    stack_bytes: usize,
    text: String,
}

/// Compiles a lane function of a CPU worker.
pub fn compile(func: &LaneFunc) -> Result<Executable, Error> {
    let mut compilation = build(func, false)?;
    let finalized = compilation.module.finalize_definitions();
    finalized.map_err(|error| Error::Codegen(error.to_string()))?;
    let address = compilation.module.get_finalized_function(compilation.id);
    // SAFETY: the code at this address was generated with the signature of `Entry`.
    let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
    Ok(Executable {
        scratch_bytes: scratch_bytes(func),
        signature: Signature::new(&func.name, parameters(func)),
        name: func.name.clone(),
        module: Some(compilation.module),
        entry,
        code_bytes: compilation.code_bytes,
        stack_bytes: compilation.stack_bytes,
    })
}

/// The CLIF of a lane function, and below it the machine code in Cranelift's notation.
pub fn clif(func: &LaneFunc) -> Result<String, Error> {
    let compilation = build(func, true)?;
    // SAFETY: nothing was finalized, so no code of this module can run.
    unsafe { compilation.module.free_memory() };
    Ok(compilation.text)
}

fn scratch_bytes(func: &LaneFunc) -> usize {
    let ends = func.all_insts().into_iter().filter_map(|inst| {
        let data = func.inst(inst);
        let Op::Alloc(op::Alloc { offset, count }) = data.op else {
            return None;
        };
        let (dtype, space) = func.ty(*data.results.first()?).pointee()?;
        let bytes = offset + count * i64::from(dtype.bytes());
        (space == Space::Scratch).then_some(bytes as usize)
    });
    ends.max().unwrap_or(0)
}

/// Branches after which code is made in time that grows with its length alone. Moving what is computed
/// to where it is used and choosing registers for all blocks together takes time for each value that
/// is alive at each branch. Loop nests have up to a few hundred.
const MANY_BRANCHES: usize = 1024;

fn has_many_branches(func: &LaneFunc) -> bool {
    let branches = func.all_insts().into_iter().filter(|&inst| {
        let op = func.op(inst);
        let masked = op.access().is_some_and(|access| access.mask.is_some());
        let bounds = matches!(op, Op::CheckBounds(_) | Op::CheckIndex(_));
        let checks = bounds || matches!(op, Op::CheckAssertion(_));
        masked || checks || matches!(op, Op::For(_) | Op::While(_) | Op::If(_))
    });
    branches.count() > MANY_BRANCHES
}

/// The code generator for a function. Of each of the two there is one in a process.
fn isa(func: &LaneFunc) -> Result<OwnedTargetIsa, Error> {
    static MADE: [OnceLock<Result<OwnedTargetIsa, Error>>; 2] = [const { OnceLock::new() }; 2];
    let many_branches = has_many_branches(func);
    let made = &MADE[usize::from(many_branches)];
    made.get_or_init(|| make_isa(many_branches)).clone()
}

fn make_isa(many_branches: bool) -> Result<OwnedTargetIsa, Error> {
    let mut flags = settings::builder();
    let (level, algorithm) = match many_branches {
        true => ("none", "single_pass"),
        false => ("speed", "backtracking"),
    };
    let settings = [
        ("opt_level", level),
        ("regalloc_algorithm", algorithm),
        (
            "enable_verifier",
            if cfg!(debug_assertions) {
                "true"
            } else {
                "false"
            },
        ),
        ("is_pic", "false"),
        // Nothing unwinds through the code.
        ("unwind_info", "false"),
        ("use_colocated_libcalls", "false"),
        // A frame of more than a page touches each page of it in order, so that no stack is left
        // without its guard page being hit.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ];
    for (name, value) in settings {
        flags
            .set(name, value)
            .map_err(|error| Error::Machine(error.to_string()))?;
    }
    let builder = cranelift_native::builder().map_err(|name| Error::Machine(name.to_string()))?;
    let isa = builder.finish(settings::Flags::new(flags));
    isa.map_err(|error| Error::Machine(error.to_string()))
}

fn build(func: &LaneFunc, describe: bool) -> Result<Compilation, Error> {
    if func.warps > 0 {
        return Err(Error::Lanes(func.warps));
    }
    let mut builder = JITBuilder::with_isa(isa(func)?, default_libcall_names());
    for callee in [scalar(), preserving::report()] {
        builder.symbol(callee.name, callee.address);
    }
    let mut module = JITModule::new(builder);
    let compiled = define(&mut module, func, describe);
    match compiled {
        Ok(defined) => Ok(Compilation {
            module,
            id: defined.id,
            code_bytes: defined.code_bytes,
            stack_bytes: defined.stack_bytes,
            text: defined.text,
        }),
        Err(error) => {
            // SAFETY: nothing was finalized, so no code of this module can run.
            unsafe { module.free_memory() };
            Err(error)
        }
    }
}

/// A function in a module.
struct Defined {
    id: FuncId,
    code_bytes: usize,
    stack_bytes: usize,
    text: String,
}

fn failed(error: cranelift_module::ModuleError) -> Error {
    Error::Codegen(format!("{error:?}"))
}

/// What evaluates a scalar op.
fn scalar() -> Callee {
    Callee {
        name: "exactile_scalar_call",
        address: scalar_call as *const u8,
        convention: None,
    }
}

/// What kernels call.
fn import_helpers(module: &mut JITModule, func: &mut Function) -> Result<Helpers, Error> {
    let mut import = |callee: &Callee, parameters: usize, returns: bool| {
        let mut signature = module.make_signature();
        signature.call_conv = callee.convention.unwrap_or(signature.call_conv);
        signature.params = vec![AbiParam::new(types::I64); parameters];
        signature.returns = vec![AbiParam::new(types::I64); usize::from(returns)];
        let id = module
            .declare_function(callee.name, Linkage::Import, &signature)
            .map_err(failed)?;
        Ok(module.declare_func_in_func(id, func))
    };
    Ok(Helpers {
        scalar: import(&scalar(), 4, true)?,
        out_of_bounds: import(&preserving::report(), 6, false)?,
        prefetch: prefetch::declare(func),
    })
}

fn define(module: &mut JITModule, func: &LaneFunc, describe: bool) -> Result<Defined, Error> {
    let mut context = module.make_context();
    context.set_disasm(describe);
    let pointer = module.target_config().pointer_type();
    for _ in 0..6 {
        context
            .func
            .signature
            .params
            .push(AbiParam::new(types::I64));
    }
    debug_assert_eq!(pointer.bytes() as usize, size_of::<*const LaunchContext>());
    let helpers = import_helpers(module, &mut context.func)?;
    let mut frontend = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut context.func, &mut frontend);
    codegen::translate(func, builder, helpers, module.isa())?;
    let mut text = if describe {
        context.func.display().to_string()
    } else {
        String::new()
    };
    let id = module
        .declare_function("kernel", Linkage::Local, &context.func.signature)
        .map_err(failed)?;
    context
        .compile(module.isa(), &mut ControlPlane::default())
        .map_err(|error| Error::Codegen(format!("{:?}", error.inner)))?;
    let code = context.compiled_code();
    let code = code.expect("broken invariant: it was compiled");
    let alignment = u64::from(code.buffer.alignment);
    let stack_bytes = code.buffer.frame_layout();
    let stack_bytes = stack_bytes.map_or(0, |frame| frame.frame_to_fp_offset as usize);
    if let Some(machine) = &code.vcode {
        text.push_str(machine);
    }
    let mut bytes = code.code_buffer().to_vec();
    let relocations = code.buffer.relocs().iter();
    let relocations = relocations.map(|it| ModuleReloc::from_mach_reloc(it, &context.func, id));
    let relocations = prefetch::put(relocations.collect(), &mut bytes)?;
    module
        .define_function_bytes(id, alignment, &bytes, &relocations)
        .map_err(failed)?;
    Ok(Defined {
        id,
        code_bytes: bytes.len(),
        stack_bytes,
        text,
    })
}
