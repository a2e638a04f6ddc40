//! What each level of determinism keeps the same, seen by running: kernels under every level, with one thing changed at a
//! time. `docs/determinism.md` is made of it.

use std::collections::BTreeSet;
use std::fmt;

use exactile::prelude::*;
use exactile::{Array, DType, Determinism, DeviceKind, Error, Result, Schedule, compare};
use exactile_kernels::Setting;

use crate::cases::{Levelled, of_levels};
use crate::demo::{Case, Problem, problem, random};
use crate::testing::first_bounded;

/// A sum of all elements, in the order in which programs come.
#[kernel]
fn atomic_sum<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    atomic_add(out, load(x + at).sum(0));
}

/// A sum of all elements whose order follows the tile size.
#[kernel]
fn tile_sum<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = scalar::<f32>(0.0);
    for first in range(0, n).step(BLOCK) {
        sum += load(x + first + arange(0, BLOCK)).sum(0).scalar();
    }
    store(out, sum);
}

/// Powers by a device's own instruction.
#[kernel]
fn approximate_powers<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, approx_exp(load(x + at)));
}

/// Elements of what the kernels of this file read.
const LEN: usize = 4096;

/// What those kernels take to be run with a tile of so many elements.
type Launch = fn(&Buffer<f32>, &mut Buffer<f32>, usize, &Setting) -> Result<()>;

/// Kernels that most levels refuse.
fn own() -> Vec<Levelled> {
    let add: Launch = |x, out, block, setting| {
        let kernel = atomic_sum().block(block).schedule(setting.schedule);
        let (device, kernel) = (x.device(), kernel);
        out.copy_from_slice(&[0.0])?;
        let kernel = kernel.determinism(setting.determinism);
        kernel.run(device, LEN / block, (x, out))
    };
    let follow: Launch = |x, out, block, setting| {
        let kernel = tile_sum().block(block).schedule(setting.schedule);
        let (device, kernel) = (x.device(), kernel);
        let kernel = kernel.determinism(setting.determinism);
        kernel.run(device, 1, (x, out, LEN as i32))
    };
    let approximate: Launch = |x, out, block, setting| {
        let kernel = approximate_powers().block(block).schedule(setting.schedule);
        let (device, kernel) = (x.device(), kernel);
        let kernel = kernel.determinism(setting.determinism);
        kernel.run(device, LEN / block, (x, out))
    };
    let levelled = |(kernel, launch, outputs): (&'static str, Launch, usize)| Levelled {
        whole: Case {
            kernel,
            dtype: DType::F32,
            shape: vec![LEN],
            bytes: 4 * LEN as u64,
            flops: LEN as u64,
            blocks: vec![64, 256, 1024],
            elements: |block| block,
            setup: Box::new(move |device| {
                let x = Buffer::from_slice(device, &random::<f32>(21, LEN))?;
                let out = Buffer::<f32>::zeros(device, outputs)?;
                Ok(problem(out, move |out, setting| {
                    launch(&x, out, setting.block, setting)
                }))
            }),
        },
        part: None,
        has_stages: false,
        is_open: kernel == "atomic_sum",
    };
    let list = [
        ("atomic_sum", add, 1),
        ("tile_sum", follow, 1),
        ("approximate_powers", approximate, LEN),
    ];
    list.into_iter().map(levelled).collect()
}

/// What is changed between two runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Nothing.
    Run,
    /// Rows beside those that are compared.
    Batch,
    /// The extents of tiles.
    Tile,
    /// Warps of a thread block.
    Warps,
    /// Iterations whose loads are under way in a loop.
    Stages,
    /// The device, beside the CPU.
    Device,
    /// The level, beside `Exact`.
    Level,
}

impl Change {
    /// All changes.
    pub const ALL: [Self; 7] = [
        Self::Run,
        Self::Batch,
        Self::Tile,
        Self::Warps,
        Self::Stages,
        Self::Device,
        Self::Level,
    ];

    /// The head of its column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Batch => "batch",
            Self::Tile => "tile",
            Self::Warps => "warps",
            Self::Stages => "stages",
            Self::Device => "device",
            Self::Level => "as `exact`",
        }
    }

    /// Whether `level` promises the same bits.
    pub fn is_promised(self, level: Determinism) -> bool {
        level
            >= match self {
                Self::Run | Self::Batch => Determinism::BatchInvariant,
                Self::Tile | Self::Warps | Self::Stages => Determinism::ScheduleInvariant,
                Self::Device | Self::Level => Determinism::Exact,
            }
    }
}

/// What came of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Nothing was compared: the kernel has nothing like it, or no device takes notice.
    Nothing,
    /// It ran, and nothing was compared: which program comes first decides.
    Open,
    /// The same bits, in so many comparisons.
    Same(usize),
    /// Other bits, on these devices.
    Differs(BTreeSet<String>),
}

impl Seen {
    fn add(&mut self, device: &Device, same: bool) {
        match (&mut *self, same) {
            (Self::Differs(devices), false) => {
                devices.insert(device.to_string());
            }
            (Self::Nothing | Self::Open | Self::Same(_), false) => {
                *self = Self::Differs(BTreeSet::from([device.to_string()]));
            }
            (Self::Nothing | Self::Open, true) => *self = Self::Same(1),
            (Self::Same(count), true) => *count += 1,
            (Self::Differs(_), true) => {}
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::Open => f.write_str("open"),
            Self::Same(_) => f.write_str("same"),
            Self::Differs(devices) => {
                let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
                write!(f, "**other**: {}", devices.join(", "))
            }
        }
    }
}

/// A kernel under a level.
#[derive(Clone, Debug)]
pub struct Line {
    /// The kernel.
    pub kernel: &'static str,
    /// The level.
    pub level: Determinism,
    /// What came of each of [`Change::ALL`]; nothing where the level refuses the kernel.
    pub seen: Option<Vec<Seen>>,
}

impl Line {
    /// What the level promises and the run did not show.
    pub fn broken(&self) -> impl Iterator<Item = Change> {
        let seen = self.seen.iter().flatten().zip(Change::ALL);
        let broken = seen.filter(|(seen, change)| {
            matches!(seen, Seen::Differs(_)) && change.is_promised(self.level)
        });
        broken.map(|(_, change)| change)
    }
}

/// Every kernel under every level on these devices.
///
/// # Errors
/// When a kernel does not run.
pub fn run(devices: &[Device]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for case in of_levels().into_iter().chain(own()) {
        for level in Determinism::ALL.into_iter().rev() {
            let seen = match line(&case, level, devices) {
                Err(Error::Compile { .. }) => None,
                seen => Some(seen?),
            };
            lines.push(Line {
                kernel: case.whole.kernel,
                level,
                seen,
            });
        }
    }
    Ok(lines)
}

fn outputs(problem: &mut Problem, device: &Device, setting: &Setting) -> Result<Array> {
    problem.spoil()?;
    problem.launch(setting)?;
    device.synchronize()?;
    let first = problem.outputs()?.into_iter().next();
    first.ok_or_else(|| Error::Invalid("the kernel has no output".to_string()))
}

/// Whether two results have the same bits, as far as the shorter one goes.
fn same(one: &Array, other: &Array) -> Result<bool> {
    let bytes = one.bytes().len().min(other.bytes().len());
    if one.bytes().len() == other.bytes().len() {
        return Ok(compare(one, other)?.bits_equal());
    }
    Ok(one.bytes()[..bytes] == other.bytes()[..bytes])
}

fn line(case: &Levelled, level: Determinism, devices: &[Device]) -> Result<Vec<Seen>> {
    let mut seen = vec![Seen::Nothing; Change::ALL.len()];
    let cpu = Device::cpu();
    let first = Setting {
        block: case.whole.blocks.first().copied().unwrap_or_default(),
        ..Setting::default()
    };
    let mut on_cpu = (case.whole.setup)(&cpu)?;
    let reference = outputs(&mut on_cpu, &cpu, &first.at(level))?;
    // A kernel that `Exact` refuses has nothing to be compared with.
    let exact = match outputs(&mut on_cpu, &cpu, &first.at(Determinism::Exact)) {
        Err(Error::Compile { .. }) => None,
        exact => Some(exact?),
    };
    for device in devices {
        let mut problem = (case.whole.setup)(device)?;
        let mut run = |setting: Setting| outputs(&mut problem, device, &setting.at(level));
        let golden = run(first)?;
        if case.is_open {
            seen.fill(Seen::Open);
            continue;
        }
        let mut note = |change: Change, same: bool| {
            let column = Change::ALL.iter().position(|it| *it == change);
            seen[column.unwrap_or_default()].add(device, same);
        };
        note(Change::Run, same(&run(first)?, &golden)?);
        note(Change::Device, same(&golden, &reference)?);
        if let Some(exact) = &exact {
            note(Change::Level, same(&golden, exact)?);
        }
        for &block in case.whole.blocks.iter().skip(1) {
            note(
                Change::Tile,
                same(&run(Setting { block, ..first })?, &golden)?,
            );
        }
        let has_lanes = matches!(device.kind(), DeviceKind::Lanes | DeviceKind::Cuda(_));
        let few: Vec<Schedule> = [1, 2, 4].map(|warps| Schedule::AUTO.warps(warps)).to_vec();
        for (change, schedules) in [
            (Change::Warps, few),
            (Change::Warps, vec![Schedule::AUTO.warps(8)]),
            (Change::Stages, vec![Schedule::AUTO.stages(1)]),
            (Change::Stages, vec![Schedule::AUTO.stages(3)]),
        ] {
            let applies = has_lanes && (change != Change::Stages || case.has_stages);
            if applies {
                let other =
                    first_bounded(&schedules, |schedule| run(Setting { schedule, ..first }))?;
                note(change, same(&other, &golden)?);
            }
        }
        if let Some(part) = &case.part {
            let mut problem = (part.setup)(device)?;
            let alone = outputs(&mut problem, device, &first.at(level))?;
            note(Change::Batch, same(&alone, &golden)?);
        }
    }
    Ok(seen)
}

/// How many comparisons found the same bits.
pub fn compared(lines: &[Line]) -> usize {
    let seen = lines.iter().flat_map(|line| line.seen.iter().flatten());
    seen.map(|seen| match seen {
        Seen::Same(count) => *count,
        Seen::Nothing | Seen::Open | Seen::Differs(_) => 0,
    })
    .sum()
}

/// The lines as a table.
pub fn table(lines: &[Line]) -> String {
    let heads: Vec<&str> = Change::ALL.iter().map(|change| change.name()).collect();
    let mut text = format!("| kernel | level | {} |\n", heads.join(" | "));
    text.push_str(&format!("|---|---|{}\n", "---|".repeat(heads.len())));
    for line in lines {
        let cells: Vec<String> = match &line.seen {
            Some(seen) => seen.iter().map(ToString::to_string).collect(),
            None => vec!["refused".to_string(); heads.len()],
        };
        let (kernel, level) = (line.kernel, line.level.name());
        text.push_str(&format!(
            "| {kernel} | `{level}` | {} |\n",
            cells.join(" | ")
        ));
    }
    text
}

/// The page of what was seen.
pub fn page(lines: &[Line]) -> String {
    format!("{HEAD}\n{}", table(lines))
}

const HEAD: &str = "\
# What keeps the bits the same

Written by `BLESS=1 cargo test --test suite determinism`, which runs all of it, on the block interpreter, the CPU and the
interpreter of a GPU's lanes. `exactile selftest determinism` prints the same table with a GPU where there is one; no GPU
wrote this page. The interpreter of lanes computes approximate functions exactly, so below `exact` a GPU differs in more
places than the page shows. Products of matrices and attention have more shapes, types, layouts and schedules than a table holds:
`exactile selftest products` draws some by a seed, and compares each with the CPU at `exact`.

| level | what a kernel gains over the next level | what still keeps the bits |
|---|---|---|
| `exact` | | everything: run, batch, tile, warps, stages, device |
| `schedule_invariant` | approximate instructions that are asked for by name, `approx_exp` and its like, which differ between devices | all but the device |
| `batch_invariant` | reductions and scans that leave their order to the schedule (`order=any` of the text form), and sums of loops that follow the tile size without saying so | run and batch |
| `not_guaranteed` | every reduction and scan in any order, a GPU's own functions, sums of floats by atomics, which on a GPU take subnormal `f32` numbers for zero, atomics that give the old number | nothing |

A column says what was changed between two runs: *run* nothing; *batch* the rows beside those compared; *tile* the extents of
tiles; *warps* and *stages* those of a schedule, which a CPU takes no notice of; *device* that it is the CPU; *as `exact`* the level. \
*same*: no bit differed. **other**: some did, on the devices named. *-*: the kernel has nothing like it. *open*: it ran, and which program comes first decides. *refused*: compiling is an \
error with the line.
";
