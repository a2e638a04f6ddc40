//! Where kernels run.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Write, stderr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use exactile_core::target::{Distribution, Target};
use exactile_cranelift::Threads;
use exactile_store::Store;

use crate::ahead::{Job, Recordings};
use crate::apart::{APART, own_default};
use crate::built::{Built, Folders, Output};
use crate::cache::Cache;
use crate::capture::refuse;
use crate::cuda::Gpu;
use crate::disk;
use crate::error::{Error, Result};
use crate::failure::{Failure, Failures};
use crate::hooks::Hooks;
use crate::profile::Watch;
use crate::stream::{DEFAULT, Stream};

/// What runs a kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeviceKind {
    /// Machine code for this computer's processor: the golden path.
    Cpu,
    /// The interpreter of block IR: slow, checks everything, and is the specification.
    Interpreter,
    /// The interpreter of lane IR, which runs the warps of a GPU thread block in turns on the host.
    Lanes,
    /// An NVIDIA GPU.
    Cuda(usize),
}

/// A device with its compiled kernels. Clones share both.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    kind: DeviceKind,
    name: String,
    cache: Arc<Cache>,
    /// Programs of a launch that the interpreter runs; all when absent.
    sample: Option<u64>,
    gpu: Option<Arc<Gpu>>,
    /// Of what stands for a GPU only, where its code is looked for or made.
    stand_in: Option<StandIn>,
    /// Where code lies that was built ahead of time.
    built: Folders,
    /// Of launches on the host that nobody has waited for yet; those of a GPU are its own.
    failures: Failures,
    /// How many streams of the host there were beside the default one.
    host_streams: AtomicUsize,
    /// Of the CPU only.
    threads: Threads,
    /// Whether launches skip the checks that an earlier launch proved needless.
    trusts_proofs: AtomicBool,
    /// Whether code is taken from the disk and kept there.
    uses_disk: AtomicBool,
    recordings: Recordings,
    hooks: Arc<Hooks>,
    watch: Watch,
    /// Where lines of kernels go; nowhere said: to standard error.
    printer: Mutex<Option<Printer>>,
}

/// A GPU that is not there.
pub(crate) struct StandIn {
    pub(crate) target: Target,
    /// Where its code is written.
    pub(crate) output: Option<Arc<Output>>,
}

/// Takes a line that a kernel prints.
type Printer = Arc<dyn Fn(&str) + Send + Sync>;

/// The GPUs that somebody has, each opened once.
static GPUS: Mutex<BTreeMap<usize, Weak<Inner>>> = Mutex::new(BTreeMap::new());

impl Inner {
    fn new(kind: DeviceKind, name: String) -> Self {
        Self {
            kind,
            name,
            cache: Arc::default(),
            sample: None,
            gpu: None,
            stand_in: None,
            built: Folders::default(),
            failures: Failures::default(),
            host_streams: AtomicUsize::new(DEFAULT),
            threads: Threads::All,
            trusts_proofs: AtomicBool::new(true),
            uses_disk: AtomicBool::new(true),
            recordings: Recordings::default(),
            hooks: Arc::default(),
            watch: Watch::default(),
            printer: Mutex::default(),
        }
    }
}

impl Device {
    fn new(kind: DeviceKind, name: String) -> Self {
        Self::from_inner(Inner::new(kind, name))
    }

    fn from_inner(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// This computer's processor, all cores: with each call a device with code and errors of its own. Needs nothing installed.
    ///
    /// ```
    /// use exactile::{Buffer, Device, DeviceKind};
    ///
    /// let device = Device::cpu();
    /// assert_eq!(device.kind(), DeviceKind::Cpu);
    /// assert_eq!(Buffer::<f32>::zeros(&device, 3)?.to_vec()?, [0.0; 3]);
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn cpu() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let name = format!("cpu-{}-{cores}", std::env::consts::ARCH);
        Self::new(DeviceKind::Cpu, name)
    }

    /// One thread of this computer's processor.
    pub fn cpu_single_thread() -> Self {
        let name = format!("cpu-{}-1", std::env::consts::ARCH);
        Self::from_inner(Inner {
            threads: Threads::One,
            ..Inner::new(DeviceKind::Cpu, name)
        })
    }

    /// The interpreter of block IR.
    pub fn interpreter() -> Self {
        Self::new(DeviceKind::Interpreter, "interpreter".to_string())
    }

    /// The interpreter of lane IR: what the GPU lowering makes, without a GPU.
    pub fn lanes() -> Self {
        Self::new(DeviceKind::Lanes, "lanes".to_string())
    }

    /// What stands for a GPU while code for it is built, or looked for: launches are recorded and nothing runs.
    pub(crate) fn standing_in(target: Target, output: Option<Arc<Output>>) -> Self {
        Self::from_inner(Inner {
            stand_in: Some(StandIn { target, output }),
            ..Inner::new(DeviceKind::Lanes, target.name.to_string())
        })
    }

    /// The NVIDIA GPU with this ordinal: the same device for all who ask while one of them has it, with its
    /// buffers, its compiled kernels and its streams.
    ///
    /// An error without the driver, without such a GPU, or in a build without the feature
    /// `nvptx`.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        // Held while one opens it, so that nobody opens it twice. A panic leaves the table whole.
        let mut open = GPUS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inner) = open.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(Self { inner });
        }
        let gpu = Gpu::open(ordinal)?;
        let name = gpu.name().to_string();
        let device = Self::from_inner(Inner {
            gpu: Some(gpu),
            ..Inner::new(DeviceKind::Cuda(ordinal), name)
        });
        open.insert(ordinal, Arc::downgrade(&device.inner));
        Ok(device)
    }

    /// The device with this name: `cpu`, `interp`, `lanes`, `cuda` or `cuda:1`.
    pub fn from_name(name: &str) -> Result<Self> {
        let unknown = || {
            Error::Invalid(format!(
                "unknown device `{name}`, expected `cpu`, `interp`, `lanes`, `cuda` or `cuda:N`"
            ))
        };
        match name.split_once(':') {
            None => match name {
                "cpu" => Ok(Self::cpu()),
                "interp" => Ok(Self::interpreter()),
                "lanes" => Ok(Self::lanes()),
                "cuda" => Self::cuda(0),
                _ => Err(unknown()),
            },
            Some(("cuda", ordinal)) => Self::cuda(ordinal.parse().map_err(|_| unknown())?),
            Some(_) => Err(unknown()),
        }
    }

    /// A new device of the host that runs only so many programs of each launch, spread evenly over the grid
    /// from the first to the last; for grids that take too long. A GPU stays as it is.
    #[must_use]
    pub fn sampling(self, programs: u64) -> Self {
        if let DeviceKind::Cuda(_) = self.kind() {
            return self;
        }
        Self::from_inner(Inner {
            sample: Some(programs),
            threads: self.inner.threads,
            ..Inner::new(self.kind(), self.name().to_string())
        })
    }

    /// How many programs of a launch this device runs at most.
    pub(crate) fn sample(&self) -> Option<u64> {
        self.inner.sample
    }

    /// What this device is.
    pub fn kind(&self) -> DeviceKind {
        self.inner.kind
    }

    /// The machine that code is made for. The interpreter of block IR has the errors of a CPU.
    pub(crate) fn target(&self) -> Target {
        match (self.kind(), self.gpu()) {
            (DeviceKind::Cpu | DeviceKind::Interpreter, _) => Target::CPU,
            (_, Some(gpu)) => gpu.target(),
            (DeviceKind::Lanes | DeviceKind::Cuda(_), None) => match self.stand_in() {
                Some(stand_in) => stand_in.target,
                None => Target::SM_90A.interpreted(),
            },
        }
    }

    /// A name that tells this model of device from others, as the tuner's file needs it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The newest CUDA that its driver is for, such as `12.8`; none where it has no driver.
    pub(crate) fn driver(&self) -> Option<String> {
        let version = self.gpu()?.driver()?;
        Some(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    /// How many parts of this device run programs side by side: the multiprocessors of a GPU, the
    /// threads of a CPU device, 1 for an interpreter. A grid of a small multiple of it, whose programs
    /// loop over the work, keeps the device busy to the end.
    pub fn multiprocessors(&self) -> usize {
        let threads = || match self.threads() {
            Threads::All => std::thread::available_parallelism().map_or(1, usize::from),
            Threads::One => 1,
        };
        match (self.kind(), self.gpu()) {
            (DeviceKind::Cpu, _) => threads(),
            (_, Some(gpu)) => gpu.multiprocessors() as usize,
            (DeviceKind::Interpreter | DeviceKind::Lanes | DeviceKind::Cuda(_), None) => 1,
        }
    }

    /// A new stream, for launches beside those of the default stream and of other streams.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// Where lies what has the streams.
    pub(crate) fn owner_of_streams(&self) -> usize {
        match self.gpu() {
            None => Arc::as_ptr(&self.inner).addr(),
            Some(gpu) => gpu.address(),
        }
    }

    pub(crate) fn number_of_host_stream(&self) -> usize {
        1 + self.inner.host_streams.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits until all launches on this device have ended, in all its streams.
    ///
    /// # Errors
    /// An error of a launch that nobody was told: the first one of a stream. Those of others are forgotten.
    pub fn synchronize(&self) -> Result<()> {
        refuse("a wait for the device")?;
        if let Some(own) = own_default(self.owner_of_streams()) {
            return self.wait_for(own);
        }
        match self.gpu() {
            None => self.inner.failures.tell(|of| of < APART),
            Some(gpu) => gpu.synchronize(),
        }
    }

    /// Waits for all launches, and gives memory that no array has any more back to the system: a GPU keeps what arrays
    /// leave, for others to take it without waiting.
    pub fn trim_memory(&self) -> Result<()> {
        self.gpu().map_or(Ok(()), |gpu| gpu.trim())
    }

    /// Waits for the launches in a stream, and tells an error of them.
    pub(crate) fn wait_for(&self, stream: usize) -> Result<()> {
        refuse("a wait for a stream")?;
        match self.gpu() {
            None => self.inner.failures.tell(|of| of == stream),
            Some(gpu) => gpu.wait_for_stream(stream),
        }
    }

    /// Waits for the launches in a stream, and tells nothing.
    pub(crate) fn finish(&self, stream: usize) -> Result<()> {
        self.gpu().map_or(Ok(()), |gpu| gpu.finish(stream))
    }

    /// Notes that a launch on the host failed, for who waits for its stream.
    pub(crate) fn fail(&self, stream: usize, failure: &Arc<Failure>) {
        self.inner.failures.add(stream, Arc::clone(failure));
    }

    /// Sends the lines that kernels on this device print to `printer`, those of a launch one after the other, in place
    /// of standard error; launches of several threads may print at the same time; see [`device_print`](crate::prelude::device_print). It may launch nothing that prints. Clones, and all
    /// who name the same GPU, share it.
    ///
    /// ```
    /// # use std::sync::{Arc, Mutex};
    /// # use exactile::{Device, prelude::*};
    /// #[kernel]
    /// fn numbers() {
    ///     device_print("n", arange(0, 4)).mask(arange(0, 4) > 2);
    /// }
    ///
    /// let device = Device::cpu();
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let seen = Arc::clone(&lines);
    /// device.on_print(move |line| seen.lock().unwrap().push(line.to_string()));
    /// numbers().run(&device, 1, ())?;
    /// assert!(lines.lock().unwrap()[0].ends_with("(0, 0, 0) n[3]: 3"));
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn on_print(&self, printer: impl Fn(&str) + Send + Sync + 'static) {
        // What goes may come back here, and so goes under no lock.
        let before = self.printer().replace(Arc::new(printer));
        drop(before);
    }

    fn printer(&self) -> MutexGuard<'_, Option<Printer>> {
        // Nothing panics while it holds the lock.
        let printer = self.inner.printer.lock();
        printer.unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints a line of a kernel.
    pub(crate) fn print(&self, line: &str) {
        let printer = self.printer().clone();
        match printer {
            Some(printer) => printer(line),
            // Nobody can be told that nothing is to be seen.
            None => drop(writeln!(stderr(), "{line}")),
        }
    }

    /// Whether launches that an earlier one proved in bounds skip their checks, as they do unless
    /// told otherwise; see [`Kernel::launch`](crate::Kernel::launch). Clones, and all who name the
    /// same GPU, share the answer.
    pub fn trust_proofs(&self, trust: bool) {
        self.inner.trusts_proofs.store(trust, Ordering::Relaxed);
    }

    pub(crate) fn trusts_proofs(&self) -> bool {
        self.inner.trusts_proofs.load(Ordering::Relaxed)
    }

    /// Whether code for this GPU is taken from the cache on disk and kept there, as it is unless told otherwise.
    /// All who name the same GPU share the answer. Other devices keep nothing on disk.
    pub fn use_disk(&self, uses: bool) {
        self.inner.uses_disk.store(uses, Ordering::Relaxed);
    }

    /// Has launches on this GPU take code that was built ahead of time, where it is there: before what the cache on
    /// disk holds, and in place of a compiler. All who name the same GPU share it; of several folders the first one that
    /// has the code counts. Other devices make their code themselves.
    pub fn use_built(&self, built: &Built) {
        self.built().add(built);
    }

    pub(crate) fn built(&self) -> &Folders {
        &self.inner.built
    }

    pub(crate) fn stand_in(&self) -> Option<&StandIn> {
        self.inner.stand_in.as_ref()
    }

    /// Whether its code is that of the lanes of a GPU, which a schedule is for.
    pub(crate) fn runs_lanes(&self) -> bool {
        self.target().distribution == Distribution::Distributed
    }

    /// Whether its code is that of a GPU.
    pub(crate) fn runs_gpu_code(&self) -> bool {
        self.gpu().is_some() || self.stand_in().is_some()
    }

    /// Where its code is kept on disk, if anywhere.
    pub(crate) fn store(&self) -> Option<&'static Store> {
        let uses = self.inner.uses_disk.load(Ordering::Relaxed);
        (uses && self.gpu().is_some()).then(disk::shared)?
    }

    pub(crate) fn threads(&self) -> Threads {
        self.inner.threads
    }

    pub(crate) fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.inner.gpu.as_ref()
    }

    /// Seconds that this device has spent on compiling, tracing included; those of all threads
    /// where several compile side by side.
    pub fn compile_seconds(&self) -> f64 {
        self.inner.cache.costs().seconds.values().sum()
    }

    /// How many compiled kernels this device holds.
    pub fn compiled_kernels(&self) -> usize {
        self.inner.cache.len()
    }

    /// Whether memory of one is memory of the other.
    pub(crate) fn shares_memory_with(&self, other: &Self) -> bool {
        match (self.gpu(), other.gpu()) {
            (None, None) => true,
            // The streams of a GPU order all work on a memory.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }

    pub(crate) fn hooks(&self) -> &Arc<Hooks> {
        &self.inner.hooks
    }

    pub(crate) fn watch(&self) -> &Watch {
        &self.inner.watch
    }

    /// Whether both are one device, with one cache and the same streams.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn cache(&self) -> &Arc<Cache> {
        &self.inner.cache
    }

    /// What the launches of `work` by this thread on this device would compile. They do nothing
    /// else.
    pub(crate) fn record(&self, work: impl FnOnce() -> Result<()>) -> Result<Vec<Job>> {
        self.inner.recordings.record(work)
    }

    /// Whether launches by this thread are recorded in place of run.
    pub(crate) fn is_recording(&self) -> bool {
        self.inner.recordings.is_active()
    }

    /// Records a launch by this thread.
    pub(crate) fn note(&self, job: Job) {
        self.inner.recordings.note(job);
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            DeviceKind::Cpu => f.write_str("cpu"),
            DeviceKind::Interpreter => f.write_str("interp"),
            DeviceKind::Lanes => f.write_str("lanes"),
            DeviceKind::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}
