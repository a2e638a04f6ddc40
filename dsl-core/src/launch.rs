//! What a launch hands to a compiled kernel, checked against the kernel's parameters.

use thiserror::Error;

use crate::ir::{Access, Class, DType, Func, Grid, Literal, Parameter, Space, Type};
use crate::target::BoundsError;

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

/// Checks the number, kind, data type, alignment and known divisors of `arguments`.
///
/// Every backend that runs on host memory calls this first, the interpreters included.
pub fn check_arguments(func: &Func, arguments: &[Argument<'_>]) -> Result<(), LaunchError> {
    if arguments.len() != func.parameters.len() {
        return Err(LaunchError::Arguments(format!(
            "kernel `{}` takes {} arguments, found {}",
            func.name,
            func.parameters.len(),
            arguments.len()
        )));
    }
    for ((parameter, &value), argument) in
        func.parameters.iter().zip(func.arguments()).zip(arguments)
    {
        check_argument(parameter, func.ty(value), argument)?;
    }
    Ok(())
}

fn check_argument(
    parameter: &Parameter,
    ty: Type,
    argument: &Argument<'_>,
) -> Result<(), LaunchError> {
    let name = &parameter.name;
    match (argument, ty.pointee()) {
        (Argument::Read(bytes), Some((dtype, Space::Global))) => {
            if parameter.access == Access::ReadWrite {
                return Err(LaunchError::argument(
                    name,
                    "read-only memory",
                    "writable memory",
                ));
            }
            check_memory(parameter, dtype, bytes)
        }
        (Argument::ReadWrite(bytes), Some((dtype, Space::Global))) => {
            check_memory(parameter, dtype, bytes)
        }
        (Argument::Scalar(literal), None) => check_scalar(parameter, ty, *literal),
        (Argument::Scalar(literal), Some(_)) => Err(LaunchError::argument(
            name,
            &format!("a scalar `{}`", literal.dtype),
            &format!("`{ty}`"),
        )),
        (Argument::Read(_) | Argument::ReadWrite(_), _) => Err(LaunchError::argument(
            name,
            "memory",
            &format!("a scalar `{ty}`"),
        )),
    }
}

fn check_memory(parameter: &Parameter, dtype: DType, bytes: &[u8]) -> Result<(), LaunchError> {
    let size = dtype.bytes() as usize;
    if !bytes.len().is_multiple_of(size) {
        return Err(LaunchError::argument(
            &parameter.name,
            &format!("{} bytes", bytes.len()),
            &format!("whole elements of `{dtype}`"),
        ));
    }
    let divisor = size.max(parameter.divisor as usize);
    if !bytes.is_empty() && !bytes.as_ptr().addr().is_multiple_of(divisor) {
        return Err(LaunchError::argument(
            &parameter.name,
            "an unaligned address",
            &format!("an address divisible by {divisor}"),
        ));
    }
    Ok(())
}

fn check_scalar(parameter: &Parameter, ty: Type, literal: Literal) -> Result<(), LaunchError> {
    if ty != Type::scalar(literal.dtype) {
        return Err(LaunchError::argument(
            &parameter.name,
            &format!("a scalar `{}`", literal.dtype),
            &format!("`{ty}`"),
        ));
    }
    let divides = |value: i128| value % i128::from(parameter.divisor.max(1)) == 0;
    match literal.dtype.class() {
        Class::Bool | Class::Float => Ok(()),
        Class::Signed | Class::Unsigned if literal.integer().is_some_and(divides) => Ok(()),
        Class::Signed | Class::Unsigned => Err(LaunchError::argument(
            &parameter.name,
            &format!("`{}`", literal.integer().unwrap_or_default()),
            &format!("a multiple of {}", parameter.divisor),
        )),
    }
}
