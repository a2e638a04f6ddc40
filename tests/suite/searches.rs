//! Searches beside other work, and over spaces that are large, deadly or not whole.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use exactile::autotune::{Tune, TuneKey, Tuner, Verdict, Workload, measure, with_output};
use exactile::prelude::*;
use exactile::{Array, Determinism, Error, Result, Schedule};

#[kernel(BLOCK = 16, grid = 1)]
fn increments<#[meta(16, 32, 64)] const BLOCK: usize>(x: PtrMut<f32>, n: i32) {
    let at = arange(0, BLOCK);
    store(x + at, load(x + at).mask(at < n) + 1.0).mask(at < n);
}

/// Reads and writes 64 elements.
#[kernel]
fn long(x: PtrMut<f32>) {
    let at = arange(0, 64);
    store(x + at, load(x + at) + 1.0);
}

fn tuner() -> Tuner {
    Tuner::forgetful().budget(Duration::from_millis(200))
}

/// A launch that fails and whose error nobody has read; what it was to write.
fn fail(device: &Device) -> Result<Buffer<f32>> {
    let mut short = Buffer::zeros(device, 4)?;
    long().launch(device, 1, (&mut short,))?;
    Ok(short)
}

fn is_out_of_bounds<T>(found: Result<T>) -> bool {
    matches!(found, Err(Error::OutOfBounds { kernel, .. }) if kernel == "long")
}

#[test]
fn errors_of_other_launches_are_left_to_who_waits_for_them() -> Result<()> {
    for device in [Device::cpu(), Device::lanes(), Device::interpreter()] {
        let mut x = Buffer::zeros(&device, 64)?;
        let short = fail(&device)?;
        let tuned = increments().tune_by(&tuner(), &device, (), (&mut x, 10))?;
        for (config, verdict) in &tuned.tuned.trials {
            assert!(
                !matches!(verdict, Verdict::Failed(_)),
                "{config:?}: {verdict:?}"
            );
        }
        measure(&device, || increments().launch(&device, (), (&mut x, 10)))?;
        assert!(is_out_of_bounds(short.to_vec()), "{device}");
        let short = fail(&device)?;
        assert!(
            increments()
                .tune_by(&tuner(), &device, (), (&mut x, 10))
                .is_ok()
        );
        assert!(is_out_of_bounds(device.synchronize()), "{device}");
        // It was told.
        assert!(short.to_vec().is_ok());
    }
    Ok(())
}

#[test]
fn what_a_measured_launch_does_wrong_is_its_error_and_told_once() -> Result<()> {
    let device = Device::cpu();
    let mut short = Buffer::<f32>::zeros(&device, 4)?;
    let measured = measure(&device, || long().launch(&device, 1, (&mut short,)));
    assert!(is_out_of_bounds(measured));
    assert!(device.synchronize().is_ok() && short.to_vec().is_ok());
    Ok(())
}

#[test]
fn searches_beside_launches_that_fail_blame_no_candidate() -> Result<()> {
    let device = Device::cpu();
    let ends = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    drop(fail(&device));
                }
            });
        }
        let searches = (0..5).map(|_| {
            let mut x = Buffer::zeros(&device, 64)?;
            let tuned = increments().tune_by(&tuner(), &device, (), (&mut x, 10))?;
            let mut trials = tuned.tuned.trials.into_iter();
            Ok(trials.find(|(_, verdict)| matches!(verdict, Verdict::Failed(_))))
        });
        let searches: Vec<Result<_>> = searches.collect();
        ends.store(true, Ordering::Relaxed);
        searches
    });
    for search in failed {
        assert_eq!(search?, None);
    }
    Ok(())
}

#[kernel(grid = 1)]
fn scaled<const FACTOR: usize, #[meta(16, 32)] const BLOCK: usize>(x: PtrMut<f32>) {
    let at = arange(0, BLOCK);
    store(x + at, load(x + at) * FACTOR as f32);
}

#[test]
fn a_number_that_nobody_states_is_not_chosen() -> Result<()> {
    let device = Device::cpu();
    let mut x = Buffer::from_slice(&device, &[3.0f32; 32])?;
    let ran = scaled().block(16).run(&device, (), (&mut x,));
    let ran = ran.expect_err("is not set").to_string();
    assert!(ran.contains("`FACTOR` is not set"), "{ran}");
    let tuned = scaled().tune_by(&tuner(), &device, (), (&mut x,));
    assert_eq!(tuned.expect_err("is not set").to_string(), ran);
    let known = scaled().tuned(&tuner(), &device, (), (&mut x,));
    assert_eq!(known.expect_err("is not set").to_string(), ran);
    assert_eq!(x.to_vec()?, [3.0; 32]);
    let tuned = scaled()
        .factor(2)
        .tune_by(&tuner(), &device, (), (&mut x,))?;
    assert_eq!(tuned.tuned.config.factor, 2);
    assert_eq!(x.to_vec()?[..16], [6.0; 16]);
    Ok(())
}

mod one {
    use exactile::prelude::*;

    #[kernel(grid = 1)]
    pub(super) fn same<#[meta(1, 2)] const PARTS: usize>(x: PtrMut<f32>) {
        for part in 0..PARTS {
            store(x + part * 2 + arange(0, 2), full([2], 1.0f32));
        }
    }
}

mod other {
    use exactile::prelude::*;

    #[kernel(grid = 1)]
    pub(super) fn same<#[meta(1, 2)] const PARTS: usize>(x: PtrMut<f32>) {
        for part in 0..PARTS {
            store(x + part * 2 + arange(0, 2), full([2], 2.0f32));
        }
    }
}

#[test]
fn kernels_of_one_name_have_winners_of_their_own() -> Result<()> {
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("searches_same.json");
    let _ = std::fs::remove_file(&file);
    let (device, tuner) = (Device::cpu(), Tuner::with_file(&file));
    let mut x = Buffer::<f32>::zeros(&device, 2)?;
    let trials = [
        one::same()
            .parts(1)
            .tune_by(&tuner, &device, (), (&mut x,))?
            .tuned
            .trials
            .len(),
        other::same()
            .parts(1)
            .tune_by(&tuner, &device, (), (&mut x,))?
            .tuned
            .trials
            .len(),
        one::same()
            .parts(1)
            .tune_by(&tuner, &device, (), (&mut x,))?
            .tuned
            .trials
            .len(),
    ];
    assert_eq!(trials, [1, 1, 0]);
    let text = std::fs::read_to_string(&file).expect("is written");
    assert!(text.contains("\"suite::searches::one::same\""), "{text}");
    Ok(())
}

/// One program is done sooner by more warps.
#[test]
fn the_first_candidate_has_the_first_turn_and_then_those_of_least_cost() -> Result<()> {
    let device = Device::lanes();
    let (out, launching) = (Buffer::<f32>::zeros(&device, 4096)?, device.clone());
    let launch = move |out: &mut Buffer<f32>, &warps: &u32| {
        out.copy_from_slice(&[0.0; 4096])?;
        let kernel = increments()
            .block(4096)
            .schedule(Schedule::AUTO.warps(warps));
        kernel.launch(&launching, (), (out, 4096))
    };
    let key = TuneKey {
        kernel: "increments".to_string(),
        extents: Vec::new(),
        variant: String::new(),
    };
    let golden = [Array::from_slice([4096], &[1.0f32; 4096])?];
    let (level, mut workload) = (Determinism::Exact, with_output(out, launch));
    let tuned =
        Tuner::forgetful().tune(&device, &key, level, &[8, 1, 32], &golden, &mut workload)?;
    let turns: Vec<u32> = tuned.trials.iter().map(|(warps, _)| *warps).collect();
    assert_eq!(turns, [8, 32, 1]);
    Ok(())
}

/// Ten numbers each.
#[kernel(A = 16, B = 16, C = 16, D = 16, E = 16, grid = 1)]
fn many<
    #[meta(1..=512)] const A: usize,
    #[meta(1..=512)] const B: usize,
    #[meta(1..=512)] const C: usize,
    #[meta(1..=512)] const D: usize,
    #[meta(1..=512)] const E: usize,
>(
    out: PtrMut<f32>,
) {
    let at = arange(0, 16);
    store(
        out + at,
        load(out + at) + ((A + B + C + D + E) as f64 * 0.0),
    );
}

#[test]
fn a_budget_holds_for_large_spaces_and_their_tables_end() -> Result<()> {
    let device = Device::lanes();
    let mut out = Buffer::<f32>::zeros(&device, 16)?;
    let refused = many().tune_by(&tuner(), &device, (), (&mut out,));
    let refused = refused.expect_err("is too many").to_string();
    assert!(refused.contains("`many`: its `#[meta(..)]` make more than 20000 "));
    let remedy =
        "combinations: set some of its const generics before it is tuned, or state fewer numbers";
    assert!(refused.ends_with(remedy), "{refused}");
    // Four thousand tiles, each with schedules: without a trace of each.
    let begin = std::time::Instant::now();
    let tuned = many()
        .d(16)
        .e(16)
        .tune_by(&tuner(), &device, (), (&mut out,))?;
    assert!(
        begin.elapsed() < Duration::from_secs(8),
        "{:?}",
        begin.elapsed()
    );
    assert!(tuned.tuned.trials.len() > 10_000);
    let table = tuned.to_string();
    assert!(table.lines().count() < 110, "{table}");
    assert!(
        table.contains("   - more: ") && table.contains(" skipped"),
        "{table}"
    );
    Ok(())
}

/// Refuses with a panic, and is right otherwise.
struct Panics;

impl Workload<u32> for Panics {
    fn launch(&mut self, _: &u32) -> Result<()> {
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }

    fn refuses(&self, config: &u32) -> Option<String> {
        assert_ne!(*config, 1, "nobody asks for it");
        None
    }
}

#[test]
fn a_refusal_that_panics_is_one_and_no_budget_is_too_long() -> Result<()> {
    let key = TuneKey {
        kernel: "panics".to_string(),
        extents: Vec::new(),
        variant: String::new(),
    };
    let (tuner, level) = (Tuner::forgetful().budget(Duration::MAX), Determinism::Exact);
    let tuned = tuner.tune(&Device::cpu(), &key, level, &[1, 2], &[], &mut Panics)?;
    assert_eq!(tuned.config, 2);
    let (_, verdict) = &tuned.trials[0];
    assert!(
        matches!(verdict, Verdict::Rejected(reason) if reason.contains("nobody asks for it")),
        "{verdict:?}"
    );
    Ok(())
}
