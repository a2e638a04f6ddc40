//! Launches on the host, which have ended when they return.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use std::sync::Arc;

use exactile_core::interp;
use exactile_core::interp::memory::program_count;
use exactile_core::ir::Grid;
use exactile_core::launch::{Argument, Launch, LaunchError, Programs};
use exactile_cranelift::StandardFloats;
use smallvec::SmallVec;

use super::explain::Cause;
use crate::bound::{Bound, FEW};
use crate::capture::Captured;
use crate::code::{Code, Runs, Sites};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::part::{Part, PartMut};

/// Runs compiled code. What its programs did wrong, if anything.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
pub(super) unsafe fn run_on_host(
    device: &Device,
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
) -> Result<Option<Arc<Failure>>> {
    let mut list: SmallVec<[Argument<'_>; FEW]> = SmallVec::new();
    for argument in arguments {
        let argument = host_bytes(argument);
        list.push(argument.ok_or_else(|| {
            let message = "broken invariant: host code cannot use the memory of a GPU";
            Error::Device(message.to_string())
        })?);
    }
    // SAFETY: handed on to the caller.
    let ended = unsafe { run_code(device, &code.runs, launch.grid, &mut list) };
    told(ended, &code.name, &code.sites, launch)
}

/// Runs a launch that was captured.
///
/// # Safety
/// As for [`run_on_host`].
pub(crate) unsafe fn run_captured(
    device: &Device,
    captured: &Captured,
    list: &mut [Argument<'_>],
) -> Result<Option<Arc<Failure>>> {
    // SAFETY: handed on to the caller.
    let ended = unsafe { run_code(device, &captured.runs, captured.grid, list) };
    told(ended, &captured.name, &captured.sites, &captured.launch())
}

/// What the programs did wrong, to be told later; what else is wrong is an error now.
fn told(
    ended: Result<(), Cause>,
    name: &str,
    sites: &Sites,
    launch: &Launch<'_>,
) -> Result<Option<Arc<Failure>>> {
    match ended {
        Ok(()) => Ok(None),
        Err(cause) if cause.is_found_by_programs() => {
            let failure = Arc::<Failure>::default();
            failure.settle(Err(cause.explain(name, sites, launch)));
            Ok(Some(failure))
        }
        Err(cause) => Err(cause.explain(name, sites, launch)),
    }
}

/// What host code is handed for an argument; nothing for memory of a GPU.
pub(crate) fn host_bytes<'b>(argument: &'b mut Bound<'_>) -> Option<Argument<'b>> {
    match argument {
        Bound::Read(Part::Host(_, bytes, _) | Part::Slice(bytes)) => Some(Argument::Read(bytes)),
        Bound::ReadWrite(PartMut::Host(_, bytes, _) | PartMut::Slice(bytes)) => {
            Some(Argument::ReadWrite(bytes))
        }
        Bound::Read(Part::Gpu(..)) | Bound::ReadWrite(PartMut::Gpu(..)) => None,
        Bound::Scalar(literal) => Some(Argument::Scalar(*literal)),
    }
}

/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run_code(
    device: &Device,
    runs: &Runs,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Result<(), Cause> {
    // Machine code sets it on each of its threads.
    let _floats = StandardFloats::new();
    match runs {
        Runs::Interpreter(func) => {
            let programs = Programs::new(program_count(grid)?, device.sample());
            interp::block::run_programs(func, grid, arguments, programs.all())?;
        }
        Runs::Lanes(func) => {
            let programs = Programs::new(program_count(grid)?, device.sample());
            let report = interp::lane::run_programs(func, grid, arguments, programs.all())?;
            if let Some(error) = report.out_of_bounds {
                return Err(LaunchError::OutOfBounds(error).into());
            }
        }
        Runs::Cpu(executable) => {
            // SAFETY: handed on to the caller. Races between programs give unspecified numbers and
            // nothing worse: machine code has no undefined behaviour of its own.
            unsafe { executable.launch(grid, arguments, device.threads(), device.sample()) }?;
        }
        Runs::Gpu(..) => {
            let message = "GPU code does not run on the host".to_string();
            return Err(LaunchError::Device(message).into());
        }
    }
    Ok(())
}
