//! Panics of what a user hands over, as errors.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, Result};

/// What `work` gives; a panic of it is an error that begins with `what`. It may leave nothing half done that counts.
pub(crate) fn guarded<T>(
    what: impl FnOnce() -> String,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = text_of(payload.as_ref());
        Err(Error::Invalid(format!("{} panicked: {text}", what())))
    })
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("a value that is no text")
}
