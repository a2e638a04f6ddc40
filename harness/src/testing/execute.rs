//! Runs a function wherever it can be run: the interpreters, the CPU and the GPU.

#![expect(
    unsafe_code,
    reason = "compiled functions run without checks where the interpreter found no fault"
)]

#[cfg(feature = "nvptx")]
mod cuda;

use std::fmt;

use exactile_core::backend::{Argument, LaunchError};
use exactile_core::facts::Facts;
use exactile_core::interp::lane::Report;
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::{Func, Grid, Stage};
use exactile_core::lower::{distributed, sequential};
use exactile_core::passes::apart::Conditions;
use exactile_core::passes::{self, Approximations};
use exactile_core::target::{BoundsError, Options};
use exactile_core::verify::{self, BlockFunc, LaneFunc};

#[cfg(not(feature = "nvptx"))]
const NO_GPU_BACKEND: &str = "a build without the feature `nvptx` has no GPU backend";

/// Where a function runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The interpreter of the function's stage: the specification.
    Interpreter,
    /// Machine code for the CPU.
    Cpu,
    /// The lane interpreter, on what is made for the CPU.
    Worker,
    /// The lane interpreter, on what is made for a GPU with this number of warps.
    Lanes {
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

    /// The number of warps that the place asks for.
    pub fn warps(self) -> Option<u32> {
        match self {
            Self::Interpreter | Self::Cpu | Self::Worker => None,
            Self::Lanes { warps } | Self::Cuda { warps } => Some(warps),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interpreter => f.write_str("interp"),
            Self::Cpu => f.write_str("cpu"),
            Self::Worker => f.write_str("lanes of a CPU worker"),
            Self::Lanes { warps } => write!(f, "lanes warps={warps}"),
            Self::Cuda { warps } => write!(f, "cuda warps={warps}"),
        }
    }
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All programs ran.
    Done,
    /// A checked access was out of bounds. The interpreter of block IR knows no sites and gives 0.
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
    /// Lanes.
    Lane(LaneFunc),
}

impl Proven {
    /// Verifies a function at its own stage.
    pub fn new(func: Func) -> Result<Self, exactile_core::diagnostic::Diagnostics> {
        match func.stage {
            Stage::Block => verify::block(func).map(Self::Block),
            Stage::Lane => verify::lane(func).map(Self::Lane),
        }
    }

    /// The function.
    pub fn func(&self) -> &Func {
        match self {
            Self::Block(func) => func,
            Self::Lane(func) => func,
        }
    }
}

/// Runs `func` at `place`; the options say how it is compiled, where it is.
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
    let available = place.available();
    let lane = match (place, func) {
        (Place::Interpreter, Proven::Block(func)) => {
            return interp::block::run(func, grid, arguments)
                .map_or_else(faulted, |()| Outcome::Done);
        }
        (_, Proven::Lane(func)) => Ok(func.clone()),
        (Place::Cpu | Place::Worker, Proven::Block(func)) => lower_for_cpu(func, options),
        (Place::Lanes { .. } | Place::Cuda { .. }, Proven::Block(func)) => {
            lower_for_arguments(func, options, arguments)
        }
    };
    let lane = match lane {
        Ok(lane) => lane,
        Err(message) => return Outcome::Failed(message),
    };
    if let Err(reason) = available {
        // Where no GPU is, its code can at least be made.
        return ptx(&lane).map_or_else(Outcome::Failed, |_| Outcome::Unavailable(reason));
    }
    match place {
        Place::Interpreter | Place::Worker | Place::Lanes { .. } => {
            reported(interp::lane::run(&lane, grid, arguments))
        }
        // SAFETY: handed on to the caller.
        Place::Cpu => unsafe { run_on_cpu(&lane, grid, arguments) },
        #[cfg(feature = "nvptx")]
        // SAFETY: handed on to the caller.
        Place::Cuda { .. } => unsafe { cuda::run(&lane, grid, arguments) },
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
    let launched = unsafe { executable.launch(grid, arguments, exactile_cranelift::Threads::One) };
    match launched {
        Ok(()) => Outcome::Done,
        Err(LaunchError::OutOfBounds(error)) => Outcome::OutOfBounds(error),
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

fn prepare(func: &BlockFunc, options: &Options) -> Result<BlockFunc, String> {
    passes::prepare(func.clone(), options.determinism, Approximations::Absent)
        .map_err(|error| error.to_string())
}

/// What the lowering for a CPU makes of a block function.
pub fn lower_for_cpu(func: &BlockFunc, options: &Options) -> Result<LaneFunc, String> {
    sequential::lower(&prepare(func, options)?, options).map_err(|error| error.to_string())
}

/// What the lowering for a GPU makes of a block function for a launch whose rows do not meet.
pub fn lower_for_lanes(func: &BlockFunc, options: &Options) -> Result<LaneFunc, String> {
    let facts = Facts {
        apart: true,
        ..Facts::default()
    };
    distributed::lower(&prepare(func, options)?, options, &facts).map_err(|error| error.to_string())
}

/// What the lowering for a GPU makes of a block function for these arguments.
fn lower_for_arguments(
    func: &BlockFunc,
    options: &Options,
    arguments: &[Argument<'_>],
) -> Result<LaneFunc, String> {
    let prepared = prepare(func, options)?;
    let facts = Facts {
        apart: are_apart(&prepared, arguments),
        ..Facts::default()
    };
    distributed::lower(&prepared, options, &facts).map_err(|error| error.to_string())
}

/// Whether these arguments keep the stores of a function apart, as a launch finds out.
pub fn are_apart(prepared: &BlockFunc, arguments: &[Argument<'_>]) -> bool {
    Conditions::of(prepared).hold(|index| match arguments.get(index) {
        Some(Argument::Scalar(literal)) => Some(*literal),
        Some(Argument::Read(_) | Argument::ReadWrite(_)) | None => None,
    })
}

/// The PTX of a lane function; nothing in a build without the GPU backend.
pub fn ptx(func: &LaneFunc) -> Result<Option<String>, String> {
    if cfg!(not(feature = "nvptx")) {
        return Ok(None);
    }
    exactile::internals::gpu_listing(func)
        .map(|listing| Some(listing.ptx))
        .map_err(|error| error.to_string())
}

fn faulted(fault: Fault) -> Outcome {
    match fault.kind {
        FaultKind::OutOfBounds { element, index, .. } => Outcome::OutOfBounds(BoundsError {
            program: fault.program,
            site: 0,
            element,
            offset: index,
        }),
        FaultKind::Launch(error) => Outcome::Failed(error.to_string()),
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::UnderWay { .. }
        | FaultKind::Unfinished { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::Endless(_) => Outcome::Fault(fault),
    }
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
