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

/// Writes the products of tiles of two arrays to the second, `shift` elements further on. Elements are there whose
/// offset (`o`), or whose index in the tile (`i`), is below `%n`.
fn stream(size: usize, shift: i64, bound: &str) -> String {
    format!(
        "func @s block (%x: ptr<f16> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {{
          %p = program_id axis=0 : i64
          %b = constant value=i64({size}) : i64
          %f = mul %p, %b : i64
          %v = splat %f : tile<{size}xi64>
          %i = arange start=0, end={size} : tile<{size}xi64>
          %o = add %v, %i : tile<{size}xi64>
          %l = splat %n : tile<{size}xi64>
          %m = lt %{bound}, %l : tile<{size}xbool>
          %h = load %x, %o, mask=%m : tile<{size}xf16>
          %a = cast %h : tile<{size}xf32>
          %c = load %y, %o, mask=%m : tile<{size}xf32>
          %r = mul %a, %c : tile<{size}xf32>
          %t = constant value=i64({shift}) : tile<{size}xi64>
          %u = add %o, %t : tile<{size}xi64>
          store %y, %u, %r, mask=%m
        }}"
    )
}

fn loops(source: &str, bounds: Bounds) -> usize {
    let func = verify::block(parse(source, "test.bir").expect("parses")).expect("verifies");
    let schedule = Schedule {
        warps: Some(1),
        ..Schedule::default()
    };
    let options = Options {
        schedule,
        bounds,
        ..Options::default()
    };
    let text = compiled(func, &options).to_string();
    text.matches("while [").count()
}

#[test]
fn streams_at_edges_have_the_same_bits() {
    for (size, there) in [
        (512, 1100),
        (512, 512),
        (512, 3),
        (1024, 4000),
        (4096, 5000),
    ] {
        let given = [
            Given::Random(there, 0),
            Given::Random(there + 7, 0),
            Given::Scalar(there as i64),
        ];
        let programs = there.div_ceil(size) as u32;
        check(&stream(size, 0, "o"), [programs, 1, 1], &given);
    }
    // Each element of one program is written where the next one of its own was read.
    let given = [
        Given::Random(500, 0),
        Given::Random(507, 0),
        Given::Scalar(500),
    ];
    check(&stream(512, 7, "o"), [1, 1, 1], &given);
}

#[test]
fn streams_at_edges_are_loops() {
    assert_eq!(loops(&stream(512, 0, "o"), Bounds::Unchecked), 1);
}

#[test]
fn streams_that_all_programs_run_are_written_out() {
    assert_eq!(loops(&stream(512, 0, "i"), Bounds::Unchecked), 0);
}

#[test]
fn streams_that_read_what_they_wrote_are_written_out() {
    assert_eq!(loops(&stream(512, 7, "o"), Bounds::Unchecked), 0);
}
