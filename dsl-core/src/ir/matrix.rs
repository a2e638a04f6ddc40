//! Linear algebra over GF(2): spans of bit vectors and small matrices stored by column.

pub use super::index_map::apply;

/// A set of independent bit vectors in echelon form, each remembered with the combination of
/// inserted columns that gives it.
///
/// Column `i` of a span built by [`Span::of`] is bit `i` of a combination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// (vector, combination), by descending leading bit; leading bits are distinct.
    rows: Vec<(u64, u64)>,
}

impl Span {
    /// The span of the given columns; dependent columns are left out of every combination, so a
    /// combination only ever uses the first columns that suffice.
    #[must_use]
    pub fn of(columns: &[u64]) -> Span {
        let mut span = Span::default();
        for (position, &column) in columns.iter().enumerate() {
            span.insert(column, 1 << position);
        }
        span
    }

    /// Adds a vector that `combination` gives. Returns false, and changes nothing, when the vector
    /// is already in the span.
    pub fn insert(&mut self, vector: u64, combination: u64) -> bool {
        let (remainder, used) = self.reduce(vector);
        if remainder == 0 {
            return false;
        }
        let place = self.rows.partition_point(|&(row, _)| row > remainder);
        self.rows.insert(place, (remainder, combination ^ used));
        true
    }

    /// What is left of `vector` after subtracting members of the span, and the combination
    /// subtracted.
    #[must_use]
    pub fn reduce(&self, vector: u64) -> (u64, u64) {
        let mut remainder = vector;
        let mut used = 0;
        for &(row, combination) in &self.rows {
            let leading = 1 << (63 - row.leading_zeros());
            if remainder & leading != 0 {
                remainder ^= row;
                used ^= combination;
            }
        }
        (remainder, used)
    }

    /// The combination of columns that gives `vector`, or `None` when it is outside the span.
    #[must_use]
    pub fn solve(&self, vector: u64) -> Option<u64> {
        let (remainder, combination) = self.reduce(vector);
        (remainder == 0).then_some(combination)
    }

    /// Whether `vector` lies in the span. Zero lies in every span.
    #[must_use]
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The number of independent vectors.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.rows.len()
    }

    /// A basis of the vectors that lie in the spans of both `first` and `second`.
    #[must_use]
    pub fn intersection(first: &[u64], second: &[u64]) -> Vec<u64> {
        // Zassenhaus: a vector of `second` that depends on `first` and earlier ones shows, by its
        // part in `first`, a member of both.
        let mut sum = Span::default();
        for &vector in first {
            sum.insert(vector, vector);
        }
        let mut common = Span::default();
        let mut basis = Vec::new();
        for &vector in second {
            let (remainder, part) = sum.reduce(vector);
            if remainder != 0 {
                sum.insert(vector, 0);
            } else if common.insert(part, 0) {
                basis.push(part);
            }
        }
        basis
    }

    /// The vectors of `candidates`, first ones first, that are independent of `vectors` and of each
    /// other.
    #[must_use]
    pub fn extension(vectors: &[u64], candidates: &[u64]) -> Vec<u64> {
        let mut span = Span::of(vectors);
        candidates
            .iter()
            .copied()
            .filter(|&candidate| span.insert(candidate, 0))
            .collect()
    }
}

/// A matrix over GF(2), stored by column: bit `i` of the input selects column `i`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BitMatrix {
    rows: u32,
    columns: Vec<u64>,
}

impl BitMatrix {
    /// A matrix of the given columns, or `None` when one has a bit at or above `rows`.
    #[must_use]
    pub fn new(rows: u32, columns: Vec<u64>) -> Option<BitMatrix> {
        let fits = |&column: &u64| rows >= 64 || column >> rows == 0;
        columns
            .iter()
            .all(fits)
            .then_some(BitMatrix { rows, columns })
    }

    /// The identity on `bits` bits (at most 64).
    #[must_use]
    pub fn identity(bits: u32) -> BitMatrix {
        BitMatrix {
            rows: bits,
            columns: (0..bits).map(|bit| 1 << bit).collect(),
        }
    }

    /// The number of output bits.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The image of each input bit.
    #[must_use]
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The image of an input; input bits beyond the columns are ignored.
    #[must_use]
    pub fn apply(&self, input: u64) -> u64 {
        apply(&self.columns, input)
    }

    /// `self` after `inner`, or `None` when the output bits of `inner` are not the inputs of `self`.
    #[must_use]
    pub fn compose(&self, inner: &BitMatrix) -> Option<BitMatrix> {
        (inner.rows as usize == self.columns.len()).then(|| BitMatrix {
            rows: self.rows,
            columns: inner
                .columns
                .iter()
                .map(|&column| self.apply(column))
                .collect(),
        })
    }

    /// The number of independent columns.
    #[must_use]
    pub fn rank(&self) -> u32 {
        Span::of(&self.columns).dimension() as u32
    }

    /// A right inverse that prefers the first columns: `self.apply(inverse.apply(x)) == x`. `None`
    /// when the matrix does not reach every output.
    #[must_use]
    pub fn right_inverse(&self) -> Option<BitMatrix> {
        let span = Span::of(&self.columns);
        let columns: Option<Vec<u64>> = (0..self.rows).map(|bit| span.solve(1 << bit)).collect();
        Some(BitMatrix {
            rows: self.columns.len() as u32,
            columns: columns?,
        })
    }

    /// A basis of the inputs that map to zero, one for each column that depends on earlier ones;
    /// that column's bit is the highest of its vector.
    #[must_use]
    pub fn kernel(&self) -> Vec<u64> {
        let mut span = Span::default();
        let mut basis = Vec::new();
        for (position, &column) in self.columns.iter().enumerate() {
            let (remainder, combination) = span.reduce(column);
            if remainder == 0 {
                basis.push(combination | 1 << position);
            } else {
                span.insert(column, 1 << position);
            }
        }
        basis
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_inverse_undoes_a_surjective_matrix() {
        let matrix = BitMatrix::new(3, vec![0b011, 0b110, 0b101, 0b100]).expect("in range");
        let inverse = matrix.right_inverse().expect("rank 3");
        assert_eq!(matrix.compose(&inverse), Some(BitMatrix::identity(3)));
        assert_eq!(matrix.kernel(), vec![0b111]);
        assert_eq!(matrix.rank(), 3);
    }

    #[test]
    fn intersection_holds_exactly_the_common_vectors() {
        let mut state = 7_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 58
        };
        for _ in 0..500 {
            let first: Vec<u64> = (0..3).map(|_| next()).collect();
            let second: Vec<u64> = (0..3).map(|_| next()).collect();
            let common = Span::of(&Span::intersection(&first, &second));
            let (first, second) = (Span::of(&first), Span::of(&second));
            for vector in 0..64 {
                let expected = first.contains(vector) && second.contains(vector);
                assert_eq!(common.contains(vector), expected);
            }
        }
    }

    #[test]
    fn a_matrix_refuses_columns_out_of_range() {
        assert_eq!(BitMatrix::new(2, vec![4]), None);
    }
}
