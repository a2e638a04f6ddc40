//! What a run of random programs prints.

use std::fmt;
use std::time::Duration;

use super::generate::Program;
use super::run::{Failure, Report};
use super::subject::Subject;

impl Failure {
    /// The program and the way that it was run.
    pub fn title(&self) -> String {
        let index = self.index;
        match self.subject {
            Some(subject) => format!("program {index} on {subject}"),
            None => format!("program {index} on the interpreter"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.title(), self.message)?;
        write!(f, "{}", self.program)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program {
            grid,
            bounds,
            determinism,
            schedule,
            gpu,
            timing,
            facts,
            ..
        } = self;
        let gpu = gpu.map_or("no GPU", |gpu| gpu.name);
        writeln!(
            f,
            "; grid={grid:?} {bounds:?} {determinism:?} {schedule:?} {gpu}"
        )?;
        writeln!(f, "; {timing:?}")?;
        writeln!(f, "; {facts:?}")?;
        for (parameter, contents) in self.func.parameters.iter().zip(&self.arguments) {
            writeln!(f, "; {} = {contents}", parameter.name)?;
        }
        write!(f, "{}", *self.func)
    }
}

impl Report {
    /// The time of all threads together.
    pub(super) fn total_seconds(&self) -> f64 {
        self.spent.values().sum::<Duration>().as_secs_f64()
    }

    /// Programs in a second of a thread.
    pub fn rate(&self) -> f64 {
        self.programs as f64 / self.total_seconds().max(f64::MIN_POSITIVE)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(reason) = &self.skipped {
            writeln!(f, "SKIPPED the GPU: {reason}")?;
        }
        let (subjects, _) = Subject::available(&self.options.warps);
        let subjects: Vec<String> = subjects.iter().map(ToString::to_string).collect();
        for slow in &self.slowest {
            writeln!(f, "slow: {slow}")?;
        }
        let (total, rate) = (self.total_seconds(), self.rate());
        write!(f, "{rate:.1} programs each second of a thread:")?;
        for (kind, time) in &self.spent {
            let share = 100.0 * time.as_secs_f64() / total.max(f64::MIN_POSITIVE);
            write!(f, " {kind} {share:.0}%")?;
        }
        writeln!(f)?;
        write!(
            f,
            "{} programs of seed {}, each run by the interpreter and as {}{}: {} failures",
            self.programs,
            self.options.seed,
            subjects.join(", "),
            if self.options.warps.is_empty() {
                ", a random number of warps"
            } else {
                ""
            },
            self.failures.len()
        )
    }
}
