//! Inputs that nobody wrote, until the time is over: mutated texts and NPY files, generated programs,
//! launches by several threads at once.
//!
//! Nothing may panic. Text that verifies survives printing; what the interpreter runs in a bounded
//! number of steps has the same bits as machine code and in lanes.

mod files;
mod launches;
mod mutate;
mod text;

use std::fmt;
use std::time::{Duration, Instant};

use super::programs::{self, ProgramsOptions};
use exactile_core::random::Random;

/// One case in so many is a generated program, which takes as long as many texts.
const PROGRAMS: u64 = 64;

/// One case in so many is a set of launches by several threads, which takes as long as many programs.
const LAUNCHES: u64 = 1024;

/// One case in so many is an NPY file.
const FILES: u64 = 8;

/// An input that went wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The index of the case in the run.
    pub index: u64,
    /// What went wrong.
    pub message: String,
    /// The input, made smaller.
    pub input: String,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// How many inputs were tried.
    pub cases: u64,
    /// How many of them were texts that the interpreter ran.
    pub ran: u64,
    /// What went wrong, each only once.
    pub findings: Vec<Finding>,
}

/// Tries inputs for some time, or only the one with this index.
pub fn run(seed: u64, time: Duration, only: Option<u64>) -> Report {
    let start = Instant::now();
    let corpus = text::corpus();
    let mut report = Report {
        seed,
        cases: 0,
        ran: 0,
        findings: Vec::new(),
    };
    for index in only.unwrap_or(0).. {
        let mut random = Random::stream(seed, index);
        let found = if index % LAUNCHES == LAUNCHES / 2 {
            launches::case(&mut random)
        } else if index % PROGRAMS == PROGRAMS - 1 {
            program(&mut random)
        } else if index % FILES == FILES / 2 {
            files::case(&mut random)
        } else {
            text::case(&corpus, &mut random, &mut report.ran)
        };
        report.cases += 1;
        if let Some((message, input)) = found
            && !report.findings.iter().any(|known| known.message == message)
        {
            report.findings.push(Finding {
                index,
                message,
                input,
            });
        }
        if only.is_some() || start.elapsed() >= time {
            break;
        }
    }
    report
}

/// A generated program, run every way there is.
fn program(random: &mut Random) -> Option<(String, String)> {
    let options = ProgramsOptions {
        seed: random.bits(),
        count: 1,
        ..ProgramsOptions::default()
    };
    let report = programs::run(options, &|_| {});
    let failure = report.failures.first()?;
    Some((failure.message.clone(), failure.to_string()))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let (index, message) = (finding.index, &finding.message);
            writeln!(
                f,
                "seed {}, case {index}: {message}\n{}\n",
                self.seed, finding.input
            )?;
        }
        write!(
            f,
            "{} cases of seed {}, {} of them texts that ran: {} findings",
            self.cases,
            self.seed,
            self.ran,
            self.findings.len()
        )
    }
}
