//! Faults planted one at a time: every instruction that orders something is left out or weakened in turn, in
//! what kernels and filetests are lowered to, and every result of a schedule pass, and the boxes of arrays, are changed.
//!
//! A fault counts as found when the verifier, the replay of buffers or the interpreter of lanes reports it, or
//! when results differ. One that nobody finds shows an instruction that need not be there, or a hole in the
//! checks. Runs that never come to an instruction say nothing about it.

mod changes;
mod kernels;
mod lanes;
mod report;
mod spared;
mod subject;
mod tiles;

use rayon::prelude::*;

use super::filetests::{Ready, ready};
pub use report::{Finder, Report, Survivor};
use subject::Subject;

/// Plants every fault there is in functions whose names hold `only`, on all cores; of faults that are alike one, which the seed
/// decides.
///
/// # Panics
/// When a kernel of the corpus cannot be traced or lowered.
pub fn run(seed: u64, only: &str) -> Report {
    let mut all = corpus();
    all.retain(|ready| ready.name.contains(only));
    let mut pairs: Vec<(&Ready, u32)> = Vec::new();
    for ready in &all {
        pairs.extend(ready.warps.iter().map(|&warps| (ready, warps)));
    }
    let reports: Vec<Report> = pairs
        .par_iter()
        .map(|&(ready, warps)| planted(ready, warps, seed))
        .collect();
    let mut report = Report {
        seed,
        ..Report::default()
    };
    for one in reports {
        report.append(one);
    }
    let spared = |fault: &str, function: &str| {
        let mut spared = report.spared.iter();
        spared.any(|it| it.fault == fault && it.function == function)
    };
    if only.is_empty() {
        report.broken.extend(spared::stale(&spared));
    }
    report
}

/// The kernels and the filetests.
fn corpus() -> Vec<Ready> {
    let mut all = kernels::kernels();
    all.extend(ready());
    all
}

fn planted(ready: &Ready, warps: u32, seed: u64) -> Report {
    let mut report = Report::default();
    match Subject::new(ready, warps, seed) {
        Ok(subject) => {
            lanes::plant(&subject, &mut report);
            tiles::plant(&subject, &mut report);
        }
        Err(message) => report
            .broken
            .push(format!("{} on {warps} warps: {message}", ready.name)),
    }
    report
}
