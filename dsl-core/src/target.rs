//! What a kernel is compiled for and with: plain data.

/// Which changes leave the bits of results alone. Each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Determinism {
    /// None: any reduction order, float atomics, approximate instructions.
    NotGuaranteed,
    /// Another run.
    RunToRun,
    /// Other rows of the batch, another grid.
    BatchInvariant,
    /// Other tile sizes, warps, stages: any configuration of the tuner.
    ScheduleInvariant,
    /// Another device: the CPU gives the same bits.
    #[default]
    Exact,
}

impl Determinism {
    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotGuaranteed => "not_guaranteed",
            Self::RunToRun => "run_to_run",
            Self::BatchInvariant => "batch_invariant",
            Self::ScheduleInvariant => "schedule_invariant",
            Self::Exact => "exact",
        }
    }
}

/// Whether accesses through plain pointers are checked against the lengths of the buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Bounds {
    /// Each access is, and the first error of a launch is reported.
    #[default]
    Checked,
    /// None is: an access out of bounds is undefined behaviour.
    Unchecked,
}

/// How a program's work is laid out. Never changes bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Schedule {
    /// Warps of a thread block: a power of two up to 32; chosen from the tiles when absent.
    pub warps: Option<u32>,
    /// Depth of software pipelines; 0 leaves it to the loops.
    pub stages: u32,
    /// Thread blocks that a multiprocessor has registers for, at least: lanes get fewer registers, and
    /// spill what does not fit. At most 32, and 64 warps together; 0 leaves it to the assembler. A CPU
    /// takes no notice.
    pub occupancy: u32,
}

/// Everything but the kernel that a compilation depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Options {
    /// The determinism level.
    pub determinism: Determinism,
    /// The bounds checks.
    pub bounds: Bounds,
    /// The schedule.
    pub schedule: Schedule,
}

/// Who computes the elements of a tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Distribution {
    /// One thread, by loop nests.
    Sequential,
    /// The lanes of a thread block, each in registers.
    Distributed,
}

/// What a machine has of its own for the math functions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Approximations {
    /// Instructions for the approximate ops.
    Native,
    /// Nothing: approximate ops mean the exact functions.
    Absent,
}

/// A machine that code is made for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// The name on the command line.
    pub name: &'static str,
    /// Who computes a tile.
    pub distribution: Distribution,
    /// Whether it has approximate instructions.
    pub approximations: Approximations,
}

impl Target {
    /// A thread of this computer's processor.
    pub const CPU: Self = Self {
        name: "cpu",
        distribution: Distribution::Sequential,
        approximations: Approximations::Absent,
    };
    /// A GPU of compute capability 9.0.
    pub const SM_90A: Self = Self {
        name: "sm_90a",
        distribution: Distribution::Distributed,
        approximations: Approximations::Native,
    };

    /// Every machine.
    pub const ALL: &[Self] = &[Self::CPU, Self::SM_90A];

    /// The machine with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.name == name)
    }

    /// The same machine as an interpreter plays it, which computes approximate ops exactly.
    #[must_use]
    pub const fn interpreted(self) -> Self {
        Self {
            approximations: Approximations::Absent,
            ..self
        }
    }
}

/// The greatest number of warps of a thread block.
pub const MAX_WARPS: u32 = 32;

/// The greatest number of thread blocks of a multiprocessor.
pub const MAX_OCCUPANCY: u32 = 32;

/// The greatest number of warps of a multiprocessor.
pub const MULTIPROCESSOR_WARPS: u32 = 64;

/// Lanes of a warp.
pub const WARP_LANES: u32 = 32;

/// The first out-of-bounds access of a checked launch: of those found the least program, then site,
/// then element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BoundsError {
    /// Linear index of the program in the grid, axis 0 fastest.
    pub program: u64,
    /// The access: the `site` of its `check_bounds`, numbered in program order.
    pub site: u64,
    /// Row-major index of the element in its tile.
    pub element: u64,
    /// The element offset that is out of bounds.
    pub offset: i64,
}
