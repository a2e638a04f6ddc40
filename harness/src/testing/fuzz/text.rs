//! Mutated functions: parsed, verified, printed, compiled and run.

use exactile_core::facts::Facts;
use exactile_core::interp::block;
use exactile_core::interp::lane::Timing;
use exactile_core::ir::{Func, Parameter, Stage};
use exactile_core::launch::Argument;
use exactile_core::pipeline;
use exactile_core::schedule::forget;
use exactile_core::target::{Bounds, Determinism, Options, Schedule, Target};
use exactile_core::text;
use exactile_core::verify::{self, BlockFunc, LaneFunc, ScheduleFunc};

use super::mutate::mutated;
use super::ptx;
use crate::testing::filetests::EMBEDDED;
use crate::testing::programs::arguments::Contents;
use crate::testing::programs::generate::{Program, able};
use crate::testing::programs::guarded;
use crate::testing::programs::subject::{Checked, Compared, Subject};
use crate::testing::programs::values::{Fill, literal};
use exactile_core::random::Random;

/// The most elements of a tile and the most steps of a launch: larger ones take time and find the same.
const ELEMENTS: usize = 4096;
const STEPS: u64 = 200_000;

/// What the addresses of arguments are divisible by.
const LINE_BYTES: usize = Target::CPU.line_bytes as usize;

/// The functions of all filetests.
pub(super) fn corpus() -> Vec<String> {
    let files = EMBEDDED.iter().flat_map(|(_, text)| {
        let starts = text.match_indices("func @").map(|(at, _)| at);
        starts.filter_map(|at| Some(text[at..].split_once("\n}")?.0.to_string() + "\n}\n"))
    });
    files.filter(|text| text.len() < 4000).collect()
}

/// A mutated text.
pub(super) fn source(corpus: &[String], random: &mut Random) -> String {
    mutated(&corpus[random.below(corpus.len())], random)
}

/// Tries one mutated text; what is wrong with it, if anything is, and the text made smaller.
pub(super) fn case(
    corpus: &[String],
    random: &mut Random,
    ran: &mut bool,
) -> Option<(String, String)> {
    let source = source(corpus, random);
    let seed = random.bits();
    let judge = |source: &str| guarded(|| judged(source, seed));
    let message = match judge(&source) {
        Ok(outcome) => {
            *ran = outcome == Tried::Ran;
            return None;
        }
        Err(message) => message,
    };
    let mut lines: Vec<&str> = source.lines().collect();
    for at in (0..lines.len()).rev() {
        let mut fewer = lines.clone();
        fewer.remove(at);
        if judge(&fewer.join("\n")).is_err_and(|other| other == message) {
            lines = fewer;
        }
    }
    Some((message, lines.join("\n")))
}

/// How far a text came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tried {
    Refused,
    Ran,
}

fn judged(source: &str, seed: u64) -> Result<Tried, String> {
    let Ok(func) = text::parse(source, "fuzz.bir") else {
        return Ok(Tried::Refused);
    };
    let printed = func.to_string();
    match func.stage {
        Stage::Block => match verify::block(func) {
            Err(_) => Ok(Tried::Refused),
            Ok(func) => {
                survives(&printed)?;
                run(func, seed)
            }
        },
        Stage::Schedule => match verify::schedule(func) {
            Err(_) => Ok(Tried::Refused),
            Ok(func) => {
                survives(&printed)?;
                run_scheduled(&func, seed)
            }
        },
        Stage::Lane => match verify::lane(func) {
            Err(_) => Ok(Tried::Refused),
            Ok(func) => {
                survives(&printed)?;
                compile(&func, seed)
            }
        },
    }
}

fn survives(printed: &str) -> Result<(), String> {
    let again = text::parse(printed, "again.bir").map_err(|error| error.to_string())?;
    match again.to_string() == printed {
        true => Ok(()),
        false => Err("the text changes when it is printed again".to_string()),
    }
}

fn compile(func: &LaneFunc, seed: u64) -> Result<Tried, String> {
    if is_large(func) {
        return Ok(Tried::Refused);
    }
    ptx::takes(func, &Random::new(seed).pick(Target::GPUS))?;
    match exactile_cranelift::compile(func) {
        Err(error @ exactile_cranelift::Error::Codegen(_)) => Err(error.to_string()),
        Ok(_) | Err(_) => Ok(Tried::Refused),
    }
}

fn is_large(func: &Func) -> bool {
    func.all_insts().into_iter().any(|inst| {
        let results = func.inst(inst).results.iter();
        let mut shapes = results.map(|&value| func.ty(value).shape);
        shapes.any(|shape| shape.elements() > ELEMENTS)
    })
}

/// Runs a function by the interpreter, and where it ends well every other way.
fn run(func: BlockFunc, seed: u64) -> Result<Tried, String> {
    let is_aligned = |parameter: &Parameter| parameter.divisor as usize <= LINE_BYTES;
    let fits = func.parameters.iter().all(is_aligned) && !able(&func).is_empty();
    if is_large(&func) || !fits {
        return Ok(Tried::Refused);
    }
    let program = program(func, seed);
    let warps = Random::new(seed).pick(&[1, 2, 4]);
    let mut contents = program.arguments.clone();
    let mut arguments: Vec<Argument<'_>> = contents.iter_mut().map(Contents::argument).collect();
    if block::run_limited(&program.func, program.grid, &mut arguments, STEPS).is_err() {
        return Ok(Tried::Refused);
    }
    let checked = Checked::new(&program)?;
    for subject in [
        Subject::Text,
        Subject::Tidy,
        Subject::Prepared,
        Subject::Sequential,
        Subject::Cpu,
        Subject::Scheduled(warps),
        Subject::Varied(warps),
        Subject::Distributed(warps),
    ] {
        match checked.run(subject) {
            Ok(Compared::Same | Compared::Absent) => {}
            Ok(Compared::Other(difference)) => {
                return Err(format!("other bits on {subject}: {difference:?}"));
            }
            // Mutations meet ops that the default level refuses.
            Err(message) if message.contains("but the determinism level is") => {
                return Ok(Tried::Refused);
            }
            Err(message) => return Err(format!("on {subject}: {message}")),
        }
    }
    // It takes as long as all the rest.
    if seed.is_multiple_of(4) {
        ptx::takes_program(&program, &checked, warps)?;
    }
    Ok(Tried::Ran)
}

/// Runs a schedule function without its layouts, and on the lanes that these say.
fn run_scheduled(func: &ScheduleFunc, seed: u64) -> Result<Tried, String> {
    // What lies in slots of shared memory has no block form.
    let Ok(block) = forget(func) else {
        return Ok(Tried::Refused);
    };
    let (options, facts) = (Options::default(), Facts::default());
    match run(block.clone(), seed)? {
        Tried::Refused => return Ok(Tried::Refused),
        Tried::Ran => {}
    }
    let program = program(block, seed);
    let Some(gpu) = program.gpu else {
        return Ok(Tried::Refused);
    };
    let target = gpu.interpreted();
    let observe = &mut pipeline::unobserved;
    // A layout may take more registers than there are.
    let Ok(lane) = pipeline::expand(func.clone(), &target, &options, &facts, observe) else {
        return Ok(Tried::Refused);
    };
    match Checked::new(&program)?.run_lanes(&lane)? {
        Compared::Same | Compared::Absent => Ok(Tried::Ran),
        Compared::Other(difference) => Err(format!(
            "other bits where layouts are stated: {difference:?}"
        )),
    }
}

/// A function with random arguments on a random GPU.
fn program(func: BlockFunc, seed: u64) -> Program {
    let mut random = Random::new(seed);
    let able = able(&func);
    Program {
        grid: [1 + random.below(3) as u32, 1, 1],
        bounds: Bounds::Checked,
        determinism: Determinism::default(),
        schedule: Schedule::default(),
        gpu: (!able.is_empty()).then(|| random.pick(&able)),
        facts: Facts::default(),
        arguments: arguments(&func, &mut random),
        timing: random.pick(&Timing::several(seed)),
        func,
    }
}

fn arguments(func: &Func, random: &mut Random) -> Vec<Contents> {
    let parameters = func.parameters.iter().zip(func.arguments());
    let contents = parameters.map(|(parameter, &value)| {
        let ty = func.ty(value);
        if let Some((dtype, _)) = ty.pointee() {
            let fill = random.pick(&[Fill::Edges, Fill::Moderate, Fill::Below(40)]);
            return Contents::random(random, dtype, parameter.access, 1024, fill);
        }
        let dtype = ty
            .dtype()
            .expect("broken invariant: a verified scalar is a number");
        let fill = random.pick(&[Fill::Edges, Fill::Below(40), Fill::Below(40)]);
        Contents::Scalar(literal(random, dtype, fill))
    });
    contents.collect()
}
