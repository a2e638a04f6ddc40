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
    /// Memory of the program itself, which the kernel reads.
    Slice(&'a [u8]),
    /// Memory of the program itself, which the kernel may write.
    SliceMut(&'a mut [u8]),
    /// A number.
    Scalar(Literal),
}

impl Bound<'_> {
    /// What has its memory where `device` cannot use it, if that is so.
    pub(crate) fn elsewhere(&self, device: &Device) -> Option<String> {
        match self {
            Self::Read(place, _) | Self::ReadWrite(place, _) => {
                (!place.shares_memory_with(device)).then(|| place.to_string())
            }
            Self::Slice(_) | Self::SliceMut(_) => {
                device.gpu().map(|_| "the host, in a slice".to_string())
            }
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
            | Self::Slice(_)
            | Self::SliceMut(_)
            | Self::Scalar(_) => None,
        }
    }

    /// Notes where those who read it find what became of the launch.
    pub(crate) fn note_writer(&mut self, failure: &Arc<Failure>) {
        match self {
            Self::ReadWrite(_, Storage::Host(_, writers)) => writers.add(failure),
            Self::ReadWrite(_, Storage::Gpu(memory)) => memory.writers.add(failure),
            // Who reads a slice cannot be told: a stream tells it.
            Self::Read(..) | Self::Slice(_) | Self::SliceMut(_) | Self::Scalar(_) => {}
        }
    }

    /// The same, for a while.
    pub(crate) fn lent(&mut self) -> Bound<'_> {
        match self {
            Self::Read(device, storage) => Bound::Read(device, storage),
            Self::ReadWrite(device, storage) => Bound::ReadWrite(device, storage),
            Self::Slice(bytes) => Bound::Slice(bytes),
            Self::SliceMut(bytes) => Bound::SliceMut(bytes),
            Self::Scalar(literal) => Bound::Scalar(*literal),
        }
    }

    /// What code is handed for it.
    pub(crate) fn passed(&self) -> Passed {
        match self {
            Self::Read(_, storage) => storage.passed(Access::Read),
            Self::ReadWrite(_, storage) => storage.passed(Access::ReadWrite),
            Self::Slice(bytes) => Passed::of_host(bytes, Access::Read),
            Self::SliceMut(bytes) => Passed::of_host(bytes, Access::ReadWrite),
            Self::Scalar(literal) => Passed::Scalar(*literal),
        }
    }
}
