//! How four warps and the tensor cores share a product whose operands are in shared memory: the forms of PTX's
//! `wgmma.mma_async` on types of 16 bits (PTX ISA, "Asynchronous warpgroup level matrix instructions").
//!
//! An operand lies in chunks of 64 elements along its contiguous axis: 128 bytes for each index of the other
//! axis, in whose pieces of 16 bytes the lowest three bits of that index are mixed.

use super::LinearLayout;
use crate::ir::index_map::dim_offset;
pub use crate::ir::operand::Side;

/// Log2 of the elements along the contiguous axis of a chunk.
pub const CHUNK_BITS: u32 = 6;

/// Log2 of the rows of one instruction.
const ROW_BITS: u32 = 6;

/// Log2 of the least columns of one instruction.
const LEAST_COLUMN_BITS: u32 = 3;

/// Log2 of the most columns of one instruction.
const MOST_COLUMN_BITS: u32 = 8;

/// The most columns of one instruction.
pub const MOST_COLUMNS: u64 = 1 << MOST_COLUMN_BITS;

/// Log2 of the most numbers of an accumulator in a lane.
const MOST_HELD_BITS: u32 = 7;

/// Log2 of the warps of a group.
const GROUP_BITS: u32 = 2;

/// The layout of a slot for an operand, of which elements along `inner` are contiguous; `None` where it has too
/// few of them.
#[must_use]
pub fn operand_slot(dim_bits: &[u32], inner: usize) -> Option<LinearLayout> {
    let enough = *dim_bits.get(inner)? >= CHUNK_BITS;
    enough.then(|| chunked_slot(dim_bits, inner)).flatten()
}

/// As [`operand_slot`], also for fewer elements than a chunk has, which then has copies of them side by side: from eight on.
#[must_use]
pub fn chunked_slot(dim_bits: &[u32], inner: usize) -> Option<LinearLayout> {
    let &[rows, columns] = dim_bits else {
        return None;
    };
    let outer = 1 - inner;
    let [inner_bits, outer_bits] = [inner, outer].map(|axis| [rows, columns][axis]);
    if inner_bits < 3 || outer_bits < 3 {
        return None;
    }
    let bit = |axis: usize, bit: u32| match bit < dim_bits[axis] {
        true => 1_u64 << (dim_offset(dim_bits, axis) + bit),
        false => 0,
    };
    let low = (0..CHUNK_BITS).map(|at| bit(inner, at));
    let mixed = (0..3).map(|at| bit(outer, at) | bit(inner, at + 3));
    let high = (3..outer_bits).map(|at| bit(outer, at));
    let chunks = (CHUNK_BITS..inner_bits).map(|at| bit(inner, at));
    let all = low.chain(mixed).chain(high).chain(chunks).collect();
    LinearLayout::new(dim_bits.to_vec(), all, Vec::new(), Vec::new()).ok()
}

/// The axis along which elements of an operand are contiguous in such a slot.
#[must_use]
pub fn inner_axis(slot: &LinearLayout) -> Option<usize> {
    (0..2).find(|&axis| chunked_slot(slot.dim_bits(), axis).as_ref() == Some(slot))
}

/// How groups of warps share a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The layout of the accumulator.
    pub layout: LinearLayout,
    /// The layout of an operand `a` that lanes hold: where products are columns, that of an accumulator.
    pub held: LinearLayout,
    /// Log2 of the columns of a group.
    pub column_bits: u32,
}

/// How warps share `[m, k] x [k, n]` for these log2 of m, n and k; `None` where there are too few of anything.
///
/// Groups have rows of their own, side by side, and columns where there are more groups than 64 rows.
#[must_use]
pub fn groups([rows, columns, products]: [u32; 3], warp_bits: u32) -> Option<Groups> {
    let enough = rows >= ROW_BITS && columns >= LEAST_COLUMN_BITS && products >= CHUNK_BITS;
    let groups = warp_bits.checked_sub(GROUP_BITS).filter(|_| enough)?;
    let of_rows = groups.min(rows - ROW_BITS);
    let column_bits = columns.checked_sub(groups - of_rows)?;
    let whole = column_bits == columns || column_bits >= CHUNK_BITS;
    let own_rows = rows - of_rows;
    let held = own_rows + column_bits - ROW_BITS - 1;
    if !whole || column_bits > MOST_COLUMN_BITS || held > MOST_HELD_BITS {
        return None;
    }
    let parts = (column_bits..columns).map(|at| 1_u64 << at);
    let layout = dealt([rows, columns], [own_rows, column_bits], parts);
    let held = dealt(
        [rows, products],
        [own_rows, products],
        (column_bits..columns).map(|_| 0),
    );
    layout.zip(held).map(|(layout, held)| Groups {
        layout,
        held,
        column_bits,
    })
}

/// The layout of a tile of which each group has so many rows and columns; `parts` says which columns those are that
/// groups have beside each other.
fn dealt(
    [rows, columns]: [u32; 2],
    [own_rows, own_columns]: [u32; 2],
    parts: impl Iterator<Item = u64>,
) -> Option<LinearLayout> {
    let (row, column) = (|at: u32| 1_u64 << (columns + at), |at: u32| 1_u64 << at);
    let first = [column(0), row(3)];
    let registers = first.into_iter().chain((3..own_columns).map(column));
    let registers = registers.chain((ROW_BITS..own_rows).map(row));
    let lanes = [column(1), column(2), row(0), row(1), row(2)];
    let warps = [row(4), row(5)]
        .into_iter()
        .chain((own_rows..rows).map(row));
    LinearLayout::new(
        vec![rows, columns],
        registers.collect(),
        lanes.to_vec(),
        warps.chain(parts).collect(),
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::linear::Point;

    #[test]
    fn slots_are_where_sides_say() {
        for bits in [[6, 6], [7, 6], [6, 8], [4, 7], [7, 3], [6, 5]] {
            for inner in 0..2 {
                let Some(slot) = chunked_slot(&bits, inner) else {
                    continue;
                };
                assert_eq!(inner_axis(&slot), Some(inner));
                // The first axis as rows of `a`.
                let side = Side {
                    transposed: inner == 0,
                    chunk: 64 << bits[1 - inner],
                };
                for row in 0..1 << bits[0] {
                    for k in 0..1 << bits[1] {
                        let at = slot.apply(Point {
                            register: side.place(row, k) as u32,
                            lane: 0,
                            warp: 0,
                        });
                        assert_eq!(at, (row << bits[1] | k) as u64);
                    }
                }
            }
        }
    }

    /// The coordinates by the formulas of the PTX ISA.
    #[test]
    fn accumulators_are_as_the_isa_says() {
        let found = groups([7, 7, 6], 3).expect("is large enough");
        assert_eq!(found.column_bits, 7);
        for warp in 0..8_u32 {
            for lane in 0..32_u32 {
                for register in 0..64_u32 {
                    let row = warp / 4 * 64 + warp % 4 * 16 + lane / 4 + register / 2 % 2 * 8;
                    let column = register / 4 * 8 + lane % 4 * 2 + register % 2;
                    let at = found.layout.apply(Point {
                        register,
                        lane,
                        warp,
                    });
                    assert_eq!(at, u64::from(row << 7 | column));
                }
            }
        }
    }

    /// The operand `a` in registers: of each 16 products the four words that the PTX ISA shows.
    #[test]
    fn held_operands_are_as_the_isa_says() {
        let found = groups([7, 3, 6], 3).expect("is large enough");
        for warp in 0..8_u32 {
            for lane in 0..32_u32 {
                for element in 0..32_u32 {
                    let (step, word, half) = (element / 8, element / 2 % 4, element % 2);
                    let row = warp / 4 * 64 + warp % 4 * 16 + lane / 4 + word % 2 * 8;
                    let product = step * 16 + word / 2 * 8 + lane % 4 * 2 + half;
                    let at = found.held.apply(Point {
                        register: element,
                        lane,
                        warp,
                    });
                    assert_eq!(at, u64::from(row << 6 | product));
                }
            }
        }
    }

    #[test]
    fn small_products_have_no_groups() {
        assert_eq!(groups([5, 7, 6], 2), None);
        assert_eq!(groups([6, 7, 6], 1), None);
        assert_eq!(groups([6, 2, 6], 2), None);
        assert_eq!(groups([6, 5, 6], 3), None);
        assert_eq!(groups([6, 7, 5], 2), None);
        assert_eq!(groups([8, 8, 6], 2), None);
        assert!(groups([6, 8, 6], 4).is_some());
    }
}
