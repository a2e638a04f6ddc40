//! Memory of the host from and to which a GPU copies while the host goes on.

use std::marker::PhantomData;

use exactile_core::ir::Number;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::buffer::size_in_memory;
use crate::capture::refuse;
use crate::cuda::GpuPinned;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::HostMemory;
use crate::part::{Part, PartMut};
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::stream::Queue;

/// Numbers of the host at a fixed place, from and to which a GPU copies on its own: a copy is queued in a stream like a launch, and
/// runs beside the launches of other streams. On a device that is the host it is memory as any other, and a copy has ended when it
/// returns.
///
/// The host waits for copies where it takes the numbers.
///
/// ```
/// # use exactile::{Buffer, Device};
/// let device = Device::cpu();
/// let (copies, mut x) = (device.stream()?, Buffer::<f32>::zeros(&device, 4)?);
/// let mut pinned = device.pinned(4)?;
/// pinned.as_mut_slice()?.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
/// pinned.copy_to(&copies, x.slice_mut(..)?)?;
/// // Launches on other arrays come here.
/// pinned.copy_from(&copies, x.slice(..)?)?;
/// assert_eq!(pinned.as_slice()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Debug)]
pub struct Pinned<T> {
    device: Device,
    memory: Memory,
    len: usize,
    number: PhantomData<T>,
}

#[derive(Debug)]
enum Memory {
    Host(HostMemory),
    Gpu(GpuPinned),
}

impl Device {
    /// `len` zeros of the host from and to which this device copies while the host goes on.
    ///
    /// # Errors
    /// There is not so much memory, or the system does not let it be at a fixed place.
    pub fn pinned<T: Number>(&self, len: usize) -> Result<Pinned<T>> {
        let bytes = size_in_memory::<T>(len)?;
        let memory = match self.gpu() {
            None => Memory::Host(HostMemory::allocate(bytes)?),
            Some(gpu) => Memory::Gpu(GpuPinned::zeroed(gpu, bytes)?),
        };
        Ok(Pinned {
            device: self.clone(),
            memory,
            len,
            number: PhantomData,
        })
    }
}

impl<T: Number> Pinned<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The numbers. Waits for the copies to them, and not for those from them.
    ///
    /// # Errors
    /// The first error of a launch that wrote what was copied that nobody was told.
    pub fn as_slice(&self) -> Result<&[T]>
    where
        T: FromBytes + Immutable,
    {
        let bytes = match &self.memory {
            Memory::Host(memory) => memory.bytes(),
            Memory::Gpu(memory) => memory.bytes()?,
        };
        Ok(<[T]>::ref_from_bytes(bytes).expect(PLACED))
    }

    /// The numbers, to write. Waits for all copies from and to them.
    ///
    /// # Errors
    /// As for [`as_slice`](Self::as_slice).
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]>
    where
        T: FromBytes + IntoBytes,
    {
        let bytes = match &mut self.memory {
            Memory::Host(memory) => memory.bytes_mut(),
            Memory::Gpu(memory) => memory.bytes_mut()?,
        };
        Ok(<[T]>::mut_from_bytes(bytes).expect(PLACED))
    }

    /// Overwrites all numbers with those of a buffer, or of a part of one, in a stream. On a GPU nobody waits.
    ///
    /// # Errors
    /// There are more numbers, or fewer, or they or the stream are elsewhere. On the host, the first error of a launch that
    /// wrote them.
    pub fn copy_from(&mut self, queue: &impl Queue, source: BufferSlice<'_, T>) -> Result<()> {
        let number = self.number_of(queue, source)?;
        match (&mut self.memory, source.part) {
            (Memory::Gpu(memory), Part::Gpu(_, other, [start, len])) => match len {
                0 => Ok(()),
                _ => memory.copy_from(number, other, start),
            },
            (Memory::Host(memory), part) => {
                memory.bytes_mut().copy_from_slice(&part.read()?);
                Ok(())
            }
            (Memory::Gpu(_), Part::Host(..) | Part::Slice(_)) => unreachable!("{ELSEWHERE}"),
        }
    }

    /// Overwrites all numbers of a buffer, or of a part of one, with these, in a stream. On a GPU nobody waits.
    ///
    /// # Errors
    /// There are more numbers, or fewer, or they or the stream are elsewhere.
    pub fn copy_to(&self, queue: &impl Queue, target: BufferSliceMut<'_, T>) -> Result<()> {
        let number = self.number_of(queue, target.as_slice())?;
        match (&self.memory, target.part) {
            (Memory::Gpu(memory), PartMut::Gpu(_, other, [start, len])) => match len {
                0 => Ok(()),
                _ => memory.copy_to(number, other, start),
            },
            (Memory::Host(memory), part) => {
                part.write(|bytes| bytes.copy_from_slice(memory.bytes()))
            }
            (Memory::Gpu(_), PartMut::Host(..) | PartMut::Slice(_)) => {
                unreachable!("{ELSEWHERE}")
            }
        }
    }

    /// The number of a stream, where it and the other numbers are on the device of these.
    fn number_of(&self, queue: &impl Queue, other: BufferSlice<'_, T>) -> Result<usize> {
        refuse("a copy of an array")?;
        if other.len() != self.len {
            return Err(Error::ShapeMismatch {
                found: vec![other.len()],
                expected: vec![self.len],
            });
        }
        let (device, number) = queue.place();
        let stream = (!device.shares_memory_with(&self.device)).then(|| device.to_string());
        match other.part.elsewhere(&self.device).or(stream) {
            None => Ok(number),
            Some(found) => Err(Error::Invalid(format!(
                "a copy on {found}, expected {}",
                self.device
            ))),
        }
    }
}

/// The broken invariant behind views of bytes as numbers that do not fit.
pub(crate) const PLACED: &str =
    "broken invariant: memory of numbers begins and ends where numbers may";
const ELSEWHERE: &str = "broken invariant: what is elsewhere is refused before a copy";
