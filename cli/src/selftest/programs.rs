//! `exactile selftest programs`: random programs.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use exactile::internals::write_file;
use exactile::{Error, Result};
use exactile_harness::testing::programs::summary::Summary;
use exactile_harness::testing::programs::{self, Event, ProgramsOptions, Report};

use crate::progress::Progress;

/// Runs random programs every way there is and compares bits
#[derive(Args)]
pub(super) struct Programs {
    /// How many programs
    #[arg(long, default_value_t = ProgramsOptions::default().count)]
    count: usize,
    /// The index of the first program
    #[arg(long, value_name = "INDEX", default_value_t = ProgramsOptions::default().from)]
    from: usize,
    /// The seed of the run
    #[arg(long, default_value_t = ProgramsOptions::default().seed)]
    seed: u64,
    /// Begin no program after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Run only the program with this index
    #[arg(long)]
    only: Option<usize>,
    /// Print that program, and run nothing
    #[arg(long, requires = "only")]
    show: bool,
    /// Distribute every program over these numbers of warps, not over one of its own
    #[arg(long, value_delimiter = ',')]
    warps: Vec<u32>,
    /// Report failing programs as they are
    #[arg(long)]
    no_shrink: bool,
    /// Print how often each op occurs on each data type
    #[arg(long)]
    coverage: bool,
    /// Where to write what came of the programs, as JSON
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The commit that the file names
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// How often progress is told where no line can move.
const TELLING: Duration = Duration::from_secs(30);

/// How far a run has come.
struct Course {
    programs: usize,
    start: Instant,
    ended: AtomicUsize,
    failed: AtomicUsize,
    told: Mutex<Instant>,
}

impl Course {
    fn new(programs: usize) -> Self {
        let start = Instant::now();
        Self {
            programs,
            start,
            ended: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            told: Mutex::new(start),
        }
    }

    fn line(&self) -> String {
        let [ended, failed] = [&self.ended, &self.failed].map(|it| it.load(Ordering::Relaxed));
        let rate = ended as f64 / self.start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let left = self.programs.saturating_sub(ended) as f64 / rate.max(f64::MIN_POSITIVE);
        let left = (left / 60.0).ceil();
        let programs = self.programs;
        format!(
            "selftest programs: {ended} of {programs}, {failed} failures, {rate:.1} a second, {left} min left"
        )
    }

    /// Whether it is time to tell of it again.
    fn is_due(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let due = told.elapsed() >= TELLING;
        if due {
            *told = Instant::now();
        }
        due
    }
}

impl Programs {
    pub(super) fn execute(&self) -> Result<()> {
        if let Some(index) = self.only.filter(|_| self.show) {
            let limits = ProgramsOptions::default().limits;
            let program = programs::generate::generate(self.seed, index, limits);
            return crate::print(&format!("{program}\n"));
        }
        let options = ProgramsOptions {
            seed: self.seed,
            from: self.from,
            count: self.count,
            time: self.seconds.map(Duration::from_secs),
            only: self.only,
            warps: self.warps.clone(),
            shrink: !self.no_shrink,
            ..ProgramsOptions::default()
        };
        let report = Self::run(options)?;
        if self.coverage {
            crate::print(&format!("{}\n\n", report.coverage))?;
        }
        crate::print(&format!("{report}\n"))?;
        if let Some(file) = &self.out {
            let summary = Summary::new(&report, &self.commit);
            let text = serde_json::to_string_pretty(&summary)
                .map_err(|error| Error::Invalid(format!("the report is no JSON: {error}")))?;
            write_file(file, format!("{text}\n").as_bytes())?;
        }
        if report.passed() {
            Ok(())
        } else {
            Err(Error::Mismatch(format!(
                "{} programs failed",
                report.failures.len()
            )))
        }
    }

    /// Runs the programs and prints each failure when it is found.
    fn run(options: ProgramsOptions) -> Result<Report> {
        let count = options.only.map_or(options.count, |_| 1);
        let progress = Progress::start(&format!("selftest programs: {count}"));
        let (course, moves) = (Course::new(count), io::stderr().is_terminal());
        let broken = Mutex::new(Ok(()));
        let print = |text: String| {
            if let Err(error) = progress.print(&text) {
                *broken.lock().unwrap_or_else(PoisonError::into_inner) = Err(error);
            }
        };
        let report = programs::run(options, &|event| match event {
            Event::Failing(failure) => {
                let (title, message) = (failure.title(), &failure.message);
                print(format!("{title}: {message}\nmaking it smaller\n"));
            }
            Event::Failed(failure) => {
                course.failed.fetch_add(1, Ordering::Relaxed);
                print(format!("{failure}\n\n"));
            }
            Event::Slow(slow) => print(format!("slow so far: {slow}\n")),
            Event::Ended => {
                course.ended.fetch_add(1, Ordering::Relaxed);
                if moves {
                    progress.say(course.line());
                } else if course.is_due() {
                    crate::note(&course.line());
                }
            }
        });
        broken
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)?;
        Ok(report)
    }
}
