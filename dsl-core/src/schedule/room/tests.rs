//! What a schedule function is said to take is what the lane function made of it takes.

use super::*;
use crate::ir::Func;
use crate::pipeline;
use crate::target::{Options, Schedule};
use crate::text::parse;
use crate::verify;

/// What is said of a function before it is lowered, and what its lane function takes.
fn bytes(text: &str, warps: u32) -> [i64; 2] {
    let target = Target::SM_90A;
    let options = Options {
        schedule: Schedule::AUTO.warps(warps),
        ..Options::default()
    };
    let mut found = [0; 2];
    let observe = &mut |stage: &'static str, func: &Func| {
        if stage == "adjoin" {
            let func = PlacedFunc::new(func.clone()).expect("is placed");
            let known = (&stores_apart(&func, &Facts::default()), &Indices::of(&func));
            found[0] = taken_bytes(&func, &target, known, i64::MAX);
        } else if stage == "lower" {
            found[1] = least_bytes(func, &target, &Exchanges::new(), i64::MAX);
        }
    };
    let block = verify::block(parse(text, "room.bir").expect("parses")).expect("is valid");
    pipeline::compile(block, &target, &options, &Facts::default(), observe).expect("compiles");
    found
}

fn with_body(body: &str) -> String {
    format!(
        "func @f block (%x: ptr<f32>, %o: ptr<f32> write, %n: i64) {{
          %i = arange start=0, end=1024 : tile<1024xi64>
          %v = load %x, %i : tile<1024xf32>
          {body}
        }}"
    )
}

#[test]
fn exchanges_take_what_is_said() {
    let sum = "(%a: f32, %b: f32) {
        %c = add %a, %b : f32
        yield [%c]
      }";
    let scan = format!(
        "%s = scan [%v], axis=0, order=tree, direction=forward {sum} : tile<1024xf32>
         store %o, %i, %s"
    );
    let reduce = format!(
        "%m = reshape %v : tile<16x64xf32>
         %s = reduce [%m], axis=0, order=tree {sum} : tile<64xf32>
         %j = arange start=0, end=64 : tile<64xi64>
         store %o, %j, %s"
    );
    let turned = "%m = reshape %v : tile<32x32xf32>
         %t = transpose %m, permutation=[1, 0] : tile<32x32xf32>
         %f = reshape %t : tile<1024xf32>
         store %o, %i, %f";
    let scattered = "%w = cast %v : tile<1024xi64>
         store %o, %w, %v";
    let product = "%m = reshape %v : tile<32x32xf32>
         %r = dot %m, %m, %m, precision=ieee : tile<32x32xf32>
         %f = reshape %r : tile<1024xf32>
         store %o, %i, %f";
    for body in [&scan, &reduce, turned, scattered, product] {
        for warps in [1, 4, 8] {
            let [said, taken] = bytes(&with_body(body), warps);
            assert_eq!(said, taken, "on {warps} warps: {body}");
        }
    }
}

#[test]
fn slots_take_what_is_said() {
    let text = "func @f block (%a: ptr<bf16> divisor=16, %o: ptr<f32> write, %n: i64) {
      %zero = constant value=i64(0) : i64
      %i = arange start=0, end=4096 : tile<4096xi64>
      %p = reshape %i : tile<64x64xi64>
      %none = constant value=f32(0) : tile<64x64xf32>
      %k1 = constant value=i64(4096) : i64
      %s = for %zero, %n, [%none], step=1, stages=3 (%k: i64, %acc: tile<64x64xf32>) {
        %ka = mul %k, %k1 : i64
        %sa = splat %ka : tile<64x64xi64>
        %q = add %p, %sa : tile<64x64xi64>
        %v = load %a, %q : tile<64x64xbf16>
        %w = add %v, %v : tile<64x64xbf16>
        %d = dot %w, %v, %acc, precision=hopper : tile<64x64xf32>
        yield [%d]
      } : tile<64x64xf32>
      store %o, %p, %s
    }";
    let [said, taken] = bytes(text, 4);
    assert_eq!(said, taken);
    assert!(taken >= 3 * 64 * 64 * 2, "three slots take {taken} bytes");
}

#[test]
fn columns_behind_slots_take_what_is_said() {
    let file = "../tests/filetests/schedule/adjoined.bir";
    let text = std::fs::read_to_string(file).expect("is there");
    let begin = text.find("func @adjoined").expect("is in it");
    let end = text[begin..].find("\n}").expect("ends");
    let [said, taken] = bytes(&text[begin..begin + end + 2], 4);
    assert_eq!(said, taken);
}
