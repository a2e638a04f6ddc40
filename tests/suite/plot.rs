//! Charts of reports: each row is drawn, and what cannot be drawn is an error.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::root;

fn plot(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_exactile"))
        .current_dir(root())
        .arg("plot")
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A report with the searches of two kernels, in a file of its own.
fn measured(name: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_exactile"))
        .args([
            "bench", "--quick", "--device", "cpu", "--rounds", "1", "--peers", "none",
        ])
        .args(["--only", "softmax,vector_add", "--out"])
        .arg(&file)
        .output()
        .expect("the command starts");
    text(&output);
    file
}

#[test]
fn kernels_stand_under_the_roof() {
    let report = "benches/results/h200.json";
    let svg = text(&plot(&["roofline", report, "--peak", "67"]));
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(
        svg.matches("<circle ").count(),
        svg.matches("% of the roof</title>").count()
    );
    // Kernels that move and order numbers compute nothing.
    assert!(
        svg.contains("softmax bf16 4096x32768: ") && !svg.contains("gather"),
        "{svg}"
    );
    // A slope, and the flat part.
    assert_eq!(svg.matches("class=\"roof\"").count(), 2, "{svg}");
    let slow = text(&plot(&["roofline", report, "--bandwidth", "9600"]));
    let shares = |svg: &str| svg.contains("memory: 9600 GB/s");
    assert!(shares(&slow) && !shares(&svg));
    let refused = plot(&["roofline", report, "--peak", "0"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("above zero"),
        "{said}"
    );
}

#[test]
fn searches_are_bars() {
    let file = measured("searches.json");
    let report = file.to_str().expect("a name");
    let svg = text(&plot(&["tuning", report, "--only", "softmax f32"]));
    assert!(
        svg.contains("softmax f32 ") && !svg.contains("vector_add"),
        "{svg}"
    );
    // The best one is marked; all have a time.
    assert!(svg.matches("class=\"exact\"").count() >= 1, "{svg}");
    assert!(svg.contains("1.00 times the best"), "{svg}");
    let refused = plot(&["tuning", report, "--only", "convolution"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("`convolution`"),
        "{said}"
    );
    let old = plot(&["tuning", "benches/results/h200.json", "--only", "softmax"]);
    let said = String::from_utf8_lossy(&old.stderr).into_owned();
    assert!(
        !old.status.success() && said.contains("measure it anew"),
        "{said}"
    );
}

#[test]
fn sizes_are_dots_of_each_kernel() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sizes.json");
    let output = Command::new(env!("CARGO_BIN_EXE_exactile"))
        .args(["bench", "--quick", "--sizes", "--device", "cpu"])
        .args(["--rounds", "1", "--peers", "none", "--out"])
        .arg(&file)
        .output()
        .expect("the command starts");
    text(&output);
    let svg = text(&plot(&["sizes", file.to_str().expect("a name")]));
    // Two kernels of two sizes each, and no peers.
    assert_eq!(svg.matches("class=\"exact\"").count(), 4, "{svg}");
    assert_eq!(svg.matches("class=\"peer\"").count(), 0, "{svg}");
    assert!(!svg.contains("NaN"), "{svg}");
    for about in ["softmax f32 4x1024: ", "vector_add f32 1024: ", ">2^12<"] {
        assert!(svg.contains(about), "{about}: {svg}");
    }
    let one = measured("one-size.json");
    let refused = plot(&["sizes", one.to_str().expect("a name")]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("--sizes"),
        "{said}"
    );
}

#[test]
fn what_is_no_report_of_the_benchmark_is_refused_by_its_name() {
    let refused = plot(&["tuning", "benches/results/h100-tuning.json"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && message.contains("not a report of `exactile bench --out`: "),
        "{message}"
    );
}
