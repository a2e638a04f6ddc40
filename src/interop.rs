//! Arrays of other libraries: taken without copies, and given to them, each behind a feature of its name.

#[cfg(feature = "cudarc")]
pub mod cudarc;
#[cfg(feature = "dlpack")]
pub mod dlpack;
#[cfg(feature = "ndarray")]
pub mod ndarray;
