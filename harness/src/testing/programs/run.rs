//! Runs random programs every way there is and compares bits with the interpreter.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::arguments::Difference;
use super::counts::Counts;
use super::coverage::Coverage;
use super::generate::{Limits, Program, generate};
use super::shrink;
use super::subject::{Checked, Compared, Subject};
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
    /// After how long no further program begins, if it is not to run all.
    pub time: Option<Duration>,
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
            time: None,
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
    /// How many programs were run: fewer than were asked for where the time was over.
    pub programs: usize,
    /// How long it took.
    pub time: Duration,
    /// On how many threads.
    pub threads: usize,
    /// Why the GPU was left out, if it was.
    pub skipped: Option<String>,
    /// Programs that differ, in order.
    pub failures: Vec<Failure>,
    /// What came of each way to run a program; `None` is the run that says what is right.
    pub counts: Counts,
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

/// What a thread has found.
#[derive(Default)]
struct Found {
    programs: usize,
    coverage: Coverage,
    counts: Counts,
    failures: Vec<Failure>,
}

impl Found {
    fn add(mut self, other: Self) -> Self {
        self.programs += other.programs;
        self.coverage.add(&other.coverage);
        for (subject, count) in other.counts {
            self.counts.entry(subject).or_default().add(count);
        }
        self.failures.extend(other.failures);
        self
    }
}

/// Runs the programs of `options` on all threads, in order.
pub fn run(options: ProgramsOptions, listener: Listener<'_>) -> Report {
    let start = Instant::now();
    let indices = match options.only {
        Some(index) => index..index.saturating_add(1),
        None => options.from..options.from.saturating_add(options.count),
    };
    let next = AtomicUsize::new(indices.start);
    let watch = Watch::default();
    let work = || {
        let mut found = Found::default();
        while options.time.is_none_or(|time| start.elapsed() < time) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= indices.end {
                break;
            }
            watch.start(index);
            run_one(&options, index, &mut found, (&watch, listener));
            watch.end(index);
            listener(Event::Ended);
        }
        found
    };
    // Not the threads on which machine code runs: one that waited there would take up other programs.
    let threads = rayon::current_num_threads().min(indices.len());
    let mut found = watch.over(listener, || {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let found = threads.into_iter().map(ScopedJoinHandle::join);
            let found = found.map(|found| found.unwrap_or_else(|panic| resume_unwind(panic)));
            found.fold(Found::default(), Found::add)
        })
    });
    found
        .failures
        .sort_by_key(|failure| (failure.index, failure.subject));
    Report {
        skipped: Subject::available(&options.warps).1,
        options,
        programs: found.programs,
        time: start.elapsed(),
        threads,
        failures: found.failures,
        counts: found.counts,
        coverage: found.coverage,
        slowest: watch.slowest(),
        spent: watch.spent(),
    }
}

fn run_one(
    options: &ProgramsOptions,
    index: usize,
    found: &mut Found,
    (watch, listener): (&Watch, Listener<'_>),
) {
    let program = generate(options.seed, index, options.limits);
    found.programs += 1;
    found.coverage.record(&program.func);
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
    let checked = guarded(|| Checked::new(&program));
    let right = checked.as_ref().map(|_| Compared::Same);
    found.counts.entry(None).or_default().note(&right);
    let checked = match checked {
        Ok(checked) => checked,
        Err(message) => {
            let failure = failed(None, message);
            listener(Event::Failed(&failure));
            found.failures.push(failure);
            return;
        }
    };
    for subject in subjects(options, &program) {
        watch.turn(index, Stage::Subject(subject));
        let compared = guarded(|| checked.run(subject));
        let count = found.counts.entry(Some(subject)).or_default();
        count.note(&compared.as_ref().copied());
        let Some(message) = wrong(&program, compared) else {
            continue;
        };
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
        found.failures.push(failure);
    }
}

/// The ways to run a program.
fn subjects(options: &ProgramsOptions, program: &Program) -> Vec<Subject> {
    let mut warps = match options.warps[..] {
        [] => program.schedule.warps.into_iter().collect(),
        [..] => options.warps.clone(),
    };
    warps
        .iter_mut()
        .for_each(|it| *it = (*it).max(program.least_warps()));
    warps.dedup();
    Subject::available(&warps).0
}

/// What is wrong with `subject`'s run of the program, if anything is.
fn verdict_of(program: &Program, subject: Subject) -> Option<String> {
    let checked = guarded(|| Checked::new(program)).ok()?;
    judged(program, || checked.run(subject))
}

/// What is wrong according to `run`, if anything is.
pub(super) fn judged(
    program: &Program,
    run: impl FnOnce() -> Result<Compared, String>,
) -> Option<String> {
    wrong(program, guarded(run))
}

fn wrong(program: &Program, compared: Result<Compared, String>) -> Option<String> {
    match compared {
        Err(message) => Some(message),
        Ok(Compared::Other(difference)) => Some(describe(program, &difference)),
        Ok(Compared::Same | Compared::Absent) => None,
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
    use std::time::Duration;

    use super::{Event, Limits, ProgramsOptions, Subject, run};

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
        let counted = |subject| report.counts[&subject].total();
        assert_eq!(counted(None), 7);
        assert_eq!(counted(Some(Subject::Cpu)), 7);
    }

    #[test]
    fn no_program_begins_when_the_time_is_over() {
        let options = ProgramsOptions {
            time: Some(Duration::ZERO),
            ..ProgramsOptions::default()
        };
        let report = run(options, &|_| {});
        assert_eq!(report.programs, 0);
        assert!(report.counts.is_empty());
    }
}
