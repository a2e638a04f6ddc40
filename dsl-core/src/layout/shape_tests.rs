//! Layouts carried across shape ops and reductions, and the algebra of layouts.

use crate::ir::IndexMap;
use crate::layout::{Conversion, ConversionLimits, Holder, LinearLayout, Point};
use crate::target::Target;

/// A layout with rows over warps and lanes, and vectors of four along the last dimension.
fn rows(dim_bits: &[u32]) -> LinearLayout {
    let rank = dim_bits.len();
    let along = |dim: usize, bits| (0..rank).map(|d| if d == dim { bits } else { 0 }).collect();
    let order: Vec<usize> = (0..rank).rev().collect();
    let (per_thread, lanes, warps): (Vec<u32>, Vec<u32>, Vec<u32>) =
        (along(rank - 1, 2), along(rank - 1, 5), along(0, 2));
    LinearLayout::blocked(dim_bits, &per_thread, &lanes, &warps, &order).expect("a layout")
}

/// Checks that the map says of every place what `push` says of its layout.
fn check_push(map: &IndexMap, layout: &LinearLayout) -> LinearLayout {
    let (pushed, merged) = map.push(layout).expect("a layout");
    for register in 0..layout.registers() {
        for (lane, warp) in [(0, 0), (1, 0), (6, 1), (31, 3), (9, 2)] {
            let from = layout.apply(Point {
                register,
                lane,
                warp,
            });
            let point = Point {
                register: merged[register as usize],
                lane,
                warp,
            };
            assert_eq!(pushed.apply(point), map.apply(from));
        }
    }
    pushed
}

/// Checks that `pull` undoes `push` up to copies.
fn check_pull(map: &IndexMap, layout: &LinearLayout) -> LinearLayout {
    let pulled = map.pull(layout).expect("a layout");
    let back = check_push(map, &pulled);
    assert_eq!(back.lane_columns(), layout.lane_columns());
    assert_eq!(back.warp_columns(), layout.warp_columns());
    assert_eq!(back, layout.without_register_copies().0);
    pulled
}

#[test]
fn shape_ops_carry_layouts_both_ways() {
    let columns = vec![0, 1 << 3, 1 << 5, 1 << 8, 1 << 4, 1 << 6, 1 << 2, 1 << 7, 1];
    let maps = [
        IndexMap::reshape(vec![5, 4], vec![3, 6]),
        IndexMap::transpose(vec![2, 4, 3], &[2, 0, 1]),
        IndexMap::broadcast(vec![4, 0, 1], vec![4, 3, 1]),
        IndexMap::reshape(vec![4, 0, 5], vec![4, 5]),
        IndexMap::reduce(vec![4, 5], 0),
        IndexMap::reduce(vec![4, 5], 1),
        IndexMap::reduce(vec![9], 0),
        // Slices, and bits that are turned round.
        IndexMap::new(vec![6], vec![9], (3..9).map(|bit| 1 << bit).collect(), 5),
        IndexMap::new(
            vec![9],
            vec![4, 5],
            (0..9).map(|bit| 1 << bit).collect(),
            0x1f,
        ),
        IndexMap::new(vec![9], vec![1, 8], columns, 0xc2),
    ];
    for map in maps {
        check_push(&map, &rows(map.from_bits()));
        let layout = replicated_or_rows(map.to_bits());
        let pulled = map.pull(&layout).expect("a layout");
        check_push(&map, &pulled);
        if map.offset() == 0 {
            check_pull(&map, &layout);
        }
    }
}

fn replicated_or_rows(dim_bits: &[u32]) -> LinearLayout {
    if dim_bits.is_empty() {
        LinearLayout::replicated(Vec::new(), 5, 2).expect("a layout")
    } else {
        rows(dim_bits)
    }
}

#[test]
fn a_reduced_axis_leaves_free_bits() {
    let operand = rows(&[3, 8]);
    let map = IndexMap::reduce(vec![3, 8], 1);
    let result = check_push(&map, &operand);
    assert_eq!(result.lane_columns(), &[0; 5]);
    assert_eq!(result.warp_columns(), &[1, 2]);
    assert_eq!(
        result.free_bits(),
        Point {
            register: 0,
            lane: 31,
            warp: 0
        }
    );
    assert_eq!(result.registers(), 2);
    // Pulled back, the free lanes hold the axis again.
    let pulled = check_pull(&map, &result);
    assert!((0..5).all(|bit| pulled.holder(bit) == Holder::Lane(bit)));
    assert!((5..8).all(|bit| matches!(pulled.holder(bit), Holder::Register(_))));
}

/// Reduce, reshape twice and broadcast back: each round of a conversion moves little, so its vector
/// may be no wider than that.
#[test]
fn reduce_reshape_reshape_broadcast_of_1_8_4() {
    let operand = rows(&[0, 3, 2]);
    let reduced = check_push(&IndexMap::reduce(vec![0, 3, 2], 2), &operand);
    let flat = check_pull(&IndexMap::reshape(vec![3], vec![0, 3]), &reduced);
    let column = check_pull(&IndexMap::reshape(vec![0, 3, 0], vec![3]), &flat);
    let broadcast = IndexMap::broadcast(vec![0, 3, 0], vec![0, 3, 2]);
    let asked = check_push(&broadcast, &rows(&[0, 3, 2]));
    check_pull(&broadcast, &column);
    for scratch in [4, 8, 16, 32, 1024] {
        let limits = ConversionLimits {
            scratch_bytes: scratch,
            ..ConversionLimits::new(4, &Target::SM_80)
        };
        let plan = Conversion::plan_shared(&column, &asked, &limits);
        let plan = plan.expect("a plan");
        assert!(plan.vector_bits <= plan.scratch_bits);
        assert!(4 << plan.scratch_bits <= scratch);
        assert_eq!(plan.scratch_bits + plan.round_bits, 3);
    }
}

#[test]
fn a_product_divides_again() {
    let inner = LinearLayout::blocked(&[1, 2], &[0, 1], &[1, 0], &[0, 1], &[1, 0]).expect("inner");
    let outer = LinearLayout::blocked(&[2, 3], &[1, 1], &[1, 1], &[0, 0], &[0, 1]).expect("outer");
    let whole = inner.product(&outer).expect("a product");
    assert_eq!(whole.dim_bits(), &[3, 5]);
    assert_eq!(whole.left_divide(&inner), Ok(outer.clone()));
    assert!(whole.left_divide(&outer).is_err());
    assert!(inner.left_divide(&whole).is_err());
}

#[test]
fn places_and_vectors_of_a_blocked_layout() {
    let layout = rows(&[3, 8]);
    assert_eq!(layout.contiguous_register_bits(1), Ok(2));
    assert_eq!(layout.contiguous_register_bits(0), Ok(0));
    assert!(layout.contiguous_register_bits(2).is_err());
    assert_eq!(layout.holder(0), Holder::Register(0));
    assert_eq!(layout.holder(2), Holder::Lane(0));
    assert_eq!(layout.holder(8), Holder::Warp(0));
    for flat in 0..1 << 11 {
        assert_eq!(layout.apply(layout.place_of(flat)), flat);
    }
    let right_inverse = layout.matrix().right_inverse().expect("surjective");
    assert_eq!(
        layout
            .matrix()
            .compose(&right_inverse)
            .map(|product| product.rank()),
        Some(11)
    );
    assert!(!layout.is_replicated());
}

#[test]
fn bad_layouts_and_maps_are_errors() {
    assert!(LinearLayout::new(vec![2], vec![1], vec![], vec![]).is_err());
    assert!(LinearLayout::new(vec![1], vec![1, 2], vec![], vec![]).is_err());
    assert!(LinearLayout::new(vec![40, 1], vec![], vec![], vec![]).is_err());
    assert!(LinearLayout::blocked(&[1, 1], &[0], &[0, 0], &[0, 0], &[0, 1]).is_err());
    assert!(LinearLayout::blocked(&[1, 1], &[0, 0], &[0, 0], &[0, 0], &[0, 0]).is_err());
    let map = IndexMap::reduce(vec![1, 2], 0);
    assert!(map.push(&rows(&[2, 2])).is_err());
    let message = map
        .pull(&rows(&[1]))
        .expect_err("another shape")
        .to_string();
    assert_eq!(message, "found a tile of shape [2], expected [4]");
}
