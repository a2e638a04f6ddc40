//! Inline PTX of kernels: once for each element, in place of its meaning, and refused with the kernel's line.

use std::path::{Path, PathBuf};

use exactile_core::diagnostic::Loc;
use exactile_core::facts::Facts;
use exactile_core::ir::Func;
use exactile_core::target::{Bounds, Options, Schedule, Target};
use exactile_core::text::parse;
use exactile_core::{pipeline, verify};
use exactile_nvptx::{Assembler, Ptx, emit};

use crate::assemble;

fn read(name: &str, body: &str) -> Func {
    let source = format!(
        "func @{name} block (%x: ptr<u32>, %y: ptr<u32>, %o: ptr<u32> write, %q: ptr<u32> write) {{
           %i = arange start=0, end=64 : tile<64xi64>
           %a = load %x, %i : tile<64xu32>
           %b = load %y, %i : tile<64xu32>
{body}
         }}"
    );
    parse(&source, "kernel.bir").expect("parses")
}

/// PTX for a warp that has two elements in each lane.
fn compile(func: Func) -> Ptx {
    let func = verify::block(func).expect("is valid");
    let name = func.name.clone();
    let options = Options {
        bounds: Bounds::Unchecked,
        schedule: Schedule::AUTO.warps(1),
        ..Options::default()
    };
    let (facts, observe) = (Facts::default(), &mut pipeline::unobserved);
    let lane = pipeline::compile(func, &Target::SM_90A, &options, &facts, observe);
    emit(&lane.expect("compiles"), &Target::SM_90A, &name).expect("is emitted")
}

#[test]
fn the_text_stands_for_its_meaning() {
    let ptx = compile(read(
        "least_bits",
        r#"%n = rem %a, %b : tile<64xu32>
           %r = inline_ptx [%n], [%a, %b], result=0, text="bfe.u32 $0, $1, 3, $2\u{3b}" : tile<64xu32>
           store %o, %i, %r"#,
    ));
    assert_eq!(ptx.text().matches("bfe.u32").count(), 2, "{}", ptx.text());
    assert!(!ptx.text().contains("rem.u32"), "{}", ptx.text());
    assert!(ptx.text().contains("// inline PTX of kernel.bir:6:"));
    assemble(&ptx);
}

#[test]
fn a_text_of_two_results_runs_once() {
    let text = r#"text="{ .reg .b64 %wide\u{3b} mul.wide.u32 %wide, $2, $3\u{3b} mov.b64 {$0, $1}, %wide\u{3b} }""#;
    let mut func = read(
        "halves",
        &format!(
            "%l = mul %a, %b : tile<64xu32>
             %h = add %a, %b : tile<64xu32>
             %r = inline_ptx [%l, %h], [%a, %b], result=0, {text} : tile<64xu32>
             %s = inline_ptx [%l, %h], [%a, %b], result=1, {text} : tile<64xu32>
             store %o, %i, %r
             store %q, %i, %s"
        ),
    );
    // In a kernel both are of one call.
    for inst in func.all_insts() {
        func.inst_mut(inst).loc = Loc::new("kernel.rs", 7, 5);
    }
    let ptx = compile(func);
    let products = ptx.text().matches("mul.wide.u32 %wide").count();
    assert_eq!(products, 2, "{}", ptx.text());
    assemble(&ptx);
}

#[test]
fn numbers_of_all_widths_have_registers() {
    let one = |dtype: &str, text: &str| {
        format!(
            r#"%c{dtype} = cast %a : tile<64x{dtype}>
           %m{dtype} = add %c{dtype}, %c{dtype} : tile<64x{dtype}>
           %r{dtype} = inline_ptx [%m{dtype}], [%c{dtype}], result=0, text="{text}\u{{3b}}" : tile<64x{dtype}>
           %w{dtype} = cast %r{dtype} : tile<64xu32>
           store %o, %i, %w{dtype}"#
        )
    };
    let body = [
        one("u16", "add.u16 $0, $1, $1"),
        one("i64", "add.s64 $0, $1, $1"),
        one("f16", "add.rn.f16 $0, $1, $1"),
        one("bf16", "mov.b16 $0, $1"),
        one("f32", "add.rn.f32 $0, $1, $1"),
        one("f64", "add.rn.f64 $0, $1, $1"),
    ];
    assemble(&compile(read("widths", &body.join("\n"))));
}

#[test]
fn a_text_that_the_assembler_refuses_names_its_line() {
    let ptx = compile(read(
        "refused",
        r#"%n = not %a : tile<64xu32>
           %m = inline_ptx [%n], [%a], result=0, text="not.b32 $0, $1\u{3b}" : tile<64xu32>
           %r = inline_ptx [%n], [%m], result=0, text="knot.b32 $0, $1\u{3b}" : tile<64xu32>
           store %o, %i, %r"#,
    ));
    let Some(assembler) = Assembler::find(Path::new(env!("CARGO_MANIFEST_DIR"))) else {
        eprintln!("SKIPPED: no ptxas");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let refused = assembler.assemble(ptx.text(), &folder, ptx.name());
    let message = refused.expect_err("is no PTX").to_string();
    assert!(
        message.contains("this is the inline PTX of kernel.bir:7:"),
        "{message}"
    );
}
