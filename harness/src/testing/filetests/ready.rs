//! Functions with arguments that they run on without a fault, for tests that change what is made of them.

use exactile_core::facts::Boxed;
use exactile_core::ir::{Func, Grid};
use exactile_core::launch::{Boxes, Launch, Passed};
use exactile_core::target::{Determinism, Schedule, Target};
use exactile_core::text;
use exactile_core::verify::{BlockFunc, LaneFunc};

use super::EMBEDDED;
use super::arguments::{self, Value};
use super::format::{self, Chunk, Command, Expected, File, Run};
use crate::testing::execute::{Outcome, Proven, interpret_lanes};
use exactile_core::interp::lane::Timing;

/// A function, and what it runs on.
#[derive(Clone, Debug)]
pub(in crate::testing) struct Ready {
    /// The file and the function.
    pub(in crate::testing) name: String,
    /// The function, of any stage.
    pub(in crate::testing) func: Proven,
    /// The GPU that it is lowered for.
    pub(in crate::testing) gpu: Target,
    /// The numbers of warps that it is lowered for.
    pub(in crate::testing) warps: Vec<u32>,
    /// The rest of what it is lowered by.
    pub(in crate::testing) schedule: Schedule,
    runs: Vec<(Vec<Value>, Grid)>,
}

impl Ready {
    /// How many runs there are.
    pub(in crate::testing) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// For which boxes of a function all runs show that bulk copies move them.
    pub(in crate::testing) fn boxes(&self, boxed: &Func) -> Boxed {
        let boxes = Boxes::of(boxed);
        let held = self.runs.iter().map(|(values, grid)| {
            let mut values = values.clone();
            let passed = values.iter_mut().map(|value| value.argument().passed());
            let passed: Vec<Passed> = passed.collect();
            boxes.hold(&Launch::new(*grid, &passed))
        });
        held.min().unwrap_or_default()
    }

    /// What a run of a lane function gives, or the fault that the interpreter finds.
    pub(in crate::testing) fn run(
        &self,
        lane: &LaneFunc,
        run: usize,
        timing: Timing,
    ) -> Result<String, String> {
        let (values, grid) = &self.runs[run];
        let mut values = values.clone();
        let mut bound: Vec<_> = values.iter_mut().map(Value::argument).collect();
        let outcome = interpret_lanes(lane, timing, *grid, &mut bound);
        drop(bound);
        match outcome {
            Outcome::Done => Ok(arguments::write(self.func.func(), &values)),
            Outcome::OutOfBounds(error) => Err(format!("a bounds check failed: {error:?}")),
            Outcome::Fault(fault) => Err(fault.to_string()),
            Outcome::Unavailable(message) | Outcome::Failed(message) => Err(message),
        }
    }
}

/// The functions of all filetests that the interpreter of lanes runs, with the runs that give something; none in
/// which a fault is to be found.
pub(in crate::testing) fn ready() -> Vec<Ready> {
    let files = EMBEDDED.iter().filter_map(|&(path, source)| {
        let file = format::read(source).ok()?;
        let exact = matches!(file.determinism, Determinism::Exact);
        exact.then_some((path, file))
    });
    files
        .flat_map(|(path, file)| {
            let of_chunk = |chunk| of_chunk(path, &file, chunk);
            file.chunks.iter().filter_map(of_chunk).collect::<Vec<_>>()
        })
        .collect()
}

fn of_chunk(path: &str, file: &File, chunk: &Chunk) -> Option<Ready> {
    let func = text::parse(&chunk.source, path)
        .and_then(Proven::new)
        .ok()?;
    let warps = match &func {
        Proven::Lane(func) if func.warps == 0 => return None,
        Proven::Lane(func) => vec![func.warps],
        Proven::Schedule(func) => vec![func.warps],
        Proven::Block(_) => {
            let lists = file.commands.iter().filter_map(|command| match command {
                Command::RunLanes(warps) => Some(warps.clone()),
                Command::Roundtrip
                | Command::Verify
                | Command::Interp
                | Command::RunCpu
                | Command::RunCuda(_)
                | Command::Pass(_)
                | Command::Stage(..)
                | Command::LowerSequential
                | Command::LowerDistributed(_)
                | Command::Ptx => None,
            });
            lists.flatten().collect()
        }
    };
    let wrong = |text: &str| !text.starts_with("out of bounds");
    let gives = |expected: &Expected| match expected {
        Expected::Gives(_) => true,
        Expected::Fails(_) => false,
    };
    let faulty = |expected: &Expected| match expected {
        Expected::Gives(_) => false,
        Expected::Fails(text) => wrong(text),
    };
    let stated = |run: &&Run, wanted: &dyn Fn(&Expected) -> bool| {
        run.result
            .as_ref()
            .is_some_and(|(_, expected)| wanted(expected))
    };
    if chunk.runs.iter().any(|run| stated(&run, &faulty)) {
        return None;
    }
    let gives = chunk.runs.iter().filter(|run| stated(run, &gives));
    let runs = gives.filter_map(|run| {
        let values = arguments::read(func.func(), &run.arguments).ok()?;
        Some((values, run.grid))
    });
    let runs: Vec<_> = runs.collect();
    let name = format!("{path} @{}", func.func().name);
    (!runs.is_empty() && !warps.is_empty()).then_some(Ready {
        name,
        func,
        gpu: file.gpu,
        warps,
        schedule: file.schedule,
        runs,
    })
}

/// A traced kernel with arguments as a filetest states them.
///
/// # Errors
/// What is wrong with the arguments.
pub(in crate::testing) fn ready_kernel(
    func: BlockFunc,
    warps: &[u32],
    stated: &str,
    grid: Grid,
) -> Result<Ready, String> {
    let values = arguments::read(&func, stated)?;
    Ok(Ready {
        name: format!("kernel `{}`", func.name),
        func: Proven::Block(func),
        gpu: Target::SM_90A,
        warps: warps.to_vec(),
        schedule: Schedule::AUTO,
        runs: vec![(values, grid)],
    })
}
