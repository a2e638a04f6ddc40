//! Smaller tiles for small problems, of the kernels that state their tiles as the most: `#[kernel(BLOCK = ..=256)]`.

use std::sync::Arc;

use exactile_core::ir::Grid;
use exactile_core::lang::LoopOrder;
use exactile_core::target::Determinism;

use crate::arguments::BoundArguments;
use crate::configure::Configured;
use crate::device::Device;
use crate::kernel::Kernel;
use crate::panics::guarded;
use crate::placement::{HostArguments, Stated};

/// The kernel with smaller tiles for arguments and so many multiprocessors, where that keeps more of them busy.
pub(crate) type Smaller<P> =
    Arc<dyn Fn(usize, &BoundArguments<'_>) -> Option<Kernel<P>> + Send + Sync>;

/// The part of the least time from which on a larger tile is better: it loads less for what it computes.
const NEAR: f64 = 1.1;

/// The time of a launch whose programs take it in turns on the multiprocessors, as a part of that of one program for all.
fn time(programs: usize, multiprocessors: usize) -> f64 {
    programs.div_ceil(multiprocessors) as f64 / programs as f64
}

fn programs(grid: Grid) -> usize {
    grid.iter()
        .fold(1, |all, &extent| all.saturating_mul(extent as usize))
}

/// The place of the numbers of programs, of which the first is that of the largest tile, that a launch takes: of those in
/// little more than the least time the fewest programs, and of these the first.
fn chosen(counts: &[usize], multiprocessors: usize) -> Option<usize> {
    let time = |count: usize| time(count, multiprocessors);
    let counts = counts.iter().enumerate().filter(|(_, it)| **it > 0);
    let least = counts
        .clone()
        .map(|(_, it)| time(*it))
        .min_by(f64::total_cmp)?;
    let near = counts.filter(|(_, it)| time(**it) <= least * NEAR);
    near.min_by_key(|(_, count)| **count)
        .map(|(place, _)| place)
}

impl<P> Kernel<P> {
    /// The kernel with smaller tiles, where a launch on a device leaves the grid to it.
    pub(crate) fn smaller_for(
        &self,
        device: &Device,
        grid: &Stated,
        bound: &BoundArguments<'_>,
    ) -> Option<Self> {
        let smaller = self.smaller.as_ref().filter(|_| grid.0.is_none())?;
        smaller(device.multiprocessors(), bound)
    }
}

impl<P: 'static, C: Copy + Send + Sync + 'static> Configured<P, C> {
    /// How the kernel is made smaller, where numbers are left open that have smaller ones beside them, and the level
    /// promises nothing that would follow from them.
    pub(crate) fn smaller(&self, order: LoopOrder) -> Option<Smaller<P>> {
        let keeps_bits = match self.determinism {
            Determinism::NotGuaranteed => true,
            Determinism::BatchInvariant => false,
            Determinism::ScheduleInvariant | Determinism::Exact => order == LoopOrder::Whole,
        };
        let metas = self.definition.metas.iter().enumerate();
        let open = metas.filter(|(place, _)| !self.is_set(*place));
        let open: Vec<_> = open.filter_map(|(_, meta)| meta.smaller).collect();
        let place = self
            .definition
            .place
            .filter(|_| keeps_bits && !open.is_empty())?;
        let (definition, level) = (self.definition.clone(), self.determinism);
        Some(Arc::new(move |multiprocessors, bound| {
            let (name, own) = (definition.name, definition.config);
            // What the kernel refuses for these arguments has no programs; who places the launch says why.
            let count = |config: &C| {
                let grid = || place(config, &mut HostArguments::new(name, bound));
                let grid = guarded(String::new, grid).ok().flatten();
                grid.map_or(0, programs)
            };
            if !(1..multiprocessors).contains(&count(&own)) {
                return None;
            }
            let mut configs = vec![own];
            // Where tiles are equally many, the numbers that come first stay large.
            for smaller in open.iter().rev() {
                let others: Vec<C> = configs.iter().flat_map(smaller).collect();
                configs.extend(others);
            }
            let counts: Vec<usize> = configs.iter().map(count).collect();
            let at = chosen(&counts, multiprocessors).filter(|at| *at > 0)?;
            let mut smaller = Self::new(definition.clone());
            smaller.determinism = level;
            smaller.set_all(configs[at]);
            Some(smaller.kernel().clone())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_keep_multiprocessors_busy() {
        // Tiles of 128 by 256, 128 by 128, 64 by 256 and 64 by 128 of a square of 1,024, and of 1,536.
        assert_eq!(chosen(&[32, 64, 64, 128], 132), Some(3));
        assert_eq!(chosen(&[72, 144, 144, 288], 132), Some(3));
        // One of 2,048 has hardly more to gain.
        assert_eq!(chosen(&[128, 256, 256, 512], 132), Some(0));
        assert_eq!(chosen(&[1, 4, 4, 0], 3), Some(1));
        assert_eq!(chosen(&[1, 0, 0], 132), Some(0));
        assert_eq!(chosen(&[0, 0], 132), None);
    }
}
