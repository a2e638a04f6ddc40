//! Sums of constants times products of scalars: steps and first elements of tiles of indices.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::ir::Value;

/// The most products that are added up, and the most factors of one.
const MOST_TERMS: usize = 8;

/// A sum of constants times products of values that are the same for a whole tile, by their factors.
///
/// It is true modulo 2^64, or modulo what the integers of the tile hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    /// The constant.
    constant: i64,
    /// The products in the order of their factors, of which each has one at least, with what each is multiplied by,
    /// which is not zero.
    products: Vec<(Vec<Value>, i64)>,
}

impl Linear {
    fn term(factors: Vec<Value>, times: i64) -> Self {
        if factors.is_empty() {
            return Self::known(times);
        }
        let product = (times != 0).then_some((factors, times));
        Self {
            constant: 0,
            products: product.into_iter().collect(),
        }
    }

    /// A number.
    #[must_use]
    pub fn known(number: i64) -> Self {
        Self {
            constant: number,
            products: Vec::new(),
        }
    }

    /// A scalar, or a tile of equal numbers.
    #[must_use]
    pub fn symbol(value: Value) -> Self {
        Self::term(vec![value], 1)
    }

    /// The products, each with its factors; the constant is one without factors, in front.
    pub fn terms(&self) -> impl Iterator<Item = (&[Value], i64)> {
        let constant = (self.constant != 0).then_some((&[][..], self.constant));
        let products = self.products.iter();
        let products = products.map(|(factors, times)| (&factors[..], *times));
        constant.into_iter().chain(products)
    }

    /// Appends it as a scalar.
    pub fn scalar(&self, builder: &mut Builder) -> Value {
        let mut found: Option<Value> = None;
        for (factors, times) in self.terms() {
            let mut product: Option<Value> = None;
            let constant = (times != 1 || factors.is_empty()).then(|| builder.index(times));
            for factor in factors.iter().copied().chain(constant) {
                product = Some(product.map_or(factor, |it| builder.mul(it, factor)));
            }
            let product = product.expect("broken invariant: a product has a factor");
            found = Some(found.map_or(product, |it| builder.add(it, product)));
        }
        found.unwrap_or_else(|| builder.index(0))
    }

    /// Whether it is the number zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.constant == 0 && self.products.is_empty()
    }

    /// The number that it is, if that is known.
    #[must_use]
    pub fn constant(&self) -> Option<i64> {
        self.products.is_empty().then_some(self.constant)
    }

    /// The value that it is a multiple of, and the factor.
    #[must_use]
    pub fn multiple(&self) -> Option<(Value, i64)> {
        match (self.constant, &self.products[..]) {
            (0, [(factors, times)]) => match factors[..] {
                [value] => Some((value, *times)),
                [..] => None,
            },
            (_, _) => None,
        }
    }

    /// The values that it is made of.
    pub fn symbols(&self) -> impl Iterator<Item = Value> {
        let factors = self.products.iter().flat_map(|(factors, _)| factors);
        factors.copied()
    }

    /// A sum that differs from it by a multiple of a power of two, of which this is the log2, below 63, and is the same for many
    /// that do. `divisor` says how often two divides a value.
    #[must_use]
    pub fn modulo(&self, bits: u32, divisor: &dyn Fn(Value) -> u32) -> Self {
        let mut rest = self.clone();
        let mask = (1 << bits) - 1;
        rest.constant &= mask;
        for (_, times) in &mut rest.products {
            *times &= mask;
        }
        rest.products.retain(|(factors, times)| {
            let divisors = factors.iter().map(|&factor| divisor(factor));
            *times != 0 && times.trailing_zeros() + divisors.sum::<u32>() < bits
        });
        rest
    }

    /// The sum with other values in the place of its own.
    #[must_use]
    pub fn with(&self, now: &dyn Fn(Value) -> Value) -> Self {
        let mut products: BTreeMap<Vec<Value>, i64> = BTreeMap::new();
        for (factors, times) in &self.products {
            let mut factors: Vec<Value> = factors.iter().map(|&factor| now(factor)).collect();
            factors.sort_unstable();
            let known = products.entry(factors).or_default();
            *known = known.wrapping_add(*times);
        }
        products.retain(|_, times| *times != 0);
        Self {
            constant: self.constant,
            products: products.into_iter().collect(),
        }
    }

    /// The number times it.
    #[must_use]
    pub fn scaled(&self, by: i64) -> Self {
        let products = self.products.iter();
        let scaled = products.map(|(factors, times)| (factors.clone(), times.wrapping_mul(by)));
        Self {
            constant: self.constant.wrapping_mul(by),
            products: scaled.filter(|(_, times)| *times != 0).collect(),
        }
    }

    /// The sum without the constant in it, and that.
    #[must_use]
    pub fn without_constant(&self) -> (Self, i64) {
        let rest = Self {
            constant: 0,
            products: self.products.clone(),
        };
        (rest, self.constant)
    }

    /// How often two divides it, as far as the constants tell; 64 of zero.
    #[must_use]
    pub fn divisor(&self) -> u32 {
        let constants = self.terms().map(|(_, times)| times.trailing_zeros());
        constants.min().unwrap_or(64)
    }

    /// The sum; nothing where it is too long.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        sum.constant = sum.constant.wrapping_add(other.constant);
        for (factors, times) in &other.products {
            match sum
                .products
                .binary_search_by(|(known, _)| known.cmp(factors))
            {
                Ok(at) => {
                    let known = &mut sum.products[at].1;
                    *known = known.wrapping_add(*times);
                }
                Err(at) => sum.products.insert(at, (factors.clone(), *times)),
            }
        }
        sum.products.retain(|(_, times)| *times != 0);
        (sum.terms().count() <= MOST_TERMS).then_some(sum)
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
