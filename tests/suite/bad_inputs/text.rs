//! Kernels of IR with any arguments, and texts that are none.

use std::collections::BTreeMap;

use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, DType, Number, Options, Result, Target};

use super::{Tried, hosts};

/// Copies one number.
pub(super) fn copies() -> Result<TextKernel> {
    let source = "func @copies block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
      %v = load %x, %n : f32
      store %y, %n, %v
    }";
    TextKernel::parse(source, "copies.bir", Options::default())
}

#[test]
fn text_with_any_arguments() {
    let mut tried = Tried::default();
    let array = |dtype, len: usize| Array::zeros(dtype, [len]).map(TextArgument::Array);
    let number = |literal| Ok(TextArgument::Scalar(literal));
    for device in hosts() {
        let (zero, three) = (0i64.literal(), 3i64.literal());
        let floats = |len| array(DType::F32, len);
        let cases = [
            ("whole", floats(1), floats(1), number(zero)),
            ("short", floats(1), floats(3), number(three)),
            ("empty", floats(0), floats(0), number(zero)),
            ("dtype", array(DType::I32, 1), floats(1), number(zero)),
            ("number", floats(1), floats(1), number(0i32.literal())),
            ("float", floats(1), floats(1), number(0f32.literal())),
            ("scalar", number(zero), floats(1), number(zero)),
            ("array", floats(1), floats(1), array(DType::I64, 1)),
        ];
        for (name, x, y, n) in cases {
            let named = [("x", x), ("y", y), ("n", n)];
            let named = named.map(|(name, it): (&str, Result<TextArgument>)| {
                (name.to_string(), it.expect("is small"))
            });
            let all: BTreeMap<String, TextArgument> = named.into();
            let run = |mut arguments: BTreeMap<String, TextArgument>| {
                copies().and_then(|kernel| kernel.run(&device, [1, 1, 1], &mut arguments))
            };
            match name {
                "whole" => assert!(!tried.call(name, || run(all.clone()))),
                _ => tried.refused(name, || run(all.clone())),
            }
            for left_out in ["x", "y", "n"] {
                let mut fewer = all.clone();
                fewer.remove(left_out);
                tried.refused(left_out, || run(fewer));
            }
            let mut more = all;
            more.insert("z".to_string(), TextArgument::Scalar(zero));
            tried.refused("one more", || run(more));
        }
        tried.refused("grid", || {
            copies()?.run(&device, [u32::MAX; 3], &mut BTreeMap::new())
        });
    }
    tried.end(100);
}

#[test]
fn texts_that_are_no_kernels() {
    let mut tried = Tried::default();
    for source in [
        "",
        "func",
        "func @f lane () {\n}",
        "func @f block () {\n  what\n}",
        "\0",
        "func @f block (",
    ] {
        tried.refused(source, || {
            TextKernel::parse(source, "none.bir", Options::default())
        });
    }
    tried.refused("file", || {
        TextKernel::read("/nowhere".as_ref(), Options::default())
    });
    tried.refused("stage", || copies()?.after("no such stage", &Target::CPU));
    tried.end(8);
}
