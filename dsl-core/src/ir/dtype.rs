//! The data types: a row says all that the rest of the house asks of one.

use std::fmt;

/// Each row is name, bits, class, form in NPY files; of a float also its format.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $variant:ident $name:literal $bits:literal $class:ident $npy:literal
        $({ $($field:ident: $value:expr),* $(,)? })?;)*) => {
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
            /// Kind and bytes in NPY files. Of several types with one form a file is read as the first.
            pub const fn npy(self) -> &'static str { match self { $(Self::$variant => $npy),* } }
            /// What the bits of a float mean; of other types nothing.
            pub const fn format(self) -> Option<&'static FloatFormat> {
                match self { $(Self::$variant => dtypes!(@format $($($field: $value),*)?)),* }
            }
        }
    };
    (@format) => { None };
    (@format $($field:ident: $value:expr),*) => { Some(&FloatFormat { $($field: $value),* }) };
}

dtypes! {
    /// False or true; one byte in memory, and any nonzero byte reads as true.
    Bool "bool" 1 Bool "b1";
    /// 8-bit two's complement.
    I8 "i8" 8 Signed "i1";
    /// 16-bit two's complement.
    I16 "i16" 16 Signed "i2";
    /// 32-bit two's complement.
    I32 "i32" 32 Signed "i4";
    /// 64-bit two's complement; the type of every index.
    I64 "i64" 64 Signed "i8";
    /// 8-bit unsigned.
    U8 "u8" 8 Unsigned "u1";
    /// 16-bit unsigned.
    U16 "u16" 16 Unsigned "u2";
    /// 32-bit unsigned.
    U32 "u32" 32 Unsigned "u4";
    /// 64-bit unsigned.
    U64 "u64" 64 Unsigned "u8";
    /// E4M3 of the OCP 8-bit floating point specification: no infinity, one NaN of each sign; what is
    /// above 448 becomes 448, infinities too.
    F8E4M3 "f8e4m3" 8 Float "u1" {
        exponent: 4, mantissa: 3, has_infinity: false, compute: Self::F32,
        tolerance: (6.25e-2, 1.25e-1), pytorch: (1e-5, 1.25e-1),
    };
    /// E5M2 of the OCP 8-bit floating point specification: the upper half of an `f16`, with infinities, up to
    /// 57344; what rounds to more becomes an infinity.
    F8E5M2 "f8e5m2" 8 Float "u1" {
        exponent: 5, mantissa: 2, has_infinity: true, compute: Self::F32,
        tolerance: (1.25e-1, 1.25e-1), pytorch: (1e-5, 1.25e-1),
    };
    /// IEEE binary16.
    F16 "f16" 16 Float "f2" {
        exponent: 5, mantissa: 10, has_infinity: true, compute: Self::F32,
        tolerance: (1e-3, 1e-3), pytorch: (1e-5, 1e-3),
    };
    /// bfloat16: the upper half of an `f32`.
    BF16 "bf16" 16 Float "u2" {
        exponent: 8, mantissa: 7, has_infinity: true, compute: Self::F32,
        tolerance: (8e-3, 8e-3), pytorch: (1e-5, 1.6e-2),
    };
    /// IEEE binary32.
    F32 "f32" 32 Float "f4" {
        exponent: 8, mantissa: 23, has_infinity: true, compute: Self::F32,
        tolerance: (1e-5, 1e-5), pytorch: (1e-5, 1.3e-6),
    };
    /// IEEE binary64.
    F64 "f64" 64 Float "f8" {
        exponent: 11, mantissa: 52, has_infinity: true, compute: Self::F64,
        tolerance: (1e-7, 1e-7), pytorch: (1e-7, 1e-7),
    };
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

/// A binary float: a sign, an exponent with the usual bias, an explicit fraction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FloatFormat {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub mantissa: u32,
    /// Whether the greatest exponent is that of infinities and NaN. Else it is one of numbers, all bits
    /// but the sign are set in NaN alone, and what is too large becomes the greatest number.
    pub has_infinity: bool,
    /// The type in which arithmetic is done.
    pub compute: DType,
    /// The tolerance of this project, absolute and relative.
    pub tolerance: (f64, f64),
    /// The tolerance of PyTorch's `assert_close`, absolute and relative.
    pub pytorch: (f64, f64),
}

impl FloatFormat {
    /// By how much the exponent's field is above the exponent.
    pub const fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The exponent of the least normal number.
    pub const fn least_exponent(&self) -> i32 {
        1 - self.bias()
    }

    /// The bits of the greatest finite number.
    pub const fn greatest(&self) -> u64 {
        match self.has_infinity {
            true => (((1 << self.exponent) - 1) << self.mantissa) - 1,
            false => (1 << (self.exponent + self.mantissa)) - 2,
        }
    }

    /// The bits of what is too large: infinity, or the greatest number. Those of NaN are above.
    pub const fn overflow(&self) -> u64 {
        self.greatest() + self.has_infinity as u64
    }

    /// The bits of the positive quiet NaN without payload (IEEE 754-2019, 6.2.1).
    pub const fn canonical_nan(&self) -> u64 {
        match self.has_infinity {
            true => ((1 << (self.exponent + 1)) - 1) << (self.mantissa - 1),
            false => self.greatest() + 1,
        }
    }
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

    /// Whether this is an integer type (not `bool`), signed or unsigned.
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

    /// The bits of the positive quiet NaN without payload; 0 for types that have no NaN.
    pub const fn canonical_nan(self) -> u64 {
        match self.format() {
            Some(format) => format.canonical_nan(),
            None => 0,
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

    /// The type in which arithmetic of this type is done: `f32` for narrow floats, else itself.
    pub const fn compute(self) -> Self {
        match self.format() {
            Some(format) => format.compute,
            None => self,
        }
    }

    /// Whether this is a float that is computed in a wider one.
    pub const fn is_narrow_float(self) -> bool {
        match self.format() {
            Some(format) => format.compute.bits() != self.bits(),
            None => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Literal;

    #[test]
    fn formats_fill_their_bits_and_say_what_the_host_says() {
        for dtype in DType::ALL.iter().filter(|dtype| dtype.is_float()) {
            let format = dtype.format().expect("a float");
            assert_eq!(1 + format.exponent + format.mantissa, dtype.bits());
            assert_eq!(format.compute.compute(), format.compute);
        }
        for (dtype, greatest) in [(DType::F32, f64::from(f32::MAX)), (DType::F64, f64::MAX)] {
            let format = dtype.format().expect("a float");
            let number = |bits| Literal::from_bits(dtype, bits).float();
            assert_eq!(number(format.greatest()), Some(greatest));
            assert_eq!(number(format.overflow()), Some(f64::INFINITY));
        }
        for bits in 0..=u16::MAX {
            let number = |dtype| Literal::from_bits(dtype, u64::from(bits)).float();
            let found = [number(DType::F16), number(DType::BF16)];
            let half = half::f16::from_bits(bits).to_f64();
            let wide = half::bf16::from_bits(bits).to_f64();
            assert_eq!(
                found.map(|x| x.map(f64::to_bits)),
                [half, wide].map(|x| Some(x.to_bits()))
            );
        }
    }
}
