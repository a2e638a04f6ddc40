//! The steps of a scan across registers, lanes and warps. The layout stays as it is.

use super::LayoutError;
use super::linear::{Holder, LinearLayout, Point};
use crate::ir::{Direction, Order};
use crate::semantics::reduction::ReductionPlan;

/// What holds the index bits whose levels a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanLevels {
    /// A bit of the register number.
    Register(u32),
    /// A bit of the lane number.
    Lane(u32),
    /// Bits of the warp number, the first level first: one meeting of the warps does them all.
    Warps(Vec<u32>),
}

/// One step of a scan, in the order of the levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanStep {
    /// The levels.
    pub levels: ScanLevels,
    /// The register, lane and warp bits of the levels below: with all of them at their last value
    /// is the last prefix of a half.
    pub passed: Point,
}

impl ScanStep {
    /// The register that holds the last prefix of the lower half which `register` takes; `None` if it
    /// is itself in a lower half as far as its number says.
    pub fn register(&self, register: u32, direction: Direction) -> Option<u32> {
        let level = match self.levels {
            ScanLevels::Register(bit) => 1 << bit,
            ScanLevels::Lane(_) | ScanLevels::Warps(_) => 0,
        };
        last_before(register, (level, self.passed.register), direction)
    }

    /// Whether a last prefix may be in another warp than who takes it.
    pub fn passes_warps(&self) -> bool {
        self.passed.warp != 0 || matches!(self.levels, ScanLevels::Warps(_))
    }

    /// The lane and warp bits that do not vary among the threads with last prefixes of lower halves.
    pub fn fixed(&self, layout: &LinearLayout) -> Point {
        let zeros = |columns: &[u64]| {
            let bits = columns.iter().enumerate();
            bits.fold(0, |mask, (bit, &column)| {
                mask | u32::from(column == 0) << bit
            })
        };
        let level = match self.levels {
            ScanLevels::Lane(bit) => 1 << bit,
            ScanLevels::Register(_) | ScanLevels::Warps(_) => 0,
        };
        Point {
            register: 0,
            lane: self.passed.lane | level | zeros(layout.lane_columns()),
            warp: self.passed.warp | zeros(layout.warp_columns()),
        }
    }

    /// The same for a lane.
    pub fn lane(&self, lane: u32, direction: Direction) -> Option<u32> {
        let level = match self.levels {
            ScanLevels::Lane(bit) => 1 << bit,
            ScanLevels::Register(_) | ScanLevels::Warps(_) => 0,
        };
        last_before(lane, (level, self.passed.lane), direction)
    }
}

/// `bits` of a number at the values that come last.
pub fn last(bits: u32, direction: Direction) -> u32 {
    match direction {
        Direction::Forward => bits,
        Direction::Reverse => 0,
    }
}

/// The last place of the lower half next to the upper half of a level that `place` is in; below the
/// level are the passed ones.
fn last_before(place: u32, (level, passed): (u32, u32), direction: Direction) -> Option<u32> {
    let upper = last(level, direction);
    let before = place & !(passed | level) | last(passed, direction) | level & !upper;
    (place & level == upper).then_some(before)
}

/// The steps of a scan along `axis`; `None` when a bit of the axis has no single holder.
///
/// # Errors
/// When the axis is out of range.
pub fn scan_steps(
    layout: &LinearLayout,
    axis: usize,
) -> Result<Option<Vec<ScanStep>>, LayoutError> {
    let mask = layout.dim_mask(axis)?;
    let mut steps: Vec<ScanStep> = Vec::new();
    let mut passed = Point {
        register: 0,
        lane: 0,
        warp: 0,
    };
    let plan = ReductionPlan::new(Order::Tree, 1 << layout.dim_bits()[axis]);
    for bit in plan.bits {
        let before = passed;
        let levels = match layout.holder(bit + mask.trailing_zeros()) {
            Holder::Register(bit) => {
                passed.register |= 1 << bit;
                ScanLevels::Register(bit)
            }
            Holder::Lane(bit) => {
                passed.lane |= 1 << bit;
                ScanLevels::Lane(bit)
            }
            Holder::Warp(bit) => {
                passed.warp |= 1 << bit;
                if let Some(ScanStep {
                    levels: ScanLevels::Warps(bits),
                    ..
                }) = steps.last_mut()
                {
                    bits.push(bit);
                    continue;
                }
                ScanLevels::Warps(vec![bit])
            }
            Holder::Mixed => return Ok(None),
        };
        steps.push(ScanStep {
            levels,
            passed: before,
        });
    }
    Ok(Some(steps))
}
