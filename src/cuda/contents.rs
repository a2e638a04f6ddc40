//! What memory of a GPU holds: made in the default stream, copied and filled in that of the thread.

use std::sync::Arc;

use exactile_core::ir::Access;
use exactile_nvptx::{DeviceBuffer, Stream};

use super::{Gpu, GpuMemory, Shared, failed};
use crate::error::{Error, Result};
use crate::profile::{Label, SpanKind};
use crate::stream::DEFAULT;

impl GpuMemory {
    /// `len` bytes with what `write` puts into them, in the default stream.
    pub(super) fn allocate(
        gpu: &Arc<Gpu>,
        len: usize,
        write: impl FnOnce(&DeviceBuffer, &Stream) -> exactile_nvptx::Result<()>,
    ) -> Result<Self> {
        let shared = Arc::<Shared>::default();
        let memories = std::iter::once((&shared.uses, Access::ReadWrite));
        let mut made = None;
        let label = || Label::of_memory("new memory", SpanKind::Fill, len);
        gpu.queues().put(DEFAULT, memories, label, |line| {
            let buffer = gpu.context.allocate_in(len, &line.stream);
            let buffer = made.insert(buffer.map_err(failed)?);
            write(buffer, &line.stream).map_err(failed)
        })?;
        let nothing = || Error::Device("broken invariant: no memory was made".to_string());
        Ok(Self {
            gpu: Arc::clone(gpu),
            buffer: made.ok_or_else(nothing)?,
            shared,
            foreign: None,
        })
    }

    /// Has the default stream of this thread wait for what used this memory before; that stream.
    fn order(&self, access: Access) -> Result<Arc<Stream>> {
        let (number, mut queues) = (self.gpu.default_stream(), self.gpu.queues());
        queues.wait_for(number, &self.shared.uses, access)?;
        Ok(Arc::clone(&queues.line(number).stream))
    }

    /// Copies the bytes that begin at `start`, after the work before it. Tells an error of what wrote the memory.
    pub(super) fn copy_to(&self, start: usize, bytes: &mut [u8]) -> Result<()> {
        let stream = self.order(Access::Read)?;
        let label = ("copy to the host", bytes.len());
        self.spanned(label, || {
            // It ends before anybody can write the memory.
            let copied = self.buffer.copy_to_host(start, bytes, &stream);
            copied.map_err(failed)
        })?;
        self.gpu.see_all_ends()?;
        self.shared.writers.tell()
    }

    /// Overwrites the bytes that begin at `start`, after the work before it.
    pub(super) fn copy_from(&self, start: usize, bytes: &[u8]) -> Result<()> {
        let stream = self.order(Access::ReadWrite)?;
        self.spanned(("copy from the host", bytes.len()), || {
            let copied = self.buffer.copy_from_host(start, bytes, &stream);
            copied.map_err(failed)
        })
    }

    /// A copy by the host, for who watches.
    fn spanned(
        &self,
        (name, bytes): (&str, usize),
        copy: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        // Others go on meanwhile.
        let number = self.gpu.default_stream();
        let start = self.gpu.queues().begin_span(number)?;
        copy()?;
        let label = || Label::of_memory(name, SpanKind::Copy, bytes);
        self.gpu.queues().end_span(number, start, label)
    }

    /// Sets `len` bytes from `start` on to copies of a number of 1, 2 or 4 bytes, without waiting. Whoever calls it has
    /// borrowed them.
    pub(crate) fn fill(&self, start: usize, len: usize, number: &[u8]) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let memories = std::iter::once((&self.shared.uses, Access::ReadWrite));
        let label = || Label::of_memory("fill", SpanKind::Fill, len);
        let home = self.gpu.default_stream();
        self.gpu.queues().put(home, memories, label, |line| {
            let filled = self.buffer.fill(start, len, number, &line.stream);
            filled.map_err(failed)
        })
    }

    /// Copies `len` bytes of another memory of the GPU, or of this one, from `from` on, without waiting. Whoever calls it
    /// has borrowed them.
    pub(crate) fn copy(&self, start: usize, source: (&Self, usize), len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let (other, from) = source;
        let memories = [
            (&other.shared.uses, Access::Read),
            (&self.shared.uses, Access::ReadWrite),
        ];
        let source = (&other.buffer, from);
        let memories = memories.into_iter();
        let label = || Label::of_memory("copy on the device", SpanKind::Copy, len);
        let home = self.gpu.default_stream();
        self.gpu.queues().put(home, memories, label, |line| {
            let copied = self.buffer.copy_from(start, source, len, &line.stream);
            copied.map_err(failed)
        })?;
        if !Arc::ptr_eq(&self.shared, &other.shared) {
            self.shared.writers.add_all(&other.shared.writers);
        }
        Ok(())
    }
}
