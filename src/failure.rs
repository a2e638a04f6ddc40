//! Errors of launches that nobody was told of yet.

use std::cell::RefCell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// So many errors of a stream are kept for who waits for it.
const KEPT: usize = 64;

/// What became of a launch, whose error is told once.
#[derive(Default, Debug)]
pub(crate) struct Failure(Mutex<State>);

#[derive(Default, Debug)]
enum State {
    /// Nobody has seen its end.
    #[default]
    Pending,
    /// There was no error, or somebody was told.
    Settled,
    Failed(Error),
}

impl Failure {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end of the launch.
    pub(crate) fn settle(&self, ended: Result<()>) {
        *self.state() = ended.map_or_else(State::Failed, |()| State::Settled);
    }

    /// The error, unless somebody was told.
    pub(crate) fn tell(&self) -> Result<()> {
        let mut state = self.state();
        match mem::take(&mut *state) {
            State::Pending => Ok(()),
            State::Settled => {
                *state = State::Settled;
                Ok(())
            }
            State::Failed(error) => {
                *state = State::Settled;
                Err(error)
            }
        }
    }

    fn has_error(&self) -> bool {
        matches!(*self.state(), State::Failed(_))
    }
}

thread_local! {
    /// What the launches by this thread come to, while somebody waits for these alone.
    static OWN: RefCell<Option<Vec<Arc<Failure>>>> = const { RefCell::new(None) };
}

/// The launches by this thread that may fail, from when it is made until it is dropped: those of others stay for who waits
/// for them. Of two, the inner one has what is launched meanwhile.
pub(crate) struct Own(Option<Vec<Arc<Failure>>>);

impl Own {
    pub(crate) fn begin() -> Self {
        Self(OWN.with(|own| own.replace(Some(Vec::new()))))
    }

    /// Notes a launch by this thread, for who waits for its own if anybody does.
    pub(crate) fn note(failure: &Arc<Failure>) {
        // What is local to a thread goes while the thread ends.
        let _ = OWN.try_with(|own| {
            if let Some(list) = &mut *own.borrow_mut() {
                list.push(Arc::clone(failure));
            }
        });
    }

    /// Tells the first error of the launches, which have ended; nobody else is told any of them.
    pub(crate) fn tell(&self) -> Result<()> {
        let list = OWN.with(|own| own.borrow_mut().as_mut().map(mem::take));
        let told = list.iter().flatten().map(|failure| failure.tell());
        told.fold(Ok(()), Result::and)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = OWN.try_with(|own| own.replace(self.0.take()));
    }
}

/// The launches that wrote a memory, or a part of it, since the host wrote all of it, but for those that are known to be
/// right.
#[derive(Default, Debug)]
pub(crate) struct Writers(Mutex<Vec<Arc<Failure>>>);

impl Writers {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Failure>>> {
        // As for the list of a device.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a launch that writes the memory.
    pub(crate) fn add(&self, failure: &Arc<Failure>) {
        let mut list = self.list();
        if list.len() == list.capacity() {
            let mut any_failed = false;
            list.retain(|earlier| match &*earlier.state() {
                State::Pending => true,
                State::Settled => false,
                State::Failed(_) => !mem::replace(&mut any_failed, true),
            });
        }
        list.push(Arc::clone(failure));
    }

    /// Notes those of another memory, which is copied to this one.
    #[cfg_attr(
        not(any(test, feature = "cuda")),
        expect(dead_code, reason = "only a GPU copies what may have failed")
    )]
    pub(crate) fn add_all(&self, other: &Self) {
        // One lock at a time: two threads may copy either way.
        let writers = other.list().clone();
        for failure in &writers {
            self.add(failure);
        }
    }

    /// Takes them out, for who writes all of the memory.
    pub(crate) fn take(&self) -> Vec<Arc<Failure>> {
        mem::take(&mut *self.list())
    }

    /// Knows them again, before all others: the host did not write.
    pub(crate) fn put_back(&self, earlier: Vec<Arc<Failure>>) {
        self.list().splice(0..0, earlier);
    }

    /// Tells the first error that nobody was told. The launches have ended.
    pub(crate) fn tell(&self) -> Result<()> {
        self.list().iter().try_for_each(|failure| failure.tell())
    }
}

/// The errors of the launches in the streams of a device, each stream under a number that no other one ever has.
#[derive(Default, Debug)]
pub(crate) struct Failures {
    /// Whether there may be one, for all who wait to pass by without the lock.
    any: AtomicBool,
    list: Mutex<Vec<(usize, Arc<Failure>)>>,
}

impl Failures {
    fn list(&self) -> MutexGuard<'_, Vec<(usize, Arc<Failure>)>> {
        // A panic elsewhere leaves the list whole: each change is one insertion or removal.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a launch in this stream failed.
    pub(crate) fn add(&self, stream: usize, failure: Arc<Failure>) {
        let mut list = self.list();
        list.retain(|(_, earlier)| earlier.has_error());
        if list.iter().filter(|(other, _)| *other == stream).count() < KEPT {
            list.push((stream, failure));
        }
        self.any.store(true, Ordering::Release);
    }

    /// Tells the first error of the streams for which `waited` holds that nobody was told, and forgets the others of
    /// them.
    pub(crate) fn tell(&self, waited: impl Fn(usize) -> bool) -> Result<()> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut list = self.list();
        let mut told = Ok(());
        list.retain(|(stream, failure)| {
            let ended = waited(*stream);
            if ended && told.is_ok() {
                told = failure.tell();
            }
            !ended
        });
        self.any.store(!list.is_empty(), Ordering::Release);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(text: &str) -> Arc<Failure> {
        let failure = Failure::default();
        failure.settle(Err(Error::Invalid(text.to_string())));
        Arc::new(failure)
    }

    fn told(result: Result<()>) -> String {
        result.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn the_first_error_of_a_stream_is_told_once() {
        let failures = Failures::default();
        let (first, second, other) = (failed("first"), failed("second"), failed("other"));
        failures.add(0, first);
        failures.add(0, Arc::clone(&second));
        failures.add(1, Arc::clone(&other));
        assert_eq!(told(failures.tell(|stream| stream == 2)), "");
        assert_eq!(told(failures.tell(|stream| stream == 0)), "first");
        assert_eq!(told(failures.tell(|stream| stream == 0)), "");
        assert_eq!(told(second.tell()), "second");
        assert_eq!(told(second.tell()), "");
        assert_eq!(told(other.tell()), "other");
        assert_eq!(told(failures.tell(|_| true)), "");
    }

    #[test]
    fn an_error_that_was_told_hides_no_other() {
        let failures = Failures::default();
        let (first, second) = (failed("first"), failed("second"));
        failures.add(0, Arc::clone(&first));
        failures.add(0, second);
        assert_eq!(told(first.tell()), "first");
        assert_eq!(told(failures.tell(|stream| stream == 0)), "second");
        let third = failed("third");
        failures.add(0, Arc::clone(&third));
        assert_eq!(told(third.tell()), "third");
        failures.add(0, failed("fourth"));
        assert_eq!(told(failures.tell(|_| true)), "fourth");
    }

    #[test]
    fn who_waits_for_its_own_launches_is_told_of_no_others() {
        let (before, first, second, inner) = (
            failed("before"),
            failed("first"),
            failed("second"),
            failed("inner"),
        );
        Own::note(&before);
        let own = Own::begin();
        Own::note(&first);
        {
            let others = Own::begin();
            Own::note(&inner);
            assert_eq!(told(others.tell()), "inner");
        }
        Own::note(&second);
        assert_eq!(told(own.tell()), "first");
        assert_eq!(told(own.tell()), "");
        assert_eq!(told(second.tell()), "");
        drop(own);
        Own::note(&before);
        assert_eq!(told(before.tell()), "before");
    }

    #[test]
    fn a_memory_knows_the_failures_of_its_writers() {
        let writers = Writers::default();
        let pending = Arc::new(Failure::default());
        writers.add(&pending);
        for _ in 0..100 {
            writers.add(&failed("a later one"));
            let right = Failure::default();
            right.settle(Ok(()));
            writers.add(&Arc::new(right));
        }
        assert!(writers.list().len() < 10, "{}", writers.list().len());
        pending.settle(Err(Error::Invalid("the first".to_string())));
        assert_eq!(told(writers.tell()), "the first");
        assert_eq!(told(pending.tell()), "");
        assert_eq!(told(writers.tell()), "a later one");
        writers.add(&failed("of a later one"));
        let earlier = writers.take();
        assert_eq!(told(writers.tell()), "");
        writers.add(&failed("of the last one"));
        writers.put_back(earlier);
        assert_eq!(told(writers.tell()), "of a later one");
        writers.take();
        assert_eq!(told(writers.tell()), "");
        let copied = Writers::default();
        writers.add(&failed("of what was copied"));
        copied.add_all(&writers);
        assert_eq!(told(copied.tell()), "of what was copied");
        assert_eq!(told(writers.tell()), "");
    }
}
