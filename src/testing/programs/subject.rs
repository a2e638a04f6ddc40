//! The ways to run a program, each of which must give the interpreter's bits.

use std::fmt;

use exactile_core::backend::Argument;
use exactile_core::interp;
use exactile_core::lower;
use exactile_core::passes::{self, Approximations};
use exactile_core::target::{Determinism, Options, Schedule};
use exactile_core::text;
use exactile_core::verify::{self, BlockFunc, LaneFunc};

use super::arguments::Contents;
use super::generate::Program;

/// A way to run a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// The interpreter, after the program was printed and parsed.
    Text,
    /// The interpreter, after the general clean-up passes.
    Tidy,
    /// The interpreter, after all passes of the block stage.
    Prepared,
    /// The interpreter of lanes, on the loop nests of a CPU worker.
    Sequential,
    /// The interpreter of lanes, on tiles distributed over this many warps.
    Distributed(u32),
}

impl Subject {
    /// Every way that this build and this machine offer, on these numbers of warps.
    pub fn available(warps: &[u32]) -> Vec<Self> {
        let mut subjects = vec![Self::Text, Self::Tidy, Self::Prepared, Self::Sequential];
        subjects.extend(warps.iter().map(|&warps| Self::Distributed(warps)));
        subjects
    }

    /// What the lowering makes of the program; `None` for ways without one.
    pub fn lowered(self, program: &Program) -> Option<Result<LaneFunc, String>> {
        match self {
            Self::Text | Self::Tidy | Self::Prepared => None,
            Self::Sequential => Some(sequential(program)),
            Self::Distributed(warps) => Some(distributed(program, warps)),
        }
    }

    /// Runs `program` on its arguments and returns what they hold afterwards.
    pub fn run(self, program: &Program) -> Result<Vec<Contents>, String> {
        match self {
            Self::Text => interpret(program, &reparsed(&program.func)?),
            Self::Tidy => {
                let mut func = program.func.clone().into_inner();
                passes::tidy(&mut func);
                let func = verify::block(func).map_err(|error| error.to_string())?;
                interpret(program, &func)
            }
            Self::Prepared => interpret(program, &prepared(&program.func)?),
            Self::Sequential => run_lanes(program, &sequential(program)?),
            Self::Distributed(warps) => run_lanes(program, &distributed(program, warps)?),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Tidy => "tidy",
            Self::Prepared => "prepared",
            Self::Sequential => "sequential",
            Self::Distributed(warps) => return write!(f, "{warps} warps"),
        })
    }
}

/// The specification's results.
pub fn reference(program: &Program) -> Result<Vec<Contents>, String> {
    interpret(program, &program.func)
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

fn prepared(func: &BlockFunc) -> Result<BlockFunc, String> {
    passes::prepare(func.clone(), Determinism::Exact, Approximations::Absent)
        .map_err(|error| error.to_string())
}

/// The program as what a CPU worker does.
fn sequential(program: &Program) -> Result<LaneFunc, String> {
    let options = Options {
        bounds: program.bounds,
        ..Options::default()
    };
    let prepared = prepared(&program.func)?;
    lower::sequential::lower(&prepared, &options).map_err(|error| error.to_string())
}

/// The program as what a lane of a thread block of `warps` warps does.
fn distributed(program: &Program, warps: u32) -> Result<LaneFunc, String> {
    let options = Options {
        bounds: program.bounds,
        schedule: Schedule {
            warps: Some(warps),
            stages: 0,
        },
        ..Options::default()
    };
    let prepared = prepared(&program.func)?;
    lower::distributed::lower(&prepared, &options).map_err(|error| error.to_string())
}

/// Runs a lowered program in lockstep.
pub(super) fn run_lanes(program: &Program, func: &LaneFunc) -> Result<Vec<Contents>, String> {
    on_host(program, |arguments| {
        let report = interp::lane::run(func, program.grid, arguments);
        match report.map_err(|fault| fault.to_string())?.out_of_bounds {
            Some(error) => Err(format!("a bounds check failed: {error:?}")),
            None => Ok(()),
        }
    })
}
