//! Streams, the events in them, and what else the driver hands out by a handle.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::any::Any;
use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::{self, CUresult};

use crate::driver::{Context, ask, call, check};
use crate::error::{Error, Result};

macro_rules! handle {
    ($(#[$doc:meta])* $vis:vis $Name:ident $field:ident: $Raw:ident $(, $before:ident)? => $destroy:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        $vis struct $Name {
            pub(crate) context: Context,
            pub(crate) $field: sys::$Raw,
        }
        // SAFETY: the driver's handles belong to the context, not to a thread.
        unsafe impl Send for $Name {}
        // SAFETY: the driver's functions may be called from several threads at once.
        unsafe impl Sync for $Name {}
        impl Drop for $Name {
            fn drop(&mut self) {
                let _ = self.context.make_current();
                $(let _ = call!($before());)?
                let _ = call!($destroy(self.$field));
            }
        }
    };
}

pub(crate) use handle;

/// A queue of work that runs in order.
#[derive(Debug)]
pub struct Stream {
    pub(crate) context: Context,
    pub(crate) stream: sys::CUstream,
    /// Of a stream that others have made, what keeps it.
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

// SAFETY: as for the handles below.
unsafe impl Send for Stream {}
// SAFETY: as for the handles below.
unsafe impl Sync for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.keeper.is_none() {
            let _ = self.context.make_current();
            let _ = call!(cuStreamDestroy_v2(self.stream));
        }
    }
}

/// The handle that means another stream on each thread.
const STREAM_OF_THREAD: usize = 2;

handle!(
    /// A point in a stream.
    pub Event event: CUevent => cuEventDestroy_v2
);
handle!(
    /// Machine code that the driver loaded; not unloaded before its kernels have ended.
    pub(crate) Module module: CUmodule, cuCtxSynchronize => cuModuleUnload
);

impl Context {
    /// A new stream, which does not wait for the default stream of the driver.
    pub fn stream(&self) -> Result<Stream> {
        self.make_current()?;
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        call!(cuStreamCreate(&mut stream, flags))?;
        Ok(Stream {
            context: self.clone(),
            stream,
            keeper: None,
        })
    }

    /// A stream that others have made, which is not destroyed. The error says what it is not.
    ///
    /// # Safety
    /// `stream` is null, which stands for the default one, or the driver's handle of a stream that is there as long as
    /// `keeper`.
    pub unsafe fn adopt(
        &self,
        stream: *mut c_void,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Result<Stream> {
        if stream.addr() == STREAM_OF_THREAD {
            let message = "the default stream of a thread is another one on each thread, and no other thread can wait for it";
            return Err(Error::Arguments(message.to_string()));
        }
        self.make_current()?;
        let (stream, mut context) = (stream.cast(), null_mut());
        call!(cuStreamGetCtx(stream, &mut context))?;
        if context != self.raw() {
            let message = "the stream is of another device, or of another context than the primary one of its device";
            return Err(Error::Arguments(message.to_string()));
        }
        Ok(Stream {
            context: self.clone(),
            stream,
            keeper: Some(keeper),
        })
    }

    /// Waits for all work on the device.
    pub fn synchronize(&self) -> Result<()> {
        self.make_current()?;
        call!(cuCtxSynchronize())
    }

    /// A new event with a clock.
    pub fn event(&self) -> Result<Event> {
        self.new_event(sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// A new event that only orders work, which costs less.
    pub fn mark(&self) -> Result<Event> {
        self.new_event(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
    }

    fn new_event(&self, flags: sys::CUevent_flags) -> Result<Event> {
        self.make_current()?;
        let mut event = null_mut();
        call!(cuEventCreate(&mut event, flags as u32))?;
        Ok(Event {
            context: self.clone(),
            event,
        })
    }

    /// `bytes` zero bytes of the host at a fixed place, which a GPU reads and writes while the host goes on.
    pub fn pinned(&self, bytes: usize) -> Result<Pinned> {
        self.make_current()?;
        let mut address = null_mut();
        // The driver refuses to allocate nothing.
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
        call!(cuMemHostAlloc(&mut address, bytes.max(1), flags))?;
        let pinned = Pinned {
            context: self.clone(),
            address,
            bytes,
        };
        // SAFETY: the driver gave so many bytes, and nothing else knows of them yet.
        unsafe { std::ptr::write_bytes(pinned.address.cast::<u8>(), 0, bytes) };
        Ok(pinned)
    }
}

/// Memory of the host that a GPU may read and write.
#[derive(Debug)]
pub struct Pinned {
    context: Context,
    address: *mut c_void,
    bytes: usize,
}

// SAFETY: the memory belongs to the context, not to a thread.
unsafe impl Send for Pinned {}
// SAFETY: a reference gives the address alone.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Where its bytes are, which work of a GPU may be reading or writing.
    pub fn address(&self) -> *mut u8 {
        self.address.cast()
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The address for kernels.
    pub(crate) fn device_address(&self) -> Result<u64> {
        self.context.make_current()?;
        let mut address = 0;
        call!(cuMemHostGetDevicePointer_v2(&mut address, self.address, 0))?;
        Ok(address)
    }

    /// Where word `index` is.
    pub(crate) fn word_address(&self, index: usize) -> *const c_void {
        self.address.cast::<u64>().wrapping_add(index).cast()
    }

    /// Word `index`.
    ///
    /// # Safety
    /// The memory has more words than that, and no work that writes this one is under way.
    pub(crate) unsafe fn word(&self, index: usize) -> u64 {
        // SAFETY: handed on to the caller; the driver gives memory that starts at a page.
        unsafe { self.address.cast::<u64>().add(index).read_volatile() }
    }

    /// Sets word `index`.
    ///
    /// # Safety
    /// As for [`word`](Self::word), and no work that reads this one is under way.
    pub(crate) unsafe fn set_word(&self, index: usize, word: u64) {
        // SAFETY: as above.
        unsafe { self.address.cast::<u64>().add(index).write_volatile(word) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.context.make_current();
        // No work may be under way that uses it.
        let _ = call!(cuCtxSynchronize());
        let _ = call!(cuMemFreeHost(self.address));
    }
}

impl Stream {
    /// The driver's handle, if others have made the stream.
    pub fn adopted(&self) -> Option<*mut c_void> {
        self.keeper.as_ref().map(|_| self.stream.cast())
    }

    pub(crate) fn make_current(&self) -> Result<()> {
        self.context.make_current()
    }

    /// Whether others have made the stream and what is put there goes to a graph of theirs.
    #[inline]
    pub fn is_captured(&self) -> Result<bool> {
        match self.keeper {
            None => Ok(false),
            Some(_) => self.is_captured_by_others(),
        }
    }

    #[cold]
    fn is_captured_by_others(&self) -> Result<bool> {
        self.context.make_current()?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        call!(cuStreamIsCapturing(self.stream, &mut status))?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Whether all work in the stream has ended. Nobody can tell while others capture it.
    pub fn has_ended(&self) -> Result<bool> {
        if self.is_captured()? {
            return Ok(false);
        }
        self.make_current()?;
        let code = ask!(cuStreamQuery(self.stream))?;
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("cuStreamQuery", code).map(|()| true)
    }

    /// Has all that is put into the stream from now on wait for `event`.
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context.make_current()?;
        call!(cuStreamWaitEvent(self.stream, event.event, 0))
    }

    /// Waits for all work in the stream; the errors of that work come out here.
    pub fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        call!(cuStreamSynchronize(self.stream))
    }
}

impl Event {
    /// Places the event after the work that is in `stream` now.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.context.make_current()?;
        call!(cuEventRecord(self.event, stream.stream))
    }

    /// Waits until the work before the event has ended.
    pub fn synchronize(&self) -> Result<()> {
        self.context.make_current()?;
        call!(cuEventSynchronize(self.event))
    }

    /// Whether the work before the event has ended. The errors of that work come out here.
    pub fn has_ended(&self) -> Result<bool> {
        self.context.make_current()?;
        let code = ask!(cuEventQuery(self.event))?;
        if code == CUresult::CUDA_ERROR_NOT_READY {
            return Ok(false);
        }
        check("cuEventQuery", code).map(|()| true)
    }

    /// Milliseconds from `start` to this event, waiting for it.
    pub fn milliseconds_since(&self, start: &Self) -> Result<f32> {
        self.context.make_current()?;
        call!(cuEventSynchronize(self.event))?;
        let mut milliseconds = 0.0;
        call!(cuEventElapsedTime_v2(
            &mut milliseconds,
            start.event,
            self.event
        ))?;
        Ok(milliseconds)
    }
}
