//! Memory that an argument names: all of an array, a part of it, or a slice of the program.
//!
//! What is written is borrowed mutably and divided only where two parts share no byte, so that no two arguments of a
//! launch reach what one of them writes.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use exactile_core::ir::Access;
use exactile_core::launch::Passed;

use crate::buffer::{Buffer, Storage};
use crate::capture::refuse;
use crate::cuda::GpuMemory;
use crate::device::Device;
use crate::error::Result;
use crate::failure::{Failure, Writers};
use crate::memory::HostMemory;
use crate::order::Uses;

/// Memory that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// Bytes of an array on the host, with the launches that failed to write the array.
    Host(&'a Device, &'a [u8], &'a Writers),
    /// Of an array on a GPU: where the part begins, and its bytes.
    Gpu(&'a Device, &'a GpuMemory, [usize; 2]),
    /// Bytes of the program itself.
    Slice(&'a [u8]),
}

/// Memory that is written. Nothing else reaches its bytes while this is there.
#[derive(Debug)]
pub(crate) enum PartMut<'a> {
    /// As in [`Part`].
    Host(&'a Device, &'a mut [u8], &'a Writers),
    /// As in [`Part`].
    Gpu(&'a Device, &'a GpuMemory, [usize; 2]),
    /// As in [`Part`].
    Slice(&'a mut [u8]),
}

impl<'a> Part<'a> {
    /// All of an array.
    pub(crate) fn of(device: &'a Device, storage: &'a Storage) -> Self {
        match storage {
            Storage::Host(memory, writers) => Self::Host(device, memory.bytes(), writers),
            Storage::Gpu(memory) => Self::Gpu(device, memory, [0, memory.len()]),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Host(_, bytes, _) | Self::Slice(bytes) => bytes.len(),
            Self::Gpu(_, _, [_, len]) => *len,
        }
    }

    /// `len` bytes from `start` on, which are in it.
    pub(crate) fn cut(self, start: usize, len: usize) -> Self {
        match self {
            Self::Host(device, bytes, writers) => {
                Self::Host(device, &bytes[start..][..len], writers)
            }
            Self::Gpu(device, memory, [first, _]) => {
                Self::Gpu(device, memory, [first + start, len])
            }
            Self::Slice(bytes) => Self::Slice(&bytes[start..][..len]),
        }
    }

    /// What has its memory where `device` cannot use it, if that is so.
    pub(crate) fn elsewhere(&self, device: &Device) -> Option<String> {
        match self {
            Self::Host(place, ..) | Self::Gpu(place, ..) => {
                (!place.shares_memory_with(device)).then(|| place.to_string())
            }
            Self::Slice(_) => device.gpu().map(|_| "the host, in a slice".to_string()),
        }
    }

    /// Where the uses of all of its array are noted, if that is on a GPU.
    pub(crate) fn uses(&self) -> Option<&'a Mutex<Uses>> {
        match self {
            Self::Gpu(_, memory, _) => Some(&memory.shared.uses),
            Self::Host(..) | Self::Slice(_) => None,
        }
    }

    /// What code is handed for it.
    pub(crate) fn passed(&self, access: Access) -> Passed {
        match self {
            Self::Host(_, bytes, _) | Self::Slice(bytes) => Passed::of_host(bytes, access),
            Self::Gpu(_, memory, [start, len]) => Passed::Memory {
                address: memory.address() + *start as u64,
                bytes: *len as u64,
                access,
            },
        }
    }

    /// The bytes, on the host: a copy only where they are on a GPU. Tells an error of what wrote the array.
    pub(crate) fn read(self) -> Result<Cow<'a, [u8]>> {
        refuse("a read of an array")?;
        match self {
            Self::Host(_, bytes, writers) => {
                writers.tell()?;
                Ok(Cow::Borrowed(bytes))
            }
            Self::Gpu(_, memory, [start, len]) => memory.read(start, len).map(Cow::Owned),
            Self::Slice(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }

    /// A memory of its own with the same bytes; what failed to write them is told by whoever reads the original.
    pub(crate) fn copied(self, device: &Device) -> Result<Buffer<u8>> {
        refuse("a copy of an array")?;
        match self {
            Self::Host(_, bytes, _) | Self::Slice(bytes) => Buffer::from_slice(device, bytes),
            Self::Gpu(_, _, [_, len]) => {
                let mut copy = Buffer::zeros(device, len)?;
                copy.part_mut().copy_from(self)?;
                copy.forget_writers();
                Ok(copy)
            }
        }
    }

    /// A copy of the bytes where the host has room for exactly so many.
    pub(crate) fn read_to(self, room: &mut [u8]) -> Result<()> {
        if let Self::Gpu(_, memory, [start, _]) = self {
            refuse("a read of an array")?;
            return memory.read_to(start, room);
        }
        room.copy_from_slice(&self.read()?);
        Ok(())
    }
}

impl<'a> PartMut<'a> {
    /// All of an array.
    pub(crate) fn of(device: &'a Device, storage: &'a mut Storage) -> Self {
        match storage {
            Storage::Host(memory, writers) => Self::Host(device, memory.bytes_mut(), writers),
            Storage::Gpu(memory) => Self::Gpu(device, memory, [0, memory.len()]),
        }
    }

    /// The same to read, for a while.
    pub(crate) fn shared(&self) -> Part<'_> {
        match self {
            Self::Host(device, bytes, writers) => Part::Host(device, bytes, writers),
            Self::Gpu(device, memory, range) => Part::Gpu(device, memory, *range),
            Self::Slice(bytes) => Part::Slice(bytes),
        }
    }

    /// The same, for a while.
    pub(crate) fn lent(&mut self) -> PartMut<'_> {
        match self {
            Self::Host(device, bytes, writers) => PartMut::Host(device, bytes, writers),
            Self::Gpu(device, memory, range) => PartMut::Gpu(device, memory, *range),
            Self::Slice(bytes) => PartMut::Slice(bytes),
        }
    }

    /// What is before a byte of it, and what begins there.
    pub(crate) fn split_at(self, at: usize) -> [Self; 2] {
        match self {
            Self::Host(device, bytes, writers) => {
                let (low, high) = bytes.split_at_mut(at);
                [low, high].map(|part| Self::Host(device, part, writers))
            }
            Self::Gpu(device, memory, [start, len]) => {
                let parts = [[start, at], [start + at, len - at]];
                parts.map(|part| Self::Gpu(device, memory, part))
            }
            Self::Slice(bytes) => {
                let (low, high) = bytes.split_at_mut(at);
                [low, high].map(Self::Slice)
            }
        }
    }

    /// `len` bytes from `start` on, which are in it.
    pub(crate) fn cut(self, start: usize, len: usize) -> Self {
        let [_, rest] = self.split_at(start);
        let [part, _] = rest.split_at(len);
        part
    }

    /// Notes where those who read the array find what became of a launch.
    pub(crate) fn note_writer(&self, failure: &Arc<Failure>) {
        match self {
            Self::Host(_, _, writers) => writers.add(failure),
            Self::Gpu(_, memory, _) => memory.shared.writers.add(failure),
            // Who reads a slice cannot be told: a stream tells it.
            Self::Slice(_) => {}
        }
    }

    /// Overwrites all bytes with what `make` writes.
    pub(crate) fn write(self, make: impl FnOnce(&mut [u8])) -> Result<()> {
        refuse("a write to an array")?;
        match self {
            Self::Host(_, bytes, _) | Self::Slice(bytes) => {
                make(bytes);
                Ok(())
            }
            Self::Gpu(_, memory, [start, len]) => {
                let mut bytes = HostMemory::allocate(len)?;
                make(bytes.bytes_mut());
                memory.write(start, bytes.bytes())
            }
        }
    }

    /// Sets all bytes to copies of a number.
    pub(crate) fn fill(self, number: &[u8]) -> Result<()> {
        refuse("a fill of an array")?;
        let (first, rest) = number.split_at(number.len() / 2);
        if let Self::Gpu(_, memory, [start, len]) = self {
            let word = match number.len() {
                1 | 2 | 4 => Some(number),
                _ => (first == rest).then_some(first),
            };
            if let Some(word) = word {
                return memory.fill(start, len, word);
            }
        }
        self.write(|bytes| {
            for target in bytes.chunks_exact_mut(number.len()) {
                target.copy_from_slice(number);
            }
        })
    }

    /// Overwrites all bytes with as many of another memory: on one GPU, without waiting.
    pub(crate) fn copy_from(self, source: Part<'_>) -> Result<()> {
        refuse("a copy of an array")?;
        if let (Self::Gpu(to, memory, [start, len]), Part::Gpu(from, other, [first, _])) =
            (&self, source)
            && to.shares_memory_with(from)
        {
            return memory.copy(*start, (other, first), *len);
        }
        let source = source.read()?;
        self.write(|bytes| bytes.copy_from_slice(&source))
    }
}
