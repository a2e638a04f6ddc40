//! Arrays of one type on a device.

use std::borrow::Cow;
use std::marker::PhantomData;

use exactile_core::ir::Number;

use crate::array::{read_numbers, write_numbers};
use crate::capture::refuse;
use crate::cuda::GpuMemory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Writers;
use crate::memory::HostMemory;
use crate::part::{Part, PartMut};

/// The byte that [`Buffer::spoil`] writes: no kernel of sense writes numbers of it.
pub const POISON: u8 = 0xa5;

/// Where the bytes of a buffer are.
#[derive(Debug)]
pub(crate) enum Storage {
    /// In host memory, with the launches that failed to write it.
    Host(HostMemory, Writers),
    /// On a GPU.
    Gpu(GpuMemory),
}

impl Storage {
    /// `len` zero bytes.
    pub(crate) fn zeroed(device: &Device, len: usize) -> Result<Self> {
        match device.gpu() {
            None => Ok(Self::Host(HostMemory::allocate(len)?, Writers::default())),
            Some(gpu) => GpuMemory::zeroed(gpu, len).map(Self::Gpu),
        }
    }

    /// These bytes.
    pub(crate) fn of(device: &Device, memory: HostMemory) -> Result<Self> {
        match device.gpu() {
            None => Ok(Self::Host(memory, Writers::default())),
            Some(gpu) => GpuMemory::from_bytes(gpu, memory.bytes()).map(Self::Gpu),
        }
    }

    /// A copy of `bytes`.
    pub(crate) fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Self> {
        match device.gpu() {
            None => Self::of(device, HostMemory::from_bytes(bytes)?),
            Some(gpu) => GpuMemory::from_bytes(gpu, bytes).map(Self::Gpu),
        }
    }

    /// Another memory of the device with the same bytes.
    fn try_clone(&self) -> Result<Self> {
        match self {
            Self::Host(memory, writers) => {
                writers.tell()?;
                let copy = HostMemory::from_bytes(memory.bytes())?;
                Ok(Self::Host(copy, Writers::default()))
            }
            Self::Gpu(memory) => memory.try_clone().map(Self::Gpu),
        }
    }

    /// The launches that wrote it, unless others may have read what they wrote of another part.
    fn own_writers(&self) -> Option<&Writers> {
        match self {
            Self::Host(_, writers) => Some(writers),
            Self::Gpu(memory) => memory.own_writers(),
        }
    }
}

/// `len` numbers on a device.
///
/// ```
/// # use exactile::{Buffer, Device};
/// let x = Buffer::from_slice(&Device::cpu(), &[1.0f32, 2.0])?;
/// assert_eq!(x.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Debug)]
pub struct Buffer<T> {
    device: Device,
    storage: Storage,
    len: usize,
    number: PhantomData<T>,
}

impl<T: Number> Buffer<T> {
    /// A copy of `numbers` on `device`.
    ///
    /// ```
    /// # use exactile::{Buffer, Device};
    /// let numbers = vec![1u8, 2, 3];
    /// let buffer = Buffer::from_slice(&Device::cpu(), &numbers)?;
    /// assert_eq!((buffer.len(), buffer.to_vec()?), (3, numbers));
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn from_slice(device: &Device, numbers: &[T]) -> Result<Self> {
        let mut memory = HostMemory::allocate(size_in_memory::<T>(numbers.len())?)?;
        write_numbers(numbers, memory.bytes_mut());
        let storage = Storage::of(device, memory)?;
        Ok(Self::of_storage(device, storage, numbers.len()))
    }

    /// `len` zeros on `device`.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        let storage = Storage::zeroed(device, size_in_memory::<T>(len)?)?;
        Ok(Self::of_storage(device, storage, len))
    }

    pub(crate) fn of_storage(device: &Device, storage: Storage, len: usize) -> Self {
        Self {
            device: device.clone(),
            storage,
            len,
            number: PhantomData,
        }
    }

    pub(crate) fn storage_mut(&mut self) -> &mut Storage {
        &mut self.storage
    }

    pub(crate) fn into_storage(self) -> Storage {
        self.storage
    }

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

    /// The numbers. Waits for the launches before it.
    ///
    /// # Errors
    /// The first error of a launch that wrote the buffer that nobody was told.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        read_numbers(&self.read_bytes()?)
    }

    /// Overwrites all elements.
    ///
    /// # Errors
    /// There are more numbers than elements, or fewer.
    pub fn copy_from_slice(&mut self, numbers: &[T]) -> Result<()> {
        self.overwrite(|this| this.all_mut().copy_from_slice(numbers))
    }

    /// Overwrites all elements with one number.
    pub fn fill(&mut self, number: T) -> Result<()> {
        self.overwrite(|this| this.all_mut().fill(number))
    }

    /// Overwrites all elements with those of another buffer. On one GPU nothing passes the host, and nobody waits.
    ///
    /// # Errors
    /// There are more elements, or fewer. Where the host copies, the first error of a launch that wrote them; a GPU
    /// tells it when the copy is read.
    pub fn copy_from(&mut self, other: &Self) -> Result<()> {
        self.overwrite(|this| this.all_mut().copy_from(other.all()))
    }

    /// Another buffer on the device with the same numbers.
    ///
    /// # Errors
    /// There is not so much memory. Otherwise those of [`copy_from`](Self::copy_from).
    pub fn try_clone(&self) -> Result<Self> {
        refuse("a copy of an array")?;
        let storage = self.storage.try_clone()?;
        Ok(Self::of_storage(&self.device, storage, self.len))
    }

    /// Overwrites every byte with a pattern that no result is likely to have, so that a kernel that
    /// writes too little is found out.
    pub fn spoil(&mut self) -> Result<()> {
        self.overwrite(|this| this.part_mut().fill(&[POISON]))
    }

    /// Does what writes all elements: who wrote them before is forgotten, unless it is an error.
    fn overwrite(&mut self, work: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let earlier = self.storage.own_writers().map(Writers::take);
        let done = work(self);
        if let (Err(_), Some(writers), Some(earlier)) = (&done, self.storage.own_writers(), earlier)
        {
            writers.put_back(earlier);
        }
        done
    }

    /// Takes the numbers as they are, whatever wrote them.
    pub(crate) fn forget_writers(&self) {
        self.storage.own_writers().map(Writers::take);
    }

    /// A copy on another device, or on the same one.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        let storage = Storage::from_bytes(device, &self.read_bytes()?)?;
        Ok(Self::of_storage(device, storage, self.len))
    }

    /// The bytes, on the host.
    pub(crate) fn read_bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.part().read()
    }

    pub(crate) fn part(&self) -> Part<'_> {
        Part::of(&self.device, &self.storage)
    }

    pub(crate) fn part_mut(&mut self) -> PartMut<'_> {
        PartMut::of(&self.device, &mut self.storage)
    }
}

pub(crate) fn size_in_memory<T: Number>(len: usize) -> Result<usize> {
    len.checked_mul(T::DTYPE.bytes() as usize)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::Invalid(format!("{len} elements of `{}` are too many", T::DTYPE)))
}
