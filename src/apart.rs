//! Streams that are apart: of work that a user did not ask for, and whose errors are told to nobody else.

use std::cell::Cell;

use crate::device::Device;
use crate::error::Result;
use crate::stream::{DEFAULT, Stream};

/// Set in the number under which errors of a stream are kept that who waits for the device does not wait for.
pub(crate) const APART: usize = 1 << (usize::BITS - 1);

thread_local! {
    /// By what has it, the stream that is the default one for this thread.
    static OWN: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The stream that is the default one of a device for this thread alone, if there is one; `owner`: where lies what has the
/// streams of the device.
#[inline]
pub(crate) fn own_default(owner: usize) -> Option<usize> {
    let own = OWN.get().filter(|(of, _)| *of == owner);
    own.map(|(_, number)| number)
}

impl Device {
    /// The default stream for this thread.
    #[inline]
    pub(crate) fn default_stream(&self) -> usize {
        own_default(self.owner_of_streams()).unwrap_or(DEFAULT)
    }
}

impl Stream {
    /// A stream that who waits for the device does not wait for, and that keeps its errors to itself.
    pub(crate) fn apart(device: &Device) -> Result<Self> {
        let number = match device.gpu() {
            None => device.number_of_host_stream() | APART,
            Some(gpu) => gpu.stream_apart()?,
        };
        Ok(Self::of_line(device, number))
    }

    /// Does `work` with this stream as the default one of its device: for this thread, and for nobody else.
    pub(crate) fn as_default<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Ending(Option<(usize, usize)>);
        impl Drop for Ending {
            fn drop(&mut self) {
                OWN.set(self.0);
            }
        }
        let own = (self.device().owner_of_streams(), self.number());
        let _end = Ending(OWN.replace(Some(own)));
        work()
    }
}
