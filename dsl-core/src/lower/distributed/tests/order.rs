//! Which barriers stand between accesses of one array.

use super::*;

#[test]
fn offsets_that_meet_again_are_found() {
    // A parabola and crossing diagonals meet again; offsets that a loop moves on do not.
    let source = "func @meet block (%y: ptr<i64> write, %z: ptr<i64> write, %w: ptr<i64> write) {
        %i = arange start=0, end=64 : tile<64xi64>
        %h = constant value=i64(20) : tile<64xi64>
        %d = sub %i, %h : tile<64xi64>
        %q = mul %d, %d : tile<64xi64>
        store %y, %q, %i
        %i2 = reshape %i : tile<8x8xi64>
        %c = arange start=0, end=8 : tile<8xi64>
        %c1 = expand_dims %c, axis=1 : tile<8x1xi64>
        %c2 = expand_dims %c, axis=0 : tile<1x8xi64>
        %c3 = broadcast %c1 : tile<8x8xi64>
        %c4 = broadcast %c2 : tile<8x8xi64>
        %s = add %c3, %c4 : tile<8x8xi64>
        store %z, %s, %i2
        %zero = constant value=i64(0) : i64
        %n = constant value=i64(3) : i64
        %step = constant value=i64(64) : tile<64xi64>
        %e = for %zero, %n, [%i], step=1, stages=1 (%k: i64, %o: tile<64xi64>) {
          store %w, %o, %i
          %p = add %o, %step : tile<64xi64>
          yield [%p]
        } : tile<64xi64>
      }";
    let given = [
        Given::Random(2000, 9),
        Given::Random(15, 9),
        Given::Random(192, 9),
    ];
    let reports = check(source, [1, 1, 1], &given);
    // Only the first two stores find out which elements store: one barrier, and three in each of two
    // rounds. The store in the loop waits for that of the iteration before, three times.
    assert_eq!(reports[0].barriers, 2 * (1 + 3 * 2) + 3);
}

/// Barriers of a loop that stores tiles of 1024 elements `step` apart, in an array that it has read `from` elements further on.
fn barriers_of_strips(step: i64, from: i64) -> Vec<u64> {
    let source = format!(
        "func @strips block (%x: ptr<i32> write, %n: i64) {{
          %zero = constant value=i64(0) : i64
          %i = arange start=0, end=1024 : tile<1024xi64>
          %from = constant value=i64({from}) : tile<1024xi64>
          for %zero, %n, [], step={step}, stages=1 (%k: i64) {{
            %s = splat %k : tile<1024xi64>
            %at = add %s, %i : tile<1024xi64>
            %there = add %at, %from : tile<1024xi64>
            %v = load %x, %there : tile<1024xi32>
            store %x, %at, %v
            yield []
          }}
        }}"
    );
    let given = [Given::Random(8192, 9), Given::Scalar(4096)];
    let reports = check(&source, [1, 1, 1], &given);
    reports.iter().map(|report| report.barriers).collect()
}

#[test]
fn a_lane_that_has_the_same_elements_of_each_strip_waits_for_none() {
    assert_eq!(barriers_of_strips(1024, 0), [0; 4]);
    assert_eq!(barriers_of_strips(2048, 1024), [0; 4]);
    // Another lane has stored half of the strip, or has yet to load it.
    assert_eq!(barriers_of_strips(512, 0), [8; 4]);
    assert_eq!(barriers_of_strips(1024, 512), [8; 4]);
}
