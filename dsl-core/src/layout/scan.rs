//! The steps of a scan across registers, lanes and warps. The layout stays as it is.

use super::LayoutError;
use super::linear::{Holder, LinearLayout, Point};

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
    for bit in (0..64).filter(|bit| mask >> bit & 1 == 1) {
        let before = passed;
        let levels = match layout.holder(bit) {
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
