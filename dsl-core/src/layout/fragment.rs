//! The layouts in which a warp hands a step to the tensor cores: those of PTX's `mma.m16n8k16` on types of
//! 16 bits, `mma.m16n8k8` on types of 32, `mma.m16n8k32` on types of 8 and `mma.m16n8k4`, `k8` and `k16` on `f64` (PTX ISA, "Matrix
//! Fragments for mma"). All are one: a word of 32 bits holds one, two or four elements with products side by side, or two
//! words an element of `f64`.
//!
//! A fragment of the operand `a` is `[16, k]`, of `b` `[k, 8]`, of the accumulator `[16, 8]`, for k products of 32
//! bytes, or as many as 16 of `f64`. A tile has as many as fill it: further columns and rows are dealt to warps, then to registers. Where it is
//! smaller than a fragment, lanes and registers hold the same elements.

use super::LinearLayout;
use crate::ir::DType;
use crate::ir::index_map::dim_offset;
use crate::ir::operand::{fragment_step, held};

/// A bit of the number in the batch, the row, the column or the product of an element of a dot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bit {
    Batch(u32),
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
    /// Registers of a fragment of `a`, `b` and the accumulator.
    pub held: [u32; 3],
}

/// The layouts of `[m, k] x [k, n]` for these log2 of m, n and k, which fills a fragment or more; those of a batch
/// with an axis before of this log2.
#[must_use]
pub fn fragments(
    operand: DType,
    batch: Option<u32>,
    [rows, columns, products]: [u32; 3],
    warp_bits: u32,
) -> Fragments {
    use Bit::{Batch, Column, Product, Row};
    // Products in a word, in the words of four lanes, and in a fragment.
    let word = 2_u32.saturating_sub(operand.bytes().ilog2());
    let step = fragment_step(operand, 1 << products);
    let step = step.expect("broken invariant: products fill a step of a warp");
    let (quad, fragment) = (word + 2, step.ilog2());
    let further_rows = (0..batch.unwrap_or(0)).map(Batch).chain((4..rows).map(Row));
    let further_columns = (3..columns).map(Column);
    let mut dealt = alternating(further_rows, further_columns);
    let further = dealt.split_off(dealt.len().min(warp_bits as usize));
    let mut warp: Vec<Option<Bit>> = dealt.into_iter().map(Some).collect();
    warp.resize(warp_bits as usize, None);
    let steps = (fragment..products).map(Product);
    let of_rows = further.iter().copied().filter(is_of_rows);
    let of_columns = further.iter().copied().filter(is_of_columns);
    let packed = (0..word).map(Product);
    let registers = [
        packed
            .clone()
            .chain([Row(3)])
            .chain((quad..fragment).map(Product))
            .chain(steps.clone())
            .chain(of_rows)
            .collect(),
        packed
            .chain((quad..fragment).map(Product))
            .chain(steps)
            .chain(of_columns)
            .collect(),
        [Column(0), Row(3)]
            .into_iter()
            .chain(further.iter().copied())
            .collect::<Vec<_>>(),
    ];
    let [low, high] = [Product(word), Product(word + 1)];
    let lanes = [
        [low, high, Row(0), Row(1), Row(2)],
        [low, high, Column(0), Column(1), Column(2)],
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
        let dims: Vec<Bit> = batch.map(Batch).into_iter().chain(dims[at]).collect();
        layout(&dims, [&register, &lane, &warp])
    });
    let step_bits = products - fragment;
    Fragments {
        layouts,
        operands: operands(&further, step_bits),
        step_bits,
        held: held(step).map(|count| count as u32),
    }
}

/// Whether fragments of `a` differ in the bit.
fn is_of_rows(bit: &Bit) -> bool {
    matches!(bit, Bit::Batch(_) | Bit::Row(_))
}

/// Whether fragments of `b` differ in the bit.
fn is_of_columns(bit: &Bit) -> bool {
    matches!(bit, Bit::Batch(_) | Bit::Column(_))
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
    let pair = |fragment| [place(fragment, is_of_rows), place(fragment, is_of_columns)];
    (0..1 << held.len()).map(pair).collect()
}

/// A layout of matrices; `dims` are the axes, with the log2 of their extents.
fn layout(dims: &[Bit], holders: [&[Option<Bit>]; 3]) -> LinearLayout {
    let extent = |bit: Bit| match bit {
        Bit::Batch(bits) | Bit::Row(bits) | Bit::Column(bits) | Bit::Product(bits) => bits,
    };
    let dim_bits: Vec<u32> = dims.iter().map(|&dim| extent(dim)).collect();
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
    use crate::ir::operand::fragment_steps;
    use crate::layout::linear::Point;

    /// The coordinates by the formulas of the PTX ISA.
    #[test]
    fn one_fragment_of_16_bits_is_as_the_isa_says() {
        let fragments = fragments(DType::F16, None, [4, 3, 4], 0);
        let [a, b, accumulator] = &fragments.layouts;
        for (lane, group, within) in lanes() {
            for i in 0..8_u32 {
                let row = group + if matches!(i, 2 | 3 | 6 | 7) { 8 } else { 0 };
                let k = within * 2 + u64::from(i & 1) + if i >= 4 { 8 } else { 0 };
                assert_eq!(held_at(a, i, lane), row * 16 + k);
            }
            for i in 0..4_u32 {
                let k = within * 2 + u64::from(i & 1) + if i >= 2 { 8 } else { 0 };
                assert_eq!(held_at(b, i, lane), k * 8 + group);
                let row = group + if i >= 2 { 8 } else { 0 };
                let column = within * 2 + u64::from(i & 1);
                assert_eq!(held_at(accumulator, i, lane), row * 8 + column);
            }
        }
    }

    #[test]
    fn one_fragment_of_32_bits_is_as_the_isa_says() {
        let [a, b, _] = fragments(DType::F32, None, [4, 3, 3], 0).layouts;
        for (lane, group, within) in lanes() {
            for i in 0..4_u32 {
                let row = group + if matches!(i, 1 | 3) { 8 } else { 0 };
                let k = within + if i >= 2 { 4 } else { 0 };
                assert_eq!(held_at(&a, i, lane), row * 8 + k);
            }
            for i in 0..2_u32 {
                let k = within + u64::from(i) * 4;
                assert_eq!(held_at(&b, i, lane), k * 8 + group);
            }
        }
    }

    #[test]
    fn one_fragment_of_64_bits_is_as_the_isa_says() {
        let [a, b, _] = fragments(DType::F64, None, [4, 3, 4], 0).layouts;
        for (lane, group, within) in lanes() {
            for i in 0..8_u32 {
                let row = group + u64::from(i % 2) * 8;
                let k = within + u64::from(i / 2) * 4;
                assert_eq!(held_at(&a, i, lane), row * 16 + k);
            }
            for i in 0..4_u32 {
                let k = within + u64::from(i) * 4;
                assert_eq!(held_at(&b, i, lane), k * 8 + group);
            }
        }
    }

    #[test]
    fn one_fragment_of_8_bits_is_as_the_isa_says() {
        let [a, b, _] = fragments(DType::I8, None, [4, 3, 5], 0).layouts;
        for (lane, group, within) in lanes() {
            for i in 0..16_u32 {
                let row = group + if matches!(i, 4..8 | 12..16) { 8 } else { 0 };
                let k = within * 4 + u64::from(i & 3) + if i >= 8 { 16 } else { 0 };
                assert_eq!(held_at(&a, i, lane), row * 32 + k);
            }
            for i in 0..8_u32 {
                let k = within * 4 + u64::from(i & 3) + if i >= 4 { 16 } else { 0 };
                assert_eq!(held_at(&b, i, lane), k * 8 + group);
            }
        }
    }

    /// The lanes of a warp, their groups of four, and their places in them.
    fn lanes() -> impl Iterator<Item = (u32, u64, u64)> {
        (0..32).map(|lane| (lane, u64::from(lane / 4), u64::from(lane % 4)))
    }

    fn held_at(layout: &LinearLayout, register: u32, lane: u32) -> u64 {
        layout.apply(Point {
            register,
            lane,
            warp: 0,
        })
    }

    #[test]
    fn operands_meet_at_the_elements_of_the_accumulator() {
        for operand in [DType::F32, DType::BF16, DType::U8, DType::F64] {
            let least = fragment_steps(operand)[0].ilog2();
            for rows in 0..8 {
                for columns in 0..8 {
                    for products in least..least + 3 {
                        for warp_bits in 0..4 {
                            for batch in [None, Some(0), Some(3)] {
                                meets(operand, batch, [rows, columns, products], warp_bits);
                            }
                        }
                    }
                }
            }
        }
    }

    fn meets(operand: DType, batch: Option<u32>, bits: [u32; 3], warp_bits: u32) {
        let found = fragments(operand, batch, bits, warp_bits);
        let held = found.held;
        let [a, b, accumulator] = &found.layouts;
        let [rows, columns, products] = bits;
        let first = products - found.step_bits;
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
                    let result = at(accumulator, fragment * held[2], 0);
                    let left = at(a, (operands[0] + step) * held[0], 0);
                    let right = at(b, (operands[1] + step) * held[1], 0);
                    assert_eq!(left >> products, result >> columns, "{bits:?}");
                    assert_eq!(right & ((1 << columns) - 1), result & ((1 << columns) - 1));
                    assert_eq!(left & ((1 << products) - 1), u64::from(step) << first);
                    let of_batch = result >> (columns + rows) << products;
                    assert_eq!(right >> columns, of_batch | u64::from(step) << first);
                    assert!(result >> columns < 1 << (rows + batch.unwrap_or(0)));
                }
            }
        }
    }
}
