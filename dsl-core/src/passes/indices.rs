//! What is known of the integers and masks of a function: the one analysis of offsets, masks and scalars.
//!
//! Of each value it knows
//! - its *range*, and a power of two that *divides* every number;
//! - its *origin*, the number at index zero, as a sum of constants times products of scalars;
//! - along each axis aligned *runs* in which each position adds one *step*, a sum like the origin. Equal
//!   numbers have the step zero. The first number of each run has a *divisor*; a run that is the whole axis,
//!   along every axis, says that the tile is linear in its index. Of a mask also runs that *fall*, from true
//!   to false.
//!
//! Origins, steps and divisors are true modulo what the type holds, whatever wraps. Where numbers are taken as
//! integers - wider casts, divisions, comparisons - ranges or the alignment of a run show that none wraps.

mod axis;
#[cfg(test)]
mod tests;
mod transfer;

use std::cell::OnceCell;

pub use axis::Along;

use super::linear::Linear;
use super::ranges::Range;
use crate::ir::dataflow::{Facts, solve};
use crate::ir::{Func, Value};

/// The log2 divisor of zero: larger than any run.
const ENDLESS: u32 = 40;

/// What is known of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What each number may be; nothing of what is neither an integer nor a `bool`.
    pub range: Option<Range>,
    /// The log2 of what divides every number.
    divisor: u32,
    /// The first number of a tile.
    origin: Option<Linear>,
    axes: Vec<Along>,
}

/// What the numbers of a tile reach: `low..=high` from the first, and as far again from that moved by some
/// `i64` scalars times constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The least that constant steps lead to, zero or below.
    pub low: i64,
    /// The greatest, zero or above.
    pub high: i64,
    /// Scalars with what each is multiplied by on the way to the last element.
    pub scalars: Vec<(Value, i64)>,
}

impl Fact {
    /// What is known along an axis.
    #[must_use]
    pub fn axis(&self, axis: usize) -> &Along {
        &self.axes[axis]
    }

    /// Log2 of what divides every number.
    #[must_use]
    pub fn divisor(&self) -> u32 {
        self.divisor
    }

    /// Whether all numbers are equal.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.axes.iter().all(Along::is_still)
    }

    /// The one number that it is.
    #[must_use]
    pub fn number(&self) -> Option<i128> {
        self.range?.exact()
    }

    /// A step along each axis, of a tile that is linear in its index.
    #[must_use]
    pub fn steps(&self) -> Option<Vec<&Linear>> {
        self.axes.iter().map(Along::whole_step).collect()
    }

    /// What the numbers reach, where they are linear in the index and steps are constants or multiples of
    /// one scalar.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        let mut span = Span {
            low: 0,
            high: 0,
            scalars: Vec::new(),
        };
        for along in &self.axes {
            let (step, last) = (along.whole_step()?, along.last());
            if let Some(step) = step.constant() {
                let reach = step.checked_mul(last)?;
                span.low = span.low.checked_add(reach.min(0))?;
                span.high = span.high.checked_add(reach.max(0))?;
            } else {
                let (step, factor) = step.multiple()?;
                span.scalars.push((step, factor.checked_mul(last)?));
            }
        }
        Some(span)
    }
}

impl Span {
    /// How many numbers there are from the least to the greatest, but for scalars.
    #[must_use]
    pub fn count(&self) -> Option<i64> {
        self.high.checked_sub(self.low)?.checked_add(1)
    }
}

/// Facts about every value of a function.
#[derive(Clone, Debug)]
pub struct Indices {
    facts: Facts<Fact>,
    aligned: OnceCell<bool>,
}

impl Indices {
    /// Those of a function.
    #[must_use]
    pub fn of(func: &Func) -> Self {
        Self::given(func, None)
    }

    /// Those that hold where the integers among the arguments are in `arguments`.
    #[must_use]
    pub fn given(func: &Func, arguments: Option<Range>) -> Self {
        Self {
            facts: solve(func, &transfer::Numbers::new(func, arguments)),
            aligned: OnceCell::new(),
        }
    }

    /// What is known of a value.
    #[must_use]
    pub fn fact(&self, value: Value) -> &Fact {
        &self.facts[value]
    }

    /// What is known of a value; nothing of one that is new.
    #[must_use]
    pub fn get(&self, value: Value) -> Option<&Fact> {
        self.facts.get(value)
    }

    /// The range of a value; nothing of one that is new.
    #[must_use]
    pub fn range(&self, value: Value) -> Option<Range> {
        self.get(value)?.range
    }

    /// The number at index zero.
    #[must_use]
    pub fn origin(&self, value: Value) -> Option<Linear> {
        origin(&self.facts, value)
    }

    /// A scalar, or the element of a tile of equal numbers, as a sum of products.
    #[must_use]
    pub fn uniform(&self, value: Value) -> Option<Linear> {
        self.origin(value).filter(|_| self.fact(value).is_uniform())
    }

    /// Whether no two elements of a tile of `i64` are equal, whatever the arguments of a launch are.
    #[must_use]
    pub fn are_distinct(&self, value: Value) -> bool {
        let axes = self.fact(value).axes.iter();
        let axes: Option<Vec<(i128, i128)>> = axes
            .filter(|along| along.last() > 0)
            .map(|along| {
                let step = i128::from(along.whole_step()?.constant()?);
                Some((step.abs(), i128::from(along.last())))
            })
            .collect();
        axes.is_some_and(|mut axes| are_apart(&mut axes))
    }

    /// Whether all masked accesses of runs are aligned, which is asked for each and found once.
    pub(crate) fn remembered(&self, aligned: impl FnOnce() -> bool) -> bool {
        *self.aligned.get_or_init(aligned)
    }
}

/// Whether steps of these lengths, as many as are with each, never lead to one place on two ways, modulo
/// 2^64.
pub(super) fn are_apart(axes: &mut [(i128, i128)]) -> bool {
    if axes.iter().any(|&(_, count)| count < 0) {
        return true;
    }
    axes.sort_unstable();
    let mut reach = 0;
    axes.iter()
        .filter(|&&(_, count)| count > 0)
        .all(|&(length, count)| {
            let apart = length > reach;
            reach += length * count;
            apart && reach < 1 << 64
        })
}

/// The number at index zero.
fn origin(facts: &Facts<Fact>, value: Value) -> Option<Linear> {
    let fact = &facts[value];
    if let Some(number) = fact.number() {
        return Some(Linear::known(number as i64));
    }
    let symbol = || fact.is_uniform().then(|| Linear::symbol(value));
    fact.origin.clone().or_else(symbol)
}
