//! The cases of Triton's test suite: they hold on every device of the host, and the page lists them all.

use std::collections::BTreeSet;
use std::fs;

use exactile_harness::testing::conformance::{self, CHECKS, HELD, Outcome};

use crate::language::devices;

#[test]
fn cases_hold() {
    let mut problems = Vec::new();
    for (name, outcome) in conformance::run(&devices()) {
        match outcome {
            Ok(0) => problems.push(format!("{name}: nothing was compared")),
            Ok(_) => {}
            Err(error) => problems.push(format!("{name}: {error}")),
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_case_has_an_outcome() {
    let (mut used, mut held) = (BTreeSet::new(), BTreeSet::new());
    for (case, outcome) in conformance::sections().flat_map(|(_, cases)| cases.iter()) {
        match *outcome {
            Outcome::Runs(check) => {
                used.insert(check);
            }
            Outcome::Elsewhere(test) => {
                held.insert(test);
                let (path, function) = test.split_once("::").unwrap_or((test, ""));
                let text = fs::read_to_string(crate::root().join(path));
                let text = text.unwrap_or_else(|error| panic!("{case}: {path}: {error}"));
                // A macro names its tests in rows.
                let named = [format!("fn {function}()"), format!("\n    {function} ")];
                let is_filetest = path.ends_with(".bir") && function.is_empty();
                let found = is_filetest || named.iter().any(|name| text.contains(name));
                assert!(found, "{case}: no test `{test}`");
            }
            Outcome::NotYet(reason) | Outcome::Pointless(reason) => {
                assert!(!reason.is_empty(), "{case} has no reason");
            }
        }
    }
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(used, names);
    let names: BTreeSet<&str> = HELD.iter().map(|held| held.test).collect();
    assert_eq!(held, names, "the tests of which rows say where they run");
}

#[test]
fn the_page_of_cases_is_fresh() {
    let path = crate::root().join("docs/conformance.md");
    let page = conformance::page();
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/conformance.md is stale: run `BLESS=1 cargo test --test suite conformance`"
    );
}
