//! Runs a function wherever it can be run: the interpreters, the CPU and the GPU.

#![expect(
    unsafe_code,
    reason = "compiled functions run without checks where the interpreter found no fault"
)]

#[cfg(feature = "nvptx")]
mod cuda;

use std::borrow::Cow;
use std::fmt;

use exactile_core::facts::{Boxed, Facts, Within};
use exactile_core::interp::lane::{Report, Timing};
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::{Func, Grid, Stage};
use exactile_core::launch::{Argument, Launch, LaunchError, Passed};
use exactile_core::passes::conditions::Conditions;
use exactile_core::passes::prefixes::Prefixes;
use exactile_core::pipeline::{self, Observer, PreparedFunc};
use exactile_core::schedule::forget;
use exactile_core::target::{BoundsError, Distribution, Options, Target};
use exactile_core::verify::{self, BlockFunc, LaneFunc, ScheduleFunc};

#[cfg(not(feature = "nvptx"))]
const NO_GPU_BACKEND: &str = "a build without the feature `nvptx` has no GPU backend";

/// Where a function runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The interpreter of the function's stage: the specification.
    Interpreter,
    /// Machine code for the CPU.
    Cpu,
    /// The lane interpreter, on what is made for the CPU.
    Worker,
    /// The lane interpreter, on what is made for a GPU with this number of warps.
    Lanes {
        /// The GPU.
        gpu: Target,
        /// Warps of the thread block.
        warps: u32,
    },
    /// The GPU, with this number of warps.
    Cuda {
        /// Warps of the thread block.
        warps: u32,
    },
}

impl Place {
    /// Whether functions can run there, or why not.
    pub fn available(self) -> Result<(), String> {
        match self {
            Self::Interpreter | Self::Cpu | Self::Worker | Self::Lanes { .. } => Ok(()),
            #[cfg(feature = "nvptx")]
            Self::Cuda { .. } => cuda::available(),
            #[cfg(not(feature = "nvptx"))]
            Self::Cuda { .. } => Err(NO_GPU_BACKEND.to_string()),
        }
    }

    /// The machine that functions are compiled for there.
    pub fn target(self) -> Target {
        match self {
            Self::Interpreter | Self::Cpu | Self::Worker => Target::CPU,
            Self::Lanes { gpu, .. } => gpu.interpreted(),
            #[cfg(feature = "nvptx")]
            Self::Cuda { .. } => cuda::target(),
            #[cfg(not(feature = "nvptx"))]
            Self::Cuda { .. } => Target::SM_90A,
        }
    }

    /// The number of warps that the place asks for.
    pub fn warps(self) -> Option<u32> {
        match self {
            Self::Interpreter | Self::Cpu | Self::Worker => None,
            Self::Lanes { warps, .. } | Self::Cuda { warps } => Some(warps),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interpreter => f.write_str("interp"),
            Self::Cpu => f.write_str("cpu"),
            Self::Worker => f.write_str("lanes of a CPU worker"),
            Self::Lanes { gpu, warps } => write!(f, "lanes warps={warps} of {}", gpu.name),
            Self::Cuda { warps } => write!(f, "cuda warps={warps}"),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All programs ran.
    Done,
    /// A checked access was out of bounds, or an assertion failed. The interpreter of block IR knows no sites and gives 0.
    OutOfBounds(BoundsError),
    /// An interpreter found another fault.
    Fault(Fault),
    /// This machine or build cannot run there; says why.
    Unavailable(String),
    /// The function was refused, or the run broke.
    Failed(String),
}

/// A function proven valid at its stage.
#[derive(Clone, Debug)]
pub enum Proven {
    /// Tiles.
    Block(BlockFunc),
    /// Tiles of which some have layouts.
    Schedule(ScheduleFunc),
    /// Lanes.
    Lane(LaneFunc),
}

impl Proven {
    /// Verifies a function at its own stage.
    pub fn new(func: Func) -> Result<Self, exactile_core::diagnostic::Diagnostics> {
        match func.stage {
            Stage::Block => verify::block(func).map(Self::Block),
            Stage::Schedule => verify::schedule(func).map(Self::Schedule),
            Stage::Lane => verify::lane(func).map(Self::Lane),
        }
    }

    /// The function.
    pub fn func(&self) -> &Func {
        match self {
            Self::Block(func) => func,
            Self::Schedule(func) => func,
            Self::Lane(func) => func,
        }
    }
}

/// What the pipeline makes of a function; one of a later stage only needs what comes behind it. A CPU
/// has no use for layouts.
pub fn compile(
    func: &Proven,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, String> {
    let compiled = match func {
        Proven::Block(func) => pipeline::compile(func.clone(), target, options, facts, observe),
        Proven::Schedule(func) => match target.distribution {
            Distribution::Sequential => forget(func)
                .and_then(|func| pipeline::compile(func, target, options, facts, observe)),
            Distribution::Distributed => {
                pipeline::expand(func.clone(), target, options, facts, observe)
            }
        },
        Proven::Lane(func) => pipeline::finish(func.clone(), target),
    };
    compiled.map_err(|error| error.to_string())
}

/// Runs `func` at `place`; the options say how it is compiled, where it is. Nothing is known of the
/// arguments but what the function states.
///
/// # Safety
/// The interpreter runs the function on these arguments without a fault, or every access is checked.
pub unsafe fn execute(
    func: &Proven,
    place: Place,
    options: &Options,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Outcome {
    match (place, func) {
        (Place::Interpreter, Proven::Block(func)) => {
            interp::block::run(func, grid, arguments).map_or_else(faulted, |()| Outcome::Done)
        }
        (Place::Interpreter, Proven::Schedule(func)) => {
            let ran = interp::block::run_schedule(func, grid, arguments);
            ran.map_or_else(faulted, |()| Outcome::Done)
        }
        (Place::Interpreter, Proven::Lane(func)) => {
            reported(interp::lane::run(func, grid, arguments))
        }
        (Place::Cpu | Place::Worker | Place::Lanes { .. } | Place::Cuda { .. }, func) => {
            let (target, facts) = (place.target(), Facts::default());
            let lane = match func {
                Proven::Block(func) => compile_for(func, &target, options, &facts, grid, arguments),
                Proven::Schedule(_) | Proven::Lane(_) => {
                    compile(func, &target, options, &facts, &mut pipeline::unobserved)
                }
            };
            match lane {
                // SAFETY: handed on to the caller.
                Ok(lane) => unsafe { execute_lane(&lane, place, grid, arguments) },
                Err(message) => Outcome::Failed(message),
            }
        }
    }
}

/// Runs what [`compile`] made for `place`.
///
/// # Safety
/// As for [`execute`].
pub unsafe fn execute_lane(
    lane: &LaneFunc,
    place: Place,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Outcome {
    if let Err(reason) = place.available() {
        // Where no GPU is, its code can at least be made.
        return ptx(lane, &place.target())
            .map_or_else(Outcome::Failed, |_| Outcome::Unavailable(reason));
    }
    match place {
        Place::Interpreter | Place::Worker | Place::Lanes { .. } => {
            reported(interp::lane::run(lane, grid, arguments))
        }
        // SAFETY: handed on to the caller.
        Place::Cpu => unsafe { run_on_cpu(lane, grid, arguments) },
        #[cfg(feature = "nvptx")]
        // SAFETY: handed on to the caller.
        Place::Cuda { .. } => unsafe { cuda::run(lane, grid, arguments) },
        #[cfg(not(feature = "nvptx"))]
        Place::Cuda { .. } => Outcome::Unavailable(NO_GPU_BACKEND.to_string()),
    }
}

/// # Safety
/// As for [`execute`].
unsafe fn run_on_cpu(func: &LaneFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Outcome {
    let executable = match exactile_cranelift::compile(func) {
        Ok(executable) => executable,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    // SAFETY: handed on to the caller.
    let launched =
        unsafe { executable.launch(grid, arguments, exactile_cranelift::Threads::All, None) };
    match launched {
        Ok(()) => Outcome::Done,
        Err(LaunchError::OutOfBounds(error)) => Outcome::OutOfBounds(error),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// What the pipeline makes of a block function for these arguments, as a launch does: nothing is known
/// of them but `facts` and the conditions that hold.
pub fn compile_for(
    func: &BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    grid: Grid,
    arguments: &[Argument<'_>],
) -> Result<LaneFunc, String> {
    let prepared = prepare(func, target, options, facts)?;
    compile_prepared((func, &prepared), target, options, facts, grid, arguments)
}

/// What the first half of the pipeline makes of a block function of whose arguments `facts` are known.
pub fn prepare(
    func: &BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<PreparedFunc, String> {
    let observe = &mut pipeline::unobserved;
    let prepared = pipeline::prepare(func.clone(), target, options, facts, observe);
    prepared.map_err(|error| error.to_string())
}

/// The same as [`compile_for`], of a function and what [`prepare`] makes of it.
pub fn compile_prepared(
    (func, prepared): (&BlockFunc, &PreparedFunc),
    target: &Target,
    options: &Options,
    facts: &Facts,
    grid: Grid,
    arguments: &[Argument<'_>],
) -> Result<LaneFunc, String> {
    let observe = &mut pipeline::unobserved;
    let passed: Vec<Passed> = arguments.iter().map(Argument::passed).collect();
    let launch = Launch::new(grid, &passed);
    let mut facts = Cow::Borrowed(facts);
    let mut prepared = Cow::Borrowed(prepared);
    if facts.within.is_empty() {
        let prefixes = Prefixes::of(&prepared, target, options.determinism);
        let within: Vec<Within> = prefixes.known(&launch).collect();
        if !within.is_empty() {
            facts.to_mut().within = within;
            prepared = Cow::Owned(prepare(func, target, options, &facts)?);
        }
    }
    let boxed = pipeline::prepare_boxed(func, target, options, &facts, observe);
    let boxed = boxed.map_err(|error| error.to_string())?;
    let conditions = Conditions::of(func, &prepared, boxed.as_deref(), target);
    let facts = conditions.facts(&launch);
    let block = boxed
        .filter(|_| facts.boxes != Boxed::Nothing)
        .map_or(prepared, Cow::Owned);
    pipeline::lower(&block, target, options, &facts, observe).map_err(|error| error.to_string())
}

/// The PTX of a lane function for a GPU; nothing in a build without the GPU backend.
pub fn ptx(func: &LaneFunc, target: &Target) -> Result<Option<String>, String> {
    if cfg!(not(feature = "nvptx")) {
        return Ok(None);
    }
    exactile::internals::gpu_listing(func, target, [1, 1, 1])
        .map(|listing| Some(listing.ptx))
        .map_err(|error| error.to_string())
}

/// Whether NVIDIA's assembler took the PTX; `None` where there is none.
///
/// # Errors
/// What the assembler says of the text.
#[cfg(feature = "nvptx")]
pub fn assembled(ptx: &str, name: &str) -> Result<Option<()>, String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let Some(assembler) = exactile::internals::GpuAssembler::find(root) else {
        return Ok(None);
    };
    let folder = format!("exactile-{name}-{}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    let assembled = assembler.assemble(ptx, &folder, name);
    // What is left behind harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    assembled
        .map(|_| Some(()))
        .map_err(|error| error.to_string())
}

#[cfg(not(feature = "nvptx"))]
pub fn assembled(_: &str, _: &str) -> Result<Option<()>, String> {
    Ok(None)
}

fn faulted(fault: Fault) -> Outcome {
    match fault.kind {
        FaultKind::OutOfBounds { element, index, .. } => Outcome::OutOfBounds(BoundsError {
            program: fault.program,
            site: 0,
            element,
            offset: index,
        }),
        FaultKind::Assertion { element, .. } => Outcome::OutOfBounds(BoundsError {
            program: fault.program,
            site: 0,
            element,
            offset: 0,
        }),
        FaultKind::Launch(error) => Outcome::Failed(error.to_string()),
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::UnderWay { .. }
        | FaultKind::ReadsBeyond { .. }
        | FaultKind::Unfinished { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::TooLong(_)
        | FaultKind::Undefined { .. }
        | FaultKind::Deadlock(_)
        | FaultKind::Transfer(_)
        | FaultKind::Slot(_)
        | FaultKind::Row(_)
        | FaultKind::Endless(_) => Outcome::Fault(fault),
    }
}

/// Runs a lane function under its interpreter, with warps and copies at these times.
pub fn interpret_lanes(
    func: &LaneFunc,
    timing: Timing,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Outcome {
    reported(interp::lane::run_timed(func, grid, arguments, timing))
}

fn reported(result: Result<Report, Fault>) -> Outcome {
    match result {
        Ok(report) => report
            .out_of_bounds
            .map_or(Outcome::Done, Outcome::OutOfBounds),
        // Unlike one that `check_bounds` refuses, this access would have happened.
        Err(fault) => Outcome::Fault(fault),
    }
}
