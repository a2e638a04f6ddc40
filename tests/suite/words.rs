//! Refusals whose words no other test shows: of the text form, of the verifier and of the runtime.

use exactile::{Array, Buffer, DType, Device, IntoGrid, Result};
use exactile_core::builder::Builder;
use exactile_core::diagnostic::MOST_ERRORS;
use exactile_core::ir::{Access, Stage};
use exactile_core::text::{parse, render};
use exactile_core::verify::{self, MAX_PARAMETERS};

fn says<T>(result: Result<T>, message: &str) {
    let error = result.err().expect("is refused").to_string();
    assert!(error.contains(message), "{message}\nis not in\n{error}");
}

/// What the verifier says of a function of the block stage.
fn refused(text: &str) -> String {
    let func = parse(text, "words.bir").unwrap_or_else(|error| panic!("{error}"));
    verify::block(func).expect_err("is refused").to_string()
}

#[test]
fn texts_end_and_errors_are_few() {
    let error = parse("func @f block (", "words.bir").expect_err("is no function");
    let message = "expected a parameter `%name`, found the end of the text";
    assert!(error.to_string().contains(message), "{error}");
    let line = "%a = ad %x : f32\n";
    let text = format!("func @f block () {{\n{}}}", line.repeat(MOST_ERRORS + 5));
    let errors = parse(&text, "words.bir").expect_err("are errors");
    let shown = render(&errors, &|_| None);
    assert!(shown.ends_with("error: 5 more errors\n"), "{shown}");
}

#[test]
fn functions_have_few_named_parameters() {
    let parameters = (0..=MAX_PARAMETERS).map(|at| format!("%p{at}: f32"));
    let parameters: Vec<String> = parameters.collect();
    let errors = refused(&format!("func @f block ({}) {{\n}}", parameters.join(", ")));
    let message = "`@f` has 1025 parameters, expected at most 1024";
    assert!(errors.contains(message), "{errors}");
    let mut builder = Builder::new("f", Stage::Block);
    builder.scalar_parameter("x", DType::F32);
    let mut func = builder.finish().expect("nothing is wrong");
    func.parameters.clear();
    let errors = verify::block(func).expect_err("is refused").to_string();
    assert!(errors.contains("`@f` has unnamed parameters"), "{errors}");
    let mut builder = Builder::new("f", Stage::Block);
    builder.pointer_parameter("x", DType::F32, Access::Read);
    builder.poison();
    let func = builder.finish().expect("nothing was reported");
    let errors = verify::block(func).expect_err("is refused").to_string();
    assert!(errors.contains("a value is poisoned"), "{errors}");
}

#[test]
fn combiners_without_effects_are_the_way() {
    let errors = refused(
        "func @f block (%o: ptr<f32> write, %x: f32, %i: i64) {
           %v = splat %x : tile<4xf32>
           %r = reduce [%v], axis=0, order=tree (%a: f32, %b: f32) {
             store %o, %i, %a
             yield [%b]
           } : f32
         }",
    );
    let note = "how often a combiner runs is left to the schedule: move `store` before the `reduce`, or give \
                a `bool` beside the numbers and use it behind";
    assert!(errors.contains(note), "{errors}");
}

#[test]
fn views_are_within_their_buffer() -> Result<()> {
    let mut x = Buffer::<f32>::zeros(&Device::cpu(), 12)?;
    let view = x.view([3, 4])?;
    says(
        view.permute([0, 0]),
        "axes [0, 0] are no order of the axes of a view of rank 2",
    );
    says(
        view.select(0, 3),
        "index 3 of axis 0 is out of range for the extent 3",
    );
    says(
        x.view_mut([3, 4])?.split_at(0, 4),
        "axis 0 has the extent 3, which cannot be split at 4",
    );
    says(
        x.view_mut([3, 4])?.split_at(1, 2),
        "the parts of axis 1 lie between each other in memory: split the axis of the longest strides, [4, 1]",
    );
    Ok(())
}

#[test]
fn sizes_and_names_are_those_that_there_are() -> Result<()> {
    let device = Device::cpu();
    says(
        Array::byte_count(DType::F32, &[usize::MAX, 2]),
        "of `f32` is too large",
    );
    says(
        Buffer::<f32>::zeros(&device, usize::MAX),
        "elements of `f32` are too many",
    );
    says(
        Device::from_name("gpu"),
        "unknown device `gpu`, expected `cpu`, `interp`, `lanes`, `cuda` or `cuda:N`",
    );
    says(
        (-1i64).into_grid(),
        "grid extent `-1` is not between 0 and 4294967295",
    );
    says(
        device.profile(|| device.profile(|| Ok(()))),
        "another profile of cpu is under way: end it first",
    );
    Ok(())
}
