//! What can go wrong between a lane function and a finished launch.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An op that a GPU function cannot hold.
    #[error("`{0}` has no GPU code")]
    Unsupported(String),
    /// A limit of the device that the function or the launch exceeds.
    #[error("{0}")]
    Limit(String),
    /// LLVM refused the module or the code generator failed.
    #[error("LLVM: {0}")]
    Llvm(String),
    /// There is no usable driver or device.
    #[error("no CUDA device: {0}")]
    NoDevice(String),
    /// A call of the driver failed.
    #[error("`{call}` failed: {reason}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// What the driver says.
        reason: String,
    },
    /// The driver says that code is none, or none for its device.
    #[error("the driver refuses the code: {0}")]
    BadImage(String),
    /// The arguments do not fit the kernel.
    #[error("{0}")]
    Arguments(String),
    /// An outside program could not be run.
    #[error("{0}")]
    Tool(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
