//! Scans: the prefixes, whatever holds the levels, and what they cost.

use super::*;

/// A scan of `count` loaded numbers in a direction, stored where they came from.
fn scan_of(count: usize, direction: &str, combine: &str) -> String {
    format!(
        "func @scan block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
        %i = arange start=0, end={count} : tile<{count}xi64>
        %v = load %x, %i : tile<{count}xf32>
        %s = scan [%v], axis=0, order=tree, direction={direction} (%a: f32, %b: f32) {{
          %c = {combine} %a, %b : f32
          yield [%c]
        }} : tile<{count}xf32>
        store %y, %i, %s
      }}"
    )
}

#[test]
fn one_shuffle_for_each_line_of_a_level() {
    for direction in ["forward", "reverse"] {
        for combine in ["add", "sub"] {
            let source = scan_of(4096, direction, combine);
            let given = [Given::Random(4096, 0), Given::Random(4096, 0)];
            let reports = check(&source, [1, 1, 1], &given);
            // Four warps, after the vectors eight lines of four: five levels across lanes for each
            // line, then 4 + 2 + 1 lines that other registers take. Warps meet once.
            assert_eq!(reports[1].shuffles, 4 * (5 * 8 + 4 + 2 + 1));
            assert_eq!(reports[1].barriers, 1);
            assert_eq!(reports[0].barriers, 0);
            let conflicts: u64 = reports.iter().map(|it| it.total().bank_conflicts).sum();
            assert_eq!(conflicts, 0);
        }
    }
}

#[test]
fn every_axis_of_a_cube_in_both_directions() {
    for axis in 0..3 {
        for direction in ["forward", "reverse"] {
            let source = format!(
                "func @cube block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
                %i = arange start=0, end=2048 : tile<2048xi64>
                %v = load %x, %i : tile<2048xf32>
                %w = reshape %v : tile<4x16x32xf32>
                %s = scan [%w], axis={axis}, order=tree, direction={direction} (%a: f32, %b: f32) {{
                  %c = sub %a, %b : f32
                  yield [%c]
                }} : tile<4x16x32xf32>
                %f = reshape %s : tile<2048xf32>
                store %y, %i, %f
              }}"
            );
            let given = [Given::Random(2048, 0), Given::Random(2048, 0)];
            let reports = check(&source, [1, 1, 1], &given);
            let total: u64 = reports.iter().map(|it| it.total().bank_conflicts).sum();
            assert_eq!(total, 0);
        }
    }
}

/// Registers, lanes and warps hold the index bits in every order.
#[test]
fn levels_in_any_order_of_holders() {
    for (shape, permutation) in [
        ("16x8x16", "[2, 1, 0]"),
        ("16x8x16", "[1, 0, 2]"),
        ("64x4x8", "[0, 2, 1]"),
        ("4x64x8", "[2, 0, 1]"),
    ] {
        for direction in ["forward", "reverse"] {
            let extents: Vec<&str> = shape.split('x').collect();
            let order = permutation.trim_matches(['[', ']']).split(", ");
            let turned: Vec<&str> = order
                .map(|at| extents[at.parse::<usize>().expect("an axis")])
                .collect();
            let turned = turned.join("x");
            let source = format!(
                "func @turned block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16) {{
                %i = arange start=0, end=2048 : tile<2048xi64>
                %v = load %x, %i : tile<2048xf32>
                %w = reshape %v : tile<{shape}xf32>
                %t = transpose %w, permutation={permutation} : tile<{turned}xf32>
                %f = reshape %t : tile<2048xf32>
                %j = cast %f : tile<2048xi32>
                %s, %k = scan [%f, %j], axis=0, order=tree, direction={direction} (%a: f32, %m: i32, %b: f32, %n: i32) {{
                  %c = sub %a, %b : f32
                  %p = sub %m, %n : i32
                  yield [%c, %p]
                }} : tile<2048xf32>, tile<2048xi32>
                %q = cast %k : tile<2048xf32>
                %r = add %s, %q : tile<2048xf32>
                store %y, %i, %r
              }}"
            );
            let given = [Given::Random(2048, 0), Given::Random(2048, 0)];
            check(&source, [1, 1, 1], &given);
        }
    }
}
