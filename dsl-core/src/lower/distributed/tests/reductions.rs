//! Reductions: the tree, whatever holds its levels.

use super::*;

#[test]
fn softmax_of_rows_keeps_the_tree() {
    let source = format!(
        "func @softmax block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
        %p = program_id axis=0 : i64
        %row = arange start=0, end=8 : tile<8xi64>
        %c = arange start=0, end=128 : tile<128xi64>
        %k = constant value=i64(1024) : i64
        %first = mul %p, %k : i64
        %w = constant value=i64(128) : tile<8xi64>
        %rows = mul %row, %w : tile<8xi64>
        %r1 = expand_dims %rows, axis=1 : tile<8x1xi64>
        %c1 = expand_dims %c, axis=0 : tile<1x128xi64>
        %r2 = broadcast %r1 : tile<8x128xi64>
        %c2 = broadcast %c1 : tile<8x128xi64>
        %o1 = add %r2, %c2 : tile<8x128xi64>
        %fs = splat %first : tile<8x128xi64>
        %o = add %fs, %o1 : tile<8x128xi64>
        %v = load %x, %o : tile<8x128xf32>
        %m = reduce [%v], axis=1, order=tree (%ma: f32, %mb: f32) {{
          %mc = maxnum %ma, %mb : f32
          yield [%mc]
        }} : tile<8xf32>
        %m1 = expand_dims %m, axis=1 : tile<8x1xf32>
        %m2 = broadcast %m1 : tile<8x128xf32>
        %d = sub %v, %m2 : tile<8x128xf32>
        %e = exp %d : tile<8x128xf32>
        %s = reduce [%e], axis=1, order=tree {SUM} : tile<8xf32>
        %s1 = expand_dims %s, axis=1 : tile<8x1xf32>
        %s2 = broadcast %s1 : tile<8x128xf32>
        %q = div %e, %s2 : tile<8x128xf32>
        store %y, %o, %q
      }}"
    );
    let given = [Given::Random(2048, 0), Given::Random(2048, 0)];
    let reports = check(&source, [2, 1, 1], &given);
    assert!(
        reports
            .iter()
            .all(|report| report.total().bank_conflicts == 0)
    );
}

#[test]
fn sums_along_every_axis_of_a_cube() {
    for axis in 0..3 {
        let mut kept = vec![4, 16, 32];
        let cube: usize = kept.iter().product();
        kept.remove(axis);
        let (a, b) = (kept[0], kept[1]);
        let flat = a * b;
        let source = format!(
            "func @cube block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
            %i = arange start=0, end={cube} : tile<{cube}xi64>
            %v = load %x, %i : tile<{cube}xf32>
            %w = reshape %v : tile<4x16x32xf32>
            %s = reduce [%w], axis={axis}, order=tree {SUM} : tile<{a}x{b}xf32>
            %f = reshape %s : tile<{flat}xf32>
            %o = arange start=0, end={flat} : tile<{flat}xi64>
            store %y, %o, %f
          }}"
        );
        check(
            &source,
            [1, 1, 1],
            &[Given::Random(cube, 0), Given::Random(flat, 0)],
        );
    }
}

#[test]
fn lanes_share_the_work_of_a_long_sum() {
    let source = format!(
        "func @sum block (%x: ptr<f32> divisor=16, %y: ptr<f32> write) {{
        %i = arange start=0, end=4096 : tile<4096xi64>
        %v = load %x, %i : tile<4096xf32>
        %s = reduce [%v], axis=0, order=tree {SUM} : f32
        %z = constant value=i64(0) : i64
        store %y, %z, %s
      }}"
    );
    let reports = check(
        &source,
        [1, 1, 1],
        &[Given::Random(4096, 0), Given::Random(1, 0)],
    );
    // Four warps: after the vectors a lane has 8 values; handing over halves takes 4 + 2 + 1
    // shuffles, the last two lane bits one each, and the three levels that moved into lanes again
    // one each.
    assert_eq!(reports[1].shuffles, 4 * 12);
}

#[test]
fn the_lowest_index_of_the_maximum() {
    let source = "func @argmax block (%x: ptr<i32>, %y: ptr<i64> write, %z: ptr<f64> write) {
        %i = arange start=0, end=256 : tile<256xi64>
        %v = load %x, %i : tile<256xi32>
        %m, %k = reduce [%v, %i], axis=0, order=tree (%a: i32, %ai: i64, %b: i32, %bi: i64) {
          %g = gt %a, %b : bool
          %e = eq %a, %b : bool
          %l = lt %ai, %bi : bool
          %t = and %e, %l : bool
          %f = or %g, %t : bool
          %c = select %f, %a, %b : i32
          %ci = select %f, %ai, %bi : i64
          yield [%c, %ci]
        } : i32, i64
        %zero = constant value=i64(0) : i64
        store %y, %zero, %k
        %d = cast %v : tile<256xf64>
        %s = reduce [%d], axis=0, order=tree (%p: f64, %q: f64) {
          %r = sub %p, %q : f64
          yield [%r]
        } : f64
        store %z, %zero, %s
      }";
    let given = [
        Given::Random(256, 9),
        Given::Random(1, 5),
        Given::Random(1, 0),
    ];
    check(source, [1, 1, 1], &given);
}

#[test]
fn a_second_reduction_waits_once() {
    let source = format!(
        "func @twice block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
        %i = arange start=0, end=1024 : tile<1024xi64>
        %v = load %x, %i : tile<1024xf32>
        %s = reduce [%v], axis=0, order=tree {SUM} : f32
        %t = splat %s : tile<1024xf32>
        %d = sub %v, %t : tile<1024xf32>
        %q = mul %d, %d : tile<1024xf32>
        %r = reduce [%q], axis=0, order=tree (%a: f32, %b: f32) {{
          %c = add %a, %b : f32
          yield [%c]
        }} : f32
        %u = splat %r : tile<1024xf32>
        %w = div %d, %u : tile<1024xf32>
        store %y, %i, %w
      }}"
    );
    let given = [Given::Random(1024, 0), Given::Random(1024, 0)];
    let reports = check(&source, [1, 1, 1], &given);
    // One warp needs no shared memory; more meet once for each reduction, in two places in turn.
    let barriers: Vec<u64> = reports.iter().map(|report| report.barriers).collect();
    assert_eq!(barriers, [0, 2, 2, 2]);
}

#[test]
fn many_registers_of_a_lane_keep_the_tree() {
    // No vector divides the start, so neighbours are in lanes side by side. The second combiner tells operands apart.
    let source = format!(
        "func @rows block (%x: ptr<f32>, %y: ptr<f32> write, %z: ptr<f64> write) {{
        %i = arange start=0, end=4096 : tile<4096xi64>
        %one = constant value=i64(1) : tile<4096xi64>
        %o = add %i, %one : tile<4096xi64>
        %v = load %x, %o : tile<4096xf32>
        %s = reduce [%v], axis=0, order=tree {SUM} : f32
        %zero = constant value=i64(0) : i64
        store %y, %zero, %s
        %d = cast %v : tile<4096xf64>
        %t, %k = reduce [%d, %i], axis=0, order=tree (%a: f64, %ai: i64, %b: f64, %bi: i64) {{
          %c = sub %a, %b : f64
          %ci = sub %bi, %ai : i64
          yield [%c, %ci]
        }} : f64, i64
        %f = cast %k : f64
        %r = add %t, %f : f64
        store %z, %zero, %r
      }}"
    );
    let given = [
        Given::Random(4097, 0),
        Given::Random(1, 0),
        Given::Random(1, 0),
    ];
    check(&source, [1, 1, 1], &given);
}
