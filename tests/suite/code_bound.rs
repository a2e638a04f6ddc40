//! Code has a bound, and with it the time to compile: each schedule of each kernel is within it, or refused with another one
//! that is.

use exactile::internals::{Job, record};
use exactile::prelude::*;
use exactile::{Error, Result, Schedule};
use exactile_core::passes::code_size::instructions;
use exactile_core::pipeline::MOST_INSTRUCTIONS;
use exactile_core::target::Target;
use exactile_harness::bench::compile::every_schedule;
use exactile_harness::cases::ready::ready;
use exactile_kernels::Setting;

type Launch<'a> = dyn Fn(&Device, Option<u32>) -> Result<()> + 'a;

/// The instructions of the longest code of a launch on so many warps, or why there is none.
fn longest(launch: &Launch<'_>, warps: Option<u32>) -> Result<usize> {
    let device = Device::lanes();
    let jobs = record(&device, || launch(&device, warps))?;
    let length = |job: &Job| Ok(instructions(&*job.lane(&Target::SM_90A)?));
    let lengths: Result<Vec<usize>> = jobs.iter().map(length).collect();
    Ok(lengths?.into_iter().max().unwrap_or(0))
}

/// What `text` says after `before`, as a number.
fn number_after(text: &str, before: &str) -> Option<u32> {
    let (_, rest) = text.split_once(before)?;
    let digits = rest.split(|it: char| !it.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// Whether a launch is refused, and not within the bound. What the error says to do then leads to one that is.
#[track_caller]
fn is_refused(name: &str, launch: &Launch<'_>, warps: Option<u32>) -> bool {
    let mut tried = vec![warps];
    loop {
        let warps = tried[tried.len() - 1];
        let error = match longest(launch, warps) {
            Ok(found) => {
                assert!(found <= MOST_INSTRUCTIONS, "{name} on {warps:?}: {found}");
                return tried.len() > 1;
            }
            Err(error @ Error::Compile { .. }) => error.to_string(),
            Err(error) => panic!("{name} on {warps:?}: {error}"),
        };
        let Some(other) = number_after(&error, "note: use ") else {
            let bounded = error.contains("expected at most") && !error.contains("shared memory");
            assert!(
                !bounded || error.contains("smaller tile"),
                "{name} on {warps:?}: {error}"
            );
            return true;
        };
        assert!(
            !tried.contains(&Some(other)),
            "{name} on {warps:?}: {error}"
        );
        tried.push(Some(other));
    }
}

#[test]
fn ready_kernels_have_bounded_code_on_every_schedule() {
    let mut refused = 0;
    for ready in ready() {
        let launch = |device: &Device, warps: Option<u32>| {
            let schedule = Schedule {
                warps,
                ..Schedule::AUTO
            };
            let setting = Setting {
                schedule,
                ..Setting::default()
            };
            (ready.launch)(device, &setting)
        };
        for warps in every_schedule() {
            let found = is_refused(&ready.name, &launch, warps);
            assert!(
                !found || warps.is_some(),
                "{} has a schedule of its own",
                ready.name
            );
            refused += usize::from(found);
        }
    }
    assert!(refused > 0, "nothing is beyond the bound");
}

const LONG: usize = 65_536;

/// A function of a row that lies in one tile.
macro_rules! of_row {
    ($($name:ident |$row:ident| $result:expr;)*) => {
        $(
            #[kernel(grid = 1)]
            fn $name(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
                let at = arange(0, LONG);
                let $row = load(x + at).mask(at < n).other(0.0);
                store(out + at, $result).mask(at < n);
            }
        )*
        const ROWS: &[(&str, &(dyn Fn(&Device, Option<u32>, i32) -> Result<()> + Sync))] = &[$(
            (stringify!($name), &|device, warps, n| {
                let x = Buffer::<f32>::zeros(device, LONG)?;
                let mut out = Buffer::<f32>::zeros(device, LONG)?;
                let kernel = match warps {
                    Some(warps) => $name().warps(warps),
                    None => $name(),
                };
                kernel.launch(device, (), (&x, &mut out, n))
            }),
        )*];
    };
}

of_row! {
    doubled |row| row * 2.0;
    softmax |row| exp(row - row.max(0)) / exp(row - row.max(0)).sum(0);
    centred |row| (row - row.sum(0) / 65536.0) * rsqrt((row * row).sum(0));
    sums |row| row.cumsum(0);
    sorted |row| row.sort(0);
    activated |row| row * sigmoid(row) + tanh(row);
}

#[test]
fn rows_of_one_large_tile_have_bounded_code_or_are_refused() {
    let mut refused = Vec::new();
    for (name, launch) in ROWS {
        for n in [LONG as i32, 50_257] {
            let launch = |device: &Device, warps: Option<u32>| launch(device, warps, n);
            for warps in every_schedule() {
                if is_refused(name, &launch, warps) {
                    refused.push((*name, warps));
                }
            }
        }
    }
    for warps in [1, 2, 4] {
        assert!(refused.contains(&("softmax", Some(warps))), "{refused:?}");
    }
    assert!(!refused.contains(&("softmax", None)), "{refused:?}");
    assert!(!refused.contains(&("softmax", Some(32))), "{refused:?}");
}
