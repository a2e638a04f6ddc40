//! Memory and streams of others: numbers of the program itself, and what another library made on a GPU.

#![expect(unsafe_code, reason = "memory of others is there by their word")]

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;

use exactile_core::ir::Number;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::buffer::{Buffer, Storage, size_in_memory};
use crate::cuda::GpuMemory;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Writers;
use crate::memory::HostMemory;
use crate::stream::Stream;

/// What keeps memory or a stream of others alive.
pub(crate) type Owner = Box<dyn Any + Send + Sync>;

/// Who has made a memory of a GPU.
pub(crate) struct Foreign {
    /// Where others use it.
    pub(crate) home: Option<Stream>,
    /// Goes when nobody uses it any more.
    pub(crate) owner: Owner,
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({:?})", self.home)
    }
}

/// Bytes of the host that others have made.
pub(crate) trait HostBytes: Send + Sync + 'static {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The bytes, to change; nothing where others read them.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
    /// What keeps them.
    fn owner_mut(&mut self) -> Option<&mut dyn Any>;
    /// The same.
    fn into_owner(self: Box<Self>) -> Owner;
}

impl<T: Number + IntoBytes + FromBytes + Immutable> HostBytes for Vec<T> {
    fn bytes(&self) -> &[u8] {
        self.as_slice().as_bytes()
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self.as_mut_slice().as_mut_bytes())
    }

    fn owner_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn into_owner(self: Box<Self>) -> Owner {
        self
    }
}

impl<T: Number + IntoBytes + FromBytes + Immutable> HostBytes for Arc<[T]> {
    fn bytes(&self) -> &[u8] {
        self.as_ref().as_bytes()
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Self::get_mut(self).map(|numbers| numbers.as_mut_bytes())
    }

    fn owner_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self)
    }

    fn into_owner(self: Box<Self>) -> Owner {
        self
    }
}

/// Bytes at an address.
struct RawBytes {
    start: NonNull<u8>,
    len: usize,
    owner: Owner,
}

// SAFETY: whoever made it gave the bytes to whoever has it, on any thread.
unsafe impl Send for RawBytes {}
// SAFETY: shared, it is only read.
unsafe impl Sync for RawBytes {}

impl HostBytes for RawBytes {
    fn bytes(&self) -> &[u8] {
        // SAFETY: whoever made it promised so many bytes, which nobody else writes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: whoever made it promised so many bytes, which nobody else reaches.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }

    // An owner is whatever keeps the bytes: even a list of numbers may hold others.
    fn owner_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    fn into_owner(self: Box<Self>) -> Owner {
        self.owner
    }
}

impl Storage {
    /// So many bytes at an address, on the host or on a GPU.
    ///
    /// # Safety
    /// As for [`Buffer::from_raw_parts`], or [`Buffer::from_raw_parts_in`] with a stream.
    pub(crate) unsafe fn of_others(
        device: &Device,
        start: *mut u8,
        len: usize,
        foreign: Foreign,
    ) -> Result<Self> {
        if let Some(gpu) = device.gpu() {
            let address = start.addr() as u64;
            // SAFETY: handed on to the caller.
            let memory = unsafe { GpuMemory::of_others(gpu, address, len, foreign) };
            return memory.map(Self::Gpu);
        }
        // A slice of nothing may be anywhere but at null.
        let empty = (len == 0).then(NonNull::dangling);
        let start = empty.or_else(|| NonNull::new(start));
        let start = start.ok_or_else(|| Error::Invalid(format!("{len} bytes at null")))?;
        let owner = foreign.owner;
        let memory = HostMemory::of_others(RawBytes { start, len, owner });
        Ok(Self::Host(memory, Writers::default()))
    }

    /// What keeps memory of others, if it is such, behind all that uses it.
    fn into_owner(self) -> Result<Option<Owner>> {
        match self {
            Self::Host(memory, writers) => {
                writers.tell()?;
                Ok(memory.into_owner())
            }
            Self::Gpu(mut memory) => Ok(memory.take_foreign()?.map(|foreign| foreign.owner)),
        }
    }
}

impl<T: Number> Buffer<T> {
    /// These numbers on `device`: on the host without a copy. [`into_vec`](Self::into_vec) gives them back.
    ///
    /// ```
    /// # use exactile::{Buffer, Device};
    /// let numbers = vec![1.0f32; 1000];
    /// let place = numbers.as_ptr();
    /// let buffer = Buffer::from_vec(&Device::cpu(), numbers)?;
    /// assert_eq!(buffer.into_vec()?.as_ptr(), place);
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn from_vec(device: &Device, numbers: Vec<T>) -> Result<Self>
    where
        T: IntoBytes + FromBytes + Immutable,
    {
        let len = numbers.len();
        let storage = Storage::of(device, HostMemory::of_others(numbers))?;
        Ok(Self::of_storage(device, storage, len))
    }

    /// These numbers on `device`: on the host without a copy until the first write, and without any where nobody else
    /// has them then.
    ///
    /// That copy ends the process when memory is short, as one of a `Vec` does.
    pub fn from_arc(device: &Device, numbers: Arc<[T]>) -> Result<Self>
    where
        T: IntoBytes + FromBytes + Immutable,
    {
        let len = numbers.len();
        let storage = Storage::of(device, HostMemory::of_others(numbers))?;
        Ok(Self::of_storage(device, storage, len))
    }

    /// The numbers: without a copy where [`from_vec`](Self::from_vec) took them over on the host. Waits for the launches
    /// before it.
    ///
    /// # Errors
    /// The first error of a launch that wrote the buffer that nobody was told.
    pub fn into_vec(mut self) -> Result<Vec<T>> {
        if let Storage::Host(memory, writers) = self.storage_mut() {
            let numbers = memory.owner_mut().and_then(|it| it.downcast_mut());
            if let Some(numbers) = numbers {
                writers.tell()?;
                return Ok(mem::take(numbers));
            }
        }
        self.to_vec()
    }

    /// `len` numbers at an address that others have made: of a GPU, or of the host where `device` is that. Nothing is copied.
    /// The owner goes when the buffer does, after all work that uses it has ended, for which the host waits then.
    ///
    /// Buffers of a GPU may overlap: launches that share bytes keep their order, and one launch that would write what another
    /// argument reaches is an error.
    ///
    /// # Safety
    /// There are so many numbers as long as `owner` is there. Work of others on them has ended, and there is none while the buffer
    /// is there, but for reads where nobody writes it. On the host no buffer that overlaps this one is read while this one
    /// is written, or written.
    ///
    /// # Errors
    /// The address is null, not a multiple of the size of a number, or not one of the GPU; or it overlaps two buffers that
    /// are apart.
    pub unsafe fn from_raw_parts(
        device: &Device,
        start: *mut T,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let (owner, home) = (Box::new(owner), None);
        // SAFETY: handed on to the caller.
        unsafe { Self::of_others(device, start, len, Foreign { home, owner }) }
    }

    /// The same where others use the numbers in `stream`: what they have put there comes before all work on the buffer, and when the buffer
    /// goes, all that they put there later comes after it. Nobody waits.
    ///
    /// # Safety
    /// There are so many numbers as long as `owner` is there, and while the buffer is there, others do nothing with them. They have used
    /// them, and will use them and give them back, in `stream` or behind it. On the host as for
    /// [`from_raw_parts`](Self::from_raw_parts).
    ///
    /// # Errors
    /// As there.
    pub unsafe fn from_raw_parts_in(
        stream: &Stream,
        start: *mut T,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let foreign = Foreign {
            home: Some(stream.clone()),
            owner: Box::new(owner),
        };
        // SAFETY: handed on to the caller.
        unsafe { Self::of_others(stream.device(), start, len, foreign) }
    }

    /// # Safety
    /// As for those two.
    unsafe fn of_others(
        device: &Device,
        start: *mut T,
        len: usize,
        foreign: Foreign,
    ) -> Result<Self> {
        let bytes = size_in_memory::<T>(len)?;
        let size = T::DTYPE.bytes() as usize;
        if !start.addr().is_multiple_of(size) {
            return Err(Error::Invalid(format!(
                "the address {start:p} is not a multiple of {size}, the size of a `{}`",
                T::DTYPE
            )));
        }
        // SAFETY: handed on to the caller.
        let storage = unsafe { Storage::of_others(device, start.cast(), bytes, foreign) }?;
        Ok(Self::of_storage(device, storage, len))
    }

    /// The owner that keeps the numbers, behind all work that uses them: for the stream of the owner, or for the host,
    /// which waits.
    ///
    /// # Errors
    /// The buffer was not made from memory of such an owner. On the host, the first error of a launch that wrote it.
    pub fn into_owner<O: Any>(self) -> Result<O> {
        let owner = self.into_storage().into_owner()?;
        let owner = owner.and_then(|owner| (owner as Box<dyn Any>).downcast().ok());
        owner.map(|owner| *owner).ok_or_else(|| {
            let name = std::any::type_name::<O>();
            Error::Invalid(format!("the buffer has no owner of the type `{name}`"))
        })
    }
}

impl Stream {
    /// A stream of a GPU that others have made, by the driver's handle, a `CUstream`; null stands for the default one. Launches put into it run in
    /// order with what others put there, and arrays have the order of all streams.
    ///
    /// When nobody has it any more, its owner is kept until another stream of others takes its place once its work has ended, or
    /// the device goes; an owner that owns
    /// nothing, such as `()`, says that the stream is there as long as the device.
    ///
    /// # Safety
    /// The handle is null or that of a stream which is there as long as `owner`. Nobody begins a capture of it while a call is under way
    /// that is handed it, or memory that is used in it.
    ///
    /// # Errors
    /// The device is no GPU, or the stream is of another device or context, or the one that means another stream on
    /// each thread.
    pub unsafe fn from_raw(
        device: &Device,
        handle: *mut c_void,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        let gpu = device.gpu().ok_or_else(|| {
            Error::Device(format!("the device `{device}` has no streams of a GPU"))
        })?;
        // SAFETY: handed on to the caller.
        let number = unsafe { gpu.adopt(handle, Box::new(owner)) }?;
        Ok(Self::of_line(device, number))
    }
}
