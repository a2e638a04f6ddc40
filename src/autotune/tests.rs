//! Who wins a race, and how long it takes.

use super::*;

/// Candidates of these times, of which some fail and one is wrong; the winner, and the time that each got in all.
fn raced(seconds: &[Option<f64>], wrong: usize) -> ((usize, f64), Vec<Verdict>, Vec<Duration>) {
    let mut verdicts = vec![Verdict::Measured(f64::INFINITY); seconds.len()];
    verdicts[wrong] = Verdict::Wrong("other bits".to_string());
    let mut spent = vec![Duration::ZERO; seconds.len()];
    let last = race(&mut verdicts, |index, least| {
        spent[index] += least;
        // Short measurements are too good.
        let noise = if least < LEAST_TIME { 0.01 } else { 1.0 };
        let time = seconds[index].map(|seconds| seconds * noise);
        time.ok_or_else(|| Error::Invalid("it crashed".to_string()))
    });
    let trials: Vec<_> = verdicts.into_iter().enumerate().collect();
    let winner = fastest(&trials, &last).expect("some are right");
    let verdicts = trials.into_iter().map(|(_, verdict)| verdict).collect();
    (winner, verdicts, spent)
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
