//! Lines of the source in PTX: they are there where asked for, and change no instruction.

use std::path::Path;

use exactile_core::facts::Facts;
use exactile_core::target::{Options, Target};
use exactile_core::text::parse;
use exactile_core::verify::LaneFunc;
use exactile_core::{pipeline, verify};
use exactile_nvptx::{EmitOptions, Ptx, emit_with};

use crate::assemble;

const SUM: &str = "func @sum block (%x: ptr<f32>, %y: ptr<f32> write, %n: i64) {
  %i = arange start=0, end=512 : tile<512xi64>
  %l = splat %n : tile<512xi64>
  %m = lt %i, %l : tile<512xbool>
  %v = load %x, %i, mask=%m : tile<512xf32>
  %e = exp %v : tile<512xf32>
  %s = reduce [%e], axis=0, order=tree (%a: f32, %b: f32) {
    %c = add %a, %b : f32
    yield [%c]
  } : f32
  %zero = constant value=i64(0) : i64
  store %y, %zero, %s
}";

fn lowered() -> LaneFunc {
    let func = verify::block(parse(SUM, "sum.bir").expect("parses")).expect("is valid");
    let (options, facts) = (Options::default(), Facts::default());
    let observe = &mut pipeline::unobserved;
    pipeline::compile(func, &Target::SM_90A, &options, &facts, observe).expect("compiles")
}

fn written(func: &LaneFunc, lines: bool) -> Ptx {
    let options = EmitOptions {
        lines,
        ..EmitOptions::new(Target::SM_90A)
    };
    emit_with(func, "sum_of_lines", options).expect("is written")
}

/// The instructions: no comments, no lines, and no labels that only these have.
fn instructions(ptx: &Ptx) -> Vec<String> {
    let code = |line: &str| {
        let line = line.split("//").next().unwrap_or_default().trim();
        let tells = [".loc", ".file", "$L__tmp", "$L__func_"];
        let is_code = !line.is_empty() && !tells.iter().any(|tells| line.starts_with(tells));
        is_code.then(|| line.to_string())
    };
    ptx.text().lines().filter_map(code).collect()
}

#[test]
fn lines_change_no_instruction() {
    let func = lowered();
    let [plain, told] = [false, true].map(|lines| written(&func, lines));
    assert!(!plain.text().contains(".loc"));
    assert_eq!(instructions(&plain), instructions(&told));
    for line in [5, 6, 12] {
        let place = format!(".loc\t1 {line} ");
        assert!(told.text().contains(&place), "{place}\n{}", told.text());
    }
    assert!(told.text().contains("\"sum.bir\""), "{}", told.text());
    let [plain, told] = [plain, told].map(|ptx| assemble(&ptx));
    if let (Some(plain), Some(told)) = (plain, told) {
        let code = |sass: &str| -> Vec<String> {
            let lines = sass.lines().filter(|line| line.contains("/*"));
            lines.map(str::to_string).collect()
        };
        assert_eq!(code(&plain.sass), code(&told.sass));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sum_of_lines.cubin");
        let cubin = std::fs::read(file).expect("was the last to be assembled");
        let has = |text: &[u8]| cubin.windows(text.len()).any(|part| part == text);
        assert!(has(b".debug_line") && has(b"sum.bir"));
    }
}
