//! The driver's library, and which functions it has: the bindings panic where one is missing.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ffi::c_void;
use std::sync::OnceLock;

use libloading::Library;

use crate::driver::LEAST_DRIVER;
use crate::error::{Error, Result};

/// The driver, by the name that every version of it has.
const NAME: &str = if cfg!(windows) {
    "nvcuda.dll"
} else {
    "libcuda.so.1"
};

/// A version as people write it.
pub(crate) fn words(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Opens the library once.
fn library() -> Result<&'static Library> {
    static OPENED: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
    let opened = OPENED.get_or_init(|| {
        // SAFETY: the driver's library may be loaded at any time, and stays loaded.
        unsafe { Library::new(NAME) }.map_err(|error| error.to_string())
    });
    opened.as_ref().map_err(|error| {
        Error::Tool(format!(
            "the driver library `{NAME}` does not open: {error}"
        ))
    })
}

/// Sees that the library has a function; `known` remembers that it does, for callers to look at first.
///
/// # Errors
/// When there is no library, or one without the function.
#[cold]
pub(crate) fn find(known: &OnceLock<()>, function: &'static str) -> Result<()> {
    // SAFETY: the address is compared with none, and not used.
    let found = unsafe { library()?.get::<*const c_void>(function.as_bytes()) };
    if !found.is_ok_and(|address| !address.is_null()) {
        return Err(Error::Driver {
            call: function,
            reason: format!(
                "the driver library `{NAME}` has no such function, expected one for CUDA {} or later",
                words(LEAST_DRIVER)
            ),
        });
    }
    known.get_or_init(|| ());
    Ok(())
}
