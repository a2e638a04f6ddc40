//! How large a program is, and how it is launched.

use exactile_core::facts::Facts;
use exactile_core::interp::lane::Timing;
use exactile_core::ir::{DType, Grid, Op};
use exactile_core::target::{Bounds, Schedule, ScheduleField, Target};
use exactile_core::verify::BlockFunc;

use super::super::arguments::Contents;
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
    /// How lowered code is laid out.
    pub schedule: Schedule,
    /// The GPU that code for lanes is made for.
    pub gpu: Target,
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

    /// The most stages for which shared memory has room, if half of it is for what all loads copy ahead.
    pub fn most_stages(&self) -> u32 {
        let func = &self.func;
        let mut insts = func.all_insts();
        insts.retain(|&inst| matches!(func.op(inst), Op::Load(_)));
        let bytes = |inst| {
            let ty = func.ty(func.inst(inst).results[0]);
            ty.shape.elements() as u32 * ty.dtype().map_or(0, DType::bytes)
        };
        let copied: u32 = insts.into_iter().map(bytes).sum();
        (self.gpu.gpu.shared_bytes / 2 / copied.max(1)).max(1)
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
