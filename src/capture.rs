//! Captures: launches by this thread that are written down in place of put into a stream.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;

use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use smallvec::SmallVec;

use crate::bound::FEW;
use crate::code::{Code, Runs, Sites};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::Told;

thread_local! {
    /// Whether this thread captures, for launches to pass by.
    static IS_ACTIVE: Cell<bool> = const { Cell::new(false) };
    static CAPTURE: RefCell<Option<Capture>> = const { RefCell::new(None) };
}

/// A capture of this thread.
struct Capture {
    device: Device,
    stream: usize,
    /// Where it was begun.
    place: &'static Location<'static>,
    launches: Vec<Captured>,
}

/// A launch that was captured: its code, and all that it was given.
pub(crate) struct Captured {
    pub(crate) name: Arc<str>,
    pub(crate) sites: Arc<Sites>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) grid: Grid,
    pub(crate) arguments: SmallVec<[Passed; FEW]>,
}

impl Captured {
    /// The launch as plain data.
    pub(crate) fn launch(&self) -> Launch<'_> {
        Launch::new(self.grid, &self.arguments)
    }
}

/// Ends the capture of this thread, even after a panic.
struct Ending;

impl Drop for Ending {
    fn drop(&mut self) {
        IS_ACTIVE.set(false);
        // It is there: who ends a capture has begun it.
        let _ = CAPTURE.try_with(RefCell::take);
    }
}

/// Whether launches of this thread are captured.
pub(crate) fn is_active() -> bool {
    IS_ACTIVE.get()
}

/// The launches that `work` puts into a stream of `device`; none of them runs.
pub(crate) fn capture(
    (device, stream): (&Device, usize),
    place: &'static Location<'static>,
    work: impl FnOnce() -> Result<()>,
) -> Result<Vec<Captured>> {
    if device.is_recording() {
        return Err(Error::Invalid(format!(
            "a capture while launches are listed for compilation would hold none: capture before, or let the capture be \
             made when they run\n  --> the capture at {place}"
        )));
    }
    refuse("another capture")?;
    let capture = Capture {
        device: device.clone(),
        stream,
        place,
        launches: Vec::new(),
    };
    // What is local to a thread goes while the thread ends.
    let begun = CAPTURE.try_with(|it| it.replace(Some(capture)));
    begun.map_err(|_| Error::Invalid(format!("a capture of a thread that ends: {place}")))?;
    IS_ACTIVE.set(true);
    let _ending = Ending;
    work()?;
    let capture = CAPTURE.take();
    Ok(capture.map(|it| it.launches).unwrap_or_default())
}

/// Says that `what` cannot be captured, where this thread captures.
pub(crate) fn refuse(what: &str) -> Result<()> {
    if !is_active() {
        return Ok(());
    }
    let place = CAPTURE.with_borrow(|it| it.as_ref().map(|it| it.place));
    let place = place.map_or_else(String::new, |place| {
        format!("\n  --> the capture at {place}")
    });
    Err(Error::Invalid(format!(
        "{what} cannot be captured: a graph holds launches alone, so do it before the capture or between replays{place}"
    )))
}

/// Writes a launch down; it is one into a stream of `device`.
pub(crate) fn add(
    (device, stream): (&Device, usize),
    told: Told,
    code: &Code,
    launch: &Launch<'_>,
) -> Result<()> {
    let name = &code.name;
    if told == Told::Runner {
        return refuse(&format!("a run of `{name}`, which is waited for,"));
    }
    if !code.prints.is_empty() {
        return refuse(&format!(
            "a launch of `{name}`, which prints and is waited for,"
        ));
    }
    CAPTURE.with_borrow_mut(|capture| {
        let Some(capture) = capture else {
            return Ok(());
        };
        if !device.is_same(&capture.device) || stream != capture.stream {
            return Err(Error::Invalid(format!(
                "a launch of `{name}` into another stream than the one that is captured: put it into the stream that the \
                 capture hands over, or launch it before\n  --> the capture at {}",
                capture.place
            )));
        }
        capture.launches.push(Captured {
            name: Arc::clone(name),
            sites: Arc::clone(&code.sites),
            runs: Arc::clone(&code.runs),
            grid: launch.grid,
            arguments: launch.arguments.into(),
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread;

    use super::*;

    /// Captures when its thread ends.
    struct Late(Sender<Result<usize>>);

    impl Drop for Late {
        fn drop(&mut self) {
            let device = Device::interpreter();
            let captured = capture((&device, 0), Location::caller(), || Ok(()));
            // The test asks.
            let _ = self.0.send(captured.map(|list| list.len()));
        }
    }

    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }

    #[test]
    fn a_capture_while_its_thread_ends_is_an_error() {
        let (sender, receiver) = channel();
        let ended = thread::spawn(move || {
            LATE.set(Some(Late(sender)));
            // Made after it, and gone before it.
            let device = Device::interpreter();
            let list = capture((&device, 0), Location::caller(), || Ok(()));
            list.map(|list| list.len())
        });
        assert_eq!(ended.join().expect("ends").expect("captures"), 0);
        let told = receiver.recv().expect("is sent").expect_err("is too late");
        assert!(told.to_string().contains("a thread that ends"), "{told}");
    }
}
