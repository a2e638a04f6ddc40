//! Says what sources the backend is made of and, with the feature `llvm`, links the static LLVM 22 libraries that the
//! NVPTX target needs.
//!
//! `EXACTILE_LLVM_DYNAMIC=1` links the shared library instead: quick edit loops, not for bundles.
use std::path::Path;
use std::process::Command;

const COMPONENTS: [&str; 10] = [
    "nvptxcodegen",
    "nvptxdesc",
    "nvptxinfo",
    "passes",
    "target",
    "bitwriter",
    "irreader",
    "linker",
    "analysis",
    "executionengine",
];

fn llvm_config(arguments: &[&str]) -> String {
    let output = Command::new("llvm-config-22").args(arguments).output().unwrap_or_else(|error| {
        panic!("feature `nvptx` needs LLVM 22: install the packages llvm-22-dev, libzstd-dev, zlib1g-dev and libffi-dev (llvm-config-22: {error})")
    });
    assert!(
        output.status.success(),
        "llvm-config-22 {arguments:?} failed"
    );
    String::from_utf8(output.stdout).expect("llvm-config prints UTF-8")
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=EXACTILE_LLVM_DYNAMIC");
    exactile_fingerprint::export().expect("the sources are read");
    if std::env::var_os("CARGO_FEATURE_LLVM").is_some() {
        link_llvm();
    }
}

fn link_llvm() {
    println!(
        "cargo:rustc-link-search=native={}",
        llvm_config(&["--libdir"]).trim()
    );
    if std::env::var_os("EXACTILE_LLVM_DYNAMIC").is_some() {
        println!("cargo:rustc-link-lib=dylib=LLVM-22");
        println!("cargo:rustc-link-lib=dylib=stdc++");
        return;
    }
    let mut arguments = vec!["--link-static", "--libnames"];
    arguments.extend(COMPONENTS);
    for library in llvm_config(&arguments).split_whitespace() {
        let name = library
            .strip_prefix("lib")
            .and_then(|name| name.strip_suffix(".a"));
        println!(
            "cargo:rustc-link-lib=static:-bundle={}",
            name.expect("an archive name")
        );
    }
    let output = Command::new("g++")
        .arg("-print-file-name=libstdc++.a")
        .output();
    let path = String::from_utf8(output.expect("feature `nvptx` needs g++").stdout);
    let path = path.expect("g++ prints UTF-8");
    let directory = Path::new(path.trim())
        .parent()
        .expect("libstdc++.a has a directory");
    println!("cargo:rustc-link-search=native={}", directory.display());
    println!("cargo:rustc-link-search=native=/usr/lib/x86_64-linux-gnu");
    for library in ["stdc++", "z", "zstd", "ffi"] {
        println!("cargo:rustc-link-lib=static:-bundle={library}");
    }
}
