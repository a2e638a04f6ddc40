//! The passes. The order they run in is the pipeline's.
//!
//! Each pass is a plain function on a function. After [`resolve`] none changes a bit of any result.

pub mod allocate;
pub mod apart;
pub mod boxes;
pub mod carried;
pub mod code_size;
pub mod conditions;
pub mod cse;
pub mod cut_products;
pub mod dce;
pub mod decompose;
pub mod duplicate;
pub mod expand_accumulators;
pub mod expand_elements;
pub mod expand_prints;
pub mod expand_tiles;
pub mod float_range;
pub mod fold;
pub(crate) mod groups;
pub mod indices;
pub mod late_zeros;
pub mod legalise;
pub mod licm;
pub mod linear;
pub mod long_sums;
pub(crate) mod mask_axes;
pub mod nan_bits;
pub mod narrow;
pub mod pingpong;
pub mod prefixes;
pub mod producer;
pub mod promote_dots;
pub mod proof;
pub mod quotients;
pub mod ranges;
pub mod resolve;
pub mod rewrite;
pub mod roll_edges;
pub mod roll_slices;
pub mod rounded;
pub mod simplify;
pub mod sort_keys;
pub mod specialise;
pub mod stagger;
mod straight;
pub mod tile_order;
pub mod uniform_mask;
pub mod views;
pub mod widen_dots;

use crate::ir::Func;

/// Cleans up after tracing or lowering: the same at both stages.
pub fn tidy(func: &mut Func) {
    for _ in 0..2 {
        fold::fold(func);
        simplify::simplify(func);
        carried::drop_unchanged(func);
        cse::cse(func);
        licm::licm(func);
        dce::dce(func);
    }
}

#[cfg(test)]
mod tests {
    use crate::text::parse;
    use crate::verify;

    fn check(source: &str, expected: &str) {
        let mut func = parse(source, "test.bir").expect("parses");
        verify::block(func.clone()).expect("is valid before");
        super::tidy(&mut func);
        let func = verify::block(func).expect("is valid after");
        assert_eq!(func.to_string(), expected);
    }

    #[test]
    fn unchanged_and_dead_carried_values_go() {
        check(
            "func @f block (%y: ptr<i64> write, %n: i64) {
               %zero = constant value=i64(0) : i64
               %one = constant value=i64(1) : i64
               %a, %b, %c = for %zero, %n, [%one, %zero, %zero], step=1, stages=1 (%i: i64, %x: i64, %s: i64, %d: i64) {
                 %k = mul %x, %n : i64
                 %t = add %s, %k : i64
                 %e = add %d, %i : i64
                 yield [%x, %t, %e]
               } : i64, i64, i64
               store %y, %zero, %b
             }",
            "func @f block (%0 y: ptr<i64> write, %1 n: i64) {
  %2 = constant value=i64(0) : i64
  %3 = for %2, %1, [%2], step=1, stages=1 (%4: i64, %5: i64) {
    %6 = add %5, %1 : i64
    yield [%6]
  } : i64
  store %0, %2, %3
}
",
        );
    }

    #[test]
    fn invariants_move_out_and_repeats_merge() {
        check(
            "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
               %zero = constant value=i64(0) : i64
               for %zero, %n, [], step=1, stages=1 (%i: i64) {
                 %o = arange start=0, end=4 : tile<4xi64>
                 %p = arange start=0, end=4 : tile<4xi64>
                 %v = load %x, %o : tile<4xf32>
                 store %y, %p, %v
                 yield []
               }
             }",
            "func @f block (%0 x: ptr<f32>, %1 y: ptr<f32> write, %2 n: i64) {
  %3 = constant value=i64(0) : i64
  %4 = arange start=0, end=4 : tile<4xi64>
  for %3, %2, [], step=1, stages=1 (%5: i64) {
    %6 = load %0, %4 : tile<4xf32>
    store %1, %4, %6
    yield []
  }
}
",
        );
    }
}
