//! Random programs: everything that runs a kernel must give the same bits.

pub mod arguments;
pub mod counts;
pub mod coverage;
pub(in crate::testing) mod edit;
pub mod faults;
pub mod generate;
mod layouts;
mod report;
pub mod run;
mod shrink;
pub mod subject;
pub mod summary;
pub mod target;
pub mod values;
mod watch;

pub(crate) use run::guarded;
pub use run::{Event, Failure, Listener, ProgramsOptions, Report, run};
pub use watch::{Slow, Stage};
