//! What an [`IndexMap`] does to a layout: one pair of functions carries a layout across shape ops and
//! reductions, in either direction.

use super::LayoutError;
use super::linear::{LinearLayout, shape_of};
use super::matrix::{BitMatrix, Span, apply};
use crate::ir::IndexMap;

impl IndexMap {
    /// Carries a layout along the map without moving data: each place holds the image of what it
    /// held. Dropped dimensions become free bits; registers that then hold the same element are
    /// merged, and the list gives, for each register of `layout`, the register of the result. What
    /// the map does not reach lies in further registers.
    ///
    /// For a shape op this turns the layout of the result into the one it asks of its operand; for a
    /// reduction it gives the layout of the result.
    ///
    /// # Errors
    /// When the shape of the layout is not the one that the map starts from.
    pub fn push(&self, layout: &LinearLayout) -> Result<(LinearLayout, Vec<u32>), LayoutError> {
        check_shape(layout, self.from_bits())?;
        let image = |columns: &[u64]| -> Vec<u64> {
            let columns = columns.iter();
            columns
                .map(|&column| apply(self.columns(), column))
                .collect()
        };
        let mut register = image(layout.register_columns());
        let (lane, warp) = (image(layout.lane_columns()), image(layout.warp_columns()));
        let mut reached = Span::of(&[register.as_slice(), &lane, &warp].concat());
        let every = (0..self.to_bits().iter().sum::<u32>()).map(|bit| 1 << bit);
        register.extend(every.filter(|&column| reached.insert(column, 0)));
        // A lane holds both what it held and what the offset makes of that.
        let (rest, _) = Span::of(&register).reduce(self.offset());
        register.extend(Some(rest).filter(|&rest| rest != 0));
        let (_, turned) = Span::of(&register).reduce(self.offset());
        let mapped = LinearLayout::new(self.to_bits().to_vec(), register, lane, warp)?;
        let (mapped, merged) = mapped.without_register_copies();
        let registers = 0..u64::from(layout.registers());
        let merged = registers.map(|register| merged[(register ^ turned) as usize]);
        Ok((mapped, merged.collect()))
    }

    /// A layout of the first tile that [`IndexMap::push`] carries to `layout`, as far as the map
    /// reaches that tile. Index bits that the map drops go to the free lane bits, then to the free
    /// warp bits, then to new registers above the old ones.
    ///
    /// For a shape op this gives the layout that the result has for free, or nearly so; for a
    /// reduction the layout of an operand whose reduction lands in `layout`.
    ///
    /// # Errors
    /// When the shape of the layout is not the one that the map leads to.
    pub fn pull(&self, layout: &LinearLayout) -> Result<LinearLayout, LayoutError> {
        check_shape(layout, self.to_bits())?;
        let span = Span::of(self.columns());
        let lift = |columns: &[u64]| -> Vec<u64> {
            let columns = columns.iter();
            columns.map(|&column| span.reduce(column).1).collect()
        };
        let matrix = BitMatrix::new(64, self.columns().to_vec())
            .expect("broken invariant: 64 rows hold every column");
        let mut dropped = matrix.kernel().into_iter();
        let mut register = lift(layout.register_columns());
        register.retain(|&column| column != 0);
        let mut lane = lift(layout.lane_columns());
        let mut warp = lift(layout.warp_columns());
        let lanes = lane.iter_mut().zip(layout.lane_columns());
        let warps = warp.iter_mut().zip(layout.warp_columns());
        for (column, &old) in lanes.chain(warps).filter(|(column, _)| **column == 0) {
            // What the map does not reach gives its place to what would take a register.
            *column = match (dropped.next(), old) {
                (Some(free), _) => free,
                (None, 0) => 0,
                (None, _) => register.pop().unwrap_or(0),
            };
        }
        register.extend(dropped);
        LinearLayout::new(self.from_bits().to_vec(), register, lane, warp)
    }
}

fn check_shape(layout: &LinearLayout, expected: &[u32]) -> Result<(), LayoutError> {
    if layout.dim_bits() == expected {
        return Ok(());
    }
    Err(LayoutError::ShapeMismatch {
        found: layout.shape(),
        expected: shape_of(expected),
    })
}
