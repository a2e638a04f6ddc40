//! The cases of Triton's test suite: they hold on every device of the host, each name has its row, and the page lists
//! them all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use exactile_harness::testing::conformance::{self, CHECKS, HELD, Outcome, Report, RowNames};

use crate::language::devices;

#[test]
fn cases_hold() {
    let mut problems = Vec::new();
    for check in conformance::run(&devices(), "") {
        let name = &check.name;
        match &check.error {
            Some(error) => problems.push(format!("{name}: {error}")),
            None if check.compared() == 0 => problems.push(format!("{name}: nothing was compared")),
            None => {}
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_case_has_an_outcome() {
    let (mut used, mut held) = (BTreeSet::new(), BTreeSet::new());
    for (case, outcome) in conformance::sections().flat_map(|(_, cases)| cases.iter()) {
        if let Outcome::Partly(_, left_out) = outcome {
            assert!(!left_out.is_empty(), "{case} has no reason");
        }
        match *outcome.whole() {
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
            Outcome::Pointless(reason) => {
                assert!(!reason.is_empty(), "{case} has no reason");
            }
            Outcome::Partly(..) => panic!("{case} is twice in part"),
        }
    }
    let names: BTreeSet<&str> = CHECKS.iter().map(|check| check.name).collect();
    assert_eq!(used, names);
    let names: BTreeSet<&str> = HELD.iter().map(|held| held.test).collect();
    assert_eq!(held, names, "the tests of which rows say where they run");
}

/// Each name is in one row, or in rows that say which part of it they are about; and rows have no other names.
#[test]
fn the_list_of_names_and_the_rows_match() {
    let mut rows: BTreeMap<String, Vec<(&str, bool)>> = BTreeMap::new();
    rows.extend(
        conformance::names()
            .into_iter()
            .map(|name| (name, Vec::new())),
    );
    for (case, _) in conformance::sections().flat_map(|(_, cases)| cases.iter()) {
        let of = RowNames::of(case);
        for pattern in &of.patterns {
            let mut found = false;
            for (name, rows) in &mut rows {
                if pattern.matches(name) {
                    found = true;
                    rows.push((case, of.partial));
                }
            }
            assert!(
                found,
                "`{case}` has a name that is not in the list: {pattern:?}"
            );
        }
    }
    for (name, rows) in &rows {
        assert!(!rows.is_empty(), "`{name}` has no row");
        let apart = rows.len() == 1 || rows.iter().all(|&(_, partial)| partial);
        assert!(apart, "`{name}` has several rows: {rows:?}");
    }
}

/// A report that is kept reads back, and the page tells a GPU only by what ran there.
#[test]
fn a_report_of_a_gpu_is_told_by_the_page() {
    let here = conformance::run(&devices(), "grids");
    assert_eq!(here.len(), 1);
    let report = Report::new("0123abc", &devices(), here);
    let told = |report: &Report| -> String {
        let page = conformance::page(Some(report));
        let row = page.lines().find(|line| line.starts_with("| grids |"));
        row.unwrap_or_default().to_string()
    };
    assert!(told(&report).ends_with("| not yet run |"));
    let text = report.to_json().expect("is written");
    let gpu = text
        .replace("\"lanes\":", "\"GPU\":")
        .replace("\"error\": null", "\"error\": \"other bits\"");
    let mut gpu: Report = serde_json::from_str(&gpu).expect("is read");
    assert!(told(&gpu).ends_with("| FAILED |"));
    gpu.checks[0].error = None;
    assert!(told(&gpu).ends_with("| yes |"));
    assert!(conformance::page(Some(&gpu)).contains("built from commit 0123abc"));
}

#[test]
fn the_page_of_cases_is_fresh() {
    let path = crate::root().join("docs/conformance.md");
    let report = fs::read_to_string(crate::root().join("benches/results/gpu-conformance.json"));
    let report: Option<Report> = report
        .ok()
        .map(|text| serde_json::from_str(&text).expect("is a report"));
    let page = conformance::page(report.as_ref());
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/conformance.md is stale: run `BLESS=1 cargo test --test suite conformance`"
    );
}
