//! Memory of a GPU that others have made: what overlaps it, and who waits for whom.

#![expect(unsafe_code, reason = "memory of others is there by their word")]

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use exactile_core::ir::Access;

use super::queues::locked;
use super::{Gpu, GpuMemory, Shared, failed};
use crate::error::{Error, Result};
use crate::foreign::Foreign;
use crate::stream::{DEFAULT, Stream};

impl Gpu {
    /// What is known of memory of others at these addresses: one for all that overlap.
    ///
    /// # Errors
    /// It overlaps memories of which different things are known.
    fn shared_at(&self, range: Range<u64>) -> Result<Arc<Shared>> {
        // Nothing panics while it holds the lock.
        let list = self.foreign.lock();
        let mut list = list.unwrap_or_else(PoisonError::into_inner);
        list.retain(|(_, shared)| shared.strong_count() > 0);
        let meets =
            |(known, _): &&mut (Range<u64>, _)| known.start < range.end && range.start < known.end;
        let mut met = list.iter_mut().filter(meets);
        match (met.next(), met.next()) {
            (None, _) => {
                let shared = Arc::default();
                list.push((range, Arc::downgrade(&shared)));
                Ok(shared)
            }
            (Some((known, shared)), None) => {
                *known = known.start.min(range.start)..known.end.max(range.end);
                // The last one that had it may be gone just now, with its work waited for.
                let kept = shared.upgrade().unwrap_or_default();
                *shared = Arc::downgrade(&kept);
                Ok(kept)
            }
            (Some(_), Some(_)) => Err(Error::Invalid(format!(
                "the {} bytes at {:#x} overlap two arrays that are apart: take all of the memory over first, and then parts of it",
                range.end - range.start,
                range.start
            ))),
        }
    }
}

impl GpuMemory {
    /// Memory that others have made. What they do with it in their stream comes first.
    ///
    /// # Safety
    /// There are so many bytes at the address as long as the owner is there, and others use them in their stream alone; without
    /// one, their work on them has ended.
    pub(crate) unsafe fn of_others(
        gpu: &Arc<Gpu>,
        address: u64,
        len: usize,
        foreign: Foreign,
    ) -> Result<Self> {
        // SAFETY: handed on to the caller.
        let buffer = unsafe { gpu.context.of_others(address, len) }.map_err(failed)?;
        let memory = Self {
            gpu: Arc::clone(gpu),
            buffer,
            shared: gpu.shared_at(address..address + len as u64)?,
            foreign: Some(foreign),
        };
        let home = memory.foreign.as_ref().and_then(|it| it.home.as_ref());
        if let Some(home) = home {
            memory.note_all_in(home)?;
        }
        Ok(memory)
    }

    /// Notes that what is in a stream now may have written it.
    pub(crate) fn note_all_in(&self, stream: &Stream) -> Result<()> {
        let (uses, number) = (&self.shared.uses, stream.number());
        let mut queues = self.gpu.queues();
        queues.wait_for(number, uses, Access::ReadWrite)?;
        queues.note_all(number, uses)
    }

    /// Has a stream wait for all that uses it; without one, the host waits.
    pub(crate) fn leave_to(&self, stream: Option<&Stream>) -> Result<()> {
        let uses = &self.shared.uses;
        if let Some(stream) = stream {
            let mut queues = self.gpu.queues();
            return queues.wait_for(stream.number(), uses, Access::ReadWrite);
        }
        let mut streams: Vec<usize> = locked(uses).streams().collect();
        // Nothing is noted while there is one stream.
        streams.push(DEFAULT);
        streams.into_iter().try_for_each(|it| self.gpu.finish(it))
    }

    /// Waits for all work on its GPU, that of others included.
    #[cfg(feature = "dlpack")]
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        self.gpu.context.synchronize().map_err(failed)
    }

    /// Gives memory of others back to its owner, behind all that uses it.
    pub(crate) fn take_foreign(&mut self) -> Result<Option<Foreign>> {
        let Some(foreign) = self.foreign.take() else {
            return Ok(None);
        };
        let left = self.leave_to(foreign.home.as_ref());
        left.map(|()| Some(foreign))
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // Where waiting in a stream fails, the device is lost, or the buffer waits for it when it goes.
        if let Ok(None) = self.take_foreign() {
            let uses = &self.shared.uses;
            let _ = self.gpu.queues().free(&mut self.buffer, uses);
        }
    }
}
