//! Host memory for arguments: bytes that start at a cache line, so every vector access is aligned, or those of others.

use std::alloc::{Layout, handle_alloc_error};
use std::any::Any;
use std::fmt;

use exactile_core::target::Target;
use memmap2::MmapMut;

use crate::error::{Error, Result};
use crate::foreign::{HostBytes, Owner};

/// Bytes of a cache line.
const LINE: usize = Target::CPU.line_bytes as usize;

/// From so many bytes on, memory is mapped and asks for huge pages: streaming through small ones
/// spends its time on address translation.
const MAPPED_FROM: usize = 4 << 20;

/// An aligned array of bytes.
pub struct HostMemory {
    storage: Storage,
    len: usize,
}

enum Storage {
    /// The array starts at the offset.
    Heap(Vec<u8>, usize),
    /// The array is the mapping, which starts at a page.
    Mapped(MmapMut),
    /// The array is that of others.
    Others(Box<dyn HostBytes>),
}

/// `len` zero bytes of their own pages, if the system has them and `len` is worth it.
fn map(len: usize) -> Option<Storage> {
    if len < MAPPED_FROM {
        return None;
    }
    let mapping = MmapMut::map_anon(len).ok()?;
    #[cfg(target_os = "linux")]
    {
        // Only advice: a kernel without huge pages refuses it, and the mapping is as good.
        let _ = mapping.advise(memmap2::Advice::HugePage);
    }
    Some(Storage::Mapped(mapping))
}

impl HostMemory {
    /// `len` zero bytes, or an error when the system has not so many.
    pub fn allocate(len: usize) -> Result<Self> {
        if let Some(storage) = map(len) {
            return Ok(Self { storage, len });
        }
        let refused = || Error::Memory { bytes: len };
        let padded = len.checked_add(LINE).ok_or_else(refused)?;
        // A vector of zeros that does not fit would end the process.
        let mut heap = Vec::new();
        heap.try_reserve_exact(padded).map_err(|_| refused())?;
        heap.resize(padded, 0);
        let misalignment = heap.as_ptr().addr() % LINE;
        let storage = Storage::Heap(heap, (LINE - misalignment) % LINE);
        Ok(Self { storage, len })
    }

    /// `len` zero bytes. The process ends when the system has not so many.
    pub fn zeroed(len: usize) -> Self {
        Self::allocate(len).unwrap_or_else(|_| out_of_memory(len))
    }

    /// A copy of `bytes`, or an error when the system has not so much memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut memory = Self::allocate(bytes.len())?;
        memory.bytes_mut().copy_from_slice(bytes);
        Ok(memory)
    }

    /// What others have, without a copy.
    pub(crate) fn of_others(bytes: impl HostBytes) -> Self {
        Self {
            len: bytes.bytes().len(),
            storage: Storage::Others(Box::new(bytes)),
        }
    }

    /// What keeps memory of others.
    pub(crate) fn owner_mut(&mut self) -> Option<&mut dyn Any> {
        match &mut self.storage {
            Storage::Others(others) => others.owner_mut(),
            Storage::Heap(..) | Storage::Mapped(_) => None,
        }
    }

    /// The same.
    pub(crate) fn into_owner(self) -> Option<Owner> {
        match self.storage {
            Storage::Others(others) => Some(others.into_owner()),
            Storage::Heap(..) | Storage::Mapped(_) => None,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.storage {
            Storage::Heap(heap, start) => &heap[*start..][..self.len],
            Storage::Mapped(mapping) => mapping,
            Storage::Others(others) => others.bytes(),
        }
    }

    fn is_read_by_others(&mut self) -> bool {
        match &mut self.storage {
            Storage::Others(others) => others.bytes_mut().is_none(),
            Storage::Heap(..) | Storage::Mapped(_) => false,
        }
    }

    /// The bytes, to change: those of a copy from now on where others read them. The process ends when the system has
    /// not so much memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if self.is_read_by_others() {
            *self = self.clone();
        }
        match &mut self.storage {
            Storage::Others(others) => others.bytes_mut().unwrap_or_default(),
            Storage::Heap(heap, start) => &mut heap[*start..][..self.len],
            Storage::Mapped(mapping) => mapping,
        }
    }
}

impl Clone for HostMemory {
    fn clone(&self) -> Self {
        Self::from_bytes(self.bytes()).unwrap_or_else(|_| out_of_memory(self.len))
    }
}

fn out_of_memory(len: usize) -> ! {
    let layout = Layout::array::<u8>(len).unwrap_or(Layout::new::<u8>());
    handle_alloc_error(layout)
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}
