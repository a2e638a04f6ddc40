//! Code of GPUs on disk: what one process made, the next one takes, and nothing else. No GPU is needed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Barrier;
use std::thread;

use exactile::internals::{CACHE_FOLDER, CACHE_SWITCH, Limits, Store, record};
use exactile::prelude::*;
use exactile::{Result, Target};
use serde_json::Value;

/// A folder of its own; the cache lies below.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("kept_{name}"));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder is writable");
        Self(path)
    }

    fn entries(&self) -> PathBuf {
        self.0.join("v1")
    }

    fn exactile(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_exactile"));
        command.args(arguments).env(CACHE_FOLDER, &self.0);
        command
            .env_remove(CACHE_SWITCH)
            .env_remove("EXACTILE_PTXAS");
        command.output().expect("the command starts")
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.exactile(arguments);
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{message}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The stages that a process of its own runs for each of three kernels.
    fn stages(&self) -> Vec<BTreeSet<String>> {
        let rows = self.json(&COMPILE);
        let rows = rows.as_array().expect("an array");
        assert_eq!(rows.len(), 3);
        let stages = |row: &Value| {
            let stages = row["stages"].as_object().expect("an object");
            stages.keys().cloned().collect()
        };
        rows.iter().map(stages).collect()
    }

    /// How many of the three were compiled.
    fn compiled(&self) -> usize {
        let stages = self.stages();
        let lowered = |stages: &&BTreeSet<String>| {
            let compiler = ["assign", "lower", "tidy_lanes", "llvm"];
            let ran = compiler.map(|stage| stages.contains(stage));
            assert!(ran == [true; 4] || ran == [false; 4], "{stages:?}");
            ran[0]
        };
        stages.iter().filter(lowered).count()
    }

    /// The files of entries.
    fn files(&self) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.entries()).expect("is there");
        let paths = listed.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == "entry"))
            .collect();
        files.sort();
        files
    }
}

const COMPILE: [&str; 9] = [
    "compile",
    "--target",
    "sm_90a",
    "--only",
    "vector_add",
    "--repetitions",
    "1",
    "--cached",
    "--json",
];

#[test]
fn another_process_runs_neither_the_lowering_nor_llvm() {
    let folder = Folder::new("process");
    assert_eq!(folder.compiled(), 3);
    assert_eq!(folder.files().len(), 3);
    assert_eq!(folder.compiled(), 0);
    let listing = folder.json(&["cache", "ls", "--json"]);
    let rows = listing["entries"].as_array().expect("an array");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(
            (&row["kernel"], &row["target"]),
            (&"vector_add".into(), &"sm_90a".into())
        );
        assert_eq!(row["problem"], Value::Null);
    }
    assert!(folder.exactile(&["cache", "verify"]).status.success());
    let text = folder.exactile(&["cache", "clear"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.starts_with("removed 3 entries, "), "{text}");
    assert_eq!(folder.files().len(), 0);
}

#[test]
fn damaged_entries_are_compiled_anew() {
    let folder = Folder::new("damage");
    assert_eq!(folder.compiled(), 3);
    let files = folder.files();
    let mut bytes = std::fs::read(&files[0]).expect("is read");
    let last = bytes.len() - 100;
    bytes[last] ^= 1;
    std::fs::write(&files[0], &bytes).expect("is mine");
    let whole = std::fs::read(&files[1]).expect("is read");
    std::fs::write(&files[1], &whole[..whole.len() / 2]).expect("is mine");
    // A writer that was killed left this.
    std::fs::write(folder.entries().join(".unfinished-x"), &whole).expect("is mine");
    let verified = folder.exactile(&["cache", "verify"]);
    assert_eq!(verified.status.code(), Some(1));
    let text = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert_eq!(text, "1 of 3 entries are whole\n");
    assert_eq!(folder.compiled(), 2);
    assert!(folder.exactile(&["cache", "verify"]).status.success());
    assert_eq!(folder.compiled(), 0);
}

#[test]
fn entries_of_another_compiler_are_left_alone() {
    let folder = Folder::new("compiler");
    let store = Store::at(folder.entries(), Limits::default());
    assert_eq!(folder.compiled(), 3);
    let packages = ["exactile 0.", "exactile-core 0.", "exactile-nvptx 0."];
    let entries = store.entries().expect("is read");
    assert_eq!(entries.len(), packages.len());
    for (entry, package) in entries.into_iter().zip(packages) {
        let key = entry.key.expect("is whole");
        let payload = store.find(&key).expect("is there");
        store.discard(&key);
        let line = key.lines().find(|line| line.starts_with("compiler "));
        let line = line.expect("names the compiler");
        assert!(packages.iter().all(|it| line.contains(it)), "{key}");
        let other = line.replacen(package, &package.replace('0', "9"), 1);
        store.keep(&key.replacen(line, &other, 1), &payload);
    }
    assert_eq!(folder.compiled(), 3);
    assert_eq!(folder.files().len(), 6);
    // Whole, but no code.
    for entry in store.entries().expect("is read") {
        store.keep(&entry.key.expect("is whole"), b"0\n\nkernel");
    }
    assert_eq!(folder.compiled(), 3);
    assert_eq!(folder.compiled(), 0);
}

#[test]
fn without_a_folder_all_is_compiled() {
    let folder = Folder::new("off");
    let compile = |folder: &Path, switch: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_exactile"));
        command
            .args(COMPILE)
            .env(CACHE_FOLDER, folder)
            .env(CACHE_SWITCH, switch);
        let output = command.output().expect("the command starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.contains("\"llvm\""),
            "{text}"
        );
    };
    compile(&folder.0, "off");
    assert!(!folder.entries().exists());
    let file = folder.0.join("file");
    std::fs::write(&file, "").expect("is written");
    for place in [&file, Path::new("/proc/none")] {
        compile(place, "on");
        compile(place, "on");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_exactile"));
    let off = command.args(["cache", "ls"]).env(CACHE_SWITCH, "off");
    let output = off.output().expect("the command starts");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("nothing is kept on disk"), "{message}");
}

#[kernel]
fn scale<const BLOCK: usize, const TIMES: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside) * TIMES as f64).mask(inside);
}

/// [`scale`], on other lines.
mod below {
    use super::*;

    #[kernel]
    pub(super) fn scale<const BLOCK: usize, const TIMES: usize>(
        x: Ptr<f32>,
        y: PtrMut<f32>,
        n: i32,
    ) {
        let at = program_id(0) * BLOCK + arange(0, BLOCK);
        let inside = at < n;
        store(y + at, load(x + at).mask(inside) * TIMES as f64).mask(inside);
    }
}

/// Compiles a launch, and says whether LLVM ran.
fn compile(
    store: &Store,
    launch: impl Fn(&Device, &Buffer<f32>, &mut Buffer<f32>) -> Result<()>,
) -> bool {
    let device = Device::lanes();
    let x = Buffer::zeros(&device, 32).expect("fits");
    let mut y = Buffer::zeros(&device, 32).expect("fits");
    let jobs = record(&device, || launch(&device, &x, &mut y)).expect("records");
    let times = jobs[0].compile_times(&Target::SM_90A, Some(store));
    let times = times.expect("compiles");
    times.iter().any(|stage| stage.name == "llvm")
}

/// Compiles `scale` by `times` for `n` elements, and says whether LLVM ran.
fn compile_scale(store: &Store, times: usize, n: i32) -> bool {
    compile(store, |device, x, y| {
        scale().block(8).times(times).run(device, 4, (x, y, n))
    })
}

#[test]
fn what_code_relies_on_is_part_of_the_key_and_lines_are_not() {
    let folder = Folder::new("key");
    let store = Store::at(folder.entries(), Limits::default());
    // 16 divides the count, 2 does, nothing does.
    for (times, n) in [(2, 32), (2, 18), (2, 17), (3, 32)] {
        assert!(compile_scale(&store, times, n), "{times} {n}");
        assert!(!compile_scale(&store, times, n), "{times} {n}");
    }
    assert!(!compile_scale(&store, 2, 16));
    let moved = compile(&store, |device, x, y| {
        below::scale().block(8).times(2).run(device, 4, (x, y, 32))
    });
    assert!(!moved);
    let schedule = exactile::Schedule::AUTO.warps(2);
    assert!(compile(&store, |device, x, y| {
        let kernel = scale().block(8).times(2).schedule(schedule);
        kernel.run(device, 4, (x, y, 32))
    }));
}

/// An entry with this key, a right checksum, and another payload than the compiler wrote.
#[test]
fn what_an_entry_says_is_not_believed() {
    let folder = Folder::new("foreign");
    let store = Store::at(folder.entries(), Limits::default());
    assert!(compile_scale(&store, 2, 32));
    let entries = store.entries().expect("is read");
    let key = entries[0].key.clone().expect("is whole");
    let payload = store.find(&key).expect("is there");
    // Two paragraphs of words stand before the code.
    let text = String::from_utf8_lossy(&payload).into_owned();
    let mut parts = text.splitn(3, "\n\n");
    let (sites, kernel) = (
        parts.next().expect("sites"),
        parts.next().expect("a kernel"),
    );
    let words: Vec<&str> = sites
        .split_whitespace()
        .chain(kernel.split_whitespace())
        .collect();
    assert!(words.len() > 20, "{words:?}");
    let mut taken = Vec::new();
    let mut at = 0;
    for word in words {
        at += text[at..].find(word).expect("is there");
        for other in ["0", "4294967295", "x"] {
            let changed = [
                &payload[..at],
                other.as_bytes(),
                &payload[at + word.len()..],
            ]
            .concat();
            store.keep(&key, &changed);
            if !compile_scale(&store, 2, 32) && word != other {
                taken.push(format!("{word} {other}"));
            }
            assert_eq!(store.entries().expect("is read").len(), 1);
        }
        at += word.len();
    }
    // Names of parameters, their divisors, and lines of sites and of parameters: a launch compares them, or messages
    // have them.
    for refused in [
        "kernel",
        "scale",
        "direct",
        "text",
        "parameter",
        "pointer",
        "number",
        "f32",
    ] {
        let found = taken
            .iter()
            .find(|it| it.split(' ').next() == Some(refused));
        assert_eq!(found, None, "{taken:?}");
    }
    assert!(taken.len() < 30, "{taken:?}");
}

/// Set in the processes that [`processes_and_threads_share_a_folder`] starts.
const CHILD: &str = "EXACTILE_TEST_KEPT";

#[test]
fn processes_and_threads_share_a_folder() {
    const TEST: &str = "kept::processes_and_threads_share_a_folder";
    let compile_all = |folder: &Path| {
        let begin = Barrier::new(16);
        thread::scope(|scope| {
            for thread in 0..16 {
                let begin = &begin;
                scope.spawn(move || {
                    let store = Store::at(folder, Limits::default());
                    begin.wait();
                    for step in 0..3 {
                        compile_scale(&store, 2 + (thread + step) % 3, 32);
                    }
                });
            }
        });
    };
    if let Some(folder) = std::env::var_os(CHILD) {
        return compile_all(Path::new(&folder));
    }
    let folder = Folder::new("shared");
    let start = || {
        let mut child = Command::new(std::env::current_exe().expect("has a name"));
        child.args(["--exact", TEST]).env(CHILD, folder.entries());
        child.spawn().expect("starts")
    };
    for mut child in [start(), start()] {
        assert!(child.wait().expect("ends").success());
    }
    let store = Store::at(folder.entries(), Limits::default());
    for entry in store.entries().expect("is read") {
        assert!(entry.key.is_ok(), "{entry:?}");
    }
    assert_eq!(folder.files().len(), 3);
    for times in 2..5 {
        assert!(!compile_scale(&store, times, 32), "{times}");
    }
}
