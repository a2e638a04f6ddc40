//! The options of a compilation as command-line arguments.

use clap::Args;
use exactile::{Bounds, Determinism, IntoGrid, Options, Schedule};

/// How kernels are compiled.
#[derive(Args, Clone)]
pub(crate) struct Settings {
    /// Which changes leave the bits alone: `exact`, `schedule_invariant`, `batch_invariant`,
    /// `run_to_run` or `not_guaranteed`
    #[arg(long, default_value = "exact", value_parser = determinism)]
    pub(crate) determinism: Determinism,
    /// Warps of a thread block, a power of two up to 32; chosen from the tiles when absent
    #[arg(long, value_parser = warps)]
    pub(crate) warps: Option<u32>,
    /// Thread blocks that a multiprocessor has registers for, at least; 0 leaves it to the assembler
    #[arg(long, default_value_t = 0)]
    pub(crate) occupancy: u32,
}

impl Settings {
    /// Checked code with these settings.
    pub(crate) fn options(&self) -> Options {
        Options {
            determinism: self.determinism,
            bounds: Bounds::Checked,
            schedule: Schedule {
                warps: self.warps,
                occupancy: self.occupancy,
                ..Schedule::default()
            },
        }
    }
}

pub(crate) fn determinism(text: &str) -> Result<Determinism, String> {
    const LEVELS: [Determinism; 5] = [
        Determinism::NotGuaranteed,
        Determinism::RunToRun,
        Determinism::BatchInvariant,
        Determinism::ScheduleInvariant,
        Determinism::Exact,
    ];
    LEVELS
        .into_iter()
        .find(|level| level.name() == text)
        .ok_or_else(|| {
            let names: Vec<&str> = LEVELS.iter().map(|level| level.name()).collect();
            format!("expected `{}`", names.join("`, `"))
        })
}

fn warps(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|warps: &u32| warps.is_power_of_two() && *warps <= exactile_core::target::MAX_WARPS)
        .ok_or_else(|| "expected a power of two up to 32".to_string())
}

/// Extents such as `8`, `8,4` or `8,4,2`.
pub(crate) fn grid(text: &str) -> Result<[u32; 3], String> {
    let extents: Vec<u64> = text
        .split(',')
        .map(|extent| extent.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| "expected extents such as `8` or `8,4`".to_string())?;
    let grid = match extents[..] {
        [x] => x.into_grid(),
        [x, y] => (x, y).into_grid(),
        [x, y, z] => (x, y, z).into_grid(),
        _ => {
            return Err(format!(
                "found {} extents, expected at most 3",
                extents.len()
            ));
        }
    };
    grid.map_err(|error| error.to_string())
}
