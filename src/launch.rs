//! A launch: code found or made for arguments like these, run, and its errors explained.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use std::sync::Arc;
use std::time::Instant;

use exactile_core::backend::{Argument, LaunchError};
use exactile_core::interp::memory::{program_coordinates, program_count};
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::Grid;
use exactile_core::target::{Bounds, Options};
use exactile_core::verify::BlockFunc;

use crate::arguments::Arguments;
use crate::bound::{Bound, specialise};
use crate::buffer::Storage;
use crate::cache::{CodeKey, LaunchKey};
use crate::compile::{Code, Compiled, compile};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::grid::IntoGrid;
use crate::kernel::Kernel;

impl<P> Kernel<P> {
    /// Runs the kernel over `grid`, one program for each point, with every access checked.
    ///
    /// Waits for the end and reports the first access out of bounds with its source line, program
    /// and index; what other programs wrote stays. The first launch with a configuration compiles.
    /// An empty grid does nothing. Where two programs write one element, its value is unspecified.
    pub fn launch<'a>(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        // SAFETY: every access through a pointer is checked.
        unsafe { self.launch_with(device, grid, arguments, Bounds::Checked) }
    }

    /// [`Kernel::launch`] without bounds checks. On a GPU it returns before the kernel has ended;
    /// [`Device::synchronize`] waits.
    ///
    /// # Safety
    /// Every access of every program that its mask allows lies inside its argument.
    pub unsafe fn launch_unchecked<'a>(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        // SAFETY: handed on to the caller.
        unsafe { self.launch_with(device, grid, arguments, Bounds::Unchecked) }
    }

    /// # Safety
    /// As for [`Kernel::launch_unchecked`] unless `bounds` is `Checked`.
    unsafe fn launch_with<'a>(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
        bounds: Bounds,
    ) -> Result<()> {
        let grid = grid.into_grid()?;
        let arguments = arguments.bind_all().list;
        let options = self.options(bounds);
        let identity = self.source.identity();
        let compiled = prepare(device, &identity, &options, &arguments, || self.trace())?;
        // SAFETY: handed on to the caller.
        unsafe { run(device, &compiled, grid, arguments) }
    }
}

/// Finds or makes the code of a kernel for arguments like these.
///
/// `identity` tells the kernel from all others, and `trace` gives its IR when it is needed.
pub(crate) fn prepare(
    device: &Device,
    identity: &str,
    options: &Options,
    arguments: &[Bound<'_>],
    trace: impl FnOnce() -> Result<BlockFunc>,
) -> Result<Arc<Compiled>> {
    let divisors: Vec<u32> = arguments.iter().map(Bound::divisor).collect();
    let launch = LaunchKey(format!("{identity} {options:?} {divisors:?}"));
    if let Some(compiled) = device.cache().launched(&launch) {
        return Ok(compiled);
    }
    let begin = Instant::now();
    let func = specialise(trace()?, &divisors)?;
    let code = CodeKey(format!("{options:?}\n{}", *func));
    let compiled = device
        .cache()
        .code(launch, code, || compile(func, device, options))?;
    device.cache().spent(begin.elapsed());
    Ok(compiled)
}

/// Runs code that checks every access. What it was compiled with says so.
pub(crate) fn run_checked(
    device: &Device,
    compiled: &Compiled,
    grid: Grid,
    arguments: Vec<Bound<'_>>,
) -> Result<()> {
    if compiled.bounds == Bounds::Unchecked {
        return Err(Error::Invalid(
            "code without bounds checks needs an unchecked launch".to_string(),
        ));
    }
    // SAFETY: every access is checked.
    unsafe { run(device, compiled, grid, arguments) }
}

/// Runs compiled code; on the host it has ended when this returns.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run(
    device: &Device,
    compiled: &Compiled,
    grid: Grid,
    arguments: Vec<Bound<'_>>,
) -> Result<()> {
    check_places(device, &arguments)?;
    if grid.contains(&0) {
        return Ok(());
    }
    let mut host: Vec<Argument<'_>> = arguments
        .into_iter()
        .map(|argument| match argument {
            Bound::Read(_, Storage::Host(memory)) => Argument::Read(memory.bytes()),
            Bound::ReadWrite(_, Storage::Host(memory)) => Argument::ReadWrite(memory.bytes_mut()),
            Bound::Scalar(literal) => Argument::Scalar(literal),
        })
        .collect();
    match &compiled.code {
        Code::Interpreter(func) => {
            interp::block::run(func, grid, &mut host).map_err(|fault| fault_error(fault, grid))
        }
    }
}

fn check_places(device: &Device, arguments: &[Bound<'_>]) -> Result<()> {
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(place) = argument.device()
            && !place.shares_memory_with(device)
        {
            return Err(Error::Placement {
                index,
                found: place.to_string(),
                expected: device.to_string(),
            });
        }
    }
    Ok(())
}

/// What an interpreter found, as launches of compiled code report it.
fn fault_error(fault: Fault, grid: Grid) -> Error {
    match fault.kind {
        FaultKind::Launch(source) => Error::Launch {
            kernel: fault.kernel,
            source,
        },
        FaultKind::OutOfBounds {
            buffer,
            element,
            index,
            length,
        } => Error::OutOfBounds {
            kernel: fault.kernel,
            loc: fault.loc,
            argument: buffer,
            length,
            program: program_coordinates(grid, fault.program),
            element,
            offset: index,
        },
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::Endless(_) => Error::Fault(fault),
    }
}

/// The arguments do not fit the kernel.
pub(crate) fn arguments_error(kernel: &str, message: impl Into<String>) -> Error {
    launch_error(kernel, LaunchError::Arguments(message.into()))
}

fn launch_error(kernel: &str, source: LaunchError) -> Error {
    Error::Launch {
        kernel: kernel.to_string(),
        source,
    }
}
