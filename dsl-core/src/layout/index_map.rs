//! `IndexMap`: how the element indices of two tiles correspond, and what that does to a layout.
//!
//! Shape ops and the removal of an axis by a reduction are linear maps on flat index bits, so one
//! pair of functions carries a layout across all of them, in either direction.

use super::LayoutError;
use super::linear::{LinearLayout, check_axis, check_permutation, dim_offset, same_rank, shape_of};
use super::matrix::{BitMatrix, Span, apply};

/// A linear map from the element indices of one tile onto those of another.
///
/// For a shape op it goes from the result to the operand (where does this element come from); for a
/// reduction from the operand to the result (which element does this one contribute to).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexMap {
    from: Vec<u32>,
    to: Vec<u32>,
    /// The flat index in `to` that each flat index bit of `from` adds.
    columns: Vec<u64>,
}

impl IndexMap {
    /// Same flat index, another shape: `reshape`, and `expand_dims` or its removal.
    ///
    /// # Errors
    /// When the element counts differ.
    pub fn reshape(from: &[u32], to: &[u32]) -> Result<IndexMap, LayoutError> {
        let bits: u32 = from.iter().sum();
        if bits != to.iter().sum::<u32>() {
            return Err(LayoutError::ShapeMismatch {
                found: shape_of(to),
                expected: shape_of(from),
            });
        }
        let columns = (0..bits).map(|bit| 1 << bit).collect();
        Ok(IndexMap {
            from: from.to_vec(),
            to: to.to_vec(),
            columns,
        })
    }

    /// From the result of `expand_dims(axis)` to its operand.
    ///
    /// # Errors
    /// When the axis is beyond the rank of the result.
    pub fn expand_dims(operand: &[u32], axis: usize) -> Result<IndexMap, LayoutError> {
        check_axis(axis, operand.len() + 1)?;
        let mut result = operand.to_vec();
        result.insert(axis, 0);
        IndexMap::reshape(&result, operand)
    }

    /// From the result of a transpose to its operand: dimension `d` of the result is dimension
    /// `permutation[d]` of the operand.
    ///
    /// # Errors
    /// When the list is not a permutation of the operand's dimensions.
    pub fn transpose(operand: &[u32], permutation: &[usize]) -> Result<IndexMap, LayoutError> {
        check_permutation(permutation, operand.len())?;
        let from: Vec<u32> = permutation.iter().map(|&dim| operand[dim]).collect();
        let targets: Vec<Option<usize>> = permutation.iter().map(|&dim| Some(dim)).collect();
        Ok(IndexMap::by_dimension(from, operand, &targets))
    }

    /// From the result of a broadcast to its operand: extents of one in the operand grow.
    ///
    /// # Errors
    /// When the ranks differ, or an extent of the operand is neither one nor the result's.
    pub fn broadcast(operand: &[u32], result: &[u32]) -> Result<IndexMap, LayoutError> {
        same_rank(result.len(), operand.len())?;
        if operand
            .iter()
            .zip(result)
            .any(|(&from, &to)| from != to && from != 0)
        {
            return Err(LayoutError::ShapeMismatch {
                found: shape_of(operand),
                expected: shape_of(result),
            });
        }
        let targets: Vec<Option<usize>> = (0..result.len())
            .map(|dim| (operand[dim] == result[dim]).then_some(dim))
            .collect();
        Ok(IndexMap::by_dimension(result.to_vec(), operand, &targets))
    }

    /// From the operand of a reduction along `axis` to its result, which lacks that axis.
    ///
    /// # Errors
    /// When the axis is out of range.
    pub fn reduce(operand: &[u32], axis: usize) -> Result<IndexMap, LayoutError> {
        check_axis(axis, operand.len())?;
        let mut result = operand.to_vec();
        result.remove(axis);
        let targets: Vec<Option<usize>> = (0..operand.len())
            .map(|dim| match dim.cmp(&axis) {
                std::cmp::Ordering::Less => Some(dim),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some(dim - 1),
            })
            .collect();
        Ok(IndexMap::by_dimension(operand.to_vec(), &result, &targets))
    }

    /// The map that sends dimension `d` of `from` to dimension `targets[d]` of `to`, or drops it.
    fn by_dimension(from: Vec<u32>, to: &[u32], targets: &[Option<usize>]) -> IndexMap {
        let mut columns = vec![0; from.iter().sum::<u32>() as usize];
        for (dim, target) in targets.iter().enumerate() {
            let Some(target) = *target else { continue };
            for bit in 0..from[dim] {
                columns[(dim_offset(&from, dim) + bit) as usize] =
                    1 << (dim_offset(to, target) + bit);
            }
        }
        IndexMap {
            from,
            to: to.to_vec(),
            columns,
        }
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

    /// The flat index in the target tile of a flat index.
    #[must_use]
    pub fn apply(&self, flat: u64) -> u64 {
        apply(&self.columns, flat)
    }

    /// Carries a layout along the map without moving data: each place holds the image of what it
    /// held. Dropped dimensions become free bits; registers that then hold the same element are
    /// merged, and the list gives, for each register of `layout`, the register of the result.
    ///
    /// For a shape op this turns the layout of the result into the one it asks of its operand; for a
    /// reduction it gives the layout of the result.
    ///
    /// # Errors
    /// When the shape of the layout is not the one that the map starts from.
    pub fn push(&self, layout: &LinearLayout) -> Result<(LinearLayout, Vec<u32>), LayoutError> {
        self.check_shape(layout, &self.from)?;
        let image = |columns: &[u64]| columns.iter().map(|&column| self.apply(column)).collect();
        let mapped = LinearLayout::new(
            self.to.clone(),
            image(layout.register_columns()),
            image(layout.lane_columns()),
            image(layout.warp_columns()),
        )?;
        Ok(mapped.without_register_copies())
    }

    /// A layout of the first tile that [`IndexMap::push`] carries to `layout`. Index bits that the
    /// map drops go to the free lane bits, then to the free warp bits, then to new registers above
    /// the old ones.
    ///
    /// For a shape op this gives the layout that the result has for free; for a reduction the layout
    /// of an operand whose reduction lands in `layout`.
    ///
    /// # Errors
    /// When the shape of the layout is not the one that the map leads to.
    pub fn pull(&self, layout: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        self.check_shape(layout, &self.to)?;
        let span = Span::of(&self.columns);
        let lift = |columns: &[u64]| -> Vec<u64> {
            let lifted = columns.iter().map(|&column| {
                span.solve(column)
                    .expect("broken invariant: an index map is surjective")
            });
            lifted.collect()
        };
        let matrix = BitMatrix::new(64, self.columns.clone())
            .expect("broken invariant: 64 rows hold every column");
        let mut dropped = matrix.kernel().into_iter();
        let mut register = lift(layout.register_columns());
        let mut lane = lift(layout.lane_columns());
        let mut warp = lift(layout.warp_columns());
        for column in lane
            .iter_mut()
            .chain(&mut warp)
            .filter(|column| **column == 0)
        {
            *column = dropped.next().unwrap_or(0);
        }
        register.extend(dropped);
        LinearLayout::new(self.from.clone(), register, lane, warp)
    }

    fn check_shape(&self, layout: &LinearLayout, expected: &[u32]) -> Result<(), LayoutError> {
        if layout.dim_bits() == expected {
            Ok(())
        } else {
            Err(LayoutError::ShapeMismatch {
                found: layout.shape(),
                expected: shape_of(expected),
            })
        }
    }
}
