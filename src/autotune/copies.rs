//! Copies of the arguments of a launch, for a search that goes on behind it.

use exactile_core::ir::Literal;

use crate::arguments::BoundArguments;
use crate::bound::{Bound, Choices};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::Result;

/// An argument of which nobody else has the memory.
enum Copied {
    Read(Buffer<u8>),
    ReadWrite(Buffer<u8>),
    Scalar(Literal),
}

/// The arguments of a launch, each with memory of its own.
pub(super) struct Copies {
    list: Vec<Copied>,
    choices: Choices,
}

impl Copies {
    pub(super) fn of(device: &Device, bound: &BoundArguments<'_>) -> Result<Self> {
        let copied = |argument: &Bound<'_>| {
            Ok(match argument {
                Bound::Read(part) => Copied::Read(part.copied(device)?),
                Bound::ReadWrite(part) => Copied::ReadWrite(part.shared().copied(device)?),
                Bound::Scalar(literal) => Copied::Scalar(*literal),
            })
        };
        let list: Result<_> = bound.list.iter().map(copied).collect();
        Ok(Self {
            list: list?,
            choices: bound.choices.clone(),
        })
    }

    pub(super) fn bound(&mut self) -> BoundArguments<'_> {
        let bound = |copied| match copied {
            &mut Copied::Read(ref buffer) => Bound::Read(buffer.part()),
            Copied::ReadWrite(buffer) => Bound::ReadWrite(buffer.part_mut()),
            Copied::Scalar(literal) => Bound::Scalar(*literal),
        };
        BoundArguments {
            list: self.list.iter_mut().map(bound).collect(),
            choices: self.choices.clone(),
        }
    }
}
