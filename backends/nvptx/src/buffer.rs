//! Memory of a device: from a pool, in the order of a stream, or from the driver at once.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ptr::null_mut;

use cudarc::driver::sys::{
    self, CUdevice_attribute, CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUpointer_attribute,
};
use exactile_core::ir::Access;
use exactile_core::launch::Passed;

use crate::driver::{Context, call, device_attribute};
use crate::error::{Error, Result};
use crate::stream::Stream;

/// A pool of memory of a device that keeps what is freed, unless the device or the driver has none.
pub(crate) fn pool_of(device: sys::CUdevice) -> Option<CUmemoryPool> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    let has_pools = device_attribute(device, attribute).is_ok_and(|it| it != 0);
    has_pools.then(|| new_pool(device).ok()).flatten()
}

fn new_pool(device: sys::CUdevice) -> Result<CUmemoryPool> {
    let properties = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: device,
        },
        win32SecurityAttributes: null_mut(),
        maxSize: 0,
        usage: 0,
        reserved: [0; _],
    };
    let mut pool = null_mut();
    call!(cuMemPoolCreate(&mut pool, &properties))?;
    // Else each wait for the device would give the memory back to the system.
    let mut kept = u64::MAX;
    let kept = std::ptr::from_mut(&mut kept).cast();
    let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    call!(cuMemPoolSetAttribute(pool, threshold, kept))?;
    Ok(pool)
}

/// Who has given memory, and takes it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// The pool of the context.
    Pool,
    /// The driver, which waits for the device before it takes it back.
    Driver,
    /// It was given back, or is that of others.
    Nobody,
}

/// Bytes of device memory, given back when dropped: after waiting for the device, unless
/// [`DeviceBuffer::free_in`] has done it.
#[derive(Debug)]
pub struct DeviceBuffer {
    context: Context,
    address: u64,
    bytes: usize,
    source: Source,
}

impl Context {
    /// Memory of `bytes` zero bytes for all streams; its address is a multiple of 256.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceBuffer> {
        let buffer = self.driver_memory(bytes)?;
        call!(cuMemsetD8_v2(buffer.address, 0, bytes.max(1)))?;
        call!(cuCtxSynchronize())?;
        Ok(buffer)
    }

    /// Memory of the driver, which holds whatever was there.
    pub(crate) fn driver_memory(&self, bytes: usize) -> Result<DeviceBuffer> {
        self.make_current()?;
        let mut address = 0;
        // The driver refuses to allocate nothing.
        let mut allocate = || call!(cuMemAlloc_v2(&mut address, bytes.max(1)));
        if allocate().is_err() {
            // What is freed may be in the pool.
            self.trim()?;
            allocate()?;
        }
        Ok(DeviceBuffer {
            context: self.clone(),
            address,
            bytes,
            source: Source::Driver,
        })
    }

    /// Memory of `bytes` bytes for work that is put into `stream` from now on, and for what waits for it; its address is
    /// a multiple of 256. What it holds is left by others: it is written before anybody reads it. Nobody waits, unless
    /// memory is short.
    pub fn allocate_in(&self, bytes: usize, stream: &Stream) -> Result<DeviceBuffer> {
        let Some(pool) = self.pool() else {
            return self.driver_memory(bytes);
        };
        self.make_current()?;
        let mut address = 0;
        let size = bytes.max(1);
        let mut allocate = || {
            call!(cuMemAllocFromPoolAsync(
                &mut address,
                size,
                pool,
                stream.stream
            ))
        };
        if allocate().is_err() {
            // What is freed may still be waiting for work, or be in pieces.
            self.trim()?;
            allocate()?;
        }
        Ok(DeviceBuffer {
            context: self.clone(),
            address,
            bytes,
            source: Source::Pool,
        })
    }

    /// Memory that others have made, which is not given back. The error says that it is none of this device.
    ///
    /// # Safety
    /// There are so many bytes at the address as long as the buffer is there.
    pub unsafe fn of_others(&self, address: u64, bytes: usize) -> Result<DeviceBuffer> {
        self.make_current()?;
        if bytes > 0 {
            let mut device: sys::CUdevice = 0;
            let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
            let found = std::ptr::from_mut(&mut device).cast();
            let known = call!(cuPointerGetAttribute(found, attribute, address));
            if known.is_err() || device != self.device() {
                return Err(Error::Arguments(format!(
                    "the address {address:#x} is not that of memory of this device"
                )));
            }
        }
        Ok(DeviceBuffer {
            context: self.clone(),
            address,
            bytes,
            source: Source::Nobody,
        })
    }

    /// Waits for the device, and gives the memory that nobody has back to the system.
    pub fn trim(&self) -> Result<()> {
        self.make_current()?;
        call!(cuCtxSynchronize())?;
        match self.pool() {
            Some(pool) => call!(cuMemPoolTrimTo(pool, 0)),
            None => Ok(()),
        }
    }
}

impl DeviceBuffer {
    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The address on the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// What a launch hands on of it.
    #[must_use]
    pub fn passed(&self, access: Access) -> Passed {
        Passed::Memory {
            address: self.address,
            bytes: self.bytes as u64,
            access,
        }
    }

    /// Where `len` bytes from `start` on are.
    fn place(&self, start: usize, len: usize) -> Result<u64> {
        if start.checked_add(len).is_some_and(|end| end <= self.bytes) {
            return Ok(self.address + start as u64);
        }
        Err(Error::Arguments(format!(
            "a copy of {len} bytes at {start}, found {} on the device",
            self.bytes
        )))
    }

    /// Copies bytes from the host to where they begin here, after the work in `stream`, and waits for it.
    pub fn copy_from_host(&self, start: usize, bytes: &[u8], stream: &Stream) -> Result<()> {
        // SAFETY: the bytes are borrowed until the copy has ended.
        unsafe { self.queue_from_host(start, bytes.as_ptr(), bytes.len(), stream) }?;
        stream.synchronize()
    }

    /// Copies the bytes that begin at `start` to the host, after the work in `stream`, and waits for it.
    pub fn copy_to_host(&self, start: usize, bytes: &mut [u8], stream: &Stream) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.queue_to_host(start, bytes.as_mut_ptr(), bytes.len(), stream) }?;
        stream.synchronize()
    }

    /// Copies bytes of the host to where they begin here, in `stream`.
    ///
    /// # Safety
    /// There are so many bytes at the address until the copy has ended, which nobody writes before.
    pub unsafe fn queue_from_host(
        &self,
        start: usize,
        source: *const u8,
        len: usize,
        stream: &Stream,
    ) -> Result<()> {
        let target = self.place(start, len)?;
        self.context.make_current()?;
        let source = source.cast();
        call!(cuMemcpyHtoDAsync_v2(target, source, len, stream.stream))
    }

    /// Copies the bytes that begin at `start` to the host, in `stream`.
    ///
    /// # Safety
    /// There are so many bytes at the address until the copy has ended, which nobody reads or writes before.
    pub unsafe fn queue_to_host(
        &self,
        start: usize,
        target: *mut u8,
        len: usize,
        stream: &Stream,
    ) -> Result<()> {
        let source = self.place(start, len)?;
        self.context.make_current()?;
        let target = target.cast();
        call!(cuMemcpyDtoHAsync_v2(target, source, len, stream.stream))
    }

    /// Sets `len` bytes from `start` on, of whole numbers of 1, 2 or 4 bytes, to copies of one, in `stream`.
    pub fn fill(&self, start: usize, len: usize, number: &[u8], stream: &Stream) -> Result<()> {
        let place = self.place(start, len)?;
        if len == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        let stream = stream.stream;
        match *number {
            [byte] => call!(cuMemsetD8Async(place, byte, len, stream)),
            [a, b] => {
                let number = u16::from_le_bytes([a, b]);
                call!(cuMemsetD16Async(place, number, len / 2, stream))
            }
            [a, b, c, d] => {
                let number = u32::from_le_bytes([a, b, c, d]);
                call!(cuMemsetD32Async(place, number, len / 4, stream))
            }
            _ => Err(Error::Arguments(format!(
                "a fill by {} bytes, expected 1, 2 or 4",
                number.len()
            ))),
        }
    }

    /// Copies `len` bytes of another memory of the device from `from` on to where they begin here, in `stream`.
    pub fn copy_from(
        &self,
        start: usize,
        (source, from): (&Self, usize),
        len: usize,
        stream: &Stream,
    ) -> Result<()> {
        let (target, source) = (self.place(start, len)?, source.place(from, len)?);
        self.context.make_current()?;
        call!(cuMemcpyDtoDAsync_v2(target, source, len, stream.stream))
    }

    /// Gives memory of a pool back after the work that is in `stream` now, without waiting. All work on it is in this
    /// stream, or what the stream waits for.
    pub fn free_in(&mut self, stream: &Stream) -> Result<()> {
        if self.source == Source::Pool {
            self.context.make_current()?;
            call!(cuMemFreeAsync(self.address, stream.stream))?;
            self.source = Source::Nobody;
        }
        Ok(())
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.source == Source::Nobody {
            return;
        }
        // As for the context: an error has nobody to go to.
        let _ = self.context.make_current();
        if self.source == Source::Pool {
            let _ = call!(cuCtxSynchronize());
        }
        let _ = call!(cuMemFree_v2(self.address));
    }
}
