//! The host's side of launches: what a call costs beside the driver's own, what a node of a graph costs, and how long the
//! first launch of a process takes.
//!
//! A time is the median of batches of launches in a row; what the device does meanwhile does not count, because it is waited
//! for between batches and its queue never fills.

#![expect(
    unsafe_code,
    reason = "unchecked launches and the bare call of the driver are timed as well"
)]

mod first;
mod peers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use exactile::internals::bare_launch;
use exactile::prelude::*;
use exactile::{DeviceKind, Result};
use serde::{Deserialize, Serialize};

use super::clock::median;
use super::report::today;

pub use first::{FirstLaunches, first_launches};

/// Elements of each vector of a first launch.
const LEN: usize = 4096;

/// Launches in a row: with the [`LEAD`] fewer than records of errors in a stream, so that no launch waits for one.
const BATCH: usize = 50;

/// Launches before those, which are not timed.
const LEAD: usize = 5;

/// Kernels in a row of the graph.
const CHAIN: usize = 1000;

#[kernel(BLOCK = 1024)]
pub(super) fn vector_add<const BLOCK: usize>(x: Ptr<f32>, y: Ptr<f32>, z: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let sum = load(x + at).mask(inside) + load(y + at).mask(inside);
    store(z + at, sum).mask(inside);
}

#[kernel]
fn scale_and_add<const SIDE: usize>(
    x: Tensor<f32, 2>,
    y: Tensor<f32, 2>,
    z: TensorMut<f32, 2>,
    a: f32,
    b: f32,
    c: f32,
    d: f32,
    row: i32,
    column: i32,
    times: i64,
) {
    let x = load(x.tile([SIDE, SIDE]).at([row, column]));
    let y = load(y.tile([SIDE, SIDE]).at([row, column]));
    let sum = x * a + y * b + c * d + times.to::<f32>();
    store(z.tile([SIDE, SIDE]).at([row, column]), sum);
}

#[kernel]
fn nothing() {}

/// What to measure, and beside whom.
#[derive(Clone, Debug)]
pub struct LaunchPlan {
    /// What runs the launches.
    pub device: Device,
    /// Batches of each row.
    pub batches: usize,
    /// Processes whose first launches are timed.
    pub processes: usize,
    /// The program that runs those: it is given `bench launch --first --device NAME`.
    pub program: PathBuf,
    /// The Python that runs the peers, and the folder with `launch.py`.
    pub peers: Option<(String, PathBuf)>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct LaunchReport {
    /// The commit that was measured.
    pub commit: String,
    /// The model of the device.
    pub device: String,
    /// The day, in UTC.
    pub date: String,
    /// How times were taken.
    pub method: String,
    /// The peers' libraries and their versions.
    pub libraries: BTreeMap<String, String>,
    /// One for each figure.
    pub rows: Vec<LaunchRow>,
    /// What went wrong with the peers.
    pub notes: Vec<String>,
}

/// A figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchRow {
    /// What was timed.
    pub name: String,
    /// Whose.
    pub library: String,
    /// The median, in microseconds.
    pub median_us: f64,
    /// The least, in microseconds.
    pub least_us: f64,
    /// Of so many.
    pub times: usize,
}

/// How much work a launch has: on a host, which does it in the call, next to nothing.
struct Work {
    /// Elements of a program of the vectors.
    block: usize,
    /// Their programs.
    programs: usize,
    /// Elements along each axis of a tile.
    side: usize,
}

impl LaunchPlan {
    fn work(&self) -> Work {
        match self.device.kind() {
            DeviceKind::Cuda(_) => Work {
                block: 1024,
                programs: 4,
                side: 32,
            },
            DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => Work {
                block: 4,
                programs: 1,
                side: 2,
            },
        }
    }

    /// The vectors: two to add, and their sum.
    fn vectors(&self) -> Result<[Buffer<f32>; 3]> {
        let Work {
            block, programs, ..
        } = self.work();
        let of = |number| Buffer::from_slice(&self.device, &vec![number; block * programs]);
        Ok([of(1.0f32)?, of(2.0)?, of(0.0)?])
    }
}

impl LaunchRow {
    fn of(name: &str, seconds: &[f64]) -> Self {
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        Self {
            name: name.to_string(),
            library: "exactile".to_string(),
            median_us: median(seconds) * 1e6,
            least_us: least * 1e6,
            times: seconds.len(),
        }
    }

    /// A line of the table.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{:48} {:10} {:10.3} us, least {:10.3}",
            self.name, self.library, self.median_us, self.least_us
        )
    }
}

/// Measures all rows.
///
/// # Errors
/// What fails on this side; the peers' troubles are notes.
pub fn run(plan: &LaunchPlan, commit: &str) -> Result<LaunchReport> {
    let device = &plan.device;
    let mut rows = vectors(plan)?;
    rows.extend(tensors(plan)?);
    rows.extend(in_a_row(plan)?);
    rows.extend(streams(plan)?);
    rows.extend(graph(plan)?);
    first::rows(plan, &mut rows)?;
    let (libraries, theirs, notes) = match &plan.peers {
        Some((python, folder)) => peers::ask(python, folder),
        None => Default::default(),
    };
    rows.extend(theirs);
    let Work {
        block,
        programs,
        side,
    } = plan.work();
    Ok(LaunchReport {
        commit: commit.to_string(),
        device: device.name().to_string(),
        date: today(),
        method: format!(
            "host clock; median of {} batches of {BATCH} launches, rows of one kernel in turns, each batch after {LEAD} \
             launches that are not timed and the device waited for in between, of {programs} programs of \
             {block} elements and of one of {side} x {side}; graph: {CHAIN} kernels of one \
             program in a row; first launches: of {} processes each, after the device is open and its arrays are there",
            plan.batches, plan.processes
        ),
        libraries,
        rows,
        notes,
    })
}

/// A row that is measured in turns with others.
struct Row<'r> {
    name: &'static str,
    /// Whether its launches skip the checks that an earlier launch proved needless.
    trusts_proofs: bool,
    launch: Box<dyn FnMut() -> Result<()> + 'r>,
}

impl<'r> Row<'r> {
    fn new(name: &'static str, launch: impl FnMut() -> Result<()> + 'r) -> Self {
        Self {
            name,
            trusts_proofs: true,
            launch: Box::new(launch),
        }
    }
}

/// Measures rows by a batch of each in turns, so that their differences are not those of the minutes in which they ran.
fn in_turns(plan: &LaunchPlan, mut turns: Vec<Row<'_>>) -> Result<Vec<LaunchRow>> {
    let (device, warm_up) = (&plan.device, 3);
    let mut times = vec![Vec::new(); turns.len()];
    for batch in 0..plan.batches + warm_up {
        for (row, times) in turns.iter_mut().zip(&mut times) {
            device.trust_proofs(row.trusts_proofs);
            // What the caches hold is that of the row before.
            (0..LEAD).try_for_each(|_| (row.launch)())?;
            let begin = Instant::now();
            (0..BATCH).try_for_each(|_| (row.launch)())?;
            let time = begin.elapsed().as_secs_f64() / BATCH as f64;
            device.synchronize()?;
            if batch >= warm_up {
                times.push(time);
            }
        }
    }
    device.trust_proofs(true);
    let rows = turns.iter().zip(&times);
    Ok(rows
        .map(|(row, times)| LaunchRow::of(row.name, times))
        .collect())
}

fn vectors(plan: &LaunchPlan) -> Result<Vec<LaunchRow>> {
    let device = &plan.device;
    let [x, y, mut z] = plan.vectors()?;
    let block = plan.work().block;
    let (grid, n) = (plan.work().programs, x.len() as i32);
    let kernel = vector_add().block(block);
    // Proved by the first.
    kernel.run(device, grid, (&x, &y, &mut z, n))?;
    kernel.run(device, grid, (&x, &y, &mut z, n))?;
    let inspection = kernel.inspect(device, grid, (&x, &y, &mut z, n))?;
    let compiled = kernel.compile(device, grid, (&x, &y, &mut z, n))?;
    let output = || Buffer::<f32>::zeros(device, x.len());
    let [mut one, mut two, mut three, mut four, mut five] =
        [output()?, output()?, output()?, output()?, output()?];
    let mut turns = Vec::new();
    if let Some(mut bare) = bare_launch(device, &inspection)? {
        // SAFETY: the arrays are there, and nothing else is under way that uses this output.
        let launch = move || unsafe { bare.launch() };
        turns.push(Row::new("vector add, bare call of the driver", launch));
    }
    turns.push(Row::new("vector add, proved", || {
        kernel.launch(device, grid, (&x, &y, &mut one, n))
    }));
    turns.push(Row::new("vector add, proved, made anew", || {
        let kernel = vector_add().block(block);
        kernel.launch(device, grid, (&x, &y, &mut two, n))
    }));
    turns.push(Row::new("vector add, proved, compiled before", || {
        compiled.launch(device, grid, (&x, &y, &mut three, n))
    }));
    // SAFETY: the mask keeps every access inside.
    turns.push(Row::new("vector add, unchecked", || unsafe {
        kernel.launch_unchecked(device, grid, (&x, &y, &mut four, n))
    }));
    turns.push(Row {
        trusts_proofs: false,
        ..Row::new("vector add, checked", || {
            kernel.launch(device, grid, (&x, &y, &mut five, n))
        })
    });
    in_turns(plan, turns)
}

/// Launches in a row on the device, which are longer than the calls that put them there: each after the one before, and each
/// begun early.
fn in_a_row(plan: &LaunchPlan) -> Result<[LaunchRow; 2]> {
    let device = &plan.device;
    let (block, programs) = match device.kind() {
        DeviceKind::Cuda(_) => (1024, 2048),
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => (4, 1),
    };
    let of = |number: f32| Buffer::from_slice(device, &vec![number; block * programs]);
    let (x, y, mut z) = (of(1.0)?, of(2.0)?, of(0.0)?);
    let n = x.len() as i32;
    let kernels = [1, 2].map(|early| vector_add().block(block).early(early));
    for kernel in &kernels {
        for _ in 0..2 {
            kernel.run(device, programs, (&x, &y, &mut z, n))?;
        }
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..plan.batches.div_ceil(4) {
        for (kernel, times) in kernels.iter().zip(&mut times) {
            let start = device.event()?;
            for _ in 0..BATCH {
                kernel.launch(device, programs, (&x, &y, &mut z, n))?;
            }
            let end = device.event()?;
            times.push(end.seconds_since(&start)? / BATCH as f64);
        }
    }
    let [plain, early] = &times;
    Ok([
        LaunchRow::of("vector add of 2,097,152, one of a row on the device", plain),
        LaunchRow::of("the same, begun early", early),
    ])
}

/// Where there is a second stream, the order of launches is written down.
fn streams(plan: &LaunchPlan) -> Result<Vec<LaunchRow>> {
    let device = &plan.device;
    let stream = device.stream()?;
    let [x, y, mut z] = plan.vectors()?;
    let kernel = vector_add().block(plan.work().block);
    let (grid, n) = (plan.work().programs, x.len() as i32);
    let name = "vector add, proved, one of two streams";
    let row = Row::new(name, || kernel.launch(&stream, grid, (&x, &y, &mut z, n)));
    in_turns(plan, vec![row])
}

fn tensors(plan: &LaunchPlan) -> Result<Vec<LaunchRow>> {
    let device = &plan.device;
    let side = plan.work().side;
    let shape = [2 * side; 2];
    let of = |number: f32| Buffer::from_slice(device, &vec![number; 4 * side * side]);
    let (x, y, mut z) = (of(1.0)?, of(2.0)?, of(0.0)?);
    let kernel = scale_and_add().side(side);
    for _ in 0..2 {
        let (x, y, z) = (x.view(shape)?, y.view(shape)?, z.view_mut(shape)?);
        kernel.run(device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))?;
    }
    let inspection = {
        let (x, y, z) = (x.view(shape)?, y.view(shape)?, z.view_mut(shape)?);
        kernel.inspect(device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))?
    };
    let compiled = {
        let (x, y, z) = (x.view(shape)?, y.view(shape)?, z.view_mut(shape)?);
        kernel.compile(device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))?
    };
    let (mut one, mut two, mut three) = (of(0.0)?, of(0.0)?, of(0.0)?);
    let mut turns = Vec::new();
    if let Some(mut bare) = bare_launch(device, &inspection)? {
        // SAFETY: the arrays are there, and nothing else is under way that uses this output.
        let launch = move || unsafe { bare.launch() };
        turns.push(Row::new(
            "three tensors of ten, bare call of the driver",
            launch,
        ));
    }
    turns.push(Row::new("three tensors of ten, proved", || {
        let (x, y, z) = (x.view(shape)?, y.view(shape)?, one.view_mut(shape)?);
        kernel.launch(device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))
    }));
    turns.push(Row::new(
        "three tensors of ten, proved, compiled before",
        || {
            let (x, y, z) = (x.view(shape)?, y.view(shape)?, two.view_mut(shape)?);
            compiled.launch(device, 1, (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64))
        },
    ));
    turns.push(Row::new("three tensors of ten, unchecked", || {
        let (x, y, z) = (x.view(shape)?, y.view(shape)?, three.view_mut(shape)?);
        let arguments = (x, y, z, 1.0, 2.0, 3.0, 4.0, 0, 0, 1i64);
        // SAFETY: tiles of tensors are in bounds.
        unsafe { kernel.launch_unchecked(device, 1, arguments) }
    }));
    in_turns(plan, turns)
}

fn graph(plan: &LaunchPlan) -> Result<[LaunchRow; 3]> {
    let stream = plan.device.stream()?;
    let kernel = nothing();
    // Compiled before.
    kernel.run(&stream, 1, ())?;
    kernel.run(&stream, 1, ())?;
    let begin = Instant::now();
    let graph =
        stream.capture(|stream| (0..CHAIN).try_for_each(|_| kernel.launch(stream, 1, ())))?;
    let captured = begin.elapsed().as_secs_f64() / CHAIN as f64;
    let replays = match plan.device.kind() {
        DeviceKind::Cuda(_) => 10,
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => 1,
    };
    let nodes = (replays * CHAIN) as f64;
    let (mut on_device, mut on_host) = (Vec::new(), Vec::new());
    for _ in 0..plan.batches.div_ceil(4) {
        stream.synchronize()?;
        let start = stream.event()?;
        let begin = Instant::now();
        for _ in 0..replays {
            graph.replay(&stream, ())?;
        }
        on_host.push(begin.elapsed().as_secs_f64() / replays as f64);
        let end = stream.event()?;
        on_device.push(end.seconds_since(&start)? / nodes);
    }
    Ok([
        LaunchRow::of(
            "graph of 1,000 empty kernels, a node on the device",
            &on_device,
        ),
        LaunchRow::of(
            "graph of 1,000 empty kernels, the call of a replay",
            &on_host,
        ),
        LaunchRow::of(
            "graph of 1,000 empty kernels, the capture of a launch",
            &[captured],
        ),
    ])
}
