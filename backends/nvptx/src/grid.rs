//! How the programs of a grid map to thread blocks.

use exactile_core::ir::Grid;

/// The greatest extents of a launch grid.
pub(crate) const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// How the programs of a grid map to thread blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum GridMapping {
    /// Axis by axis, those of the first one some to a thread block; the second and third extent are at most 65535.
    #[default]
    Direct,
    /// One linear index, split by the extents that the launch passes: any grid.
    Linear,
}

impl GridMapping {
    /// What code for this grid needs: `Direct` where the device takes the extents axis by axis.
    pub fn of(grid: Grid) -> Self {
        let mut extents = grid.iter().zip(MAX_GRID);
        match extents.all(|(&extent, most)| extent <= most) {
            true => Self::Direct,
            false => Self::Linear,
        }
    }

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Linear => "linear",
        }
    }
}
