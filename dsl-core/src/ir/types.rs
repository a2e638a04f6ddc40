//! Shapes and value types.

use std::fmt;

use super::DType;

/// The most dimensions of a tile.
pub const MAX_RANK: usize = 6;

/// The most levels of an accumulator: more than any loop has trips.
pub const MAX_LEVELS: u8 = 62;

/// The most elements of a tile.
pub const MAX_ELEMENTS: usize = 1 << 24;

/// Extents of a tile, outermost first. Rank 0 is a scalar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    rank: u8,
    extents: [u32; MAX_RANK],
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Self = Self {
        rank: 0,
        extents: [0; MAX_RANK],
    };

    /// A shape, or what is wrong with it: the rank is at most [`MAX_RANK`], each extent a power
    /// of two, and there are at most [`MAX_ELEMENTS`] elements.
    pub fn new(extents: &[usize]) -> Result<Self, String> {
        if extents.len() > MAX_RANK {
            return Err(format!(
                "rank {} is over the limit of {MAX_RANK}",
                extents.len()
            ));
        }
        let mut shape = Self {
            rank: extents.len() as u8,
            extents: [0; MAX_RANK],
        };
        let mut elements = 1usize;
        for (slot, &extent) in shape.extents.iter_mut().zip(extents) {
            if !extent.is_power_of_two() {
                return Err(format!("extent `{extent}` is not a power of two"));
            }
            elements = elements.saturating_mul(extent);
            if elements > MAX_ELEMENTS {
                return Err(format!(
                    "shape {extents:?} has over {MAX_ELEMENTS} elements"
                ));
            }
            *slot = extent as u32;
        }
        Ok(shape)
    }

    /// The number of dimensions.
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The extents.
    pub fn extents(&self) -> &[u32] {
        &self.extents[..self.rank()]
    }

    /// The extents as `usize`.
    pub fn dims(&self) -> Vec<usize> {
        self.extents()
            .iter()
            .map(|&extent| extent as usize)
            .collect()
    }

    /// The extent of `axis`, which must be below the rank.
    pub fn extent(&self, axis: usize) -> usize {
        self.extents()[axis] as usize
    }

    /// The number of elements: 1 for a scalar.
    pub fn elements(&self) -> usize {
        self.extents()
            .iter()
            .map(|&extent| extent as usize)
            .product()
    }

    /// Whether this is the shape of a scalar.
    pub const fn is_scalar(&self) -> bool {
        self.rank == 0
    }

    /// The shape without `axis`.
    #[must_use]
    pub fn without(&self, axis: usize) -> Self {
        let mut dims = self.dims();
        dims.remove(axis);
        Self::new(&dims).expect("broken invariant: dropping an axis keeps a shape valid")
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for axis in (0..self.rank().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * self.extent(axis + 1);
        }
        strides
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.extents()).finish()
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a pointer points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Space {
    /// An argument of the kernel.
    Global,
    /// Shared memory of a thread block (lane stage on the GPU).
    Shared,
    /// A worker's private buffer (lane stage on the CPU).
    Scratch,
}

/// What one element of a value is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Element {
    /// A number.
    Number(DType),
    /// The start of an array of numbers. Accesses name it with an element offset, so a pointer
    /// never is part of a tile and never moves.
    Pointer(DType, Space),
    /// What the tiles of a loop combine to so far, with this many levels: what powers of two of tiles combine
    /// to, which wait for more. A pass replaces it by the numbers that it is made of.
    Accumulator(DType, u8),
    /// An array of this rank in memory, with its extents and strides. A pass replaces accesses to its
    /// tiles by offsets and masks.
    Tensor(DType, u8),
    /// Shared memory for so many tiles of this type, each in a slot.
    Buffer(DType, u8),
    /// Shared memory for a row of an array of this type.
    Row(DType),
    /// A number that products of groups of warps may still add to.
    Pending(DType),
    /// The result of an op that was reported as wrong; silences errors that follow from it.
    Poison,
}

impl Element {
    /// A sum of this type that products may still add to, if this is a number.
    pub const fn pending(self) -> Option<Self> {
        match self {
            Self::Number(dtype) => Some(Self::Pending(dtype)),
            Self::Pointer(..)
            | Self::Accumulator(..)
            | Self::Tensor(..)
            | Self::Buffer(..)
            | Self::Row(_)
            | Self::Pending(_)
            | Self::Poison => None,
        }
    }
}

/// The type of a value: a scalar, a tile (block stage) or a short vector (lane stage, rank 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type {
    /// What one element is.
    pub element: Element,
    /// The extents.
    pub shape: Shape,
}

impl Type {
    /// The type of a wrong value.
    pub const POISON: Self = Self {
        element: Element::Poison,
        shape: Shape::SCALAR,
    };
    /// The type of an index.
    pub const INDEX: Self = Self::scalar(DType::I64);
    /// The type of a scalar condition.
    pub const BOOL: Self = Self::scalar(DType::Bool);

    /// A scalar.
    pub const fn scalar(dtype: DType) -> Self {
        Self {
            element: Element::Number(dtype),
            shape: Shape::SCALAR,
        }
    }

    /// A tile or vector of this shape.
    pub const fn tile(dtype: DType, shape: Shape) -> Self {
        Self {
            element: Element::Number(dtype),
            shape,
        }
    }

    /// A vector of `lanes` elements, or a scalar when `lanes` is 1.
    pub fn vector(dtype: DType, lanes: usize) -> Self {
        if lanes == 1 {
            return Self::scalar(dtype);
        }
        let shape =
            Shape::new(&[lanes]).expect("broken invariant: vector lengths are powers of two");
        Self::tile(dtype, shape)
    }

    /// A pointer to `dtype`.
    pub const fn pointer(dtype: DType, space: Space) -> Self {
        Self {
            element: Element::Pointer(dtype, space),
            shape: Shape::SCALAR,
        }
    }

    /// The data type of a value of numbers.
    pub const fn dtype(&self) -> Option<DType> {
        match self.element {
            Element::Number(dtype) => Some(dtype),
            Element::Pointer(..)
            | Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type and space behind a pointer.
    pub const fn pointee(&self) -> Option<(DType, Space)> {
        match self.element {
            Element::Pointer(dtype, space) => Some((dtype, space)),
            Element::Number(_)
            | Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type and the number of levels of an accumulator.
    pub const fn accumulator(&self) -> Option<(DType, u8)> {
        match self.element {
            Element::Accumulator(dtype, levels) => Some((dtype, levels)),
            Element::Number(_)
            | Element::Pointer(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type and the rank of a tensor.
    pub const fn tensor(&self) -> Option<(DType, u8)> {
        match self.element {
            Element::Tensor(dtype, rank) => Some((dtype, rank)),
            Element::Number(_)
            | Element::Pointer(..)
            | Element::Accumulator(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type of the tiles in a buffer, and the number of its slots.
    pub const fn buffer(&self) -> Option<(DType, u8)> {
        match self.element {
            Element::Buffer(dtype, slots) => Some((dtype, slots)),
            Element::Number(_)
            | Element::Pointer(..)
            | Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type of a row in shared memory.
    pub const fn row(&self) -> Option<DType> {
        match self.element {
            Element::Row(dtype) => Some(dtype),
            Element::Number(_)
            | Element::Pointer(..)
            | Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Pending(_)
            | Element::Poison => None,
        }
    }

    /// The data type of sums that products may still add to.
    pub const fn pending(&self) -> Option<DType> {
        match self.element {
            Element::Pending(dtype) => Some(dtype),
            Element::Number(_)
            | Element::Pointer(..)
            | Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Poison => None,
        }
    }

    /// Sums of this shape that products may still add to.
    #[must_use]
    pub const fn with_pending(&self, dtype: DType) -> Self {
        Self {
            element: Element::Pending(dtype),
            shape: self.shape,
        }
    }

    /// Whether this marks a value already reported as wrong.
    pub const fn is_poison(&self) -> bool {
        matches!(self.element, Element::Poison)
    }

    /// Whether this is a number of rank 0.
    pub const fn is_scalar(&self) -> bool {
        self.shape.is_scalar()
    }

    /// The same shape with elements of `dtype`.
    #[must_use]
    pub const fn with_dtype(&self, dtype: DType) -> Self {
        Self {
            element: Element::Number(dtype),
            shape: self.shape,
        }
    }

    /// The same elements in another shape.
    #[must_use]
    pub const fn with_shape(&self, shape: Shape) -> Self {
        Self {
            element: self.element,
            shape,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(dtype) => write!(f, "{dtype}"),
            Self::Pointer(dtype, Space::Global) => write!(f, "ptr<{dtype}>"),
            Self::Pointer(dtype, Space::Shared) => write!(f, "ptr<{dtype}, shared>"),
            Self::Pointer(dtype, Space::Scratch) => write!(f, "ptr<{dtype}, scratch>"),
            Self::Accumulator(dtype, levels) => write!(f, "accumulator<{dtype}, {levels}>"),
            Self::Tensor(dtype, rank) => write!(f, "tensor<{dtype}, {rank}>"),
            Self::Buffer(dtype, _) | Self::Row(dtype) | Self::Pending(dtype) => {
                write!(f, "{dtype}")
            }
            Self::Poison => f.write_str("poison"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, slots)) = self.buffer() {
            write!(f, "buffer<{slots}x")?;
        } else if self.row().is_some() {
            f.write_str("row<")?;
        } else if self.pending().is_some() {
            f.write_str("pending<")?;
        } else if self.shape.is_scalar() {
            return write!(f, "{}", self.element);
        } else {
            f.write_str("tile<")?;
        }
        for extent in self.shape.extents() {
            write!(f, "{extent}x")?;
        }
        write!(f, "{}>", self.element)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
