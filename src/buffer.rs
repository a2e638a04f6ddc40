//! Arrays of one type on a device.

use std::borrow::Cow;
use std::marker::PhantomData;

use exactile_core::ir::{Access, Number};
use exactile_core::launch::Passed;

use crate::array::{read_numbers, write_numbers};
use crate::cuda::GpuMemory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Writers;
use crate::memory::HostMemory;

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

    /// A copy of `bytes`.
    pub(crate) fn from_bytes(device: &Device, bytes: &[u8]) -> Result<Self> {
        match device.gpu() {
            None => Ok(Self::Host(
                HostMemory::from_bytes(bytes)?,
                Writers::default(),
            )),
            Some(gpu) => {
                let mut copy = GpuMemory::zeroed(gpu, bytes.len())?;
                copy.write(bytes)?;
                Ok(Self::Gpu(copy))
            }
        }
    }

    /// Overwrites all elements.
    fn write_numbers<T: Number>(&mut self, numbers: &[T]) -> Result<()> {
        match self {
            Self::Host(memory, writers) => {
                writers.clear();
                write_numbers(numbers, memory.bytes_mut());
                Ok(())
            }
            Self::Gpu(memory) => {
                let mut bytes = HostMemory::allocate(memory.len())?;
                write_numbers(numbers, bytes.bytes_mut());
                memory.write(bytes.bytes())
            }
        }
    }

    /// What code is handed for it.
    pub(crate) fn passed(&self, access: Access) -> Passed {
        match self {
            Self::Host(memory, _) => Passed::of_host(memory.bytes(), access),
            Self::Gpu(memory) => memory.passed(access),
        }
    }

    /// The bytes, on the host: a copy only where they are on a GPU. Tells an error of what wrote them.
    pub(crate) fn read(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Host(memory, writers) => {
                writers.tell()?;
                Ok(Cow::Borrowed(memory.bytes()))
            }
            Self::Gpu(memory) => memory.read().map(Cow::Owned),
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
        let mut buffer = Self::zeros(device, numbers.len())?;
        buffer.storage.write_numbers(numbers)?;
        Ok(buffer)
    }

    /// `len` zeros on `device`.
    pub fn zeros(device: &Device, len: usize) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            storage: Storage::zeroed(device, size_in_memory::<T>(len)?)?,
            len,
            number: PhantomData,
        })
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
    pub fn copy_from_slice(&mut self, numbers: &[T]) -> Result<()> {
        if numbers.len() != self.len {
            return Err(Error::ShapeMismatch {
                found: vec![numbers.len()],
                expected: vec![self.len],
            });
        }
        self.storage.write_numbers(numbers)
    }

    /// Overwrites every byte with a pattern that no result is likely to have, so that a kernel that
    /// writes too little is found out.
    pub fn spoil(&mut self) -> Result<()> {
        match &mut self.storage {
            Storage::Host(memory, writers) => {
                writers.clear();
                memory.bytes_mut().fill(POISON);
                Ok(())
            }
            Storage::Gpu(memory) => memory.fill(POISON),
        }
    }

    /// A copy on another device, or on the same one.
    pub fn to_device(&self, device: &Device) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            storage: Storage::from_bytes(device, &self.read_bytes()?)?,
            len: self.len,
            number: PhantomData,
        })
    }

    /// The bytes, on the host.
    pub(crate) fn read_bytes(&self) -> Result<Cow<'_, [u8]>> {
        self.storage.read()
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(crate) fn parts_mut(&mut self) -> (&Device, &mut Storage) {
        (&self.device, &mut self.storage)
    }
}

fn size_in_memory<T: Number>(len: usize) -> Result<usize> {
    len.checked_mul(T::DTYPE.bytes() as usize)
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| Error::Invalid(format!("{len} elements of `{}` are too many", T::DTYPE)))
}
