//! What is made when it is first needed, and once.
//!
//! What makes it may run the user's code and takes long, so no lock is held meanwhile: other threads
//! wait until it is made, and the same thread, which would wait for itself, gets an error.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};

use crate::error::{Error, Result};

/// A place for one value. A failure leaves it empty for the next one who needs it. Once it is made, it is read
/// without a lock.
pub(crate) struct Slot<T> {
    made: OnceLock<T>,
    /// The thread that makes it now.
    maker: Mutex<Option<ThreadId>>,
    changed: Condvar,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            made: OnceLock::new(),
            maker: Mutex::new(None),
            changed: Condvar::new(),
        }
    }
}

impl<T> Slot<T> {
    fn maker(&self) -> MutexGuard<'_, Option<ThreadId>> {
        // Nothing panics while it holds the lock.
        self.maker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn made(&self) -> Option<&T> {
        self.made.get()
    }

    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let this = thread::current().id();
        let mut maker = self.maker();
        loop {
            // It is made before its maker says that it has ended.
            if let Some(made) = self.made.get() {
                return Ok(made);
            }
            match *maker {
                Some(maker) if maker == this => {
                    return Err(Error::Invalid(
                        "a kernel is needed while this thread compiles it".to_string(),
                    ));
                }
                Some(_) => {
                    let woken = self.changed.wait(maker);
                    maker = woken.unwrap_or_else(PoisonError::into_inner);
                }
                None => break,
            }
        }
        *maker = Some(this);
        drop(maker);
        let _making = Making(self);
        let made = make()?;
        Ok(self.made.get_or_init(|| made))
    }
}

/// Ends the making and wakes all who wait, even after a panic.
struct Making<'a, T>(&'a Slot<T>);

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        *self.0.maker() = None;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use exactile_core::random::Random;

    use super::*;

    #[test]
    fn many_threads_make_it_once() {
        let (slot, makers) = (Slot::default(), AtomicUsize::new(0));
        let begin = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begin.wait();
                    let made = slot.get_or_make(|| {
                        thread::yield_now();
                        Ok(makers.fetch_add(1, Ordering::Relaxed))
                    });
                    assert_eq!(*made.expect("is made"), 0);
                });
            }
        });
        assert!(slot.made().is_some());
        assert_eq!(makers.into_inner(), 1);
    }

    #[test]
    fn an_error_and_a_panic_leave_it_to_those_who_wait() {
        for panics in [false, true] {
            let slot = Slot::default();
            let begin = Barrier::new(2);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let failing = AssertUnwindSafe(|| {
                        slot.get_or_make(|| {
                            begin.wait();
                            assert!(!panics, "on purpose");
                            Err(Error::Invalid("on purpose".to_string()))
                        })
                    });
                    assert!(!catch_unwind(failing).is_ok_and(|made| made.is_ok()));
                });
                begin.wait();
                assert_eq!(*slot.get_or_make(|| Ok(3)).expect("is made"), 3);
            });
        }
    }

    /// Threads that need it at once; whoever makes it may fail, panic or need it itself first.
    #[test]
    fn one_makes_it_at_a_time_whatever_befalls_the_others() {
        for round in 0..200 {
            let (slot, inside, made) = (Slot::default(), AtomicUsize::new(0), AtomicUsize::new(0));
            let (begin, failures) = (Barrier::new(6), AtomicUsize::new(0));
            let work = |thread: u64| {
                let mut random = Random::stream(round, thread);
                begin.wait();
                loop {
                    let end = random.below(4);
                    let make = || {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two make it");
                        assert_eq!(made.load(Ordering::SeqCst), 0, "it is made again");
                        thread::yield_now();
                        let needs_itself = end == 1 && slot.get_or_make(|| Ok(0)).is_err();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        match end {
                            0 => resume_unwind(Box::new("on purpose")),
                            1 | 2 => {
                                assert!(end == 2 || needs_itself, "it waits for itself");
                                Err(Error::Invalid("on purpose".to_string()))
                            }
                            _ => Ok(made.fetch_add(1, Ordering::SeqCst) + 7),
                        }
                    };
                    match catch_unwind(AssertUnwindSafe(|| slot.get_or_make(make))) {
                        Ok(Ok(&value)) => return assert_eq!(value, 7),
                        Ok(Err(error)) => {
                            assert!(error.to_string().contains("on purpose"), "{error}")
                        }
                        Err(panic) => assert_eq!(panic.downcast_ref(), Some(&"on purpose")),
                    }
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            };
            thread::scope(|scope| {
                for thread in 0..6 {
                    let work = &work;
                    scope.spawn(move || work(thread));
                }
            });
            assert!(slot.made().is_some());
            assert_eq!(made.into_inner(), 1, "after {failures:?} failures");
        }
    }

    #[test]
    fn a_maker_that_needs_it_gets_an_error() {
        let slot = Slot::default();
        let made = slot.get_or_make(|| slot.get_or_make(|| Ok(1)).copied());
        let message = made.expect_err("needs itself").to_string();
        assert!(
            message.contains("while this thread compiles it"),
            "{message}"
        );
        assert_eq!(*slot.get_or_make(|| Ok(2)).expect("is made"), 2);
    }
}
