//! What lowering makes of small kernels, and that it computes what the block interpreter says.

use crate::interp;
use crate::launch::Argument;
use crate::target::{Bounds, Options, Target};
use crate::text::parse;
use crate::verify::{self, BlockFunc, LaneFunc};

const ELEMENTS: usize = 256;

fn block(source: &str) -> BlockFunc {
    let func = parse(source, "test.bir").unwrap_or_else(|errors| panic!("{errors}"));
    verify::block(func).unwrap_or_else(|errors| panic!("{errors}"))
}

fn lowered(func: &BlockFunc, bounds: Bounds) -> LaneFunc {
    let options = Options {
        bounds,
        ..Options::default()
    };
    super::lower(func, &Target::CPU, &options).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Memory that holds 3, 10, 17 ..
fn numbers() -> Vec<u8> {
    let number = |index: usize| 7 * index as i32 + 3;
    (0..ELEMENTS)
        .flat_map(|index| number(index).to_ne_bytes())
        .collect()
}

/// A kernel on `x` and `y` of 256 `i32` each, with the positions `%i` of 32 elements.
fn kernel(body: &str) -> String {
    format!(
        "func @f block (%x: ptr<i32> write, %y: ptr<i32> write) {{
           %i = arange start=0, end=32 : tile<32xi64>
           %zero = constant value=i64(0) : i64
           %three = constant value=i64(3) : i64
           %one = constant value=i64(1) : tile<32xi64>
           {body}
         }}"
    )
}

/// Runs a kernel as the specification says and as it is lowered, and compares all memory.
fn agrees(body: &str) {
    let func = block(&kernel(body));
    let mut want = [numbers(), vec![0; 4 * ELEMENTS]];
    let [x, y] = &mut want;
    let mut arguments = [Argument::ReadWrite(x), Argument::ReadWrite(y)];
    interp::block::run(&func, [1, 1, 1], &mut arguments)
        .unwrap_or_else(|fault| panic!("{fault:?}"));
    for bounds in [Bounds::Checked, Bounds::Unchecked] {
        let lane = lowered(&func, bounds);
        let mut got = [numbers(), vec![0; 4 * ELEMENTS]];
        let [x, y] = &mut got;
        let mut arguments = [Argument::ReadWrite(x), Argument::ReadWrite(y)];
        interp::lane::run(&lane, [1, 1, 1], &mut arguments)
            .unwrap_or_else(|fault| panic!("{fault:?}\n{}", &*lane as &crate::ir::Func));
        assert_eq!(want, got, "{}", &*lane as &crate::ir::Func);
    }
}

#[test]
fn offsets_that_run_become_vectors() {
    let func = block(
        "func @add block (%x: ptr<f32>, %z: ptr<f32> write, %n: i64) {
           %pid = program_id axis=0 : i64
           %size = constant value=i64(1024) : i64
           %start = mul %pid, %size : i64
           %s = splat %start : tile<1024xi64>
           %i = arange start=0, end=1024 : tile<1024xi64>
           %o = add %s, %i : tile<1024xi64>
           %a = load %x, %o : tile<1024xf32>
           %c = add %a, %a : tile<1024xf32>
           store %z, %o, %c
         }",
    );
    let text = lowered(&func, Bounds::Unchecked).to_string();
    assert!(text.contains("lane_load %0"), "{text}");
    assert!(text.contains(": tile<8xf32>"), "{text}");
    assert!(!text.contains("extract"), "{text}");
    assert!(!text.contains("alloc"), "{text}");
}

#[test]
fn a_store_does_not_change_what_was_loaded_before() {
    // Every element moves up by one: reading after the first write would spread element 0.
    agrees(
        "%v = load %x, %i : tile<32xi32>
         %up = add %i, %one : tile<32xi64>
         store %x, %up, %v",
    );
    agrees(
        "%v = load %x, %i : tile<32xi32>
         %w = constant value=i32(5) : tile<32xi32>
         store %x, %i, %w
         store %y, %i, %v",
    );
}

#[test]
fn an_update_in_place_needs_no_copy() {
    let body = "%v = load %x, %i : tile<32xi32>
         %w = add %v, %v : tile<32xi32>
         store %x, %i, %w";
    agrees(body);
    let text = lowered(&block(&kernel(body)), Bounds::Unchecked).to_string();
    assert!(!text.contains("alloc"), "{text}");
}

#[test]
fn of_equal_offsets_the_highest_element_stays_and_none_is_read_back() {
    agrees(
        "%half = arange start=0, end=16 : tile<16xi64>
         %a = expand_dims %half, axis=1 : tile<16x1xi64>
         %b = broadcast %a : tile<16x2xi64>
         %o = reshape %b : tile<32xi64>
         %v = load %x, %o : tile<32xi32>
         %w = add %v, %v : tile<32xi32>
         store %x, %o, %w
         %n = load %x, %i : tile<32xi32>
         %c = cast %i : tile<32xi32>
         %s = add %n, %c : tile<32xi32>
         store %y, %o, %s",
    );
}

#[test]
fn carried_tiles_change_places_and_shapes_at_once() {
    agrees(
        "%a = load %x, %i : tile<32xi32>
         %j = add %i, %one : tile<32xi64>
         %b = load %x, %j : tile<32xi32>
         %p, %q = for %zero, %three, [%a, %b], step=1, stages=1 (%k: i64, %c: tile<32xi32>, %d: tile<32xi32>) {
           %e = add %c, %d : tile<32xi32>
           yield [%d, %e]
         } : tile<32xi32>, tile<32xi32>
         %r = sub %p, %q : tile<32xi32>
         store %y, %i, %r",
    );
    agrees(
        "%a = load %x, %i : tile<32xi32>
         %m = reshape %a : tile<4x8xi32>
         %t = for %zero, %three, [%m], step=1, stages=1 (%k: i64, %c: tile<4x8xi32>) {
           %d = transpose %c, permutation=[1, 0] : tile<8x4xi32>
           %e = reshape %d : tile<4x8xi32>
           %f = add %e, %c : tile<4x8xi32>
           yield [%f]
         } : tile<4x8xi32>
         %r = reshape %t : tile<32xi32>
         store %y, %i, %r",
    );
}

#[test]
fn an_if_replaces_carried_tiles_in_place() {
    let body = "%a = load %x, %i : tile<32xi32>
         %j = add %i, %one : tile<32xi64>
         %b = load %x, %j : tile<32xi32>
         %p, %q = for %zero, %three, [%a, %b], step=1, stages=1 (%k: i64, %c: tile<32xi32>, %d: tile<32xi32>) {
           %t = gt %k, %zero : bool
           %e, %f = if %t () {
             %s = add %c, %d : tile<32xi32>
             yield [%s, %c]
           } () { yield [%c, %d] } : tile<32xi32>, tile<32xi32>
           yield [%e, %f]
         } : tile<32xi32>, tile<32xi32>
         %r = sub %p, %q : tile<32xi32>
         store %y, %i, %r";
    agrees(body);
    let text = lowered(&block(&kernel(body)), Bounds::Unchecked).to_string();
    assert_eq!(text.matches("alloc").count(), 2, "{text}");
    // The loop reads a carried tile after the `if` has replaced it.
    agrees(
        "%a = load %x, %i : tile<32xi32>
         %p, %q = for %zero, %three, [%a, %a], step=1, stages=1 (%k: i64, %c: tile<32xi32>, %d: tile<32xi32>) {
           %t = gt %k, %zero : bool
           %e = if %t () {
             %s = add %c, %d : tile<32xi32>
             yield [%s]
           } () { yield [%c] } : tile<32xi32>
           %f = sub %c, %d : tile<32xi32>
           yield [%e, %f]
         } : tile<32xi32>, tile<32xi32>
         %r = sub %p, %q : tile<32xi32>
         store %y, %i, %r",
    );
}

#[test]
fn loops_read_memory_that_they_write() {
    agrees(
        "%v = load %x, %i : tile<32xi32>
         for %zero, %three, [], step=1, stages=1 (%k: i64) {
           %w = load %x, %i : tile<32xi32>
           %s = add %v, %w : tile<32xi32>
           store %x, %i, %s
           yield []
         }",
    );
}

#[test]
fn while_and_if_hand_on_tiles() {
    agrees(
        "%v = load %x, %i : tile<32xi32>
         %limit = constant value=i32(4000) : i32
         %r = while [%v] (%a: tile<32xi32>) {
           %s = reduce [%a], axis=0, order=any (%l: i32, %h: i32) { %m = maximum %l, %h : i32 yield [%m] } : i32
           %c = lt %s, %limit : bool
           yield [%c, %a]
         } (%b: tile<32xi32>) {
           %d = add %b, %b : tile<32xi32>
           yield [%d]
         } : tile<32xi32>
         %t = lt %zero, %three : bool
         %o = if %t () { yield [%r] } () { yield [%v] } : tile<32xi32>
         store %y, %i, %o",
    );
}

#[test]
fn reductions_take_the_tree_along_every_axis() {
    // Subtraction shows the order; extents below, at and above a vector and a pass.
    for (rows, columns) in [(1, 32), (2, 16), (16, 2), (32, 1), (4, 8)] {
        for (axis, left) in [(0, columns), (1, rows)] {
            agrees(&format!(
                "%v = load %x, %i : tile<32xi32>
                 %m = reshape %v : tile<{rows}x{columns}xi32>
                 %q = mul %m, %m : tile<{rows}x{columns}xi32>
                 %s = reduce [%q], axis={axis}, order=tree (%l: i32, %h: i32) {{ %d = sub %l, %h : i32 yield [%d] }} : tile<{left}xi32>
                 %o = arange start=0, end={left} : tile<{left}xi64>
                 store %y, %o, %s"
            ));
        }
    }
}

#[test]
fn accesses_out_of_bounds_are_reported_by_their_own_element() {
    // The tile runs down the columns of x: neighbours in memory are 8 elements apart in the tile.
    let func = block(
        "func @f block (%x: ptr<i32>, %y: ptr<i32> write) {
           %i = arange start=0, end=16 : tile<16xi64>
           %r = expand_dims %i, axis=1 : tile<16x1xi64>
           %rb = broadcast %r : tile<16x8xi64>
           %j = arange start=0, end=8 : tile<8xi64>
           %c = expand_dims %j, axis=0 : tile<1x8xi64>
           %k = constant value=i64(16) : tile<1x8xi64>
           %ck = mul %c, %k : tile<1x8xi64>
           %cb = broadcast %ck : tile<16x8xi64>
           %o = add %rb, %cb : tile<16x8xi64>
           %v = load %x, %o : tile<16x8xi32>
           %t = transpose %v, permutation=[1, 0] : tile<8x16xi32>
           %f = reshape %t : tile<128xi32>
           %p = arange start=0, end=128 : tile<128xi64>
           store %y, %p, %f
         }",
    );
    let x = numbers();
    let mut y = vec![0; 4 * 128];
    // Elements 125.. of x are missing: the least of the tile's elements there is row 13, column 7.
    let mut arguments = [Argument::Read(&x[..4 * 125]), Argument::ReadWrite(&mut y)];
    let report = interp::lane::run(&lowered(&func, Bounds::Checked), [1, 1, 1], &mut arguments);
    let error = report
        .unwrap_or_else(|fault| panic!("{fault:?}"))
        .out_of_bounds;
    let error = error.expect("an access is out of bounds");
    assert_eq!(
        (error.site, error.element, error.offset),
        (0, 13 * 8 + 7, 125)
    );
}

/// A kernel that sorts the `i64` numbers that `key` makes of the `i32` numbers `%v`.
fn sorted_keys(key: &str) -> String {
    format!(
        "%v = load %x, %i : tile<32xi32>
         %wide = cast %v : tile<32xi64>
         %amount = constant value=i64(20) : tile<32xi64>
         %keys = {key} : tile<32xi64>
         %sorted = sort [%keys], keys=1, axis=0, direction=ascending, count=32 : tile<32xi64>
         %back = shr %sorted, %amount : tile<32xi64>
         %out = cast %back : tile<32xi32>
         store %y, %i, %out"
    )
}

#[test]
fn integers_within_62_bits_are_sorted_as_floats() {
    for (key, as_floats) in [("shl %wide, %amount", true), ("mul %wide, %wide", false)] {
        let body = sorted_keys(key);
        agrees(&body);
        let text = lowered(&block(&kernel(&body)), Bounds::Unchecked).to_string();
        assert_eq!(text.contains("f64"), as_floats, "{key}: {text}");
    }
}
