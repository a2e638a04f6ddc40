//! `IndexMap`: how the element indices of two tiles correspond.
//!
//! Extents are powers of two, so an index is a row of bits, and shape ops rename bits: each bit of the
//! result's index is at most one of the operand's. The removal of an axis by a reduction is such a map too.

use super::Shape;

/// An affine map over GF(2) from the element indices of one tile to those of another.
///
/// For a shape op it goes from the result to the operand (where does this element come from); for a
/// reduction from the operand to the result (which element does this one contribute to).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMap {
    from: Vec<u32>,
    to: Vec<u32>,
    /// The flat index in `to` that each flat index bit of `from` adds: one bit or none.
    columns: Vec<u64>,
    /// What is added to every index by exclusive or.
    offset: u64,
}

/// Bits of an axis that a map starts from, which become bits of an axis that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The axis.
    pub axis: usize,
    /// The lowest of its bits.
    pub low: u32,
    /// How many there are.
    pub count: u32,
    /// Where the lowest of them goes.
    pub at: u32,
}

/// What a position along an axis is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The digits, lowest first.
    pub digits: Vec<Digit>,
    /// The bits that are one where no digit is.
    pub fixed: u64,
    /// The bits of digits that are turned round.
    pub flipped: u64,
}

/// The log2 extents of a tile.
pub fn dim_bits(shape: &Shape) -> Vec<u32> {
    let extents = shape.extents().iter();
    extents.map(|extent| extent.trailing_zeros()).collect()
}

/// The position of bit 0 of a dimension in the flat index.
pub fn dim_offset(dim_bits: &[u32], dim: usize) -> u32 {
    dim_bits[dim + 1..].iter().sum()
}

/// The sum of the columns that the bits of `input` select.
#[must_use]
pub fn apply(columns: &[u64], input: u64) -> u64 {
    columns
        .iter()
        .enumerate()
        .filter(|(bit, _)| input >> bit & 1 == 1)
        .fold(0, |sum, (_, column)| sum ^ column)
}

impl IndexMap {
    /// A map by its columns and its offset.
    #[must_use]
    pub fn new(from: Vec<u32>, to: Vec<u32>, columns: Vec<u64>, offset: u64) -> Self {
        Self {
            from,
            to,
            columns,
            offset,
        }
    }

    /// Same flat index, another shape of as many elements: `reshape`, and `expand_dims` or its removal.
    #[must_use]
    pub fn reshape(from: Vec<u32>, to: Vec<u32>) -> Self {
        let columns = (0..from.iter().sum()).map(|bit| 1 << bit).collect();
        Self::new(from, to, columns, 0)
    }

    /// The map that sends dimension `d` of `from` to dimension `targets[d]` of `to`, or drops it.
    #[must_use]
    pub fn by_dimension(from: Vec<u32>, to: Vec<u32>, targets: &[Option<usize>]) -> Self {
        let mut columns = vec![0; from.iter().sum::<u32>() as usize];
        for (dim, target) in targets.iter().enumerate() {
            let Some(target) = *target else { continue };
            for bit in 0..from[dim] {
                columns[(dim_offset(&from, dim) + bit) as usize] =
                    1 << (dim_offset(&to, target) + bit);
            }
        }
        Self::new(from, to, columns, 0)
    }

    /// From the result of a transpose to its operand: dimension `d` of the result is dimension
    /// `permutation[d]` of the operand.
    #[must_use]
    pub fn transpose(operand: Vec<u32>, permutation: &[u32]) -> Self {
        let axes = permutation.iter().map(|&dim| dim as usize);
        let from = axes.clone().map(|dim| operand[dim]).collect();
        let targets: Vec<Option<usize>> = axes.map(Some).collect();
        Self::by_dimension(from, operand, &targets)
    }

    /// From the result of a broadcast to its operand: extents of one in the operand grow.
    #[must_use]
    pub fn broadcast(operand: Vec<u32>, result: Vec<u32>) -> Self {
        let targets: Vec<Option<usize>> = (0..result.len())
            .map(|dim| (operand[dim] == result[dim]).then_some(dim))
            .collect();
        Self::by_dimension(result, operand, &targets)
    }

    /// From the operand of a reduction along `axis` to its result, which lacks that axis.
    #[must_use]
    pub fn reduce(operand: Vec<u32>, axis: usize) -> Self {
        let mut result = operand.clone();
        result.remove(axis);
        let target = |dim: usize| (dim != axis).then(|| dim - usize::from(dim > axis));
        let targets: Vec<Option<usize>> = (0..operand.len()).map(target).collect();
        Self::by_dimension(operand, result, &targets)
    }

    /// The map with `offset` added to every index by exclusive or.
    #[must_use]
    pub fn turned(mut self, offset: u64) -> Self {
        self.offset ^= offset;
        self
    }

    /// The log2 extents of the tile that the map starts from.
    #[must_use]
    pub fn from_bits(&self) -> &[u32] {
        &self.from
    }

    /// The log2 extents of the tile that the map leads to.
    #[must_use]
    pub fn to_bits(&self) -> &[u32] {
        &self.to
    }

    /// The flat index in the target tile that each flat index bit adds.
    #[must_use]
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// What is added to every index by exclusive or.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The flat index in the target tile of a flat index.
    #[must_use]
    pub fn apply(&self, flat: u64) -> u64 {
        self.offset ^ apply(&self.columns, flat)
    }

    /// Whether the flat index stays.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        let mut columns = self.columns.iter().enumerate();
        self.offset == 0
            && self.columns.len() as u32 == self.to.iter().sum::<u32>()
            && columns.all(|(bit, &column)| column == 1 << bit)
    }

    /// This map and then `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let columns = self.columns.iter();
        Self::new(
            self.from.clone(),
            next.to.clone(),
            columns
                .map(|&column| apply(&next.columns, column))
                .collect(),
            next.apply(self.offset),
        )
    }

    /// The columns of an axis that the map starts from, lowest first.
    #[must_use]
    pub fn along(&self, axis: usize) -> &[u64] {
        let first = dim_offset(&self.from, axis) as usize;
        &self.columns[first..first + self.from[axis] as usize]
    }

    /// The axis that a flat index bit of the target tile is of, and which of its bits it is.
    #[must_use]
    pub fn place(&self, column: u64) -> (usize, u32) {
        let bit = column.trailing_zeros();
        let axis = (0..self.to.len()).find(|&axis| dim_offset(&self.to, axis) <= bit);
        let axis = axis.expect("broken invariant: a map leads into its tile");
        (axis, bit - dim_offset(&self.to, axis))
    }

    /// What the position along each axis of the target tile is made of.
    #[must_use]
    pub fn positions(&self) -> Vec<Position> {
        let axes = 0..self.to.len();
        let offset = |axis: usize| {
            let moved = self.offset >> dim_offset(&self.to, axis);
            moved & ((1 << self.to[axis]) - 1)
        };
        let mut positions: Vec<Position> = axes
            .map(|axis| Position {
                fixed: offset(axis),
                ..Position::default()
            })
            .collect();
        for axis in 0..self.from.len() {
            for (low, &column) in (0..).zip(self.along(axis)) {
                if column == 0 {
                    continue;
                }
                let (target, at) = self.place(column);
                let position = &mut positions[target];
                position.flipped |= position.fixed & 1 << at;
                position.fixed &= !(1 << at);
                let run = position.digits.last_mut().filter(|run| {
                    run.axis == axis && run.low + run.count == low && run.at + run.count == at
                });
                match run {
                    Some(run) => run.count += 1,
                    None => position.digits.push(Digit {
                        axis,
                        low,
                        count: 1,
                        at,
                    }),
                }
            }
        }
        for position in &mut positions {
            position.digits.sort_by_key(|digit| digit.at);
        }
        positions
    }

    /// For each axis of the target tile the axis that it is, or none where it has one position; nothing
    /// where a map does more than to rename axes.
    #[must_use]
    pub fn axes(&self) -> Option<Vec<Option<usize>>> {
        let positions = self.positions().into_iter().zip(&self.to);
        let axis = |(position, &bits): (Position, &u32)| match position.digits[..] {
            [] if bits == 0 => Some(None),
            [digit] if digit.count == bits && self.from[digit.axis] == bits => {
                (position.flipped == 0).then_some(Some(digit.axis))
            }
            _ => None,
        };
        positions.map(axis).collect()
    }

    /// What a step along each axis adds, where `steps` are those along the axes of the target tile;
    /// nothing where that differs from place to place. `times` multiplies a step.
    pub fn steps<S: Clone + PartialEq>(
        &self,
        steps: &[S],
        zero: &S,
        times: impl Fn(&S, i64) -> Option<S>,
    ) -> Option<Vec<S>> {
        let added = |column: u64| match column {
            0 => Some(zero.clone()),
            _ => {
                let (axis, bit) = self.place(column);
                let sign = if self.offset & column == 0 { 1 } else { -1 };
                times(&steps[axis], sign << bit)
            }
        };
        let step = |axis: usize| {
            let columns = self.along(axis);
            let Some(&first) = columns.first() else {
                return Some(zero.clone());
            };
            let step = added(first)?;
            for (bit, &column) in columns.iter().enumerate() {
                (added(column)? == times(&step, 1 << bit)?).then_some(())?;
            }
            Some(step)
        };
        (0..self.from.len()).map(step).collect()
    }
}
