//! Does what a filetest commands and reports what went wrong.

#![expect(
    unsafe_code,
    reason = "filetests run compiled functions that the interpreter runs without a fault"
)]

mod texts;

use std::collections::BTreeSet;

use exactile_core::diagnostic::Diagnostics;
use exactile_core::facts::Facts;
use exactile_core::interp::lane::Timing;
use exactile_core::ir::Func;
use exactile_core::ir::op::all_mnemonics;
use exactile_core::launch::Argument;
use exactile_core::pipeline;
use exactile_core::target::{Bounds, Options, Schedule};
use exactile_core::text;

use super::arguments;
use super::format::{self, Chunk, Command, Expected, File, Run};
use crate::testing::execute::{Outcome, Place, Proven, execute, interpret_lanes};

/// What a filetest shows about the ops in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The text survives.
    Roundtrip,
    /// A valid use is accepted.
    Verify,
    /// A wrong use is refused.
    VerifyError,
    /// The interpreter runs it.
    Interp,
    /// The CPU runs it.
    RunCpu,
    /// The GPU lowering runs under the lane interpreter.
    RunLanes,
    /// The GPU runs it.
    RunCuda,
}

/// What became of a filetest, or of several.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, one text each.
    pub failures: Vec<String>,
    /// Why something could not run here.
    pub skipped: BTreeSet<String>,
    /// How many runs were compared.
    pub runs: usize,
    /// Which ops the commands reached, by mnemonic; what was skipped counts.
    pub covered: BTreeSet<(&'static str, Kind)>,
    /// The file with every result as the interpreter gives it.
    pub blessed: String,
}

impl Report {
    /// Adds another report.
    pub fn append(&mut self, other: Self) {
        self.failures.extend(other.failures);
        self.skipped.extend(other.skipped);
        self.runs += other.runs;
        self.covered.extend(other.covered);
    }
}

/// Checks one file; `path` names it in failures.
pub fn check(path: &str, source: &str) -> Report {
    let file = match format::read(source) {
        Ok(file) => file,
        Err(message) => {
            return Report {
                failures: vec![format!("{path}: {message}")],
                blessed: source.to_string(),
                ..Report::default()
            };
        }
    };
    let mut edits = Vec::new();
    let mut report = Report::default();
    for chunk in &file.chunks {
        let mut checker = Checker {
            path,
            file: &file,
            chunk,
            report: &mut report,
            edits: &mut edits,
            specified: Vec::new(),
        };
        checker.chunk(source);
    }
    report.blessed = apply(source, edits);
    report
}

/// Lines to replace, and what replaces them.
type Edit = (std::ops::Range<usize>, String);

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_string).collect();
    edits.sort_by_key(|(range, _)| range.start);
    for (range, text) in edits.into_iter().rev() {
        lines.splice(range, text.lines().map(str::to_string));
    }
    lines.join("\n") + "\n"
}

struct Checker<'a> {
    path: &'a str,
    file: &'a File,
    chunk: &'a Chunk,
    report: &'a mut Report,
    edits: &'a mut Vec<Edit>,
    /// What the interpreter gives for each run.
    specified: Vec<Option<Expected>>,
}

impl Checker<'_> {
    fn fail(&mut self, line: usize, message: impl AsRef<str>) {
        let place = format!("{}:{}", self.path, line + 1);
        self.report
            .failures
            .push(format!("{place}: {}", message.as_ref()));
    }

    fn cover(&mut self, func: &Func, kind: Kind) {
        let mnemonics = func
            .all_insts()
            .into_iter()
            .map(|inst| func.op(inst).mnemonic());
        self.report
            .covered
            .extend(mnemonics.map(|mnemonic| (mnemonic, kind)));
    }

    fn chunk(&mut self, source: &str) {
        let chunk = self.chunk;
        let proven = text::parse(&chunk.source, self.path).and_then(Proven::new);
        let proven = match (proven, chunk.errors.is_empty()) {
            (Ok(proven), true) => proven,
            (Ok(proven), false) => {
                return match self.refused(&proven) {
                    Some(diagnostics) => self.errors(&diagnostics, source),
                    None => self.fail(chunk.line, "no error found, expected the stated"),
                };
            }
            (Err(diagnostics), _) => return self.errors(&diagnostics, source),
        };
        let commands = &self.file.commands;
        if commands.contains(&Command::Interp) && chunk.runs.is_empty() {
            self.fail(chunk.line, "the function has no `; run:` line");
        }
        let options = self.options(None, Bounds::Checked);
        for run in &chunk.runs {
            let specified = self.once(&proven, run, Place::Interpreter, &options);
            self.specified.push(specified);
        }
        for command in commands {
            self.command(command, &proven);
        }
    }

    /// What is wrong with the layouts of a valid schedule function.
    fn refused(&self, proven: &Proven) -> Option<Diagnostics> {
        let Proven::Schedule(func) = proven else {
            return None;
        };
        let (target, options) = (&self.file.gpu, self.options(None, Bounds::Checked));
        let (facts, observe) = (Facts::default(), &mut pipeline::unobserved);
        pipeline::expand(func.clone(), target, &options, &facts, observe).err()
    }

    fn errors(&mut self, diagnostics: &Diagnostics, source: &str) {
        let first = self.chunk.line as u32 + 1;
        let mut found: Vec<(u32, String)> = diagnostics
            .iter()
            .map(|one| {
                let line = if one.loc.is_known() {
                    one.loc.line
                } else {
                    first
                };
                let notes = one.notes.iter().map(|note| format!("; note: {note}"));
                (line, one.message.clone() + &notes.collect::<String>())
            })
            .collect();
        for (line, stated) in &self.chunk.errors {
            let matching = found
                .iter()
                .position(|(at, text)| at == line && text.contains(stated));
            match matching {
                Some(index) => drop(found.remove(index)),
                None => self.fail(*line as usize - 1, format!("no error `{stated}`")),
            }
            let text = source.lines().nth(*line as usize - 1).unwrap_or("");
            let code = text.split(';').next().unwrap_or("");
            let known = all_mnemonics();
            let used = code
                .split_whitespace()
                .find_map(|word| known.iter().find(|m| **m == word));
            self.report
                .covered
                .extend(used.map(|mnemonic| (*mnemonic, Kind::VerifyError)));
        }
        for (line, text) in found {
            self.fail(line as usize - 1, format!("error `{text}` is not stated"));
        }
    }

    fn command(&mut self, command: &Command, proven: &Proven) {
        let func = proven.func();
        match command {
            Command::Roundtrip => {
                self.cover(func, Kind::Roundtrip);
                self.roundtrip(func);
            }
            Command::Verify => self.cover(func, Kind::Verify),
            Command::Interp => {
                self.cover(func, Kind::Interp);
                for (index, run) in self.chunk.runs.iter().enumerate() {
                    self.interpreted(index, run);
                    self.retimed(proven, index, run);
                }
            }
            Command::RunCpu => {
                self.cover(func, Kind::RunCpu);
                self.run_at(proven, Place::Cpu);
                self.run_at(proven, Place::Worker);
            }
            Command::RunLanes(warps) => {
                self.cover(func, Kind::RunLanes);
                for &warps in warps {
                    let gpu = self.file.gpu;
                    self.run_at(proven, Place::Lanes { gpu, warps });
                }
            }
            Command::RunCuda(warps) => {
                self.cover(func, Kind::RunCuda);
                for &warps in warps {
                    self.run_at(proven, Place::Cuda { warps });
                }
            }
            Command::Pass(name) => self.pass(proven, name),
            Command::Stage(name, warps) => self.stage(proven, name, *warps),
            Command::LowerSequential => {
                let heading = "lower distribution=sequential";
                self.lowered(heading, proven, Place::Worker);
            }
            Command::LowerDistributed(warps) => {
                let heading = format!("lower distribution=distributed warps={warps}");
                let (gpu, warps) = (self.file.gpu, *warps);
                self.lowered(&heading, proven, Place::Lanes { gpu, warps });
            }
            Command::Ptx => self.ptx(proven),
        }
    }

    fn roundtrip(&mut self, func: &Func) {
        let printed = func.to_string();
        match text::parse(&printed, self.path) {
            Ok(again) if again.to_string() == printed => {}
            Ok(again) => {
                let message = format!("printed text changes when parsed:\n{printed}\n{again}");
                self.fail(self.chunk.line, message);
            }
            Err(error) => {
                let message = format!("printed text does not parse: {error}\n{printed}");
                self.fail(self.chunk.line, message);
            }
        }
    }

    fn options(&self, warps: Option<u32>, bounds: Bounds) -> Options {
        Options {
            determinism: self.file.determinism,
            bounds,
            schedule: Schedule {
                warps,
                ..self.file.schedule
            },
        }
    }

    /// Runs the function once; what it gave, or how it failed.
    fn once(
        &mut self,
        proven: &Proven,
        run: &Run,
        place: Place,
        options: &Options,
    ) -> Option<Expected> {
        self.outcome(proven, run, place, |arguments| {
            // SAFETY: `run_at` runs compiled only what the interpreter ran without a fault on equal
            // arguments, or with every access checked.
            unsafe { execute(proven, place, options, run.grid, arguments) }
        })
    }

    /// Runs `launch` on the arguments of a run.
    fn outcome(
        &mut self,
        proven: &Proven,
        run: &Run,
        place: Place,
        launch: impl FnOnce(&mut [Argument<'_>]) -> Outcome,
    ) -> Option<Expected> {
        let mut values = match arguments::read(proven.func(), &run.arguments) {
            Ok(values) => values,
            Err(message) => {
                self.fail(run.line, message);
                return None;
            }
        };
        let mut bound: Vec<_> = values.iter_mut().map(arguments::Value::argument).collect();
        let outcome = launch(&mut bound);
        drop(bound);
        Some(match outcome {
            Outcome::Done => Expected::Gives(arguments::write(proven.func(), &values)),
            Outcome::OutOfBounds(error) => Expected::Fails(format!(
                "out of bounds: program {}, element {}, offset {}",
                error.program, error.element, error.offset
            )),
            Outcome::Fault(fault) => Expected::Fails(fault.kind.to_string()),
            Outcome::Failed(message) => {
                self.fail(run.line, format!("{place}: {message}"));
                return None;
            }
            Outcome::Unavailable(reason) => {
                self.report.skipped.insert(reason);
                return None;
            }
        })
    }

    fn interpreted(&mut self, index: usize, run: &Run) {
        let Some(found) = self.specified[index].clone() else {
            return;
        };
        self.report.runs += 1;
        let stated = run.result.as_ref().map(|(_, expected)| expected);
        if stated != Some(&found) {
            let message = match stated {
                Some(stated) => format!("interp gives {found:?}, stated {stated:?}"),
                None => format!("interp gives {found:?}, nothing is stated"),
            };
            self.fail(run.line, message);
        }
        let line = match &found {
            Expected::Gives(text) => format!("; gives: {text}"),
            Expected::Fails(text) => format!("; fails: {text}"),
        };
        let range = run
            .result
            .as_ref()
            .map_or(run.line + 1..run.line + 1, |(line, _)| *line..line + 1);
        self.edits.push((range, line));
    }

    /// Runs a lane function at other times: what it gives or refuses it always does.
    fn retimed(&mut self, proven: &Proven, index: usize, run: &Run) {
        let (Proven::Lane(func), Some(specified)) = (proven, self.specified[index].clone()) else {
            return;
        };
        for timing in Timing::several(index as u64) {
            let found = self.outcome(proven, run, Place::Interpreter, |arguments| {
                interpret_lanes(func, timing, run.grid, arguments)
            });
            let Some(found) = found else {
                continue;
            };
            self.report.runs += 1;
            // Another fault may come first; which access out of bounds is reported is stated.
            let agrees = match (&specified, &found) {
                (Expected::Fails(text), Expected::Fails(_)) => {
                    !text.starts_with("out of bounds") || found == specified
                }
                (Expected::Gives(_) | Expected::Fails(_), _) => found == specified,
            };
            if !agrees {
                let message = format!("{timing:?} gives\n  {found:?}, otherwise\n  {specified:?}");
                self.fail(run.line, message);
            }
        }
    }

    fn run_at(&mut self, proven: &Proven, place: Place) {
        for (index, run) in self.chunk.runs.iter().enumerate() {
            let Some(specified) = self.specified[index].clone() else {
                continue;
            };
            let bounds = match &specified {
                // Checks are lowered alike for every number of warps; making PTX takes long.
                Expected::Gives(_) if matches!(place, Place::Cuda { warps } if warps != 4) => {
                    &[Bounds::Unchecked][..]
                }
                Expected::Gives(_) => &[Bounds::Checked, Bounds::Unchecked][..],
                Expected::Fails(text) if text.starts_with("out of bounds") => &[Bounds::Checked],
                // Only interpreters find other faults.
                Expected::Fails(_) => continue,
            };
            for &bounds in bounds {
                let options = self.options(place.warps(), bounds);
                if let Some(found) = self.once(proven, run, place, &options) {
                    self.report.runs += 1;
                    if found != specified {
                        let message = format!(
                            "{place} ({bounds:?}) gives\n  {found:?}, the interpreter\n  {specified:?}"
                        );
                        self.fail(run.line, message);
                    }
                }
            }
        }
    }
}
