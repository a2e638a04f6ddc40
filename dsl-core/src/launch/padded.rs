//! Copies of arrays whose rows begin at multiples of 16 bytes, which a launch on a GPU makes of those whose rows do not.

use super::ArrayNumbers;
use crate::ir::Grid;

/// What rows of a copy begin at multiples of, in bytes: a bulk copy brings so many of a row at a time, in whole sectors.
const PITCH: u64 = 128;

/// The rows and the words of a row that a program copies.
pub const PADDED_TILE: [u32; 2] = [8, 256];

/// The most programs that a grid has beside one another for the words of a row.
const MOST_TILES: u64 = 65_535;

/// The bytes that lanes load from rows which begin anywhere in the time that two launches take: 5 microseconds, at 2 TB/s of an
/// H100, by the 1.7 GB that a product of 4096 loads so in 0.8 ms more than by bulk copies.
const LAUNCHES: u64 = 10 << 20;

/// A copy of the rows of an array, in words as wide as its rows allow. It has the same elements; what lies between its rows is never
/// read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaddedRows {
    /// Bytes of a word: 1, 2 or 4.
    pub word: u32,
    /// How many rows there are.
    pub rows: u64,
    /// Words of a row.
    pub columns: u64,
    /// Words from one row of the array to the next.
    pub stride: u64,
    /// The same of the copy.
    pub pitch: u64,
}

impl PaddedRows {
    /// That of an array of rows of elements of so many bytes; nothing of another one, or where a grid has no room for its rows.
    #[must_use]
    pub fn of(array: &ArrayNumbers, element_bytes: u32) -> Option<Self> {
        let (&[rows, columns], &[stride]) = (&array.extents[..], &array.strides[..]) else {
            return None;
        };
        let row = columns.checked_mul(element_bytes.into())?;
        // The array ends where it can.
        let before = rows.checked_sub(1)?.checked_mul(stride)?;
        before.checked_add(row).filter(|_| columns > 0)?;
        let word = 1 << (array.address | stride | row).trailing_zeros().min(2);
        let copy = Self {
            word,
            rows,
            columns: row / u64::from(word),
            stride: stride / u64::from(word),
            pitch: row.checked_next_multiple_of(PITCH)? / u64::from(word),
        };
        let fits = copy.columns.div_ceil(PADDED_TILE[1].into()) <= MOST_TILES
            && u32::try_from(rows).is_ok()
            && copy
                .pitch
                .checked_mul(rows)?
                .checked_mul(word.into())
                .is_some();
        fits.then_some(copy)
    }

    /// Bytes of the copy.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows * self.pitch * u64::from(self.word)
    }

    /// Bytes of the array from its first element to its last.
    #[must_use]
    pub fn source_bytes(&self) -> u64 {
        ((self.rows - 1) * self.stride + self.columns) * u64::from(self.word)
    }

    /// The programs that make it.
    #[must_use]
    pub fn grid(&self) -> Grid {
        let [rows, columns] = PADDED_TILE.map(u64::from);
        let tiles = [self.rows.div_ceil(rows), self.columns.div_ceil(columns)];
        let [down, across] = tiles.map(|it| it as u32);
        [down, across, 1]
    }

    /// The numbers of the copy of an array, which lies at an address.
    #[must_use]
    pub fn numbers(&self, array: &ArrayNumbers, address: u64) -> ArrayNumbers {
        ArrayNumbers {
            address,
            strides: vec![self.pitch * u64::from(self.word)],
            ..array.clone()
        }
    }
}

/// Whether copies of so many bytes each are worth while for programs that read so many of the arrays. The copies read and write
/// each byte once, at about 3 TB/s, and are a launch each. Lanes that load elements side by side at no multiple of 16 bytes take longer
/// for a byte, each time that a program reads it. So programs must read each byte twice at least, and enough beside to make up
/// for a launch of each copy.
pub(super) fn pays(read: u64, copies: impl Iterator<Item = u64>) -> bool {
    let cost = copies.fold(0_u64, |cost, bytes| {
        let copy = bytes.saturating_mul(2).saturating_add(LAUNCHES / 2);
        cost.saturating_add(copy)
    });
    read >= cost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(address: u64, extents: [u64; 2], stride: u64) -> ArrayNumbers {
        ArrayNumbers {
            address,
            extents: extents.into(),
            strides: vec![stride],
        }
    }

    #[test]
    fn a_copy_has_the_elements_in_words_that_its_rows_allow() {
        for (address, extents, stride, bytes, expected) in [
            // Rows of 16-bit elements, of an odd and of an even number, and one whose first element is odd.
            (4096, [4095, 4099], 8198, 2, [2, 4099, 4099, 4160]),
            (4096, [4095, 4098], 8196, 2, [4, 2049, 2049, 2080]),
            (4098, [4095, 4096], 8192, 2, [2, 4096, 4096, 4096]),
            // Rows that lie apart, bytes, and words of 8.
            (4096, [3, 10], 68, 4, [4, 10, 17, 32]),
            (4096, [3, 129], 131, 1, [1, 129, 131, 256]),
            (4096, [3, 5], 40, 8, [4, 10, 10, 32]),
        ] {
            let array = array(address, extents, stride);
            assert!(!array.is_aligned());
            let copy = PaddedRows::of(&array, bytes).expect("is copied");
            let [word, columns, stride, pitch] = expected;
            let rows = extents[0];
            let expected = PaddedRows {
                word: word as u32,
                rows,
                columns,
                stride,
                pitch,
            };
            assert_eq!(copy, expected);
            let placed = copy.numbers(&array, 1 << 20);
            assert!(placed.is_aligned());
            assert_eq!(placed.extents, array.extents);
            assert_eq!(copy.bytes(), rows * placed.strides[0]);
            let last = (rows - 1) * array.strides[0] + extents[1] * u64::from(bytes);
            assert_eq!(copy.source_bytes(), last);
        }
    }

    #[test]
    fn only_rows_that_a_grid_holds_are_copied() {
        let one = |rows, columns| PaddedRows::of(&array(2, [rows, columns], 2 * columns), 2);
        assert_eq!(one(17, 257).expect("is copied").grid(), [3, 2, 1]);
        assert!(one(1, 65_535 * 256).is_some());
        assert!(one(1, 65_535 * 256 + 1).is_none());
        assert!(one(1 << 40, 3).is_none());
        assert!(one(0, 3).is_none() && one(3, 0).is_none());
        let deep = ArrayNumbers {
            address: 2,
            extents: vec![2, 2, 2],
            strides: vec![8, 4],
        };
        assert!(PaddedRows::of(&deep, 2).is_none());
    }

    /// Products of `[m, k]` and `[k, n]` by tiles of `[128, 256]`, all of whose rows are odd.
    #[test]
    fn large_products_pay_for_copies_and_small_ones_do_not() {
        for (extents, expected) in [
            ([4095, 4097, 4099], true),
            ([2047, 2049, 2047], true),
            ([1023, 1025, 1021], true),
            ([127, 4097, 4099], false),
            ([511, 513, 511], false),
        ] {
            let [m, n, k]: [u64; 3] = extents;
            let read = 2 * k * (n.div_ceil(256) * m + m.div_ceil(128) * n);
            let copies = [2 * m * k, 2 * k * n].into_iter();
            assert_eq!(pays(read, copies), expected, "{extents:?}");
        }
        // One array of two.
        assert!(pays(21 << 20, [8 << 20].into_iter()));
        assert!(!pays(20 << 20, [8 << 20].into_iter()));
        assert!(!pays(u64::MAX - 1, [u64::MAX].into_iter()));
    }
}
