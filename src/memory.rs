//! Host memory for arguments: bytes that start at a cache line, so every vector access is aligned.

use std::fmt;

use crate::error::{Error, Result};

/// Bytes of a cache line and of the widest vector.
const ALIGNMENT: usize = 64;

/// An aligned array of bytes.
pub(crate) struct HostMemory {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl HostMemory {
    /// `len` zero bytes, or an error when the system has not so many.
    pub(crate) fn allocate(len: usize) -> Result<Self> {
        let refused = || Error::Invalid(format!("no memory for {len} bytes"));
        let padded = len.checked_add(ALIGNMENT).ok_or_else(refused)?;
        // Asked for first, since a vector of zeros that does not fit ends the process.
        Vec::<u8>::new()
            .try_reserve_exact(padded)
            .map_err(|_| refused())?;
        Ok(Self::zeroed(len))
    }

    /// `len` zero bytes, where they are sure to fit.
    pub(crate) fn zeroed(len: usize) -> Self {
        let storage = vec![0; len + ALIGNMENT];
        let misalignment = storage.as_ptr().addr() % ALIGNMENT;
        let start = (ALIGNMENT - misalignment) % ALIGNMENT;
        Self {
            storage,
            start,
            len,
        }
    }

    /// A copy of `bytes`.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let mut memory = Self::zeroed(bytes.len());
        memory.bytes_mut().copy_from_slice(bytes);
        memory
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}

impl Clone for HostMemory {
    fn clone(&self) -> Self {
        Self::from_bytes(self.bytes())
    }
}

impl fmt::Debug for HostMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len)
    }
}
