//! How often each op on each data type occurs in the programs of a run.

use std::collections::BTreeMap;
use std::fmt;

use exactile_core::ir::{DType, Func};
use exactile_core::passes::dce;

use super::target::Target;

/// Counts for every [`Target`].
#[derive(Clone, Debug)]
pub struct Coverage {
    counts: BTreeMap<Target, usize>,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            counts: Target::all()
                .into_iter()
                .map(|target| (target, 0))
                .collect(),
        }
    }
}

impl Coverage {
    /// Counts the instructions of `func` on which a result depends.
    pub fn record(&mut self, func: &Func) {
        let mut live = func.clone();
        dce::dce(&mut live);
        for inst in live.all_insts() {
            if let Some(count) = Target::of(&live, inst).and_then(|it| self.counts.get_mut(&it)) {
                *count += 1;
            }
        }
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (target, count) in &other.counts {
            *self.counts.entry(*target).or_insert(0) += count;
        }
    }

    /// The least count of any target.
    pub fn least(&self) -> usize {
        self.counts.values().copied().min().unwrap_or(0)
    }

    /// The targets with fewer than `enough` occurrences.
    pub fn below(&self, enough: usize) -> Vec<(Target, usize)> {
        let counts = self.counts.iter();
        counts
            .filter(|(_, count)| **count < enough)
            .map(|(target, count)| (*target, *count))
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: BTreeMap<(Target, String), BTreeMap<DType, usize>> = BTreeMap::new();
        let mut first_of_row: BTreeMap<String, Target> = BTreeMap::new();
        for (&target, &count) in &self.counts {
            let first = *first_of_row.entry(target.row()).or_insert(target);
            let row = rows.entry((first, target.row())).or_default();
            row.insert(target.column(), count);
        }
        write!(f, "{:16}", "op")?;
        for dtype in DType::ALL {
            write!(f, "{:>6}", dtype.name())?;
        }
        for ((_, name), row) in &rows {
            write!(f, "\n{name:16}")?;
            for dtype in DType::ALL {
                match row.get(dtype) {
                    Some(count) => write!(f, "{count:>6}")?,
                    None => write!(f, "{:>6}", "-")?,
                }
            }
        }
        Ok(())
    }
}
