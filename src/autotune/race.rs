//! Which of the right candidates is fastest: in each round the slower half leaves.

use std::fmt;
use std::time::Duration;

use super::clock::LEAST_TIME;
use super::trials::{Times, Verdict, others};
use crate::error::{Error, Result};

/// Rounds of a race: each takes twice as long for a candidate as the one before it, with half of the candidates.
const ROUNDS: u32 = 4;

/// Measures all that is right, until the time is over and one has a time; `measure` takes the position of a candidate
/// and the least time to spend on it.
pub(super) fn race(
    verdicts: &mut [Verdict],
    is_over: &dyn Fn() -> bool,
    mut measure: impl FnMut(usize, Duration) -> Result<Times>,
) {
    let is_right = |verdict: &Verdict| matches!(verdict, Verdict::Measured(_));
    let mut left: Vec<usize> = (0..verdicts.len())
        .filter(|&index| is_right(&verdicts[index]))
        .collect();
    let mut any = false;
    for round in (0..ROUNDS).rev() {
        // What is alone need not be quick.
        let shift = if left.len() > 2 { round } else { 0 };
        let mut times = Vec::new();
        for &index in &left {
            if any && is_over() {
                return;
            }
            match measure(index, LEAST_TIME / (1 << shift)) {
                Ok(found) => {
                    any = true;
                    times.push((found.cold, index));
                    let rounds = ROUNDS - shift;
                    verdicts[index] = Verdict::Measured(Times { rounds, ..found });
                }
                Err(error) => verdicts[index] = Verdict::Failed(error.to_string()),
            }
        }
        if shift == 0 {
            return;
        }
        times.sort_by(|one, other| one.0.total_cmp(&other.0));
        times.truncate(times.len().div_ceil(2));
        left = times.into_iter().map(|(_, index)| index).collect();
    }
}

/// The fastest of those that stayed longest, whose times are the surest.
pub(super) fn fastest<C: Clone + fmt::Debug>(trials: &[(C, Verdict)]) -> Result<(C, f64)> {
    let times = trials.iter().filter_map(|(config, verdict)| match verdict {
        Verdict::Measured(times) => Some((config, times)),
        Verdict::Rejected(_) | Verdict::Wrong(_) | Verdict::Failed(_) | Verdict::Skipped(_) => None,
    });
    let best = times.min_by(|(_, one), (_, other)| one.rank(other));
    best.map(|(config, times)| (config.clone(), times.cold))
        .ok_or_else(|| {
            let others = others(trials, usize::MAX);
            let count = trials.len();
            let message = format!("none of {count} configurations is right\n{others}");
            Error::Mismatch(message.trim_end().to_string())
        })
}
