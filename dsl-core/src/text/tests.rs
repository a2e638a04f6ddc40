//! What the text form survives, and what it refuses.

use super::parse;
use crate::ir::MAX_DEPTH;
use crate::target::{Schedule, ScheduleField};
use crate::verify;

/// Runs `work` on a thread with a small stack.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let thread = thread.spawn(work).expect("a thread starts");
    thread.join().expect("nothing panics");
}

/// `depth` branches inside one another.
fn nested(depth: usize) -> String {
    let mut text = String::from("func @f block (%c: bool) {\n");
    for _ in 0..depth {
        text.push_str("if %c () {\n");
    }
    for _ in 0..depth {
        text.push_str("yield []\n} () {\nyield []\n}\n");
    }
    text.push_str("}\n");
    text
}

#[test]
fn nesting_has_a_limit() {
    on_small_stack(|| {
        let error = parse(&nested(100_000), "f.bir").expect_err("too deep");
        let expected = "error: regions nest more than 256 deep\n  --> f.bir:258:10";
        assert_eq!(error.to_string(), expected);
    });
}

#[test]
fn what_is_within_the_limit_survives_a_round_trip() {
    let func = parse(&nested(MAX_DEPTH), "f.bir").expect("parses");
    let text = verify::block(func).expect("verifies").to_string();
    let again = parse(&text, "f.bir").expect("parses again");
    assert_eq!(again.to_string(), text);
}

#[test]
fn brackets_of_any_kind_may_be_nested() {
    on_small_stack(|| {
        for bracket in [
            "(",
            "[",
            "{",
            "<",
            "%x = f (",
            "tile<",
            "ptr<",
            "func @f block (",
        ] {
            let text = bracket.repeat(100_000);
            let head = "func @f block (%x: ptr<f32>) {\n";
            let places = [head, "%y = add ", "%y = constant value=", "%y = neg %x : "];
            for place in places {
                parse(&format!("{head}{place}{text}"), "f.bir").expect_err("is wrong");
            }
            parse(&text, "f.bir").expect_err("is wrong");
        }
    });
}

/// The number of errors that are spelled out is bounded, and so is the time: a line of this length took
/// minutes where each token counted the characters before it.
#[test]
fn errors_without_end_are_counted() {
    let lines = "%a = wrong : i64\n".repeat(50_000);
    let error = parse(&format!("func @f block () {{\n{lines}}}\n"), "f.bir").expect_err("is wrong");
    assert_eq!((error.iter().count(), error.more()), (100, 49_900));
    assert!(error.to_string().ends_with("error: 49900 more errors"));
    let line = "%é, ".repeat(1_000_000);
    let error =
        parse(&format!("func @f block () {{\n{line}\n}}\n"), "f.bir").expect_err("is wrong");
    assert_eq!(error.iter().count(), 1);
}

#[test]
fn signs_of_several_bytes_are_errors_like_any() {
    for text in ["€", "func @f block () {\n€\n}\n"] {
        parse(text, "f.bir").expect_err("is no text of a function");
    }
}

#[test]
fn names_are_not_empty() {
    for text in ["func @ block () {\n}\n", "func @f block (%: i64) {\n}\n"] {
        parse(text, "f.bir").expect_err("has no name");
    }
}

const LOOP: &str = "func @sum block (%0 x: ptr<f32>, %1 y: ptr<f32> write divisor=16, %2 n: i64) {
  %3 = arange start=0, end=4 : tile<4xi64>
  %4 = constant value=f32(0x1.8p0) : tile<4xf32>
  %5 = constant value=i64(0) : i64
  %6 = for %5, %2, [%4], step=4, stages=1 (%7: i64, %8: tile<4xf32>) {
    %9 = splat %7 : tile<4xi64>
    %10 = add %9, %3 : tile<4xi64>
    %11 = splat %2 : tile<4xi64>
    %12 = lt %10, %11 : tile<4xbool>
    %13 = load %0, %10, mask=%12 : tile<4xf32>
    %14 = add %8, %13 : tile<4xf32>
    yield [%14]
  } : tile<4xf32>
  %15 = reshape %6 : tile<2x2xf32>
  %16 = transpose %15, permutation=[1, 0] : tile<2x2xf32>
  %17 = reduce [%16], axis=0, order=tree (%18: f32, %19: f32) {
    %20 = add %18, %19 : f32
    yield [%20]
  } : tile<2xf32>
  %21 = arange start=0, end=2 : tile<2xi64>
  store %1, %21, %17
}
";

#[test]
fn text_survives_a_round_trip() {
    let func = parse(LOOP, "loop.bir").expect("parses");
    assert_eq!(func.to_string(), LOOP);
    crate::verify::block(func).expect("verifies");
}

#[test]
fn a_lane_function_states_what_the_assembler_is_asked_for() {
    for &field in ScheduleField::ALL {
        let name = field.row().name;
        let (least, most) = field.range().into_inner();
        let text = |value| format!("func @f lane warps=4 {name}={value} () {{\n}}\n");
        if !field.row().kept {
            continue;
        }
        let mut schedule = Schedule::AUTO;
        schedule.set(field, Some(least));
        let func = parse(&text(least), "f.bir").expect("parses");
        assert_eq!((func.schedule, func.to_string()), (schedule, text(least)));
        verify::lane(func).expect("is in range");
        for value in [least - 1, most + 1] {
            let error = verify::lane(parse(&text(value), "f.bir").expect("parses"));
            let error = error.expect_err("is out of range").to_string();
            assert!(error.contains(&format!("`{name}` is {value}")), "{error}");
        }
        let block = text(least).replace("lane warps=4", "block");
        let error = verify::block(parse(&block, "f.bir").expect("parses"));
        let error = error.expect_err("has no schedule").to_string();
        assert!(error.contains("at the block stage"), "{error}");
    }
}

#[test]
fn errors_name_their_places_and_come_at_once() {
    let source = "func @f block (%0 x: ptr<f32>) {\n  %1 = arrange start=0 : i64\n  %2 = add %9, %9 : f32\n}\n";
    let error = parse(source, "f.bir").expect_err("is wrong").to_string();
    assert!(error.contains("unknown op `arrange`"), "{error}");
    assert!(
        error.contains("`%9` is not defined") && error.contains("f.bir:3:12"),
        "{error}"
    );
}
