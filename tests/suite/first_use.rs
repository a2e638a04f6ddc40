//! A first use: a package that did not exist, with Exactile by its path, runs the kernel of the README.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::root;

/// A new folder outside of this workspace, to which `cargo new` would add what is made inside.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("exactile-first-use-{}", std::process::id()));
        fs::create_dir(&path).expect("is new");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `cargo`, which must succeed. It fetches nothing, and finds dependencies that the tests have made.
fn cargo(folder: &Path, arguments: &[&OsStr]) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg("--offline")
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target.expect("lies in a folder"));
    let output = command.output().expect("cargo starts");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
}

/// The code of the README.
fn readme() -> String {
    let text = fs::read_to_string(root().join("README.md")).expect("is read");
    let parts: Vec<&str> = text.split("```rust\n").collect();
    let [_, code] = parts[..] else {
        panic!("the README has {} blocks of Rust", parts.len() - 1);
    };
    let (code, _) = code.split_once("```\n").expect("the block ends");
    assert!(code.contains("fn main()"), "{code}");
    code.to_string()
}

/// The profile of this workspace for dependencies, which are made already, and the least work for what is made anew.
fn profile() -> Vec<String> {
    let mut settings = vec![
        "debug=false".to_string(),
        "package.\"*\".opt-level=2".to_string(),
        "package.\"*\".debug=false".to_string(),
    ];
    for package in ["", "-core", "-cranelift", "-store"] {
        settings.push(format!("package.exactile{package}.opt-level=0"));
    }
    let flags = settings
        .iter()
        .map(|it| format!("--config=profile.dev.{it}"));
    flags.collect()
}

#[test]
fn a_new_package_runs_the_kernel_of_the_readme() {
    let folder = Folder::new();
    let new = ["new", "--quiet", "first_use"].map(OsStr::new);
    cargo(&folder.0, &new);
    let package = folder.0.join("first_use");
    let add = ["add", "--quiet", "--path"].map(OsStr::new);
    cargo(&package, &[&add[..], &[root().as_os_str()]].concat());
    // The same versions as here, which this machine has.
    fs::copy(root().join("Cargo.lock"), package.join("Cargo.lock")).expect("is writable");
    let main = package.join("src/main.rs");
    fs::write(&main, readme()).expect("is writable");
    let profile = profile();
    let run: Vec<&OsStr> = [OsStr::new("run"), OsStr::new("--quiet")]
        .into_iter()
        .chain(profile.iter().map(OsStr::new))
        .collect();
    cargo(&package, &run);
}
