//! Data types, shapes and value types.

use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal $class:ident;)*) => {
        /// The type of one number.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum DType { $($(#[$doc])* $variant),* }
        impl DType {
            /// Every data type.
            pub const ALL: &[Self] = &[$(Self::$variant),*];
            /// The name in the text form.
            pub const fn name(self) -> &'static str { match self { $(Self::$variant => $name),* } }
            /// The number of value bits: 1 for `bool`.
            pub const fn bits(self) -> u32 { match self { $(Self::$variant => $bits),* } }
            /// The class.
            pub const fn class(self) -> Class { match self { $(Self::$variant => Class::$class),* } }
        }
    };
}

dtypes! {
    /// False or true; one byte in memory, and any nonzero byte reads as true.
    Bool "bool" 1 Bool;
    /// 8-bit two's complement.
    I8 "i8" 8 Signed;
    /// 16-bit two's complement.
    I16 "i16" 16 Signed;
    /// 32-bit two's complement.
    I32 "i32" 32 Signed;
    /// 64-bit two's complement; the type of every index.
    I64 "i64" 64 Signed;
    /// 8-bit unsigned.
    U8 "u8" 8 Unsigned;
    /// 16-bit unsigned.
    U16 "u16" 16 Unsigned;
    /// 32-bit unsigned.
    U32 "u32" 32 Unsigned;
    /// 64-bit unsigned.
    U64 "u64" 64 Unsigned;
    /// IEEE binary16.
    F16 "f16" 16 Float;
    /// bfloat16: the upper half of an `f32`.
    BF16 "bf16" 16 Float;
    /// IEEE binary32.
    F32 "f32" 32 Float;
    /// IEEE binary64.
    F64 "f64" 64 Float;
}

/// What kind of number a [`DType`] is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// `bool`.
    Bool,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floating point.
    Float,
}

impl DType {
    /// The data type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// Bytes in memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), Class::Float)
    }

    /// Whether this is a signed or unsigned integer type (not `bool`).
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), Class::Signed | Class::Unsigned)
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self.class(), Class::Signed)
    }

    /// All value bits set.
    pub const fn mask(self) -> u64 {
        if self.bits() == 64 {
            u64::MAX
        } else {
            (1 << self.bits()) - 1
        }
    }

    /// The bits of the positive quiet NaN without payload (IEEE 754-2019, 6.2.1); 0 for types that
    /// have no NaN.
    pub const fn canonical_nan(self) -> u64 {
        match self {
            Self::F16 => 0x7e00,
            Self::BF16 => 0x7fc0,
            Self::F32 => 0x7fc0_0000,
            Self::F64 => 0x7ff8_0000_0000_0000,
            Self::Bool
            | Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64 => 0,
        }
    }

    /// The unsigned integers of the same width.
    pub const fn unsigned(self) -> Self {
        match self.bits() {
            1 => Self::Bool,
            8 => Self::U8,
            16 => Self::U16,
            32 => Self::U32,
            _ => Self::U64,
        }
    }

    /// The type in which arithmetic of this type is done: `f32` for `f16` and `bf16`, else itself.
    pub const fn compute(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::F32,
            Self::Bool
            | Self::I8
            | Self::I16
            | Self::I32
            | Self::I64
            | Self::U8
            | Self::U16
            | Self::U32
            | Self::U64
            | Self::F32
            | Self::F64 => self,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The most dimensions of a tile.
pub const MAX_RANK: usize = 6;

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
    /// The result of an op that was reported as wrong; silences errors that follow from it.
    Poison,
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
            Element::Pointer(..) | Element::Poison => None,
        }
    }

    /// The data type and space behind a pointer.
    pub const fn pointee(&self) -> Option<(DType, Space)> {
        match self.element {
            Element::Pointer(dtype, space) => Some((dtype, space)),
            Element::Number(_) | Element::Poison => None,
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
            Self::Poison => f.write_str("poison"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.shape.is_scalar() {
            return write!(f, "{}", self.element);
        }
        f.write_str("tile<")?;
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
