//! What the block interpreter computes and which faults it finds.

use super::*;
use crate::ir::{DType, Literal, Number};
use crate::text::parse;

fn interpret(source: &str, grid: Grid, x: &[f32], y: &mut [f32]) -> Result<(), Fault> {
    let func = crate::verify::block(parse(source, "test.bir").expect("parses")).expect("verifies");
    let bytes = |values: &[f32]| {
        let mut bytes = vec![0u8; values.len() * 4];
        for (chunk, value) in bytes.chunks_exact_mut(4).zip(values) {
            value.write_to(chunk);
        }
        bytes
    };
    let (input, mut output) = (bytes(x), bytes(y));
    let n = Literal::from_bits(DType::I64, x.len() as u64);
    let mut arguments = [
        Argument::Read(&input),
        Argument::ReadWrite(&mut output),
        Argument::Scalar(n),
    ];
    let result = run(&func, grid, &mut arguments);
    for (value, chunk) in y.iter_mut().zip(output.chunks_exact(4)) {
        *value = f32::read_from(chunk);
    }
    result
}

const HEAD: &str = "func @f block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {\n";

#[test]
fn a_sum_is_the_tree_over_adjacent_pairs() {
    let source = format!(
        "{HEAD}%i = arange start=0, end=4 : tile<4xi64>
        %v = load %x, %i : tile<4xf32>
        %s = reduce [%v], axis=0, order=tree (%a: f32, %b: f32) {{
          %c = add %a, %b : f32
          yield [%c]
        }} : f32
        %z = constant value=i64(0) : i64
        store %y, %z, %s\n}}"
    );
    let mut y = [0.0];
    interpret(&source, [1, 1, 1], &[1e8, 1.0, -1e8, 1.0], &mut y).expect("runs");
    // (1e8 + 1) + (-1e8 + 1) = 1e8 - 1e8, while a running sum gives 1.
    assert_eq!(y, [0.0]);
}

#[test]
fn a_combiner_with_control_flow_sees_one_pair_at_a_time() {
    let source = format!(
        "{HEAD}%i = arange start=0, end=4 : tile<4xi64>
        %v = load %x, %i : tile<4xf32>
        %s = reduce [%v], axis=0, order=any (%a: f32, %b: f32) {{
          %t = lt %a, %b : bool
          %c = if %t () {{
            yield [%b]
          }} () {{
            yield [%a]
          }} : f32
          yield [%c]
        }} : f32
        %z = constant value=i64(0) : i64
        store %y, %z, %s\n}}"
    );
    let mut y = [0.0];
    interpret(&source, [1, 1, 1], &[3.0, 9.0, 7.0, 8.0], &mut y).expect("runs");
    assert_eq!(y, [9.0]);
}

#[test]
fn loops_carry_tiles_and_shapes_move_elements() {
    let source = format!(
        "{HEAD}%zero = constant value=i64(0) : i64
        %i = arange start=0, end=8 : tile<8xi64>
        %acc = constant value=f32(0x0p0) : tile<8xf32>
        %r = for %zero, %n, [%acc], step=8, stages=1 (%k: i64, %c: tile<8xf32>) {{
          %ks = splat %k : tile<8xi64>
          %o = add %ks, %i : tile<8xi64>
          %ns = splat %n : tile<8xi64>
          %m = lt %o, %ns : tile<8xbool>
          %v = load %x, %o, mask=%m : tile<8xf32>
          %d = add %c, %v : tile<8xf32>
          yield [%d]
        }} : tile<8xf32>
        %s = reshape %r : tile<2x4xf32>
        %t = transpose %s, permutation=[1, 0] : tile<4x2xf32>
        %u = reshape %t : tile<8xf32>
        store %y, %i, %u\n}}"
    );
    let mut y = [0.0; 8];
    let x: Vec<f32> = (0..11).map(|i| i as f32).collect();
    interpret(&source, [1, 1, 1], &x, &mut y).expect("runs");
    assert_eq!(y, [8.0, 4.0, 10.0, 5.0, 12.0, 6.0, 3.0, 7.0]);
}

#[test]
fn the_last_of_equal_offsets_wins() {
    let source = format!(
        "{HEAD}%i = arange start=0, end=4 : tile<4xi64>
        %v = load %x, %i : tile<4xf32>
        %z = constant value=i64(0) : tile<4xi64>
        store %y, %z, %v\n}}"
    );
    let mut y = [0.0];
    interpret(&source, [1, 1, 1], &[1.0, 2.0, 3.0, 4.0], &mut y).expect("runs");
    assert_eq!(y, [4.0]);
}

#[test]
fn faults_name_kernel_line_program_and_element() {
    let source = format!(
        "{HEAD}%i = arange start=0, end=4 : tile<4xi64>
        %v = load %x, %i : tile<4xf32>
        store %y, %i, %v\n}}"
    );
    let mut y = [0.0; 4];
    let fault = interpret(&source, [1, 1, 1], &[1.0; 3], &mut y).expect_err("out of bounds");
    let expected =
        "kernel `f` at test.bir:3:9, program 0: element 3 accesses `x[3]`, which has 3 elements";
    assert_eq!(fault.to_string(), expected);
    let fault = interpret(&source, [2, 1, 1], &[1.0; 4], &mut y).expect_err("two writers");
    let expected =
        "kernel `f` at test.bir:4:9, program 1: element 0 touches `y[0]`, which program 0 wrote";
    assert_eq!(fault.to_string(), expected);
}

#[test]
fn a_program_may_not_read_what_another_wrote() {
    let source = format!(
        "{HEAD}%p = program_id axis=0 : i64
        %one = constant value=i64(1) : i64
        %q = xor %p, %one : i64
        %v = load %y, %q : f32
        store %y, %p, %v\n}}"
    );
    let fault = interpret(&source, [2, 1, 1], &[], &mut [0.0; 2]).expect_err("a race");
    assert!(
        fault.to_string().contains("`y[0]`, which program 0 wrote"),
        "{fault}"
    );
}
