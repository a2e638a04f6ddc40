//! Attributes of ops: what the text form writes as `name=value`.

use super::{BinaryOp, Class, DType, Shape, round};

macro_rules! keyword_attribute {
    ($(#[$doc:meta])* $Name:ident { $($(#[$variant_doc:meta])* $Variant:ident $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $Name { $($(#[$variant_doc])* $Variant),* }
        impl $Name {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$Variant),*];
            /// The word in the text form.
            pub const fn word(self) -> &'static str { match self { $(Self::$Variant => $word),* } }
            /// The value with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word() == word)
            }
        }
    };
}

keyword_attribute! {
    /// In which order a reduction or a scan combines.
    Order {
        /// The balanced binary tree over the index, adjacent pairs first.
        Tree "tree",
        /// Any order: the schedule decides.
        Any "any",
    }
}

keyword_attribute! {
    /// Which way along an axis a scan goes.
    Direction {
        /// From index 0 up.
        Forward "forward",
        /// From the last index down.
        Reverse "reverse",
    }
}

keyword_attribute! {
    /// How `print` shows numbers, but for the usual way.
    NumberFormat {
        /// Their bits, by digits to the base 16.
        Hexadecimal "hexadecimal",
    }
}

keyword_attribute! {
    /// Which elements `sort` puts first.
    SortOrder {
        /// The least.
        Ascending "ascending",
        /// The greatest.
        Descending "descending",
    }
}

keyword_attribute! {
    /// How `dot` multiplies and adds.
    Precision {
        /// A fused multiply-add chain in ascending k, in the accumulator's type.
        Ieee "ieee",
        /// The function of Hopper's tensor cores: of floats, added in `f32`, a chain of steps in ascending k, each a truncated
        /// fused dot product and addition of what 32 bytes of an operand hold; of `f64` a fused multiply-add chain in ascending
        /// k; of integers of 8 bits a sum that wraps.
        Hopper "hopper",
        /// That of `f32`, but where an operand is NaN, sums are NaN or infinite. Passes take it where they look for NaN
        /// themselves; `dot_with` does not.
        Cut "hopper_cut",
    }
}

impl Precision {
    /// What `dot` takes where nothing else is asked for: the tensor cores for floats of 16 bits that are added in `f32`.
    pub const fn usual(operand: DType, sum: DType) -> Self {
        match (operand, sum) {
            (DType::F16 | DType::BF16, DType::F32) => Self::Hopper,
            _ => Self::Ieee,
        }
    }

    /// Products of one element that are added in one step, which no tile divides, of operands of this type.
    pub const fn step(self, operand: DType) -> usize {
        match self.is_chain(operand) {
            true => 1,
            false => 256 / operand.bits() as usize,
        }
    }

    /// Whether products of operands of this type are added one after another, each rounded by itself.
    pub const fn is_chain(self, operand: DType) -> bool {
        matches!(
            (self, operand),
            (Self::Ieee, _) | (Self::Hopper, DType::F64)
        )
    }

    /// Whether a product of operands of this type is defined.
    pub const fn admits(self, operand: DType) -> bool {
        match self {
            Self::Ieee => !matches!(operand.class(), Class::Bool),
            Self::Hopper => operand.is_float() || matches!(operand, DType::I8 | DType::U8),
            Self::Cut => matches!(operand, DType::F32),
        }
    }
}

keyword_attribute! {
    /// How an atomic access combines what memory holds with a number.
    AtomicOp {
        /// The sum. An integer wraps; a float rounds once to nearest even.
        Add "add",
        /// The smaller number, -0 < +0. A NaN changes nothing, and gives way to a number in memory.
        Min "min",
        /// The larger number, -0 < +0. A NaN changes nothing, and gives way to a number in memory.
        Max "max",
        /// Bitwise and.
        And "and",
        /// Bitwise or.
        Or "or",
        /// Bitwise exclusive or.
        Xor "xor",
        /// The number in place of what memory holds: not an op of several, whose order would decide.
        Exchange "exchange",
        /// What memory holds, which stays; the number does not count. Not an op of several either.
        Load "load",
    }
}

impl AtomicOp {
    /// The elementwise op that it applies to both; `None` for an exchange and a load.
    pub const fn binary(self, dtype: DType) -> Option<BinaryOp> {
        match self {
            Self::Add => Some(BinaryOp::Add),
            Self::Min if dtype.is_float() => Some(BinaryOp::Minnum),
            Self::Min => Some(BinaryOp::Minimum),
            Self::Max if dtype.is_float() => Some(BinaryOp::Maxnum),
            Self::Max => Some(BinaryOp::Maximum),
            Self::And => Some(BinaryOp::And),
            Self::Or => Some(BinaryOp::Or),
            Self::Xor => Some(BinaryOp::Xor),
            Self::Exchange | Self::Load => None,
        }
    }

    /// Whether it makes a number of both, so that several of them commute but for rounding.
    pub const fn combines(self) -> bool {
        match self {
            Self::Add | Self::Min | Self::Max | Self::And | Self::Or | Self::Xor => true,
            Self::Exchange | Self::Load => false,
        }
    }

    /// Whether lanes of a warp vote by it, where what they combine are flags.
    pub const fn votes(self) -> bool {
        matches!(self, Self::And | Self::Or)
    }

    /// Whether several of it leave what their order decides: sums of floats round.
    pub fn rounds(self, dtype: DType) -> bool {
        self == Self::Add && dtype.is_float()
    }

    /// Whether memory of this type can be combined.
    pub const fn admits(self, dtype: DType) -> bool {
        match (dtype.class(), self) {
            (Class::Bool, _) => false,
            (_, Self::Exchange | Self::Load) => dtype.bits() >= 16,
            (Class::Signed | Class::Unsigned, _) => dtype.bits() >= 32,
            (Class::Float, Self::Add) => dtype.bits() >= 16,
            (Class::Float, Self::Min | Self::Max) => dtype.bits() >= 32,
            (Class::Float, Self::And | Self::Or | Self::Xor) => false,
        }
    }
}

keyword_attribute! {
    /// What an atomic access orders; one without it orders no other access.
    MemoryOrder {
        /// Accesses after it see what was done before a release whose number, or one that came of it, it found.
        Acquire "acquire",
        /// What the program did before it is seen by those who acquire what it leaves.
        Release "release",
        /// Both.
        AcquireRelease "acquire_release",
    }
}

impl MemoryOrder {
    /// Whether later accesses stay behind it.
    pub const fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    /// Whether earlier accesses stay before it.
    pub const fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }
}

keyword_attribute! {
    /// Between whom an atomic access is one; without it, the programs of a device.
    Scope {
        /// The lanes of one program: no other one may touch the address.
        Program "program",
        /// All devices and the host.
        System "system",
    }
}

keyword_attribute! {
    /// What a GPU's caches may know of an access; others do without. It never changes bits. An access has one: PTX has no
    /// form with both a cache operator and a priority of eviction (PTX ISA, `ld` and `st`).
    Cache {
        /// In the second level alone (`.cg`).
        SecondLevel "second_level",
        /// Once and no more: first to go (`.cs`).
        Streaming "streaming",
        /// A load that takes nothing that a cache still holds (`.cv`).
        Anew "anew",
        /// A store that goes through all levels (`.wt`).
        WriteThrough "write_through",
        /// The first to go where the first level needs room (`L1::evict_first`).
        EvictFirst "evict_first",
        /// The last to go where the first level needs room (`L1::evict_last`).
        EvictLast "evict_last",
        /// Not kept in the first level (`L1::no_allocate`).
        NoAllocate "no_allocate",
        /// Made as it stands, once for each element: neither with others, ahead of its time nor left out
        /// (`.volatile`).
        Volatile "volatile",
    }
}

impl Cache {
    /// Whether a load may have it.
    pub const fn of_loads(self) -> bool {
        !matches!(self, Self::WriteThrough)
    }

    /// Whether a store may have it.
    pub const fn of_stores(self) -> bool {
        !matches!(self, Self::Anew)
    }
}

keyword_attribute! {
    /// The stage that a function belongs to.
    Stage {
        /// Tiles: one instruction is the work of a program.
        Block "block",
        /// Tiles of which it is known which lane of which warp holds which element.
        Schedule "schedule",
        /// Scalars and short vectors: what one worker does.
        Lane "lane",
    }
}

/// An axis of a tile or of the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Axis(pub u8);

impl Axis {
    /// The axis as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A number with its type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Literal {
    /// The type.
    pub dtype: DType,
    /// The value bits, zero above the width.
    pub bits: u64,
}

impl Literal {
    /// A literal from its bits.
    pub const fn from_bits(dtype: DType, bits: u64) -> Self {
        Self {
            dtype,
            bits: bits & dtype.mask(),
        }
    }

    /// The number nearest to `value` (floats round to nearest even, integers truncate and
    /// saturate, `bool` is nonzero).
    pub fn from_f64(dtype: DType, value: f64) -> Self {
        let bits = match (dtype, dtype.class()) {
            (_, Class::Bool) => u64::from(value != 0.0),
            (_, Class::Signed) => {
                let greatest = (dtype.mask() >> 1).cast_signed();
                (value as i64)
                    .clamp(-greatest - 1, greatest)
                    .cast_unsigned()
            }
            (_, Class::Unsigned) => (value as u64).min(dtype.mask()),
            (DType::F64, _) => value.to_bits(),
            (DType::F32, _) => u64::from((value as f32).to_bits()),
            (_, Class::Float) => dtype
                .format()
                .map_or(0, |format| round::round(format, value)),
        };
        Self::from_bits(dtype, bits)
    }

    /// An integer or `bool` from an integer, if it fits.
    pub fn from_integer(dtype: DType, value: i128) -> Option<Self> {
        let bits = dtype.bits();
        let (least, greatest) = match dtype.class() {
            Class::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
            Class::Unsigned | Class::Bool => (0, (1i128 << bits) - 1),
            Class::Float => return None,
        };
        (least..=greatest)
            .contains(&value)
            .then(|| Self::from_bits(dtype, value as u64))
    }

    /// The value of an integer or `bool`, sign-extended; `None` for floats.
    pub const fn integer(self) -> Option<i128> {
        match self.dtype.class() {
            Class::Signed => {
                let shift = 64 - self.dtype.bits();
                Some((((self.bits << shift) as i64) >> shift) as i128)
            }
            Class::Unsigned | Class::Bool => Some(self.bits as i128),
            Class::Float => None,
        }
    }

    /// The value of a float, exactly; `None` for integers.
    pub fn float(self) -> Option<f64> {
        if self.dtype == DType::F64 {
            return Some(f64::from_bits(self.bits));
        }
        if self.dtype == DType::F32 {
            return Some(f64::from(f32::from_bits(self.bits as u32)));
        }
        let format = self.dtype.format()?;
        Some(round::exact(format, self.bits))
    }

    /// Whether this is the zero whose bits are all zero.
    pub const fn is_positive_zero(self) -> bool {
        self.bits == 0
    }
}

/// A list of small indices: a permutation of axes, or the lanes that a shuffle picks.
pub type Indices = Vec<u32>;

/// For each role the number of its warps and what they do.
pub type RoleRegions = Vec<(u32, super::Region)>;

/// For each bit of an index the bit of another that it is, if any.
pub type Bits = Vec<Option<u8>>;

/// Extents of a launch grid: how many programs along each axis.
pub type Grid = [u32; 3];

/// The coordinates of a program, axis 0 fastest.
pub fn program_coordinates(grid: Grid, program: u64) -> [u64; 3] {
    let [x, y, _] = grid.map(u64::from);
    [program % x, program / x % y, program / x / y]
}

/// Splits a row-major flat index into coordinates.
pub fn unflatten(shape: &Shape, mut flat: usize) -> Vec<usize> {
    let mut coordinates = vec![0; shape.rank()];
    for axis in (0..shape.rank()).rev() {
        coordinates[axis] = flat % shape.extent(axis);
        flat /= shape.extent(axis);
    }
    coordinates
}
