//! How well the estimated cost of launches orders what a tuner tries: `exactile bench order`, from times that reports hold.

use std::collections::BTreeMap;
use std::path::Path;

use exactile::internals::{Cost, record};
use exactile::{Device, Error, Result, Schedule, ScheduleField, Target};
use exactile_kernels::Setting;
use serde::Serialize;
use serde_json::Value;

use super::report::{Finalist, Report};
use super::{Row, Subject};

/// How many candidates are begun with, one column each.
pub const FIRST: [usize; 4] = [1, 3, 5, 8];

/// A candidate with what was measured and what is estimated.
#[derive(Clone, Debug, Serialize)]
pub struct Ordered {
    /// The configuration.
    pub config: Value,
    /// Its time, in milliseconds.
    pub ms: f64,
    /// The estimated cycles of a multiprocessor.
    pub cycles: f64,
    /// The same where nothing is known of the launch, as when warps are chosen.
    pub unknown_cycles: f64,
    /// Warps of the first launch, and those that it would have without a schedule.
    pub warps: [u32; 2],
    /// What they are made of, for each launch.
    pub parts: Vec<BTreeMap<&'static str, f64>>,
}

/// A kernel with the candidates of a search.
#[derive(Clone, Debug, Serialize)]
pub struct OrderRow {
    /// The kernel.
    pub kernel: String,
    /// The type of its numbers.
    pub dtype: String,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// Its candidates, in the order in which they are listed.
    pub candidates: Vec<Ordered>,
}

impl OrderRow {
    /// The best time of the first so many candidates by the estimate, beside the best of all; and the same of the order in which they
    /// are listed.
    #[must_use]
    pub fn loss(&self, first: usize) -> [f64; 2] {
        let best = |list: &[&Ordered]| list.iter().map(|it| it.ms).fold(f64::INFINITY, f64::min);
        let mut list: Vec<&Ordered> = self.candidates.iter().collect();
        let all = best(&list);
        let of_first = |list: &[&Ordered]| best(&list[..first.min(list.len())]) / all;
        let listed = of_first(&list);
        list.sort_by(|one, other| one.cycles.total_cmp(&other.cycles));
        [of_first(&list), listed]
    }

    /// Of each tile whose candidates differ in their warps alone, the time with the warps that no schedule states beside the best, and
    /// that with those of the least estimate: their means. Nothing where no candidate has the former.
    #[must_use]
    pub fn warps(&self) -> Option<[f64; 2]> {
        let mut tiles: BTreeMap<String, Vec<&Ordered>> = BTreeMap::new();
        for candidate in &self.candidates {
            let schedule = setting(&candidate.config);
            let tile = Setting {
                schedule: Schedule {
                    warps: None,
                    ..schedule.schedule
                },
                ..schedule
            };
            let list = tiles.entry(format!("{tile:?}")).or_default();
            list.push(candidate);
        }
        let ratios = tiles.values().filter_map(|list| {
            let best = list.iter().map(|it| it.ms).fold(f64::INFINITY, f64::min);
            let suiting = list.iter().find(|it| it.warps[0] == it.warps[1])?;
            let cheapest = list
                .iter()
                .min_by(|one, other| one.unknown_cycles.total_cmp(&other.unknown_cycles))?;
            (list.len() > 1).then_some([suiting.ms / best, cheapest.ms / best])
        });
        let ratios: Vec<[f64; 2]> = ratios.collect();
        let count = ratios.len() as f64;
        let mean = |at: usize| ratios.iter().map(|it| it[at]).sum::<f64>() / count;
        (!ratios.is_empty()).then(|| [mean(0), mean(1)])
    }

    /// The row as a line of a table in Markdown.
    pub fn line(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let losses = FIRST.map(|first| {
            let [estimated, listed] = self.loss(first);
            format!("{estimated:.3} | {listed:.3}")
        });
        let warps = self.warps().map_or_else(
            || "- | -".to_string(),
            |[rule, estimated]| format!("{rule:.3} | {estimated:.3}"),
        );
        format!(
            "| {} {} {} | {} | {} | {warps} |",
            self.kernel,
            self.dtype,
            shape.join("x"),
            self.candidates.len(),
            losses.join(" | ")
        )
    }
}

/// The searches of a report, in exact mode, of these kernels.
///
/// # Errors
/// The report cannot be read.
pub fn order(
    file: &Path,
    subjects: &[Subject],
    target: &Target,
    tell: &dyn Fn(&str),
) -> Result<Vec<OrderRow>> {
    let invalid =
        |error: &dyn std::fmt::Display| Error::Invalid(format!("{}: {error}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| invalid(&error))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
    let mut rows = Vec::new();
    // The trials of a case are the same in the rows of all regimes.
    let regime = report.rows.first().map(|row| row.regime);
    let is_exact = |row: &&Row| row.determinism == "exact" && Some(row.regime) == regime;
    for row in report.rows.iter().filter(is_exact) {
        if let Some(subject) = subjects.iter().find(|it| row.is_of(&it.case)) {
            tell(&format!("{} {:?}", row.kernel, row.shape));
            rows.push(of_row(row, subject, target)?);
        }
    }
    Ok(rows)
}

fn of_row(row: &Row, subject: &Subject, target: &Target) -> Result<OrderRow> {
    let mut times: Vec<(Setting, &Finalist)> = Vec::new();
    for trial in &row.trials {
        times.push((setting(&trial.config), trial));
    }
    let mut candidates = Vec::new();
    let device = Device::lanes();
    let mut problem = (subject.case.setup)(&device)?;
    for candidate in &subject.candidates {
        let Some((_, trial)) = times.iter().find(|(setting, _)| setting == candidate) else {
            continue;
        };
        let jobs = record(&device, || problem.launch(candidate))?;
        let costs = |is_known: bool| -> Result<Vec<Cost>> {
            jobs.iter().map(|job| job.cost(target, is_known)).collect()
        };
        let (costs, unknown) = (costs(true)?, costs(false)?);
        let first = costs.first();
        candidates.push(Ordered {
            config: trial.config.clone(),
            ms: trial.ms,
            cycles: costs.iter().map(|cost| cost.cycles).sum(),
            unknown_cycles: unknown.iter().map(|cost| cost.cycles).sum(),
            warps: first.map_or([0; 2], |cost| [cost.warps, cost.suiting_warps]),
            parts: costs.iter().map(parts).collect(),
        });
    }
    Ok(OrderRow {
        kernel: row.kernel.clone(),
        dtype: row.dtype.clone(),
        shape: row.shape.clone(),
        candidates,
    })
}

fn parts(cost: &Cost) -> BTreeMap<&'static str, f64> {
    BTreeMap::from([
        ("memory", cost.memory),
        ("cache", cost.cache),
        ("issue", cost.issue),
        ("latency", cost.latency),
        ("start", cost.start),
        ("program", cost.program),
        ("registers", f64::from(cost.registers)),
        ("spilled", f64::from(cost.spilled)),
        ("residents", f64::from(cost.residents)),
    ])
}

/// The setting that a report states; what it does not state is left to the kernel.
fn setting(config: &Value) -> Setting {
    let number = |name: &str| config.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut schedule = Schedule::AUTO;
    for &field in ScheduleField::ALL {
        let stated = u32::try_from(number(field.row().name)).unwrap_or(0);
        schedule.set(field, Some(stated).filter(|&it| it > 0));
    }
    Setting {
        block: number("block") as usize,
        width: number("width") as usize,
        schedule,
        ..Setting::default()
    }
}
