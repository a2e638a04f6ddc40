//! The end of the process waits a moment for work that nobody waits for.
#![expect(unsafe_code, reason = "the system calls what it is given")]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(2);

static IS_NEAR: AtomicBool = AtomicBool::new(false);
/// How much is under way.
static WORKS: Mutex<usize> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

fn works() -> MutexGuard<'static, usize> {
    // Nothing panics while it holds the lock.
    WORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the process ends: work that nobody waits for is to stop.
pub(crate) fn is_near() -> bool {
    IS_NEAR.load(Ordering::Relaxed)
}

/// An error where the process ends.
pub(crate) fn check() -> Result<()> {
    match is_near() {
        false => Ok(()),
        true => Err(Error::Invalid("the process ends".to_string())),
    }
}

/// Work that nobody waits for, as long as this is there.
pub(crate) struct Work;

impl Work {
    pub(crate) fn begin() -> Self {
        static REGISTERED: Once = Once::new();
        // Where the system has no room for it, nothing waits.
        REGISTERED.call_once(|| {
            let _ = atexit(wait);
        });
        *works() += 1;
        Self
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        *works() -= 1;
        CHANGED.notify_all();
    }
}

// SAFETY: this is how C declares it.
unsafe extern "C" {
    /// Has `last` called when the process ends in order.
    safe fn atexit(last: extern "C" fn()) -> c_int;
}

extern "C" fn wait() {
    IS_NEAR.store(true, Ordering::Relaxed);
    drop(CHANGED.wait_timeout_while(works(), LONGEST, |works| *works > 0));
}
