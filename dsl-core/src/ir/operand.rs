//! What tensor cores take of their operands: how many a lane holds (`layout::fragment`), and how those of 8 and 16 bits lie in
//! shared memory for groups of warps (`layout::group`).

use super::{DType, Func, Precision, op};

/// Bytes of the products of one element in one step of a warp.
const STEP: u32 = 32;

/// Elements that a lane holds of a fragment of `a`, `b` and the accumulator, for operands of 8 to 32 bits.
#[must_use]
pub const fn held(operand: DType) -> [u32; 3] {
    [16 / operand.bytes(), 8 / operand.bytes(), 4]
}

/// The type in which a warp adds products of fragments of operands of this type; `None` where it has no
/// instruction for them.
#[must_use]
pub const fn fragment_sum(precision: Precision, operand: DType) -> Option<DType> {
    match (precision, operand) {
        (Precision::Ieee, DType::I8) => Some(DType::I32),
        (Precision::Ieee, DType::U8) => Some(DType::U32),
        (Precision::Hopper, DType::F16 | DType::BF16 | DType::F32) => Some(DType::F32),
        (Precision::Ieee | Precision::Hopper, _) => None,
    }
}

/// Whether warps have an instruction for the operands of a product, in fragments of their own.
#[must_use]
pub fn is_multiplied_in_fragments(func: &Func, op: &op::Dot) -> bool {
    let [operand, sum] = [op.a, op.accumulator].map(|value| func.ty(value).dtype());
    operand.is_some_and(|operand| {
        let step = (STEP / operand.bytes()) as usize;
        let shape = func.ty(op.a).shape;
        let products = shape.extent(shape.rank() - 1);
        sum.is_some() && fragment_sum(op.precision, operand) == sum && products >= step
    })
}

/// Whether groups of warps multiply operands of this type in shared memory.
#[must_use]
pub const fn is_group_operand(precision: Precision, operand: DType) -> bool {
    matches!(
        (precision, operand),
        (
            Precision::Hopper,
            DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2
        )
    )
}

/// What the address of an operand is a multiple of, in bytes: pieces are mixed as its bits say.
pub const PATTERN: i64 = 1024;

/// Bytes along the contiguous axis of a chunk.
const CHUNK: u32 = 128;

/// Bytes of the pieces that are mixed in a chunk.
const PIECE: u32 = 16;

/// Log2 of the elements of this type along the contiguous axis of a chunk.
#[must_use]
pub const fn chunk_bits(operand: DType) -> u32 {
    (CHUNK / operand.bytes()).ilog2()
}

/// Log2 of the elements of this type in a piece.
#[must_use]
pub const fn piece_bits(operand: DType) -> u32 {
    (PIECE / operand.bytes()).ilog2()
}

/// Products of one instruction of a group of warps.
#[must_use]
pub const fn group_step(operand: DType) -> usize {
    (STEP / operand.bytes()) as usize
}

/// Whether an operand of this type in shared memory may be contiguous along the rows of `a` or the columns of `b`.
#[must_use]
pub const fn may_be_transposed(operand: DType) -> bool {
    operand.bytes() == 2
}

/// How an operand lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Side {
    /// Whether the rows of `a`, or the columns of `b`, are contiguous, and not the products.
    pub transposed: bool,
    /// Elements from one chunk to the next.
    pub chunk: usize,
    /// The type of its elements.
    pub dtype: DType,
}

impl Side {
    /// The place of the row of `a`, or the column of `b`, that takes part in product `k`.
    #[must_use]
    pub fn place(&self, major: usize, k: usize) -> usize {
        let (inner, outer) = match self.transposed {
            true => (major, k),
            false => (k, major),
        };
        let own = 1 << chunk_bits(self.dtype);
        let mixed = (inner % own) ^ ((outer & 7) << piece_bits(self.dtype));
        inner / own * self.chunk + outer * own + mixed
    }
}
