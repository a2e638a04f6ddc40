//! A launch: code found or made for arguments like these, run, and its errors explained.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

mod checked;
mod explain;
mod host;
mod inspect;
mod printing;

use std::sync::Arc;

use exactile_core::lang::{KernelIdentity, is_tracing};
use exactile_core::launch::{Launch, LaunchError, Passed};
use exactile_core::target::Bounds;
use exactile_core::verify::BlockFunc;
use smallvec::SmallVec;

use crate::ahead::{Needed, Proves, Request};
use crate::arguments::{Arguments, BoundArguments, Parameters};
use crate::bound::{Bound, Choices, FEW};
use crate::cache::Identity;
use crate::capture;
use crate::code::{Code, Runs};
use crate::compile::Prepared;
use crate::compiled::Ready;
use crate::cuda::Words;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::{Failure, Own};
use crate::hooks::LaunchInfo;
use crate::kernel::Kernel;
use crate::placement::{LaunchGrid, Stated};
use crate::profile::Label;
use crate::stream::Queue;
use crate::warm::{Asked, Handed, Warm};
use host::run_on_host;
use printing::run_and_print;

pub(crate) use checked::Checked;
pub(crate) use explain::out_of_bounds;
pub(crate) use host::{host_bytes, run_captured};

impl<P> Kernel<P> {
    /// Runs the kernel over `grid`, one program for each point, or `()` for the grid that it states, with every access checked, and waits for the end of
    /// all that is in the queue.
    ///
    /// # Errors
    /// Those of [`Kernel::launch`], and what the programs of this run do wrong, which nobody else is told. Errors of
    /// earlier launches stay for who waits for the stream.
    pub fn run<'a, const COUNT: usize>(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<()>
    where
        P: Parameters<COUNT>,
    {
        let (device, stream) = queue.place();
        let mut bound = BoundArguments::default();
        arguments.bind_all(&mut bound);
        let failure = self.start((device, stream), grid, &mut bound, Told::Runner)?;
        if device.is_recording() {
            return Ok(());
        }
        device.finish(stream)?;
        failure.map_or(Ok(()), |failure| failure.tell())
    }

    /// Puts the kernel over `grid`, one program for each point, with every access checked, into a [`Stream`], or into
    /// the default one of a [`Device`], and returns.
    ///
    /// The first access out of bounds is reported with its source line, program
    /// and index: of the least program that has one, the same in every run. What other programs wrote
    /// stays. Of several errors in a loop a GPU may report another one than the CPU. Accesses through tensors that are
    /// arguments are in bounds by construction, unless the kernel takes parts of them. Where accesses do not depend on loaded numbers, a launch that has ended without an error
    /// proves later ones that have the same grid, the same lengths, and the same values of the scalars that accesses and assertions follow from: these skip the checks.
    ///
    /// A kernel that prints is waited for, and its errors come here; see
    /// [`device_print`](crate::prelude::device_print).
    ///
    /// The first launch with a configuration compiles. An empty grid does nothing. Where two
    /// programs write one element, its value is unspecified.
    ///
    /// # Errors
    /// Here, what is wrong with the kernel, the device or the arguments. What the programs do wrong, such as an access
    /// out of bounds, is told once, by what waits for them next: [`Stream::synchronize`], [`Device::synchronize`], or
    /// a read of what they wrote, such as [`Buffer::to_vec`](crate::Buffer::to_vec). Of several such errors in a
    /// stream the first one is told.
    ///
    /// [`Stream`]: crate::Stream
    /// [`Stream::synchronize`]: crate::Stream::synchronize
    #[doc = include_str!("examples/launch.md")]
    pub fn launch<'a, const COUNT: usize>(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<()>
    where
        P: Parameters<COUNT>,
    {
        let mut bound = BoundArguments::default();
        arguments.bind_all(&mut bound);
        let told = Told::Stream;
        self.start(queue.place(), grid, &mut bound, told).map(drop)
    }

    /// Puts a checked launch into a stream. What became of it, unless nothing can.
    pub(crate) fn start(
        &self,
        place: (&Device, usize),
        grid: impl LaunchGrid,
        bound: &mut BoundArguments<'_>,
        told: Told,
    ) -> Result<Option<Arc<Failure>>> {
        // SAFETY: every access is checked.
        unsafe { self.start_with(Bounds::Checked, place, grid, bound, told) }
    }

    /// Puts a launch into a stream. Code that checks every access is not used where an earlier launch has shown that it
    /// need not.
    ///
    /// # Safety
    /// As for [`launch_unchecked`](Self::launch_unchecked), with unchecked bounds.
    unsafe fn start_with(
        &self,
        bounds: Bounds,
        (device, stream): (&Device, usize),
        grid: impl LaunchGrid,
        bound: &mut BoundArguments<'_>,
        told: Told,
    ) -> Result<Option<Arc<Failure>>> {
        let stated = Stated(grid.stated()?);
        if let Some(smaller) = self.smaller_for(device, &stated, bound) {
            // SAFETY: handed on to the caller.
            return unsafe { smaller.start_with(bounds, (device, stream), stated, bound, told) };
        }
        let asked = Asked {
            bounds,
            determinism: self.determinism,
            grid: self.placed(stated, bound)?,
        };
        let kernel = (self.source.identity(), self.ready.as_deref());
        // SAFETY: handed on to the caller.
        if let Some(put) = unsafe { put_again((device, stream), kernel, asked, bound) } {
            return put.map(|()| None);
        }
        // SAFETY: handed on to the caller.
        unsafe { self.start_new(asked, (device, stream), bound, told) }
    }

    /// [`start_with`](Self::start_with) of a launch that is like none that was kept.
    ///
    /// # Safety
    /// As there.
    unsafe fn start_new(
        &self,
        asked: Asked,
        (device, stream): (&Device, usize),
        bound: &mut BoundArguments<'_>,
        told: Told,
    ) -> Result<Option<Arc<Failure>>> {
        let (arguments, choices) = (bound.list.as_mut_slice(), &bound.choices);
        let mut passed: SmallVec<[Passed; FEW]> = SmallVec::new();
        passed.extend(arguments.iter().map(Bound::passed));
        let launch = Launch::new(asked.grid, &passed);
        let made;
        let request = match &self.ready {
            Some(ready) => ready.request(self.name(), device, &launch, choices)?,
            None => {
                made = self.request(&launch, choices);
                &made
            }
        };
        let is_checked = asked.bounds == Bounds::Checked;
        if device.is_recording() {
            let needed = match is_checked {
                true => Needed::Safe,
                false => Needed::Unchecked,
            };
            device.note(request.job(&launch, self.tracer(choices.clone()), needed));
            return Ok(None);
        }
        let checked = is_checked.then_some(&launch);
        let place = match &self.ready {
            Some(ready) => ready.place(device, checked),
            None => request.place(device, checked),
        };
        let prepared = place.prepared(|| self.trace_with(choices))?;
        let is_proved = place.is_proved && device.trusts_proofs();
        let bounds = match is_proved {
            true => Bounds::Unchecked,
            false => asked.bounds,
        };
        let code = prepared.code(device, bounds, &launch)?;
        let (place, launch) = (&place, &launch);
        let proves = match bounds {
            Bounds::Checked => prepared.moved_by.map(|numbers| Proves {
                place,
                launch,
                numbers,
            }),
            Bounds::Unchecked => None,
        };
        // SAFETY: every access is checked, or to a tile of a tensor that this launch has shown to lie in its memory; or a
        // checked launch of the same IR had every access in bounds, with the same grid, lengths and those scalars that its
        // accesses follow from, which depend on nothing else; or it is handed on to the caller.
        let failure = unsafe { run(device, (stream, told), code, launch, arguments, proves) }?;
        if only_runs(device) && Warm::can_be_of(launch, code) {
            let counts = prepared.moved_by.filter(|_| is_proved);
            let warm = || Warm::of(asked, choices, launch, code, counts);
            match &self.ready {
                Some(ready) => ready.keep(warm),
                None => place.keep(launch, warm),
            }
        }
        Ok(failure)
    }

    /// [`Kernel::launch`] without bounds checks.
    ///
    /// # Safety
    /// Every access of every program that its mask allows lies inside its argument; where the launch is captured, in each
    /// replay of the [`Graph`](crate::Graph).
    pub unsafe fn launch_unchecked<'a, const COUNT: usize>(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<()>
    where
        P: Parameters<COUNT>,
    {
        let mut bound = BoundArguments::default();
        arguments.bind_all(&mut bound);
        let (bounds, told) = (Bounds::Unchecked, Told::Stream);
        // SAFETY: handed on to the caller.
        unsafe { self.start_with(bounds, queue.place(), grid, &mut bound, told) }.map(drop)
    }

    pub(crate) fn request(&self, launch: &Launch<'_>, choices: &Choices) -> Request {
        let options = self.options(Bounds::Checked);
        let kernel = Identity::Function {
            kernel: self.source.identity().clone(),
            choices: choices.clone(),
        };
        Request::new(kernel, options, launch)
    }

    /// The trace, for another thread.
    fn tracer(&self, choices: Choices) -> impl Fn() -> Result<BlockFunc> + Send + Sync + 'static {
        let kernel = Kernel {
            source: self.source.erased(),
            determinism: self.determinism,
            missing: None,
            place: None,
            smaller: None,
            ready: None,
        };
        move || kernel.trace_with(&choices)
    }
}

/// A body describes the work of a kernel; it is no place to do any.
#[inline]
pub(crate) fn refuse_in_trace(kernel: &str) -> Result<()> {
    match is_tracing() {
        true => Err(launched_in_trace(kernel)),
        false => Ok(()),
    }
}

#[cold]
fn launched_in_trace(kernel: &str) -> Error {
    arguments_error(
        kernel,
        "a kernel cannot be launched while the body of one is traced on this thread",
    )
}

/// Whether a launch is neither written down nor told to anybody.
#[inline]
fn only_runs(device: &Device) -> bool {
    !device.is_recording() && !capture::is_active() && device.hooks().are_none()
}

/// Puts a launch into a stream that is like one that was kept, of this kernel or of what is compiled of it; nothing where there is
/// none, or more is to be done for a launch.
///
/// # Safety
/// Of a launch without checks, as for [`Kernel::launch_unchecked`].
unsafe fn put_again(
    (device, stream): (&Device, usize),
    (kernel, ready): (&KernelIdentity, Option<&Ready>),
    asked: Asked,
    bound: &BoundArguments<'_>,
) -> Option<Result<()>> {
    let gpu = device.gpu()?;
    if !only_runs(device) {
        return None;
    }
    let handed = Handed {
        bound,
        gpu,
        trusts_proofs: device.trusts_proofs(),
    };
    let mut words = Words::default();
    let warm = match ready {
        Some(ready) => ready.warm(device, asked, &handed, &mut words),
        None => device.cache().warm(kernel, asked, &handed, &mut words),
    }?;
    let (code, on_gpu) = (warm.code(), warm.on_gpu()?);
    let memories = bound.list.iter().filter_map(Bound::uses);
    let label = || {
        let passed: Vec<Passed> = bound.list.iter().map(Bound::passed).collect();
        Label::of_launch(&code.name, &Launch::new(asked.grid, &passed))
    };
    // SAFETY: the launch that was kept had no error before its code ran, and what it was compared by decides that: its arguments
    // fit, with the same code, and no memory that is written meets other memory. Where accesses are not the caller's promise, the
    // code had them in bounds because of the same grid, lengths and numbers.
    let queued = unsafe { gpu.launch_placed(stream, on_gpu, &mut words, memories, label) };
    Some(queued.map_err(|error| device_error(&code.name, &error)))
}

/// Puts code that checks every access into a stream. Once it has ended without an error, it proves what `proves` says.
pub(crate) fn run_checked(
    device: &Device,
    place: (usize, Told),
    prepared: &Prepared,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<Proves<'_>>,
) -> Result<Option<Arc<Failure>>> {
    let code = prepared.code(device, Bounds::Checked, launch)?;
    // SAFETY: every access is checked, or to a tile of a tensor that this launch has shown to lie in its
    // memory.
    unsafe { run(device, place, code, launch, arguments, proves) }
}

/// Who is told the error of a launch first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    /// The one who runs it, and waits for it.
    Runner,
    /// Who waits for its stream, or reads what it wrote.
    Stream,
}

/// Puts compiled code into a stream; on the host it has ended when this returns. What became of it, unless nothing can.
///
/// # Safety
/// Accesses that the code does not check lie inside their arguments.
unsafe fn run(
    device: &Device,
    (stream, told): (usize, Told),
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<Proves<'_>>,
) -> Result<Option<Arc<Failure>>> {
    check_places(device, arguments)?;
    if launch.grid.contains(&0) {
        return Ok(None);
    }
    if capture::is_active() {
        return capture::add((device, stream), told, code, launch).map(|()| None);
    }
    let place = (stream, told);
    let info = || LaunchInfo::of(code, stream, launch);
    device.hooks().around(info, || {
        // SAFETY: handed on to the caller.
        unsafe {
            match code.prints.is_empty() {
                true => put(device, place, code, launch, arguments, proves),
                false => run_and_print(device, place, code, launch, arguments, proves),
            }
        }
    })
}

/// [`run`] with the arguments that the code takes, over a grid that is not empty.
///
/// # Safety
/// As for [`run`].
unsafe fn put(
    device: &Device,
    (stream, told): (usize, Told),
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<Proves<'_>>,
) -> Result<Option<Arc<Failure>>> {
    if let (Runs::Gpu(gpu_code), Some(gpu)) = (&*code.runs, device.gpu()) {
        let checked = gpu_code
            .has_bounds_checks()
            .then(|| Box::new(Checked::new(device, code, launch, proves, told)));
        let failure = checked.as_ref().map(|checked| Arc::clone(&checked.failure));
        let memories = arguments.iter().filter_map(Bound::uses);
        let named = (&code.name, launch);
        // SAFETY: handed on to the caller; the memory is that of buffers of the device.
        let queued = unsafe { gpu.launch(stream, gpu_code, named, memories, checked) };
        // Where it is queued and something behind it is not, its end is still seen.
        let is_pending = |failure: &&Arc<Failure>| queued.is_ok() || Arc::strong_count(failure) > 1;
        if let Some(failure) = failure.as_ref().filter(is_pending) {
            note_writer(arguments, failure);
        }
        queued.map_err(|error| device_error(&code.name, &error))?;
        return Ok(failure);
    }
    let label = || Label::of_launch(&code.name, launch);
    let failure = device.watch().around(stream, label, || {
        // SAFETY: handed on to the caller.
        unsafe { run_on_host(device, code, launch, arguments) }
    })?;
    match &failure {
        None => {
            if let Some(proves) = proves {
                proves.prove();
            }
        }
        Some(failure) => {
            note_writer(arguments, failure);
            if told == Told::Stream {
                device.fail(stream, failure);
            }
        }
    }
    Ok(failure)
}

pub(crate) fn note_writer(arguments: &[Bound<'_>], failure: &Arc<Failure>) {
    Own::note(failure);
    for argument in arguments {
        argument.note_writer(failure);
    }
}

pub(crate) fn check_places(device: &Device, arguments: &[Bound<'_>]) -> Result<()> {
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(found) = argument.elsewhere(device) {
            return Err(Error::Placement {
                index,
                found,
                expected: device.to_string(),
            });
        }
    }
    Ok(())
}

/// The arguments do not fit the kernel.
pub(crate) fn arguments_error(kernel: &str, message: impl Into<String>) -> Error {
    launch_error(kernel, LaunchError::Arguments(message.into()))
}

#[cold]
fn device_error(kernel: &str, error: &Error) -> Error {
    launch_error(kernel, LaunchError::Device(error.to_string()))
}

fn launch_error(kernel: &str, source: LaunchError) -> Error {
    Error::Launch {
        kernel: kernel.to_string(),
        source,
    }
}
