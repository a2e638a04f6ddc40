//! First launches of processes that have nothing compiled.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use exactile::internals::CACHE_FOLDER;
use exactile::prelude::*;
use exactile::{DeviceKind, Error, Result};
use serde::{Deserialize, Serialize};

use super::{LEN, LaunchPlan, LaunchRow, vector_add};

/// What a process measured of its own first launches, each to its end, in seconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FirstLaunches {
    /// Opening the device, which no launch counts.
    pub opening: f64,
    /// The first launch.
    pub first: f64,
    /// The first launch of another configuration of that kernel.
    pub second: f64,
}

/// Measures those of this process, where nothing ran yet.
///
/// # Errors
/// What fails on the device.
pub fn first_launches(device: &str) -> Result<FirstLaunches> {
    let begin = Instant::now();
    let device = &Device::from_name(device)?;
    let x = Buffer::from_slice(device, &[1.0f32; LEN])?;
    let y = Buffer::from_slice(device, &[2.0f32; LEN])?;
    let mut z = Buffer::<f32>::zeros(device, LEN)?;
    let opening = begin.elapsed().as_secs_f64();
    let mut launch = |block: usize| -> Result<f64> {
        let begin = Instant::now();
        let kernel = vector_add().block(block);
        kernel.run(device, LEN / block, (&x, &y, &mut z, LEN as i32))?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let (first, second) = (launch(1024)?, launch(512)?);
    match z.to_vec()? == [3.0f32; LEN] {
        true => Ok(FirstLaunches {
            opening,
            first,
            second,
        }),
        false => Err(Error::Mismatch("the sums are wrong".to_string())),
    }
}

/// The rows of processes that are started for it: with an empty cache on disk, and with the one that such a process left.
pub(super) fn rows(plan: &LaunchPlan, rows: &mut Vec<LaunchRow>) -> Result<()> {
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    let keeps = matches!(plan.device.kind(), DeviceKind::Cuda(_));
    for _ in 0..plan.processes {
        let folder = tempfile::tempdir().map_err(Error::file(&std::env::temp_dir()))?;
        cold.push(measure(plan, folder.path())?);
        if keeps {
            warm.push(measure(plan, folder.path())?);
        }
    }
    for (state, found) in [("nothing cached", cold), ("disk warm", warm)] {
        let pick = |field: fn(&FirstLaunches) -> f64| found.iter().map(field).collect::<Vec<_>>();
        let figures = [
            ("opening the device", pick(|it| it.opening)),
            ("first launch", pick(|it| it.first)),
            ("second variant", pick(|it| it.second)),
        ];
        for (name, seconds) in figures.iter().filter(|(_, seconds)| !seconds.is_empty()) {
            rows.push(LaunchRow::of(&format!("{name}, {state}"), seconds));
        }
    }
    Ok(())
}

fn measure(plan: &LaunchPlan, cache: &Path) -> Result<FirstLaunches> {
    let failed = |reason: String| {
        Error::Invalid(format!(
            "`{}`, for its first launches: {reason}",
            plan.program.display()
        ))
    };
    let output = Command::new(&plan.program)
        .args(["bench", "launch", "--first", "--device"])
        .arg(plan.device.to_string())
        .env(CACHE_FOLDER, cache)
        .env_remove(exactile::internals::CACHE_SWITCH)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string())),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}
