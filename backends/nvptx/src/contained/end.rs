//! The end of the process waits for LLVM, whose tables go then while its threads may still read them.
#![expect(unsafe_code, reason = "the system calls what it is given")]

use std::ffi::c_int;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// The longest wait: a compilation takes less, and one that hangs must not keep the process.
const LONGEST: Duration = Duration::from_secs(10);

/// What is under way.
static WORKS: Mutex<Works> = Mutex::new(Works {
    count: 0,
    ended: 0,
    is_over: false,
});
static CHANGED: Condvar = Condvar::new();

struct Works {
    count: usize,
    ended: u64,
    /// Whether none begins any more.
    is_over: bool,
}

fn works() -> MutexGuard<'static, Works> {
    // Nothing panics while it holds the lock.
    WORKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// LLVM works as long as this is there.
pub(super) struct Work;

impl Work {
    pub(super) fn begin() -> Result<Self> {
        let mut works = works();
        if works.is_over {
            return Err(Error::Llvm("the process ends".to_string()));
        }
        works.count += 1;
        Ok(Self)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut works = works();
        works.count -= 1;
        works.ended += 1;
        // LLVM makes some of its tables when it first needs them: they go before what was registered earlier, and who waits
        // then lets LLVM read them.
        if works.ended.is_power_of_two() && !works.is_over {
            register();
        }
        CHANGED.notify_all();
    }
}

/// Has the end of the process wait from now on. Where the system has no room for that, it does not.
fn register() {
    let _ = atexit(wait);
}

// SAFETY: this is how C declares it.
unsafe extern "C" {
    /// Has `last` called when the process ends in order, before all that was registered earlier.
    safe fn atexit(last: extern "C" fn()) -> c_int;
}

extern "C" fn wait() {
    let mut works = works();
    works.is_over = true;
    let ended = CHANGED.wait_timeout_while(works, LONGEST, |works| works.count > 0);
    drop(ended);
}
