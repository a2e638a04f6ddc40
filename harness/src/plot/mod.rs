//! Charts of the benchmark's reports as SVG, which follow the reader's light or dark mode.

mod axis;
mod roofline;
mod sizes;
mod svg;
mod tuning;

pub use roofline::{Roof, roofline};
pub use sizes::sizes;
pub use tuning::tuning;

use crate::bench::Row;

/// The kernel, its type and its extents.
fn title(row: &Row) -> String {
    let extents: Vec<String> = row.shape.iter().map(ToString::to_string).collect();
    format!("{} {} {}", row.kernel, row.dtype, extents.join("x"))
}
