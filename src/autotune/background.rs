//! Searches on a thread of their own, for problems that nobody has tuned yet.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};

use exactile_core::ir::{Grid, Literal};

use super::Tuner;
use super::kernels::{BUDGET, Runs, TunedKernel};
use crate::arguments::BoundArguments;
use crate::bound::{Bound, Choices};
use crate::buffer::Buffer;
use crate::configure::Configure;
use crate::device::Device;
use crate::error::Result;

/// Whether a search is under way: two would measure each other.
static SEARCHES: AtomicBool = AtomicBool::new(false);

/// A search on a thread of its own. Where this is dropped it ends as soon as the candidate that has its turn has ended, and
/// keeps nothing.
#[must_use = "a search ends where this is dropped"]
pub struct BackgroundSearch<K: Configure> {
    stop: Stop,
    thread: JoinHandle<Result<TunedKernel<K>>>,
}

/// Ends a search when it goes, and waits for that end.
struct Stop {
    wanted: Arc<AtomicBool>,
    /// Nothing is sent: the other side goes with the search.
    ended: Receiver<()>,
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.wanted.store(true, Ordering::Relaxed);
        let _ = self.ended.recv();
    }
}

impl<K: Configure> fmt::Debug for BackgroundSearch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundSearch")
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}

impl<K: Configure> BackgroundSearch<K> {
    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end: the kernel as [`tune_by`](super::Tune::tune_by) gives it.
    ///
    /// # Errors
    /// Those of the search.
    pub fn finish(self) -> Result<TunedKernel<K>> {
        let Self { stop, thread } = self;
        // Panics of candidates are errors already; any other one goes on here.
        let found = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        drop(stop);
        found
    }
}

/// The next search may begin, even after a panic.
struct Searching;

impl Searching {
    /// Nothing while there is another search.
    fn begin() -> Option<Self> {
        (!SEARCHES.swap(true, Ordering::AcqRel)).then_some(Self)
    }
}

impl Drop for Searching {
    fn drop(&mut self) {
        SEARCHES.store(false, Ordering::Release);
    }
}

/// A copy of an argument.
enum Copied {
    Read(Buffer<u8>),
    ReadWrite(Buffer<u8>),
    Scalar(Literal),
}

impl Copied {
    fn of(argument: &Bound<'_>, device: &Device) -> Result<Self> {
        let (part, written) = match argument {
            Bound::Read(part) => (*part, false),
            Bound::ReadWrite(part) => (part.shared(), true),
            Bound::Scalar(literal) => return Ok(Self::Scalar(*literal)),
        };
        let mut copy = Buffer::zeros(device, part.len())?;
        copy.part_mut().copy_from(part)?;
        Ok(match written {
            true => Self::ReadWrite(copy),
            false => Self::Read(copy),
        })
    }

    fn bound(&mut self) -> Bound<'_> {
        match self {
            Self::Read(copy) => Bound::Read(copy.part()),
            Self::ReadWrite(copy) => Bound::ReadWrite(copy.part_mut()),
            Self::Scalar(literal) => Bound::Scalar(*literal),
        }
    }
}

/// Begins a search with copies of these arguments, unless another one is under way or no thread starts.
pub(super) fn begin<K>(
    kernel: &K,
    tuner: &Tuner,
    (device, grid): (&Device, Option<Grid>),
    bound: &BoundArguments<'_>,
) -> Result<Option<BackgroundSearch<K>>>
where
    K: Configure + Send + 'static,
    K::Config: Send,
{
    let Some(searching) = Searching::begin() else {
        return Ok(None);
    };
    let copies = bound.list.iter().map(|it| Copied::of(it, device));
    let mut copies = copies.collect::<Result<Vec<_>>>()?;
    let wanted = Arc::new(AtomicBool::new(false));
    let (ends, ended) = channel::<()>();
    let tuner = Tuner {
        budget: tuner.budget.or(Some(BUDGET)),
        stop: Arc::clone(&wanted),
        ..tuner.clone()
    };
    let (kernel, device, choices): (K, Device, Choices) =
        (kernel.clone(), device.clone(), bound.choices.clone());
    let search = move || {
        let _ends = (searching, ends);
        let list = copies.iter_mut().map(Copied::bound).collect();
        let bound = BoundArguments { list, choices };
        Runs::new(&kernel, &device, grid, bound)?.tune(&tuner)
    };
    let thread = thread::Builder::new().spawn(search).ok();
    let stop = Stop { wanted, ended };
    Ok(thread.map(|thread| BackgroundSearch { stop, thread }))
}
