//! The habits of the house that a machine can check.

mod unsafe_files;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::root;

use unsafe_files::UNSAFE_FILES;

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 60;

/// Lines of the facade, files of tests, the tuner and the command line apart.
const MAX_FACADE_LINES: usize = 16_000;

/// Lines of the tuner and the command line.
const MAX_TUNER_LINES: usize = 3_600;

/// Where these are.
const TUNER: &[&str] = &[
    "apart.rs",
    "autotune",
    "command",
    "ending.rs",
    "found.rs",
    "winners",
];

/// The packages that are for users: each public item says what it is.
const PUBLIC: &[&str] = &[
    "src",
    "store/src",
    "dsl-macros/src",
    "dsl-core/src",
    "backends/cranelift/src",
    "backends/nvptx/src",
    "kernels/src",
    "candle/src",
];

/// The packages, lowest level first. A package uses those of lower levels.
const LEVELS: &[&[&str]] = &[
    &["exactile-fingerprint", "exactile-store"],
    &["exactile-macros", "exactile-core"],
    &["exactile-cranelift", "exactile-nvptx"],
    &["exactile"],
    &["exactile-kernels"],
    &["exactile-harness"],
    &["exactile-cli"],
];

/// The rooms of `dsl-core`, lowest floor first. A room uses its own floor and those below.
const FLOORS: &[&[&str]] = &[
    &["entity", "diagnostic", "random"],
    &["ir", "target"],
    &["builder", "text", "verify"],
    &["semantics", "lang"],
    &["launch", "facts"],
    &["passes"],
    &["interp"],
    &["layout"],
    &["schedule"],
    &["lower"],
    &["pipeline"],
];

/// The rooms that ask the target about the machine.
const MACHINELESS: &[&str] = &[
    "dsl-core/src/layout/",
    "dsl-core/src/lower/",
    "dsl-core/src/passes/",
    "backends/cranelift/src/",
    "backends/nvptx/src/",
];

/// What a constant of a machine has in its name.
const OF_MACHINES: &[&str] = &[
    "ALIGN",
    "ALIGNMENT",
    "BANK",
    "BANKS",
    "BYTE",
    "BYTES",
    "CACHE",
    "LANE",
    "LANES",
    "LINE",
    "LINES",
    "REGISTER",
    "REGISTERS",
    "SECTOR",
    "VECTOR",
    "WARP",
    "WARPS",
];

/// The positions of the three kinds of bits in a list, which are no numbers of a machine.
const POSITIONS: &str = "dsl-core/src/layout/sorting.rs";

/// Every file that git knows or would add, relative to the root, with its text.
fn files() -> BTreeMap<String, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git lists the files");
    let names = String::from_utf8(output.stdout).expect("names are UTF-8");
    let read = |name: &str| fs::read_to_string(root().join(name)).ok();
    names
        .lines()
        .filter_map(|name| Some((name.to_string(), read(name)?)))
        .collect()
}

fn rust_files() -> BTreeMap<String, String> {
    files()
        .into_iter()
        .filter(|(name, _)| has_extension(name, "rs"))
        .collect()
}

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == extension)
}

fn assert_none(problems: Vec<String>) {
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn files_are_short_and_say_what_they_hold() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let lines = text.lines().count();
        if lines > MAX_FILE_LINES {
            problems.push(format!("{name}: {lines} lines, at most {MAX_FILE_LINES}"));
        }
        if !name.starts_with("tests/ui/") && !text.starts_with("//!") {
            problems.push(format!("{name}: the first line is not `//!`"));
        }
    }
    assert_none(problems);
}

#[test]
fn the_facade_is_small() {
    let files = rust_files();
    let is_counted = |name: &str| name.starts_with("src/") && !name.ends_with("/tests.rs");
    let is_tuner = |name: &str| TUNER.iter().any(|it| name["src/".len()..].starts_with(it));
    let counted = files.iter().filter(|(name, _)| is_counted(name));
    let (tuner, facade): (Vec<_>, Vec<_>) = counted.partition(|(name, _)| is_tuner(name));
    let lines = |files: &[(&String, &String)]| -> usize {
        files.iter().map(|(_, text)| text.lines().count()).sum()
    };
    let [tuner, facade] = [lines(&tuner), lines(&facade)];
    assert!(facade < MAX_FACADE_LINES, "the facade has {facade} lines");
    assert!(tuner < MAX_TUNER_LINES, "the tuner has {tuner} lines");
}

#[test]
fn public_packages_document_every_item() {
    let files = files();
    let silent = PUBLIC.iter().filter(|folder| {
        let root = files.get(&format!("{folder}/lib.rs"));
        !root.is_some_and(|text| text.contains("#![warn(missing_docs)]"))
    });
    assert_none(silent.map(ToString::to_string).collect());
}

/// Examples are what a user would write: no harness, and short.
#[test]
fn examples_are_short() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let lines = text.lines().count();
        let example = name.starts_with("examples/");
        if example && (lines > 40 || text.contains("exactile_harness")) {
            problems.push(format!("{name}: {lines} lines, or uses the harness"));
        }
        if text.contains(concat!("#[pa", "th = \"../../")) {
            problems.push(format!("{name}: includes a file of another package"));
        }
    }
    let readme = fs::read_to_string(root().join("README.md")).expect("is read");
    let softmax = fs::read_to_string(root().join("examples/softmax.rs")).expect("is read");
    let code = softmax.split_once("\n\n").map_or("", |(_, code)| code);
    if code.is_empty() || !readme.contains(code) {
        problems.push("README.md does not show examples/softmax.rs".to_string());
    }
    assert_none(problems);
}

/// `cargo test` runs each example, but for those that `tools/test` starts with arguments.
#[test]
fn examples_are_run() {
    let manifests = ["Cargo.toml", "kernels/Cargo.toml"]
        .map(|it| fs::read_to_string(root().join(it)).expect("is read"));
    let gate = fs::read_to_string(root().join("tools/test")).expect("is read");
    let examples = rust_files();
    let names = examples.keys().filter_map(|name| {
        let name = name.strip_prefix("examples/")?;
        name.strip_suffix(".rs")
    });
    let names: Vec<&str> = names.collect();
    let is_run = |name: &str| {
        let listed = format!(
            "[[example]]\nname = \"{name}\"\npath = \"../examples/{name}.rs\"\ntest = true\nharness = false\n"
        );
        let own = format!(
            "[[example]]\nname = \"{name}\"\nrequired-features = [\"{name}\"]\ntest = true\n"
        );
        let is_listed = manifests[1].contains(&listed) || manifests[0].contains(&own);
        let by_a_test = include_str!("cli.rs").contains(&format!("../examples/{name}\""));
        let by_the_gate = [
            format!("/examples/{name}\""),
            format!("/examples/lib{name}.so"),
        ];
        let by_the_gate = by_the_gate.iter().any(|it| gate.contains(it));
        // It needs a GPU.
        is_listed || by_the_gate || by_a_test || name == "cudarc"
    };
    let idle = names.iter().filter(|name| !is_run(name));
    assert_none(
        idle.map(|name| format!("examples/{name}.rs is not run"))
            .collect(),
    );
    assert!(names.len() > 12, "{names:?}");
}

struct Functions<'a> {
    file: &'a str,
    problems: Vec<String>,
}

impl Functions<'_> {
    fn check(&mut self, name: &syn::Ident, block: &syn::Block) {
        let span = block.span();
        let lines = span.end().line - span.start().line + 1;
        if lines > MAX_FUNCTION_LINES {
            self.problems.push(format!(
                "{}:{}: `{name}` has {lines} lines, at most {MAX_FUNCTION_LINES}",
                self.file,
                span.start().line
            ));
        }
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.check(&item.sig.ident, &item.block);
        syn::visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.check(&item.sig.ident, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn functions_are_short() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let Ok(file) = syn::parse_file(&text) else {
            continue;
        };
        let mut functions = Functions {
            file: &name,
            problems: Vec::new(),
        };
        functions.visit_file(&file);
        problems.extend(functions.problems);
    }
    assert_none(problems);
}

#[test]
fn text_is_clean() {
    let mut problems = Vec::new();
    let unfinished = concat!("TO", "DO");
    for (name, text) in files() {
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", number + 1);
            if line.ends_with(' ') && !has_extension(&name, "stderr") {
                problems.push(format!("{place}: trailing space"));
            }
            if line.contains('\t') && (has_extension(&name, "rs") || has_extension(&name, "bir")) {
                problems.push(format!("{place}: tab"));
            }
            if line.contains(unfinished) {
                problems.push(format!("{place}: unfinished work is no comment"));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn unsafe_code_stays_in_the_listed_files() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let uses = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            ["unsafe {", "unsafe impl", "unsafe extern"]
                .iter()
                .any(|word| code.contains(word))
        });
        if uses && !UNSAFE_FILES.contains(&name.as_str()) && !name.contains("tests/") {
            problems.push(format!("{name}: `unsafe` outside the listed files"));
        }
        for (number, _) in text.match_indices("unsafe {") {
            let before = &text[..number];
            let recent: String = before.lines().rev().take(8).collect();
            if UNSAFE_FILES.contains(&name.as_str()) && !recent.contains("SAFETY") {
                let line = before.lines().count();
                problems.push(format!("{name}:{line}: no SAFETY reason"));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn rooms_use_lower_floors_only() {
    let floor_of = |room: &str| FLOORS.iter().position(|floor| floor.contains(&room));
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let Some(path) = name.strip_prefix("dsl-core/src/") else {
            continue;
        };
        let room = path.split(['/', '.']).next().unwrap_or("");
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        if room == "lib" || is_test {
            continue;
        }
        let Some(own) = floor_of(room) else {
            problems.push(format!("{name}: room `{room}` is on no floor"));
            continue;
        };
        let production = text.split("#[cfg(test)]").next().unwrap_or("");
        let code = production
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let production = code.collect::<Vec<_>>().join("\n");
        for (index, _) in production.match_indices("crate::") {
            let rest = &production[index + "crate::".len()..];
            let used: String = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            match floor_of(&used) {
                Some(floor) if floor > own => {
                    problems.push(format!("{name}: `{room}` uses `{used}`, a higher floor"));
                }
                Some(_) | None => {}
            }
        }
    }
    assert_none(problems);
}

/// Every `const` of an integer or of an array of them counts, outside of tests, by the words of its name.
#[test]
fn machines_are_described_by_the_target_alone() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let test = name.contains("/tests") || name.ends_with("tests.rs") || name == POSITIONS;
        if test || !MACHINELESS.iter().any(|room| name.starts_with(room)) {
            continue;
        }
        let production = text.split("#[cfg(test)]").next().unwrap_or("");
        for line in production.lines() {
            let words = line.split_once("const ").map_or("", |(_, rest)| rest);
            let (constant, kind) = words.split_once(": ").unwrap_or_default();
            let kind = kind.trim_start_matches(['[', '&']);
            let number = ["u8", "u16", "u32", "u64", "usize", "i32", "i64"];
            let number = number.iter().any(|number| kind.starts_with(number));
            if number && constant.split('_').any(|word| OF_MACHINES.contains(&word)) {
                problems.push(format!("{name}: `{constant}` belongs to `Target`"));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn only_the_pipeline_lowers() {
    let mut problems = Vec::new();
    for (name, text) in rust_files() {
        let calls = ["sequential::lower(", "distributed::lower("];
        let is_room = name == "dsl-core/src/pipeline.rs" || name == "tests/suite/tidy.rs";
        if !is_room && calls.iter().any(|call| text.contains(call)) {
            problems.push(format!(
                "{name}: lowers a function, which `pipeline` alone does"
            ));
        }
    }
    assert_none(problems);
}

#[test]
fn crates_depend_one_way() {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo describes the workspace");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let mut problems = Vec::new();
    for package in metadata["packages"]
        .as_array()
        .expect("packages are listed")
    {
        let name = package["name"].as_str().expect("packages have names");
        let level = |name: &str| LEVELS.iter().position(|level| level.contains(&name));
        let Some(own) = level(name) else {
            problems.push(format!("package `{name}` is on no level"));
            continue;
        };
        for dependency in package["dependencies"]
            .as_array()
            .expect("dependencies are listed")
        {
            let used = dependency["name"]
                .as_str()
                .expect("dependencies have names");
            if used.starts_with("exactile") && level(used).is_none_or(|level| level >= own) {
                problems.push(format!("`{name}` must not depend on `{used}`"));
            }
        }
    }
    assert_none(problems);
}

/// Bindings of a later CUDA ask a driver for functions that it does not have, and panic.
#[test]
fn the_bindings_of_cuda_are_of_the_least_driver() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("is there");
    let line = manifest.lines().find(|line| line.starts_with("cudarc ="));
    let version = line.and_then(|line| line.split("\"cuda-").nth(1)?.split('"').next());
    let source = fs::read_to_string(root().join("backends/nvptx/src/driver.rs")).expect("is there");
    let least = source.split("LEAST_DRIVER: i32 = ").nth(1);
    let least = least.and_then(|rest| rest.split(';').next());
    assert!(version.is_some(), "`cudarc` states no version of CUDA");
    assert_eq!(version, least, "`cudarc` and `LEAST_DRIVER`");
}

#[test]
fn every_ui_test_states_its_errors() {
    let names: BTreeSet<String> = files().into_keys().collect();
    let missing = names
        .iter()
        .filter(|name| name.starts_with("tests/ui/") && has_extension(name, "rs"))
        .filter(|name| !names.contains(&name.replace(".rs", ".stderr")))
        .map(|name| format!("{name}: no .stderr file"));
    assert_none(missing.collect());
}

#[test]
fn the_readme_is_short() {
    for (name, limit) in [("README.md", 150), ("ARCHITECTURE.md", 200)] {
        let Ok(text) = fs::read_to_string(root().join(name)) else {
            continue;
        };
        let lines = text.lines().count();
        assert!(lines <= limit, "{name} has {lines} lines, at most {limit}");
    }
}
