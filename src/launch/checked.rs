//! Checked launches on a GPU, whose ends are seen later.

use std::fmt;
use std::sync::Arc;

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use exactile_core::target::BoundsError;
use smallvec::SmallVec;

use super::{Told, out_of_bounds};
use crate::ahead::{Proof, Proves};
use crate::bound::FEW;
use crate::cache::Cache;
use crate::code::{Code, Sites};
use crate::device::Device;
use crate::failure::Failure;

/// What a checked launch on a GPU needs at its end.
pub(crate) struct Checked {
    cache: Arc<Cache>,
    name: Arc<str>,
    sites: Arc<Sites>,
    grid: Grid,
    arguments: SmallVec<[Passed; FEW]>,
    proof: Option<Proof>,
    told: Told,
    pub(super) failure: Arc<Failure>,
}

impl Checked {
    pub(super) fn new(
        device: &Device,
        code: &Code,
        launch: &Launch<'_>,
        proves: Option<Proves<'_>>,
        told: Told,
    ) -> Self {
        Self {
            cache: Arc::clone(device.cache()),
            name: Arc::clone(&code.name),
            sites: Arc::clone(&code.sites),
            grid: launch.grid,
            arguments: launch.arguments.into(),
            proof: proves.map(|proves| proves.proof()),
            told,
            failure: Arc::default(),
        }
    }

    /// The launch has ended, with this access out of bounds if any. Its failure if who waits for its stream is to be
    /// told.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "a GPU ends it"))]
    pub(crate) fn ended(self: Box<Self>, error: Option<BoundsError>) -> Option<Arc<Failure>> {
        let Some(error) = error else {
            self.failure.settle(Ok(()));
            if let Some(proof) = self.proof {
                proof.holds(&self.cache);
            }
            return None;
        };
        let launch = Launch::new(self.grid, &self.arguments);
        let error = out_of_bounds(&self.name, &self.sites, &launch, error);
        self.failure.settle(Err(error));
        (self.told == Told::Stream).then_some(self.failure)
    }
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Checked({}, {:?})", self.name, self.grid)
    }
}
