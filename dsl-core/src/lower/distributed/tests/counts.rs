//! Counters of loops: in place as far as they fit.

use super::*;

/// Two histograms of a loop, with this many bins.
fn two(bins: usize) -> String {
    let zeros = format!("constant value=i32(0) : tile<{bins}xi32>");
    format!(
        "func @two block (%x: ptr<i32>, %y: ptr<i32>, %o: ptr<i32> write, %q: ptr<i32> write, %n: i64) {{
          %z = constant value=i64(0) : i64
          %a = {zeros}
          %b = {zeros}
          %i = arange start=0, end=64 : tile<64xi64>
          %c, %d = for %z, %n, [%a, %b], step=64, stages=1 (%k: i64, %e: tile<{bins}xi32>, %f: tile<{bins}xi32>) {{
            %s = splat %k : tile<64xi64>
            %at = add %s, %i : tile<64xi64>
            %v = load %x, %at : tile<64xi32>
            %w = load %y, %at : tile<64xi32>
            %g = histogram %v, bins={bins} : tile<{bins}xi32>
            %h = histogram %w, bins={bins} : tile<{bins}xi32>
            %r = add %e, %g : tile<{bins}xi32>
            %t = add %f, %h : tile<{bins}xi32>
            yield [%r, %t]
          }} : tile<{bins}xi32>, tile<{bins}xi32>
          %j = arange start=0, end={bins} : tile<{bins}xi64>
          store %o, %j, %c
          store %q, %j, %d
        }}"
    )
}

#[test]
fn counters_that_do_not_fit_together_leave_their_place() {
    for bins in [64, 16384, 32768] {
        let given = [
            Given::Random(192, bins as u64 + 5),
            Given::Random(192, bins as u64 + 5),
            Given::Random(bins, 9),
            Given::Random(bins, 9),
            Given::Scalar(192),
        ];
        // Counters that leave their place are carried in registers.
        let least = (bins / 2048).max(1) as u32;
        check_on(least, &two(bins), [1, 1, 1], &given);
    }
}

#[test]
fn what_needs_too_much_shared_memory_is_an_error() {
    let func = parse(&two(65536), "test.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let schedule = Schedule {
        warps: Some(32),
        ..Schedule::default()
    };
    let options = Options {
        schedule,
        ..Options::default()
    };
    let error = lower(&func, &options).expect_err("does not fit");
    assert!(error.to_string().contains("of shared memory"), "{error}");
}
