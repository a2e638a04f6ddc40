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

/// A box is loaded once, and what is masked beside it in two versions: no copy of a box stands in a branch of a loop.
#[test]
fn boxes_are_there_once() {
    let source = "func @f block (%x: ptr<f32>, %s: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %zero = constant value=i64(0) : i64
         %one = constant value=i64(1) : i64
         %a = arange start=0, end=8 : tile<8xi64>
         %l = splat %n : tile<8xi64>
         %m = lt %a, %l : tile<8xbool>
         %b = load_box %x, [%zero, %zero], [%n, %n], [%n, %one] : tile<8x8xf32>
         %v = load %s, %a, mask=%m : tile<8xf32>
         %c = reduce [%b], axis=1, order=tree (%p: f32, %q: f32) {
           %r = add %p, %q : f32
           yield [%r]
         } : tile<8xf32>
         %w = mul %c, %v : tile<8xf32>
         store %y, %a, %w, mask=%m
       }";
    let mut func = parse(source, "f.bir").expect("parses");
    split_uniform_masks(&mut func, None);
    tidy(&mut func);
    let text = verify::block(func).expect("is valid").to_string();
    assert_eq!(text.matches("load_box ").count(), 1, "{text}");
    assert_eq!(text.matches("load ").count(), 2, "{text}");
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

/// What brings elements together: `%t`, of what stands before it.
const SUM: &str = "%s = reduce [%joined], axis=0, order=tree (%p: f32, %q: f32) {
       %r = add %p, %q : f32
       yield [%r]
     } : f32
     %t = splat %s : tile<1024xf32>";
const PREFIXES: &str =
    "%t = scan [%joined], axis=0, order=tree, direction=forward (%p: f32, %q: f32) {
       %r = add %p, %q : f32
       yield [%r]
     } : tile<1024xf32>";

/// `steps` on each element between a load and what brings them together, and a store, split for 32 lanes.
fn joined(steps: usize, together: &str) -> String {
    let last = format!("%v{steps}");
    let together = together.replace("%joined", &last);
    let chain: String = (0..steps)
        .map(|at| format!("%v{} = mul %v{at}, %v{at} : tile<1024xf32>\n", at + 1))
        .collect();
    let source = format!(
        "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {{
         %a = arange start=0, end=1024 : tile<1024xi64>
         %l = splat %n : tile<1024xi64>
         %m = lt %a, %l : tile<1024xbool>
         %v0 = load %x, %a, mask=%m : tile<1024xf32>
         {chain}
         {together}
         %d = div %v{steps}, %t : tile<1024xf32>
         store %y, %a, %d, mask=%m
       }}"
    );
    split(&source, Some(32))
}

fn split(source: &str, lanes: Option<usize>) -> String {
    let mut func = parse(source, "f.bir").expect("parses");
    split_uniform_masks(&mut func, lanes);
    tidy(&mut func);
    verify::block(func).expect("is valid").to_string()
}

/// Of much code with a scan the accesses alone are there twice. Sums do not make memory wait.
#[test]
fn what_is_long_is_there_once() {
    for (steps, together, versions) in [(8, PREFIXES, 2), (40, PREFIXES, 1), (40, SUM, 2)] {
        let text = joined(steps, together);
        let joins = ["reduce [", "scan ["].map(|join| text.matches(join).count());
        assert_eq!(joins.iter().sum::<usize>(), versions, "{text}");
        assert_eq!(text.matches("mul ").count(), versions * steps, "{text}");
        assert_eq!(text.matches("div ").count(), versions, "{text}");
        for twice in ["load ", "store "] {
            assert_eq!(text.matches(twice).count(), 2, "{twice}: {text}");
        }
        assert_eq!(text.matches("mask=").count(), 2, "{text}");
    }
}

/// Products by lanes are a reason where a sum stands beside them.
#[test]
fn products_by_lanes_beside_sums_are_there_once() {
    let product = "%q = reshape %joined : tile<32x32xf32>
         %w = constant value=f32(0) : tile<32x32xf32>
         %p = dot %q, %q, %w, precision=ieee : tile<32x32xf32>
         %t = reshape %p : tile<1024xf32>";
    let sum = "%b = reduce [%joined], axis=0, order=tree (%f: f32, %g: f32) {
           %h = add %f, %g : f32
           yield [%h]
         } : f32
         %e = splat %b : tile<32x32xf32>
         %q = reshape %joined : tile<32x32xf32>
         %p = dot %q, %q, %e, precision=ieee : tile<32x32xf32>
         %t = reshape %p : tile<1024xf32>";
    for (together, versions) in [(product, 2), (sum, 1)] {
        let text = joined(1, together);
        assert_eq!(text.matches("dot ").count(), versions, "{text}");
        assert_eq!(text.matches("load ").count(), 2, "{text}");
    }
}

/// A loop is there once, and what masks its accesses inside and outside of it is asked together.
#[test]
fn loops_of_much_code_are_there_once() {
    let chain: String = (0..40)
        .map(|at| format!("%v{} = mul %v{at}, %v{at} : tile<1024xf32>\n", at + 1))
        .collect();
    let source = format!(
        "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64, %k: i64) {{
         %a = arange start=0, end=1024 : tile<1024xi64>
         %l = splat %n : tile<1024xi64>
         %m = lt %a, %l : tile<1024xbool>
         %zero = constant value=i64(0) : i64
         %none = constant value=f32(0) : tile<1024xf32>
         %s = for %zero, %k, [%none], step=1024, stages=1 (%i: i64, %c: tile<1024xf32>) {{
           %o = splat %i : tile<1024xi64>
           %b = add %o, %a : tile<1024xi64>
           %e = splat %k : tile<1024xi64>
           %g = lt %b, %e : tile<1024xbool>
           %h = and %g, %m : tile<1024xbool>
           %v0 = load %x, %b, mask=%h : tile<1024xf32>
           {chain}
           %z = scan [%v40], axis=0, order=tree, direction=forward (%p: f32, %q: f32) {{
             %r = add %p, %q : f32
             yield [%r]
           }} : tile<1024xf32>
           %d = add %c, %z : tile<1024xf32>
           yield [%d]
         }} : tile<1024xf32>
         store %y, %a, %s, mask=%m
       }}"
    );
    let text = split(&source, Some(32));
    assert_eq!(text.matches("for ").count(), 1, "{text}");
    assert_eq!(text.matches("mul ").count(), 40, "{text}");
    for twice in ["load ", "store ", "mask="] {
        assert_eq!(text.matches(twice).count(), 2, "{twice}: {text}");
    }
}

/// What is loaded is added where it is loaded, so that no lane holds both tiles and the sum.
#[test]
fn what_is_loaded_meets_what_is_held_beside_its_load() {
    let source = "func @f block (%x: ptr<f16>, %w: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %a = arange start=0, end=16384 : tile<16384xi64>
         %p = reshape %a : tile<128x128xi64>
         %l = splat %n : tile<128x128xi64>
         %m = lt %p, %l : tile<128x128xbool>
         %none = constant value=f32(0) : tile<128x128xf32>
         %b = load %x, %p : tile<128x128xf16>
         %d = dot %b, %b, %none, precision=hopper : tile<128x128xf32>
         %v = load %w, %p, mask=%m : tile<128x128xf32>
         %u = neg %v : tile<128x128xf32>
         %s = add %d, %u : tile<128x128xf32>
         %e = exp2 %s : tile<128x128xf32>
         store %y, %p, %e
       }";
    let text = split(source, Some(32));
    for (part, times) in [("dot ", 1), ("neg ", 2), (" add ", 2), ("exp2 ", 1)] {
        assert_eq!(text.matches(part).count(), times, "{part}: {text}");
    }
}

/// A step that meets what is loaded stays behind one that it follows from.
#[test]
fn steps_stay_behind_those_that_they_follow_from() {
    let source = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
         %a = arange start=0, end=1024 : tile<1024xi64>
         %l = splat %n : tile<1024xi64>
         %m = lt %a, %l : tile<1024xbool>
         %v = load %x, %a, mask=%m : tile<1024xf32>
         %s = sort [%v], keys=1, axis=0, direction=ascending, count=1024 : tile<1024xf32>
         %w = load %x, %a, mask=%m : tile<1024xf32>
         %b = neg %s : tile<1024xf32>
         %c = add %w, %b : tile<1024xf32>
         %d = mul %c, %s : tile<1024xf32>
         %e = mul %d, %d : tile<1024xf32>
         %g = mul %e, %e : tile<1024xf32>
         store %y, %a, %g, mask=%m
       }";
    let text = split(source, Some(32));
    for (part, times) in [("sort [", 1), ("neg ", 1), ("load ", 4), ("store ", 2)] {
        assert_eq!(text.matches(part).count(), times, "{part}: {text}");
    }
}

/// A scalar that what is loaded follows from stays outside, as the masks of a loop behind it do.
#[test]
fn scalars_stay_outside_of_versions() {
    let source =
        "func @f block (%x: ptr<f32>, %q: ptr<i64>, %y: ptr<f32> write, %n: i64, %cap: i64) {
         %zero = constant value=i64(0) : i64
         %a = arange start=0, end=1024 : tile<1024xi64>
         %l = splat %n : tile<1024xi64>
         %m = lt %a, %l : tile<1024xbool>
         %len = load %q, %zero : i64
         %v = load %x, %a, mask=%m : tile<1024xf32>
         %half = minimum %len, %cap : i64
         %h = splat %half : tile<1024xi64>
         %at = add %a, %h : tile<1024xi64>
         %w = load %x, %at, mask=%m : tile<1024xf32>
         %s = sort [%v], keys=1, axis=0, direction=ascending, count=1024 : tile<1024xf32>
         for %zero, %half, [], step=1024, stages=1 (%i: i64) {
           %j = splat %i : tile<1024xi64>
           %b = add %a, %j : tile<1024xi64>
           %g = lt %b, %h : tile<1024xbool>
           %u = load %x, %b, mask=%g : tile<1024xf32>
           store %y, %b, %u, mask=%g
           yield []
         }
         %t = add %s, %w : tile<1024xf32>
         store %y, %a, %t, mask=%m
       }";
    let text = split(source, Some(32));
    assert_eq!(text.matches("sort [").count(), 1, "{text}");
    assert_eq!(text.matches("minimum ").count(), 1, "{text}");
}

/// A loop in which no mask vanishes is there once, and so is what comes before it.
#[test]
fn loops_without_masks_stay_before_the_branch() {
    for (mask, loops) in [("", 1), (", mask=%q", 1), (", mask=%m", 2)] {
        let source = format!(
            "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {{
             %a = arange start=0, end=64 : tile<64xi64>
             %l = splat %n : tile<64xi64>
             %m = lt %a, %l : tile<64xbool>
             %none = constant value=f32(0) : tile<64xf32>
             %zero = constant value=i64(0) : i64
             %s = for %zero, %n, [%none], step=1, stages=1 (%i: i64, %c: tile<64xf32>) {{
               %f = load %x, %i : f32
               %g = cast %f : i64
               %h = splat %g : tile<64xi64>
               %r = rem %a, %h : tile<64xi64>
               %k = lt %r, %l : tile<64xbool>
               %q = and %k, %m : tile<64xbool>
               %v = load %x, %a{mask} : tile<64xf32>
               %d = add %c, %v : tile<64xf32>
               yield [%d]
             }} : tile<64xf32>
             %e = exp2 %s : tile<64xf32>
             store %y, %a, %e, mask=%m
           }}"
        );
        let text = split(&source, Some(128));
        assert_eq!(text.matches("for ").count(), loops, "{mask} {text}");
        assert_eq!(text.matches("exp2 ").count(), loops, "{mask} {text}");
        assert_eq!(text.matches("store ").count(), 2, "{mask} {text}");
    }
}
