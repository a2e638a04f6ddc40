//! What a crate's functions do wrong is told of each, and ends none of the others.

use clap::Parser;

use super::*;

fn panics(_: &mut Run<'_>) -> Result<()> {
    panic!("on purpose")
}

fn fails(_: &mut Run<'_>) -> Result<()> {
    Err(Error::Invalid("no such file".to_string()))
}

fn is_silent(_: &mut Run<'_>) -> Result<()> {
    Ok(())
}

const CASES: &[Case] = &[
    ("panics", panics),
    ("fails", fails),
    ("is_silent", is_silent),
];

fn action(arguments: &[&str]) -> Action {
    let line = [&["program"], arguments].concat();
    CommandLine::try_parse_from(line).expect("parses").action
}

const NOTHING: &str =
    "the function `is_silent` launches nothing: call `launch` of the `Run` that it is given";

#[test]
fn each_case_has_its_turn_and_its_error() {
    let Action::Tune(options) = action(&["tune", "--device", "cpu", "--file", "no.json"]) else {
        panic!("tunes");
    };
    let told = options.tune_all(CASES).expect_err("all fail").to_string();
    let wanted = [
        "panics: the function `panics` panicked: on purpose",
        "fails: no such file",
        &format!("is_silent: {NOTHING}"),
    ];
    assert_eq!(told, wanted.join("\n"));
}

#[test]
fn what_launches_nothing_has_no_code_to_show() {
    let Action::Dump(dump) = action(&["dump", "is_silent", "--stage", "trace"]) else {
        panic!("dumps");
    };
    let told = dump.execute(CASES).expect_err("shows nothing");
    assert_eq!(told.to_string(), NOTHING);
}
