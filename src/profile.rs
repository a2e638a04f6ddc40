//! What a device did while some work ran, and when: a table, and a timeline for a browser.

mod shown;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::{Launch, Passed};

use crate::device::Device;
use crate::error::{Error, Result};

/// What a device did while [`Device::profile`] watched it.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    device: String,
    spans: Vec<Span>,
}

/// Something that a device did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Span {
    /// The kernel, or in words what else it was.
    pub name: Arc<str>,
    /// What it was.
    pub kind: SpanKind,
    /// Which stream of the device it was in; 0 is the default one.
    pub stream: usize,
    /// Seconds from the beginning of the profile to its own.
    pub start: f64,
    /// Seconds that it took.
    pub seconds: f64,
    /// What it moved at least if it touched all of its arrays once: bytes of the arrays of a launch, or of a copy. Nothing of graphs.
    pub bytes: Option<u64>,
    /// Programs along each axis, of a launch.
    pub grid: Option<Grid>,
}

/// What a device did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpanKind {
    /// It ran a kernel.
    Launch,
    /// It ran the launches of a graph.
    Graph,
    /// It copied memory, from or to the host or within itself.
    Copy,
    /// It filled memory.
    Fill,
}

impl SpanKind {
    /// Its name in a timeline.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Graph => "graph",
            Self::Copy => "copy",
            Self::Fill => "fill",
        }
    }
}

/// What is about to be done.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) name: Arc<str>,
    pub(crate) kind: SpanKind,
    pub(crate) bytes: Option<u64>,
    pub(crate) grid: Option<Grid>,
}

impl Label {
    /// Of a launch of a kernel.
    pub(crate) fn of_launch(name: &Arc<str>, launch: &Launch<'_>) -> Self {
        let arguments = launch.arguments.iter();
        let bytes = arguments.map(|argument| match *argument {
            Passed::Memory {
                bytes,
                access: Access::Read | Access::ReadWrite,
                ..
            } => bytes,
            Passed::Scalar(_) => 0,
        });
        Self {
            name: Arc::clone(name),
            kind: SpanKind::Launch,
            bytes: Some(bytes.sum()),
            grid: Some(launch.grid),
        }
    }

    /// Of a graph.
    pub(crate) fn of_graph(launches: usize) -> Self {
        Self {
            name: format!("graph of {launches} launches").into(),
            kind: SpanKind::Graph,
            bytes: None,
            grid: None,
        }
    }

    /// Of a copy or a fill.
    #[cfg_attr(
        not(feature = "cuda"),
        expect(dead_code, reason = "the host is not watched while it copies")
    )]
    pub(crate) fn of_memory(name: &str, kind: SpanKind, bytes: usize) -> Self {
        Self {
            name: name.into(),
            kind,
            bytes: Some(bytes as u64),
            grid: None,
        }
    }

    pub(crate) fn span(self, stream: usize, start: f64, seconds: f64) -> Span {
        Span {
            name: self.name,
            kind: self.kind,
            stream,
            start,
            seconds,
            bytes: self.bytes,
            grid: self.grid,
        }
    }
}

impl Span {
    /// Whether both were under way at one time.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.start + other.seconds && other.start < self.start + self.seconds
    }
}

impl Profile {
    /// What was done, in the order of the beginnings.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }
}

/// The watch on what the host does for a device.
#[derive(Default)]
pub(crate) struct Watch {
    /// Whether there is one, for launches to pass by without the lock.
    is_on: AtomicBool,
    watched: Mutex<Option<Watched>>,
}

/// What was seen since the beginning.
struct Watched {
    begin: Instant,
    spans: Vec<Span>,
}

impl Watch {
    fn watched(&self) -> MutexGuard<'_, Option<Watched>> {
        // Nothing panics while it holds the lock.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> bool {
        let mut watched = self.watched();
        let is_free = watched.is_none();
        if is_free {
            *watched = Some(Watched {
                begin: Instant::now(),
                spans: Vec::new(),
            });
            self.is_on.store(true, Ordering::Relaxed);
        }
        is_free
    }

    fn end(&self) -> Vec<Span> {
        let watched = self.watched().take();
        self.is_on.store(false, Ordering::Relaxed);
        watched.map(|it| it.spans).unwrap_or_default()
    }

    /// Does `work` of the host, and notes it if somebody watches.
    pub(crate) fn around<T>(
        &self,
        stream: usize,
        label: impl FnOnce() -> Label,
        work: impl FnOnce() -> T,
    ) -> T {
        if !self.is_on.load(Ordering::Relaxed) {
            return work();
        }
        let begin = Instant::now();
        let done = work();
        let seconds = begin.elapsed().as_secs_f64();
        if let Some(watched) = &mut *self.watched() {
            // What began before the watch is no part of it.
            if let Some(start) = begin.checked_duration_since(watched.begin) {
                let span = label().span(stream, start.as_secs_f64(), seconds);
                watched.spans.push(span);
            }
        }
        done
    }
}

/// Ends a watch once, even after a panic.
struct Ending<'a>(Option<&'a Device>);

impl Ending<'_> {
    /// What was seen.
    fn end(&mut self) -> Result<Vec<Span>> {
        let Some(device) = self.0.take() else {
            return Ok(Vec::new());
        };
        // The place is another watch's only when nothing of this one is left.
        let watched = device.gpu().map(|gpu| gpu.watched());
        let spans = device.watch().end();
        watched.unwrap_or(Ok(spans))
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // Of an end that nobody has seen nobody asks.
        let _ = self.end();
    }
}

impl Device {
    /// Watches what this device does from now to the end of `work`, whoever asks for it, and waits for its end: launches and
    /// graphs, on a GPU also copies and fills, by events in their streams. An event takes a GPU about a microsecond, so short
    /// launches look longer than they are.
    ///
    /// # Errors
    /// Those of `work`; another profile of the device is under way; the GPU does not say. Errors of launches stay for who
    /// waits for them.
    ///
    /// ```
    /// # use exactile::prelude::*;
    /// #[kernel]
    /// fn double(x: PtrMut<f32>) {
    ///     let at = x + arange(0, 4);
    ///     store(at, load(at) * 2.0);
    /// }
    ///
    /// let device = Device::cpu();
    /// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
    /// let (_, profile) = device.profile(|| {
    ///     double().launch(&device, 1, (&mut x,))?;
    ///     double().launch(&device, 1, (&mut x,))
    /// })?;
    /// assert_eq!(profile.spans().len(), 2);
    /// println!("{profile}");
    /// # Ok::<(), exactile::Error>(())
    /// ```
    pub fn profile<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Profile)> {
        if !self.watch().start() {
            return Err(Error::Invalid(format!(
                "another profile of {self} is under way: end it first"
            )));
        }
        let mut ending = Ending(Some(self));
        if let Some(gpu) = self.gpu() {
            gpu.watch()?;
        }
        let done = work()?;
        let mut spans = ending.end()?;
        spans.sort_by(|one, other| one.start.total_cmp(&other.start));
        let device = format!("{self}, {}", self.name());
        Ok((done, Profile { device, spans }))
    }
}
