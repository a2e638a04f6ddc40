//! What tensor cores take of their operands: how many a lane holds (`layout::fragment`), and how they lie in
//! shared memory for groups of warps (`layout::group`).

use super::{DType, Func, Precision, op};

/// Bytes of the products of one element in one step of a group of warps.
const STEP: u32 = 32;

/// The products of one element in the steps of a warp, from the fewest on.
#[must_use]
pub const fn fragment_steps(operand: DType) -> &'static [usize] {
    match operand.bytes() {
        1 => &[32],
        2 => &[16],
        4 => &[8],
        _ => &[4, 8, 16],
    }
}

/// The products of the longest step of a warp in a product of so many; `None` where these fill no step.
#[must_use]
pub fn fragment_step(operand: DType, products: usize) -> Option<usize> {
    let steps = fragment_steps(operand).iter().rev();
    steps.copied().find(|&step| step <= products)
}

/// Elements that a lane holds of a fragment of `a`, `b` and the accumulator, which are `[16, k]`, `[k, 8]` and `[16, 8]` for
/// the products `k` of a step.
#[must_use]
pub const fn held(step: usize) -> [usize; 3] {
    [step / 2, step / 4, 4]
}

/// The type in which tensor cores add products of operands of this type, which they multiply.
#[must_use]
pub const fn tensor_sum(operand: DType) -> DType {
    if matches!(operand, DType::I8) {
        DType::I32
    } else if matches!(operand, DType::U8) {
        DType::U32
    } else if matches!(operand, DType::F64) {
        DType::F64
    } else {
        DType::F32
    }
}

/// The type in which a warp adds products of fragments of operands of this type; `None` where it has no
/// instruction for them.
#[must_use]
pub const fn fragment_sum(precision: Precision, operand: DType) -> Option<DType> {
    match (precision, operand) {
        (Precision::Ieee | Precision::Hopper, DType::I8 | DType::U8)
        | (Precision::Hopper, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
        | (Precision::Cut, DType::F32) => Some(tensor_sum(operand)),
        (Precision::Ieee | Precision::Hopper | Precision::Cut, _) => None,
    }
}

/// Whether warps have an instruction for the operands of a product, in fragments of their own.
#[must_use]
pub fn is_multiplied_in_fragments(func: &Func, op: &op::Dot) -> bool {
    let [operand, sum] = [op.a, op.accumulator].map(|value| func.ty(value).dtype());
    operand.is_some_and(|operand| {
        let shape = func.ty(op.a).shape;
        let products = shape.extent(shape.rank() - 1);
        let fills = fragment_step(operand, products).is_some();
        sum.is_some() && fragment_sum(op.precision, operand) == sum && fills
    })
}

/// The type in which groups of warps add products of operands of this type in shared memory; `None` where they have no
/// instruction for them.
#[must_use]
pub const fn group_sum(precision: Precision, operand: DType) -> Option<DType> {
    use DType::{BF16, F8E4M3, F8E5M2, F16, F32, I8, U8};
    match (precision, operand) {
        (Precision::Hopper, F16 | BF16 | F8E4M3 | F8E5M2 | I8 | U8) | (Precision::Cut, F32) => {
            Some(tensor_sum(operand))
        }
        (Precision::Ieee | Precision::Hopper | Precision::Cut, _) => None,
    }
}

/// Whether tensor cores multiply for a product.
#[must_use]
pub fn is_of_tensor_cores(func: &Func, op: &op::Dot) -> bool {
    let operand = func.ty(op.a).dtype();
    let grouped = operand.is_some_and(|it| group_sum(op.precision, it).is_some());
    grouped || is_multiplied_in_fragments(func, op)
}

/// Whether nobody but groups of warps multiplies operands of this type by tensor cores.
#[must_use]
pub fn is_multiplied_by_groups_alone(operand: DType) -> bool {
    let [ieee, hopper] =
        [Precision::Ieee, Precision::Hopper].map(|it| fragment_sum(it, operand).is_none());
    ieee && hopper
}

/// What the address of an operand is a multiple of, in bytes: pieces are mixed as its bits say.
pub const PATTERN: i64 = 1024;

/// Bytes along the contiguous axis of a chunk.
const CHUNK: u32 = 128;

/// Bytes of the pieces that bulk copies move, and that are mixed in a chunk.
pub const PIECE: u32 = 16;

/// Log2 of the rows among which bulk copies exchange pieces of 16 bytes. A box, and each part of one, has no fewer.
pub const PIECE_ROW_BITS: u32 = 3;

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

/// Whether one instruction of a group of warps may have so many columns, for operands of this type.
#[must_use]
pub const fn may_have_columns(operand: DType, columns: i64) -> bool {
    let of_integers = columns <= 32 || columns % 16 == 0;
    0 < columns && columns <= 256 && columns % 8 == 0 && (operand.is_float() || of_integers)
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
