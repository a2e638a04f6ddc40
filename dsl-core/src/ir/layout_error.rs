//! What is wrong with a layout.

/// Why a layout cannot be built or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A tile has more elements than a flat index can name.
    #[error("a tile of 2^{found} elements is too large, expected at most 2^{limit}")]
    TooManyBits {
        /// Log2 of the element count.
        found: u32,
        /// The largest log2 that is allowed.
        limit: u32,
    },
    /// A column names an element outside the tile.
    #[error("column `{column:#x}` lies outside a tile of 2^{bits} elements")]
    ColumnOutOfRange {
        /// The column.
        column: u64,
        /// Log2 of the element count.
        bits: u32,
    },
    /// Some elements of the tile have no place.
    #[error("the layout has rank {found}, expected {expected}: some elements have no place")]
    NotSurjective {
        /// The rank of the columns.
        found: u32,
        /// Log2 of the element count.
        expected: u32,
    },
    /// Two things that must agree in the number of dimensions do not.
    #[error("found {found} dimensions, expected {expected}")]
    RankMismatch {
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// Two tiles that must agree in shape do not.
    #[error("found a tile of shape {found:?}, expected {expected:?}")]
    ShapeMismatch {
        /// The extents found.
        found: Vec<u64>,
        /// The extents expected.
        expected: Vec<u64>,
    },
    /// Two layouts that must live on the same lanes and warps do not.
    #[error("found {found} {place} bits, expected {expected}")]
    PlaceMismatch {
        /// `lane` or `warp`.
        place: &'static str,
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// An axis is outside the shape.
    #[error("axis {found} is out of range for {rank} dimensions")]
    AxisOutOfRange {
        /// The axis.
        found: usize,
        /// The number of dimensions.
        rank: usize,
    },
    /// A list of dimensions is not a permutation.
    #[error("`{found:?}` is not a permutation of the {rank} dimensions")]
    NotAPermutation {
        /// The list.
        found: Vec<usize>,
        /// The number of dimensions.
        rank: usize,
    },
    /// A layout does not start with the layout that it is divided by.
    #[error("the layout does not start with the divisor")]
    NotDivisible,
    /// The scratch memory does not hold one element.
    #[error("scratch memory of {found} bytes does not hold one element of {expected} bytes")]
    ScratchTooSmall {
        /// The scratch memory in bytes.
        found: u32,
        /// The size of an element in bytes.
        expected: u32,
    },
    /// The size of an element is not one that memory accesses know.
    #[error("an element of {found} bytes cannot be moved, expected 1, 2, 4 or 8 bytes")]
    ElementSize {
        /// The size of an element in bytes.
        found: u32,
    },
}
