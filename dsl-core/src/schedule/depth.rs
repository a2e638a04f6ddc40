//! How far ahead loops run: as far as they ask for and shared memory has room. That is known before anything is lowered.

use super::adjoin::adjoin;
use super::homes::homes;
use super::pipeline::{MAX_STAGES, pipeline};
use super::results::results;
use super::room::{deepest_fit, fits, stores_apart};
use super::rows::rows;
use super::strips::strips;
use super::waits::wait_late;
use super::{MayEnd, PlacedFunc};
use crate::diagnostic::Diagnostics;
use crate::facts::Facts;
use crate::ir::Func;
use crate::ir::op::Control;
use crate::target::{Options, Schedule, Target};

/// A function whose loops run ahead.
pub struct Staged {
    /// What each stage has made of it, from `rotate` on.
    pub stages: [PlacedFunc; 8],
    /// Whether shared memory has room for it, as far as is known.
    pub fits: bool,
}

impl Staged {
    /// The function after the last stage.
    pub fn last(&self) -> &PlacedFunc {
        let [.., last] = &self.stages;
        last
    }
}

/// Brings tiles to shared memory and starts loops ahead: those of what is `rotated`, or else of what is placed, as many
/// iterations as there is room for; as many as are stated, though, whether there is or not.
///
/// # Errors
/// None that the function did not have before.
pub fn staged(
    (rotated, placed): (Option<PlacedFunc>, PlacedFunc),
    target: &Target,
    (options, facts): (&Options, &Facts),
    may_end: MayEnd<'_>,
) -> Result<Staged, Diagnostics> {
    let stated = options.schedule.stages.map(i64::from);
    let most = stated.map_or_else(|| deepest(&placed), |_| MAX_STAGES);
    let mut depths = Depths {
        target,
        facts,
        schedule: &options.schedule,
        may_end,
        stated,
        least: if stated.is_some() { most } else { 1 },
        most,
    };
    if let Some(rotated) = rotated {
        // A loop whose iterations are one after the other is not to be rotated.
        let least = depths.least;
        depths.least = least.max(2);
        let found = depths.found(rotated)?;
        depths.least = least;
        if found.fits {
            return Ok(found);
        }
    }
    depths.found(placed)
}

struct Depths<'a> {
    target: &'a Target,
    facts: &'a Facts,
    schedule: &'a Schedule,
    may_end: MayEnd<'a>,
    stated: Option<i64>,
    least: i64,
    most: i64,
}

impl Depths<'_> {
    /// A function at the greatest depth for which there is room, or the least one.
    fn found(&self, func: PlacedFunc) -> Result<Staged, Diagnostics> {
        let housed = homes(func.clone(), &self.target.gpu, self.may_end)?;
        let left = results(housed.clone())?;
        let mut depth = self.most;
        loop {
            let stages = (self.stated, depth);
            let pipelined = pipeline(left.clone(), self.target, stages, self.may_end)?;
            let waiting = wait_late(pipelined.clone(), self.may_end)?;
            let adjoined = adjoin(&waiting)?;
            let (fits, last) = self.deepest(&waiting, adjoined.as_ref(), depth);
            match fits {
                Some(fits) if fits < depth => depth = fits,
                None if self.least < depth => depth = self.least,
                Some(_) | None => {
                    let adjoined = last.clone();
                    let fits = fits.is_some();
                    let copied = match fits {
                        true => self.with_rows(adjoined.clone())?,
                        false => adjoined.clone(),
                    };
                    let rolled = strips(copied.clone(), self.target, self.may_end)?;
                    return Ok(Staged {
                        stages: [
                            func, housed, left, pipelined, waiting, adjoined, copied, rolled,
                        ],
                        fits,
                    });
                }
            }
        }
    }

    /// Brings rows to shared memory where there is room beside what else is there, and for as many thread blocks as registers
    /// have room for: lanes that hold parts of long rows leave them for one with all warps.
    fn with_rows(&self, func: PlacedFunc) -> Result<PlacedFunc, Diagnostics> {
        let gpu = &self.target.gpu;
        let held = (gpu.most_warps / func.warps.max(1)).max(1);
        let blocks = self
            .schedule
            .occupancy
            .map_or(held, |asked| asked.max(held));
        let fits = |func: &PlacedFunc, blocks: u32| {
            let apart = stores_apart(func, self.facts);
            fits(func, self.target, &apart, gpu.shared_bytes_of(blocks))
        };
        rows(func, self.target, self.may_end, blocks, &fits)
    }

    /// The greatest depth up to this one for which there is room, and the function for which there is: with products side by
    /// side where both have room.
    fn deepest<'a>(
        &self,
        waiting: &'a PlacedFunc,
        adjoined: Option<&'a PlacedFunc>,
        depth: i64,
    ) -> (Option<i64>, &'a PlacedFunc) {
        if !waiting.has_buffers() {
            return (Some(depth), waiting);
        }
        // Loads of iterations that are one after the other have no slots, so that is another function.
        let least = depth.min(self.least.max(2));
        let fits = |func: &PlacedFunc| {
            let apart = stores_apart(func, self.facts);
            deepest_fit(func, self.target, &apart, (least, depth))
        };
        let plain = fits(waiting);
        match adjoined.map(|func| (fits(func), func)) {
            Some((found, func)) if found.is_some() && found >= plain => (found, func),
            Some(_) | None => (plain, waiting),
        }
    }
}

/// The most stages that a loop of a function asks for, of those that there are.
fn deepest(func: &Func) -> i64 {
    let insts = func.all_insts().into_iter();
    let stages = insts.map(|inst| match func.op(inst).control() {
        Some(Control::For(op)) => op.stages.min(MAX_STAGES),
        Some(Control::While(_) | Control::If(_)) | None => 1,
    });
    stages.max().unwrap_or(1)
}
