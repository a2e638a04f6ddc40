//! Products of programs at an edge: the same bits by less code.

use super::*;

/// The product of `[64, steps]` and `[steps, 32]`, of which the first `%n` elements of the left operand are there.
fn product(steps: usize) -> String {
    let [left, right] = [64 * steps, 32 * steps];
    format!(
        "func @d block (%x: ptr<f32>, %y: ptr<f32>, %o: ptr<f32> write, %n: i64) {{
          %i = arange start=0, end={left} : tile<{left}xi64>
          %l = splat %n : tile<{left}xi64>
          %m = lt %i, %l : tile<{left}xbool>
          %a = load %x, %i, mask=%m : tile<{left}xf32>
          %k = arange start=0, end={right} : tile<{right}xi64>
          %b = load %y, %k : tile<{right}xf32>
          %c = constant value=f32(0.0) : tile<64x32xf32>
          %p = reshape %a : tile<64x{steps}xf32>
          %q = reshape %b : tile<{steps}x32xf32>
          %d = dot %p, %q, %c, precision=ieee : tile<64x32xf32>
          %j = arange start=0, end=2048 : tile<2048xi64>
          %r = reshape %d : tile<2048xf32>
          store %o, %j, %r
        }}"
    )
}

#[test]
fn products_at_edges_have_the_same_bits() {
    for steps in [4, 8, 16, 32, 128] {
        let [left, right] = [64 * steps, 32 * steps];
        for there in [left, left - 3, 0] {
            let given = [
                Given::Random(left, 0),
                Given::Random(right, 0),
                Given::Random(2048, 0),
                Given::Scalar(there as i64),
            ];
            check(&product(steps), [1, 1, 1], &given);
        }
    }
}

#[test]
fn products_at_edges_are_loops() {
    let func = parse(&product(32), "test.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let schedule = Schedule {
        warps: Some(4),
        ..Schedule::default()
    };
    let options = Options {
        schedule,
        bounds: Bounds::Unchecked,
        ..Options::default()
    };
    let text = compiled(func, &options).to_string();
    assert_eq!(text.matches("= fma ").count(), 32 + 8, "{text}");
}
