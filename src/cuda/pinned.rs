//! Memory of the host that a GPU reads and writes while the host goes on.

#![expect(unsafe_code, reason = "work of a GPU uses memory of the host")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use exactile_core::ir::Access;
use exactile_nvptx::Stream;

use super::{Gpu, GpuMemory, Shared, failed};
use crate::error::Result;
use crate::order::Uses;
use crate::profile::{Label, SpanKind};

/// Bytes of the host. Copies from and to them are uses as those of memory of the GPU are, and the host waits for them
/// before it has a reference.
#[derive(Debug)]
pub(crate) struct GpuPinned {
    gpu: Arc<Gpu>,
    memory: exactile_nvptx::Pinned,
    shared: Shared,
    /// Whether there may be copies that nobody has waited for.
    pending: AtomicBool,
    /// Whether one of them is noted nowhere, as while there is one stream.
    unnoted: AtomicBool,
}

impl GpuPinned {
    /// `len` zero bytes.
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, len: usize) -> Result<Self> {
        Ok(Self {
            memory: gpu.context.pinned(len).map_err(failed)?,
            gpu: Arc::clone(gpu),
            shared: Shared::default(),
            pending: AtomicBool::new(false),
            unnoted: AtomicBool::new(false),
        })
    }

    /// Waits for what used the bytes, if the host now wants to use them so. Nobody else has them where it wants to write.
    fn wait(&self, access: Access) -> Result<()> {
        if !self.pending.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.unnoted.load(Ordering::Acquire) {
            self.gpu.stream.synchronize().map_err(failed)?;
        }
        let ends = self.gpu.queues().ends_of(&self.shared.uses, access);
        let mut ends = ends.iter();
        ends.try_for_each(|end| end.synchronize()).map_err(failed)?;
        if access == Access::ReadWrite {
            self.pending.store(false, Ordering::Release);
            self.unnoted.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Puts a copy into a stream.
    fn put<'m>(
        &'m self,
        number: usize,
        memories: [(&'m Mutex<Uses>, Access); 2],
        name: &str,
        copy: impl FnOnce(&Stream) -> exactile_nvptx::Result<()>,
    ) -> Result<()> {
        let mut queues = self.gpu.queues();
        self.pending.store(true, Ordering::Release);
        if !queues.are_several() {
            self.unnoted.store(true, Ordering::Release);
        }
        let label = || Label::of_memory(name, SpanKind::Copy, self.memory.len());
        queues.put(number, memories.into_iter(), label, |line| {
            copy(&line.stream).map_err(failed)
        })
    }

    /// The bytes, after the copies to them. Tells an error of what wrote the memory that was copied.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        self.wait(Access::Read)?;
        self.gpu.see_all_ends()?;
        self.shared.writers.tell()?;
        let (start, len) = (self.memory.address(), self.memory.len());
        // SAFETY: the driver gave so many bytes, which were zeroed; all copies to them have ended, and another one needs `&mut`.
        Ok(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The bytes, after all copies from and to them.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.wait(Access::ReadWrite)?;
        self.gpu.see_all_ends()?;
        self.shared.writers.tell()?;
        let (start, len) = (self.memory.address(), self.memory.len());
        // SAFETY: as above; copies from them have ended too, and another one needs a reference.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    /// Overwrites all bytes with those of a memory from `start` on, in a stream. Whoever calls it has borrowed these.
    pub(crate) fn copy_from(
        &mut self,
        number: usize,
        source: &GpuMemory,
        start: usize,
    ) -> Result<()> {
        let memories = [
            (&source.shared.uses, Access::Read),
            (&self.shared.uses, Access::ReadWrite),
        ];
        self.put(number, memories, "copy to the host", |stream| {
            let (buffer, memory) = (&source.buffer, &self.memory);
            // SAFETY: the host waits for the copy before it reaches the bytes or frees them.
            unsafe { buffer.queue_to_host(start, memory.address(), memory.len(), stream) }
        })?;
        self.shared.writers.take();
        self.shared.writers.add_all(&source.shared.writers);
        Ok(())
    }

    /// Overwrites the bytes of a memory from `start` on with all of these, in a stream. Whoever calls it has borrowed those.
    pub(crate) fn copy_to(&self, number: usize, target: &GpuMemory, start: usize) -> Result<()> {
        let memories = [
            (&self.shared.uses, Access::Read),
            (&target.shared.uses, Access::ReadWrite),
        ];
        self.put(number, memories, "copy from the host", |stream| {
            let (buffer, memory) = (&target.buffer, &self.memory);
            // SAFETY: the host waits for the copy before it writes the bytes or frees them.
            unsafe { buffer.queue_from_host(start, memory.address(), memory.len(), stream) }
        })?;
        target.shared.writers.add_all(&self.shared.writers);
        Ok(())
    }
}

impl Drop for GpuPinned {
    fn drop(&mut self) {
        // Where that fails, the device is lost; the memory waits for it in any case.
        let _ = self.wait(Access::ReadWrite);
    }
}
