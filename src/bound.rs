//! Arguments bound to parameters.

use std::sync::{Arc, Mutex};

use exactile_core::ir::{Access, Literal};
use exactile_core::launch::Passed;
use smallvec::SmallVec;

use crate::device::Device;
use crate::failure::Failure;
use crate::order::Uses;
use crate::part::{Part, PartMut};

/// So many arguments are held without an allocation: those of three tensors of rank 3, and some more.
pub(crate) const FEW: usize = 24;

/// What a trace depends on beside the kernel, in the order of the parameters: whether nothing was passed for an optional
/// one, whether a tensor begins elsewhere than at its lowest element, and whether an array is written in place.
pub(crate) type Choices = SmallVec<[bool; 16]>;

/// An argument bound to a parameter.
pub(crate) enum Bound<'a> {
    /// Memory that the kernel reads.
    Read(Part<'a>),
    /// Memory that the kernel may write.
    ReadWrite(PartMut<'a>),
    /// A number.
    Scalar(Literal),
}

impl Bound<'_> {
    /// Its memory, and what the kernel does with it.
    fn memory(&self) -> Option<(Part<'_>, Access)> {
        match self {
            Self::Read(part) => Some((*part, Access::Read)),
            Self::ReadWrite(part) => Some((part.shared(), Access::ReadWrite)),
            Self::Scalar(_) => None,
        }
    }

    /// What has its memory where `device` cannot use it, if that is so.
    pub(crate) fn elsewhere(&self, device: &Device) -> Option<String> {
        self.memory()
            .and_then(|(memory, _)| memory.elsewhere(device))
    }

    /// Where the uses of its memory are noted, if it is that of a GPU, and what the kernel does with it.
    pub(crate) fn uses(&self) -> Option<(&Mutex<Uses>, Access)> {
        let (memory, access) = self.memory()?;
        Some((memory.uses()?, access))
    }

    /// Notes where those who read it find what became of the launch.
    pub(crate) fn note_writer(&self, failure: &Arc<Failure>) {
        if let Self::ReadWrite(part) = self {
            part.note_writer(failure);
        }
    }

    /// The same, for a while.
    pub(crate) fn lent(&mut self) -> Bound<'_> {
        match self {
            Self::Read(part) => Bound::Read(*part),
            Self::ReadWrite(part) => Bound::ReadWrite(part.lent()),
            Self::Scalar(literal) => Bound::Scalar(*literal),
        }
    }

    /// What code is handed for it.
    // Inlined: a call would write the result to memory and read it back at once, and the processor waits for that.
    #[inline]
    pub(crate) fn passed(&self) -> Passed {
        match self {
            Self::Read(part) => part.passed(Access::Read),
            Self::ReadWrite(part) => part.shared().passed(Access::ReadWrite),
            Self::Scalar(literal) => Passed::Scalar(*literal),
        }
    }
}
