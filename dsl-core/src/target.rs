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
