//! The code of a launch that does not run.

use std::sync::Arc;

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::Bounds;

use super::check_places;
use crate::arguments::{Arguments, BoundArguments, Parameters};
use crate::bound::Bound;
use crate::device::Device;
use crate::error::Result;
use crate::inspection::Inspection;
use crate::kernel::Kernel;
use crate::placement::{LaunchGrid, Stated};
use crate::stream::Queue;

impl<P> Kernel<P> {
    /// The code that [`Kernel::launch`] with these arguments would run now, with all that is known of them; after launches whose
    /// rows end in four other parts of their tile, what it would run in a process of its own. Nothing
    /// runs; on a GPU the code is compiled and loaded, if it is not there yet.
    ///
    /// # Errors
    /// What is wrong with the kernel, the device or the arguments.
    pub fn inspect<'a, const COUNT: usize>(
        &self,
        queue: &impl Queue,
        grid: impl LaunchGrid,
        arguments: impl Arguments<'a, P, COUNT>,
    ) -> Result<Inspection>
    where
        P: Parameters<COUNT>,
    {
        let (device, _) = queue.place();
        let bound = BoundArguments::of(arguments);
        let stated = Stated(grid.stated()?);
        match self.smaller_for(device, &stated, &bound) {
            Some(smaller) => smaller.inspect_bound(device, stated, &bound),
            None => self.inspect_bound(device, stated, &bound),
        }
    }

    fn inspect_bound(
        &self,
        device: &Device,
        grid: Stated,
        bound: &BoundArguments<'_>,
    ) -> Result<Inspection> {
        let (grid, passed) = self.fitting(device, grid, bound)?;
        let (launch, choices) = (Launch::new(grid, &passed), &bound.choices);
        let made;
        let (request, place) = match &self.ready {
            Some(ready) => {
                let request = ready.request(self.name(), device, &launch, choices)?;
                (request, ready.place(device, Some(&launch)))
            }
            None => {
                made = self.request(&launch, choices);
                (&made, made.place(device, Some(&launch)))
            }
        };
        let bounds = match place.is_proved && device.trusts_proofs() {
            true => Bounds::Unchecked,
            false => Bounds::Checked,
        };
        let runs = match device.gpu() {
            Some(_) => {
                let prepared = place.prepared(|| self.trace_with(choices))?;
                Some(Arc::clone(&prepared.code(device, bounds, &launch)?.runs))
            }
            None => None,
        };
        let asked = request.asked(bounds, self.trace_with(choices)?, &launch);
        Ok(Inspection::new(asked, device.target(), runs))
    }

    /// The grid and the arguments of a launch that does not run.
    pub(crate) fn fitting(
        &self,
        device: &Device,
        grid: impl LaunchGrid,
        bound: &BoundArguments<'_>,
    ) -> Result<(Grid, Vec<Passed>)> {
        let grid = self.placed(grid, bound)?;
        check_places(device, &bound.list)?;
        Ok((grid, bound.list.iter().map(Bound::passed).collect()))
    }
}
