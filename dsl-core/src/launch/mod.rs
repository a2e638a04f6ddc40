//! What a launch hands to a compiled kernel, checked against the kernel's parameters, and the scalars that
//! follow from it.

mod boxes;
mod expression;
mod maps;
mod numbers;
mod padded;
pub mod printed;
mod programs;
mod signature;
mod tensors;

use std::ops::Range;

use thiserror::Error;

use crate::ir::{Access, DType, Func, Grid, Literal, Parameter, Space, Type};
use crate::target::BoundsError;

pub use boxes::{BOX_NUMBERS, Boxes, inner_axis};
pub use expression::{Input, LaunchExpression};
pub use maps::{ArrayMap, ArrayNumbers};
pub use numbers::Numbers;
pub use padded::{PADDED_TILE, PaddedRows};
pub use programs::Programs;
pub use signature::Signature;
pub use tensors::Inside;

/// One argument of a launch with its memory on the host.
///
/// Numbers lie in memory in the machine's order, `bool` as one byte. The length of a slice is the
/// length of the argument: what checked accesses are compared with.
#[derive(Debug)]
pub enum Argument<'a> {
    /// Memory that the kernel only reads.
    Read(&'a [u8]),
    /// Memory that the kernel may write.
    ReadWrite(&'a mut [u8]),
    /// A scalar parameter.
    Scalar(Literal),
}

impl Argument<'_> {
    /// What code is handed for it.
    #[must_use]
    pub fn passed(&self) -> Passed {
        match self {
            Self::Read(bytes) => Passed::of_host(bytes, Access::Read),
            Self::ReadWrite(bytes) => Passed::of_host(bytes, Access::ReadWrite),
            Self::Scalar(literal) => Passed::Scalar(*literal),
        }
    }
}

/// One argument of a launch as plain data, wherever its memory is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Passed {
    /// Memory of the device.
    Memory {
        /// Where it begins.
        address: u64,
        /// Its size.
        bytes: u64,
        /// What a kernel may do with it.
        access: Access,
    },
    /// A number.
    Scalar(Literal),
}

impl Passed {
    /// Memory of the host.
    #[must_use]
    pub fn of_host(bytes: &[u8], access: Access) -> Self {
        Self::Memory {
            address: bytes.as_ptr().addr() as u64,
            bytes: bytes.len() as u64,
            access,
        }
    }
}

/// A launch as plain data: all that the scalars follow from which the host computes for it.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The programs.
    pub grid: Grid,
    /// One for each parameter.
    pub arguments: &'a [Passed],
    /// The address of the record of errors, if there is one.
    pub error_record: Option<u64>,
}

impl<'a> Launch<'a> {
    /// A launch without a record of errors.
    #[must_use]
    pub fn new(grid: Grid, arguments: &'a [Passed]) -> Self {
        Self {
            grid,
            arguments,
            error_record: None,
        }
    }

    /// The bits of an input; nothing where this launch has no such input.
    #[must_use]
    pub fn input(&self, input: Input) -> Option<u64> {
        match input {
            Input::Number(index) => match self.arguments.get(index)? {
                Passed::Scalar(literal) => Some(literal.bits),
                Passed::Memory { .. } => None,
            },
            Input::Address(index) => match self.arguments.get(index)? {
                Passed::Memory { address, .. } => Some(*address),
                Passed::Scalar(_) => None,
            },
            Input::Length(index, dtype) => match self.arguments.get(index)? {
                // The sizes of all data types are powers of two.
                Passed::Memory { bytes, .. } => Some(bytes >> dtype.bytes().trailing_zeros()),
                Passed::Scalar(_) => None,
            },
            Input::Grid(axis) => self.grid.get(axis).map(|&extent| u64::from(extent)),
            Input::ErrorRecord => self.error_record,
        }
    }

    /// The integer behind a parameter.
    #[must_use]
    pub fn integer(&self, index: usize) -> Option<i128> {
        match self.arguments.get(index)? {
            Passed::Scalar(literal) => literal.integer(),
            Passed::Memory { .. } => None,
        }
    }

    /// The bits of the number behind a parameter, if it is of this type.
    fn number(&self, index: usize, dtype: DType) -> Option<u64> {
        match self.arguments.get(index)? {
            Passed::Scalar(literal) => (literal.dtype == dtype).then_some(literal.bits),
            Passed::Memory { .. } => None,
        }
    }
}

/// Checks the number, kind, data type, alignment and known divisors of the arguments of a launch.
///
/// Every backend calls this first, or a [`Signature`], which comes to the same; the interpreters do, too.
///
/// # Errors
/// Says which argument does not fit its parameter, and why.
pub fn check_arguments<'p>(
    kernel: &str,
    parameters: impl ExactSizeIterator<Item = (&'p Parameter, Type)> + Clone,
    arguments: &[Passed],
) -> Result<(), LaunchError> {
    if arguments.len() != parameters.len() {
        return Err(LaunchError::Arguments(format!(
            "kernel `{kernel}` takes {} arguments, found {}",
            parameters.len(),
            arguments.len()
        )));
    }
    for ((parameter, ty), &argument) in parameters.clone().zip(arguments) {
        check_argument(parameter, ty, argument)?;
    }
    check_overlap(parameters, arguments)
}

/// Written memory must not be reached through two parameters: optimisers rely on it.
fn check_overlap<'p>(
    parameters: impl Iterator<Item = (&'p Parameter, Type)> + Clone,
    arguments: &[Passed],
) -> Result<(), LaunchError> {
    let mut all = parameters.zip(arguments);
    // Pairs, since arguments are few.
    while let Some(((one, _), argument)) = all.next() {
        let Some(bytes) = bytes_of(argument) else {
            continue;
        };
        let overlaps = |(parameter, other): &(&Parameter, Option<Range<u64>>)| {
            let written = [one.access, parameter.access].contains(&Access::ReadWrite);
            let meets = |other: &Range<u64>| bytes.start < other.end && other.start < bytes.end;
            written && other.as_ref().is_some_and(meets)
        };
        let mut others = all.clone().map(|((it, _), other)| (it, bytes_of(other)));
        if let Some((other, _)) = others.find(overlaps) {
            return Err(LaunchError::Arguments(format!(
                "arguments `{}` and `{}` share memory that the kernel writes: read it through the one that is written, or \
                 declare both as one `InOut`",
                one.name, other.name
            )));
        }
    }
    Ok(())
}

/// Where its memory is, unless it has none.
fn bytes_of(argument: &Passed) -> Option<Range<u64>> {
    match argument {
        Passed::Memory { address, bytes, .. } if *bytes > 0 => {
            Some(*address..address.saturating_add(*bytes))
        }
        Passed::Memory { .. } | Passed::Scalar(_) => None,
    }
}

/// The parameters of a function with their types.
pub fn parameters(func: &Func) -> impl ExactSizeIterator<Item = (&Parameter, Type)> + Clone {
    let types = func.arguments().iter().map(|&value| func.ty(value));
    func.parameters.iter().zip(types)
}

/// Why a launch did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LaunchError {
    /// The arguments do not fit the parameters.
    #[error("{0}")]
    Arguments(String),
    /// The grid is empty along an axis or too large.
    #[error("grid {0:?} is not valid: {1}")]
    Grid(Grid, String),
    /// An access lies outside its argument.
    #[error("program {} accesses element {} (tile element {}) out of bounds", .0.program, .0.offset, .0.element)]
    OutOfBounds(BoundsError),
    /// The device or its driver failed.
    #[error("{0}")]
    Device(String),
}

impl LaunchError {
    fn argument(name: &str, found: &str, expected: &str) -> Self {
        Self::Arguments(format!(
            "argument `{name}`: found {found}, expected {expected}"
        ))
    }
}

fn check_argument(parameter: &Parameter, ty: Type, argument: Passed) -> Result<(), LaunchError> {
    let name = &parameter.name;
    match (argument, ty.pointee()) {
        (
            Passed::Memory {
                address,
                bytes,
                access,
            },
            Some((dtype, Space::Global)),
        ) => {
            if parameter.access == Access::ReadWrite && access == Access::Read {
                return Err(LaunchError::argument(
                    name,
                    "read-only memory",
                    "writable memory",
                ));
            }
            check_memory(parameter, dtype, address, bytes)
        }
        (Passed::Scalar(literal), None) => check_scalar(parameter, ty, literal),
        (Passed::Scalar(literal), Some(_)) => Err(LaunchError::argument(
            name,
            &format!("a scalar `{}`", literal.dtype),
            &format!("`{ty}`"),
        )),
        (Passed::Memory { .. }, _) => Err(LaunchError::argument(
            name,
            "memory",
            &format!("a scalar `{ty}`"),
        )),
    }
}

fn check_memory(
    parameter: &Parameter,
    dtype: DType,
    address: u64,
    bytes: u64,
) -> Result<(), LaunchError> {
    let size = dtype.bytes();
    if !divides(size, bytes) {
        return Err(LaunchError::argument(
            &parameter.name,
            &format!("{bytes} bytes"),
            &format!("whole elements of `{dtype}`"),
        ));
    }
    let divisor = size.max(parameter.divisor);
    if bytes > 0 && !divides(divisor, address) {
        return Err(LaunchError::argument(
            &parameter.name,
            "an unaligned address",
            &format!("an address divisible by {divisor}"),
        ));
    }
    Ok(())
}

/// Whether a divisor, 0 standing for 1, divides an integer.
fn divides(divisor: u32, value: u64) -> bool {
    let divisor = u64::from(divisor.max(1));
    match divisor.is_power_of_two() {
        // As nearly always: a division takes as long as the rest of a check.
        true => value & (divisor - 1) == 0,
        false => value.is_multiple_of(divisor),
    }
}

fn check_scalar(parameter: &Parameter, ty: Type, literal: Literal) -> Result<(), LaunchError> {
    if ty.dtype() != Some(literal.dtype) || !ty.is_scalar() {
        return Err(LaunchError::argument(
            &parameter.name,
            &format!("a scalar `{}`", literal.dtype),
            &format!("`{ty}`"),
        ));
    }
    match literal.integer().filter(|_| literal.dtype.is_integer()) {
        Some(value) if !divides(parameter.divisor, value.unsigned_abs() as u64) => {
            Err(LaunchError::argument(
                &parameter.name,
                &format!("`{value}`"),
                &format!("a multiple of {}", parameter.divisor),
            ))
        }
        Some(value) => match parameter.within {
            Some([least, most]) if !(least.into()..=most.into()).contains(&value) => {
                Err(LaunchError::argument(
                    &parameter.name,
                    &format!("`{value}`"),
                    &format!("an integer from {least} to {most}"),
                ))
            }
            Some(_) | None => Ok(()),
        },
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn what_is_written_is_reached_once() {
        let text = "func @f block (%x: ptr<u8>, %y: ptr<u8> write, %z: ptr<u8>) {\n}";
        let func = parse(text, "test.bir").expect("parses");
        let refused = |ranges: [Range<u64>; 3]| {
            let accesses = [Access::Read, Access::ReadWrite, Access::Read];
            let memories = ranges.into_iter().zip(accesses);
            let arguments: Vec<Passed> = memories
                .map(|(range, access)| Passed::Memory {
                    address: range.start,
                    bytes: range.end - range.start,
                    access,
                })
                .collect();
            check_arguments("f", parameters(&func), &arguments).err()
        };
        for other in [16..24, 0..17, 23..64, 18..20, 0..64] {
            // Both are read.
            assert_eq!(refused([16..24, 100..200, other.clone()]), None);
            let first = refused([other.clone(), 16..24, 70..80]).expect("is refused");
            assert!(
                first
                    .to_string()
                    .starts_with("arguments `x` and `y` share memory")
            );
            let second = refused([70..80, 16..24, other]).expect("is refused");
            assert!(
                second
                    .to_string()
                    .starts_with("arguments `y` and `z` share memory")
            );
        }
        for other in [0..16, 24..32, 18..18, 16..16] {
            assert_eq!(refused([other.clone(), 16..24, other]), None);
        }
    }
}
