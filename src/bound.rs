//! Arguments bound to parameters.

use std::sync::{Arc, Mutex};

use exactile_core::ir::{Access, Literal};
use exactile_core::launch::Passed;
use smallvec::SmallVec;

use crate::buffer::Storage;
use crate::device::Device;
use crate::failure::Failure;
use crate::order::Uses;

/// So many arguments are held without an allocation: those of three tensors of rank 3, and some more.
pub(crate) const FEW: usize = 24;

/// For each optional parameter, whether nothing was passed.
pub(crate) type Absent = SmallVec<[bool; 16]>;

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

    /// Where the uses of its memory are noted, if it is that of a GPU, and what the kernel does with it.
    pub(crate) fn uses(&self) -> Option<(&Mutex<Uses>, Access)> {
        match self {
            Self::Read(_, Storage::Gpu(memory)) => Some((&memory.uses, Access::Read)),
            Self::ReadWrite(_, Storage::Gpu(memory)) => Some((&memory.uses, Access::ReadWrite)),
            Self::Read(_, Storage::Host(..))
            | Self::ReadWrite(_, Storage::Host(..))
            | Self::Scalar(_) => None,
        }
    }

    /// Notes where those who read it find what became of the launch.
    pub(crate) fn note_writer(&mut self, failure: &Arc<Failure>) {
        match self {
            Self::ReadWrite(_, Storage::Host(_, writers)) => writers.add(failure),
            Self::ReadWrite(_, Storage::Gpu(memory)) => memory.writers.add(failure),
            Self::Read(..) | Self::Scalar(_) => {}
        }
    }

    /// The same, for a while.
    pub(crate) fn lent(&mut self) -> Bound<'_> {
        match self {
            Self::Read(device, storage) => Bound::Read(device, storage),
            Self::ReadWrite(device, storage) => Bound::ReadWrite(device, storage),
            Self::Scalar(literal) => Bound::Scalar(*literal),
        }
    }

    /// What code is handed for it.
    pub(crate) fn passed(&self) -> Passed {
        match self {
            Self::Read(_, storage) => storage.passed(Access::Read),
            Self::ReadWrite(_, storage) => storage.passed(Access::ReadWrite),
            Self::Scalar(literal) => Passed::Scalar(*literal),
        }
    }
}
