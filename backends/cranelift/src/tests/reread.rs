//! Lanes of vectors that were loaded.

use exactile_core::launch::Argument;

use super::{lane_function, run};

/// The four `i64` numbers of `y` that a body stores, of the numbers 10, 11, 12 and 13 in memory of its own at `s`.
fn results(body: &str) -> Vec<i64> {
    let func = lane_function(&format!(
        "func @f lane warps=0 (%x: ptr<i64>, %y: ptr<i64> write) {{
           %zero = constant value=i64(0) : i64
           %one = constant value=i64(1) : i64
           %two = constant value=i64(2) : i64
           %s = alloc offset=0, count=4 : ptr<i64, scratch>
           %own = lane_load %x, %zero, align=8 : tile<4xi64>
           lane_store %s, %zero, %own, align=8
           {body}
         }}"
    ));
    let code = crate::compile(&func).expect("compiles");
    let x: Vec<u8> = (10..14_i64).flat_map(i64::to_ne_bytes).collect();
    let mut y = vec![0; 32];
    let mut arguments = [Argument::Read(&x), Argument::ReadWrite(&mut y)];
    run(&code, &mut arguments).expect("runs");
    let words = y.chunks_exact(8).map(|word| word.try_into());
    words
        .map(|word| i64::from_ne_bytes(word.expect("has eight bytes")))
        .collect()
}

#[test]
fn lanes_are_what_was_loaded_whatever_is_written_later() {
    let later = results(
        "%v = lane_load %s, %zero, align=8 : tile<4xi64>
         %before = extract %v, index=1 : i64
         lane_store %s, %one, %two, align=8
         %after = extract %v, index=1 : i64
         %first = extract %v, index=0 : i64
         lane_store %y, %zero, %before, align=8
         lane_store %y, %one, %after, align=8
         lane_store %y, %two, %first, align=8",
    );
    assert_eq!(later, [11, 11, 10, 0]);
}

#[test]
fn lanes_are_what_was_loaded_before_a_loop_that_writes() {
    let around = results(
        "%v = lane_load %s, %zero, align=8 : tile<4xi64>
         for %zero, %two, [], step=1, stages=1 (%i: i64) {
           %lane = extract %v, index=1 : i64
           lane_store %y, %i, %lane, align=8
           lane_store %s, %one, %two, align=8
           yield []
         }",
    );
    assert_eq!(around, [11, 11, 0, 0]);
}

/// How many loads of one number the code has for a lane of an array with this access.
fn single_loads(access: &str) -> usize {
    let text = crate::clif(&lane_function(&format!(
        "func @f lane warps=0 (%x: ptr<i64>{access}, %y: ptr<i64> write) {{
           %zero = constant value=i64(0) : i64
           %v = lane_load %x, %zero, align=8 : tile<4xi64>
           %lane = extract %v, index=3 : i64
           lane_store %y, %zero, %lane, align=8
         }}"
    )));
    let text = text.expect("prints");
    let after = text.split_once("load.i64x2").expect("loads a vector").1;
    after.matches("= load.i64 ").count()
}

#[test]
fn lanes_are_loaded_once_more_where_nobody_writes() {
    assert_eq!(single_loads(""), 1);
    assert_eq!(single_loads(" write"), 0);
}
