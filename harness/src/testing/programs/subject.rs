//! The ways to run a program, each of which must give the interpreter's bits.

#![expect(
    unsafe_code,
    reason = "compiled programs run without checks where the interpreter found no fault"
)]

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

use exactile_core::interp;
use exactile_core::launch::Argument;
use exactile_core::pipeline::PreparedFunc;
use exactile_core::random::Random;
use exactile_core::schedule::assign::assign;
use exactile_core::schedule::forget;
use exactile_core::schedule::place;
use exactile_core::target::{Options, Schedule, Target};
use exactile_core::verify::{self, BlockFunc, LaneFunc, ScheduleFunc};
use exactile_core::{passes, pipeline, text};

use super::arguments::{Contents, Difference, difference};
use super::generate::Program;
use super::layouts::vary;
use crate::testing::execute::{
    Outcome, Place, compile_prepared, execute_lane, interpret_lanes, prepare,
};
use crate::testing::is_too_much_code;

/// A way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The interpreter, after the program was printed and parsed.
    Text,
    /// The interpreter, after the general clean-up passes.
    Tidy,
    /// The interpreter, after all passes of the block stage.
    Prepared,
    /// The interpreter, after the tiles were placed for this many warps of the program's GPU, printed and
    /// parsed.
    Scheduled(u32),
    /// The interpreter of lanes, on tiles in other layouts than the chosen ones.
    Varied(u32),
    /// The interpreter of lanes, on the loop nests of a CPU worker.
    Sequential,
    /// Machine code for the CPU.
    Cpu,
    /// The interpreter of lanes, on tiles distributed over this many warps of the program's GPU.
    Distributed(u32),
    /// The GPU, with this many warps.
    Cuda(u32),
}

impl Subject {
    /// Every way that this build and this machine offer on these numbers of warps, and why others
    /// are left out.
    pub fn available(warps: &[u32]) -> (Vec<Self>, Option<String>) {
        let mut subjects = vec![
            Self::Text,
            Self::Tidy,
            Self::Prepared,
            Self::Sequential,
            Self::Cpu,
        ];
        for &warps in warps {
            subjects.extend([
                Self::Scheduled(warps),
                Self::Varied(warps),
                Self::Distributed(warps),
            ]);
        }
        match (Place::Cuda { warps: 1 }).available() {
            Ok(()) => {
                subjects.extend(warps.iter().map(|&warps| Self::Cuda(warps)));
                (subjects, None)
            }
            Err(reason) => (subjects, Some(reason)),
        }
    }

    /// The number of warps, where there are any.
    pub(super) fn warps(self) -> Option<u32> {
        match self {
            Self::Text | Self::Tidy | Self::Prepared | Self::Sequential | Self::Cpu => None,
            Self::Scheduled(warps)
            | Self::Varied(warps)
            | Self::Distributed(warps)
            | Self::Cuda(warps) => Some(warps),
        }
    }
}

/// What came of a way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    /// The interpreter's bits.
    Same,
    /// Other bits, first in this element.
    Other(Difference),
    /// The program has no such way: no GPU computes its products, or a tile does not fit in layouts that were not chosen.
    Absent,
}

impl Compared {
    fn of(want: &[Contents], got: &[Contents]) -> Self {
        difference(want, got).map_or(Self::Same, Self::Other)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Tidy => "tidy",
            Self::Prepared => "prepared",
            Self::Sequential => "sequential",
            Self::Cpu => "cpu",
            Self::Scheduled(warps) => return write!(f, "scheduled for {warps} warps"),
            Self::Varied(warps) => return write!(f, "{warps} warps in other layouts"),
            Self::Distributed(warps) => return write!(f, "{warps} warps"),
            Self::Cuda(warps) => return write!(f, "cuda with {warps} warps"),
        })
    }
}

/// What is made of a program, or why it cannot be.
type Made<T> = Result<Rc<T>, String>;

/// What several ways to run a program begin with, made once for each place.
type Kept<T> = RefCell<Vec<(Place, Made<T>)>>;

/// A program that the interpreter has run without a fault.
pub struct Checked<'a> {
    program: &'a Program,
    want: Vec<Contents>,
    prepared: Kept<PreparedFunc>,
    assigned: Kept<ScheduleFunc>,
    worker: OnceCell<Result<LaneFunc, String>>,
}

/// What is kept for a place; made and kept if that is nothing yet.
fn once<T>(kept: &Kept<T>, place: Place, make: impl FnOnce() -> Result<T, String>) -> Made<T> {
    let known = |kept: &Vec<(Place, Made<T>)>| {
        let mut kept = kept.iter();
        kept.find(|(of, _)| *of == place)
            .map(|(_, made)| made.clone())
    };
    if let Some(known) = known(&kept.borrow()) {
        return known;
    }
    let made = make().map(Rc::new);
    kept.borrow_mut().push((place, made.clone()));
    made
}

/// What was compiled; nothing where it would be too much code for a lane.
fn bounded(compiled: Result<LaneFunc, String>) -> Result<Option<LaneFunc>, String> {
    match compiled {
        Ok(func) => Ok(Some(func)),
        Err(message) if is_too_much_code(&message) => Ok(None),
        Err(message) => Err(message),
    }
}

impl<'a> Checked<'a> {
    /// Runs `program` by the interpreter.
    pub fn new(program: &'a Program) -> Result<Self, String> {
        let want = interpret(program, &program.func)?;
        Ok(Self {
            program,
            want,
            prepared: Kept::default(),
            assigned: Kept::default(),
            worker: OnceCell::new(),
        })
    }

    /// Runs the program on its arguments and compares what it leaves there with what the interpreter does.
    pub fn run(&self, subject: Subject) -> Result<Compared, String> {
        let program = self.program;
        let got = match subject {
            Subject::Text => interpret(program, &reparsed(&program.func)?)?,
            Subject::Tidy => {
                let mut func = program.func.clone().into_inner();
                passes::tidy(&mut func);
                let func = verify::block(func).map_err(|error| error.to_string())?;
                interpret(program, &func)?
            }
            Subject::Prepared => interpret(program, &*self.prepared(Place::Cpu)?)?,
            Subject::Sequential => self.execute(self.worker()?, Place::Worker)?,
            Subject::Cpu => self.execute(self.worker()?, Place::Cpu)?,
            Subject::Scheduled(_)
            | Subject::Varied(_)
            | Subject::Distributed(_)
            | Subject::Cuda(_)
                if program.gpu.is_none() =>
            {
                return Ok(Compared::Absent);
            }
            Subject::Scheduled(warps) => interpret(program, &self.scheduled(warps)?)?,
            Subject::Varied(warps) => match self.varied(warps)? {
                Some(func) => self.execute(&func, self.place(warps)?)?,
                None => return Ok(Compared::Absent),
            },
            Subject::Distributed(warps) => match bounded(self.compiled(self.place(warps)?))? {
                Some(func) => self.lanes(&func)?,
                None => return Ok(Compared::Absent),
            },
            Subject::Cuda(warps) => {
                let place = Place::Cuda { warps };
                match bounded(self.compiled(place))? {
                    Some(func) => self.execute(&func, place)?,
                    None => return Ok(Compared::Absent),
                }
            }
        };
        Ok(Compared::of(&self.want, &got))
    }

    /// Runs lowered code under the interpreter of lanes, as [`Checked::run`] does.
    pub fn run_lanes(&self, func: &LaneFunc) -> Result<Compared, String> {
        Ok(Compared::of(&self.want, &self.lanes(func)?))
    }

    fn lanes(&self, func: &LaneFunc) -> Result<Vec<Contents>, String> {
        let Program { timing, grid, .. } = self.program;
        on_host(self.program, |arguments| {
            done(interpret_lanes(func, *timing, *grid, arguments))
        })
    }

    /// What the lowering makes of the program; `None` for ways that have none of their own.
    pub fn lowered(&self, subject: Subject) -> Option<Result<LaneFunc, String>> {
        match subject {
            Subject::Text | Subject::Tidy | Subject::Prepared => None,
            Subject::Scheduled(_) | Subject::Varied(_) => None,
            Subject::Cpu | Subject::Cuda(_) => None,
            Subject::Sequential => Some(self.worker().cloned()),
            Subject::Distributed(warps) => {
                let place = self.place(warps);
                Some(place.and_then(|place| self.compiled(place)))
            }
        }
    }

    /// The lanes of the program's GPU.
    fn place(&self, warps: u32) -> Result<Place, String> {
        let gpu = self.program.gpu;
        let gpu = gpu.ok_or_else(|| "no GPU computes the program".to_string())?;
        Ok(Place::Lanes { gpu, warps })
    }

    /// What the first half of the pipeline makes of the program.
    fn prepared(&self, place: Place) -> Made<PreparedFunc> {
        let Program { func, facts, .. } = self.program;
        once(&self.prepared, place, || {
            prepare(func, &place.target(), &self.options(place.warps()), facts)
        })
    }

    /// The program with the layouts that are chosen for the place.
    fn assigned(&self, place: Place) -> Made<ScheduleFunc> {
        once(&self.assigned, place, || {
            let (target, options) = (place.target(), self.options(place.warps()));
            let prepared = self.prepared(place)?;
            let block =
                pipeline::with_copied_boxes(&prepared, &target, &options, &self.program.facts)
                    .map_err(|error| error.to_string())?;
            let assigned = assign(block.into_owned(), &target, &options.schedule);
            assigned.map_err(|error| error.to_string())
        })
    }

    /// The program without its layouts, after each tile got one. Placing placed tiles changes nothing.
    fn scheduled(&self, warps: u32) -> Result<BlockFunc, String> {
        let place = self.place(warps)?;
        let target = place.target();
        let placed = |func| {
            let placed = place::place(func, &target.gpu);
            placed.map_err(|error| error.to_string())
        };
        let assigned = self.assigned(place)?;
        let printed = placed(ScheduleFunc::clone(&*assigned))?.to_string();
        let parsed = text::parse(&printed, "random.bir").and_then(verify::schedule);
        let parsed = parsed.map_err(|error| error.to_string())?;
        let again = placed(parsed.clone())?.to_string();
        if again != printed {
            return Err(format!("placed again, this changes:\n{printed}\n{again}"));
        }
        forget(&parsed).map_err(|error| error.to_string())
    }

    /// What is made of the program in other layouts; nothing where a tile does not fit in its own.
    fn varied(&self, warps: u32) -> Result<Option<LaneFunc>, String> {
        let place = self.place(warps)?;
        let target = place.target();
        let mut func = ScheduleFunc::clone(&*self.assigned(place)?).into_inner();
        let mut random = Random::new(func.inst_count() as u64);
        vary(&mut func, &mut random);
        let func = verify::schedule(func).map_err(|error| error.to_string())?;
        let (options, facts) = (self.options(Some(warps)), &self.program.facts);
        let observe = &mut pipeline::unobserved;
        let made = pipeline::expand(func, &target, &options, facts, observe);
        match made.map_err(|error| error.to_string()) {
            Ok(made) => Ok(Some(made)),
            Err(message) if message.contains("expected at most") => Ok(None),
            Err(message) => Err(message),
        }
    }

    fn worker(&self) -> Result<&LaneFunc, String> {
        self.worker
            .get_or_init(|| self.compiled(Place::Cpu))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// What the pipeline makes of the program for its arguments.
    fn compiled(&self, place: Place) -> Result<LaneFunc, String> {
        let Program {
            func, facts, grid, ..
        } = self.program;
        let (prepared, options) = (self.prepared(place)?, self.options(place.warps()));
        let mut compiled = None;
        on_host(self.program, |arguments| {
            compiled = Some(compile_prepared(
                (func, &*prepared),
                &place.target(),
                &options,
                facts,
                *grid,
                arguments,
            )?);
            Ok(())
        })?;
        compiled.ok_or_else(|| "nothing was compiled".to_string())
    }

    /// The program's options on this number of warps, where it asks for no more thread blocks than fit.
    fn options(&self, warps: Option<u32>) -> Options {
        let schedule = self.program.schedule;
        let resident = Target::GPUS.iter().map(|target| target.gpu.resident_warps);
        let most = resident.min().unwrap_or(0) / warps.or(schedule.warps).unwrap_or(1);
        Options {
            bounds: self.program.bounds,
            determinism: self.program.determinism,
            schedule: Schedule {
                warps: warps.or(schedule.warps),
                occupancy: schedule.occupancy.map(|blocks| blocks.min(most)),
                ..schedule
            },
        }
    }

    fn execute(&self, func: &LaneFunc, place: Place) -> Result<Vec<Contents>, String> {
        let program = self.program;
        on_host(program, |arguments| {
            // SAFETY: the interpreter has run the program on equal arguments without a fault.
            done(unsafe { execute_lane(func, place, program.grid, arguments) })
        })
    }
}

/// An error unless a run has ended as it should.
fn done(outcome: Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::OutOfBounds(error) => Err(format!("a bounds check failed: {error:?}")),
        Outcome::Fault(fault) => Err(fault.to_string()),
        Outcome::Unavailable(message) | Outcome::Failed(message) => Err(message),
    }
}

fn interpret(program: &Program, func: &BlockFunc) -> Result<Vec<Contents>, String> {
    on_host(program, |arguments| {
        interp::block::run(func, program.grid, arguments).map_err(|fault| fault.to_string())
    })
}

/// Runs `launch` on a copy of the program's arguments.
fn on_host(
    program: &Program,
    launch: impl FnOnce(&mut [Argument<'_>]) -> Result<(), String>,
) -> Result<Vec<Contents>, String> {
    let mut contents = program.arguments.clone();
    let mut arguments: Vec<Argument<'_>> = contents.iter_mut().map(Contents::argument).collect();
    launch(&mut arguments)?;
    drop(arguments);
    Ok(contents)
}

fn reparsed(func: &BlockFunc) -> Result<BlockFunc, String> {
    let printed = func.to_string();
    let parsed = text::parse(&printed, "random.bir").map_err(|error| error.to_string())?;
    let parsed = verify::block(parsed).map_err(|error| error.to_string())?;
    if parsed.to_string() == printed {
        Ok(parsed)
    } else {
        Err("the text changes when it is printed again".to_string())
    }
}
