//! Filetests: functions in the text form with what must become of them.
//!
//! ```text
//! test interp
//! test run cpu
//!
//! ; Doubles one number.
//! func @double block (%x: ptr<f32>, %y: ptr<f32> write) {
//!   %i = constant value=i64(0) : i64
//!   %v = load %x, %i : f32
//!   %r = add %v, %v : f32
//!   store %y, %i, %r
//! }
//! ; run: @double(x=[1.5], y=zeros(1)) grid=1
//! ; gives: y=[0x1.8p1]
//! ```
//! Commands come first and hold for every function of the file: `test roundtrip`, `test verify`,
//! `test interp`, `test run cpu`, `test run lanes warps=1,4`, `test run cuda warps=1,4`,
//! `test pass=NAME`, `test stage=NAME warps=4` for a stage of the pipeline, `test lower distribution=sequential`,
//! `test lower distribution=distributed warps=4`, `test ptx`; `options determinism=NAME`;
//! `options target=sm_80`, the GPU of lanes, lowering and PTX where it is not `sm_90a`; and below it
//! `options operands=stored`, where its assembler may give away registers that products read.
//! Below a function stand its runs, each with what it gives or how it `fails:`, written by blessing
//! from the interpreter alone; `; ptx: text` and `; no ptx: text`, besides which the PTX is assembled; and after `; after pass=NAME:`
//! the text expected. `; error: message` at the end of a line states an error there, and
//! `; error: message; note: remedy` its notes too.

mod arguments;
mod check;
mod format;
mod generate;
mod ready;

use rayon::prelude::*;

pub use check::{Kind, Report, check};
pub use generate::generate;
pub(in crate::testing) use ready::{Ready, ready, ready_kernel};

/// The filetests of the repository: path below `tests/filetests` and text.
pub const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/filetests.rs"));

/// Checks files, given by name and text, on all cores.
pub fn check_all<'a>(files: &[(&'a str, &'a str)]) -> Report {
    let reports: Vec<Report> = files
        .par_iter()
        .map(|(name, text)| check(name, text))
        .collect();
    let mut all = Report::default();
    for report in reports {
        all.append(report);
    }
    all
}
