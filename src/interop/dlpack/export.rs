//! What another library is given.

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use exactile_core::ir::Number;

use super::{
    CPU, CUDA, ElementType, ManagedTensor, ManagedTensorVersioned, Place, Tensor, VERSION,
    element_of,
};
use crate::buffer::{Buffer, Storage};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::part::PartMut;
use crate::stream::Stream;

/// A buffer that another library is given by DLPack as a row-major array, without a copy: [`into_raw`](Self::into_raw) or
/// [`into_versioned`](Self::into_versioned) for it. Its memory goes when that library calls the deleter, from whatever
/// thread.
pub struct Exported(Box<Held>);

/// The memory with the numbers that the structure points to.
struct Held {
    device: Device,
    storage: Storage,
    element: ElementType,
    place: Place,
    shape: Vec<i64>,
    strides: Vec<i64>,
    reader: Option<Stream>,
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exported({:?} on {})", self.0.shape, self.0.device)
    }
}

impl Exported {
    /// Gives all of a buffer away. On a GPU, what is put into `reader` from now on comes after the work on the buffer, and its
    /// memory goes behind what is there when the deleter is called; nobody waits. Without a reader the host waits for the
    /// work on the buffer now, and for all work on the GPU when the deleter is called.
    ///
    /// # Errors
    /// The extents are not those of as many elements. The first error of a launch that wrote the buffer, where the host
    /// waits.
    pub fn new<T: Number>(
        buffer: Buffer<T>,
        extents: &[usize],
        reader: Option<&Stream>,
    ) -> Result<Self> {
        let device = buffer.device().clone();
        let mut extents_left = extents.iter();
        let count = extents_left.try_fold(1_usize, |count, &it| count.checked_mul(it));
        if count != Some(buffer.len()) {
            return Err(Error::ShapeMismatch {
                found: vec![buffer.len()],
                expected: extents.to_vec(),
            });
        }
        if let Some(reader) = reader
            && !reader.device().shares_memory_with(&device)
        {
            let device = reader.device();
            return Err(Error::Invalid(format!(
                "the reader is a stream of {device}"
            )));
        }
        let held = Held {
            storage: buffer.into_storage(),
            element: element_of(T::DTYPE)?,
            place: place_of(&device),
            shape: extents.iter().map(number).collect(),
            strides: strides_of(extents),
            reader: reader.cloned(),
            device,
        };
        held.hand_over()?;
        Ok(Self(Box::new(held)))
    }

    /// The structure without a version, for whoever calls its deleter.
    #[must_use = "nobody else frees it"]
    pub fn into_raw(self) -> *mut ManagedTensor {
        let (tensor, context) = self.into_parts();
        Box::into_raw(Box::new(ManagedTensor {
            tensor,
            context,
            deleter: Some(delete),
        }))
    }

    /// The structure with a version, for whoever calls its deleter.
    #[must_use = "nobody else frees it"]
    pub fn into_versioned(self) -> *mut ManagedTensorVersioned {
        let (tensor, context) = self.into_parts();
        Box::into_raw(Box::new(ManagedTensorVersioned {
            version: VERSION,
            context,
            deleter: Some(delete_versioned),
            flags: 0,
            tensor,
        }))
    }

    fn into_parts(self) -> (Tensor, *mut c_void) {
        let held = Box::leak(self.0);
        let tensor = Tensor {
            data: held.address(),
            place: held.place,
            rank: i32::try_from(held.shape.len()).unwrap_or(i32::MAX),
            element: held.element,
            shape: held.shape.as_mut_ptr(),
            strides: held.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, std::ptr::from_mut(held).cast())
    }
}

fn place_of(device: &Device) -> Place {
    match device.kind() {
        DeviceKind::Cuda(ordinal) => Place {
            kind: CUDA,
            ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
        },
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => Place {
            kind: CPU,
            ordinal: 0,
        },
    }
}

/// Only one that never counts is larger.
fn number(extent: &usize) -> i64 {
    i64::try_from(*extent).unwrap_or(i64::MAX)
}

/// Row-major without gaps.
fn strides_of(extents: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; extents.len()];
    let mut stride = 1_usize;
    for (slot, extent) in strides.iter_mut().zip(extents).rev() {
        *slot = number(&stride);
        stride = stride.saturating_mul((*extent).max(1));
    }
    strides
}

impl Held {
    fn address(&mut self) -> *mut c_void {
        match PartMut::of(&self.device, &mut self.storage) {
            PartMut::Host(_, bytes, _) | PartMut::Slice(bytes) => bytes.as_mut_ptr().cast(),
            // The host never follows it.
            PartMut::Gpu(_, memory, _) => {
                std::ptr::without_provenance_mut(memory.address() as usize)
            }
        }
    }

    /// The reader may use the memory from now on.
    fn hand_over(&self) -> Result<()> {
        match &self.storage {
            Storage::Host(_, writers) => writers.tell(),
            Storage::Gpu(memory) => {
                memory.leave_to(self.reader.as_ref())?;
                match self.reader {
                    Some(_) => Ok(()),
                    None => memory.shared.writers.tell(),
                }
            }
        }
    }

    /// The reader does nothing more with it.
    fn take_back(&self) -> Result<()> {
        match (&self.storage, &self.reader) {
            (Storage::Host(..), _) => Ok(()),
            (Storage::Gpu(memory), Some(reader)) => memory.note_all_in(reader),
            (Storage::Gpu(memory), None) => memory.wait_for_all(),
        }
    }
}

/// Frees what the context of a structure holds.
///
/// # Safety
/// It is that of [`Exported::into_parts`], given once.
unsafe fn free(context: *mut c_void) {
    // SAFETY: handed on to the caller.
    let held = unsafe { Box::from_raw(context.cast::<Held>()) };
    // A panic must not reach C; there is none but in a broken driver.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // Where that fails, the device is lost.
        let _ = held.take_back();
        drop(held);
    }));
}

/// # Safety
/// It is a structure of [`Exported::into_raw`], or null, given once.
unsafe extern "C" fn delete(tensor: *mut ManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: handed on to the caller.
        unsafe { free(Box::from_raw(tensor).context) };
    }
}

/// # Safety
/// It is a structure of [`Exported::into_versioned`], or null, given once.
unsafe extern "C" fn delete_versioned(tensor: *mut ManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: handed on to the caller.
        unsafe { free(Box::from_raw(tensor).context) };
    }
}
