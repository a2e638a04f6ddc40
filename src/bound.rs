//! Arguments bound to parameters, and what the compiler may assume of them.

use exactile_core::ir::{Class, Func, Literal};
use exactile_core::verify::{self, BlockFunc};

use crate::buffer::Storage;
use crate::device::Device;
use crate::error::{Error, Result};

/// The divisor of addresses and integers that the compiler is told about: bytes of the widest
/// access.
const DIVISOR: u32 = 16;

/// An argument bound to a parameter.
pub(crate) enum Bound<'a> {
    /// Memory that the kernel reads.
    Read(&'a Device, &'a Storage),
    /// Memory that the kernel may write.
    ReadWrite(&'a Device, &'a mut Storage),
    /// A number.
    Scalar(Literal),
}

impl Bound<'_> {
    /// Where its memory is.
    pub(crate) fn device(&self) -> Option<&Device> {
        match self {
            Self::Read(device, _) | Self::ReadWrite(device, _) => Some(device),
            Self::Scalar(_) => None,
        }
    }

    /// Bytes of its memory.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Read(_, storage) => storage.len(),
            Self::ReadWrite(_, storage) => storage.len(),
            Self::Scalar(_) => 0,
        }
    }

    /// What is known to divide the address or the value.
    pub(crate) fn divisor(&self) -> u32 {
        let aligned = |storage: &Storage| storage.address().is_multiple_of(u64::from(DIVISOR));
        let divides = match self {
            Self::Read(_, storage) => aligned(storage),
            Self::ReadWrite(_, storage) => aligned(storage),
            Self::Scalar(literal) => match literal.dtype.class() {
                Class::Signed | Class::Unsigned => literal
                    .integer()
                    .is_some_and(|value| value % i128::from(DIVISOR) == 0),
                Class::Bool | Class::Float => false,
            },
        };
        if divides { DIVISOR } else { 1 }
    }
}

/// Writes the known divisors into the parameters.
pub(crate) fn specialise(func: BlockFunc, divisors: &[u32]) -> Result<BlockFunc> {
    let mut func: Func = func.into_inner();
    for (parameter, &divisor) in func.parameters.iter_mut().zip(divisors) {
        parameter.divisor = parameter.divisor.max(divisor);
    }
    let name = func.name.clone();
    verify::block(func).map_err(|diagnostics| Error::Compile {
        kernel: name,
        diagnostics,
    })
}
