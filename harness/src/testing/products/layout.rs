//! Where the elements of a matrix lie in memory.

use exactile::internals::POISON;
use exactile::{Array, Buffer, Error, Number, Result, TensorView, TensorViewMut};
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

    /// The memory of a matrix that is given by rows. What lies between its elements is no number, where its type has such.
    pub(super) fn placed<T: Number>(self, numbers: &[T], extents: [usize; 2]) -> Vec<T> {
        let mut memory = vec![T::from_bits(u64::MAX); self.len(extents)];
        for (place, &number) in self.places(extents).zip(numbers) {
            memory[place] = number;
        }
        memory
    }

    /// The matrix by rows, as one list.
    ///
    /// # Errors
    /// A launch wrote between its elements.
    pub(super) fn restored(self, memory: &Array, extents: [usize; 2]) -> Result<Array> {
        let size = memory.dtype().bytes() as usize;
        let mut is_gap = vec![true; memory.len()];
        let mut bytes = Vec::with_capacity(extents[0] * extents[1] * size);
        for place in self.places(extents) {
            is_gap[place] = false;
            bytes.extend_from_slice(&memory.bytes()[place * size..][..size]);
        }
        let elements = memory.bytes().chunks_exact(size).zip(&is_gap);
        let touched =
            |(element, is_gap): (&[u8], &bool)| *is_gap && element.iter().any(|&it| it != POISON);
        if let Some(place) = elements.map(touched).position(|it| it) {
            return Err(Error::Mismatch(format!(
                "element {place} of the result's memory was written, and is none of the result"
            )));
        }
        Array::from_bytes(memory.dtype(), [extents[0] * extents[1]], &bytes)
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
    use exactile::internals::POISON;
    use exactile::{Array, DType};

    use super::Layout;

    #[test]
    fn matrices_come_back_and_gaps_are_watched() {
        let layout = Layout {
            turned: true,
            pad: 1,
            start: 2,
        };
        let placed = layout.placed(&[1u8, 2, 3, 4, 5, 6], [2, 3]);
        assert_eq!(placed, [255, 255, 1, 4, 255, 2, 5, 255, 3, 6, 255]);
        let written = placed.map_gaps();
        let memory = Array::from_bytes(DType::U8, [11], &written).expect("fits");
        let restored = layout.restored(&memory, [2, 3]).expect("no gap is written");
        assert_eq!(
            (restored.shape(), restored.bytes()),
            (&[6][..], &[1, 2, 3, 4, 5, 6][..])
        );
        let memory = Array::from_bytes(DType::U8, [11], &placed).expect("fits");
        let told = layout
            .restored(&memory, [2, 3])
            .expect_err("gaps are written");
        assert!(told.to_string().contains("element 0"), "{told}");
    }

    trait MapGaps {
        fn map_gaps(&self) -> Vec<u8>;
    }

    impl MapGaps for Vec<u8> {
        fn map_gaps(&self) -> Vec<u8> {
            self.iter()
                .map(|&it| if it == 255 { POISON } else { it })
                .collect()
        }
    }
}
