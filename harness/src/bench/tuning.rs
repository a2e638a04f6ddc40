//! How long tuning takes, and how good what it finds is: two kernels over 60 configurations each, beside Triton's
//! exhaustive search over the same.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use exactile::autotune::{TuneKey, Tuner, Verdict, Workload, with_output};
use exactile::prelude::*;
use exactile::{Array, Determinism, Error, Result, Schedule};
use exactile_kernels::matmul::matmul;
use exactile_kernels::softmax::softmax_loop;
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use crate::demo::random;

/// How long each configuration is measured to know the best one.
const SURE: Duration = Duration::from_millis(150);

/// The most that what was found may take, over the best.
const MOST_OVER_BEST: f64 = 1.03;
/// The most that the search may take, over the peer's.
const MOST_OVER_PEER: f64 = 1.0 / 3.0;

/// How to measure.
pub struct TuningPlan<'a> {
    /// What runs this crate's kernels.
    pub device: &'a Device,
    /// Rows and columns of the softmax, and the extent of the square matrices.
    pub extents: [usize; 3],
    /// The Python and the script that tunes with Triton; none goes without.
    pub peer: Option<(&'a str, &'a Path)>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct TuningReport {
    /// The model of the device.
    pub device: String,
    /// A row for each kernel.
    pub rows: Vec<TuningRow>,
}

/// What was measured of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct TuningRow {
    /// The kernel.
    pub kernel: &'static str,
    /// The extents of its problem.
    pub shape: Vec<usize>,
    /// Configurations that there were.
    pub configurations: usize,
    /// Those that were right and measured.
    pub measured: usize,
    /// Seconds of the search, all compilations and comparisons with the golden run included.
    pub seconds: f64,
    /// Those of them until all configurations were compiled and compared.
    pub judging_seconds: f64,
    /// Seconds of the golden run on the CPU.
    pub golden_seconds: f64,
    /// What the search found.
    pub chosen: String,
    /// Its milliseconds, measured at length.
    pub chosen_ms: f64,
    /// The best of all, each measured at length.
    pub best: String,
    /// Its milliseconds.
    pub best_ms: f64,
    /// What the peer's search gave.
    pub peer: Option<Peer>,
}

/// What the peer's exhaustive search over the same configurations gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// The kernel.
    pub kernel: String,
    /// Seconds of its search, from an empty cache.
    pub seconds: f64,
    /// Configurations that there were.
    pub configurations: usize,
    /// What it found.
    pub chosen: String,
    /// Its milliseconds.
    pub ms: f64,
}

impl TuningRow {
    /// The time of what was found, over that of the best.
    pub fn over_best(&self) -> f64 {
        self.chosen_ms / self.best_ms
    }

    /// The seconds of the search with the golden run, over those of the peer.
    pub fn over_peer(&self) -> Option<f64> {
        let peer = self.peer.as_ref()?;
        Some((self.seconds + self.golden_seconds) / peer.seconds)
    }

    /// The row as lines for people.
    pub fn lines(&self) -> String {
        let mut text = format!(
            "{} {:?}: {} of {} configurations measured in {:.2} s, of which {:.2} s compiling and comparing, golden run \
             {:.2} s\n  found {} {:.4} ms, best {} {:.4} \
             ms: {:.3} of the best\n",
            self.kernel,
            self.shape,
            self.measured,
            self.configurations,
            self.seconds,
            self.judging_seconds,
            self.golden_seconds,
            self.chosen,
            self.chosen_ms,
            self.best,
            self.best_ms,
            self.over_best(),
        );
        if let Some((peer, share)) = self.peer.as_ref().zip(self.over_peer()) {
            text.push_str(&format!(
                "  Triton: {} configurations in {:.2} s, found {} {:.4} ms; our search takes {share:.3} of its time\n",
                peer.configurations, peer.seconds, peer.chosen, peer.ms
            ));
        }
        text
    }
}

impl TuningReport {
    /// # Errors
    /// What was found is too slow, or the search took too long beside the peer's.
    pub fn verdict(&self) -> Result<()> {
        let mut missed = Vec::new();
        for row in &self.rows {
            if row.over_best() > MOST_OVER_BEST {
                missed.push(format!(
                    "{}: {:.3} of the best",
                    row.kernel,
                    row.over_best()
                ));
            }
            if let Some(share) = row.over_peer().filter(|share| *share > MOST_OVER_PEER) {
                missed.push(format!("{}: {share:.3} of Triton's time", row.kernel));
            }
        }
        match missed.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(missed.join("\n"))),
        }
    }
}

/// A configuration of the softmax: the peer has the same.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rows {
    warps: u32,
    stages: u32,
    /// Programs for each multiprocessor.
    programs: usize,
}

/// A configuration of the product: the peer has the same.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Tiles {
    bm: usize,
    bn: usize,
    bk: usize,
    warps: u32,
    stages: u32,
}

fn softmax_space() -> Vec<Rows> {
    let mut space = Vec::new();
    for warps in [4, 8, 16, 2, 32] {
        for stages in [2, 1, 3] {
            for programs in [2, 1, 4, 8] {
                space.push(Rows {
                    warps,
                    stages,
                    programs,
                });
            }
        }
    }
    space
}

fn matmul_space() -> Vec<Tiles> {
    let mut space = Vec::new();
    for (bm, bn) in [(64, 64), (128, 64), (64, 32), (32, 64), (32, 32)] {
        for bk in [32, 16] {
            for warps in [4, 8, 2] {
                for stages in [3, 2] {
                    space.push(Tiles {
                        bm,
                        bn,
                        bk,
                        warps,
                        stages,
                    });
                }
            }
        }
    }
    space
}

/// Tunes both kernels, and says how.
///
/// # Errors
/// Those of launches and of the peer, and that no configuration is right.
pub fn tuning(plan: &TuningPlan<'_>, say: &dyn Fn(&str)) -> Result<TuningReport> {
    // What compiling costs is measured.
    plan.device.use_disk(false);
    let mut rows = vec![softmax_row(plan, say)?, matmul_row(plan, say)?];
    plan.device.use_disk(true);
    if let Some((python, script)) = plan.peer {
        let peers = peers(python, script, plan.extents, say)?;
        for row in &mut rows {
            let own = peers.iter().find(|peer| peer.kernel == row.kernel);
            row.peer = own.cloned();
        }
    }
    Ok(TuningReport {
        device: plan.device.name().to_string(),
        rows,
    })
}

fn softmax_row(plan: &TuningPlan<'_>, say: &dyn Fn(&str)) -> Result<TuningRow> {
    let [rows, columns, _] = plan.extents;
    let numbers = random::<f32>(1, rows * columns);
    let launch = |device: &Device, x: &Buffer<f32>, out: &mut Buffer<f32>, it: &Rows| {
        let grid = rows.min(it.programs * device.multiprocessors());
        softmax_loop::<f32>()
            .block(columns.next_power_of_two())
            .warps(it.warps)
            .stages(it.stages)
            .launch(device, grid, (x, out, rows as i32, columns as i32))
    };
    let problem = |device: &Device| -> Result<_> {
        let x = Buffer::from_slice(device, &numbers)?;
        let (out, device) = (Buffer::zeros(device, rows * columns)?, device.clone());
        Ok(with_output(out, move |out: &mut Buffer<f32>, it: &Rows| {
            launch(&device, &x, out, it)
        }))
    };
    row(
        plan,
        say,
        ("softmax", vec![rows, columns]),
        &softmax_space(),
        problem,
    )
}

fn matmul_row(plan: &TuningPlan<'_>, say: &dyn Fn(&str)) -> Result<TuningRow> {
    let [_, _, n] = plan.extents;
    let factors = [2, 3].map(|seed| random::<f32>(seed, n * n));
    let launch = |device: &Device, [a, b]: [&Buffer<f32>; 2], out: &mut Buffer<f32>, it: &Tiles| {
        let schedule = Schedule::AUTO.warps(it.warps).stages(it.stages);
        let extent = n as i32;
        matmul::<f32, f32>()
            .bm(it.bm)
            .bn(it.bn)
            .bk(it.bk)
            .schedule(schedule)
            .launch(device, (), (a, b, out, extent, extent, extent))
    };
    let problem = |device: &Device| -> Result<_> {
        let a = Buffer::from_slice(device, &factors[0])?;
        let b = Buffer::from_slice(device, &factors[1])?;
        let (out, device) = (Buffer::zeros(device, n * n)?, device.clone());
        Ok(with_output(
            out,
            move |out: &mut Buffer<f32>, it: &Tiles| launch(&device, [&a, &b], out, it),
        ))
    };
    row(
        plan,
        say,
        ("matmul", vec![n, n, n]),
        &matmul_space(),
        problem,
    )
}

fn row<C: Clone + PartialEq + std::fmt::Debug, W: Workload<C>>(
    plan: &TuningPlan<'_>,
    say: &dyn Fn(&str),
    (kernel, shape): (&'static str, Vec<usize>),
    space: &[C],
    problem: impl Fn(&Device) -> Result<W>,
) -> Result<TuningRow> {
    let (device, level) = (plan.device, Determinism::Exact);
    say(&format!("{kernel}: golden run"));
    let begin = Instant::now();
    let golden = golden(&space[0], &problem)?;
    let golden_seconds = begin.elapsed().as_secs_f64();
    say(&format!("{kernel}: tuning"));
    let mut workload = problem(device)?;
    let key = TuneKey {
        kernel: kernel.to_string(),
        extents: shape.clone(),
        variant: "f32".to_string(),
    };
    let (begin, judged) = (Instant::now(), Arc::new(OnceLock::new()));
    let judging = Arc::clone(&judged);
    let tuner = Tuner::forgetful().on_progress(move |line| {
        if line.starts_with("measuring") {
            judging.get_or_init(|| begin.elapsed());
        }
    });
    let tuned = tuner.tune(device, &key, level, space, &golden, &mut workload)?;
    let seconds = begin.elapsed().as_secs_f64();
    say(&format!("{kernel}: measuring all at length"));
    let mut clock = Clock::new(device)?;
    let mut all: Vec<(f64, &C)> = Vec::new();
    for (config, verdict) in &tuned.trials {
        if let Verdict::Measured(_) = verdict {
            let median = clock.median(SURE, &mut || workload.launch(config))?;
            all.push((median, config));
        }
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let chosen = all.iter().find(|(_, config)| **config == tuned.config);
    let (Some(best), Some(chosen)) = (all.first(), chosen) else {
        return Err(Error::Invalid("nothing was measured".to_string()));
    };
    Ok(TuningRow {
        kernel,
        shape,
        configurations: space.len(),
        measured: all.len(),
        seconds,
        judging_seconds: judged.get().map_or(seconds, Duration::as_secs_f64),
        golden_seconds,
        chosen: format!("{:?}", tuned.config),
        chosen_ms: chosen.0 * 1e3,
        best: format!("{:?}", best.1),
        best_ms: best.0 * 1e3,
        peer: None,
    })
}

fn golden<C, W: Workload<C>>(
    config: &C,
    problem: &impl Fn(&Device) -> Result<W>,
) -> Result<Vec<Array>> {
    let cpu = Device::cpu();
    let mut workload = problem(&cpu)?;
    workload.launch(config)?;
    cpu.synchronize()?;
    workload.outputs()
}

/// What the peer's process prints.
fn peers(
    python: &str,
    script: &Path,
    extents: [usize; 3],
    say: &dyn Fn(&str),
) -> Result<Vec<Peer>> {
    say("Triton: tuning");
    let output = Command::new(python)
        .arg(script)
        .args(extents.map(|extent| extent.to_string()))
        .output()
        .map_err(|error| Error::Invalid(format!("`{python}`: {error}")))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Invalid(format!("`{}`: {errors}", script.display())));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| Error::Invalid(format!("`{}`: {error}", script.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_sixty_configurations_of_each() {
        assert_eq!((softmax_space().len(), matmul_space().len()), (60, 60));
    }

    #[test]
    fn a_report_says_what_was_missed() -> Result<()> {
        let device = Device::cpu();
        let plan = TuningPlan {
            device: &device,
            extents: [16, 64, 64],
            peer: None,
        };
        let mut report = tuning(&plan, &|_| ())?;
        let names: Vec<_> = report.rows.iter().map(|row| row.kernel).collect();
        assert_eq!(names, ["softmax", "matmul"]);
        for row in &mut report.rows {
            // A schedule says nothing to a CPU, so all are right.
            assert_eq!((row.configurations, row.measured), (60, 60));
            (row.chosen_ms, row.best_ms) = (1.0, 1.0);
            (row.seconds, row.golden_seconds) = (2.0, 1.0);
        }
        assert!(report.verdict().is_ok());
        report.rows[0].chosen_ms = 1.05;
        report.rows[1].peer = Some(Peer {
            kernel: "matmul".to_string(),
            seconds: 6.0,
            configurations: 60,
            chosen: "BM: 64".to_string(),
            ms: 1.0,
        });
        let error = report.verdict().expect_err("both are missed").to_string();
        let expected = "softmax: 1.050 of the best\nmatmul: 0.500 of Triton's time";
        assert_eq!(error, expected);
        Ok(())
    }
}
