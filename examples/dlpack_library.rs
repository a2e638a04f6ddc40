//! A library for Python: arrays come and go by DLPack, on the host or on a GPU. `examples/dlpack.py` calls it.
#![expect(unsafe_code, reason = "arrays come from C")]

use std::ffi::c_void;

use exactile::interop::dlpack::{CUDA, Exported, Imported, ManagedTensor};
use exactile::{Result, Stream, prelude::*};

/// Doubles all numbers into another array, and leaves zeros behind.
#[kernel(BLOCK = 256)]
fn drain<const BLOCK: usize>(x: TensorMut<f32, 1>, out: TensorMut<f32, 1>) {
    let place = (program_id(0),);
    let numbers = load(x.tile([BLOCK]).at(place));
    store(out.tile([BLOCK]).at(place), numbers * 2.0);
    store(x.tile([BLOCK]).at(place), numbers * 0.0);
}

unsafe fn run(x: *mut ManagedTensor, stream: *mut c_void) -> Result<*mut ManagedTensor> {
    // SAFETY: the caller gives the array away, and the stream stays.
    unsafe {
        let place = (*x).tensor.place;
        let device = match place.kind {
            CUDA => Device::cuda(place.ordinal as usize)?,
            _ => Device::cpu(),
        };
        let stream = (place.kind == CUDA).then(|| Stream::from_raw(&device, stream, ()));
        let stream = stream.transpose()?;
        let mut x = Imported::from_raw(&device, x, stream.as_ref())?;
        let count = x.extents()[0];
        let mut out = Buffer::zeros(&device, count)?;
        let arguments = (x.view_mut()?, out.view_mut([count])?);
        drain().launch(&device, count.div_ceil(256), arguments)?;
        Ok(Exported::new(out, &[count], stream.as_ref())?.into_raw())
    }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn drained(x: *mut ManagedTensor, stream: *mut c_void) -> *mut ManagedTensor {
    // SAFETY: as above. Null says that something failed.
    unsafe { run(x, stream) }.unwrap_or(std::ptr::null_mut())
}
