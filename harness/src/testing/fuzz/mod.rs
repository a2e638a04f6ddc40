//! Inputs that nobody wrote, until the time is over: mutated texts and NPY files, generated programs,
//! launches by several threads at once.
//!
//! Nothing may panic, end the process or take for ever: the cases run in a process of their own. Text that verifies survives printing; what the interpreter runs in a bounded
//! number of steps has the same bits as machine code and in lanes. In a build with LLVM, which ends the process where it
//! cannot go on, PTX is made of generated programs and of some texts.

mod cases;
mod files;
mod launches;
mod mutate;
mod ptx;
mod supervise;
mod text;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cases::run_cases;
pub use supervise::run;

/// Which inputs to try.
#[derive(Clone, Debug)]
pub struct FuzzOptions {
    /// The seed.
    pub seed: u64,
    /// The index of the first case.
    pub from: u64,
    /// Try only the case with this index.
    pub only: Option<u64>,
    /// How long to go on.
    pub time: Duration,
    /// How long a case may take.
    pub case_time: Duration,
}

impl Default for FuzzOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            from: 0,
            only: None,
            time: Duration::from_secs(60),
            // Launches by several threads take that long on a machine that has other work.
            case_time: Duration::from_secs(180),
        }
    }
}

/// An input that went wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The seed of the run.
    pub seed: u64,
    /// The index of the case in the run.
    pub index: u64,
    /// What went wrong.
    pub message: String,
    /// The input, made smaller.
    pub input: String,
}

/// What the process that tries inputs says to the one that started it: a line of JSON each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Said {
    /// The case with this index is tried next.
    Started(u64),
    /// It has ended; whether it was a text that the interpreter ran.
    Ended(bool),
    /// It went wrong.
    Found(Finding),
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
    /// What went wrong, each only once; a process that ended or a case that took too long, each time.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            index,
            message,
            input,
        } = self;
        writeln!(f, "seed {seed}, case {index}: {message}")?;
        writeln!(
            f,
            "again: exactile selftest fuzz --seed {seed} --only {index}"
        )?;
        write!(f, "{input}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
