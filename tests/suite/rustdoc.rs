//! The examples of the documentation: the most used functions have one each, and each is shown and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// Where the examples of the language are.
const FOLDER: &str = "dsl-core/src/lang/examples";

/// The functions of the language that have an example; that of `math` shows `exp` and `maximum`.
const LEAST: usize = 40;

/// Of the facade: the file, and the line below the documentation that holds an example.
const FACADE: &[(&str, &str)] = &[
    ("src/buffer.rs", "pub fn from_slice("),
    ("src/device.rs", "pub fn cpu("),
    ("src/launch.rs", "pub fn launch<"),
    ("src/compare.rs", "pub fn compare("),
    ("src/autotune.rs", "pub struct Tuner "),
];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("is a folder");
    let paths = entries.map(|entry| entry.expect("is read").path());
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            found.push(path);
        }
    }
    found
}

/// The examples of the language, by the names of their files.
fn examples() -> BTreeSet<String> {
    let files = fs::read_dir(root().join(FOLDER)).expect("is a folder");
    let names = files.map(|file| file.expect("is read").file_name().into_string());
    names.map(|name| name.expect("is UTF-8")).collect()
}

#[test]
fn functions_of_the_language_have_examples() {
    let examples = examples();
    assert!(examples.len() > LEAST, "{} are left", examples.len());
    let sources = sources(&root().join("dsl-core/src/lang"));
    let texts: String = sources.iter().map(|path| read(path)).collect();
    for name in &examples {
        let text = read(&root().join(FOLDER).join(name));
        let code = text
            .strip_prefix("```\n")
            .and_then(|rest| rest.strip_suffix("```\n"));
        let code = code.unwrap_or_else(|| panic!("{name} is one block that runs"));
        assert!(code.contains("#[kernel]"), "{name} has a kernel");
        assert!(code.contains("assert"), "{name} checks nothing");
        let shown = texts.matches(&format!("examples/{name}\"))]")).count();
        assert_eq!(shown, 1, "{name} stands at one item");
    }
}

#[test]
fn examples_of_the_language_are_run() {
    let tests = read(&root().join("src/examples.rs"));
    let (_, listed) = tests.split_once("\nexamples! {").expect("lists them");
    let names = listed.split('"').skip(1).step_by(2);
    let names: BTreeSet<String> = names.map(ToString::to_string).collect();
    assert_eq!(names, examples());
}

#[test]
fn the_facade_has_examples() {
    for (file, item) in FACADE {
        let text = read(&root().join(file));
        let (before, _) = text.split_once(item).expect("is there");
        let documentation = before.lines().rev().map(str::trim).take_while(|line| {
            line.is_empty() || line.starts_with("///") || line.starts_with("#[")
        });
        let shown = documentation
            .filter(|line| *line == "/// ```" || line.contains("include_str!(\"examples/"))
            .count();
        assert!(shown > 0, "{file}: `{item}..` has no example");
    }
}
