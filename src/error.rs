//! What can go wrong between a kernel and its results.

use std::path::PathBuf;

use exactile_core::diagnostic::{Diagnostics, Loc};
use exactile_core::interp::Fault;
use exactile_core::ir::DType;
use exactile_core::launch::LaunchError;
use thiserror::Error;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the compiler, a launch, a comparison or a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not compile; every mistake is listed.
    #[error("kernel `{kernel}` does not compile\n{diagnostics}")]
    Compile {
        /// The kernel's name.
        kernel: String,
        /// What is wrong, with places in the source.
        diagnostics: Diagnostics,
    },
    /// A backend refused code that had been verified.
    #[error("kernel `{kernel}`: code generation for {device} failed: {message}")]
    Backend {
        /// The kernel's name.
        kernel: String,
        /// The device.
        device: String,
        /// The backend's words.
        message: String,
    },
    /// A launch failed.
    #[error("kernel `{kernel}`: {source}")]
    Launch {
        /// The kernel's name.
        kernel: String,
        /// Why.
        source: LaunchError,
    },
    /// A checked launch found an access outside its argument, or an index outside its axis: the
    /// first one in the order of programs, then instructions, then elements.
    #[error(
        "kernel `{kernel}` accesses element {offset} of `{argument}`, which has {length}\n  --> {loc}\n  note: program {program:?} of the grid, tile element {element}"
    )]
    OutOfBounds {
        /// The kernel's name.
        kernel: String,
        /// The source line of the access.
        loc: Loc,
        /// The parameter, or `gather axis` and its number.
        argument: String,
        /// Its number of elements.
        length: u64,
        /// The program's position in the grid.
        program: [u64; 3],
        /// The row-major index of the element in its tile.
        element: u64,
        /// The element offset from the start of the argument.
        offset: i64,
    },
    /// A `device_assert` does not hold: the first one in the order of programs, then instructions, then elements.
    #[error(
        "kernel `{kernel}`: {message}\n  --> {loc}\n  note: program {program:?} of the grid, tile element {element}"
    )]
    Assertion {
        /// The kernel's name.
        kernel: String,
        /// The source line of the assertion.
        loc: Loc,
        /// The message that it was given.
        message: String,
        /// The program's position in the grid.
        program: [u64; 3],
        /// The row-major index of the element in its tile.
        element: u64,
    },
    /// An interpreter found what compiled code cannot see, such as a race.
    #[error(transparent)]
    Fault(Fault),
    /// The device is not there, or this build cannot use it.
    #[error("{0}")]
    Device(String),
    /// Nobody has built the code of a launch, and this program has no compiler; see [`built`](crate::built).
    #[error(
        "kernel `{kernel}` with `{config}` has no code for {target} that was built ahead of time for a launch like this one ({variant}), and this \
         program has no compiler\n  note: `exactile::built::Build` in a build with the feature `nvptx` makes it, or `exactile build` for a kernel of \
         `exactile-kernels`; {known}"
    )]
    NotBuilt {
        /// The kernel's name.
        kernel: String,
        /// Its configuration.
        config: String,
        /// The machine.
        target: &'static str,
        /// Which code of the kernel is missing, and what is known of its arguments: see [`Record`](crate::built::Record).
        variant: String,
        /// What is there, in words.
        known: String,
    },
    /// An argument lives on another device than the one that runs the kernel.
    #[error("argument {index} is on {found}, expected {expected}")]
    Placement {
        /// The position of the argument, from 0.
        index: usize,
        /// Where it is.
        found: String,
        /// Where the kernel runs.
        expected: String,
    },
    /// Two arrays cannot be compared.
    #[error("data types differ: found `{found}`, expected `{expected}`")]
    DTypeMismatch {
        /// That of the result.
        found: DType,
        /// That of the reference.
        expected: DType,
    },
    /// Two shapes must be equal and are not, or a shape does not fit its data.
    #[error("shapes differ: found {found:?}, expected {expected:?}")]
    ShapeMismatch {
        /// The shape given.
        found: Vec<usize>,
        /// The shape needed.
        expected: Vec<usize>,
    },
    /// Results are not what the reference says.
    #[error("{0}")]
    Mismatch(String),
    /// A value given by the user makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The system has not so much memory.
    #[error("no memory for {bytes} bytes")]
    Memory {
        /// What was asked for.
        bytes: usize,
    },
    /// A file cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}`: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
}

impl Error {
    /// Names the file of an input or output error.
    pub fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { path, source }
    }

    /// Says what is wrong with a file.
    pub fn format(path: &std::path::Path, message: impl Into<String>) -> Self {
        Self::Format {
            path: path.to_path_buf(),
            message: message.into(),
        }
    }
}
