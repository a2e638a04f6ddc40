//! The cases of a run, one after the other.

use std::io;
use std::time::Instant;

use exactile_core::random::Random;

use super::{Finding, FuzzOptions, Said, files, launches, ptx, text};
use crate::testing::programs::generate::generate;
use crate::testing::programs::subject::Checked;
use crate::testing::programs::{self, ProgramsOptions, guarded};

/// One case in so many is a generated program, which takes as long as many texts.
const PROGRAMS: u64 = 64;

/// One case in so many is a set of launches by several threads, which takes as long as many programs.
const LAUNCHES: u64 = 1024;

/// One case in so many is an NPY file.
const FILES: u64 = 8;

#[derive(Clone, Copy)]
enum Kind {
    Launches,
    Program,
    File,
    Text,
}

impl Kind {
    fn of(index: u64) -> Self {
        if index % LAUNCHES == LAUNCHES / 2 {
            Self::Launches
        } else if index % PROGRAMS == PROGRAMS - 1 {
            Self::Program
        } else if index % FILES == FILES / 2 {
            Self::File
        } else {
            Self::Text
        }
    }
}

/// Tries inputs until the time is over, or only one, and says so to whoever listens.
pub fn run_cases(
    options: &FuzzOptions,
    say: &mut dyn FnMut(Said) -> io::Result<()>,
) -> io::Result<()> {
    let (seed, start) = (options.seed, Instant::now());
    let corpus = text::corpus();
    for index in options.only.unwrap_or(options.from).. {
        say(Said::Started(index))?;
        let mut random = Random::stream(seed, index);
        let mut ran = false;
        let found = match Kind::of(index) {
            Kind::Launches => launches::case(&mut random),
            Kind::Program => program(&mut random),
            Kind::File => files::case(&mut random),
            Kind::Text => text::case(&corpus, &mut random, &mut ran),
        };
        if let Some((message, input)) = found {
            say(Said::Found(Finding {
                seed,
                index,
                message,
                input,
            }))?;
        }
        say(Said::Ended(ran))?;
        if options.only.is_some() || start.elapsed() >= options.time {
            break;
        }
    }
    Ok(())
}

/// A generated program, run every way there is, and as PTX.
fn program(random: &mut Random) -> Option<(String, String)> {
    let options = program_options(random);
    let warps = random.pick(&[1, 2, 4, 8]);
    let report = programs::run(options.clone(), &|_| {});
    if let Some(failure) = report.failures.first() {
        return Some((failure.message.clone(), failure.to_string()));
    }
    let program = generate(options.seed, 0, options.limits);
    let judged = guarded(|| ptx::takes_program(&program, &Checked::new(&program)?, warps));
    let message = judged.err()?;
    Some((message, program.func.to_string()))
}

fn program_options(random: &mut Random) -> ProgramsOptions {
    ProgramsOptions {
        seed: random.bits(),
        count: 1,
        ..ProgramsOptions::default()
    }
}

/// The input of a case, which is not tried.
pub(super) fn input(seed: u64, index: u64) -> String {
    let mut random = Random::stream(seed, index);
    match Kind::of(index) {
        Kind::Launches => "launches by several threads".to_string(),
        Kind::Program => {
            let seed = program_options(&mut random).seed;
            format!("exactile selftest programs --seed {seed} --only 0")
        }
        Kind::File => "an NPY file".to_string(),
        Kind::Text => text::source(&text::corpus(), &mut random),
    }
}
