//! How four warps and the tensor cores share a product whose operands are in shared memory: the forms of PTX's
//! `wgmma.mma_async` (PTX ISA, "Asynchronous warpgroup level matrix instructions").
//!
//! An operand lies in chunks of 128 bytes along its contiguous axis for each index of the other
//! axis, in whose pieces of 16 bytes the lowest three bits of that index are mixed.

use super::LinearLayout;
use crate::ir::DType;
use crate::ir::index_map::dim_offset;
pub use crate::ir::operand::Side;
use crate::ir::operand::{
    PIECE_ROW_BITS, chunk_bits, is_multiplied_by_groups_alone, may_be_transposed, piece_bits,
};

/// Log2 of the rows of one instruction.
const ROW_BITS: u32 = 6;

/// Log2 of the least columns of one instruction.
const LEAST_COLUMN_BITS: u32 = 3;

/// Log2 of the most columns of one instruction.
const MOST_COLUMN_BITS: u32 = 8;

/// Log2 of the least columns of a group that has columns of its own.
const OWN_COLUMN_BITS: u32 = 6;

/// Log2 of the most numbers of an accumulator in a lane.
const MOST_HELD_BITS: u32 = 7;

/// Log2 of the warps of a group.
const GROUP_BITS: u32 = 2;

/// An operand of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Multiplied {
    /// The type of its elements.
    pub dtype: DType,
    /// The axis along which products are: 1 of `a`, 0 of `b`.
    pub products: usize,
}

/// The layout of a slot for an operand, of which elements along `inner` are contiguous; `None` where it has too
/// few of them, or may not lie so.
#[must_use]
pub fn operand_slot(
    dim_bits: &[u32],
    inner: usize,
    Multiplied { dtype, products }: Multiplied,
) -> Option<LinearLayout> {
    let may = inner == products || may_be_transposed(dtype);
    result_slot(dim_bits, inner, dtype).filter(|_| may)
}

/// As [`operand_slot`], also for fewer elements than a chunk has, which then has copies of them side by side: from eight on.
#[must_use]
pub fn chunked_slot(dim_bits: &[u32], inner: usize, dtype: DType) -> Option<LinearLayout> {
    let &[rows, columns] = dim_bits else {
        return None;
    };
    let outer = 1 - inner;
    let [inner_bits, outer_bits] = [inner, outer].map(|axis| [rows, columns][axis]);
    let (own, piece) = (chunk_bits(dtype), piece_bits(dtype));
    if inner_bits < piece || outer_bits < PIECE_ROW_BITS {
        return None;
    }
    let bit = |axis: usize, bit: u32| match bit < dim_bits[axis] {
        true => 1_u64 << (dim_offset(dim_bits, axis) + bit),
        false => 0,
    };
    let low = (0..own).map(|at| bit(inner, at));
    let mixed = (0..PIECE_ROW_BITS).map(|at| bit(outer, at) | bit(inner, at + piece));
    let high = (PIECE_ROW_BITS..outer_bits).map(|at| bit(outer, at));
    let chunks = (own..inner_bits).map(|at| bit(inner, at));
    let all = low.chain(mixed).chain(high).chain(chunks).collect();
    LinearLayout::new(dim_bits.to_vec(), all, Vec::new(), Vec::new()).ok()
}

/// The layout of a slot from which a bulk copy takes a tile, of which elements along `inner` are contiguous; `None` where it
/// has too few of them.
#[must_use]
pub fn result_slot(dim_bits: &[u32], inner: usize, dtype: DType) -> Option<LinearLayout> {
    let enough = *dim_bits.get(inner)? >= chunk_bits(dtype);
    enough
        .then(|| chunked_slot(dim_bits, inner, dtype))
        .flatten()
}

/// The axis along which elements of an operand are contiguous in such a slot.
#[must_use]
pub fn inner_axis(slot: &LinearLayout, dtype: DType) -> Option<usize> {
    (0..2).find(|&axis| chunked_slot(slot.dim_bits(), axis, dtype).as_ref() == Some(slot))
}

/// The same where that operand may lie so.
#[must_use]
pub fn operand_axis(slot: &LinearLayout, of: Multiplied) -> Option<usize> {
    let may = |&inner: &usize| inner == of.products || may_be_transposed(of.dtype);
    inner_axis(slot, of.dtype).filter(may)
}

/// The axis along which elements are contiguous in a slot that bulk copies fill or read: one that fills chunks.
#[must_use]
pub fn box_axis(slot: &LinearLayout, dtype: DType) -> Option<usize> {
    let inner = inner_axis(slot, dtype)?;
    (slot.dim_bits()[inner] >= chunk_bits(dtype)).then_some(inner)
}

/// How groups of warps share a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The layout of the accumulator.
    pub layout: LinearLayout,
    /// The layout of an operand `a` that lanes hold: of 16 bits, where products are columns, that of an accumulator.
    pub held: LinearLayout,
    /// Log2 of the columns of a group.
    pub column_bits: u32,
}

/// How warps share `[m, k] x [k, n]` of this type for these log2 of m, n and k; `None` where there are too few of anything.
///
/// Groups have rows of their own, side by side, and columns where there are more groups than 64 rows. Of operands
/// that warps do not multiply in fragments, groups without 64 columns of their own have the same ones.
#[must_use]
pub fn groups(
    [rows, columns, products]: [u32; 3],
    warp_bits: u32,
    operand: DType,
) -> Option<Groups> {
    let enough =
        rows >= ROW_BITS && columns >= LEAST_COLUMN_BITS && products >= chunk_bits(operand);
    let groups = warp_bits.checked_sub(GROUP_BITS).filter(|_| enough)?;
    // Numbers of 64 bits have no place in a register.
    let beside = (4 / operand.bytes()).checked_ilog2()?;
    let of_rows = groups.min(rows - ROW_BITS);
    let parted = columns.checked_sub(groups - of_rows);
    let parted = parted.filter(|&own| own == columns || own >= OWN_COLUMN_BITS);
    // What nobody else could compute more groups compute alike.
    let alike = parted.is_none() && is_multiplied_by_groups_alone(operand);
    let column_bits = if alike { columns } else { parted? };
    let own_rows = rows - of_rows;
    let held = own_rows + column_bits - ROW_BITS - 1;
    if column_bits > MOST_COLUMN_BITS || held > MOST_HELD_BITS {
        return None;
    }
    let place = |at: u32| {
        if alike {
            0
        } else {
            1_u64 << (column_bits + at)
        }
    };
    let parts = (0..groups - of_rows).map(place);
    let layout = dealt([rows, columns], [own_rows, column_bits], SUM_BITS, parts);
    let held = dealt(
        [rows, products],
        [own_rows, products],
        beside,
        (0..groups - of_rows).map(|_| 0),
    );
    layout.zip(held).map(|(layout, held)| Groups {
        layout,
        held,
        column_bits,
    })
}

/// Log2 of the columns of an accumulator that a lane has side by side.
const SUM_BITS: u32 = 1;

/// The layout of a tile of which each group has so many rows and columns, and a lane so many columns side by side; `parts`
/// says which columns those are that groups have beside each other.
fn dealt(
    [rows, columns]: [u32; 2],
    [own_rows, own_columns]: [u32; 2],
    beside: u32,
    parts: impl Iterator<Item = u64>,
) -> Option<LinearLayout> {
    let (row, column) = (|at: u32| 1_u64 << (columns + at), |at: u32| 1_u64 << at);
    let first = (0..beside).map(column).chain([row(3)]);
    let registers = first.chain((beside + 2..own_columns).map(column));
    let registers = registers.chain((ROW_BITS..own_rows).map(row));
    let lanes = [column(beside), column(beside + 1), row(0), row(1), row(2)];
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
    use crate::ir::operand::may_have_columns;
    use crate::layout::linear::Point;

    #[test]
    fn slots_are_where_sides_say() {
        let all = [[6, 6], [7, 6], [6, 8], [4, 7], [7, 3], [6, 5], [3, 8]];
        for (bits, dtype) in all
            .iter()
            .flat_map(|&bits| [DType::BF16, DType::F8E4M3].map(|dtype| (bits, dtype)))
        {
            for inner in 0..2 {
                let Some(slot) = chunked_slot(&bits, inner, dtype) else {
                    continue;
                };
                assert_eq!(inner_axis(&slot, dtype), Some(inner));
                // The first axis as rows of `a`.
                let side = Side {
                    transposed: inner == 0,
                    chunk: (128 / dtype.bytes() as usize) << bits[1 - inner],
                    dtype,
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
        let found = groups([7, 7, 6], 3, DType::BF16).expect("is large enough");
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
        let found = groups([7, 3, 6], 3, DType::BF16).expect("is large enough");
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

    /// Of each 32 products of 8 bits the four words that the PTX ISA shows.
    #[test]
    fn held_operands_of_8_bits_are_as_the_isa_says() {
        let found = groups([7, 3, 7], 3, DType::F8E4M3).expect("is large enough");
        for warp in 0..8_u32 {
            for lane in 0..32_u32 {
                for element in 0..64_u32 {
                    let (step, word, byte) = (element / 16, element / 4 % 4, element % 4);
                    let row = warp / 4 * 64 + warp % 4 * 16 + lane / 4 + word % 2 * 8;
                    let product = step * 32 + word / 2 * 16 + lane % 4 * 4 + byte;
                    let at = found.held.apply(Point {
                        register: element,
                        lane,
                        warp,
                    });
                    assert_eq!(at, u64::from(row << 7 | product));
                }
            }
        }
    }

    #[test]
    fn operands_of_8_bits_are_contiguous_along_products() {
        let slot = |inner, dtype| {
            let operand = Multiplied { dtype, products: 1 };
            operand_slot(&[7, 7], inner, operand)
        };
        assert!(slot(0, DType::F16).is_some() && slot(1, DType::F8E5M2).is_some());
        assert_eq!(slot(0, DType::F8E5M2), None);
    }

    /// The columns of integers in the shapes of `wgmma`.
    #[test]
    fn integers_have_every_other_width_above_32() {
        let widths = |dtype| (0..300).filter(move |&it| may_have_columns(dtype, it));
        assert!(widths(DType::BF16).eq((8..=256).step_by(8)));
        let of_integers = [8, 16, 24, 32].into_iter().chain((48..=256).step_by(16));
        assert!(widths(DType::I8).eq(of_integers));
    }

    #[test]
    fn small_products_have_no_groups() {
        let groups = |bits, warp_bits| groups(bits, warp_bits, DType::F16);
        assert!(super::groups([6, 6, 6], 2, DType::F8E4M3).is_none());
        let alike = super::groups([6, 4, 7], 4, DType::F8E4M3).expect("groups multiply alike");
        assert_eq!(alike.column_bits, 4);
        assert_eq!(alike.layout.free_bits().warp, 0b1100);
        assert_eq!(groups([5, 7, 6], 2), None);
        assert_eq!(groups([6, 7, 6], 1), None);
        assert_eq!(groups([6, 2, 6], 2), None);
        assert_eq!(groups([6, 5, 6], 3), None);
        assert_eq!(groups([6, 7, 5], 2), None);
        assert_eq!(groups([8, 8, 6], 2), None);
        assert!(groups([6, 8, 6], 4).is_some());
        assert!(super::groups([6, 8, 6], 4, DType::F64).is_none());
    }
}
