//! Sums of constants times products of scalars: steps and first elements of tiles of indices.

use std::collections::BTreeMap;

use crate::ir::Value;

/// The most products that are added up, and the most factors of one.
const MOST_TERMS: usize = 8;

/// A sum of constants times products of values that are the same for a whole tile, by their factors.
///
/// It is true modulo 2^64, or modulo what the integers of the tile hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear(BTreeMap<Vec<Value>, i64>);

impl Linear {
    fn term(factors: Vec<Value>, times: i64) -> Self {
        let term = (times != 0).then_some((factors, times));
        Self(term.into_iter().collect())
    }

    /// A number.
    #[must_use]
    pub fn known(number: i64) -> Self {
        Self::term(Vec::new(), number)
    }

    /// A scalar, or a tile of equal numbers.
    #[must_use]
    pub fn symbol(value: Value) -> Self {
        Self::term(vec![value], 1)
    }

    /// The products, each with its factors.
    pub fn terms(&self) -> impl Iterator<Item = (&[Value], i64)> {
        self.0.iter().map(|(factors, &times)| (&factors[..], times))
    }

    /// Whether it is the number zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// The number that it is, if that is known.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        if self.is_zero() {
            return Some(0);
        }
        self.single()?.0.is_empty().then(|| self.0[&[][..]])
    }

    /// The value that it is a multiple of, and the factor.
    #[must_use]
    pub fn multiple(&self) -> Option<(Value, i64)> {
        match self.single()? {
            (&[value], times) => Some((value, times)),
            (_, _) => None,
        }
    }

    /// The number times it.
    #[must_use]
    pub fn scaled(&self, by: i64) -> Self {
        let scaled = self
            .0
            .iter()
            .map(|(factors, times)| (factors.clone(), times.wrapping_mul(by)));
        Self(scaled.filter(|(_, times)| *times != 0).collect())
    }

    /// The sum without the constant in it, and that.
    #[must_use]
    pub fn without_constant(&self) -> (Self, i64) {
        let mut rest = self.0.clone();
        let constant = rest.remove(&[][..]);
        (Self(rest), constant.unwrap_or(0))
    }

    /// How often two divides it, as far as the constants tell; 64 of zero.
    #[must_use]
    pub fn divisor(&self) -> u32 {
        let constants = self.0.values().map(|times| times.trailing_zeros());
        constants.min().unwrap_or(64)
    }

    fn single(&self) -> Option<(&[Value], i64)> {
        let mut terms = self.terms();
        terms.next().filter(|_| self.0.len() == 1)
    }

    /// The sum; nothing where it is too long.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.0.clone();
        for (factors, times) in &other.0 {
            let entry = sum.entry(factors.clone()).or_default();
            *entry = entry.wrapping_add(*times);
        }
        sum.retain(|_, times| *times != 0);
        (sum.len() <= MOST_TERMS).then_some(Self(sum))
    }

    /// The product; nothing where it is too long.
    #[must_use]
    pub fn times(&self, factor: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (left, by) in self.terms() {
            for (right, times) in factor.terms() {
                let mut factors = [left, right].concat();
                factors.sort_unstable();
                (factors.len() <= MOST_TERMS).then_some(())?;
                product = product.plus(&Self::term(factors, by.wrapping_mul(times)))?;
            }
        }
        Some(product)
    }
}
