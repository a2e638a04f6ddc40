//! Which masks are split and stated, and what becomes of them.

use crate::passes::tidy;
use crate::passes::uniform_mask::{split_uniform_masks, state_uniform_masks};
use crate::text::parse;
use crate::verify;

#[test]
fn a_whole_tile_is_accessed_without_a_mask() {
    let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %p = program_id axis=0 : i64
         %b = constant value=i64(8) : i64
         %s = mul %p, %b : i64
         %t = splat %s : tile<8xi64>
         %a = arange start=0, end=8 : tile<8xi64>
         %o = add %t, %a : tile<8xi64>
         %l = splat %n : tile<8xi64>
         %m = lt %o, %l : tile<8xbool>
         %v = load %x, %o, mask=%m : tile<8xf32>
         store %y, %o, %v, mask=%m
       }";
    let mut func = parse(source, "f.bir").expect("parses");
    split_uniform_masks(&mut func, None);
    tidy(&mut func);
    let func = verify::block(func).expect("is valid");
    let text = func.to_string();
    let condition = "  %12 = add %5, %11 : i64
  %13 = lt %12, %2 : bool
  %14 = le %5, %12 : bool
  %15 = and %13, %14 : bool
  if %15 () {
    %16 = load %0, %8 : tile<8xf32>";
    assert!(text.contains(condition), "{text}");
    assert_eq!(text.matches("mask=").count(), 2, "{text}");
    assert_eq!(text.matches("load ").count(), 2, "{text}");
}

/// What is written twice has a bound, whatever runs it.
#[test]
fn long_code_is_not_split() {
    let steps: String = (0..40)
        .map(|at| format!("%v{} = add %v{at}, %v{at} : tile<16384xf32>\n", at + 1))
        .collect();
    let source = format!(
        "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {{
         %a = arange start=0, end=16384 : tile<16384xi64>
         %l = splat %n : tile<16384xi64>
         %m = lt %a, %l : tile<16384xbool>
         %v0 = load %x, %a, mask=%m : tile<16384xf32>
         {steps}
         store %y, %a, %v40, mask=%m
       }}"
    );
    for (lanes, loads) in [(None, 2), (Some(128), 2), (Some(64), 1)] {
        let mut func = parse(&source, "f.bir").expect("parses");
        split_uniform_masks(&mut func, lanes);
        let text = verify::block(func).expect("is valid").to_string();
        assert_eq!(text.matches("load ").count(), loads, "{lanes:?}");
    }
}

/// Both comparisons are proved, and what joins them is computed before the access.
#[test]
fn masks_of_two_comparisons_go_too() {
    let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %p = program_id axis=0 : i64
         %t = splat %p : tile<8xi64>
         %a = arange start=0, end=8 : tile<8xi64>
         %o = add %t, %a : tile<8xi64>
         %l = splat %n : tile<8xi64>
         %z = constant value=i64(0) : tile<8xi64>
         %below = lt %o, %l : tile<8xbool>
         %above = ge %o, %z : tile<8xbool>
         %m = and %below, %above : tile<8xbool>
         %v = load %x, %o, mask=%m : tile<8xf32>
         store %y, %o, %v, mask=%m
       }";
    let mut func = parse(source, "f.bir").expect("parses");
    split_uniform_masks(&mut func, None);
    tidy(&mut func);
    let text = verify::block(func).expect("is valid").to_string();
    assert_eq!(text.matches("mask=").count(), 2, "{text}");
    assert_eq!(text.matches("load ").count(), 2, "{text}");
}

/// The same bits whatever is proved, and the scalars are there for the lowering.
#[test]
fn masks_state_what_shows_them() {
    let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %a = arange start=0, end=8 : tile<8xi64>
         %l = splat %n : tile<8xi64>
         %m = lt %a, %l : tile<8xbool>
         %v = load %x, %a, mask=%m : tile<8xf32>
         store %y, %a, %v, mask=%m
       }";
    let mut func = parse(source, "f.bir").expect("parses");
    state_uniform_masks(&mut func);
    tidy(&mut func);
    let text = verify::block(func).expect("is valid").to_string();
    let mask = "  %6 = lt %5, %2 : bool
  %7 = lt %3, %4 : tile<8xbool>
  %8 = splat %6 : tile<8xbool>
  %9 = or %8, %7 : tile<8xbool>
  %10 = load %0, %3, mask=%9 : tile<8xf32>
  store %1, %3, %10, mask=%9";
    assert!(text.contains(mask), "{text}");
}

/// What sorts is there once, and its accesses in two versions.
#[test]
fn sorts_are_there_once() {
    let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %a = arange start=0, end=8 : tile<8xi64>
         %l = splat %n : tile<8xi64>
         %m = lt %a, %l : tile<8xbool>
         %v = load %x, %a, mask=%m : tile<8xf32>
         %w = neg %v : tile<8xf32>
         %s = sort [%w], keys=1, axis=0, direction=ascending, count=8 : tile<8xf32>
         %t = mul %s, %s : tile<8xf32>
         store %y, %a, %t, mask=%m
       }";
    let mut func = parse(source, "f.bir").expect("parses");
    split_uniform_masks(&mut func, None);
    tidy(&mut func);
    let text = verify::block(func).expect("is valid").to_string();
    assert_eq!(text.matches("sort [").count(), 1, "{text}");
    assert_eq!(text.matches("load ").count(), 2, "{text}");
    assert_eq!(text.matches("store ").count(), 2, "{text}");
    assert_eq!(text.matches("mask=").count(), 2, "{text}");
}
