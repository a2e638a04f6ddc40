//! The layouts in which a warp hands a step to the tensor cores: those of PTX's `mma.m16n8k16` on types of
//! 16 bits (PTX ISA, "Matrix Fragments for mma.m16n8k16").
//!
//! A fragment of the operand `a` is `[16, 16]`, of `b` `[16, 8]`, of the accumulator `[16, 8]`. A tile has as
//! many as fill it: further columns and rows are dealt to warps, then to registers. Where it is smaller
//! than a fragment, lanes and registers hold the same elements.

use super::LinearLayout;
use crate::ir::index_map::dim_offset;

/// Elements that a lane holds of a fragment of `a`, `b` and the accumulator.
pub const HELD: [u32; 3] = [8, 4, 4];

/// A bit of the row, the column or the product of an element of a dot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bit {
    Row(u32),
    Column(u32),
    Product(u32),
}

/// The layouts of a dot by fragments.
#[derive(Clone, Debug)]
pub struct Fragments {
    /// The layouts of `a`, `b` and the accumulator.
    pub layouts: [LinearLayout; 3],
    /// For each fragment of the accumulator, in the order of its registers, that of `a` and that of `b` for
    /// the first products; those of the next products follow.
    pub operands: Vec<[u32; 2]>,
    /// Log2 of the steps of the chain.
    pub step_bits: u32,
}

/// The layouts of `[m, k] x [k, n]` for these log2 of m, n and k, which is at least 4.
#[must_use]
pub fn fragments([rows, columns, products]: [u32; 3], warp_bits: u32) -> Fragments {
    use Bit::{Column, Product, Row};
    let further_rows = (4..rows).map(Row);
    let further_columns = (3..columns).map(Column);
    let mut dealt = alternating(further_rows, further_columns);
    let held = dealt.split_off(dealt.len().min(warp_bits as usize));
    let mut warp: Vec<Option<Bit>> = dealt.into_iter().map(Some).collect();
    warp.resize(warp_bits as usize, None);
    let steps = (4..products).map(Product);
    let of_rows = held.iter().copied().filter(|bit| matches!(bit, Row(_)));
    let of_columns = held.iter().copied().filter(|bit| matches!(bit, Column(_)));
    let registers = [
        [Product(0), Row(3), Product(3)]
            .into_iter()
            .chain(steps.clone())
            .chain(of_rows)
            .collect(),
        [Product(0), Product(3)]
            .into_iter()
            .chain(steps)
            .chain(of_columns)
            .collect(),
        [Column(0), Row(3)]
            .into_iter()
            .chain(held.iter().copied())
            .collect::<Vec<_>>(),
    ];
    let lanes = [
        [Product(1), Product(2), Row(0), Row(1), Row(2)],
        [Product(1), Product(2), Column(0), Column(1), Column(2)],
        [Column(1), Column(2), Row(0), Row(1), Row(2)],
    ];
    let dims = [
        [Row(rows), Product(products)],
        [Product(products), Column(columns)],
        [Row(rows), Column(columns)],
    ];
    let layouts = [0, 1, 2].map(|at| {
        let lane: Vec<Option<Bit>> = lanes[at].into_iter().map(Some).collect();
        let register: Vec<Option<Bit>> = registers[at].iter().copied().map(Some).collect();
        layout(dims[at], [&register, &lane, &warp])
    });
    let step_bits = products - 4;
    Fragments {
        layouts,
        operands: operands(&held, step_bits),
        step_bits,
    }
}

fn alternating(mut a: impl Iterator<Item = Bit>, mut b: impl Iterator<Item = Bit>) -> Vec<Bit> {
    let mut all = Vec::new();
    loop {
        let pair = [a.next(), b.next()];
        if pair == [None, None] {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

/// For each fragment of the accumulator those of the operands.
fn operands(held: &[Bit], step_bits: u32) -> Vec<[u32; 2]> {
    let place = |fragment: u32, wanted: fn(&Bit) -> bool| {
        let bits = held.iter().enumerate().filter(|(_, bit)| wanted(bit));
        let number = bits.zip(0..).fold(0, |number, ((at, _), to)| {
            number | (fragment >> at & 1) << to
        });
        number << step_bits
    };
    let pair = |fragment| {
        [
            place(fragment, |bit| matches!(bit, Bit::Row(_))),
            place(fragment, |bit| matches!(bit, Bit::Column(_))),
        ]
    };
    (0..1 << held.len()).map(pair).collect()
}

/// A layout of a matrix; `dims` are the axes, with the log2 of their extents.
fn layout(dims: [Bit; 2], holders: [&[Option<Bit>]; 3]) -> LinearLayout {
    let extent = |bit: Bit| match bit {
        Bit::Row(bits) | Bit::Column(bits) | Bit::Product(bits) => bits,
    };
    let dim_bits = dims.map(extent).to_vec();
    let column = |bit: Option<Bit>| {
        let bit = bit?;
        let dim = dims
            .iter()
            .position(|&dim| std::mem::discriminant(&dim) == std::mem::discriminant(&bit))?;
        let number = extent(bit);
        (number < dim_bits[dim]).then(|| 1 << (dim_offset(&dim_bits, dim) + number))
    };
    let [register, lane, warp] = holders
        .map(|bits| -> Vec<u64> { bits.iter().map(|&bit| column(bit).unwrap_or(0)).collect() });
    LinearLayout::new(dim_bits.clone(), register, lane, warp)
        .expect("broken invariant: every bit of the tile is dealt once")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::linear::Point;

    /// The coordinates by the formulas of the PTX ISA.
    #[test]
    fn one_fragment_is_as_the_isa_says() {
        let fragments = fragments([4, 3, 4], 0);
        let [a, b, accumulator] = &fragments.layouts;
        for lane in 0..32 {
            let (group, within) = (u64::from(lane / 4), u64::from(lane % 4));
            let at = |layout: &LinearLayout, register| {
                layout.apply(Point {
                    register,
                    lane,
                    warp: 0,
                })
            };
            for i in 0..8_u32 {
                let row = group + if matches!(i, 2 | 3 | 6 | 7) { 8 } else { 0 };
                let k = within * 2 + u64::from(i & 1) + if i >= 4 { 8 } else { 0 };
                assert_eq!(at(a, i), row * 16 + k);
            }
            for i in 0..4_u32 {
                let k = within * 2 + u64::from(i & 1) + if i >= 2 { 8 } else { 0 };
                assert_eq!(at(b, i), k * 8 + group);
                let row = group + if i >= 2 { 8 } else { 0 };
                assert_eq!(at(accumulator, i), row * 8 + within * 2 + u64::from(i & 1));
            }
        }
    }

    #[test]
    fn operands_meet_at_the_elements_of_the_accumulator() {
        for rows in 0..8 {
            for columns in 0..8 {
                for products in 4..7 {
                    for warp_bits in 0..4 {
                        meets([rows, columns, products], warp_bits);
                    }
                }
            }
        }
    }

    fn meets(bits: [u32; 3], warp_bits: u32) {
        let found = fragments(bits, warp_bits);
        let [a, b, accumulator] = &found.layouts;
        let [rows, columns, products] = bits;
        for warp in 0..1 << warp_bits {
            let at = |layout: &LinearLayout, register, lane| {
                layout.apply(Point {
                    register,
                    lane,
                    warp,
                })
            };
            for (fragment, operands) in (0..).zip(&found.operands) {
                for step in 0..1 << found.step_bits {
                    // The first row and column of a fragment, and its first products.
                    let result = at(accumulator, fragment * HELD[2], 0);
                    let left = at(a, (operands[0] + step) * HELD[0], 0);
                    let right = at(b, (operands[1] + step) * HELD[1], 0);
                    assert_eq!(left >> products, result >> columns, "{bits:?}");
                    assert_eq!(right & ((1 << columns) - 1), result & ((1 << columns) - 1));
                    assert_eq!(left & ((1 << products) - 1), u64::from(step) << 4);
                    assert_eq!(right >> columns, u64::from(step) << 4);
                    assert!(result >> columns < 1 << rows);
                }
            }
        }
    }
}
