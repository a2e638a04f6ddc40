//! What a run of products or of attention found.

use std::collections::BTreeMap;
use std::fmt;

use exactile::Error;
use serde::Serialize;

use super::ProductsOptions;
use super::judge::{Tally, Wrong};
use crate::bench::today;

/// Of the settings that were to run, the part that must have run for the run to say something.
const ENOUGH: f64 = 0.33;

/// A problem whose bits are not those of the CPU on a device.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// Its number.
    pub number: usize,
    /// What it is.
    pub title: String,
    /// The device and the setting of the first run that is wrong, and whether it was checked.
    pub way: String,
    /// What differs: the first elements with their bits.
    pub message: String,
    /// How many other runs on that device are wrong too.
    pub more: usize,
    /// What repeats it alone.
    pub again: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            title,
            way,
            message,
            more,
            again,
        } = self;
        write!(
            f,
            "problem {number}: {title}\n{way}: {message}\n{more} other runs are wrong\nagain: {again}"
        )
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked for.
    pub options: ProductsOptions,
    /// Problems that have ended.
    pub problems: usize,
    /// How long they took.
    pub seconds: f64,
    /// Problems with a golden run, by kernels and types.
    pub kernels: BTreeMap<String, usize>,
    /// What became of the runs, by devices.
    pub tallies: BTreeMap<String, Tally>,
    /// Problems without a golden run, by the CPU's reason.
    pub refused: BTreeMap<String, usize>,
    /// What is wrong.
    pub failures: Vec<Failure>,
}

impl Report {
    pub(super) fn new(options: ProductsOptions) -> Self {
        Self {
            options,
            problems: 0,
            seconds: 0.0,
            kernels: BTreeMap::new(),
            tallies: BTreeMap::new(),
            refused: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    pub(super) fn refuse(&mut self, error: &Error) {
        *self
            .refused
            .entry(super::judge::reason(&error.to_string()))
            .or_default() += 1;
    }

    pub(super) fn fail(&mut self, number: usize, title: &str, (wrong, more): (Wrong, usize)) {
        self.failures.push(Failure {
            number,
            title: title.to_string(),
            way: wrong.way,
            message: wrong.message,
            more,
            again: self.again(number),
        });
    }

    /// The command that repeats a problem alone.
    fn again(&self, number: usize) -> String {
        let ProductsOptions {
            seed,
            schedules,
            most,
            attention,
            ..
        } = self.options;
        let attention = if attention { " --attention" } else { "" };
        format!(
            "exactile selftest products{attention} --seed {seed} --only {number} --schedules {schedules} --most {most}"
        )
    }

    /// How many results were compared.
    pub fn compared(&self) -> usize {
        self.tallies.values().map(|it| it.compared).sum()
    }

    /// What is too little for the run to say something, by devices.
    pub fn too_few(&self) -> Vec<String> {
        let tallies = self.tallies.iter();
        let short = tallies.filter(|(_, it)| {
            let wanted = 2.0 * it.settings as f64 * ENOUGH;
            (it.compared as f64) < wanted
        });
        let told = short.map(|(device, it)| {
            format!(
                "{device}: {} results of {} settings",
                it.compared, it.settings
            )
        });
        told.collect()
    }

    /// Whether enough was compared, and nothing was wrong.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.compared() > 0 && self.too_few().is_empty()
    }

    /// The run as JSON has it.
    pub fn summary<'a>(&'a self, commit: &'a str) -> Summary<'a> {
        let options = &self.options;
        Summary {
            commit,
            date: today(),
            of: if options.attention {
                "attention"
            } else {
                "products"
            },
            seed: options.seed,
            from: options.only.unwrap_or(options.from),
            asked: options.only.map_or(options.count, |_| 1),
            problems: self.problems,
            schedules: options.schedules,
            most: options.most,
            seconds: self.seconds,
            compared: self.compared(),
            kernels: &self.kernels,
            devices: &self.tallies,
            refused_by_the_cpu: &self.refused,
            failures: &self.failures,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kernel, count) in &self.kernels {
            writeln!(f, "{kernel}: {count} problems")?;
        }
        for (reason, count) in &self.refused {
            writeln!(f, "refused on the CPU: {count}: {reason}")?;
        }
        for (device, tally) in &self.tallies {
            writeln!(
                f,
                "{device}: {} results of {} settings of {} problems compared, {} settings refused, {} problems too large",
                tally.compared,
                tally.settings,
                tally.problems,
                tally.refusals(),
                tally.too_large
            )?;
            for (reason, count) in &tally.refused {
                writeln!(f, "    {count} refused: {reason}")?;
            }
        }
        for device in self.too_few() {
            writeln!(f, "too few were compared on {device}")?;
        }
        write!(
            f,
            "{} problems, {} results compared, {} failures, {:.0} s",
            self.problems,
            self.compared(),
            self.failures.len(),
            self.seconds
        )
    }
}

/// A run as JSON has it.
#[derive(Clone, Debug, Serialize)]
pub struct Summary<'a> {
    /// The commit that was tested.
    pub commit: &'a str,
    /// The day, in UTC.
    pub date: String,
    /// What was drawn.
    pub of: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// The number of the first problem.
    pub from: usize,
    /// How many problems were asked for.
    pub asked: usize,
    /// How many have ended.
    pub problems: usize,
    /// Settings of each.
    pub schedules: usize,
    /// The most multiply-adds of one.
    pub most: u64,
    /// How long the run took.
    pub seconds: f64,
    /// Results that were compared, on all devices.
    pub compared: usize,
    /// Problems, by kernels and types.
    pub kernels: &'a BTreeMap<String, usize>,
    /// What became of the runs, by devices.
    pub devices: &'a BTreeMap<String, Tally>,
    /// Problems that the CPU refused, by the reason.
    pub refused_by_the_cpu: &'a BTreeMap<String, usize>,
    /// What is wrong.
    pub failures: &'a [Failure],
}
