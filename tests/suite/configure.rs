//! Kernels and their setters, the grids and constraints that they state, and tuning over what they say of their const
//! generics.

use std::time::Duration;

use exactile::autotune::{Tuner, Verdict};
use exactile::prelude::*;
use exactile::{Determinism, Error, Result, assert_bits_equal};

/// Adds `BLOCK` elements a program.
#[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK))]
fn doubled<#[meta(64..=1024)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
}

/// The sum of each row, whose tile must hold it.
#[kernel(grid = (x.extent(0), 1), constraint = BLOCK >= x.extent(1))]
fn row_sums<#[meta(16..=256)] const BLOCK: usize>(x: Tensor<f32, 2>, out: PtrMut<f32>) {
    let row = program_id(0);
    let tile = load(x.tile([1, BLOCK]).at((row, 0)));
    store(out + row + arange(0, 1), tile.sum(1));
}

/// Every kind of parameter stands before the one that the grid follows from.
#[kernel(grid = last * usize::from(flag) + (half * 2.0) as usize + y.map_or(0, |it| it.extent(0)))]
fn kinds(
    pair: (Ptr<f32>, i32),
    several: [Ptr<f32>; 2],
    both: InOut<f32>,
    y: Option<Tensor<f32, 1>>,
    nothing: Option<Ptr<f32>>,
    half: f32,
    flag: bool,
    out: PtrMut<i32>,
    last: i64,
) {
    let (first, number) = pair;
    let mut sum = load(first) + load(several[0]) + load(several[1]) + load(both.input);
    if let Some(nothing) = nothing {
        sum += load(nothing);
    }
    if let Some(y) = y {
        sum += load(y.tile([1]).at([0])).sum(0);
    }
    store(both.output, select(flag, sum, half) + last.to::<f32>());
    store(out + program_id(0), number);
}

const N: usize = 1000;

fn numbers(device: &Device) -> Result<(Buffer<f32>, Buffer<f32>)> {
    let numbers: Vec<f32> = (0..N).map(|i| i as f32 / 8.0).collect();
    Ok((
        Buffer::from_slice(device, &numbers)?,
        Buffer::zeros(device, N)?,
    ))
}

#[test]
fn what_is_not_set_has_its_default_and_the_grid_follows() -> Result<()> {
    for device in [Device::cpu(), Device::interpreter(), Device::lanes()] {
        let (x, mut out) = numbers(&device)?;
        let want: Vec<f32> = (0..N).map(|i| i as f32 / 4.0).collect();
        for kernel in [
            doubled(),
            doubled().block(64),
            doubled().block(1024).warps(2),
        ] {
            out.spoil()?;
            kernel.run(&device, (), (&x, &mut out, N as i32))?;
            assert_bits_equal(&out, &want);
        }
        // A launch may state another one.
        out.copy_from(&x)?;
        doubled().run(&device, 1, (&x, &mut out, N as i32))?;
        assert_bits_equal(&out.to_vec()?[..256], &want[..256]);
        assert_bits_equal(&out.to_vec()?[256..], &x.to_vec()?[256..]);
    }
    let config = doubled().block(64).warps(2).config();
    assert_eq!(
        config,
        "Config { block: 64, schedule: Schedule { warps: 2 } }"
    );
    let level = doubled().determinism(Determinism::NotGuaranteed).block(64);
    assert_eq!(level.determinism_level(), Determinism::NotGuaranteed);
    Ok(())
}

#[test]
fn grids_see_every_kind_of_parameter() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32, 2.0])?;
    let mut both = Buffer::<f32>::zeros(&device, 1)?;
    let count = |in_place: bool, y: Option<usize>, both: &mut Buffer<f32>| -> Result<usize> {
        let mut out = Buffer::<i32>::zeros(&device, 20)?;
        let y = y.map(|len| x.slice(..len)).transpose()?;
        let y = match &y {
            Some(part) => Some(part.view([part.len()])?),
            None => None,
        };
        let pair = (&x, 7);
        let kernel = kinds();
        match in_place {
            true => kernel.run(
                &device,
                (),
                (
                    pair,
                    [&x, &x],
                    InPlace(both),
                    y,
                    None::<&Buffer<f32>>,
                    1.5f32,
                    true,
                    &mut out,
                    9i64,
                ),
            ),
            false => kernel.run(
                &device,
                (),
                (
                    pair,
                    [&x, &x],
                    (&x, both),
                    y,
                    Some(&x),
                    1.5f32,
                    false,
                    &mut out,
                    9i64,
                ),
            ),
        }?;
        Ok(out.to_vec()?.iter().filter(|&&it| it == 7).count())
    };
    assert_eq!(count(true, None, &mut both)?, 12);
    assert_eq!(count(false, None, &mut both)?, 3);
    assert_eq!(count(true, Some(2), &mut both)?, 14);
    assert_eq!(count(false, Some(1), &mut both)?, 4);
    Ok(())
}

fn message(result: Result<()>) -> String {
    match result {
        Err(Error::Invalid(message)) => message,
        other => panic!("found {other:?}"),
    }
}

#[test]
fn what_is_missing_or_does_not_hold_is_an_error_of_the_launch() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32; 60])?;
    let mut out = Buffer::<f32>::zeros(&device, 3)?;
    let mut run = |kernel: exactile::Kernel<_>| -> Result<()> {
        kernel.run(&device, (), (x.view([3, 20])?, &mut out))
    };
    let missing = "kernel `row_sums`: `BLOCK` is not set: call `.block(..)`, or give it a default, `#[kernel(BLOCK = ..)]`";
    assert_eq!(message(run(row_sums().into_kernel())), missing);
    assert_eq!(message(row_sums().check()), missing);
    assert_eq!(
        message(run(row_sums().block(16).into_kernel())),
        "kernel `row_sums`: its constraint `BLOCK >= x.extent(1)` does not hold"
    );
    run(row_sums().block(32).into_kernel())?;
    assert_eq!(out.to_vec()?, [20.0; 3]);
    let (x, mut out) = numbers(&device)?;
    assert_eq!(
        message(doubled().run(&device, (), (&x, &mut out, -3))),
        "kernel `doubled`: `n` is -3, expected a number from 0 on: the grid that the kernel states follows from it"
    );
    #[kernel(grid = x.extent(2))]
    fn beyond(x: TensorMut<f32, 1>) {
        store(x.tile([1]).at([0]), full([1], 1.0f32));
    }
    let mut y = Buffer::<f32>::zeros(&device, 1)?;
    let told = message(beyond().run(&device, (), (y.view_mut([1])?,)));
    let parts = [
        "kernel `beyond`: its grid or its constraint at ",
        "tests/suite/configure.rs:",
        " for `Config { schedule: Schedule }` panicked: index out of bounds: the len is 1 but the index is 2",
    ];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    #[kernel]
    fn plain(x: PtrMut<f32>) {
        store(x, 1.0);
    }
    assert_eq!(
        message(plain().run(&device, (), (&mut out,))),
        "kernel `plain` states no grid: pass one to the launch in place of `()`, or state `#[kernel(grid = ..)]`"
    );
    Ok(())
}

#[test]
fn compiled_kernels_know_their_grids_and_constraints() -> Result<()> {
    let device = Device::cpu();
    let (x, mut out) = numbers(&device)?;
    let want: Vec<f32> = (0..N).map(|i| i as f32 / 4.0).collect();
    let compiled = doubled().compile(&device, (), (&x, &mut out, N as i32))?;
    compiled.run(&device, (), (&x, &mut out, N as i32))?;
    assert_bits_equal(&out, &want);
    out.spoil()?;
    compiled.launch(&device, (), (&x, &mut out, N as i32))?;
    assert_bits_equal(&out, &want);
    let sums = row_sums().block(32);
    let x = Buffer::from_slice(&device, &[1.0f32; 96])?;
    let mut out = Buffer::<f32>::zeros(&device, 3)?;
    let compiled = sums.compile(&device, (), (x.slice(..48)?.view([3, 16])?, &mut out))?;
    compiled.run(&device, (), (x.view([3, 32])?, &mut out))?;
    assert_eq!(out.to_vec()?, [32.0; 3]);
    let unmet = "kernel `row_sums`: its constraint `BLOCK >= x.extent(1)` does not hold";
    for grid in [1, 2] {
        let wide = || x.view([2, 48]);
        let told = compiled.launch(&device, grid, (wide()?, &mut out));
        assert_eq!(message(told), unmet);
        assert_eq!(
            message(compiled.run(&device, grid, (wide()?, &mut out))),
            unmet
        );
        let told = sums.compile(&device, grid, (wide()?, &mut out)).map(drop);
        assert_eq!(message(told), unmet);
    }
    Ok(())
}

#[test]
fn numbers_that_no_grid_follows_from_may_be_negative() -> Result<()> {
    #[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK), constraint = { let most = (last,); most.0 > 0 })]
    fn shift<const BLOCK: usize>(
        by: i32,
        pair: (i64, Option<i32>),
        out: PtrMut<i32>,
        n: i32,
        several: [i32; 2],
        last: i32,
    ) {
        let (first, second) = pair;
        let mut sum = by + first.to::<i32>() + several[0] + several[1];
        if let Some(second) = second {
            sum += second;
        }
        let at = program_id(0) * BLOCK + arange(0, BLOCK);
        store(out + at, at.to::<i32>() + sum).mask(at < n);
    }
    let device = Device::cpu();
    let mut out = Buffer::<i32>::zeros(&device, 300)?;
    for (second, sum) in [(Some(-5), -18), (None, -13)] {
        out.spoil()?;
        shift().run(
            &device,
            (),
            (-3, (-4i64, second), &mut out, 300, [-1, -5], 1),
        )?;
        let want: Vec<i32> = (0..300).map(|at| at + sum).collect();
        assert_eq!(out.to_vec()?, want);
    }
    let told = shift().run(
        &device,
        (),
        (-3, (-4i64, None), &mut out, 300, [-1, -5], -1),
    );
    assert_eq!(
        message(told),
        "kernel `shift`: `last` is -1, expected a number from 0 on: the grid that the kernel states follows from it"
    );
    Ok(())
}

#[test]
fn a_kernel_is_tuned_over_what_it_says_and_its_arguments_are_restored() -> Result<()> {
    /// Adds to what is there.
    #[kernel(BLOCK = 64, grid = out.len().div_ceil(BLOCK))]
    fn added<#[meta(48, 64, 128)] const BLOCK: usize>(out: PtrMut<f32>, n: i32) {
        let at = program_id(0) * BLOCK + arange(0, BLOCK);
        store(out + at, load(out + at).mask(at < n) + 1.0).mask(at < n);
    }
    let device = Device::cpu();
    let mut out = Buffer::from_slice(&device, &[2.0f32; N])?;
    let tuned = added().tune(&device, (), (&mut out, N as i32))?;
    // Once by the winner, whatever the others did.
    assert_bits_equal(&out, &vec![3.0f32; N]);
    let table = tuned.to_string();
    assert_eq!(tuned.tuned.trials.len(), 3, "{table}");
    let refused = tuned
        .tuned
        .trials
        .iter()
        .find(|(config, _)| config.block == 48);
    let refused = &refused.expect("is tried").1;
    assert!(
        matches!(refused, Verdict::Rejected(reason) if reason.contains("`48` is not a power of two")),
        "{table}"
    );
    tuned.run(&device, (), (&mut out, N as i32))?;
    assert_bits_equal(&out, &vec![4.0f32; N]);
    Ok(())
}

#[test]
fn parameters_in_formatted_texts_are_those_of_the_launch() -> Result<()> {
    #[kernel(grid = 1, constraint = { format!("{n:>0width$}, {x:?}").contains("007, Host") })]
    fn texts(x: PtrMut<i32>, n: i32, width: i32) {
        store(x, n + width);
    }
    let device = Device::cpu();
    let mut x = Buffer::<i32>::zeros(&device, 1)?;
    texts().run(&device, (), (&mut x, 7, 3))?;
    assert_eq!(x.to_vec()?, [10]);
    assert!(texts().run(&device, (), (&mut x, 7, 2)).is_err());
    Ok(())
}

#[test]
fn what_a_kernel_writes_is_restored_after_a_panic_of_who_listens() -> Result<()> {
    let device = Device::cpu();
    let (x, _) = numbers(&device)?;
    let mut out = Buffer::from_slice(&device, &[7.0f32; N])?;
    let tuner = Tuner::forgetful().on_progress(|line| {
        assert!(!line.starts_with("measuring"), "enough of it");
    });
    let told = doubled().tune_by(&tuner, &device, (), (&x, &mut out, N as i32));
    assert_eq!(
        told.expect_err("panics").to_string(),
        "who listens to the progress of the tuner panicked: enough of it"
    );
    assert_eq!(out.to_vec()?, [7.0; N]);
    Ok(())
}

#[test]
fn constraints_and_what_is_set_narrow_the_space() -> Result<()> {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32; 300])?;
    let mut out = Buffer::<f32>::zeros(&device, 3)?;
    let tuned = row_sums().tune(&device, (), (x.view([3, 100])?, &mut out))?;
    let verdict = |block: usize| {
        let trials = tuned.tuned.trials.iter();
        let mut found = trials.filter(|(config, _)| config.block == block);
        let verdict = found.next().map(|(_, verdict)| verdict.clone());
        verdict.expect("is tried")
    };
    for block in [16, 32, 64] {
        let reason = "kernel `row_sums`: its constraint `BLOCK >= x.extent(1)` does not hold";
        assert_eq!(verdict(block), Verdict::Rejected(reason.to_string()));
    }
    for block in [128, 256] {
        assert!(matches!(verdict(block), Verdict::Measured(_)));
    }
    assert_eq!(out.to_vec()?, [100.0; 3]);
    let set = row_sums().block(256);
    let tuned = set.tune(&device, (), (x.view([3, 100])?, &mut out))?;
    assert_eq!(tuned.tuned.trials.len(), 1);
    Ok(())
}

#[test]
fn schedules_are_tried_where_lanes_run_and_hopeless_ones_are_not_run() -> Result<()> {
    let device = Device::lanes();
    let (x, mut out) = numbers(&device)?;
    let tuner = Tuner::forgetful().budget(Duration::from_millis(1500));
    let kernel = doubled().block(128).stages(1);
    let tuned = kernel.tune_by(&tuner, &device, (), (&x, &mut out, N as i32))?;
    let (first, _) = &tuned.tuned.trials[0];
    assert_eq!(
        first.schedule,
        exactile::Schedule::AUTO.stages(1),
        "as it is, first"
    );
    let warps = |warps: u32| {
        let mut trials = tuned.tuned.trials.iter();
        trials.any(|(config, _)| config.schedule.warps == Some(warps))
    };
    assert!([1, 2, 4, 8, 16, 32].into_iter().all(warps));
    /// One tile of all.
    #[kernel(grid = 1)]
    fn whole<#[meta(1024, 4_194_304)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
        let at = arange(0, BLOCK);
        store(out + at, load(x + at).mask(at < n)).mask(at < n);
    }
    let tuned = whole()
        .warps(4)
        .tune_by(&tuner, &device, (), (&x, &mut out, N as i32))?;
    let hopeless =
        "a thread of 128 would hold 262144 bytes of the largest tile, and has registers for 1020";
    let rejected =
        |trial: &&(whole::Config, Verdict)| trial.1 == Verdict::Rejected(hopeless.to_string());
    assert!(
        tuned.tuned.trials.iter().filter(rejected).count() > 0,
        "{tuned}"
    );
    Ok(())
}

#[test]
fn a_file_of_winners_configures_a_kernel_without_running_it() -> Result<()> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("configure_tuned");
    let _ = std::fs::remove_dir_all(&folder);
    let (device, tuner) = (Device::cpu(), Tuner::with_file(folder.join("winners.json")));
    let (x, mut out) = numbers(&device)?;
    let arguments = |n: i32| n;
    let plain = doubled().tuned(&tuner, &device, (), (&x, &mut out, arguments(N as i32)))?;
    assert_eq!(plain.config(), doubled().config());
    let tuned = doubled().tune_by(&tuner, &device, (), (&x, &mut out, N as i32))?;
    out.spoil()?;
    let spoilt = out.to_vec()?;
    for n in [N as i32, 300] {
        let known = doubled().tuned(&tuner, &device, (), (&x, &mut out, n))?;
        assert_eq!(known.config(), tuned.config());
    }
    assert_bits_equal(&out, &spoilt);
    let again = doubled().tune_by(&tuner, &device, (), (&x, &mut out, N as i32))?;
    assert!(again.tuned.trials.is_empty());
    assert_eq!(again.tuned.provenance, tuned.tuned.provenance);
    Ok(())
}
