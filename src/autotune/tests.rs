//! Who wins a race, and how long it takes.

use std::cell::Cell;

use super::clock::LEAST_TIME;
use super::*;
use crate::error::Error;

/// What stands for a candidate before the race.
const READY: Verdict = Verdict::Measured(Times {
    cold: f64::INFINITY,
    warm: None,
    rounds: 0,
});

/// Candidates of these times, of which some fail and one is wrong; the winner, and the time that each got in all.
fn raced(seconds: &[Option<f64>], wrong: usize) -> ((usize, f64), Vec<Verdict>, Vec<Duration>) {
    let mut verdicts = vec![READY; seconds.len()];
    verdicts[wrong] = Verdict::Wrong("other bits".to_string());
    let mut spent = vec![Duration::ZERO; seconds.len()];
    race(&mut verdicts, &|| false, |index, least| {
        spent[index] += least;
        // Short measurements are too good.
        let noise = if least < LEAST_TIME { 0.01 } else { 1.0 };
        let time = seconds[index].map(|seconds| seconds * noise);
        time.map(times)
            .ok_or_else(|| Error::Invalid("it crashed".to_string()))
    });
    let trials: Vec<_> = verdicts.into_iter().enumerate().collect();
    let winner = fastest(&trials).expect("some are right");
    let verdicts = trials.into_iter().map(|(_, verdict)| verdict).collect();
    (winner, verdicts, spent)
}

fn times(cold: f64) -> Times {
    Times {
        cold,
        warm: None,
        rounds: 0,
    }
}

#[test]
fn the_slower_half_leaves_and_the_fastest_is_measured_longest() {
    for count in [3, 4, 5, 16, 60] {
        let mut seconds: Vec<_> = (0..count).map(|it| Some(f64::from(100 - it))).collect();
        // Neither what is wrong nor what crashes may win, however fast it is.
        seconds[0] = Some(0.5);
        seconds[1] = None;
        let ((winner, time), verdicts, spent) = raced(&seconds, 0);
        assert_eq!((winner, time), (seconds.len() - 1, f64::from(101 - count)));
        assert_eq!(spent[0], Duration::ZERO);
        assert!(spent[1] <= LEAST_TIME && matches!(verdicts[1], Verdict::Failed(_)));
        assert!(spent[winner] >= LEAST_TIME);
        let all: Duration = spent.iter().sum();
        assert!(
            all <= LEAST_TIME * 2 + LEAST_TIME * count as u32 * 5 / 8,
            "{all:?}"
        );
    }
    let (_, verdicts, spent) = raced(&[Some(1.0), Some(2.0), Some(3.0)], 0);
    assert!(matches!(verdicts[0], Verdict::Wrong(_)));
    assert_eq!(spent, [Duration::ZERO, LEAST_TIME, LEAST_TIME]);
}

#[test]
fn a_race_whose_time_is_over_ends_with_the_best_so_far() {
    for limit in [1, 5, 16, 17, 20] {
        let mut verdicts = vec![READY; 16];
        let measured = Cell::new(0);
        race(&mut verdicts, &|| measured.get() >= limit, |index, _| {
            measured.set(measured.get() + 1);
            Ok(times(100.0 - index as f64))
        });
        assert_eq!(measured.get(), limit);
        let left = verdicts.iter().filter(|verdict| **verdict == READY).count();
        assert_eq!(left, 16_usize.saturating_sub(limit));
        let trials: Vec<_> = verdicts.into_iter().enumerate().collect();
        // Of those that were in the second round, the first ones are slowest.
        let (winner, _) = fastest(&trials).expect("some are right");
        let second = limit.saturating_sub(16);
        assert_eq!(winner, if second == 0 { limit - 1 } else { 15 });
    }
}
