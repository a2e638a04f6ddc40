//! What a launch knows, and compiled code may rely on: plain data. What is not known is not assumed.

use crate::ir::{Class, Literal};
use crate::launch::Passed;

/// The greatest divisor of addresses and integers that is told: bytes of the widest access. Smaller
/// powers of two count too: a row of 1000 floats starts at a multiple of 16 bytes.
const DIVISOR: u32 = 16;

/// What is known of a launch when its code is made. Launches that agree in it share their code.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts {
    /// What is known of each argument, in the order of the parameters; nothing of those beyond.
    pub arguments: Vec<Known>,
    /// What integers among them are known to lie in.
    pub within: Vec<Within>,
    /// Whether the arguments are such as [`apart`](crate::passes::apart) asks of the function that is lowered:
    /// rows do not meet.
    pub apart: bool,
    /// Whether the tensors of the traced function lie in their memory, as
    /// [`Inside`](crate::launch::Inside) asks.
    pub inside: bool,
    /// The arrays whose boxes the function accesses that are such as [`Boxes`](crate::launch::Boxes) asks. What is
    /// prepared with it relies on it.
    pub boxes: Boxed,
}

/// Accesses to boxes of arrays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Boxed {
    /// None of them.
    #[default]
    Nothing,
    /// The loads.
    Loads,
    /// The loads and the stores.
    All,
}

/// An argument that is an integer of a range.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Within {
    /// The position of the parameter.
    pub parameter: usize,
    /// The least that it can be.
    pub least: i64,
    /// The greatest.
    pub most: i64,
}

/// What is known of an argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Known {
    /// What divides the address in bytes, or the integer.
    Divisor(u32),
    /// It is the integer 1, as the stride of a contiguous axis is.
    One,
}

impl Known {
    /// What is told of an argument.
    #[inline]
    #[must_use]
    pub fn of(argument: Passed) -> Self {
        match argument {
            Passed::Memory { address, .. } => Self::Divisor(divisor(address)),
            Passed::Scalar(literal) => Self::of_scalar(literal),
        }
    }

    /// A byte for it.
    #[inline]
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Divisor(divisor) => divisor.trailing_zeros() as u8,
            Self::One => u8::MAX,
        }
    }

    /// What has this code.
    #[must_use]
    pub fn of_code(code: u8) -> Self {
        match code {
            u8::MAX => Self::One,
            // A divisor is a power of two up to [`DIVISOR`].
            _ => Self::Divisor(1 << code.min(31)),
        }
    }

    fn of_scalar(literal: Literal) -> Self {
        match literal.dtype.class() {
            Class::Signed | Class::Unsigned if literal.bits == 1 => Self::One,
            Class::Signed | Class::Unsigned => Self::Divisor(divisor(literal.bits)),
            Class::Bool | Class::Float => Self::Divisor(1),
        }
    }
}

/// The greatest power of two up to [`DIVISOR`] that divides an integer with these low bits.
fn divisor(bits: u64) -> u32 {
    1 << (bits as u32 | DIVISOR).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::DType;

    #[test]
    fn integers_are_known_by_their_power_of_two() {
        let known = |value: i128| {
            let literal = Literal::from_integer(DType::I64, value);
            Known::of_scalar(literal.expect("fits"))
        };
        let found = [0, 1, 7, 1000, 4096, -6].map(known);
        let divisors = [16, 0, 1, 8, 16, 2];
        for (found, divisor) in found.into_iter().zip(divisors) {
            let expected = if divisor == 0 {
                Known::One
            } else {
                Known::Divisor(divisor)
            };
            assert_eq!(found, expected);
            assert_eq!(Known::of_code(found.code()), found);
        }
    }
}
