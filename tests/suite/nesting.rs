//! Regions as deep as they may nest: what runs on one device runs on all.

use std::collections::BTreeMap;

use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, DType, Device, Options};
use exactile_core::ir::Literal;

/// What stands in the innermost region, and how many regions it has inside one another.
const INNERMOST: &[(usize, &str)] = &[
    (
        0,
        "%m = lt %i, %splat : tile<8xbool>
  %v = load %x, %i, mask=%m : tile<8xi64>
  store %y, %i, %v, mask=%m",
    ),
    (
        0,
        "%v = load %x, %i : tile<8xi64>
  %s = sort [%v], keys=1, axis=0, direction=descending, count=8 : tile<8xi64>
  store %y, %i, %s",
    ),
    (
        0,
        "%v = load %x, %i : tile<8xi64>
  %h = histogram %v, bins=8 : tile<8xi32>
  %w = cast %h : tile<8xi64>
  store %y, %i, %w",
    ),
    (
        0,
        "%v = load %x, %i : tile<8xi64>
  %g = gather %v, %v, axis=0 : tile<8xi64>
  atomic_reduce %y, %g, %v, op=add",
    ),
    (
        0,
        "%v = load %x, %i : tile<8xi64>
  %f = cast %v : tile<8xf32>
  %a = reshape %f : tile<2x4xf32>
  %b = reshape %f : tile<4x2xf32>
  %z = constant value=f32(0x1p0) : f32
  %c = splat %z : tile<2x2xf32>
  %d = dot %a, %b, %c, precision=ieee : tile<2x2xf32>
  %e = reshape %d : tile<4xf32>
  %w = cast %e : tile<4xi64>
  %j = arange start=0, end=4 : tile<4xi64>
  store %y, %j, %w",
    ),
    (
        1,
        "%v = load %x, %i : tile<8xi64>
  %s = scan [%v], axis=0, order=tree, direction=forward (%a: i64, %b: i64) {
    %c = add %a, %b : i64
    yield [%c]
  } : tile<8xi64>
  store %y, %i, %s",
    ),
    (
        1,
        "%v = load %x, %i : tile<8xi64>
  %w = reshape %v : tile<1x2x1x2x1x2xi64>
  %s = reduce [%w], axis=3, order=tree (%a: i64, %b: i64) {
    %c = add %a, %b : i64
    yield [%c]
  } : tile<1x2x1x1x2xi64>
  %t = reshape %s : tile<4xi64>
  %j = arange start=0, end=4 : tile<4xi64>
  store %y, %j, %t",
    ),
];

/// `innermost` in so many branches that their number and its own regions make `depth`.
fn nest(depth: usize, (own, innermost): (usize, &str)) -> String {
    let branches = depth - own;
    let mut text = String::from(
        "func @nest block (%deep: bool, %n: i64, %x: ptr<i64>, %y: ptr<i64> write) {
  %i = arange start=0, end=8 : tile<8xi64>
  %splat = splat %n : tile<8xi64>\n",
    );
    text.push_str(&"if %deep () {\n".repeat(branches));
    text.push_str(innermost);
    text.push_str(&"\nyield []\n} () {\nyield []\n}\n".repeat(branches));
    text.push_str("}\n");
    text
}

fn run(kernel: &TextKernel, device: &Device) -> Vec<i64> {
    let numbers = Array::from_slice([8], &[3i64, 1, 4, 1, 5, 2, 6, 5]).expect("eight numbers");
    let out = Array::zeros(DType::I64, [8]).expect("fits");
    let mut arguments = BTreeMap::from([
        (
            "deep".to_string(),
            TextArgument::Scalar(Literal::from_bits(DType::Bool, 1)),
        ),
        (
            "n".to_string(),
            TextArgument::Scalar(Literal::from_bits(DType::I64, 6)),
        ),
        ("x".to_string(), TextArgument::Array(numbers)),
        ("y".to_string(), TextArgument::Array(out)),
    ]);
    kernel.run(device, [1, 1, 1], &mut arguments).expect("runs");
    match arguments.remove("y") {
        Some(TextArgument::Array(out)) => out.to_vec::<i64>().expect("reads"),
        Some(TextArgument::Scalar(_)) | None => unreachable!("it was inserted above"),
    }
}

#[test]
fn what_nests_as_deep_as_it_may_runs_everywhere() {
    for &innermost in INNERMOST {
        for depth in [2, 255, 256] {
            let text = nest(depth, innermost);
            let kernel = TextKernel::parse(&text, "nest.bir", Options::default()).expect("parses");
            let want = run(&kernel, &Device::interpreter());
            assert!(want.iter().any(|&number| number != 0));
            for device in [Device::cpu(), Device::lanes()] {
                assert_eq!(
                    run(&kernel, &device),
                    want,
                    "{depth} deep:\n{}",
                    innermost.1
                );
            }
        }
        let error = TextKernel::parse(&nest(257, innermost), "nest.bir", Options::default());
        let message = error.map(drop).expect_err("too deep").to_string();
        assert!(
            message.contains("regions nest more than 256 deep"),
            "{message}"
        );
    }
}
