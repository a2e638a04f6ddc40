//! Runs random programs every way there is and compares bits with the interpreter.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;

use super::arguments::Difference;
use super::coverage::Coverage;
use super::generate::{Limits, Program, generate};
use super::shrink;
use super::subject::{Checked, Subject};

/// What to run.
#[derive(Clone, Debug)]
pub struct ProgramsOptions {
    /// The seed of the run.
    pub seed: u64,
    /// How many programs.
    pub count: usize,
    /// Run only the program with this index.
    pub only: Option<usize>,
    /// The numbers of warps to distribute every program over; none leaves each to its own number.
    pub warps: Vec<u32>,
    /// How large programs may become.
    pub limits: Limits,
    /// Whether failing programs are made smaller before they are reported.
    pub shrink: bool,
}

impl Default for ProgramsOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            count: 820,
            only: None,
            warps: Vec::new(),
            limits: Limits::default(),
            shrink: true,
        }
    }
}

/// A program whose results differ from the interpreter's, or that could not be run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Its index in the run.
    pub index: usize,
    /// The way it was run; `None` when the interpreter itself refuses the program.
    pub subject: Option<Subject>,
    /// What went wrong.
    pub message: String,
    /// The program, made smaller.
    pub program: Program,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The options of the run.
    pub options: ProgramsOptions,
    /// Why the GPU was left out, if it was.
    pub skipped: Option<String>,
    /// Programs that differ, in order.
    pub failures: Vec<Failure>,
    /// The ops and data types that occurred.
    pub coverage: Coverage,
}

impl Report {
    /// Whether everything agreed.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Runs the programs of `options`.
pub fn run(options: ProgramsOptions) -> Report {
    let skipped = Subject::available(&options.warps).1;
    let indices: Vec<usize> = match options.only {
        Some(index) => vec![index],
        None => (0..options.count).collect(),
    };
    let results: Vec<(Coverage, Vec<Failure>)> = indices
        .into_par_iter()
        .map(|index| run_one(&options, index))
        .collect();
    let mut coverage = Coverage::default();
    let mut failures = Vec::new();
    for (covered, failed) in results {
        coverage.add(&covered);
        failures.extend(failed);
    }
    Report {
        options,
        skipped,
        failures,
        coverage,
    }
}

fn run_one(options: &ProgramsOptions, index: usize) -> (Coverage, Vec<Failure>) {
    let program = generate(options.seed, index, options.limits);
    let mut coverage = Coverage::default();
    coverage.record(&program.func);
    let checked = match guarded(|| Checked::new(&program)) {
        Ok(checked) => checked,
        Err(message) => {
            let failure = Failure {
                index,
                subject: None,
                message,
                program: program.clone(),
            };
            return (coverage, vec![failure]);
        }
    };
    let own = program
        .schedule
        .warps
        .map_or(Vec::new(), |warps| vec![warps]);
    let warps = match options.warps[..] {
        [] => &own,
        [..] => &options.warps,
    };
    let (subjects, _) = Subject::available(warps);
    let failures = subjects.into_iter().filter_map(|subject| {
        let message = verdict(&program, &checked, subject)?;
        let (program, message) = if options.shrink {
            shrink::shrink(options, index, &|program| failure(program, subject))
                .unwrap_or((program.clone(), message))
        } else {
            (program.clone(), message)
        };
        Some(Failure {
            index,
            subject: Some(subject),
            message,
            program,
        })
    });
    let failures = failures.collect();
    (coverage, failures)
}

/// What is wrong with `subject`'s run of the program, if anything is.
fn failure(program: &Program, subject: Subject) -> Option<String> {
    let checked = guarded(|| Checked::new(program)).ok()?;
    verdict(program, &checked, subject)
}

fn verdict(program: &Program, checked: &Checked<'_>, subject: Subject) -> Option<String> {
    judged(program, || checked.run(subject))
}

/// What is wrong according to `run`, if anything is.
pub(super) fn judged(
    program: &Program,
    run: impl FnOnce() -> Result<Option<Difference>, String>,
) -> Option<String> {
    match guarded(run) {
        Err(message) => Some(message),
        Ok(difference) => difference.map(|it| describe(program, &it)),
    }
}

/// Runs `work`; a panic is an error like any other, so that it is reported with its program.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(format!("panicked: {}", text.unwrap_or_default()))
    })
}

fn describe(program: &Program, difference: &Difference) -> String {
    let name = &program.func.parameters[difference.argument].name;
    let show = exactile_core::text::number::format;
    format!(
        "`{name}[{}]` is `{}`, expected `{}`",
        difference.element,
        show(difference.got),
        show(difference.want)
    )
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject {
            Some(subject) => write!(f, "program {} on {subject}: ", self.index)?,
            None => write!(f, "program {} on the interpreter: ", self.index)?,
        }
        writeln!(f, "{}", self.message)?;
        let Program {
            grid,
            bounds,
            schedule,
            facts,
            ..
        } = &self.program;
        writeln!(f, "; grid={grid:?} {bounds:?} {schedule:?}")?;
        writeln!(f, "; {facts:?}")?;
        for (parameter, contents) in self
            .program
            .func
            .parameters
            .iter()
            .zip(&self.program.arguments)
        {
            writeln!(f, "; {} = {contents}", parameter.name)?;
        }
        write!(f, "{}", *self.program.func)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in &self.failures {
            writeln!(f, "{failure}\n")?;
        }
        if let Some(reason) = &self.skipped {
            writeln!(f, "SKIPPED the GPU: {reason}")?;
        }
        let (subjects, _) = Subject::available(&self.options.warps);
        let subjects: Vec<String> = subjects.iter().map(ToString::to_string).collect();
        let programs = self.options.only.map_or(self.options.count, |_| 1);
        write!(
            f,
            "{programs} programs of seed {}, each run by the interpreter and as {}{}: {} failures",
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
