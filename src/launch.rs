//! A launch: code found or made for arguments like these, run, and its errors explained.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use std::fmt;
use std::sync::Arc;

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

use crate::ahead::{Needed, Place, Proof, Request};
use crate::arguments::{Arguments, BoundArguments};
use crate::bound::{Absent, Bound, FEW};
use crate::buffer::Storage;
use crate::cache::{Cache, Identity};
use crate::code::{Accessed, Code, Runs, Sites};
use crate::compile::Prepared;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::grid::IntoGrid;
use crate::kernel::Kernel;
use crate::proofs::Reach;
use crate::stream::Queue;

impl<P> Kernel<P> {
    /// Runs the kernel over `grid`, one program for each point, with every access checked, and waits for the end.
    ///
    /// # Errors
    /// Those of [`Kernel::launch`], the ones that it leaves for later included.
    pub fn run<'a>(
        &self,
        queue: &impl Queue,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        self.launch(queue, grid, arguments)?;
        let (device, stream) = queue.place();
        device.wait_for(stream)
    }

    /// Puts the kernel over `grid`, one program for each point, with every access checked, into a [`Stream`], or into
    /// the default one of a [`Device`], and returns.
    ///
    /// The first access out of bounds is reported with its source line, program
    /// and index: of the least program that has one, the same in every run. What other programs wrote
    /// stays. Of several errors in a loop a GPU may report another one than the CPU. Accesses through tensors are in bounds by
    /// construction. Where accesses do not depend on loaded numbers, a launch that has ended without an error
    /// proves later ones with the same grid, scalars and lengths: these skip the checks.
    ///
    /// The first launch with a configuration compiles. An empty grid does nothing. Where two
    /// programs write one element, its value is unspecified.
    ///
    /// # Errors
    /// Here, what is wrong with the kernel, the device or the arguments. What the programs do wrong, such as an access
    /// out of bounds, is told once, by what waits for them next: [`Stream::synchronize`], [`Device::synchronize`],
    /// [`Kernel::run`], or a read of what they wrote, such as [`Buffer::to_vec`](crate::Buffer::to_vec). Of several
    /// such errors in a stream the first one is told.
    ///
    /// [`Stream`]: crate::Stream
    /// [`Stream::synchronize`]: crate::Stream::synchronize
    pub fn launch<'a>(
        &self,
        queue: &impl Queue,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        let (device, stream) = queue.place();
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
            return unsafe { run(device, stream, code, &launch, arguments, None) };
        }
        let proves = prepared.is_provable.then_some((&place, reach));
        run_checked(device, stream, prepared, &launch, arguments, proves)
    }

    /// [`Kernel::launch`] without bounds checks.
    ///
    /// # Safety
    /// Every access of every program that its mask allows lies inside its argument.
    pub unsafe fn launch_unchecked<'a>(
        &self,
        queue: &impl Queue,
        grid: impl IntoGrid,
        arguments: impl Arguments<'a, P>,
    ) -> Result<()> {
        let (device, stream) = queue.place();
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
        unsafe { run(device, stream, code, &launch, arguments, None) }
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

/// Puts code that checks every access into a stream. Once it has ended without an error, it proves what `proves` says.
pub(crate) fn run_checked(
    device: &Device,
    stream: usize,
    prepared: &Prepared,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<(&Place<'_>, Reach)>,
) -> Result<()> {
    let code = prepared.code(device, Bounds::Checked, launch)?;
    // SAFETY: every access is checked, or to a tile of a tensor that this launch has shown to lie in its
    // memory.
    unsafe { run(device, stream, code, launch, arguments, proves) }
}

/// Puts compiled code into a stream; on the host it has ended when this returns.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run(
    device: &Device,
    stream: usize,
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<(&Place<'_>, Reach)>,
) -> Result<()> {
    check_places(device, arguments)?;
    let grid = launch.grid;
    if grid.contains(&0) {
        return Ok(());
    }
    if let (Runs::Gpu(gpu_code), Some(gpu)) = (&*code.runs, device.gpu()) {
        let checked = gpu_code
            .has_bounds_checks()
            .then(|| Checked::new(device, code, launch, proves));
        let memories = arguments.iter().filter_map(Bound::uses);
        let (list, number) = (launch.arguments, stream);
        // SAFETY: handed on to the caller; the memory is that of buffers of the device.
        let queued = unsafe { gpu.launch(number, gpu_code, grid, list, memories, checked) };
        return queued
            .map_err(|error| launch_error(&code.name, LaunchError::Device(error.to_string())));
    }
    let mut list = SmallVec::new();
    host_arguments(arguments, &mut list)?;
    // SAFETY: handed on to the caller.
    let ended = unsafe { run_on_host(device, &code.runs, grid, &mut list) };
    drop(list);
    match ended {
        Ok(()) => {
            if let Some((place, reach)) = proves {
                place.prove(reach);
            }
            Ok(())
        }
        Err(failure) if failure.is_found_by_programs() => {
            let error = failure.explain(&code.name, &code.sites, launch);
            let failure = device.fail(stream, error);
            for argument in arguments {
                argument.fail(&failure);
            }
            Ok(())
        }
        Err(failure) => Err(failure.explain(&code.name, &code.sites, launch)),
    }
}

/// What a checked launch on a GPU needs at its end.
pub(crate) struct Checked {
    cache: Arc<Cache>,
    name: Arc<str>,
    sites: Arc<Sites>,
    grid: Grid,
    arguments: SmallVec<[Passed; FEW]>,
    proof: Option<Proof>,
}

impl Checked {
    fn new(
        device: &Device,
        code: &Code,
        launch: &Launch<'_>,
        proves: Option<(&Place<'_>, Reach)>,
    ) -> Self {
        Self {
            cache: Arc::clone(device.cache()),
            name: Arc::clone(&code.name),
            sites: Arc::clone(&code.sites),
            grid: launch.grid,
            arguments: launch.arguments.into(),
            proof: proves.map(|(place, reach)| place.proof(reach)),
        }
    }

    /// The launch has ended, with this access out of bounds if any.
    #[cfg_attr(not(feature = "nvptx"), expect(dead_code, reason = "a GPU ends it"))]
    pub(crate) fn ended(self, error: Option<BoundsError>) -> Result<()> {
        let launch = Launch::new(self.grid, &self.arguments);
        match error {
            Some(error) => Err(out_of_bounds(&self.name, &self.sites, &launch, error)),
            None => {
                if let Some(proof) = self.proof {
                    proof.holds(&self.cache);
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checked({}, {:?})", self.name, self.grid)
    }
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
    /// Whether a GPU could tell it only after the launch was queued.
    fn is_found_by_programs(&self) -> bool {
        match self {
            Self::Launch(error) => matches!(error, LaunchError::OutOfBounds(_)),
            Self::Fault(fault) => !matches!(fault.kind, FaultKind::Launch(_)),
        }
    }

    fn explain(self, name: &str, sites: &Sites, launch: &Launch<'_>) -> Error {
        match self {
            Self::Fault(fault) => fault_error(fault, launch.grid),
            Self::Launch(LaunchError::OutOfBounds(error)) => {
                out_of_bounds(name, sites, launch, error)
            }
            Self::Launch(source) => launch_error(name, source),
        }
    }
}

fn host_arguments<'b>(
    arguments: &'b mut [Bound<'_>],
    list: &mut SmallVec<[Argument<'b>; FEW]>,
) -> Result<()> {
    for argument in arguments {
        list.push(match argument {
            Bound::Read(_, Storage::Host(memory, _)) => Argument::Read(memory.bytes()),
            Bound::ReadWrite(_, Storage::Host(memory, _)) => {
                Argument::ReadWrite(memory.bytes_mut())
            }
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

/// An access out of bounds or a failed assertion in the words of the source.
fn out_of_bounds(name: &str, sites: &Sites, launch: &Launch<'_>, error: BoundsError) -> Error {
    let site = sites.get(error.site);
    if let Some((loc, Accessed::Assertion(message))) = site {
        return Error::Assertion {
            kernel: name.to_string(),
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
        kernel: name.to_string(),
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
