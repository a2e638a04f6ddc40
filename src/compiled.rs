//! Compiled kernels as values, whose launches look nothing up.

#![expect(
    unsafe_code,
    reason = "a launch without bounds checks is the caller's promise"
)]

use std::fmt;
use std::sync::{Arc, OnceLock};

use exactile_core::facts::Known;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::Bounds;
use smallvec::SmallVec;

use crate::ahead::{Place, Request};
use crate::arguments::{Arguments, BoundArguments, Parameters};
use crate::bound::{Bound, Choices, FEW};
use crate::compile::Prepared;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::kernel::Kernel;
use crate::launch::{Told, arguments_error, check_places, launch_from, run};
use crate::placement::LaunchGrid;
use crate::proofs::Reach;
use crate::slot::Slot;
use crate::stream::Queue;

/// A kernel that is compiled for a device and for arguments of some kind: [`Kernel::compile`] gives it. Its launches find their
/// code without a lock or a look into tables.
#[must_use = "a compiled kernel does nothing until it is launched"]
pub struct Compiled<P> {
    kernel: Kernel<P>,
    device: Device,
    request: Request,
    choices: Choices,
    slot: Arc<Slot<Prepared>>,
    /// A launch that is known to be in bounds: the first that was.
    proved: OnceLock<Reach>,
}

impl<P> Kernel<P> {
    /// Compiles the kernel for launches like this one, which does not run: with the same optional arguments, whose addresses and
    /// integers are divisible by as many powers of two up to 16, and are 1 where they are 1 here.
    ///
    /// # Errors
    /// What is wrong with the kernel, the device or the arguments.
    ///
    /// ```
    /// # use exactile::prelude::*;
    /// #[kernel]
    /// fn scale(x: PtrMut<f32>, factor: f32) {
    ///     let at = x + arange(0, 4);
    ///     store(at, load(at) * factor);
    /// }
    ///
    /// let device = Device::cpu();
    /// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
    /// let scale = scale().compile(&device, 1, (&mut x, 1.0))?;
    /// for factor in [2.0, 0.5, 8.0] {
    ///     scale.launch(&device, 1, (&mut x, factor))?;
    /// }
    /// assert_eq!(x.to_vec()?, [8.0, 16.0, 24.0, 32.0]);
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn compile<'a, const COUNT: usize>(
        &self,
        device: &Device,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<Compiled<P>>
    where
        P: Parameters<COUNT>,
    {
        let bound = BoundArguments::of(arguments);
        let grid = self.placed(grid, &bound)?;
        check_places(device, &bound.list)?;
        let passed: SmallVec<[Passed; FEW]> = bound.list.iter().map(Bound::passed).collect();
        let launch = Launch::new(grid, &passed);
        let request = self.request(&launch, &bound.choices);
        let slot = {
            let place = request.place(device, None);
            let prepared = place.prepared(|| self.trace_with(&bound.choices))?;
            prepared.code(device, Bounds::Checked, &launch)?;
            if prepared.is_provable && device.trusts_proofs() {
                prepared.code(device, Bounds::Unchecked, &launch)?;
            }
            place.into_slot()
        };
        Ok(Compiled {
            kernel: self.clone(),
            device: device.clone(),
            request,
            choices: bound.choices,
            slot,
            proved: OnceLock::new(),
        })
    }
}

impl<P> Compiled<P> {
    /// The kernel.
    pub fn kernel(&self) -> &Kernel<P> {
        &self.kernel
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// [`Kernel::launch`], for arguments like those that it was compiled for.
    ///
    /// # Errors
    /// Those of [`Kernel::launch`], and an argument of which less is known, another device, or another choice of optional
    /// arguments, than it was compiled for.
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
        self.start(queue, grid, &mut bound, Told::Stream).map(drop)
    }

    /// [`Kernel::run`], for arguments like those that it was compiled for.
    ///
    /// # Errors
    /// Those of [`Kernel::run`] and of [`launch`](Self::launch).
    pub fn run<'a, const COUNT: usize>(
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
        let failure = self.start(queue, grid, &mut bound, Told::Runner)?;
        let (device, stream) = queue.place();
        if device.is_recording() {
            return Ok(());
        }
        device.finish(stream)?;
        failure.map_or(Ok(()), |failure| failure.tell())
    }

    /// [`launch`](Self::launch) without bounds checks.
    ///
    /// # Safety
    /// As for [`Kernel::launch_unchecked`].
    ///
    /// # Errors
    /// Those of [`launch`](Self::launch).
    pub unsafe fn launch_unchecked<'a, const COUNT: usize>(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<()>
    where
        P: Parameters<COUNT>,
    {
        let (device, stream) = queue.place();
        let mut bound = BoundArguments::of(arguments);
        let grid = self.kernel.placed(grid, &bound)?;
        let mut passed: SmallVec<[Passed; FEW]> = SmallVec::new();
        passed.extend(bound.list.iter().map(Bound::passed));
        let launch = Launch::new(grid, &passed);
        self.expect_fitting(device, &launch, &bound.choices)?;
        if device.is_recording() {
            return Ok(());
        }
        let code = self.prepared()?.code(device, Bounds::Unchecked, &launch)?;
        let place = (stream, Told::Stream);
        // SAFETY: handed on to the caller.
        unsafe { run(device, place, code, &launch, &mut bound.list, None) }.map(drop)
    }

    fn start(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        bound: &mut BoundArguments<'_>,
        told: Told,
    ) -> Result<Option<Arc<Failure>>> {
        let (device, stream) = queue.place();
        let grid = self.kernel.placed(grid, bound)?;
        let mut passed: SmallVec<[Passed; FEW]> = SmallVec::new();
        passed.extend(bound.list.iter().map(Bound::passed));
        let launch = Launch::new(grid, &passed);
        self.expect_fitting(device, &launch, &bound.choices)?;
        if device.is_recording() {
            return Ok(None);
        }
        let reach = Reach::of(&launch);
        let is_proved = self.proved.get() == Some(&reach);
        let place = match is_proved {
            true => Place::at(device, &self.request, &self.slot, true),
            false => self.request.place_at(device, &self.slot, &reach),
        };
        if place.is_proved && !is_proved {
            let _ = self.proved.set(Reach::of(&launch));
        }
        let (put, prepared) = ((stream, told), self.prepared()?);
        launch_from(
            device,
            put,
            (&place, reach),
            prepared,
            &launch,
            &mut bound.list,
        )
    }

    fn prepared(&self) -> Result<&Prepared> {
        // It is made.
        self.slot.get_or_make(|| {
            let message = "broken invariant: a compiled kernel has no code";
            Err(Error::Invalid(message.to_string()))
        })
    }

    /// Whether the code may run this launch.
    fn expect_fitting(
        &self,
        device: &Device,
        launch: &Launch<'_>,
        choices: &Choices,
    ) -> Result<()> {
        let name = self.kernel.name();
        if !self.device.is_same(device) {
            return Err(arguments_error(
                name,
                format!(
                    "it was compiled for {}, found a launch on {device}: compile it for that device as well",
                    self.device
                ),
            ));
        }
        if *choices != self.choices {
            let message = "other optional arguments are passed, or tensors begin elsewhere, or other arrays are written in \
                           place, than it was compiled for: compile it for such arguments as well";
            return Err(arguments_error(name, message));
        }
        let compiled = self.request.known();
        if compiled.len() != launch.arguments.len() {
            let (expected, found) = (compiled.len(), launch.arguments.len());
            return Err(arguments_error(
                name,
                format!("it was compiled for {expected} arguments, found {found}"),
            ));
        }
        let pairs = compiled.iter().zip(launch.arguments);
        match pairs.clone().position(|(&code, &found)| !fits(code, found)) {
            None => Ok(()),
            Some(index) => Err(arguments_error(
                name,
                format!(
                    "argument {index} is {}, and it was compiled for {}: compile it for such arguments as well, or launch \
                     the kernel itself, which compiles for any",
                    words(Known::of(launch.arguments[index])),
                    words(Known::of_code(compiled[index]))
                ),
            )),
        }
    }
}

/// Whether all that code relies on is known of an argument.
fn fits(code: u8, found: Passed) -> bool {
    let found = Known::of(found);
    found.code() == code
        || match (Known::of_code(code), found) {
            (Known::Divisor(least), Known::Divisor(divisor)) => divisor >= least,
            (Known::Divisor(least), Known::One) => least == 1,
            (Known::One, Known::Divisor(_) | Known::One) => false,
        }
}

fn words(known: Known) -> String {
    match known {
        Known::One => "1".to_string(),
        Known::Divisor(divisor) => format!("a multiple of {divisor}"),
    }
}

impl<P> fmt::Debug for Compiled<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("kernel", &self.kernel)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
