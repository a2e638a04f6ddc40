//! Errors of launches that nobody has waited for yet.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::order::Use;

/// The error of a launch, which is told once.
#[derive(Debug)]
pub(crate) struct Failure(Mutex<Option<Error>>);

impl Failure {
    fn new(error: Error) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(error))))
    }

    /// The error, unless somebody was told.
    pub(crate) fn tell(&self) -> Result<()> {
        // Nothing panics while it holds the lock.
        let mut error = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        error.take().map_or(Ok(()), Err)
    }
}

/// For each stream of a device the first error that nobody was told.
#[derive(Default, Debug)]
pub(crate) struct Failures {
    /// Whether there may be one, for all who wait to pass by without the lock.
    any: AtomicBool,
    first: Mutex<Vec<(Use, Arc<Failure>)>>,
}

impl Failures {
    fn first(&self) -> MutexGuard<'_, Vec<(Use, Arc<Failure>)>> {
        // A panic elsewhere leaves the list whole: each change is one insertion or removal.
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that this work failed. Only the first error of a stream is kept here.
    pub(crate) fn add(&self, work: Use, error: Error) -> Arc<Failure> {
        let failure = Failure::new(error);
        let mut first = self.first();
        if first.iter().all(|(other, _)| other.stream != work.stream) {
            first.push((work, Arc::clone(&failure)));
            self.any.store(true, Ordering::Release);
        }
        failure
    }

    /// Tells an error of work for which `waited` holds, and forgets the others of such work.
    pub(crate) fn tell(&self, waited: impl Fn(Use) -> bool) -> Result<()> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut first = self.first();
        let mut told = Ok(());
        first.retain(|(work, failure)| {
            let ended = waited(*work);
            if ended && told.is_ok() {
                told = failure.tell();
            }
            !ended
        });
        self.any.store(!first.is_empty(), Ordering::Release);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_stream_is_told_once() {
        let failures = Failures::default();
        let work = |stream, ticket| Use { stream, ticket };
        let error = |text: &str| Error::Invalid(text.to_string());
        failures.add(work(0, 3), error("first"));
        let second = failures.add(work(0, 4), error("second"));
        let other = failures.add(work(1, 1), error("other"));
        assert!(failures.tell(|work| work.stream == 2).is_ok());
        let told = failures.tell(|work| work.stream == 0);
        assert_eq!(told.expect_err("failed").to_string(), "first");
        assert!(failures.tell(|work| work.stream == 0).is_ok());
        assert!(second.tell().is_err() && second.tell().is_ok());
        assert!(other.tell().is_err());
        assert!(failures.tell(|_| true).is_ok());
    }
}
