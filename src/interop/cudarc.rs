//! Memory and streams of `cudarc`: slices as arguments of launches, without copies, in the order of the streams of both.
//!
//! A slice is [lent](lend) for a while, or [taken over](take) and [given back](give_back). What `cudarc` has put into the stream
//! comes before the launches on the slice, and what it puts there later after them; nobody waits.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use exactile::interop::cudarc::{lend, lend_mut};
//! use exactile::prelude::*;
//!
//! #[kernel]
//! fn double(x: Ptr<f32>, out: PtrMut<f32>) {
//!     let at = arange(0, 4);
//!     store(out + at, load(x + at) * 2.0);
//! }
//!
//! let device = Device::cuda(0)?;
//! let stream = cudarc::driver::CudaContext::new(0)?.new_stream()?;
//! let x = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let mut out = stream.alloc_zeros(4)?;
//! lend(&device, &stream, &x, |x| {
//!     lend_mut(&device, &stream, &mut out, |out| {
//!         double().launch(&device, 1, (x, out))
//!     })
//! })?;
//! assert_eq!(stream.clone_dtoh(&out)?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(())
//! # }
//! ```

#![expect(unsafe_code, reason = "slices are handed on as addresses")]

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use exactile_core::ir::Number;

use crate::buffer::Buffer;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::stream::Stream;

/// A stream of `cudarc` as one that launches are put into, in order with what `cudarc` puts there. A stream that is being captured is
/// refused; another thread must not begin a capture of it while a launch is being put there, which nobody can see.
///
/// # Errors
/// It is a stream of another device or of another context than the primary one, or the default stream of a thread.
pub fn stream(device: &Device, stream: &Arc<CudaStream>) -> Result<Stream> {
    let context = stream.context();
    if device.kind() != DeviceKind::Cuda(context.ordinal()) || !context.is_primary() {
        let ordinal = context.ordinal();
        return Err(Error::Invalid(format!(
            "the stream is one of cuda:{ordinal} or of a context of its own, expected the primary context of {device}"
        )));
    }
    let handle = stream.cu_stream().cast();
    // SAFETY: the stream is there as long as the reference to it that is kept.
    unsafe { Stream::from_raw(device, handle, Arc::clone(stream)) }
}

/// Lends a slice to the launches of `work`, which read it.
///
/// # Errors
/// Those of [`stream`] and of `work`; the slice is one of another device.
pub fn lend<T: Number, R>(
    device: &Device,
    used_in: &Arc<CudaStream>,
    slice: &CudaSlice<T>,
    work: impl FnOnce(BufferSlice<'_, T>) -> Result<R>,
) -> Result<R> {
    let home = stream(device, used_in)?;
    // It notes that the slice was read in the stream when it goes, behind the launches.
    let (address, _noted) = slice.device_ptr(used_in);
    // SAFETY: the slice is borrowed until the stream has been told to wait for the launches.
    let buffer = unsafe { borrowed(&home, address, slice.len()) }?;
    let result = work(buffer.all());
    drop(buffer);
    result
}

/// Lends a slice to the launches of `work`, which may write it.
///
/// # Errors
/// Those of [`stream`] and of `work`; the slice is one of another device.
pub fn lend_mut<T: Number, R>(
    device: &Device,
    used_in: &Arc<CudaStream>,
    slice: &mut CudaSlice<T>,
    work: impl FnOnce(BufferSliceMut<'_, T>) -> Result<R>,
) -> Result<R> {
    let home = stream(device, used_in)?;
    let len = slice.len();
    let (address, _noted) = slice.device_ptr_mut(used_in);
    // SAFETY: as above.
    let mut buffer = unsafe { borrowed(&home, address, len) }?;
    let result = work(buffer.all_mut());
    drop(buffer);
    result
}

/// # Safety
/// The numbers are there until the buffer has gone, and others use them in this stream alone.
unsafe fn borrowed<T: Number>(home: &Stream, address: u64, len: usize) -> Result<Buffer<T>> {
    // The host never follows it.
    let start = std::ptr::without_provenance_mut(address as usize);
    // SAFETY: handed on to the caller.
    unsafe { Buffer::from_raw_parts_in(home, start, len, ()) }
}

/// Takes a slice over as a buffer, without a copy. The slice goes with it, behind all work on it.
///
/// # Errors
/// Those of [`stream`] for the stream of the slice.
pub fn take<T: Number>(device: &Device, mut slice: CudaSlice<T>) -> Result<Buffer<T>> {
    let used_in = Arc::clone(slice.stream());
    let home = stream(device, &used_in)?;
    let len = slice.len();
    // Other streams of `cudarc` have used it.
    let (address, noted) = slice.device_ptr_mut(&used_in);
    drop(noted);
    let start = std::ptr::without_provenance_mut(address as usize);
    // SAFETY: the slice keeps the numbers, and nobody else has it; all of its uses are before this point of the stream.
    unsafe { Buffer::from_raw_parts_in(&home, start, len, slice) }
}

/// The slice that [`take`] took over, behind all work on the buffer.
///
/// # Errors
/// The buffer has another origin.
pub fn give_back<T: Number>(buffer: Buffer<T>) -> Result<CudaSlice<T>> {
    let mut slice: CudaSlice<T> = buffer.into_owner()?;
    let used_in = Arc::clone(slice.stream());
    // For other streams of `cudarc`: the slice was written in its own, which waits for the work on the buffer.
    let (_, noted) = slice.device_ptr_mut(&used_in);
    drop(noted);
    Ok(slice)
}
