//! What a kernel is compiled for and with: plain data.

mod schedule;

pub use schedule::{Schedule, ScheduleField, ScheduleRow, Values};

use crate::ir::{DType, Precision};

/// Which changes leave the bits of results alone. Each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Determinism {
    /// None: any reduction order, float atomics, approximate instructions.
    NotGuaranteed,
    /// Another run, other rows of the batch, another grid.
    BatchInvariant,
    /// Other tile sizes, warps, stages: any configuration of the tuner.
    ScheduleInvariant,
    /// Another device: the CPU gives the same bits.
    #[default]
    Exact,
}

impl Determinism {
    /// All levels, the one that promises least in front.
    pub const ALL: [Self; 4] = [
        Self::NotGuaranteed,
        Self::BatchInvariant,
        Self::ScheduleInvariant,
        Self::Exact,
    ];

    /// The name on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotGuaranteed => "not_guaranteed",
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

/// What a machine does in one step and in the exact meaning of the op. Every machine has the rest of
/// the arithmetic of integers, `f32` and `f64`, and conversions among these; `legalise` makes all else
/// of that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Native {
    /// The floats that it converts from and to `f32`; others are their bits.
    pub floats: &'static [DType],
    /// The floats of `minimum` and `maximum`.
    pub extrema: &'static [DType],
    /// The floats of `minnum` and `maxnum`.
    pub number_extrema: &'static [DType],
    /// From which floats to which integers it converts, NaN to 0; the rest is saturated, and of NaN
    /// undefined.
    pub to_integers: &'static [(DType, DType)],
    /// The floats that integers of every width round to.
    pub from_integers: &'static [DType],
    /// The floats that `f64` rounds to.
    pub from_f64: &'static [DType],
    /// The floats of which one step of Newton's makes the correctly rounded reciprocal of the machine's own.
    pub reciprocals: &'static [DType],
}

impl Native {
    /// Whether the machine has numbers of this type, and not their bits alone.
    pub(crate) fn holds(&self, dtype: DType) -> bool {
        !dtype.is_float() || self.floats.contains(&dtype)
    }
}

const FLOATS: &[DType] = &[DType::F16, DType::BF16, DType::F32, DType::F64];

/// Cranelift's instructions.
const NATIVE_CPU: Native = Native {
    floats: FLOATS,
    extrema: &[DType::F32, DType::F64],
    number_extrema: &[],
    to_integers: &[
        (DType::F32, DType::I32),
        (DType::F32, DType::U32),
        (DType::F32, DType::I64),
        (DType::F32, DType::U64),
        (DType::F64, DType::I32),
        (DType::F64, DType::U32),
        (DType::F64, DType::I64),
        (DType::F64, DType::U64),
    ],
    from_integers: &[DType::F32, DType::F64],
    from_f64: &[DType::F32],
    reciprocals: &[],
};

/// PTX orders -0 < +0, but devices have no minimum of `f64`. Integers go to `bf16` by way of wider floats:
/// devices before 9.0 would round twice, and LLVM 22 reads a sign-extended `bool` as unsigned.
const fn native_gpu(capability: (u32, u32)) -> Native {
    Native {
        floats: FLOATS,
        extrema: &[DType::F32],
        number_extrema: &[DType::F32],
        to_integers: &[(DType::F32, DType::I32), (DType::F32, DType::U32)],
        from_integers: &[DType::F16, DType::F32, DType::F64],
        from_f64: match capability.0 {
            ..9 => &[DType::F16, DType::F32],
            9.. => &[DType::F16, DType::BF16, DType::F32],
        },
        reciprocals: &[DType::F32],
    }
}

/// A machine that code is made for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// The name on the command line; of a GPU also that of the architecture in PTX.
    pub name: &'static str,
    /// Who computes a tile.
    pub distribution: Distribution,
    /// Whether it has approximate instructions.
    pub approximations: Approximations,
    /// What it has beyond what every machine has.
    pub native: Native,
    /// Bytes of the widest vector that one instruction of a thread moves or computes.
    pub vector_bytes: u32,
    /// Bytes that memory moves at once: a cache line of a CPU, a sector of a GPU.
    pub line_bytes: u32,
    /// Elements of the vectors that loop nests work on, of any type; 1 where lanes hold the elements.
    pub nest_lanes: usize,
    /// Of a GPU.
    pub gpu: Gpu,
}

/// What GPUs differ in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Gpu {
    /// The least compute capability that it stands for.
    pub capability: (u32, u32),
    /// Whether its code runs on that capability alone, and not on later ones.
    pub alone: bool,
    /// The version of PTX, times ten.
    pub ptx: u32,
    /// The most shared memory of a thread block, in bytes.
    pub shared_bytes: u32,
    /// Bytes that all banks of shared memory deliver at once.
    pub bank_bytes: u32,
    /// Bytes of shared memory that one exchange between lanes takes at most: what needs more takes rounds.
    pub exchange_bytes: u32,
    /// Bytes of shared memory that buffers take at most on top of the least, so that nobody waits.
    pub apart_bytes: i64,
    /// Elements of one tile that a lane may hold.
    pub tile_registers: u32,
    /// Bytes of what a lane loads for its elements of the largest tiles, all loads that a program makes together: with more it
    /// waits for all of them before it begins, and has few registers for what else it does.
    pub loaded_bytes: usize,
    /// Bytes of the same while a thread block has fewer than four warps: additions of short arrays took longer with more.
    pub suiting_bytes: usize,
    /// Registers of a multiprocessor.
    pub registers: u32,
    /// The fewest and the most registers that a thread can be held to.
    pub thread_registers: (u32, u32),
    /// The most warps of a thread block.
    pub most_warps: u32,
    /// Warps of a thread block that small programs share, unless a schedule says otherwise.
    pub shared_warps: u32,
    /// Multiprocessors of a usual machine of its kind.
    pub multiprocessors: u32,
    /// Bytes that each of them has of the memory in a cycle, where all ask for some.
    pub memory_bytes: u32,
    /// The same of the cache that all share.
    pub cache_bytes: u32,
    /// Cycles until memory gives what is asked for.
    pub latency: u32,
    /// Cycles from the begin of a thread block to that of the next on one multiprocessor.
    pub start_cycles: u32,
    /// Warps that a multiprocessor holds.
    pub resident_warps: u32,
    /// Thread blocks that a multiprocessor holds.
    pub resident_blocks: u32,
    /// The sizes in bytes of copies to shared memory that go on beside other work; none where there are
    /// no such copies.
    pub copy_bytes: &'static [i64],
    /// Whether it copies boxes of arrays to shared memory at once.
    pub copies_boxes: bool,
    /// The least bytes of a row of an array that goes to shared memory at once where no vector divides it: lanes that load so
    /// much element by element wait for the queue of their loads. Nothing where there are no such copies.
    pub row_bytes: Option<i64>,
    /// Whether thread blocks may begin before the end of the launch before theirs, and wait for it.
    pub begins_early: bool,
    /// Whether products of groups of warps may read an operand in registers of lanes: its assembler gives these to nothing else
    /// before the products are over.
    pub holds_operands: bool,
    /// The functions that its tensor cores compute, and are known to in every bit.
    pub mma: &'static [Precision],
}

impl Gpu {
    /// Bytes of shared memory that a thread block may take where so many are to share a multiprocessor, which keeps 1 KiB for each.
    /// Source: CUDA C++ Programming Guide, shared memory of compute capability 8.x and 9.0.
    pub const fn shared_bytes_of(&self, blocks: u32) -> u32 {
        const KEPT: u32 = 1024;
        ((self.shared_bytes + KEPT) / blocks).saturating_sub(KEPT)
    }
}

/// The machine of a CPU has none of this.
const NO_GPU: Gpu = Gpu {
    capability: (0, 0),
    alone: false,
    ptx: 0,
    shared_bytes: 0,
    bank_bytes: 0,
    exchange_bytes: 0,
    apart_bytes: 0,
    tile_registers: 0,
    loaded_bytes: usize::MAX,
    suiting_bytes: usize::MAX,
    registers: 0,
    thread_registers: (0, 0),
    most_warps: 0,
    shared_warps: 0,
    multiprocessors: 0,
    memory_bytes: 0,
    cache_bytes: 0,
    latency: 0,
    start_cycles: 0,
    resident_warps: 0,
    resident_blocks: 0,
    copy_bytes: &[],
    copies_boxes: false,
    row_bytes: None,
    begins_early: false,
    holds_operands: false,
    mma: &[],
};

/// From CUDA's table of compute capabilities. PTX 8.6 has all instructions used here.
const fn gpu(
    name: &'static str,
    capability: (u32, u32),
    shared_kilobytes: u32,
    resident_warps: u32,
    resident_blocks: u32,
) -> Target {
    Target {
        name,
        distribution: Distribution::Distributed,
        approximations: Approximations::Native,
        native: native_gpu(capability),
        vector_bytes: 16,
        line_bytes: 32,
        nest_lanes: 1,
        gpu: Gpu {
            capability,
            alone: false,
            ptx: 86,
            shared_bytes: shared_kilobytes * 1024,
            bank_bytes: 128,
            exchange_bytes: 32 * 1024,
            apart_bytes: 8 * 1024,
            tile_registers: 256,
            loaded_bytes: 256,
            suiting_bytes: 64,
            registers: 65536,
            thread_registers: (24, 255),
            most_warps: 32,
            shared_warps: 8,
            multiprocessors: 108,
            memory_bytes: 12,
            cache_bytes: 24,
            latency: 700,
            start_cycles: 130,
            resident_warps,
            resident_blocks,
            copy_bytes: &[4, 8, 16],
            copies_boxes: false,
            row_bytes: None,
            // PTX ISA, "griddepcontrol".
            begins_early: capability.0 >= 9,
            holds_operands: true,
            mma: &[],
        },
    }
}

impl Target {
    /// A thread of this computer's processor.
    pub const CPU: Self = Self {
        name: "cpu",
        distribution: Distribution::Sequential,
        approximations: Approximations::Absent,
        native: NATIVE_CPU,
        vector_bytes: 16,
        line_bytes: 64,
        nest_lanes: 8,
        gpu: NO_GPU,
    };
    /// A100.
    pub const SM_80: Self = gpu("sm_80", (8, 0), 163, 64, 32);
    /// RTX 30, A10, A40.
    pub const SM_86: Self = gpu("sm_86", (8, 6), 99, 48, 16);
    /// RTX 40, L4, L40.
    pub const SM_89: Self = gpu("sm_89", (8, 9), 99, 48, 24);
    /// H100, H200.
    pub const SM_90A: Self = {
        let target = gpu("sm_90a", (9, 0), 227, 64, 32);
        Self {
            gpu: Gpu {
                alone: true,
                copies_boxes: true,
                row_bytes: Some(32 * 1024),
                multiprocessors: 132,
                mma: &[Precision::Hopper, Precision::Cut],
                ..target.gpu
            },
            ..target
        }
    };
    /// B200, B300.
    pub const SM_100: Self = gpu("sm_100", (10, 0), 227, 64, 32);
    /// RTX 50, which PTX 8.7 is the first to know.
    pub const SM_120: Self = {
        let target = gpu("sm_120", (12, 0), 99, 48, 24);
        Self {
            gpu: Gpu {
                ptx: 87,
                ..target.gpu
            },
            ..target
        }
    };

    /// Every GPU, the oldest first.
    pub const GPUS: &[Self] = &[
        Self::SM_80,
        Self::SM_86,
        Self::SM_89,
        Self::SM_90A,
        Self::SM_100,
        Self::SM_120,
    ];

    /// Every machine.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::CPU].into_iter().chain(Self::GPUS.iter().copied())
    }

    /// The machine with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|target| target.name == name)
    }

    /// The GPU whose code suits a device of this compute capability best, if any runs on it.
    pub fn of_capability(capability: (u32, u32)) -> Option<Self> {
        let runs = |gpu: &Gpu| match gpu.alone {
            true => gpu.capability == capability,
            false => gpu.capability <= capability,
        };
        let gpus = Self::GPUS.iter().copied();
        gpus.filter(|target| runs(&target.gpu))
            .max_by_key(|target| target.gpu.capability)
    }

    /// Whether there is such a machine, or an interpreter that plays it: code is made for no other.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let held = self.holding(true);
        Self::all().any(|known| {
            [known, known.interpreted()]
                .map(|it| it.holding(true))
                .contains(&held)
        })
    }

    /// The same machine with an assembler that keeps registers which products still read, or with one that may not.
    #[must_use]
    pub const fn holding(self, holds_operands: bool) -> Self {
        let gpu = Gpu {
            holds_operands,
            ..self.gpu
        };
        Self { gpu, ..self }
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

/// Log2 of the lanes of a warp, which lane IR has on every GPU.
pub const LANE_BITS: u32 = 5;

/// Lanes of a warp.
pub const WARP_LANES: u32 = 1 << LANE_BITS;

/// The first out-of-bounds access or failed assertion of a checked launch: of those found the least program,
/// then site, then element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BoundsError {
    /// Linear index of the program in the grid, axis 0 fastest.
    pub program: u64,
    /// The access or assertion: the `site` of its `check_bounds`, numbered in program order.
    pub site: u64,
    /// Row-major index of the element in its tile.
    pub element: u64,
    /// The element offset that is out of bounds; 0 for an assertion.
    pub offset: i64,
}

#[cfg(test)]
mod tests {
    use super::Target;

    #[test]
    fn devices_run_the_latest_code_that_suits_them() {
        for ((major, minor), expected) in [
            ((7, 5), None),
            ((8, 0), Some("sm_80")),
            ((8, 7), Some("sm_86")),
            ((8, 9), Some("sm_89")),
            ((9, 0), Some("sm_90a")),
            ((9, 1), Some("sm_89")),
            ((10, 3), Some("sm_100")),
            ((12, 1), Some("sm_120")),
        ] {
            let found = Target::of_capability((major, minor)).map(|target| target.name);
            assert_eq!(found, expected, "{major}.{minor}");
        }
    }
}
