//! The arguments of a generated program: what they hold at first, and how results are compared.

use std::fmt;

use exactile_core::facts::Known;
use exactile_core::interp::memory::{read_number, write_number};
use exactile_core::ir::{Access, DType, Literal};
use exactile_core::launch::{Argument, Passed};
use exactile_core::text::number;

use super::values::{Fill, literal};
use exactile::internals::HostMemory;
use exactile_core::random::Random;

/// Bytes of an argument.
#[derive(Clone, Debug)]
pub struct Bytes(HostMemory);

/// One argument.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Memory behind a pointer parameter.
    Memory {
        /// The data type of its elements.
        dtype: DType,
        /// What the program does with it.
        access: Access,
        /// The bytes, aligned to a cache line.
        memory: Bytes,
    },
    /// A scalar.
    Scalar(Literal),
}

impl Contents {
    /// Memory of `length` random elements.
    pub fn random(
        random: &mut Random,
        dtype: DType,
        access: Access,
        length: usize,
        fill: Fill,
    ) -> Self {
        let size = dtype.bytes() as usize;
        let mut memory = HostMemory::zeroed(length * size);
        for element in memory.bytes_mut().chunks_exact_mut(size) {
            write_number(dtype, element, literal(random, dtype, fill).bits);
            // Any nonzero byte is a true.
            if dtype == DType::Bool && element[0] != 0 && random.one_in(4) {
                element[0] = (random.bits() as u8) | 2;
            }
        }
        Self::Memory {
            dtype,
            access,
            memory: Bytes(memory),
        }
    }

    /// The argument as a launch takes it.
    pub fn argument(&mut self) -> Argument<'_> {
        match self {
            Self::Memory {
                access: Access::Read,
                memory,
                ..
            } => Argument::Read(memory.0.bytes()),
            Self::Memory {
                access: Access::ReadWrite,
                memory,
                ..
            } => Argument::ReadWrite(memory.0.bytes_mut()),
            Self::Scalar(literal) => Argument::Scalar(*literal),
        }
    }

    fn passed(&self) -> Passed {
        match self {
            Self::Memory { access, memory, .. } => Passed::of_host(memory.0.bytes(), *access),
            Self::Scalar(literal) => Passed::Scalar(*literal),
        }
    }

    /// Something that a launch may know of the argument: the most, or less.
    pub fn known(&self, random: &mut Random) -> Known {
        let most = Known::of(self.passed());
        match most {
            Known::One if random.one_in(4) => Known::Divisor(1),
            Known::Divisor(most) if random.one_in(2) => {
                Known::Divisor(1 << random.below(most.trailing_zeros() as usize + 1))
            }
            Known::One | Known::Divisor(_) => most,
        }
    }

    /// A range that the argument lies in, if it is an integer.
    pub fn range(&self, random: &mut Random) -> Option<[i64; 2]> {
        let Self::Scalar(literal) = self else {
            return None;
        };
        let value = literal.integer().filter(|_| literal.dtype.is_integer())?;
        let value = i64::try_from(value).ok()?;
        let [below, above] = [0, 1].map(|_| random.pick(&[0, 1, 7, 100, i64::MAX]));
        Some([value.saturating_sub(below), value.saturating_add(above)])
    }

    /// The first element that differs from `other`, one NaN being like another.
    fn difference(&self, other: &Self) -> Option<Difference> {
        let (
            Self::Memory { dtype, memory, .. },
            Self::Memory {
                memory: other_memory,
                ..
            },
        ) = (self, other)
        else {
            return None;
        };
        let size = dtype.bytes() as usize;
        let pairs = memory
            .0
            .bytes()
            .chunks_exact(size)
            .zip(other_memory.0.bytes().chunks_exact(size));
        for (element, (want, got)) in pairs.enumerate() {
            if want == got {
                continue;
            }
            let (want, got) = (canonical(*dtype, want), canonical(*dtype, got));
            if want != got || *dtype == DType::Bool {
                return Some(Difference {
                    argument: 0,
                    element,
                    want,
                    got,
                });
            }
        }
        None
    }
}

fn canonical(dtype: DType, bytes: &[u8]) -> Literal {
    let literal = Literal::from_bits(dtype, read_number(dtype, bytes));
    if literal.float().is_some_and(f64::is_nan) {
        Literal::from_bits(dtype, dtype.canonical_nan())
    } else {
        literal
    }
}

/// The first element at which two runs differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The argument.
    pub argument: usize,
    /// The element of the argument.
    pub element: usize,
    /// What the reference holds.
    pub want: Literal,
    /// What the other run holds.
    pub got: Literal,
}

/// The first element at which `got` differs from `want`, one NaN being like another.
pub fn difference(want: &[Contents], got: &[Contents]) -> Option<Difference> {
    want.iter()
        .zip(got)
        .enumerate()
        .find_map(|(argument, (want, got))| {
            want.difference(got).map(|difference| Difference {
                argument,
                ..difference
            })
        })
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(literal) => write!(f, "{}", number::format(*literal)),
            Self::Memory { dtype, memory, .. } => {
                let elements = memory.0.bytes().chunks_exact(dtype.bytes() as usize);
                let elements = elements
                    .map(|bytes| Literal::from_bits(*dtype, read_number(*dtype, bytes)))
                    .map(number::format);
                write!(f, "[{}]", elements.collect::<Vec<_>>().join(", "))
            }
        }
    }
}
