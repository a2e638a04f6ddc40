//! How long the ready kernels take to compile for a GPU, under which schedules: `exactile bench compile`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use exactile::internals::Job;
use exactile::{Error, Result, Schedule, ScheduleField, Target};
use exactile_core::passes::code_size::instructions;
use exactile_kernels::Setting;
use serde::Serialize;

use crate::cases::ready::{Ready, ready};

/// What to compile.
pub struct CompilePlan {
    /// The GPU.
    pub target: Target,
    /// The numbers of warps, each beside all kernels; nothing among them, or an empty list, leaves each to its own schedule.
    pub warps: Vec<Option<u32>>,
    /// The tile size that kernels have in place of their own.
    pub block: Option<usize>,
    /// Names that those of the kernels begin with; none takes all.
    pub only: Vec<String>,
    /// Compilations of each kernel, of which the fastest counts.
    pub repetitions: usize,
    /// No launch is begun after this time.
    pub most: Duration,
}

/// The compiler's own schedule, and every number of warps.
pub fn every_schedule() -> Vec<Option<u32>> {
    let warps = ScheduleField::Warps.row().tries.iter();
    [None].into_iter().chain(warps.copied().map(Some)).collect()
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct CompileReport {
    /// The commit that this was built from.
    pub commit: String,
    /// The GPU.
    pub target: &'static str,
    /// What makes code, without the assembler, whose name is a place on this machine.
    pub maker: String,
    /// A row for each kernel and number of warps.
    pub rows: Vec<CompileLine>,
    /// What is refused, and how soon.
    pub refused: Vec<Refusal>,
    /// Launches with a number of warps that time did not suffice for.
    pub left_out: usize,
}

/// How long a kernel took.
#[derive(Clone, Debug, Serialize)]
pub struct CompileLine {
    /// What launches it.
    pub launch: String,
    /// The kernel.
    pub kernel: String,
    /// The number of warps where one is stated.
    pub warps: Option<u32>,
    /// About how many instructions a lane has.
    pub instructions: usize,
    /// Milliseconds of all stages.
    pub ms: f64,
    /// Those of the assembler, where one is named.
    pub assembler_ms: f64,
    /// Those of LLVM.
    pub llvm_ms: f64,
    /// Those of the trace and of all stages before LLVM.
    pub own_ms: f64,
}

/// A schedule that a kernel has not.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// What launches the kernel.
    pub launch: String,
    /// The number of warps where one is stated.
    pub warps: Option<u32>,
    /// Milliseconds until it was refused.
    pub ms: f64,
    /// Why.
    pub message: String,
}

/// Compiles what the launches of all ready kernels run, once for each number of warps.
///
/// # Errors
/// When nothing is to be measured. What does not compile stands in the report.
pub fn compile(plan: &CompilePlan, tell: &dyn Fn(&str)) -> Result<CompileReport> {
    let mut report = CompileReport {
        commit: String::new(),
        target: plan.target.name,
        maker: exactile::internals::maker()
            .unwrap_or_default()
            .split(',')
            .take(1)
            .collect(),
        rows: Vec::new(),
        refused: Vec::new(),
        left_out: 0,
    };
    let begin = Instant::now();
    let mut list = ready();
    let wanted = |name: &str| plan.only.iter().any(|start| name.starts_with(start));
    list.retain(|it| plan.only.is_empty() || wanted(&it.name));
    if list.is_empty() || plan.repetitions == 0 {
        return Err(Error::Invalid("there is nothing to measure".to_string()));
    }
    let stated = match plan.warps[..] {
        [] => vec![None],
        [..] => plan.warps.clone(),
    };
    let all = stated.len() * list.len();
    let each = stated
        .iter()
        .flat_map(|it| list.iter().map(move |launch| (launch, *it)));
    for (at, (launch, warps)) in each.enumerate() {
        if begin.elapsed() > plan.most {
            report.left_out = all - at;
            break;
        }
        tell(&format!(
            "{} of {all}: {} on {} warps",
            at + 1,
            launch.name,
            of_warps(warps)
        ));
        measure(plan, launch, warps, &mut report);
    }
    Ok(report)
}

fn measure(plan: &CompilePlan, launch: &Ready, warps: Option<u32>, report: &mut CompileReport) {
    let setting = Setting {
        block: plan.block.unwrap_or_default(),
        schedule: Schedule {
            warps,
            ..Schedule::AUTO
        },
        ..Setting::default()
    };
    let mut refuse = |since: Instant, error: &Error| {
        report.refused.push(Refusal {
            launch: launch.name.clone(),
            warps,
            ms: since.elapsed().as_secs_f64() * 1e3,
            message: error.to_string(),
        });
    };
    let since = Instant::now();
    let jobs = match launch.jobs(&plan.target, &setting) {
        Ok(jobs) => jobs,
        Err(error) => return refuse(since, &error),
    };
    for job in &jobs {
        let since = Instant::now();
        match fastest(plan, job) {
            Ok((kernel, instructions, times)) => {
                let of = |stage: &str| times.get(stage).copied().unwrap_or_default();
                let (ms, assembler_ms, llvm_ms) =
                    (times.values().sum::<f64>(), of("ptxas"), of("llvm"));
                report.rows.push(CompileLine {
                    launch: launch.name.clone(),
                    kernel,
                    warps,
                    instructions,
                    ms,
                    assembler_ms,
                    llvm_ms,
                    own_ms: ms - assembler_ms - llvm_ms,
                });
            }
            Err(error) => refuse(since, &error),
        }
    }
}

/// The name of the kernel, its instructions, and the milliseconds of each stage in the fastest compilation.
fn fastest(plan: &CompilePlan, job: &Job) -> Result<(String, usize, BTreeMap<&'static str, f64>)> {
    let mut best: BTreeMap<&'static str, f64> = BTreeMap::new();
    for _ in 0..plan.repetitions {
        let mut times = BTreeMap::new();
        for stage in job.compile_times(&plan.target, None)? {
            *times.entry(stage.name).or_default() += stage.time.as_secs_f64() * 1e3;
        }
        if best.is_empty() || times.values().sum::<f64>() < best.values().sum() {
            best = times;
        }
    }
    let lane = job.lane(&plan.target)?;
    Ok((lane.name.clone(), instructions(&lane), best))
}

impl CompileLine {
    /// The row as a line of a table.
    pub fn line(&self) -> String {
        format!(
            "{:32} {:20} {:>5} {:12} {:9.1} {:9.1} {:9.1} {:9.1}",
            self.launch,
            self.kernel,
            of_warps(self.warps),
            self.instructions,
            self.own_ms,
            self.llvm_ms,
            self.assembler_ms,
            self.ms
        )
    }
}

impl Refusal {
    /// The refusal as a line behind a table.
    pub fn line(&self) -> String {
        let message = self.message.trim_end();
        format!(
            "{} on {} warps, refused: {message}",
            self.launch,
            of_warps(self.warps)
        )
    }
}

fn of_warps(warps: Option<u32>) -> String {
    warps.map_or("auto".to_string(), |it| it.to_string())
}

impl CompileReport {
    /// The header of [`CompileLine::line`].
    pub const HEADER: &str = "launch                           kernel               warps instructions       own      llvm assembler     total";

    /// The median and the worst of all rows, in words.
    pub fn summary(&self) -> String {
        let mut times: Vec<f64> = self.rows.iter().map(|row| row.ms).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        let worst = times.last().copied().unwrap_or_default();
        let last = self.refused.iter().map(|it| it.ms).fold(0.0, f64::max);
        let most = self.rows.iter().map(|row| row.instructions).max();
        format!(
            "{} codes: median {middle:.1} ms, worst {worst:.1} ms, {} instructions at most; {} refused, after {last:.1} ms at \
             most; {} left out",
            times.len(),
            most.unwrap_or_default(),
            self.refused.len(),
            self.left_out
        )
    }
}
