//! What a run of the benchmark found, as the JSON file has it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::Regime;
use super::sample::Sample;
use super::tune::Search;
use crate::demo::Case;
use exactile::internals::write_file;
use exactile::{Error, Result};
use exactile_kernels::Setting;

/// The day, in UTC.
pub(crate) fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// A run of the benchmark.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The commit that was measured.
    pub commit: String,
    /// The model of the device.
    pub device: String,
    /// The day, in UTC.
    pub date: String,
    /// How times were taken.
    pub method: BTreeMap<String, String>,
    /// The peers' libraries and their versions.
    pub libraries: BTreeMap<String, String>,
    /// What went wrong with the peers, the case in front where it was of one.
    pub notes: Vec<String>,
    /// One for each kernel, input and level of determinism.
    pub rows: Vec<Row>,
    /// Kernels that could not be measured.
    pub failures: Vec<Failure>,
    /// Kernels that there was no time for.
    pub not_begun: Vec<String>,
}

/// One kernel at one level of determinism.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The kernel's name.
    pub kernel: String,
    /// The type of its numbers.
    pub dtype: String,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// The configuration that the tuner chose.
    pub config: Value,
    /// The level promised.
    pub determinism: String,
    /// What the device did before launches that were timed.
    #[serde(default)]
    pub regime: Regime,
    /// Median of the rounds, in milliseconds.
    pub ms: f64,
    /// Least and greatest of the rounds, in milliseconds.
    pub spread_ms: [f64; 2],
    /// Bytes that must move.
    pub bytes: u64,
    /// How they are counted.
    pub formula: String,
    /// Gigabytes a second.
    pub gb_s: f64,
    /// The rate over that of the best copy of as many bytes.
    pub share_of_copy: f64,
    /// The rates of copies, in gigabytes a second.
    pub copy_gb_s: BTreeMap<String, f64>,
    /// The fastest peer.
    pub peer: Option<String>,
    /// Its rate, by the same bytes.
    pub peer_gb_s: Option<f64>,
    /// Its time over this row's: above 1 means that this row is faster.
    pub ratio_to_best_peer: Option<f64>,
    /// Every peer's figures.
    pub peers: BTreeMap<String, PeerTime>,
    /// Time of exact mode over time without promises.
    pub ratio_exact_to_fast: f64,
    /// Time of launches that check every access over this row's, for the exact row.
    pub ratio_checked: Option<f64>,
    /// Time of launches without a setting over this row's, for the exact row; `None` where they are refused.
    #[serde(default)]
    pub ratio_default: Option<f64>,
    /// The same over the best of the settings that were drawn, where some were: above 1 means that the default is slower.
    #[serde(default)]
    pub ratio_default_to_sample: Option<f64>,
    /// Whether all bits are those of the reference.
    pub bits_equal: bool,
    /// Whether the row is as promised: equal bits, or within tolerance without promises.
    pub passed: bool,
    /// Elements compared.
    pub judged: usize,
    /// The greatest distance from the reference, in units in the last place.
    pub max_ulp: u64,
    /// What the results were compared with.
    pub reference: String,
    /// The first mismatches, when the row did not pass.
    pub mismatches: Option<String>,
    /// How the tuner's search went.
    pub search: Search,
    /// The configurations that the tuner chose from in the end, the fastest first.
    #[serde(default)]
    pub finalists: Vec<Finalist>,
    /// All configurations that the tuner measured, in short, the fastest first.
    #[serde(default)]
    pub trials: Vec<Finalist>,
    /// What became of the settings that were drawn, in the exact row.
    #[serde(default)]
    pub sample: Option<Sample>,
}

/// A configuration with its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finalist {
    /// The configuration.
    pub config: Value,
    /// Its time, in milliseconds.
    pub ms: f64,
}

impl From<(f64, Setting)> for Finalist {
    fn from((seconds, setting): (f64, Setting)) -> Self {
        Self {
            config: serde_json::to_value(setting).unwrap_or_default(),
            ms: seconds * 1e3,
        }
    }
}

/// One peer's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerTime {
    /// Median of the rounds, in milliseconds.
    pub ms: f64,
    /// Least and greatest of the rounds.
    pub spread_ms: [f64; 2],
    /// Gigabytes a second, by the bytes of the row.
    pub gb_s: f64,
    /// The configuration that its tuner chose, and how its search went.
    pub config: Value,
}

/// A kernel that could not be measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The kernel's name.
    pub kernel: String,
    /// The type of its numbers.
    pub dtype: String,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// What went wrong.
    pub error: String,
}

impl Failure {
    pub(super) fn new(case: &Case, error: &str) -> Self {
        Self {
            kernel: case.kernel.to_string(),
            dtype: case.dtype.name().to_string(),
            shape: case.shape.clone(),
            error: error.to_string(),
        }
    }
}

/// A case in a few words.
pub(super) fn title(case: &Case) -> String {
    format!(
        "{} {} {}",
        case.kernel,
        case.dtype.name(),
        extents(&case.shape)
    )
}

fn extents(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
    extents.join("x")
}

impl Report {
    /// An empty report of today.
    pub fn new(commit: String, device: String) -> Self {
        Self {
            commit,
            device,
            date: today(),
            ..Self::default()
        }
    }

    /// The report in a file, when there is one of the same commit and device; else this one.
    pub fn resume(self, file: &Path) -> Result<Self> {
        let Ok(text) = std::fs::read_to_string(file) else {
            return Ok(self);
        };
        let mut found: Self = serde_json::from_str(&text)
            .map_err(|error| Error::format(file, format!("not a report: {error}")))?;
        if (&found.commit, &found.device) != (&self.commit, &self.device) {
            return Ok(self);
        }
        found.not_begun.clear();
        Ok(found)
    }

    /// Writes the report to a file, whole or not at all.
    pub fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::format(file, error.to_string()))?;
        if let Some(folder) = file.parent().filter(|folder| *folder != Path::new("")) {
            std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
        }
        write_file(file, format!("{text}\n").as_bytes())
    }

    /// Whether there are rows of a case in all of these regimes.
    pub(super) fn has(&self, case: &Case, regimes: &[Regime]) -> bool {
        let rows = self.rows.iter().filter(|row| row.is_of(case));
        let found: Vec<Regime> = rows.map(|row| row.regime).collect();
        regimes.iter().all(|regime| found.contains(regime))
    }

    /// Drops what is found anew: the rows of a case in these regimes, and what failed about it.
    pub(super) fn forget(&mut self, case: &Case, regimes: &[Regime]) {
        self.rows
            .retain(|row| !row.is_of(case) || !regimes.contains(&row.regime));
        self.failures.retain(|failure| {
            (
                failure.kernel.as_str(),
                failure.dtype.as_str(),
                &failure.shape,
            ) != (case.kernel, case.dtype.name(), &case.shape)
        });
    }

    /// Adds the notes that are new, which a report that was gone on with has some of, and returns
    /// them.
    pub(super) fn add_notes(&mut self, notes: &[String]) -> &[String] {
        let before = self.notes.len();
        for note in notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
        &self.notes[before..]
    }

    /// An error that names rows that are not as promised, and kernels that failed.
    pub fn verdict(&self) -> Result<()> {
        let wrong = self.rows.iter().filter(|row| !row.passed);
        let mut problems: Vec<String> = wrong
            .map(|row| {
                format!(
                    "{}\n{}",
                    row.line(),
                    row.mismatches.as_deref().unwrap_or("")
                )
            })
            .collect();
        for failure in &self.failures {
            let place = extents(&failure.shape);
            let Failure { kernel, dtype, .. } = failure;
            problems.push(format!("{kernel} {dtype} {place}: {}", failure.error));
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(Error::Mismatch(problems.join("\n")))
    }
}

impl Row {
    /// Whether it is of the kernel, the type and the extents of a case.
    pub(super) fn is_of(&self, case: &Case) -> bool {
        (self.kernel.as_str(), self.dtype.as_str(), &self.shape)
            == (case.kernel, case.dtype.name(), &case.shape)
    }

    /// The row as a line for people.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{:12} {:4} {:16} {:14} {:9.4} ms {:7.0} GB/s {:5.2} of copy",
            self.kernel,
            self.dtype,
            extents(&self.shape),
            self.determinism,
            self.ms,
            self.gb_s,
            self.share_of_copy,
        );
        if self.regime != Regime::default() {
            line.push_str(&format!(", {}", self.regime.name()));
        }
        for (name, peer) in &self.peers {
            line.push_str(&format!(", {name} {:.0}", peer.gb_s));
        }
        if let Some(ratio) = self.ratio_to_best_peer {
            line.push_str(&format!(", {ratio:.2} times the best peer"));
        }
        if let Some(ratio) = self.ratio_checked {
            line.push_str(&format!(", checked {ratio:.2}"));
        }
        if let Some(ratio) = self.ratio_default {
            line.push_str(&format!(", default {ratio:.2}"));
        }
        if let Some(ratio) = self.ratio_default_to_sample {
            line.push_str(&format!(", {ratio:.2} of the best drawn"));
        }
        line.push_str(match (self.bits_equal, self.passed) {
            (true, _) => ", bits equal",
            (false, true) => ", close",
            (false, false) => ", WRONG",
        });
        line
    }
}
