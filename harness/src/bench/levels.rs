//! What each level of determinism costs: kernels as nobody has tuned them, at all four levels in turns.

use std::time::Duration;

use exactile::{Determinism, Device, Result};
use exactile_kernels::Setting;
use serde::Serialize;

use super::Subject;
use super::clock::{Clock, Regime, median};
use super::report::title;
use crate::cases::subjects::{Size, subjects};

/// The kernels that are measured.
const KERNELS: [&str; 10] = [
    "vector_add",
    "softmax",
    "layer_norm",
    "cumsum",
    "sum_rows",
    "sum_columns",
    "mean",
    "gelu",
    "cross_entropy",
    "tensor_matmul",
];

/// How to measure.
pub struct LevelsPlan<'a> {
    /// What runs the kernels.
    pub device: &'a Device,
    /// Small inputs, for a test of this.
    pub is_quick: bool,
    /// Times that each level is measured.
    pub rounds: usize,
    /// The commit that the report names.
    pub commit: String,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct LevelsReport {
    /// The commit that this was built from.
    pub commit: String,
    /// The model of the device.
    pub device: String,
    /// How times were taken.
    pub method: &'static str,
    /// A row for each kernel.
    pub rows: Vec<LevelsRow>,
}

/// What was measured of a kernel.
#[derive(Clone, Debug, Serialize)]
pub struct LevelsRow {
    /// The kernel with its type and shape.
    pub case: String,
    /// The time at each level, the one that promises least in front.
    pub levels: Vec<LevelTime>,
}

/// What a level takes.
#[derive(Clone, Debug, Serialize)]
pub struct LevelTime {
    /// The level.
    pub level: &'static str,
    /// Milliseconds of a launch: the median of the rounds.
    pub ms: f64,
    /// The same as a part of the time without any promise.
    pub price: f64,
}

impl LevelsRow {
    /// The row as a line for people.
    pub fn line(&self) -> String {
        let level = |it: &LevelTime| format!("{} {:.4} ms ({:.3})", it.level, it.ms, it.price);
        let levels: Vec<String> = self.levels.iter().map(level).collect();
        format!("{}: {}\n", self.case, levels.join(", "))
    }
}

/// Measures all levels in turns.
///
/// # Errors
/// Those of launches.
pub fn levels(plan: &LevelsPlan<'_>, say: &dyn Fn(&str)) -> Result<LevelsReport> {
    let mut clock = Clock::new(plan.device)?;
    let size = match plan.is_quick {
        true => Size::Quick,
        false => Size::Gpu,
    };
    let mut all = subjects(size);
    let mut rows = Vec::new();
    for kernel in KERNELS {
        let place = all.iter().position(|it| it.case.kernel == kernel);
        if let Some(subject) = place.map(|place| all.remove(place)) {
            say(&title(&subject.case));
            rows.push(row(plan, &mut clock, &subject)?);
        }
    }
    Ok(LevelsReport {
        commit: plan.commit.clone(),
        device: plan.device.name().to_string(),
        method: clock.method(Regime::Flushed),
        rows,
    })
}

fn row(plan: &LevelsPlan<'_>, clock: &mut Clock, subject: &Subject) -> Result<LevelsRow> {
    let time = Duration::from_millis(if plan.is_quick { 1 } else { 100 });
    let mut problem = (subject.case.setup)(plan.device)?;
    let mut times = Determinism::ALL.map(|_| Vec::new());
    // The first round compiles, and counts for nothing.
    for round in 0..=plan.rounds {
        for (level, times) in Determinism::ALL.into_iter().zip(&mut times) {
            let setting = Setting::default().at(level);
            let taken = clock.median(time, &mut || problem.launch(&setting))?;
            plan.device.synchronize()?;
            if round > 0 {
                times.push(taken);
            }
        }
    }
    let times = times.map(|times| median(&times));
    let level = |(level, seconds): (Determinism, f64)| LevelTime {
        level: level.name(),
        ms: seconds * 1e3,
        price: seconds / times[0],
    };
    Ok(LevelsRow {
        case: title(&subject.case),
        levels: Determinism::ALL.into_iter().zip(times).map(level).collect(),
    })
}
