//! The tables of elementwise ops on numbers: one row is one op.
//!
//! The same ops serve scalars, tiles (block stage) and short vectors (lane stage). Their meaning on
//! bits is in [`crate::semantics`]; rounding, NaN and overflow follow the rows' documentation.

/// What lowers an elementwise op.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Every backend has it.
    Primitive,
    /// Replaced by its definition over primitives before lowering.
    Derived,
    /// A device's own instruction: deterministic on one device, not promised to equal another.
    Approximate,
}

/// Which data types an elementwise op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepts {
    /// Integers and floats.
    Numeric,
    /// Floats.
    Float,
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
            Self::F32 => "f32",
            Self::Integer => "integers",
            Self::Bits => "integers and bool",
            Self::Any => "all types",
        }
    }
}

/// Calls `$m!` with one block per family; a row is doc, variant, mnemonic, method, types, kind.
macro_rules! for_each_scalar_family {
    ($m:ident) => {
        $m! {
            /// One operand, result of the same type.
            UnaryOp Unary { x } {
                /// Negation. Flips the sign bit of a float (NaN too); wraps for integers.
                Neg "neg" neg Numeric Primitive;
                /// Absolute value. Clears the sign bit of a float; the least integer maps to itself.
                Abs "abs" abs Numeric Primitive;
                /// Complement of every value bit; logical not for `bool`.
                Not "not" not Bits Primitive;
                /// Square root, correctly rounded; of a negative number NaN, of -0 -0.
                Sqrt "sqrt" sqrt Float Primitive;
                /// Largest integer not above; keeps -0 and infinities.
                Floor "floor" floor Float Primitive;
                /// Smallest integer not below; keeps the sign of a zero result.
                Ceil "ceil" ceil Float Primitive;
                /// e^x.
                Exp "exp" exp Float Derived;
                /// 2^x.
                Exp2 "exp2" exp2 Float Derived;
                /// Natural logarithm; of zero -inf, of a negative number NaN.
                Log "log" log Float Derived;
                /// Logarithm to base 2; of zero -inf, of a negative number NaN.
                Log2 "log2" log2 Float Derived;
                /// 1 / sqrt(x) by two correctly rounded operations; of +-0 +-inf.
                Rsqrt "rsqrt" rsqrt Float Derived;
                /// 1 / (1 + e^-x), without loss for very negative x.
                Sigmoid "sigmoid" sigmoid Float Derived;
                /// Hyperbolic tangent.
                Tanh "tanh" tanh Float Derived;
                /// Error function: 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x.
                Erf "erf" erf Float Derived;
                /// The device's own 2^x.
                ApproxExp2 "approx_exp2" approx_exp2 F32 Approximate;
                /// The device's own logarithm to base 2.
                ApproxLog2 "approx_log2" approx_log2 F32 Approximate;
                /// The device's own 1 / x.
                ApproxReciprocal "approx_reciprocal" approx_reciprocal F32 Approximate;
                /// The device's own 1 / sqrt(x).
                ApproxRsqrt "approx_rsqrt" approx_rsqrt F32 Approximate;
            }
            /// Two operands of one type, result of the same type.
            BinaryOp Binary { lhs, rhs } {
                /// Sum. A float rounds once to nearest even; an integer wraps.
                Add "add" add Numeric Primitive;
                /// Difference. A float rounds once to nearest even; an integer wraps.
                Sub "sub" sub Numeric Primitive;
                /// Product. A float rounds once to nearest even; an integer wraps.
                Mul "mul" mul Numeric Primitive;
                /// Quotient. A float is correctly rounded; an integer truncates, x / 0 has all bits
                /// set, and the least integer / -1 is itself.
                Div "div" div Numeric Primitive;
                /// Remainder with the sign of the dividend; x % 0 = x, the least integer % -1 = 0.
                Rem "rem" rem Integer Primitive;
                /// The smaller; NaN if either is NaN; -0 < +0.
                Minimum "minimum" minimum Numeric Primitive;
                /// The larger; NaN if either is NaN; -0 < +0.
                Maximum "maximum" maximum Numeric Primitive;
                /// The smaller; a NaN operand is ignored; -0 < +0.
                Minnum "minnum" minnum Float Primitive;
                /// The larger; a NaN operand is ignored; -0 < +0.
                Maxnum "maxnum" maxnum Float Primitive;
                /// Bitwise and; logical for `bool`.
                And "and" and Bits Primitive;
                /// Bitwise or; logical for `bool`.
                Or "or" or Bits Primitive;
                /// Bitwise exclusive or; logical for `bool`.
                Xor "xor" xor Bits Primitive;
                /// Left shift. The amount is read as unsigned; from the width on the result is 0.
                Shl "shl" shl Integer Primitive;
                /// Right shift, arithmetic for signed types. The amount is read as unsigned; from the
                /// width on the result is 0, or all sign bits for a signed type.
                Shr "shr" shr Integer Primitive;
            }
            /// Three operands of one type, result of the same type.
            TernaryOp Ternary { a, b, c } {
                /// a * b + c with one rounding; for `f16` and `bf16` the `f32` result rounded once
                /// more. Nothing else makes a fused multiply-add.
                Fma "fma" fma Float Primitive;
            }
            /// Two operands of one type, a `bool` for each element.
            CompareOp Compare { lhs, rhs } {
                /// Equal; false if either is NaN.
                Eq "eq" eq Any Primitive;
                /// Not equal; true if either is NaN.
                Ne "ne" ne Any Primitive;
                /// Less; false if either is NaN.
                Lt "lt" lt Numeric Primitive;
                /// Less or equal; false if either is NaN.
                Le "le" le Numeric Primitive;
                /// Greater; false if either is NaN.
                Gt "gt" gt Numeric Primitive;
                /// Greater or equal; false if either is NaN.
                Ge "ge" ge Numeric Primitive;
            }
        }
    };
}
pub(crate) use for_each_scalar_family;

macro_rules! define_family {
    ($($(#[doc = $family_doc:literal])* $Family:ident $Variant:ident { $($field:ident),* } {
        $($(#[doc = $doc:literal])* $Op:ident $mnemonic:literal $method:ident $accepts:ident $kind:ident;)*
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
            pub const fn accepts(self) -> Accepts { match self { $(Self::$Op => Accepts::$accepts),* } }
            /// What lowers it.
            pub const fn kind(self) -> Kind { match self { $(Self::$Op => Kind::$kind),* } }
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
for_each_scalar_family!(define_family);

impl BinaryOp {
    /// Whether swapping the operands never changes the result's bits (NaN payloads aside).
    pub const fn is_commutative(self) -> bool {
        match self {
            Self::Add | Self::Mul | Self::And | Self::Or | Self::Xor => true,
            Self::Minimum | Self::Maximum | Self::Minnum | Self::Maxnum => true,
            Self::Sub | Self::Div | Self::Rem | Self::Shl | Self::Shr => false,
        }
    }
}
