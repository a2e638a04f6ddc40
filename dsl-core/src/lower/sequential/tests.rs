//! What lowering makes of small kernels.

use crate::target::{Bounds, Options};
use crate::text::parse;
use crate::verify;

fn lowered(source: &str) -> String {
    let func = parse(source, "test.bir").expect("parses");
    let func = verify::block(func).expect("is a block function");
    let options = Options {
        bounds: Bounds::Unchecked,
        ..Options::default()
    };
    super::lower(&func, &options).expect("lowers").to_string()
}

#[test]
fn offsets_that_run_become_vectors() {
    let text = lowered(
        "func @add block (%x: ptr<f32>, %z: ptr<f32> write, %n: i64) {
           %pid = program_id axis=0 : i64
           %size = constant value=i64(1024) : i64
           %start = mul %pid, %size : i64
           %s = splat %start : tile<1024xi64>
           %i = arange start=0, end=1024 : tile<1024xi64>
           %o = add %s, %i : tile<1024xi64>
           %ns = splat %n : tile<1024xi64>
           %m = lt %o, %ns : tile<1024xbool>
           %a = load %x, %o, mask=%m : tile<1024xf32>
           %c = add %a, %a : tile<1024xf32>
           store %z, %o, %c, mask=%m
         }",
    );
    assert!(text.contains("lane_load"));
}
