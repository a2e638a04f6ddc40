//! The command: results in files, and clear errors without partial output.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use exactile::{Array, ScheduleField, bf16};
use exactile_harness::npy;

const SCALE: &str = "func @scale block (%x: ptr<bf16>, %y: ptr<f32> write, %n: i64) {
  %p = program_id axis=0 : i64
  %four = constant value=i64(4) : i64
  %base = mul %p, %four : i64
  %start = splat %base : tile<4xi64>
  %lane = arange start=0, end=4 : tile<4xi64>
  %at = add %start, %lane : tile<4xi64>
  %limit = splat %n : tile<4xi64>
  %in = lt %at, %limit : tile<4xbool>
  %v = load %x, %at, mask=%in : tile<4xbf16>
  %w = cast %v : tile<4xf32>
  %two = constant value=f32(0x1p1) : tile<4xf32>
  %r = mul %w, %two : tile<4xf32>
  store %y, %at, %r, mask=%in
}
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cli_{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder is writable");
        std::fs::write(path.join("scale.bir"), SCALE).expect("the folder is writable");
        Self(path)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_exactile"))
            .current_dir(&self.0)
            .args(arguments)
            .output()
            .expect("the command starts")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a command that must fail, and checks its message and that no result appeared.
    fn fails(&self, arguments: &[&str], expected: &str) {
        let output = self.run(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(message.contains(expected), "{arguments:?}: {message}");
        assert!(!message.contains("panicked"), "{message}");
        assert!(output.stdout.is_empty());
        assert!(!self.path("out.npy").exists(), "{arguments:?} left a file");
    }
}

fn input(path: &Path) {
    let numbers: Vec<bf16> = (0..6).map(|i| bf16::from_f32(i as f32 - 2.5)).collect();
    let array = Array::from_slice([6], &numbers).expect("six elements");
    npy::write(path, &array).expect("the folder is writable");
}

#[test]
fn every_field_of_the_schedule_is_an_option() {
    let folder = Folder::new("schedule");
    for &field in ScheduleField::ALL {
        let row = field.row();
        let option = format!("--{}", row.name);
        let dump = ["dump", "scale.bir", "--stage", "lane", &option];
        let least = field.range().start().to_string();
        let output = folder.run(&[&dump[..], &[&least]].concat());
        assert!(output.status.success(), "{option}");
        let text = String::from_utf8_lossy(&output.stdout);
        let stated = text.contains(&format!(" {}={least}", row.name));
        assert!(stated || !row.kept, "{text}");
        folder.fails(
            &[&dump[..], &["0"]].concat(),
            &format!("`{}` is 0", row.name),
        );
    }
}

#[test]
fn a_kernel_runs_from_files_to_files() {
    let folder = Folder::new("runs");
    input(&folder.path("in.npy"));
    let output = folder.run(&[
        "run",
        "scale.bir",
        "--arg",
        "x=@in.npy",
        "--arg",
        "n=6",
        "--out",
        "y=@out.npy:f32[2,3]",
        "--grid",
        "2",
        "--device",
        "interp",
        "--json",
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let result = npy::read(&folder.path("out.npy")).expect("the result was written");
    assert_eq!(result.shape(), [2, 3]);
    let numbers: Vec<f32> = result.to_vec().expect("f32");
    assert_eq!(numbers, [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["kernel"], "scale");
    assert_eq!(report["outputs"][0]["shape"], serde_json::json!([2, 3]));
}

#[test]
fn wrong_arguments_are_clear_errors() {
    let folder = Folder::new("errors");
    input(&folder.path("in.npy"));
    let run = |rest: &[&'static str]| {
        let mut all = vec!["run", "scale.bir", "--device", "interp"];
        all.extend_from_slice(rest);
        all
    };
    let out = "y=@out.npy:f32[6]";
    folder.fails(
        &run(&[
            "--arg",
            "x=@in.npy",
            "--arg",
            "n=6",
            "--out",
            "y=@out.npy:f32[5]",
            "--grid",
            "2",
        ]),
        "accesses element 5 of `y`, which has 5",
    );
    folder.fails(
        &run(&["--arg", "x=@in.npy", "--out", out]),
        "parameter `n` has no argument",
    );
    folder.fails(
        &run(&["--arg", "x=@in.npy", "--arg", "n=6.5", "--out", out]),
        "argument `n`: `6.5` is no `i64`",
    );
    folder.fails(
        &run(&["--arg", "z=1", "--out", out]),
        "has no parameter `z`",
    );
    folder.fails(
        &run(&["--arg", "x=@absent.npy", "--out", out]),
        "`absent.npy`",
    );
    folder.fails(
        &run(&["--out", "y=@out.npy:f16[6]"]),
        "found `f16`, expected `f32`",
    );
    folder.fails(&run(&["--out", "y=@out.npy"]), "the type is missing");
    folder.fails(&run(&["--out", "x=@out.npy:bf16[6]"]), "does not write `x`");
    folder.fails(&run(&["--grid", "1,2,3,4"]), "found 4 extents");
    folder.fails(&["run", "absent.bir"], "`absent.bir`");
    folder.fails(
        &["run", "scale.bir", "--device", "tpu"],
        "unknown device `tpu`",
    );
}

/// Two programs write one element, which ends a run whose grid would not fit into memory as a list.
#[cfg(target_os = "linux")]
#[test]
fn the_widest_grid_needs_little_memory() {
    let folder = Folder::new("grid");
    let kernel = "func @k block (%y: ptr<i32> write) {
  %i = constant value=i64(0) : i64
  %p = program_id axis=0 : i64
  %v = cast %p : i32
  store %y, %i, %v
}
";
    std::fs::write(folder.path("k.bir"), kernel).expect("the folder is writable");
    for device in ["interp", "lanes"] {
        let run = format!(
            "ulimit -v 1000000; exec '{}' run k.bir --grid 4294967295 --device {device} \
             --out y=@out.npy:i32[1]",
            env!("CARGO_BIN_EXE_exactile")
        );
        let output = Command::new("bash")
            .current_dir(&folder.0)
            .args(["-c", &run])
            .output()
            .expect("bash starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("which program 0 wrote"), "{message}");
    }
}

#[test]
fn syntax_errors_name_the_place() {
    let folder = Folder::new("syntax");
    let broken = SCALE.replace("mul %w, %two", "mul %w, %tow");
    std::fs::write(folder.path("broken.bir"), broken).expect("the folder is writable");
    folder.fails(
        &["run", "broken.bir", "--device", "interp"],
        "broken.bir:13",
    );
}

/// Ready kernels have names, and what bulk copies and tensor cores do in them is text at each stage.
#[test]
fn ready_kernels_are_dumped_by_name() {
    let folder = Folder::new("ready");
    let run = |kernel: &str, stage: &str| {
        let options = ["--stage", stage, "--target", "sm_90a", "--unchecked"];
        let run = folder.run(&[&["dump", kernel][..], &options].concat());
        String::from_utf8(run.stdout).expect("is text")
    };
    for (stage, op) in [
        ("boxes", "load_box"),
        ("assign", "#l0 = layout"),
        ("lane", "copy_in"),
    ] {
        let text = run("tensor_matmul", stage);
        assert!(text.contains(op), "{text}");
    }
    assert!(run("softmax f16 61x1000", "trace").contains("ptr<f16>"));
}

/// What reproduces a failure of a compilation: the text of its first stage.
#[test]
fn a_dumped_stage_is_a_kernel_again() {
    let folder = Folder::new("dumped");
    for stage in ["trace", "block"] {
        let first = folder.run(&["dump", "softmax", "--stage", stage]).stdout;
        std::fs::write(folder.path("again.bir"), &first).expect("the folder is writable");
        let again = folder.run(&["dump", "again.bir", "--stage", "trace"]);
        assert!(again.status.success() && !first.is_empty());
        assert!(again.stdout == first, "{stage}");
        for code in ["lane", "clif"] {
            let made = folder.run(&["dump", "again.bir", "--stage", code]);
            let message = String::from_utf8_lossy(&made.stderr);
            assert!(
                made.status.success() && !made.stdout.is_empty(),
                "{message}"
            );
        }
    }
}

#[test]
fn the_ops_are_listed() {
    let output = Folder::new("ops").run(&["ops", "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = rows.as_array().expect("a list");
    let ops = rows.iter().filter(|row| row["kind"] != "composed");
    assert_eq!(ops.count(), exactile_core::ir::op::all_mnemonics().len());
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name);
    assert_eq!(
        row("reduce")["stages"],
        serde_json::json!(["block", "schedule"])
    );
    let has = |name: &str, dtype: &str| {
        let dtypes = row(name)["dtypes"].as_array().expect("a list");
        dtypes.iter().any(|found| found == dtype)
    };
    // `lgamma` has no definition for `f64`, and `exp` has one.
    assert!(has("exp", "f64") && has("lgamma", "bf16") && !has("lgamma", "f64"));
    assert!(has("and", "bool") && !has("and", "f32"));
    assert!(has("gelu", "bf16") && !has("gelu", "f64") && has("pow", "f64"));
    assert_eq!(row("exp")["exactness"], "exact");
    assert_eq!(row("approx_exp2")["exactness"], "device");
    let errors = row("exp")["accuracy"].as_array().expect("a list");
    assert!(
        errors
            .iter()
            .any(|error| error["dtype"] == "f32" && error["max_ulp"].as_f64() < Some(1.0))
    );
}

#[test]
fn products_are_drawn_and_compared() {
    let folder = Folder::new("products");
    let arguments = [
        "selftest",
        "products",
        "--only",
        "5",
        "--most",
        "5000",
        "--schedules",
        "2",
        "--device",
        "cpu",
        "--out",
        "found.json",
    ];
    let output = folder.run(&arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("1 problems, 4 results compared, 0 failures"),
        "{text}"
    );
    let report = std::fs::read_to_string(folder.path("found.json")).expect("is written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("is JSON");
    assert_eq!(
        (&report["from"], &report["compared"]),
        (&5.into(), &4.into())
    );
    assert_eq!(report["devices"]["cpu"]["settings"], 2);
}

#[test]
fn the_fuzzer_runs_cases_in_another_process() {
    let folder = Folder::new("fuzz");
    let output = folder.run(&["selftest", "fuzz", "--seconds", "1", "--seed", "3"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("cases of seed 3") && text.contains(": 0 findings"),
        "{text}"
    );
    let output = folder.run(&["selftest", "fuzz", "--only", "7"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 cases of seed 1"), "{text}");
}

#[test]
fn the_stages_of_compilations_are_timed() {
    let folder = Folder::new("compile");
    let arguments = ["compile", "--only", "vector_add", "--repetitions", "1"];
    let output = folder.run(&[&arguments[..], &["--json"]].concat());
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for row in rows.as_array().expect("a list") {
        assert!(row["stages"]["cranelift"].as_f64() > Some(0.0), "{row}");
        assert!(
            row["ms"].as_f64() > row["stages"]["lower"].as_f64(),
            "{row}"
        );
    }
}

#[test]
fn ready_kernels_are_tuned_within_a_budget_and_the_file_is_used_again() {
    let folder = Folder::new("tune");
    let tune = |more: &[&str]| {
        let fixed = [
            "tune",
            "--quick",
            "--device",
            "cpu",
            "--kernel",
            "vector_add",
            "--budget",
            "2",
        ];
        folder.run(&[&fixed[..], more].concat())
    };
    let first = tune(&[]);
    let table = String::from_utf8_lossy(&first.stdout).into_owned();
    assert!(
        first.status.success(),
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    assert!(
        table.starts_with("vector_add f32 [10007]\nrank    cold ms"),
        "{table}"
    );
    assert!(
        table.contains("\n   1 ") && table.contains("found on 20"),
        "{table}"
    );
    assert!(folder.path("winners.json").exists());
    let again = tune(&["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(report[0]["candidates"], 0, "the winner is that of the file");
    assert!(report[0]["ms"].as_f64().is_some_and(|ms| ms > 0.0));
    for word in ["driver", "sources", "date", "device", "config"] {
        assert!(report[0].get(word).is_some(), "{word} is not in {report}");
    }
    folder.fails(
        &["tune", "--kernel", "softmacks", "--device", "cpu"],
        "there is no kernel `softmacks`, expected `",
    );
    folder.fails(
        &["tune", "--budget=-1"],
        "expected seconds, from 0 to 1000000",
    );
    let help = folder.run(&["tune", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    for option in ["--budget", "--kernel", "--device", "--file", "--json"] {
        assert!(help.contains(option), "{help}");
    }
}

#[test]
fn a_crate_of_a_user_gets_the_same_commands() {
    let folder = Folder::new("command");
    let tests = std::env::current_exe().expect("has a path");
    let program = tests.with_file_name("../examples/command");
    let run = |arguments: &[&str]| {
        Command::new(&program)
            .args(arguments)
            .current_dir(&folder.0)
            .output()
            .expect("`cargo test` makes the examples, if `--test` does not say what to make")
    };
    let text = |output: &Output| {
        let told = String::from_utf8_lossy(&output.stderr);
        format!("{}{told}", String::from_utf8_lossy(&output.stdout))
    };
    let tuned = run(&["tune", "--device", "cpu", "--budget", "2"]);
    let told = text(&tuned);
    assert!(tuned.status.success(), "{told}");
    assert!(
        told.contains("doubles\nrank") && told.contains("sums\nrank"),
        "{told}"
    );
    assert!(
        told.contains("Config { block: 4096, schedule: Schedule }"),
        "{told}"
    );
    // What the library warns of is seen.
    std::fs::write(folder.path("odd.json"), "odd").expect("is writable");
    let warned = text(&run(&[
        "tune", "--device", "cpu", "--budget", "0", "--file", "odd.json",
    ]));
    let warning = "odd.json` is no file of winners and was renamed to `";
    assert!(
        warned.contains("warning: `") && warned.contains(warning),
        "{warned}"
    );
    let trace = text(&run(&["dump", "sums", "--stage", "trace"]));
    assert!(trace.starts_with("func @sum block ("), "{trace}");
    let lane = text(&run(&["dump", "doubles", "--stage", "lane"]));
    assert!(lane.starts_with("func @double lane"), "{lane}");
    let unknown = text(&run(&["dump", "sum", "--stage", "lane"]));
    assert_eq!(
        unknown,
        "error: there is no kernel `sum`, expected `doubles`, `sums`\n"
    );
    let help = text(&run(&["--help"]));
    assert!(
        ["tune", "build", "dump", "Kernels: doubles, sums"]
            .iter()
            .all(|it| help.contains(it)),
        "{help}"
    );
    #[cfg(not(feature = "nvptx"))]
    {
        let built = run(&["build", "--out", "built", "--target", "sm_90a"]);
        assert!(text(&built).contains("nvptx"), "{}", text(&built));
    }
}
