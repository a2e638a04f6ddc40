//! The benchmark: kernels in exact mode and without promises, and the kernels of their peers, tuned
//! and then timed in turns on one machine.
//!
//! A round times each contestant once, in an order that is drawn; a contestant's time is the median of its rounds. A round's
//! time is the median of many launches by the device's own clock, on a GPU in a regime that is alike for all: after the
//! caches were flushed, rested, or sustained. Every result of this crate is judged: bits where they are
//! promised, the standard tolerance elsewhere.

mod bursts;
mod clock;
pub mod compile;
mod contest;
mod copy;
pub mod launch;
pub mod levels;
pub mod order;
mod peers;
mod report;
mod sample;
mod tune;
pub mod tuning;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use exactile_kernels::Setting;

use crate::demo::Case;
use exactile::Device;
use exactile::Result;
use exactile::internals;

pub use peers::{Library, PeersCommand};
pub(crate) use report::today;
pub use report::{Failure, PeerTime, Report, Row};
pub(crate) use sample::draw;
pub use sample::{Sample, Sampling};

use clock::Clock;
pub use clock::Regime;
use contest::Contest;
use copy::CopyRates;
use peers::Peers;

/// A kernel to measure.
pub struct Subject {
    /// The kernel with its input.
    pub case: Case,
    /// The configurations that the tuner chooses from; those in front are tried when time is short.
    pub candidates: Vec<Setting>,
    /// How the bytes of the case are counted.
    pub formula: &'static str,
}

impl Subject {
    /// The kernel, the type and the extents, as a row of the report begins.
    pub fn title(&self) -> String {
        report::title(&self.case)
    }

    /// Whether this is its kernel or its title.
    pub fn is(&self, wanted: &str) -> bool {
        self.case.kernel == wanted || self.title() == wanted
    }
}

/// How to measure.
pub struct Plan {
    /// What runs this crate's kernels.
    pub device: Device,
    /// How the peers are started; none when absent.
    pub peers: Option<PeersCommand>,
    /// Times that each contestant is measured.
    pub rounds: usize,
    /// Time that tuning one kernel may take, half of it for each side.
    pub tuning: Duration,
    /// Settings to draw beside those of the tuner, if any; they may take as much time as tuning.
    pub sampling: Option<Sampling>,
    /// Time of one contestant in one round.
    pub round: Duration,
    /// What a GPU does before a launch that is timed; each has rounds and rows of its own, for settings that were tuned
    /// flushed.
    pub regimes: Vec<Regime>,
    /// No kernel is begun after this time.
    pub deadline: Duration,
}

/// Measures all subjects that `report` has no rows of, and hands the report to `keep` after each
/// and lines about what happens to `say`.
///
/// A subject that fails is noted in the report, and the others go on.
pub fn run(
    plan: &Plan,
    subjects: &[Subject],
    mut report: Report,
    keep: &mut dyn FnMut(&Report) -> Result<()>,
    say: &dyn Fn(&str),
) -> Result<Report> {
    let begin = Instant::now();
    let mut clock = Clock::new(&plan.device)?;
    report.method.extend(method(plan, &clock));
    let mut peers = Peers::new(plan.peers.clone());
    let mut copies = CopyRates::default();
    for subject in subjects {
        let name = subject.title();
        if report.has(&subject.case, &plan.regimes) {
            say(&format!("{name}: measured before"));
            continue;
        }
        if begin.elapsed() > plan.deadline {
            say(&format!("{name}: no time is left"));
            report.not_begun.push(name);
            continue;
        }
        report.forget(&subject.case, &plan.regimes);
        let start = Instant::now();
        let contest = Contest {
            plan,
            subject,
            clock: &mut clock,
            peers: &mut peers,
            copies: &mut copies,
            say,
        };
        match contest.run() {
            Ok(rows) => {
                for row in &rows {
                    say(&row.line());
                }
                report.rows.extend(rows);
            }
            Err(error) => {
                say(&format!("{name}: {error}"));
                report
                    .failures
                    .push(Failure::new(&subject.case, &error.to_string()));
            }
        }
        say(&format!(
            "{name}: took {:.1} s",
            start.elapsed().as_secs_f64()
        ));
        report.libraries = peers.libraries().clone();
        for note in report.add_notes(peers.notes()) {
            say(&format!("peers: {note}"));
        }
        keep(&report)?;
        // Another kernel uses none of it, and a search leaves much.
        internals::forget_code(&plan.device);
    }
    Ok(report)
}

/// How times are taken, in words.
fn method(plan: &Plan, clock: &Clock) -> BTreeMap<String, String> {
    let round = plan.round.as_secs_f64() * 1e3;
    let rounds = format!(
        "median of {} rounds in turns, in an order that is drawn; a round is the median of launches over {round:.0} ms",
        plan.rounds
    );
    let regimes = plan
        .regimes
        .iter()
        .map(|&regime| (regime.name(), clock.method(regime).to_string()));
    let entries = [
        ("rounds", rounds),
        ("copy", "of as many bytes as the kernel moves, f32, the better of this crate's copy and the peers'".to_string()),
        ("default", "launches whose setting is left to the kernel and the compiler".to_string()),
        ("sample", "the best of settings drawn from all tile sizes and schedules, each compared bit by bit".to_string()),
        ("checked", "launches that check every access, to the end of the kernel".to_string()),
    ];
    regimes
        .chain(entries)
        .map(|(name, text)| (name.to_string(), text))
        .collect()
}
