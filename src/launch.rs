//! A launch: code found or made for arguments like these, run, and its errors explained.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use exactile_core::diagnostic::Loc;
use exactile_core::interp::memory::{program_coordinates, program_count};
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::Grid;
use exactile_core::lang::is_tracing;
use exactile_core::launch::{Argument, Input, Launch, LaunchError, Passed};
use exactile_core::target::{Bounds, BoundsError};
use exactile_core::verify::BlockFunc;
use exactile_cranelift::StandardFloats;
use smallvec::SmallVec;

use crate::ahead::{Needed, Request};
use crate::arguments::{Arguments, BoundArguments};
use crate::bound::{Absent, Bound, FEW};
use crate::buffer::Storage;
use crate::cache::Identity;
use crate::code::{Accessed, Code, Runs};
use crate::compile::Prepared;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::grid::IntoGrid;
use crate::kernel::Kernel;
use crate::proofs::Reach;

impl<P> Kernel<P> {
    /// Runs the kernel over `grid`, one program for each point, with every access checked.
    ///
    /// Waits for the end and reports the first access out of bounds with its source line, program
    /// and index: of the least program that has one, the same in every run. What other programs wrote
    /// stays. Of several errors in a loop a GPU may report another one than the CPU. Accesses through tensors are in bounds by
    /// construction. Where accesses do not depend on loaded numbers, a launch without an error
    /// proves later ones with the same grid, scalars and lengths: these skip the checks, and on a
    /// GPU return before the kernel has ended ([`Device::synchronize`] waits).
    ///
    /// The first launch with a configuration compiles. An empty grid does nothing. Where two
    /// programs write one element, its value is unspecified.
    pub fn launch<'a>(
        &self,
        device: &Device,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        refuse_in_trace(self.name())?;
        let grid = grid.into_grid()?;
        let mut bound = BoundArguments::default();
        arguments.bind_all(&mut bound);
        let (arguments, absent) = (bound.list.as_mut_slice(), &bound.absent);
        let mut passed: SmallVec<[Passed; FEW]> = SmallVec::new();
        passed.extend(arguments.iter().map(Bound::passed));
        let launch = Launch::new(grid, &passed);
        let request = self.request(&launch, absent);
        if device.is_recording() {
            device.note(request.job(&launch, self.tracer(absent.clone()), Needed::Safe));
            return Ok(());
        }
        let reach = Reach::of(&launch);
        let place = request.place(device, Some(&reach));
        let prepared = place.prepared(|| self.trace_without(absent))?;
        if place.is_proved && device.trusts_proofs() {
            let code = prepared.code(device, Bounds::Unchecked, &launch)?;
            // SAFETY: a checked launch of the same IR with the same grid, scalars and lengths had
            // every access in bounds, and the accesses depend on nothing else.
            return unsafe { run(device, code, &launch, arguments) };
        }
        run_checked(device, prepared, &launch, arguments)?;
        if prepared.is_provable {
            place.prove(reach);
        }
        Ok(())
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
        refuse_in_trace(self.name())?;
        let grid = grid.into_grid()?;
        let mut bound = BoundArguments::default();
        arguments.bind_all(&mut bound);
        let (arguments, absent) = (bound.list.as_mut_slice(), &bound.absent);
        let mut passed: SmallVec<[Passed; FEW]> = SmallVec::new();
        passed.extend(arguments.iter().map(Bound::passed));
        let launch = Launch::new(grid, &passed);
        let request = self.request(&launch, absent);
        if device.is_recording() {
            device.note(request.job(&launch, self.tracer(absent.clone()), Needed::Unchecked));
            return Ok(());
        }
        let place = request.place(device, None);
        let prepared = place.prepared(|| self.trace_without(absent))?;
        let code = prepared.code(device, Bounds::Unchecked, &launch)?;
        // SAFETY: handed on to the caller.
        unsafe { run(device, code, &launch, arguments) }
    }

    fn request(&self, launch: &Launch<'_>, absent: &Absent) -> Request {
        let options = self.options(Bounds::Checked);
        let kernel = Identity::Function {
            kernel: self.source.identity().clone(),
            absent: absent.clone(),
        };
        Request::new(kernel, options, launch)
    }

    /// The trace, for another thread.
    fn tracer(&self, absent: Absent) -> impl Fn() -> Result<BlockFunc> + Send + Sync + 'static {
        let kernel = Kernel {
            source: self.source.erased(),
            determinism: self.determinism,
        };
        move || kernel.trace_without(&absent)
    }
}

/// A body describes the work of a kernel; it is no place to do any.
pub(crate) fn refuse_in_trace(kernel: &str) -> Result<()> {
    if is_tracing() {
        let reason = "a kernel cannot be launched while the body of one is traced on this thread";
        return Err(launch_error(
            kernel,
            LaunchError::Arguments(reason.to_string()),
        ));
    }
    Ok(())
}

/// Runs code that checks every access.
pub(crate) fn run_checked(
    device: &Device,
    prepared: &Prepared,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
) -> Result<()> {
    let code = prepared.code(device, Bounds::Checked, launch)?;
    // SAFETY: every access is checked, or to a tile of a tensor that this launch has shown to lie in its
    // memory.
    unsafe { run(device, code, launch, arguments) }
}

/// Runs compiled code; on the host it has ended when this returns.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run(
    device: &Device,
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
) -> Result<()> {
    check_places(device, arguments)?;
    let grid = launch.grid;
    if grid.contains(&0) {
        return Ok(());
    }
    // SAFETY: handed on to the caller.
    let ended = unsafe {
        match &*code.runs {
            Runs::Gpu(code) => cuda::launch(device, code, launch),
            runs @ (Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_)) => {
                let mut list = SmallVec::new();
                host_arguments(arguments, &mut list)?;
                run_on_host(device, runs, grid, &mut list)
            }
        }
    };
    ended.map_err(|failure| failure.explain(code, launch))
}

/// Why a launch failed, before it is put into the words of the source.
pub(crate) enum Failure {
    /// Compiled code could not run, or found an access out of bounds.
    Launch(LaunchError),
    /// An interpreter stopped.
    Fault(Fault),
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Failure {
    fn explain(self, code: &Code, launch: &Launch<'_>) -> Error {
        match self {
            Self::Fault(fault) => fault_error(fault, launch.grid),
            Self::Launch(LaunchError::OutOfBounds(error)) => out_of_bounds(code, launch, error),
            Self::Launch(source) => launch_error(&code.name, source),
        }
    }
}

fn host_arguments<'b>(
    arguments: &'b mut [Bound<'_>],
    list: &mut SmallVec<[Argument<'b>; FEW]>,
) -> Result<()> {
    for argument in arguments {
        list.push(match argument {
            Bound::Read(_, Storage::Host(memory)) => Argument::Read(memory.bytes()),
            Bound::ReadWrite(_, Storage::Host(memory)) => Argument::ReadWrite(memory.bytes_mut()),
            Bound::Read(_, Storage::Gpu(_)) | Bound::ReadWrite(_, Storage::Gpu(_)) => {
                let message = "host code cannot use the memory of a GPU";
                return Err(Error::Device(message.to_string()));
            }
            Bound::Scalar(literal) => Argument::Scalar(*literal),
        });
    }
    Ok(())
}

/// # Safety
/// As for [`run`].
unsafe fn run_on_host(
    device: &Device,
    runs: &Runs,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Result<(), Failure> {
    // Machine code sets it on each of its threads.
    let _floats = StandardFloats::new();
    match runs {
        Runs::Interpreter(func) => {
            let programs = device.programs(program_count(grid)?);
            interp::block::run_programs(func, grid, arguments, programs)?;
        }
        Runs::Lanes(func) => {
            let programs = device.programs(program_count(grid)?);
            let report = interp::lane::run_programs(func, grid, arguments, programs)?;
            if let Some(error) = report.out_of_bounds {
                return Err(LaunchError::OutOfBounds(error).into());
            }
        }
        Runs::Cpu(executable) => {
            // SAFETY: handed on to the caller. Races between programs give unspecified numbers and
            // nothing worse: machine code has no undefined behaviour of its own.
            unsafe { executable.launch(grid, arguments, device.threads()) }?;
        }
        Runs::Gpu(..) => {
            let message = "GPU code does not run on the host".to_string();
            return Err(LaunchError::Device(message).into());
        }
    }
    Ok(())
}

#[cfg(feature = "nvptx")]
mod cuda {
    //! Launches on a GPU.

    use exactile_core::launch::Launch;

    use super::{Failure, LaunchError};
    use crate::cuda::GpuCode;
    use crate::device::Device;

    /// # Safety
    /// As for [`super::run`]; the memory is that of buffers of the device.
    pub(super) unsafe fn launch(
        device: &Device,
        code: &GpuCode,
        launch: &Launch<'_>,
    ) -> Result<(), Failure> {
        let failed = |message: String| Failure::Launch(LaunchError::Device(message));
        let on_host = || failed("a GPU cannot use host memory".to_string());
        let gpu = device.gpu().ok_or_else(on_host)?;
        let checked = code.kernel.ptx().has_bounds_checks();
        let mut errors = checked.then(|| gpu.lock_errors());
        let record = errors.as_deref();
        // SAFETY: handed on to the caller; one stream orders all work of the device.
        unsafe {
            let kernel = &code.kernel;
            kernel.launch(&gpu.stream, launch.grid, launch.arguments, record)
        }
        .map_err(|error| failed(error.to_string()))?;
        gpu.mark_end().map_err(|error| failed(error.to_string()))?;
        let Some(errors) = &mut errors else {
            return Ok(());
        };
        match gpu
            .take_error(errors)
            .map_err(|error| failed(error.to_string()))?
        {
            None => Ok(()),
            Some(error) => Err(LaunchError::OutOfBounds(error).into()),
        }
    }
}

#[cfg(not(feature = "nvptx"))]
mod cuda {
    //! No GPU, no launch.

    use exactile_core::launch::Launch;

    use super::Failure;
    use crate::cuda::GpuCode;
    use crate::device::Device;

    /// # Safety
    /// None is needed: there is no GPU code.
    pub(super) unsafe fn launch(
        _device: &Device,
        code: &GpuCode,
        _launch: &Launch<'_>,
    ) -> Result<(), Failure> {
        match *code {}
    }
}

/// An access out of bounds or a failed assertion in the words of the source.
fn out_of_bounds(code: &Code, launch: &Launch<'_>, error: BoundsError) -> Error {
    let site = code.sites.get(error.site);
    if let Some((loc, Accessed::Assertion(message))) = site {
        return Error::Assertion {
            kernel: code.name.clone(),
            loc: loc.clone(),
            message: message.clone(),
            program: program_coordinates(launch.grid, error.program),
            element: error.element,
        };
    }
    let described = site.and_then(|(_, accessed)| match accessed {
        Accessed::Assertion(_) => None,
        Accessed::Axis(axis, extent) => {
            Some((format!("gather axis {}", axis.0), extent.cast_unsigned()))
        }
        Accessed::Memory {
            parameter,
            dtype,
            name,
        } => {
            let length = launch.input(Input::Length(*parameter, *dtype))?;
            Some((name.clone(), length))
        }
    });
    let (argument, length) = described.unwrap_or_default();
    Error::OutOfBounds {
        kernel: code.name.clone(),
        loc: site.map_or_else(Loc::none, |(loc, _)| loc.clone()),
        argument,
        length,
        program: program_coordinates(launch.grid, error.program),
        element: error.element,
        offset: error.offset,
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
        FaultKind::Assertion { message, element } => Error::Assertion {
            kernel: fault.kernel,
            loc: fault.loc,
            message,
            program: program_coordinates(grid, fault.program),
            element,
        },
        FaultKind::SharedByPrograms { .. }
        | FaultKind::Race { .. }
        | FaultKind::Uninitialised { .. }
        | FaultKind::UnderWay { .. }
        | FaultKind::Unfinished { .. }
        | FaultKind::Unaligned { .. }
        | FaultKind::Divergent { .. }
        | FaultKind::NoSuchLane { .. }
        | FaultKind::TooLong(_)
        | FaultKind::Undefined { .. }
        | FaultKind::Deadlock(_)
        | FaultKind::Transfer(_)
        | FaultKind::Slot(_)
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

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
