//! The benchmark's harness, on the CPU: rows, judgement, peers that answer and peers that fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A peer that knows one kernel and ends in the middle of the second.
const FAKE: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    todo = request["do"]
    if todo == "prepare" and request["kernel"] == "softmax":
        sys.exit(3)
    answer = {
        "hello": {"libraries": {"fake": "1"}, "missing": ["other: not there"]},
        "prepare": {"peers": ["fake"], "failed": {"second": "not compiled"}},
        "tune": {"peers": {"fake": {"block": 8}}, "failed": {"third": "wrong results"}},
        "round": {"ms": 2.0},
        "copy": {"ms": 1.0},
        "free": {},
    }[todo]
    print(json.dumps(answer), flush=True)
"#;

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bench_{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the folder is writable");
    path
}

fn bench(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_exactile"))
        .current_dir(folder)
        .args(["bench", "--quick", "--device", "cpu", "--rounds", "2"])
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("out.json")).expect("the report was written");
    serde_json::from_str(&text).expect("the report is JSON")
}

fn rows(report: &Value) -> &[Value] {
    report["rows"].as_array().expect("rows are listed")
}

#[test]
fn every_kernel_has_rows_with_the_promised_bits() {
    let folder = folder("rows");
    let output = bench(&folder, &["--peers", "none", "--out", "out.json"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let report = report(&folder);
    assert!(rows(&report).len() >= 18, "{message}");
    for row in rows(&report) {
        assert_eq!(row["passed"], true, "{row}");
        assert!(row["ms"].as_f64() > Some(0.0), "{row}");
        assert!(row["judged"].as_u64() > Some(0), "{row}");
        if row["determinism"] == "exact" {
            assert_eq!(row["bits_equal"], true, "{row}");
            assert!(row["ratio_checked"].as_f64() > Some(0.0), "{row}");
        }
    }
    assert_eq!(report["failures"], Value::Array(Vec::new()));
}

#[test]
fn settings_that_are_drawn_stand_beside_the_default() {
    let folder = folder("sample");
    let drawn = [
        "--sample",
        "5",
        "--seed",
        "7",
        "--only",
        "mean,softmax,vector_add",
    ];
    let output = bench(
        &folder,
        &[&drawn[..], &["--peers", "none", "--out", "out.json"]].concat(),
    );
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    for row in rows(&report(&folder)) {
        let sample = &row["sample"];
        if row["determinism"] != "exact" {
            assert_eq!(sample, &Value::Null, "{row}");
            continue;
        }
        assert!(row["ratio_default_to_sample"].as_f64() > Some(0.0), "{row}");
        let count = |name: &str| sample[name].as_u64().expect("a number");
        let refused = sample["refused"].as_object().expect("reasons are listed");
        let refused: u64 = refused.values().filter_map(Value::as_u64).sum();
        assert_eq!(
            count("drawn"),
            count("measured") + count("not_begun") + refused,
            "{row}"
        );
        let trials = sample["trials"].as_array().expect("trials are listed");
        assert_eq!(trials.len() as u64, count("measured"), "{row}");
        assert_eq!(count("seed"), 7);
    }
}

#[test]
fn peers_that_end_cost_their_figures_only() {
    let folder = folder("peers");
    std::fs::write(folder.join("peers.py"), FAKE).expect("the folder is writable");
    let kernels = [
        "--only",
        "vector_add,softmax,mean",
        "--peers",
        ".",
        "--out",
        "out.json",
    ];
    let output = bench(&folder, &kernels);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let report = report(&folder);
    for row in rows(&report) {
        if row["kernel"] == "softmax" {
            assert_eq!(row["peer"], Value::Null, "{row}");
            continue;
        }
        assert_eq!(row["peer"], "fake", "{row}");
        assert_eq!(row["peers"]["fake"]["ms"], 2.0, "{row}");
        assert_eq!(row["peers"]["fake"]["config"]["block"], 8, "{row}");
        let ratio = row["ratio_to_best_peer"].as_f64().expect("a number");
        let ms = row["ms"].as_f64().expect("a number");
        assert!((ratio * ms - 2.0).abs() < 1e-9, "{row}");
    }
    let notes = report["notes"].to_string();
    let wanted = [
        ("softmax", "the process ended"),
        ("mean", "second: not compiled"),
        ("vector_add", "third: wrong results"),
    ];
    for (kernel, reason) in wanted {
        let found = |note: &Value| {
            let note = note.as_str().unwrap_or_default();
            note.starts_with(kernel) && note.contains(reason)
        };
        let notes = report["notes"].as_array().expect("notes are listed");
        assert!(notes.iter().any(found), "{kernel}: {notes:?}");
    }
    assert!(notes.contains("other: not there"), "{notes}");
}

#[test]
fn peers_that_do_not_start_are_named() {
    let folder = folder("absent");
    let kernels = [
        "--only",
        "vector_add",
        "--python",
        "no-such-python",
        "--out",
        "out.json",
    ];
    let output = bench(&folder, &kernels);
    assert!(output.status.success());
    let notes = report(&folder)["notes"].to_string();
    assert!(notes.contains("no-such-python"), "{notes}");
}

#[test]
fn a_second_run_goes_on_with_the_report() {
    let folder = folder("resume");
    let all = ["--peers", "none", "--out", "out.json", "--resume"];
    let only = |kernel| [&all[..], &["--only", kernel]].concat();
    assert!(bench(&folder, &only("mean")).status.success());
    let before = report(&folder);
    let output = bench(&folder, &only("mean,sum_all"));
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "progress is for terminals");
    let after = report(&folder);
    assert_eq!(rows(&after).len(), 4);
    assert_eq!(rows(&after)[..2], *rows(&before));
}

/// Peers of launches.
const FAKE_LAUNCH: &str = r#"
import json
row = {"name": "vector add", "library": "fake", "median_us": 2.0, "least_us": 1.0, "times": 3}
print(json.dumps({"libraries": {"fake": "1"}, "rows": [row], "notes": ["other: not there"]}))
"#;

#[test]
fn launches_have_rows_beside_those_of_the_peers() {
    let folder = folder("launch");
    let bench = |peers: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_exactile"))
            .current_dir(&folder)
            .args(["bench", "launch", "--device", "cpu", "--batches", "2"])
            .args(["--processes", "1", "--out", "out.json", "--peers", peers])
            .output()
            .expect("the command starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        report(&folder)
    };
    std::fs::write(folder.join("launch.py"), FAKE_LAUNCH).expect("the folder is writable");
    let report = bench(".");
    let names: Vec<&str> = rows(&report)
        .iter()
        .map(|row| {
            assert!(
                row["median_us"].as_f64() >= row["least_us"].as_f64(),
                "{row}"
            );
            assert!(row["least_us"].as_f64() > Some(0.0), "{row}");
            row["name"].as_str().expect("rows have names")
        })
        .collect();
    for wanted in [
        "vector add, proved",
        "vector add, unchecked",
        "vector add, checked",
        "three tensors of ten, proved",
        "graph of 1,000 empty kernels, a node on the device",
        "first launch, nothing cached",
        "second variant, nothing cached",
        "vector add",
    ] {
        assert!(names.contains(&wanted), "{wanted}: {names:?}");
    }
    assert_eq!(report["libraries"]["fake"], "1");
    assert_eq!(report["notes"][0], "other: not there");
    std::fs::write(folder.join("launch.py"), "import nothing_of_the_kind")
        .expect("the folder is writable");
    let notes = bench(".")["notes"].to_string();
    assert!(notes.contains("nothing_of_the_kind"), "{notes}");
}

#[test]
fn levels_have_a_price_each() {
    let folder = folder("levels");
    let output = Command::new(env!("CARGO_BIN_EXE_exactile"))
        .current_dir(&folder)
        .args(["bench", "levels", "--quick", "--device", "cpu"])
        .args(["--rounds", "1", "--out", "levels.json", "--commit", "c"])
        .output()
        .expect("the command starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(folder.join("levels.json")).expect("it is written");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 10, "{report}");
    for row in rows {
        let levels = row["levels"].as_array().expect("levels");
        let names: Vec<&str> = levels
            .iter()
            .filter_map(|it| it["level"].as_str())
            .collect();
        let all = exactile::Determinism::ALL.map(|level| level.name());
        assert_eq!(names, all, "{row}");
        let is_time = |it: &Value| it["ms"].as_f64().is_some_and(|ms| ms > 0.0);
        assert!(levels.iter().all(is_time), "{row}");
    }
}

#[test]
fn a_cpu_has_no_bursts() {
    let folder = folder("regimes");
    let refused = |regime, message: &str| {
        let output = bench(&folder, &["--peers", "none", "--regime", regime]);
        assert!(!output.status.success());
        let found = String::from_utf8_lossy(&output.stderr);
        assert!(found.contains(message), "{found}");
    };
    refused("flushed,rested", "`--regime rested` is of a GPU");
    refused("idle", "there are `flushed`, `rested`, `sustained`");
}
