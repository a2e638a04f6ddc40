//! The search for the best configuration, on the bench's own clock and within a time.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use crate::Determinism;
use crate::demo::{Problem, Setting};
use crate::device::Device;
use crate::error::{Error, Result};

/// Time of one candidate in the first pass, and of the best ones in the second.
const TIMES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));

/// Candidates that reach the second pass.
const FINALISTS: usize = 4;

/// How a search went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Search {
    /// Configurations measured.
    pub measured: usize,
    /// Configurations that there were.
    pub candidates: usize,
    /// Configurations that did not compile or run, with the first one's reason.
    pub failed: usize,
    /// Why the first of these failed.
    pub reason: Option<String>,
}

/// Compiles candidates until the time is over, each at every level, so that no level has more to
/// choose from.
pub(super) fn compile(
    device: &Device,
    problem: &mut Problem,
    candidates: &[Setting],
    levels: &[Determinism],
    time: Duration,
) -> Result<(Vec<Setting>, Search)> {
    let begin = Instant::now();
    let mut search = Search {
        candidates: candidates.len(),
        ..Search::default()
    };
    let mut compiled = Vec::new();
    for &candidate in candidates {
        if begin.elapsed() > time && !compiled.is_empty() {
            break;
        }
        let mut run = || -> Result<()> {
            for &determinism in levels {
                let setting = Setting {
                    determinism,
                    ..candidate
                };
                // The second launch may use other code: that of launches proved in bounds.
                problem.launch(&setting)?;
                problem.launch(&setting)?;
            }
            device.synchronize()
        };
        match run() {
            Ok(()) => compiled.push(candidate),
            Err(error) => {
                search.failed += 1;
                search
                    .reason
                    .get_or_insert_with(|| format!("{candidate:?}: {error}"));
            }
        }
    }
    search.measured = compiled.len();
    if compiled.is_empty() {
        let reason = search.reason.unwrap_or_default();
        return Err(Error::Invalid(format!("no configuration runs: {reason}")));
    }
    Ok((compiled, search))
}

/// The fastest of compiled candidates at one level.
pub(super) fn fastest(
    clock: &mut Clock,
    problem: &mut Problem,
    compiled: &[Setting],
    determinism: Determinism,
) -> Result<Setting> {
    let mut timed = Vec::new();
    for &candidate in compiled {
        let setting = Setting {
            determinism,
            ..candidate
        };
        let time = clock.median(TIMES.0, &mut || problem.launch(&setting))?;
        timed.push((time, setting));
    }
    timed.sort_by(|one, other| one.0.total_cmp(&other.0));
    timed.truncate(FINALISTS);
    let mut best: Option<(f64, Setting)> = None;
    for (_, setting) in timed {
        let time = clock.median(TIMES.1, &mut || problem.launch(&setting))?;
        if best.is_none_or(|(least, _)| time < least) {
            best = Some((time, setting));
        }
    }
    best.map(|(_, setting)| setting)
        .ok_or_else(|| Error::Invalid("there are no configurations".to_string()))
}
