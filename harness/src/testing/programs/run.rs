//! Runs random programs every way there is and compares bits with the interpreter.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::arguments::Difference;
use super::coverage::Coverage;
use super::generate::{Limits, Program, generate};
use super::shrink;
use super::subject::{Checked, Subject};
use super::watch::{Slow, Stage, Watch};

/// What to run.
#[derive(Clone, Debug)]
pub struct ProgramsOptions {
    /// The seed of the run.
    pub seed: u64,
    /// The index of the first program.
    pub from: usize,
    /// How many programs.
    pub count: usize,
    /// Run only the program with this index.
    pub only: Option<usize>,
    /// The numbers of warps to distribute every program over, more where its tiles are large; none leaves each
    /// to its own number.
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
            from: 0,
            count: 1200,
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
    /// How many programs were run.
    pub programs: usize,
    /// Why the GPU was left out, if it was.
    pub skipped: Option<String>,
    /// Programs that differ, in order.
    pub failures: Vec<Failure>,
    /// The ops and data types that occurred.
    pub coverage: Coverage,
    /// The programs that took longest, slowest first.
    pub slowest: Vec<Slow>,
    /// How long each kind of stage has taken, in all threads together.
    pub spent: BTreeMap<String, Duration>,
}

impl Report {
    /// Whether everything agreed.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// What a run says while it goes on.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A program is wrong, and is made smaller next if the options say so.
    Failing(&'a Failure),
    /// What is reported of a program that is wrong.
    Failed(&'a Failure),
    /// A program goes on for longer than most.
    Slow(Slow),
    /// A program has ended.
    Ended,
}

/// Hears of a run from all of its threads.
pub type Listener<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// Runs the programs of `options` on all threads, in order.
pub fn run(options: ProgramsOptions, listener: Listener<'_>) -> Report {
    let indices = match options.only {
        Some(index) => index..index.saturating_add(1),
        None => options.from..options.from.saturating_add(options.count),
    };
    let programs = indices.len();
    let next = AtomicUsize::new(indices.start);
    let watch = Watch::default();
    let work = || {
        let (mut coverage, mut failures) = (Coverage::default(), Vec::new());
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= indices.end {
                return (coverage, failures);
            }
            watch.start(index);
            failures.extend(run_one(&options, index, &mut coverage, (&watch, listener)));
            watch.end(index);
            listener(Event::Ended);
        }
    };
    // Not the threads on which machine code runs: one that waited there would take up other programs.
    let threads = rayon::current_num_threads().min(programs);
    let (coverage, mut failures) = watch.over(listener, || {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut all = (Coverage::default(), Vec::new());
            for thread in threads {
                let (coverage, failures) = thread.join().unwrap_or_else(|it| resume_unwind(it));
                all.0.add(&coverage);
                all.1.extend(failures);
            }
            all
        })
    });
    failures.sort_by_key(|failure| (failure.index, failure.subject));
    Report {
        skipped: Subject::available(&options.warps).1,
        options,
        programs,
        failures,
        coverage,
        slowest: watch.slowest(),
        spent: watch.spent(),
    }
}

fn run_one(
    options: &ProgramsOptions,
    index: usize,
    coverage: &mut Coverage,
    (watch, listener): (&Watch, Listener<'_>),
) -> Vec<Failure> {
    let program = generate(options.seed, index, options.limits);
    coverage.record(&program.func);
    watch.turn(index, Stage::Interpreter);
    let failed = |subject, message| {
        let program = program.clone();
        Failure {
            index,
            subject,
            message,
            program,
        }
    };
    let checked = match guarded(|| Checked::new(&program)) {
        Ok(checked) => checked,
        Err(message) => {
            let failure = failed(None, message);
            listener(Event::Failed(&failure));
            return vec![failure];
        }
    };
    let mut warps = match options.warps[..] {
        [] => program.schedule.warps.into_iter().collect(),
        [..] => options.warps.clone(),
    };
    warps
        .iter_mut()
        .for_each(|it| *it = (*it).max(program.least_warps()));
    warps.dedup();
    let (subjects, _) = Subject::available(&warps);
    let failures = subjects.into_iter().filter_map(|subject| {
        watch.turn(index, Stage::Subject(subject));
        let message = verdict(&program, &checked, subject)?;
        let mut failure = failed(Some(subject), message);
        if options.shrink {
            listener(Event::Failing(&failure));
            watch.turn(index, Stage::Shrinking);
            let judge = |program: &Program| verdict_of(program, subject);
            if let Some((program, message)) = shrink::shrink(options, index, &judge) {
                failure.program = program;
                failure.message = message;
            }
        }
        listener(Event::Failed(&failure));
        Some(failure)
    });
    failures.collect()
}

/// What is wrong with `subject`'s run of the program, if anything is.
fn verdict_of(program: &Program, subject: Subject) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{Event, Limits, ProgramsOptions, run};

    #[test]
    fn a_run_takes_its_programs_once_each() {
        let options = ProgramsOptions {
            from: 5,
            count: 7,
            limits: Limits {
                elements: 4,
                targets: 4,
            },
            ..ProgramsOptions::default()
        };
        let ended = Mutex::new(0);
        let report = run(options, &|event| {
            if let Event::Ended = event {
                *ended.lock().expect("no thread panics") += 1;
            }
        });
        assert!(report.passed());
        assert_eq!(ended.into_inner().expect("no thread panics"), 7);
        let slowest: Vec<usize> = report.slowest.iter().map(|slow| slow.index).collect();
        assert_eq!(slowest.len(), 3);
        assert!(slowest.iter().all(|index| (5..12).contains(index)));
    }
}
