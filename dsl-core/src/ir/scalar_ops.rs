//! The tables of the elementwise primitives: one row is one op, which every backend has.
//!
//! The same ops serve scalars, tiles (block stage) and short vectors (lane stage). Their meaning on
//! bits is in [`crate::semantics`]; rounding, NaN and overflow follow the rows' documentation.
//! Functions made of primitives, and a device's own ones, are in [`super::functions`].

/// Which data types an elementwise op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepts {
    /// Integers and floats.
    Numeric,
    /// Floats.
    Float,
    /// Floats of at most 32 bits: those that are computed in `f32`.
    SingleFloat,
    /// `f32` alone.
    F32,
    /// Integers.
    Integer,
    /// Integers and `bool`.
    Bits,
    /// Everything.
    Any,
}

impl Accepts {
    /// Whether `dtype` is accepted.
    pub const fn admits(self, dtype: super::DType) -> bool {
        match self {
            Self::Numeric => dtype.is_integer() || dtype.is_float(),
            Self::Float => dtype.is_float(),
            Self::SingleFloat => dtype.is_float() && !matches!(dtype, super::DType::F64),
            Self::F32 => matches!(dtype, super::DType::F32),
            Self::Integer => dtype.is_integer(),
            Self::Bits => !dtype.is_float(),
            Self::Any => true,
        }
    }

    /// The accepted types in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Numeric => "integers and floats",
            Self::Float => "floats",
            Self::SingleFloat => "floats of at most 32 bits",
            Self::F32 => "f32",
            Self::Integer => "integers",
            Self::Bits => "integers and bool",
            Self::Any => "all types",
        }
    }
}

/// Calls `$m!` with one block per family. A row is doc, variant, mnemonic, method, types, and how a
/// kernel's author writes it: as a `function` of that name, as a Rust `operator`, or not at all.
macro_rules! for_each_scalar_family {
    ($m:ident) => {
        $m! {
            /// One operand, result of the same type.
            UnaryOp Unary { x } {
                /// Negation. Flips the sign bit of a float (NaN too); wraps for integers.
                Neg "neg" neg Numeric operator;
                /// Absolute value. Clears the sign bit of a float; the least integer maps to itself.
                Abs "abs" abs Numeric function;
                /// Complement of every value bit; logical not for `bool`.
                Not "not" not Bits operator;
                /// Square root, correctly rounded; of a negative number NaN, of -0 -0.
                Sqrt "sqrt" sqrt Float function;
                /// Largest integer not above; keeps -0 and infinities.
                Floor "floor" floor Float function;
                /// Smallest integer not below; keeps the sign of a zero result.
                Ceil "ceil" ceil Float function;
                /// The integer part, rounded toward zero; keeps the sign of a zero result and infinities.
                Trunc "trunc" trunc Float function;
                /// The nearest integer, of two the even one; keeps the sign of a zero result and infinities.
                Round "round" round Float function;
            }
            /// Two operands of one type, result of the same type.
            BinaryOp Binary { lhs, rhs } {
                /// Sum. A float rounds once to nearest even; an integer wraps.
                Add "add" add Numeric operator;
                /// Difference. A float rounds once to nearest even; an integer wraps.
                Sub "sub" sub Numeric operator;
                /// Product. A float rounds once to nearest even; an integer wraps.
                Mul "mul" mul Numeric operator;
                /// Quotient. A float is correctly rounded; an integer truncates, x / 0 has all bits
                /// set, and the least integer / -1 is itself.
                Div "div" div Numeric operator;
                /// Remainder with the sign of the dividend; x % 0 = x, the least integer % -1 = 0.
                Rem "rem" rem Integer operator;
                /// The smaller; NaN if either is NaN; -0 < +0.
                Minimum "minimum" minimum Numeric function;
                /// The larger; NaN if either is NaN; -0 < +0.
                Maximum "maximum" maximum Numeric function;
                /// The smaller; a NaN operand is ignored; -0 < +0.
                Minnum "minnum" minnum Float function;
                /// The larger; a NaN operand is ignored; -0 < +0.
                Maxnum "maxnum" maxnum Float function;
                /// Bitwise and; logical for `bool`.
                And "and" and Bits operator;
                /// Bitwise or; logical for `bool`.
                Or "or" or Bits operator;
                /// Bitwise exclusive or; logical for `bool`.
                Xor "xor" xor Bits operator;
                /// Left shift. The amount is read as unsigned; from the width on the result is 0.
                Shl "shl" shl Integer operator;
                /// Right shift, arithmetic for signed types. The amount is read as unsigned; from the
                /// width on the result is 0, or all sign bits for a signed type.
                Shr "shr" shr Integer operator;
            }
            /// Three operands of one type, result of the same type.
            TernaryOp Ternary { a, b, c } {
                /// a * b + c with one rounding; for `f16` and `bf16` the `f32` result rounded once
                /// more. Nothing else makes a fused multiply-add.
                Fma "fma" fma Float function;
            }
            /// Two integers of one type, by the machine's own instruction: what `legalise` makes of
            /// the ops of those names, and no one else.
            RawOp Raw { lhs, rhs } {
                /// Quotient, truncated. Undefined where the divisor is 0 or the quotient overflows:
                /// the lane interpreter stops there.
                Div "raw_div" raw_div Integer hidden;
                /// Remainder with the sign of the dividend. Undefined as `raw_div` is.
                Rem "raw_rem" raw_rem Integer hidden;
                /// Left shift by an amount below the width, read as unsigned. By another amount some
                /// number, which no result may depend on.
                Shl "raw_shl" raw_shl Integer hidden;
                /// Right shift, arithmetic for signed types, by an amount below the width, read as
                /// unsigned. By another amount some number, which no result may depend on.
                Shr "raw_shr" raw_shr Integer hidden;
            }
            /// Two operands of one type, a `bool` for each element.
            CompareOp Compare { lhs, rhs } {
                /// Equal; false if either is NaN.
                Eq "eq" eq Any operator;
                /// Not equal; true if either is NaN.
                Ne "ne" ne Any operator;
                /// Less; false if either is NaN.
                Lt "lt" lt Numeric operator;
                /// Less or equal; false if either is NaN.
                Le "le" le Numeric operator;
                /// Greater; false if either is NaN.
                Gt "gt" gt Numeric operator;
                /// Greater or equal; false if either is NaN.
                Ge "ge" ge Numeric operator;
            }
        }
    };
}
pub(crate) use for_each_scalar_family;

/// Defines the enum of each family.
macro_rules! define_family {
    ($($(#[doc = $family_doc:literal])* $Family:ident $Variant:ident { $($field:ident),* } {
        $($(#[doc = $doc:literal])* $Op:ident $mnemonic:literal $method:ident $accepts:ident $surface:ident
            $(= $($meaning:ident)::+)?;)*
    })*) => { $(
        $(#[doc = $family_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $Family { $($(#[doc = $doc])* $Op),* }
        impl $Family {
            /// Every op of the family.
            pub const ALL: &[Self] = &[$(Self::$Op),*];
            /// The name in the text form.
            pub const fn mnemonic(self) -> &'static str { match self { $(Self::$Op => $mnemonic),* } }
            /// The data types it takes.
            pub const fn accepts(self) -> $crate::ir::Accepts {
                match self { $(Self::$Op => $crate::ir::Accepts::$accepts),* }
            }
            /// The documentation.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$Op => concat!($($doc),*)),* }
            }
            /// The op with this name.
            pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|op| op.mnemonic() == mnemonic)
            }
        }
    )* };
}
pub(crate) use define_family;
for_each_scalar_family!(define_family);

impl BinaryOp {
    /// The machine's own op, of integers, where that leaves cases undefined which this one defines.
    pub const fn raw(self) -> Option<RawOp> {
        match self {
            Self::Div => Some(RawOp::Div),
            Self::Rem => Some(RawOp::Rem),
            Self::Shl => Some(RawOp::Shl),
            Self::Shr => Some(RawOp::Shr),
            Self::Add | Self::Sub | Self::Mul | Self::And | Self::Or | Self::Xor => None,
            Self::Minimum | Self::Maximum | Self::Minnum | Self::Maxnum => None,
        }
    }

    /// Whether swapping the operands never changes the result's bits (NaN payloads aside).
    pub const fn is_commutative(self) -> bool {
        match self {
            Self::Add | Self::Mul | Self::And | Self::Or | Self::Xor => true,
            Self::Minimum | Self::Maximum | Self::Minnum | Self::Maxnum => true,
            Self::Sub | Self::Div | Self::Rem | Self::Shl | Self::Shr => false,
        }
    }
}

impl RawOp {
    /// The op with the same results wherever this one is defined.
    pub const fn defined(self) -> BinaryOp {
        match self {
            Self::Div => BinaryOp::Div,
            Self::Rem => BinaryOp::Rem,
            Self::Shl => BinaryOp::Shl,
            Self::Shr => BinaryOp::Shr,
        }
    }
}
