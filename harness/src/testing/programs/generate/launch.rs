//! How large a program is, and how it is launched.

use exactile_core::facts::Facts;
use exactile_core::interp::lane::Timing;
use exactile_core::ir::{DType, Grid, Op};
use exactile_core::target::{Bounds, Determinism, Schedule, ScheduleField, Target, WARP_LANES};
use exactile_core::verify::BlockFunc;

use super::super::arguments::Contents;
use super::super::target::Target as Covered;
use exactile_core::random::Random;

/// A program with everything that a launch needs.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kernel.
    pub func: BlockFunc,
    /// The launch grid.
    pub grid: Grid,
    /// Whether lowered code checks accesses that are known to be in bounds.
    pub bounds: Bounds,
    /// The level at which code is lowered, of which the program's bits take no notice.
    pub determinism: Determinism,
    /// How lowered code is laid out.
    pub schedule: Schedule,
    /// The GPU that code for lanes is made for; none where no GPU computes its matrix products.
    pub gpu: Option<Target>,
    /// When its warps and copies run under the interpreter of lanes.
    pub timing: Timing,
    /// What lowered code may rely on; true of the arguments.
    pub facts: Facts,
    /// The arguments before the launch.
    pub arguments: Vec<Contents>,
}

/// How large programs may become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Elements of a tile.
    pub elements: usize,
    /// Ops to be covered that one program takes.
    pub targets: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            elements: 256,
            targets: 36,
        }
    }
}

/// What a program has more of than most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Size {
    /// Nothing.
    Usual,
    /// Tiles of eight times the size.
    Large,
    /// Tiles of 64 times the size, in few ops.
    Huge,
    /// Programs of the grid, with small tiles.
    Wide,
}

impl Size {
    pub(super) fn of(index: usize) -> Self {
        match index % 96 {
            23 | 47 | 71 => Self::Large,
            95 => Self::Huge,
            11 | 59 => Self::Wide,
            _ => Self::Usual,
        }
    }

    pub(super) fn limits(self, limits: Limits) -> Limits {
        let Limits { elements, targets } = limits;
        let (elements, targets) = match self {
            Self::Usual => (elements, targets),
            Self::Large => (8 * elements, targets),
            Self::Huge => (64 * elements, targets.div_ceil(8)),
            Self::Wide => (elements.div_ceil(16), targets),
        };
        Limits { elements, targets }
    }

    pub(super) fn grids(self) -> &'static [Grid] {
        match self {
            Self::Usual | Self::Large => &[
                [1, 1, 1],
                [2, 1, 1],
                [3, 1, 1],
                [4, 1, 1],
                [2, 2, 1],
                [1, 2, 1],
                [1, 1, 3],
            ],
            Self::Huge => &[[1, 1, 1], [2, 1, 1]],
            Self::Wide => &[[37, 1, 1], [1, 24, 1], [5, 3, 2]],
        }
    }
}

/// Of so many programs one is at the level at which nothing is guaranteed.
const LEVELS: usize = 8;

/// Which of them: one of no special size.
const FREE: usize = 5;

/// The level of a program and `count` ops to be covered, where most programs take `usual` of them.
pub(super) fn dealt(
    seed: u64,
    index: usize,
    usual: usize,
    count: usize,
) -> (Determinism, Vec<Covered>) {
    let mut targets = Covered::all();
    Random::new(seed).shuffle(&mut targets);
    let (by_arrival, others): (Vec<Covered>, Vec<Covered>) =
        targets.into_iter().partition(|target| target.by_arrival());
    let deal = |targets: &[Covered], start: usize, count: usize| -> Vec<Covered> {
        let places = start..start + count;
        places.map(|at| targets[at % targets.len()]).collect()
    };
    let free = (index + LEVELS - FREE - 1) / LEVELS;
    if index % LEVELS != FREE {
        return (
            Determinism::Exact,
            deal(&others, (index - free) * usual, count),
        );
    }
    let kept: Vec<Covered> = others.into_iter().filter(|it| !it.is_relaxed()).collect();
    let fetches = usual.div_ceil(4);
    let mut targets = deal(&kept, free * usual, count - fetches.min(count));
    targets.extend(deal(&by_arrival, free * fetches, fetches));
    (Determinism::NotGuaranteed, targets)
}

/// Numbers of warps, as often as they are tried: many lanes take long to interpret.
const WARPS: &[u32] = &[1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 16, 32];

/// Elements of a tile that a warp holds at most: code for more takes long to compile.
const ELEMENTS_OF_WARP: usize = 2048;

impl Program {
    /// The fewest warps that the program's tiles are distributed over.
    pub fn least_warps(&self) -> u32 {
        let func = &self.func;
        let insts = func.all_insts().into_iter();
        let results = insts.flat_map(|inst| &func.inst(inst).results);
        let sizes = results.map(|&value| func.ty(value).shape.elements());
        let warps = sizes.max().unwrap_or(1).div_ceil(ELEMENTS_OF_WARP);
        u32::try_from(warps).unwrap_or(u32::MAX)
    }

    /// The most stages for which shared memory has room, if half of it is for what all loads copy ahead. Each lane has a
    /// part of every copy, so that a tile of fewer elements takes as much as one with an element a lane.
    pub fn most_stages(&self) -> u32 {
        let func = &self.func;
        let mut insts = func.all_insts();
        insts.retain(|&inst| matches!(func.op(inst), Op::Load(_) | Op::TileLoad(_)));
        let lanes = (self.schedule.warps.unwrap_or(1) * WARP_LANES) as usize;
        let bytes = |inst| {
            let ty = func.ty(func.inst(inst).results[0]);
            ty.shape.elements().max(lanes) as u32 * ty.dtype().map_or(0, DType::bytes)
        };
        let copied: u32 = insts.into_iter().map(bytes).sum();
        let shared = self.gpu.map_or(0, |target| target.gpu.shared_bytes);
        (shared / 2 / copied.max(1)).max(1)
    }
}

pub(super) fn random_schedule(random: &mut Random) -> Schedule {
    let mut schedule = Schedule::AUTO.warps(random.pick(WARPS));
    for &field in ScheduleField::ALL {
        if schedule.get(field).is_none() {
            let tries = field.row().tries;
            let chosen = random.below(1 + tries.len()).checked_sub(1);
            schedule.set(field, chosen.map(|index| tries[index]));
        }
    }
    schedule
}
