//! Kernels that are compiled for one kind of launches, which look nothing up.

use std::sync::{Arc, OnceLock};

use exactile_core::facts::Known;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::Bounds;

use crate::ahead::{Place, Request};
use crate::arguments::{Arguments, BoundArguments, Parameters};
use crate::bound::Choices;
use crate::compile::Prepared;
use crate::cuda::Words;
use crate::device::Device;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::launch::arguments_error;
use crate::placement::{LaunchGrid, Stated};
use crate::proofs::Reach;
use crate::slot::Slot;
use crate::warm::{Asked, Handed, Warm};

/// The code of launches of one kind on a device.
pub(crate) struct Ready {
    device: Device,
    request: Request,
    choices: Choices,
    slot: Arc<Slot<Prepared>>,
    /// A launch that is known to be in bounds: the first that was.
    proved: OnceLock<Reach>,
    /// The first launch that others may be like.
    warm: OnceLock<Arc<Warm>>,
}

impl<P> Kernel<P> {
    /// Compiles the kernel for launches like this one, which does not run: on this device, with the same optional arguments, whose
    /// addresses and integers are divisible by as many powers of two up to 16, and are 1 where they are 1 here. Launches of
    /// what this gives find their code without a lock or a look into tables, and others are errors.
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
    ) -> Result<Self>
    where
        P: Parameters<COUNT>,
    {
        let bound = BoundArguments::of(arguments);
        let stated = Stated(grid.stated()?);
        match self.smaller_for(device, &stated, &bound) {
            Some(smaller) => smaller.compile_bound(device, stated, bound),
            None => self.compile_bound(device, stated, bound),
        }
    }

    fn compile_bound(
        &self,
        device: &Device,
        grid: Stated,
        bound: BoundArguments<'_>,
    ) -> Result<Self> {
        let (grid, passed) = self.fitting(device, grid, &bound)?;
        let launch = Launch::new(grid, &passed);
        let request = self.request(&launch, &bound.choices);
        let place = request.place(device, None);
        let prepared = place.prepared(|| self.trace_with(&bound.choices))?;
        prepared.code(device, Bounds::Checked, &launch)?;
        if prepared.moved_by.is_some() && device.trusts_proofs() {
            prepared.code(device, Bounds::Unchecked, &launch)?;
        }
        let ready = Ready {
            device: device.clone(),
            slot: place.slot(),
            request,
            choices: bound.choices,
            proved: OnceLock::new(),
            warm: OnceLock::new(),
        };
        Ok(Self {
            ready: Some(Arc::new(ready)),
            ..self.clone()
        })
    }
}

impl Ready {
    /// One that a launch on a device is like; then `words` are those of its arguments.
    pub(crate) fn warm(
        &self,
        device: &Device,
        asked: Asked,
        handed: &Handed<'_, '_>,
        words: &mut Words,
    ) -> Option<Arc<Warm>> {
        let warm = self.warm.get().filter(|_| self.device.is_same(device))?;
        warm.is_like(asked, handed, words).then(|| Arc::clone(warm))
    }

    /// Keeps a launch, if it is the first one.
    pub(crate) fn keep(&self, make: impl FnOnce() -> Option<Warm>) {
        if self.warm.get().is_none()
            && let Some(warm) = make()
        {
            let _ = self.warm.set(Arc::new(warm));
        }
    }

    /// Where the code is, and whether a launch, if that is asked, is proved in bounds.
    pub(crate) fn place<'a>(
        &'a self,
        device: &'a Device,
        launch: Option<&Launch<'_>>,
    ) -> Place<'a> {
        let (request, slot) = (&self.request, &self.slot);
        let provable = self.slot.made().and_then(|prepared| prepared.moved_by);
        let Some((launch, numbers)) = launch.zip(provable) else {
            return Place::at(device, request, slot, false);
        };
        let is_proved = |reach: &Reach| reach.is_of(launch, numbers);
        if self.proved.get().is_some_and(is_proved) {
            return Place::at(device, request, slot, true);
        }
        let place = request.place_at(device, slot, launch);
        if place.is_proved {
            let _ = self.proved.set(Reach::of(launch, numbers));
        }
        place
    }

    /// What the code was made for.
    ///
    /// # Errors
    /// It may not run this launch.
    pub(crate) fn request(
        &self,
        name: &str,
        device: &Device,
        launch: &Launch<'_>,
        choices: &Choices,
    ) -> Result<&Request> {
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
        assert_eq!(
            compiled.len(),
            launch.arguments.len(),
            "broken invariant: parameters and choices fix the number of arguments"
        );
        let pairs = compiled.iter().zip(launch.arguments);
        match pairs.clone().position(|(&code, &found)| !fits(code, found)) {
            None => Ok(&self.request),
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
