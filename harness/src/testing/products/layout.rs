//! Where the elements of a matrix lie in memory.

use exactile::{Buffer, Number, Result, TensorView, TensorViewMut};
use exactile_core::random::Random;

/// A matrix by rows, or by columns where it is `turned`, each with `pad` elements behind it, from element `start` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Layout {
    pub(super) turned: bool,
    pub(super) pad: usize,
    pub(super) start: usize,
}

impl Layout {
    /// By rows or by columns, without a gap.
    pub(super) fn dense(turned: bool) -> Self {
        Self {
            turned,
            ..Self::default()
        }
    }

    /// Any: dense ones more often than others.
    pub(super) fn random(random: &mut Random) -> Self {
        Self {
            turned: random.one_in(2),
            pad: random.pick(&[0, 0, 0, 0, 1, 8, 16, 24]),
            start: random.pick(&[0, 0, 0, 0, 1, 2, 8, 16]),
        }
    }

    /// What is said of it.
    pub(super) fn name(self) -> String {
        let Self { turned, pad, start } = self;
        let axis = if turned { "columns" } else { "rows" };
        match (pad, start) {
            (0, 0) => axis.to_string(),
            _ => format!("{axis} {pad} apart from {start} on"),
        }
    }

    fn strides(self, [rows, columns]: [usize; 2]) -> [usize; 2] {
        match self.turned {
            true => [1, rows + self.pad],
            false => [columns + self.pad, 1],
        }
    }

    /// The elements of the memory.
    pub(super) fn len(self, extents: [usize; 2]) -> usize {
        let [outer, inner] = if self.turned {
            [extents[1], extents[0]]
        } else {
            extents
        };
        self.start + outer * (inner + self.pad)
    }

    /// Where the elements are, by rows.
    fn places(self, extents: [usize; 2]) -> impl Iterator<Item = usize> {
        let [down, across] = self.strides(extents);
        let rows = 0..extents[0];
        rows.flat_map(move |row| {
            (0..extents[1]).map(move |it| self.start + row * down + it * across)
        })
    }

    /// The memory of a matrix that is given by rows, with this number between its elements.
    pub(super) fn placed<T: Number>(
        self,
        numbers: &[T],
        extents: [usize; 2],
        between: T,
    ) -> Vec<T> {
        let mut memory = vec![between; self.len(extents)];
        for (place, &number) in self.places(extents).zip(numbers) {
            memory[place] = number;
        }
        memory
    }

    pub(super) fn view<T: Number>(
        self,
        memory: &Buffer<T>,
        extents: [usize; 2],
    ) -> Result<TensorView<'_, T, 2>> {
        memory
            .slice(self.start..)?
            .view_strided(extents, self.strides(extents))
    }

    pub(super) fn view_mut<T: Number>(
        self,
        memory: &mut Buffer<T>,
        extents: [usize; 2],
    ) -> Result<TensorViewMut<'_, T, 2>> {
        let strides = self.strides(extents);
        memory
            .slice_mut(self.start..)?
            .view_strided_mut(extents, strides)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn matrices_lie_as_they_are_said_to() {
        let layout = Layout {
            turned: true,
            pad: 1,
            start: 2,
        };
        let placed = layout.placed(&[1u8, 2, 3, 4, 5, 6], [2, 3], 9);
        assert_eq!(placed, [9, 9, 1, 4, 9, 2, 5, 9, 3, 6, 9]);
        assert_eq!(layout.name(), "columns 1 apart from 2 on");
        let rows = Layout::dense(false).placed(&[1u8, 2, 3, 4, 5, 6], [2, 3], 9);
        assert_eq!(rows, [1, 2, 3, 4, 5, 6]);
    }
}
