//! The functions of the language that tracing makes of other ops, as the file beside this one lists them, which a test of
//! their documentation writes.

use crate::ops::{Error, OpRow};

/// Of each function the name, the data types, the errors stated with it and what it means.
const LIST: &str = include_str!("composed.tsv");

/// What is known of a stated error of all arguments.
pub(crate) const STATED: &str = "stated with the function";

/// A row for each function.
pub(crate) fn rows() -> impl Iterator<Item = OpRow> {
    LIST.lines().map(row)
}

fn row(line: &'static str) -> OpRow {
    let mut cells = line.split('\t');
    let mut cell = || {
        cells
            .next()
            .expect("broken invariant: a row has four cells")
    };
    let (name, dtypes, errors, meaning) = (cell(), cell(), cell(), cell());
    let error = |error: &'static str| {
        let mut words = error.splitn(3, ' ');
        Some(Error {
            dtype: words.next()?,
            max_ulp: words.next()?.parse().ok()?,
            tried: words.next().unwrap_or(STATED),
        })
    };
    OpRow {
        name,
        stages: Vec::new(),
        types: None,
        dtypes: Some(dtypes.split(' ').collect()),
        kind: Some("composed"),
        exactness: Some("exact"),
        accuracy: errors.split(", ").filter_map(error).collect(),
        meaning,
    }
}
