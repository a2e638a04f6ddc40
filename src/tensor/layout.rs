//! Extents, strides and the first element of a view: which elements of a memory it has.

use std::ops::Range;

use crate::error::{Error, Result};

/// Where the elements of a view are, in elements. Each of them lies in the memory of the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout<const RANK: usize> {
    /// How many elements along each axis, outermost first.
    pub(crate) extents: [usize; RANK],
    /// How far apart neighbours along each axis are: below zero where an axis runs backwards.
    pub(crate) strides: [isize; RANK],
    /// Where the element is whose indices are all 0; 0 where there is no element.
    pub(crate) start: usize,
}

impl<const RANK: usize> Layout<RANK> {
    /// Row-major without gaps, in a memory of `len` elements.
    pub(crate) fn contiguous(extents: [usize; RANK], len: usize) -> Result<Self> {
        let mut strides = [1_usize; RANK];
        for axis in (1..RANK).rev() {
            let stride = extents[axis].checked_mul(strides[axis]);
            strides[axis - 1] = stride.ok_or_else(|| too_large(&extents, len))?;
        }
        Self::strided(extents, strides, len)
    }

    /// With these strides, from the beginning of a memory of `len` elements.
    pub(crate) fn strided(
        extents: [usize; RANK],
        strides: [usize; RANK],
        len: usize,
    ) -> Result<Self> {
        let layout = Self {
            extents,
            // Only one that never counts is larger.
            strides: strides.map(|stride| isize::try_from(stride).unwrap_or(isize::MAX)),
            start: 0,
        };
        let mut last = Some(0_usize);
        for (extent, stride) in extents.into_iter().zip(strides) {
            let reach = extent.saturating_sub(1).checked_mul(stride);
            last = last
                .zip(reach)
                .and_then(|(last, more)| last.checked_add(more));
        }
        let fits = layout.is_empty() || last.is_some_and(|last| last < len);
        fits.then_some(layout)
            .ok_or_else(|| too_large(&extents, len))
    }

    fn is_empty(&self) -> bool {
        self.extents.contains(&0)
    }

    /// From the lowest element to behind the highest.
    pub(crate) fn window(&self) -> Range<usize> {
        if self.is_empty() {
            return 0..0;
        }
        let (mut low, mut high) = (self.start, self.start);
        for (extent, stride) in self.extents.into_iter().zip(self.strides) {
            let reach = (extent - 1) * stride.unsigned_abs();
            match stride < 0 {
                true => low -= reach,
                false => high += reach,
            }
        }
        low..high + 1
    }

    /// The same in a memory that begins at the lowest element.
    pub(crate) fn rebased(mut self) -> Self {
        self.start -= self.window().start;
        for (stride, extent) in self.strides.iter_mut().zip(self.extents) {
            if extent <= 1 {
                // It never counts.
                *stride = stride.saturating_abs();
            }
        }
        self
    }

    /// The same in a memory that begins `cut` elements later, at its lowest element or before.
    pub(crate) fn moved_down(mut self, cut: usize) -> Self {
        if !self.is_empty() {
            self.start -= cut;
        }
        self
    }

    fn check_axis(&self, axis: usize) -> Result<()> {
        if axis < RANK {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "axis {axis} is out of range for a view of rank {RANK}"
        )))
    }

    /// `extent` indices of an axis, the first of which is `first`; the caller has compared them with the axis.
    pub(crate) fn slice(mut self, axis: usize, first: usize, extent: usize) -> Self {
        self.extents[axis] = extent;
        self.start = match self.is_empty() {
            true => 0,
            false => self.at(axis, first),
        };
        self
    }

    /// Where the element at an index of an axis is, the other indices being 0.
    fn at(&self, axis: usize, index: usize) -> usize {
        // An element of the view: nothing wraps.
        let by = self.strides[axis].wrapping_mul(index.cast_signed());
        self.start.wrapping_add_signed(by)
    }

    /// The extent of an axis.
    pub(crate) fn extent(&self, axis: usize) -> Result<usize> {
        self.check_axis(axis)?;
        Ok(self.extents[axis])
    }

    /// Every `step`th index of an axis, from its first on.
    pub(crate) fn step(mut self, axis: usize, step: usize) -> Result<Self> {
        self.check_axis(axis)?;
        if step == 0 {
            return Err(Error::Invalid(format!(
                "a step of 0 along axis {axis}: it is 1 at least"
            )));
        }
        self.extents[axis] = self.extents[axis].div_ceil(step);
        let step = isize::try_from(step).unwrap_or(isize::MAX);
        // Only one that never counts is larger.
        self.strides[axis] = self.strides[axis].saturating_mul(step);
        Ok(self)
    }

    /// The indices of an axis from its last to its first.
    pub(crate) fn flip(mut self, axis: usize) -> Result<Self> {
        self.check_axis(axis)?;
        let extent = self.extents[axis];
        if extent > 1 {
            if !self.is_empty() {
                self.start = self.at(axis, extent - 1);
            }
            // Only one that never counts is not turned.
            self.strides[axis] = self.strides[axis].saturating_neg();
        }
        Ok(self)
    }

    /// The axes in another order.
    pub(crate) fn permute(self, axes: [usize; RANK]) -> Result<Self> {
        let mut sorted = axes;
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..RANK) {
            return Err(Error::Invalid(format!(
                "axes {axes:?} are no order of the axes of a view of rank {RANK}"
            )));
        }
        Ok(Self {
            extents: axes.map(|axis| self.extents[axis]),
            strides: axes.map(|axis| self.strides[axis]),
            start: self.start,
        })
    }

    /// One index of an axis, which goes.
    pub(crate) fn select<const LESS: usize>(
        self,
        axis: usize,
        index: usize,
    ) -> Result<Layout<LESS>> {
        let extent = self.extent(axis)?;
        if index >= extent {
            return Err(Error::Invalid(format!(
                "index {index} of axis {axis} is out of range for the extent {extent}"
            )));
        }
        let one = self.slice(axis, index, 1);
        let other = |at: usize| at + usize::from(at >= axis);
        Ok(Layout {
            extents: std::array::from_fn(|at| one.extents[other(at)]),
            strides: std::array::from_fn(|at| one.strides[other(at)]),
            start: one.start,
        })
    }

    /// The first `count` indices of an axis, and the others; and where the memory is divided between them, with
    /// whether the first part is below that.
    pub(crate) fn split_at(self, axis: usize, count: usize) -> Result<([Self; 2], usize, bool)> {
        let extent = self.extent(axis)?;
        if count > extent {
            return Err(Error::Invalid(format!(
                "axis {axis} has the extent {extent}, which cannot be split at {count}"
            )));
        }
        let parts = [
            self.slice(axis, 0, count),
            self.slice(axis, count, extent - count),
        ];
        let [first, second] = parts.map(|part| part.window());
        if first.is_empty() {
            return Ok((parts, 0, true));
        }
        if second.is_empty() || first.end <= second.start {
            return Ok((parts, first.end, true));
        }
        if second.end <= first.start {
            return Ok((parts, first.start, false));
        }
        Err(Error::Invalid(format!(
            "the parts of axis {axis} lie between each other in memory: split the axis of the longest strides, {:?}",
            self.strides
        )))
    }
}

fn too_large(extents: &[usize], len: usize) -> Error {
    Error::Invalid(format!(
        "a view of extents {extents:?} does not fit {len} elements"
    ))
}

#[cfg(test)]
mod tests;
