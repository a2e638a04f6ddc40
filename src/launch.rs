//! A launch: code found or made for arguments like these, run, and its errors explained.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use std::sync::Arc;

use exactile_core::diagnostic::Loc;
use exactile_core::interp::memory::{program_coordinates, program_count};
use exactile_core::interp::{self, Fault, FaultKind};
use exactile_core::ir::Grid;
use exactile_core::lang::is_tracing;
use exactile_core::launch::{Argument, LaunchError};
use exactile_core::target::{Bounds, BoundsError};
use exactile_core::verify::BlockFunc;
use exactile_cranelift::StandardFloats;

use crate::ahead::{Needed, Request};
use crate::arguments::Arguments;
use crate::arguments::BoundArguments;
use crate::bound::Bound;
use crate::buffer::Storage;
use crate::cache::Identity;
use crate::compile::{Accessed, Code, Prepared};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::grid::IntoGrid;
use crate::kernel::Kernel;
use crate::proofs::Proven;

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
        let BoundArguments {
            list: arguments,
            tensors,
        } = arguments.bind_all();
        let request = self.request(&arguments);
        if device.is_recording() {
            device.note(request.job(&arguments, self.tracer(), Needed::Safe));
            return Ok(());
        }
        let prepared = request.prepared(device, || self.trace())?;
        self.check_tensors(&prepared, &tensors)?;
        let launch = Proven::of(grid, &arguments);
        if device.trusts_proofs() && prepared.proofs.hold(&launch) {
            let code = code_for(device, &prepared, Bounds::Unchecked, &arguments)?;
            // SAFETY: a checked launch of the same IR with the same grid, scalars and lengths had
            // every access in bounds, and the accesses depend on nothing else.
            return unsafe { run(device, &code, grid, arguments) };
        }
        run_checked(device, &prepared, grid, arguments)?;
        prepared.proofs.add(launch);
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
        let BoundArguments {
            list: arguments,
            tensors,
        } = arguments.bind_all();
        let request = self.request(&arguments);
        if device.is_recording() {
            device.note(request.job(&arguments, self.tracer(), Needed::Unchecked));
            return Ok(());
        }
        let prepared = request.prepared(device, || self.trace())?;
        self.check_tensors(&prepared, &tensors)?;
        let code = code_for(device, &prepared, Bounds::Unchecked, &arguments)?;
        // SAFETY: handed on to the caller.
        unsafe { run(device, &code, grid, arguments) }
    }

    /// A source that was not made by the macro may say one thing and declare another.
    fn check_tensors(&self, prepared: &Prepared, tensors: &[(usize, u32)]) -> Result<()> {
        if prepared.takes(tensors) {
            return Ok(());
        }
        Err(arguments_error(
            self.name(),
            "the kernel takes a tensor where it is given none",
        ))
    }

    fn request(&self, arguments: &[Bound<'_>]) -> Request {
        let options = self.options(Bounds::Checked);
        let kernel = Identity::Function(self.source.identity().clone());
        Request::new(kernel, options, arguments)
    }

    /// The trace, for another thread.
    fn tracer(&self) -> impl Fn() -> Result<BlockFunc> + Send + Sync + 'static {
        let kernel = Kernel {
            source: self.source.erased(),
            determinism: self.determinism,
        };
        move || kernel.trace()
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

/// The code for arguments like these.
fn code_for(
    device: &Device,
    prepared: &Prepared,
    bounds: Bounds,
    arguments: &[Bound<'_>],
) -> Result<Arc<Code>> {
    let apart = prepared.keeps_apart(&|index| arguments.get(index).and_then(Bound::number));
    prepared.code(device, bounds, apart)
}

/// Runs code that checks every access.
pub(crate) fn run_checked(
    device: &Device,
    prepared: &Prepared,
    grid: Grid,
    arguments: Vec<Bound<'_>>,
) -> Result<()> {
    let code = code_for(device, prepared, Bounds::Checked, &arguments)?;
    // SAFETY: every access is checked.
    unsafe { run(device, &code, grid, arguments) }
}

/// Runs compiled code; on the host it has ended when this returns.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run(
    device: &Device,
    code: &Code,
    grid: Grid,
    mut arguments: Vec<Bound<'_>>,
) -> Result<()> {
    check_places(device, &arguments)?;
    if grid.contains(&0) {
        return Ok(());
    }
    // SAFETY: handed on to the caller.
    let ended = unsafe {
        match code {
            Code::Gpu(_, code) => cuda::launch(device, code, grid, &arguments),
            Code::Interpreter(_) | Code::Lanes(_) | Code::Cpu(_) => {
                run_on_host(device, code, grid, &mut host_arguments(&mut arguments)?)
            }
        }
    };
    ended.map_err(|failure| failure.explain(code, grid, &arguments))
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
    fn explain(self, code: &Code, grid: Grid, arguments: &[Bound<'_>]) -> Error {
        match self {
            Self::Fault(fault) => fault_error(fault, grid),
            Self::Launch(LaunchError::OutOfBounds(error)) => {
                out_of_bounds(code, grid, arguments, error)
            }
            Self::Launch(source) => launch_error(code.name(), source),
        }
    }
}

fn host_arguments<'b>(arguments: &'b mut [Bound<'_>]) -> Result<Vec<Argument<'b>>> {
    let on_gpu = || Error::Device("host code cannot use the memory of a GPU".to_string());
    arguments
        .iter_mut()
        .map(|argument| match argument {
            Bound::Read(_, Storage::Host(memory)) => Ok(Argument::Read(memory.bytes())),
            Bound::ReadWrite(_, Storage::Host(memory)) => {
                Ok(Argument::ReadWrite(memory.bytes_mut()))
            }
            Bound::Read(_, Storage::Gpu(_)) => Err(on_gpu()),
            Bound::ReadWrite(_, Storage::Gpu(_)) => Err(on_gpu()),
            Bound::Scalar(literal) => Ok(Argument::Scalar(*literal)),
        })
        .collect()
}

/// # Safety
/// As for [`run`].
unsafe fn run_on_host(
    device: &Device,
    code: &Code,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Result<(), Failure> {
    // Machine code sets it on each of its threads.
    let _floats = StandardFloats::new();
    match code {
        Code::Interpreter(func) => {
            let programs = device.programs(program_count(grid)?);
            interp::block::run_programs(func, grid, arguments, programs)?;
        }
        Code::Lanes(func) => {
            let programs = device.programs(program_count(grid)?);
            let report = interp::lane::run_programs(func, grid, arguments, programs)?;
            if let Some(error) = report.out_of_bounds {
                return Err(LaunchError::OutOfBounds(error).into());
            }
        }
        Code::Cpu(executable) => {
            // SAFETY: handed on to the caller. Races between programs give unspecified numbers and
            // nothing worse: machine code has no undefined behaviour of its own.
            unsafe { executable.launch(grid, arguments, device.threads()) }?;
        }
        Code::Gpu(..) => {
            let message = "GPU code does not run on the host".to_string();
            return Err(LaunchError::Device(message).into());
        }
    }
    Ok(())
}

#[cfg(feature = "nvptx")]
mod cuda {
    //! Launches on a GPU.

    use exactile_nvptx::KernelArgument;

    use super::{Bound, Failure, LaunchError, Storage};
    use crate::cuda::GpuCode;
    use crate::device::Device;

    /// # Safety
    /// As for [`super::run`].
    pub(super) unsafe fn launch(
        device: &Device,
        code: &GpuCode,
        grid: exactile_core::ir::Grid,
        arguments: &[Bound<'_>],
    ) -> Result<(), Failure> {
        let failed = |message: String| Failure::Launch(LaunchError::Device(message));
        let on_host = || failed("a GPU cannot use host memory".to_string());
        let gpu = device.gpu().ok_or_else(on_host)?;
        let mut list = Vec::new();
        for argument in arguments {
            list.push(match argument {
                Bound::Read(_, Storage::Gpu(memory)) => KernelArgument::Buffer(&memory.buffer),
                Bound::ReadWrite(_, Storage::Gpu(memory)) => KernelArgument::Buffer(&memory.buffer),
                Bound::Read(_, Storage::Host(_)) => return Err(on_host()),
                Bound::ReadWrite(_, Storage::Host(_)) => return Err(on_host()),
                Bound::Scalar(literal) => KernelArgument::Scalar(*literal),
            });
        }
        let checked = code.kernel.ptx().has_bounds_checks();
        let mut errors = gpu.lock_errors();
        let record = checked.then_some(&*errors);
        // SAFETY: handed on to the caller; one stream orders all work of the device.
        unsafe { code.kernel.launch(&gpu.stream, grid, &list, record) }
            .map_err(|error| failed(error.to_string()))?;
        gpu.mark_end().map_err(|error| failed(error.to_string()))?;
        if !checked {
            return Ok(());
        }
        match gpu
            .take_error(&mut errors)
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

    use super::{Bound, Failure};
    use crate::cuda::GpuCode;
    use crate::device::Device;

    /// # Safety
    /// None is needed: there is no GPU code.
    pub(super) unsafe fn launch(
        _device: &Device,
        code: &GpuCode,
        _grid: exactile_core::ir::Grid,
        _arguments: &[Bound<'_>],
    ) -> Result<(), Failure> {
        match *code {}
    }
}

/// An access out of bounds in the words of the source.
fn out_of_bounds(code: &Code, grid: Grid, arguments: &[Bound<'_>], error: BoundsError) -> Error {
    let (loc, accessed) = code.access(error.site).unzip();
    let described = accessed.and_then(|accessed| match accessed {
        Accessed::Axis(axis, extent) => {
            Some((format!("gather axis {}", axis.0), extent.cast_unsigned()))
        }
        Accessed::Parameter(parameter) => {
            let func = code.lane()?;
            let dtype = func.ty(*func.arguments().get(parameter)?).pointee()?.0;
            let length = arguments.get(parameter)?.bytes() / u64::from(dtype.bytes());
            Some((func.parameters.get(parameter)?.name.clone(), length))
        }
    });
    let (argument, length) = described.unwrap_or_default();
    Error::OutOfBounds {
        kernel: code.name().to_string(),
        loc: loc.unwrap_or_else(Loc::none),
        argument,
        length,
        program: program_coordinates(grid, error.program),
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
