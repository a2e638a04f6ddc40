//! NVIDIA GPUs: memory, code and streams.

#![expect(unsafe_code, reason = "a bare launch is the caller's promise")]

mod contents;
mod foreign;
mod graphs;
mod pinned;
mod queues;
mod watch;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use exactile_core::launch::Launch;
use exactile_core::target::Target;
pub(crate) use exactile_nvptx::{ALIKE, GridMapping, Placed, Ptx};
use exactile_nvptx::{Context, DeviceBuffer, Event, Kernel, LaidOut, Records, Stream};

use crate::array::vec_with_room;
use crate::error::{Error, Result};
use crate::failure::{Failures, Writers};
use crate::foreign::Foreign;
use crate::inspection::Resources;
use crate::order::Uses;

pub(crate) use graphs::GpuGraph;
pub(crate) use pinned::GpuPinned;
pub(crate) use queues::Point;
use queues::Queues;

/// The arguments of a launch that is like one before it: addresses and the bits of numbers.
pub(crate) type Words = [u64; exactile_nvptx::FEW];

#[cold]
fn failed(error: exactile_nvptx::Error) -> Error {
    Error::Device(error.to_string())
}

/// A GPU with its streams.
#[derive(Debug)]
pub struct Gpu {
    context: Context,
    /// The default stream.
    pub stream: Arc<Stream>,
    queues: Mutex<Queues>,
    /// Of launches that nobody has waited for yet.
    failures: Failures,
    /// Where memory of others is, with what is known of it.
    foreign: Mutex<Vec<(Range<u64>, Weak<Shared>)>>,
    /// Placed after launches whose end a clock takes.
    end: Mutex<Option<Event>>,
    /// Whether one does, for launches to pass by without the lock.
    is_timed: AtomicBool,
    name: String,
    multiprocessors: u32,
    target: Target,
}

impl Gpu {
    /// Opens a GPU; the error says what is missing.
    pub fn open(ordinal: usize) -> Result<Arc<Self>> {
        let context = Context::new(ordinal).map_err(failed)?;
        let stream = Arc::new(context.stream().map_err(failed)?);
        let target = context.target().map_err(failed)?;
        if !target.gpu.mma.is_empty() && !target.gpu.holds_operands {
            static SAID: Once = Once::new();
            SAID.call_once(|| log::warn!("unless an assembler is of CUDA 13.3 or later, attention stores what tensor cores would read in registers: install a newer driver or toolkit, or name its `ptxas` in `EXACTILE_PTXAS`"));
        }
        Ok(Arc::new(Self {
            queues: Mutex::new(Queues::new(
                Arc::clone(&stream),
                context.records().map_err(failed)?,
            )),
            failures: Failures::default(),
            foreign: Mutex::default(),
            stream,
            end: Mutex::new(None),
            is_timed: AtomicBool::new(false),
            name: context.name().map_err(failed)?,
            multiprocessors: context.multiprocessors().map_err(failed)?,
            target,
            context,
        }))
    }

    /// The model.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The newest CUDA that the driver is for, as 1000 times the major and 10 times the minor version.
    pub(crate) fn driver(&self) -> Option<i32> {
        exactile_nvptx::Driver::version()
    }

    /// The machine that its code is made for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The number of multiprocessors.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.multiprocessors
    }

    /// Has the driver load machine code, or compile the text. The error is one of the backend where the driver says
    /// that the code is bad, and one of the device where other code may fare no better.
    pub(crate) fn load(&self, ptx: Ptx) -> Result<GpuCode> {
        let ptx = Arc::new(ptx);
        let loaded = self.context.load(Arc::clone(&ptx));
        if let Err(exactile_nvptx::Error::BadImage(message)) = loaded {
            return Err(Error::Backend {
                kernel: ptx.name().to_string(),
                device: self.name.clone(),
                message,
            });
        }
        let kernel = loaded.map_err(failed)?;
        Ok(GpuCode { kernel })
    }

    /// Has the driver make machine code of a text that is to be kept; whether it did. A driver that cannot leaves the
    /// text, which it compiles when it loads it.
    pub(crate) fn link(&self, ptx: &mut Ptx) -> bool {
        self.context.link(ptx).unwrap_or_else(|error| {
            log::warn!("kernel `{}` is kept as a text: {error}", ptx.name());
            false
        })
    }

    /// Waits for all work, and gives memory that nobody has back to the system.
    pub(crate) fn trim(&self) -> Result<()> {
        self.context.trim().map_err(failed)
    }

    fn end(&self) -> MutexGuard<'_, Option<Event>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a kernel was put into the stream.
    fn mark_end(&self, stream: &Stream) -> Result<()> {
        if !self.is_timed.load(Ordering::Relaxed) {
            return Ok(());
        }
        match &*self.end() {
            None => Ok(()),
            Some(event) => event.record(stream).map_err(failed),
        }
    }

    /// Records for checked launches that go by the side of its streams.
    pub fn records(&self) -> Result<Records<()>> {
        self.context.records().map_err(failed)
    }
}

/// Times launches by events of the device.
#[derive(Debug)]
pub struct Clock {
    start: Event,
    flush: GpuMemory,
}

impl Clock {
    /// A clock with so many bytes to write, more than the caches hold.
    pub fn new(gpu: &Arc<Gpu>, flush: usize) -> Result<Self> {
        *gpu.end() = Some(gpu.context.event().map_err(failed)?);
        Ok(Self {
            start: gpu.context.event().map_err(failed)?,
            flush: GpuMemory::zeroed(gpu, flush)?,
        })
    }

    /// Writes the bytes of this clock, so that the caches hold nothing else.
    pub fn flush(&mut self) -> Result<()> {
        self.flush.fill(0, self.flush.len(), &[0])
    }

    /// Seconds from the start of the first kernel that so many calls of `launch` put into the stream
    /// to the end of the last one. What is in the stream before hides the latency of the launches.
    pub fn time(&mut self, launches: usize, launch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        let gpu = Arc::clone(&self.flush.gpu);
        self.start.record(&gpu.stream).map_err(failed)?;
        for _ in 1..launches {
            launch()?;
        }
        gpu.is_timed.store(true, Ordering::Relaxed);
        let launched = launch();
        gpu.is_timed.store(false, Ordering::Relaxed);
        launched?;
        match &*gpu.end() {
            Some(end) => {
                let time = end.milliseconds_since(&self.start).map_err(failed)?;
                Ok(f64::from(time) / 1e3)
            }
            None => Err(Error::Device("another clock has ended".to_string())),
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        *self.flush.gpu.end() = None;
    }
}

/// A kernel loaded on a GPU.
#[derive(Debug)]
pub struct GpuCode {
    /// The kernel.
    pub kernel: Kernel,
}

impl GpuCode {
    /// What it was loaded from.
    pub(crate) fn ptx(&self) -> &Ptx {
        self.kernel.ptx()
    }

    /// What it takes of the GPU, as the driver says.
    pub(crate) fn resources(&self) -> Result<Resources> {
        let (kernel, ptx) = (&self.kernel, self.ptx());
        let asked = || {
            Ok(Resources {
                threads: ptx.threads(),
                programs: ptx.programs(),
                registers: kernel.registers()?,
                local_bytes: kernel.local_bytes()?,
                shared_bytes: kernel.shared_bytes()?,
                blocks: kernel.blocks_per_multiprocessor()?,
                most_threads: kernel.threads_per_multiprocessor()?,
            })
        };
        asked().map_err(failed)
    }

    /// What this launch has in common with others that are alike, if it can be put and code takes no more.
    pub(crate) fn placed(&self, launch: &Launch<'_>) -> Option<Placed> {
        self.kernel.placed(launch.grid, launch.arguments)
    }

    /// Whether launches of it are checked ones.
    pub(crate) fn has_bounds_checks(&self) -> bool {
        self.ptx().has_bounds_checks()
    }
}

/// A launch in the default stream that is nothing but the driver's call.
#[derive(Debug)]
pub struct BareLaunch<'a> {
    laid_out: LaidOut<'a>,
    stream: Arc<Stream>,
}

impl Gpu {
    pub(crate) fn bare_launch<'a>(
        &self,
        code: &'a GpuCode,
        launch: &Launch<'_>,
    ) -> Result<BareLaunch<'a>> {
        let laid_out = code.kernel.lay_out(launch.grid, launch.arguments);
        let laid_out = laid_out.map_err(failed)?;
        laid_out.make_current().map_err(failed)?;
        Ok(BareLaunch {
            laid_out,
            stream: Arc::clone(&self.stream),
        })
    }
}

impl BareLaunch<'_> {
    /// Calls the driver.
    ///
    /// # Safety
    /// The arrays of the inspected launch are there, their accesses are in bounds, no other stream uses them, and this thread
    /// made the launch and uses no other device.
    pub unsafe fn launch(&mut self) -> Result<()> {
        // SAFETY: handed on to the caller; the context was made current, and the value cannot leave its thread.
        unsafe { self.laid_out.launch(&self.stream) }.map_err(failed)
    }
}

/// Memory of a GPU.
#[derive(Debug)]
pub struct GpuMemory {
    gpu: Arc<Gpu>,
    /// The bytes.
    pub buffer: DeviceBuffer,
    pub(crate) shared: Arc<Shared>,
    /// Of memory that others have made.
    foreign: Option<Foreign>,
}

/// What is known of a memory, and of what overlaps it.
#[derive(Default, Debug)]
pub(crate) struct Shared {
    pub(crate) uses: Mutex<Uses>,
    pub(crate) writers: Writers,
}

impl GpuMemory {
    /// `len` zero bytes.
    pub fn zeroed(gpu: &Arc<Gpu>, len: usize) -> Result<Self> {
        Self::allocate(gpu, len, |buffer, stream| buffer.fill(0, len, &[0], stream))
    }

    /// A copy of `bytes`.
    pub(crate) fn from_bytes(gpu: &Arc<Gpu>, bytes: &[u8]) -> Result<Self> {
        // All of it is written before anybody has it.
        let memory = Self::allocate(gpu, bytes.len(), |_, _| Ok(()))?;
        memory.write(0, bytes)?;
        Ok(memory)
    }

    /// A copy of all of another memory, which nobody waits for.
    pub(crate) fn try_clone(&self) -> Result<Self> {
        let len = self.len();
        let copy = Self::allocate(&self.gpu, len, |_, _| Ok(()))?;
        copy.copy(0, (self, 0), len)?;
        Ok(copy)
    }

    /// The launches that wrote it, unless others may have read what they wrote of another part.
    pub(crate) fn own_writers(&self) -> Option<&Writers> {
        (Arc::strong_count(&self.shared) == 1).then_some(&self.shared.writers)
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Where it begins on the device.
    pub(crate) fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// A copy of `len` bytes from `start` on, after the work before it. Tells an error of what wrote the memory.
    pub fn read(&self, start: usize, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec_with_room(len)?;
        bytes.resize(len, 0);
        self.read_to(start, &mut bytes)?;
        Ok(bytes)
    }

    /// The same to where the host has room for so many bytes.
    pub(crate) fn read_to(&self, start: usize, bytes: &mut [u8]) -> Result<()> {
        match bytes.is_empty() {
            true => Ok(()),
            false => self.copy_to(start, bytes),
        }
    }

    /// Overwrites the bytes that begin at `start`, after the work before it. Whoever calls it has borrowed them.
    pub fn write(&self, start: usize, bytes: &[u8]) -> Result<()> {
        match bytes.is_empty() {
            true => Ok(()),
            false => self.copy_from(start, bytes),
        }
    }
}

/// What code is read and launched by, and what is above that and made it.
pub(crate) fn sources() -> Option<String> {
    Some(format!(
        "{}, {}, {}",
        env!("EXACTILE_SOURCES"),
        exactile_core::SOURCES,
        exactile_nvptx::SOURCES
    ))
}
