//! What the trace of a kernel refuses, with the notes that say what to do: each message has a kernel here or in
//! another test, which `messages.rs` holds.

use exactile::Kernel;
use exactile::prelude::*;

#[kernel]
fn chooses_a_pointer(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut p = x;
    if n > 3 {
        p = y + 1;
    }
    store(out, load(p));
}

#[kernel]
fn chooses_a_pointer_as_value(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let p = if n > 3 { x } else { y };
    store(out, load(p));
}

#[kernel]
fn moves_a_pointer_in_a_condition(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let mut p = x;
    while {
        p = y;
        load(p) > 0.0
    } {
        store(out, 1.0);
    }
}

#[kernel]
fn moves_a_pointer(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>) {
    let mut p = x;
    while load(p) > 0.0 {
        p = y;
        store(out, 1.0);
    }
}

#[kernel]
fn masks_late(x: Ptr<f32>, out: PtrMut<f32>) {
    let offsets = arange(0, 4);
    let value = load(x + offsets);
    store(out + offsets, value * 2.0);
    store(out + offsets, value.mask(offsets < 3));
}

#[kernel]
fn gives_other_host_values(out: PtrMut<f32>, n: i32) {
    let width = if n > 3 { 4usize } else { 8usize };
    store(out + arange(0, width), 1.0);
}

#[kernel]
fn gives_no_handles(out: PtrMut<f32>, n: i32) {
    let places = if n > 3 {
        vec![1, 2].into_iter()
    } else {
        vec![3].into_iter()
    };
    for place in places {
        store(out + place, 1.0);
    }
}

#[kernel]
fn masks_rows(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 16).reshape([4, 4]);
    store(out + at, load(x + at).mask(arange(0, 4) < 2));
}

#[kernel]
fn adds_an_axis(x: Ptr<f32>, out: PtrMut<f32>) {
    let row = load(x + arange(0, 4));
    let table = row.expand(0).expand(1);
    store(out + arange(0, 4), row + table);
}

#[kernel]
fn has_other_extents(x: Ptr<f32>, out: PtrMut<f32>) {
    store(
        out + arange(0, 4),
        load(x + arange(0, 8)) + arange(0, 4).to::<f32>(),
    );
}

#[kernel]
fn has_other_offsets(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out + arange(0, 4), load(x + arange(0, 8) + arange(0, 4)));
}

#[kernel]
fn steps_by_zero(out: PtrMut<f32>, n: i32) {
    for i in range(0, n).step(0) {
        if i > 3 {
            break;
        }
        store(out + i, 1.0);
    }
}

#[kernel]
fn carries_another_number(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sums = vec![load(x)];
    for i in 0..n {
        sums.push(load(x + i));
    }
    store(out, sums[0]);
}

#[kernel]
fn carries_an_iterator(out: PtrMut<f32>, n: i32) {
    let mut names = [1, 2].into_iter();
    for i in 0..n {
        names.next();
        store(out + i, 1.0);
    }
}

#[kernel]
fn counts_trips(out: PtrMut<f32>, n: i32) {
    let mut trips = 0;
    for i in 0..n {
        trips += 1;
        store(out + i, 1.0);
    }
    store(out, trips as f64);
}

#[kernel]
fn widens_a_value(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = load(x + arange(0, 4));
    for _ in 0..n {
        sum = sum.expand(0);
    }
    store(out + arange(0, 4), sum);
}

#[kernel]
fn deals_no_rows(out: PtrMut<f32>, n: i32) {
    let (row, _) = swizzle_2d(
        program_id(0),
        program_id(1),
        n.to::<i64>(),
        n.to::<i64>(),
        0,
    );
    store(out + row, 1.0);
}

#[kernel]
fn squeezes_a_row(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).squeeze(0));
}

#[kernel]
fn cats_along_no_axis(x: Ptr<f32>, out: PtrMut<f32>) {
    let row = load(x + arange(0, 4));
    store(out, row.cat(row, 2).sum(0));
}

#[kernel]
fn cats_three(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, cat([load(x + arange(0, 4)); 3], 0).sum(0));
}

#[kernel]
fn asks_for_no_axis(x: Tensor<f32, 2>, out: PtrMut<i64>) {
    store(out, x.extent(2));
}

#[kernel]
fn transposes_a_row(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).transpose().sum(0));
}

#[kernel]
fn makes_a_tile_a_scalar(x: Ptr<f32>, out: PtrMut<f32>) {
    store(out, load(x + arange(0, 4)).scalar());
}

#[kernel]
fn asks_the_device_for_a_host_condition(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut count = 0;
    while {
        store(out, load(x));
        count < 3
    } {
        count += 1;
    }
}

#[kernel]
fn reads_after_it_left(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut i = n;
    while load(x + i) > 0.0 {
        if i < 1 {
            break;
        }
        i -= 1;
    }
    store(out, i.to::<f32>());
}

#[kernel]
fn decides_by_a_tile(x: Ptr<f32>, out: PtrMut<f32>) {
    if load(x + arange(0, 4)) > 0.0 {
        store(out, 1.0);
    }
}

#[kernel]
fn joins_tiles(x: Ptr<f32>, out: PtrMut<f32>) {
    let x = load(x + arange(0, 4));
    if x > 0.0 && x < 1.0 {
        store(out, 1.0);
    }
}

#[kernel]
fn steps_by_a_tile(out: PtrMut<f32>, n: i32) {
    for i in range(0, n).step(arange(1, 5)) {
        store(out + i, 1.0);
    }
}

#[kernel]
fn multiplies_two_formats(a: Ptr<F8E4M3>, b: Ptr<F8E5M2>, out: PtrMut<f32>) {
    let at = arange(0, 1024).reshape([32, 32]);
    let sum = zeros::<f32>([32, 32]);
    let product = dot_with(Precision::Hopper, load(a + at), load(b + at), sum);
    store(out + at, product);
}

#[kernel]
fn adds_to_one_address(x: Ptr<i32>, out: PtrMut<i32>) {
    atomic_add(out, load(x + arange(0, 4)));
}

#[kernel]
fn adds_another_extent(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut sum = sum_accumulator::<f32>([]);
    sum.add(load(x + arange(0, 4)), 0);
    sum.add(load(x + arange(0, 8)), 0);
    store(out, sum.finish());
}

#[kernel]
fn panics_behind_an_error(x: Ptr<f32>, out: PtrMut<f32>) {
    let rows = load(x + arange(0, 4)).transpose().shape();
    store(out, rows[1] as f64);
}

fn gives_up() {
    std::panic::panic_any(7);
}

#[kernel]
fn panics_with_a_number(out: PtrMut<f32>) {
    gives_up();
    store(out, 1.0);
}

/// The errors of a kernel, with their notes.
fn shown<P>(kernel: &Kernel<P>) -> String {
    kernel.trace().expect_err("is refused").to_string()
}

macro_rules! check {
    ($($kernel:ident: $($message:literal),+;)*) => { $(
        let errors = shown(&$kernel());
        for message in [$($message),+] {
            assert!(errors.contains(message), "{message}\nis not in\n{errors}");
        }
        assert!(errors.contains("refusals.rs:"), "{errors}");
    )* };
}

#[test]
fn a_pointer_stays_in_one_argument() {
    check! {
        chooses_a_pointer:
            "`p` points into another argument after the branch",
            "which argument a pointer points into is known while tracing: load from both and choose by `select`, \
             or access each argument in its own branch";
        chooses_a_pointer_as_value:
            "the value of the `if` points into another argument in the second branch",
            "load from both and choose by `select`";
        moves_a_pointer:
            "`p` points into another argument after the body";
        moves_a_pointer_in_a_condition:
            "`p` points into another argument after the condition";
    }
}

#[test]
fn a_late_mask_says_where_it_stands() {
    check! {
        masks_late:
            "`mask` does not directly follow a `load`",
            "write `load(..).mask(..)` before anything uses the result";
    }
}

#[test]
fn loops_and_branches_refuse_what_they_cannot_carry() {
    check! {
        gives_other_host_values: "a run-time `if` gives different host values in its branches";
        gives_no_handles: "a run-time `if` cannot give a value of type `alloc::vec::into_iter::IntoIter<i32>`";
        steps_by_zero: "step `0` of `for` is zero";
        carries_another_number: "`sums` holds another number of values after the body";
        carries_an_iterator:
            "cannot be carried through a run-time loop",
            "bind it without `mut`, or derive `Carry` for it if it holds handles";
        counts_trips:
            "the host value `trips` changes inside a run-time loop",
            "it would change once, while tracing: use a `Scalar`, or make the bounds or condition host values";
        widens_a_value: "`sum` is `tile<1x4xf32>` after the body, expected `tile<4xf32>` as before it";
        asks_the_device_for_a_host_condition: "the host condition of a `while` computes device values";
        reads_after_it_left:
            "the condition of a `while` that `break` or `return` leaves reads memory",
            "write `loop { if !condition { break; } .. }`, which does not compute it again after a `break`";
    }
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    check! {
        adds_an_axis: "`add`: shapes", "the ranks differ: insert an axis with `.expand(axis)`";
        masks_rows: "`mask`: shape [4] does not broadcast to [4, 4]", "the ranks differ: insert an axis with `.expand(axis)`";
        has_other_extents: "axis 0 has extents `8` and `4`";
        has_other_offsets: "`pointer offset`: shapes [8] and [4] do not broadcast";
        deals_no_rows: "`swizzle_2d` takes groups of one row or more";
        squeezes_a_row: "`squeeze` needs extent 1 along axis 0, found `tile<4xf32>`";
        cats_along_no_axis: "`cat` along axis 2 of tiles of rank 1";
        cats_three: "`cat` of 3 tiles, expected a power of two";
        asks_for_no_axis: "axis 2 is out of range for a tensor of rank 2";
        transposes_a_row: "`transpose` needs two axes, found `tile<4xf32>`";
        makes_a_tile_a_scalar: "`scalar` needs a scalar or a tile of rank 0, found `tile<4xf32>`",
            "a reduction such as `.sum(axis)` gives one number of a row, and `.pick(axis, position)` one element";
        decides_by_a_tile:
            "the condition of an `if` or `while` needs a scalar or a tile of rank 0, found `tile<4xbool>`",
            "a tile chooses element by element with `select(condition, a, b)`; `.any(axis)` and `.all(axis)` give one \
             condition of a row";
        joins_tiles:
            "`&&` or `||` needs a scalar or a tile of rank 0, found `tile<4xbool>`",
            "on tiles use `&` and `|`, which work element by element";
        steps_by_a_tile: "the step of a loop needs a scalar or a tile of rank 0, found `tile<4xi64>`";
        multiplies_two_formats:
            "`dot` with precision `hopper` of `tile<32x32xf8e4m3>` and `tile<32x32xf8e5m2>`",
            "it takes operands of one type: convert both with `.to::<f16>()`, or take `Precision::Ieee`";
        adds_to_one_address:
            "`atomic_add`: a tile of shape [4] does not go to one address",
            "`ptr + offsets` is an address for each element; `x.sum(0)` and its like make one number of a tile";
        adds_another_extent:
            "`add`: the tile has extent `8` along axis 0, expected `4` as before";
    }
}

#[test]
fn a_panic_is_an_error_of_its_kernel() {
    check! {
        panics_behind_an_error:
            "the body of kernel `panics_behind_an_error` panicked while it was traced: index out of bounds",
            "an earlier error may be the cause";
        panics_with_a_number: "panicked while it was traced: a value that is no text";
    }
}
