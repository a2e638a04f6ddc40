//! Arguments bound to parameters.

use exactile_core::facts::Known;
use exactile_core::ir::Literal;

use crate::buffer::Storage;
use crate::device::Device;

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

    /// The number that it is.
    pub(crate) fn number(&self) -> Option<Literal> {
        match self {
            Self::Read(..) | Self::ReadWrite(..) => None,
            Self::Scalar(literal) => Some(*literal),
        }
    }

    /// What the compiler may know of the argument.
    pub(crate) fn known(&self) -> Known {
        match self {
            Self::Read(_, storage) => Known::of_address(storage.address()),
            Self::ReadWrite(_, storage) => Known::of_address(storage.address()),
            Self::Scalar(literal) => Known::of_scalar(*literal),
        }
    }
}
