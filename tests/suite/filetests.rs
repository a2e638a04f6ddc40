//! Runs the filetests. `BLESS=1` writes the generated ones and every result, from the interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use exactile_core::ir::Approximate;
use exactile_core::ir::op::{
    ORDER_OPS, SLOT_OPS, TRANSFER_OPS, WARP_OPS, WORKER_OPS, all_mnemonics,
};
use exactile_harness::testing::filetests::{self, Kind, Report};

fn root() -> PathBuf {
    crate::root().join("tests/filetests")
}

fn collect(folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "bir") {
            let name = path.strip_prefix(root()).expect("lies below the root");
            let text = fs::read_to_string(&path).expect("the file can be read");
            files.insert(name.to_string_lossy().replace('\\', "/"), text);
        }
    }
}

/// All filetests as they stand on disk.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    collect(&root(), &mut files);
    files
}

fn without_results(text: &str) -> String {
    let kept = text
        .lines()
        .filter(|line| !line.starts_with("; gives:") && !line.starts_with("; fails:"));
    kept.map(|line| format!("{line}\n")).collect()
}

fn blessing() -> bool {
    std::env::var("BLESS").is_ok_and(|value| value == "1")
}

fn write(name: &str, text: &str) {
    let path = root().join(name);
    fs::create_dir_all(path.parent().expect("has a folder")).expect("the folder can be made");
    fs::write(path, text).expect("the file can be written");
}

/// What became of all files, or of those whose path holds the text in `FILETEST`.
fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| {
        let only = std::env::var("FILETEST").unwrap_or_default();
        let on_disk = files();
        let mut all = on_disk.clone();
        if blessing() {
            for (name, text) in filetests::generate() {
                let old = all.entry(name).or_default();
                if without_results(old) != text {
                    *old = text;
                }
            }
        }
        all.retain(|name, _| name.contains(&only));
        if blessing() {
            for (name, text) in &mut all {
                *text = filetests::check(name, text).blessed;
                if Some(&*text) != on_disk.get(name) {
                    write(name, text);
                }
            }
        }
        let list: Vec<(&str, &str)> = all
            .iter()
            .map(|(name, text)| (&name[..], &text[..]))
            .collect();
        filetests::check_all(&list)
    })
}

#[test]
fn every_filetest_holds() {
    let report = report();
    for reason in &report.skipped {
        eprintln!("SKIPPED: {reason}");
    }
    eprintln!("{} runs compared", report.runs);
    let shown: Vec<_> = report.failures.iter().take(40).cloned().collect();
    assert!(
        report.failures.is_empty(),
        "{} failures:\n{}",
        report.failures.len(),
        shown.join("\n")
    );
}

#[test]
fn generated_filetests_are_fresh() {
    let files = files();
    for (name, text) in filetests::generate() {
        let found = files.get(&name).map(|text| without_results(text));
        assert!(
            found.as_ref() == Some(&text),
            "{name} is not what the op tables give; run the tests with BLESS=1"
        );
    }
}

#[test]
fn every_op_has_each_kind_of_filetest() {
    let report = report();
    let approximate = |mnemonic: &str| Approximate::from_mnemonic(mnemonic).is_some();
    let among = |rows: &[(&str, &str)], mnemonic| rows.iter().any(|(name, _)| *name == mnemonic);
    let is_index = |mnemonic: &str| ["lane_id", "warp_id"].contains(&mnemonic);
    let mut missing = Vec::new();
    for mnemonic in all_mnemonics() {
        for kind in [
            Kind::Roundtrip,
            Kind::Verify,
            Kind::VerifyError,
            Kind::Interp,
            Kind::RunCpu,
            Kind::RunLanes,
            Kind::RunCuda,
        ] {
            let needless = match kind {
                Kind::RunCpu => {
                    let of_gpus = [SLOT_OPS, ORDER_OPS, WARP_OPS, TRANSFER_OPS];
                    of_gpus.iter().any(|rows| among(rows, mnemonic))
                }
                // The device's own instruction gives bits of its own.
                Kind::RunLanes => approximate(mnemonic),
                // No backend has the ops of transfers yet.
                Kind::RunCuda => {
                    let without = [WORKER_OPS, TRANSFER_OPS];
                    approximate(mnemonic) || without.iter().any(|rows| among(rows, mnemonic))
                }
                Kind::VerifyError => is_index(mnemonic),
                Kind::Roundtrip | Kind::Verify | Kind::Interp => false,
            };
            if !needless && !report.covered.contains(&(mnemonic, kind)) {
                missing.push(format!("{mnemonic}: {kind:?}"));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "{} are missing:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

/// The page of the twenty programs names functions that are there, for each program one or more.
#[test]
fn the_twenty_programs_are_there() {
    let page = fs::read_to_string(crate::root().join("docs/schedule-programs.md"));
    let page = page.expect("is read");
    let files = files();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.filter(|row| row.starts_with(|it: char| it.is_ascii_digit()));
    let mut count = 0;
    for row in rows {
        let mut file = None;
        let mut functions = 0;
        for part in row.split(['(', ')', '`']) {
            if let Some(path) = part.strip_prefix("../tests/filetests/") {
                let text = files.get(path);
                file = Some(text.unwrap_or_else(|| panic!("no {path}")));
            } else if let Some(name) = part.strip_prefix('@') {
                let text = file.expect("a file stands before its functions");
                let is_there = text.contains(&format!("func @{name} "));
                assert!(is_there, "no `@{name}` as in: {row}");
                functions += 1;
            }
        }
        assert!(functions > 0, "no function: {row}");
        count += 1;
    }
    assert_eq!(count, 20);
}
