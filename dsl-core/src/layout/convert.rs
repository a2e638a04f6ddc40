//! `Conversion`: how a tile moves from one layout to another, as data that a lowering walks.

use super::LayoutError;
use super::linear::LinearLayout;
use super::matrix::apply;
pub use super::shared::{SharedAccess, SharedPlan, SharedSide};
pub use super::shuffle::{LaneSource, ShufflePlan, ShuffleRound};
use crate::target::Target;

/// What a conversion may use, and how large its elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConversionLimits {
    /// The size of an element in bytes: 1, 2, 4 or 8. A Boolean moves as one byte.
    pub element_bytes: u32,
    /// The shared memory that the conversion may use, in bytes. Less than a tile means several
    /// rounds.
    pub scratch_bytes: u32,
    /// The widest access in bytes.
    pub vector_bytes: u32,
    /// The bytes that all banks deliver at once.
    pub bank_bytes: u32,
    /// The largest number of shuffled elements per lane for which shuffles are preferred to shared
    /// memory.
    pub max_shuffles: u32,
}

impl ConversionLimits {
    /// Limits that suit a GPU: up to 16 shuffled words.
    #[must_use]
    pub fn new(element_bytes: u32, target: &Target) -> ConversionLimits {
        let max_shuffles = 16 / element_bytes.div_ceil(4).max(1);
        ConversionLimits {
            element_bytes,
            scratch_bytes: target.gpu.exchange_bytes,
            vector_bytes: target.vector_bytes,
            bank_bytes: target.gpu.bank_bytes,
            max_shuffles,
        }
    }
}

/// A linear function over GF(2) of the lane and the warp.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadMap {
    /// What each lane bit adds, by exclusive or.
    pub lane: Vec<u32>,
    /// What each warp bit adds, by exclusive or.
    pub warp: Vec<u32>,
}

impl ThreadMap {
    /// The value in one lane of one warp.
    #[must_use]
    pub fn apply(&self, lane: u32, warp: u32) -> u32 {
        let sum = |columns: &[u32], input: u32| {
            columns
                .iter()
                .enumerate()
                .filter(|(bit, _)| input >> bit & 1 == 1)
                .fold(0, |sum, (_, column)| sum ^ column)
        };
        sum(&self.lane, lane) ^ sum(&self.warp, warp)
    }

    /// Whether the value is zero everywhere.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.lane
            .iter()
            .chain(&self.warp)
            .all(|&column| column == 0)
    }

    /// The lane bits and the warp bits whose parity is bit `bit` of the value.
    #[must_use]
    pub fn parity_masks(&self, bit: u32) -> (u32, u32) {
        let mask = |columns: &[u32]| {
            columns
                .iter()
                .enumerate()
                .fold(0, |mask, (position, column)| {
                    mask | (column >> bit & 1) << position
                })
        };
        (mask(&self.lane), mask(&self.warp))
    }

    /// The bits that are not zero everywhere.
    #[must_use]
    pub fn support(&self) -> u32 {
        self.lane
            .iter()
            .chain(&self.warp)
            .fold(0, |bits, column| bits | column)
    }
}

/// How a tile moves between two layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Every lane already holds its elements: the source register of each destination register.
    Registers(Vec<u32>),
    /// Elements move within their warp.
    Shuffle(ShufflePlan),
    /// Elements move through shared memory.
    Shared(SharedPlan),
}

impl Conversion {
    /// Plans the move of a tile from `source` to `destination`: registers only where possible, then
    /// shuffles, then shared memory.
    ///
    /// # Errors
    /// When the tiles or the numbers of lanes and warps differ, or the limits cannot be met.
    pub fn plan(
        source: &LinearLayout,
        destination: &LinearLayout,
        limits: &ConversionLimits,
    ) -> Result<Conversion, LayoutError> {
        check_pair(source, destination)?;
        if let Some(plan) = ShufflePlan::plan(source, destination) {
            if let Some(registers) = plan.register_permutation() {
                return Ok(Conversion::Registers(registers));
            }
            if plan.shuffles() <= limits.max_shuffles {
                return Ok(Conversion::Shuffle(plan));
            }
        }
        SharedPlan::plan(source, destination, limits).map(Conversion::Shared)
    }

    /// Plans a move through shared memory, even where less would do.
    ///
    /// # Errors
    /// As for [`Conversion::plan`].
    pub fn plan_shared(
        source: &LinearLayout,
        destination: &LinearLayout,
        limits: &ConversionLimits,
    ) -> Result<SharedPlan, LayoutError> {
        check_pair(source, destination)?;
        SharedPlan::plan(source, destination, limits)
    }
}

fn check_pair(source: &LinearLayout, destination: &LinearLayout) -> Result<(), LayoutError> {
    if source.dim_bits() != destination.dim_bits() {
        return Err(LayoutError::ShapeMismatch {
            found: destination.shape(),
            expected: source.shape(),
        });
    }
    let places = [
        ("lane", source.lane_columns(), destination.lane_columns()),
        ("warp", source.warp_columns(), destination.warp_columns()),
    ];
    for (place, source, destination) in places {
        if source.len() != destination.len() {
            return Err(LayoutError::PlaceMismatch {
                place,
                found: destination.len(),
                expected: source.len(),
            });
        }
    }
    Ok(())
}

/// The images of a list of columns under a linear map, as 32-bit numbers.
pub(super) fn images(map: &[u64], columns: &[u64]) -> Vec<u32> {
    columns
        .iter()
        .map(|&column| apply(map, column) as u32)
        .collect()
}
