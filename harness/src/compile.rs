//! `exactile compile`: how long each stage of the compiler takes for each kernel.

use std::collections::BTreeMap;

use exactile::internals::{Job, Store, record};
use exactile::{Determinism, Device, Error, Result, Schedule, StageTime, Target};
use exactile_core::target::Distribution;
use exactile_kernels::Setting;
use serde::Serialize;

use crate::demo::Case;

/// How long a kernel takes to compile.
#[derive(Clone, Debug, Serialize)]
pub struct CompileRow {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The type of its numbers.
    pub dtype: &'static str,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// The machine that the code is for.
    pub target: &'static str,
    /// Milliseconds from the trace to machine code of a CPU or to PTX: the least of all repetitions.
    pub ms: f64,
    /// Milliseconds of `ptxas` in that repetition, where `EXACTILE_PTXAS` names one.
    pub ptxas_ms: f64,
    /// Milliseconds of each stage of that repetition, `ptxas` apart.
    pub stages: BTreeMap<&'static str, f64>,
}

/// The stage that is no part of `ms`.
const ASSEMBLER: &str = "ptxas";

impl CompileRow {
    /// The row as a line of a table, with the stages that take longest.
    pub fn line(&self) -> String {
        let mut stages: Vec<_> = self.stages.iter().collect();
        stages.sort_by(|one, other| other.1.total_cmp(one.1));
        let longest = stages.iter().take(5);
        let longest: Vec<String> = longest
            .map(|(name, ms)| format!("{name} {ms:.2}"))
            .collect();
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!(
            "{:15} {:5} {:16} {:7} {:9.2} {:9.2}  {}",
            self.kernel,
            self.dtype,
            shape.join("x"),
            self.target,
            self.ms,
            self.ptxas_ms,
            longest.join(", ")
        )
    }
}

/// The launches of a case for a machine, with its first tile size.
fn launches(
    case: &Case,
    target: &Target,
    schedule: Schedule,
    determinism: Determinism,
) -> Result<Vec<Job>> {
    recorded(target, |device| launch(case, device, schedule, determinism))
}

/// What `work` would compile for a machine, none of which runs.
///
/// # Errors
/// What `work` refuses.
pub fn recorded(target: &Target, work: impl FnOnce(&Device) -> Result<()>) -> Result<Vec<Job>> {
    let device = match target.distribution {
        Distribution::Sequential => Device::cpu(),
        Distribution::Distributed => Device::lanes(),
    };
    record(&device, || work(&device))
}

/// Launches a case with its first tile size.
pub fn launch(
    case: &Case,
    device: &Device,
    schedule: Schedule,
    determinism: Determinism,
) -> Result<()> {
    let setting = Setting {
        block: case.blocks.first().copied().unwrap_or_default(),
        schedule,
        determinism,
        ..Setting::default()
    };
    (case.setup)(device)?.launch(&setting)
}

/// Compiles what one launch of a case runs, `repetitions` times, with its first tile size. Code for a GPU is taken
/// from `store` where it is there, and kept there.
pub fn measure(
    case: &Case,
    target: &Target,
    schedule: Schedule,
    determinism: Determinism,
    repetitions: usize,
    store: Option<&Store>,
) -> Result<CompileRow> {
    let jobs = launches(case, target, schedule, determinism)?;
    let mut best: Option<Vec<StageTime>> = None;
    for _ in 0..repetitions {
        let mut times = Vec::new();
        for job in &jobs {
            times.extend(job.compile_times(target, store)?);
        }
        if best.as_ref().is_none_or(|best| total(&times) < total(best)) {
            best = Some(times);
        }
    }
    let times = best.ok_or_else(|| Error::Invalid("no repetition measures nothing".to_string()))?;
    let mut stages = BTreeMap::new();
    for stage in &times {
        *stages.entry(stage.name).or_default() += stage.time.as_secs_f64() * 1e3;
    }
    Ok(CompileRow {
        kernel: case.kernel,
        dtype: case.dtype.name(),
        shape: case.shape.clone(),
        target: target.name,
        ms: total(&times),
        ptxas_ms: stages.remove(ASSEMBLER).unwrap_or_default(),
        stages,
    })
}

fn total(times: &[StageTime]) -> f64 {
    let own = times.iter().filter(|stage| stage.name != ASSEMBLER);
    own.map(|stage| stage.time.as_secs_f64() * 1e3).sum()
}
