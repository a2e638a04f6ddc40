//! The tuner: only right candidates win, and winners are remembered.

use std::path::PathBuf;
use std::time::Duration;

use exactile::autotune::{TuneKey, Tuner, Verdict, Workload};
use exactile::{Array, Determinism, Device, Result};

/// Configuration `(value, microseconds)`: writes the value after waiting.
struct Fake {
    output: f32,
    launches: usize,
}

impl Workload<(f32, u64)> for Fake {
    fn launch(&mut self, config: &(f32, u64)) -> Result<()> {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_micros(config.1) {}
        self.output = config.0;
        self.launches += 1;
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(vec![Array::from_slice(&[1], &[self.output])?])
    }

    fn spoil(&mut self) -> Result<()> {
        self.output = f32::NAN;
        Ok(())
    }
}

fn key() -> TuneKey {
    TuneKey {
        kernel: "fake".to_string(),
        extents: vec![1000, 7],
        variant: "f32".to_string(),
    }
}

fn golden() -> [Array; 1] {
    [Array::from_slice(&[1], &[1.0f32]).expect("one element")]
}

fn fake() -> Fake {
    Fake {
        output: 0.0,
        launches: 0,
    }
}

#[test]
fn the_fastest_right_candidate_wins() {
    let wrong = f32::from_bits(1.0f32.to_bits() + 1);
    let candidates = [(1.0, 3000), (wrong, 0), (1.0, 300)];
    let (device, tuner) = (Device::cpu(), Tuner::forgetful());
    let tune =
        |level, fake: &mut Fake| tuner.tune(&device, &key(), level, &candidates, &golden(), fake);
    let tuned = tune(Determinism::Exact, &mut fake()).expect("two are right");
    assert_eq!(tuned.config, (1.0, 300));
    assert!(matches!(tuned.trials[1].1, Verdict::Wrong(_)));
    let loose = tune(Determinism::NotGuaranteed, &mut fake()).expect("all are close");
    assert_eq!(loose.config, (wrong, 0));
}

#[test]
fn no_right_candidate_is_an_error_that_says_why() {
    let result = Tuner::forgetful().tune(
        &Device::cpu(),
        &key(),
        Determinism::Exact,
        &[(2.0, 0)],
        &golden(),
        &mut fake(),
    );
    let message = result.expect_err("nothing is right").to_string();
    assert!(
        message.contains("none of 1 configurations is right"),
        "{message}"
    );
    assert!(message.contains("found 2e0"), "{message}");
}

#[test]
fn winners_are_kept_in_a_file() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("winners.json");
    let _ = std::fs::remove_file(&file);
    let (device, tuner) = (Device::cpu(), Tuner::with_file(&file));
    let candidates = [(1.0, 400), (1.0, 0)];
    let tune = |key: &TuneKey, fake: &mut Fake| {
        tuner.tune(
            &device,
            key,
            Determinism::Exact,
            &candidates,
            &golden(),
            fake,
        )
    };
    assert!(!tune(&key(), &mut fake()).expect("right").trials.is_empty());
    let mut again = fake();
    let tuned = tune(&key(), &mut again).expect("right");
    assert!(tuned.trials.is_empty() && tuned.config == (1.0, 0));
    assert_eq!(
        again.launches, 1,
        "the winner on file is checked, not measured"
    );
    let mut similar = key();
    similar.extents = vec![600, 5];
    assert!(
        tune(&similar, &mut fake())
            .expect("right")
            .trials
            .is_empty()
    );
    similar.extents = vec![2000, 5];
    assert!(
        !tune(&similar, &mut fake())
            .expect("right")
            .trials
            .is_empty()
    );
    std::fs::write(&file, "{").expect("the folder is writable");
    let message = tune(&key(), &mut fake())
        .expect_err("the file is broken")
        .to_string();
    assert!(message.contains("not a file of winners"), "{message}");
}
