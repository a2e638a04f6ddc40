//! The fingerprint of what a package is built from, for build scripts: something else, other code on disk.

#![warn(missing_docs)]

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

mod lock;

/// Sets `EXACTILE_SOURCES` for the package that is built: its name, its version and a hash of 128 bits over the
/// names and bytes of all files in `src`, wherever the package came from, over the version of the compiler, and over
/// the packages below it in the lock file of the build, if that stands above the folder that is built in.
///
/// # Errors
/// When a file cannot be read, or the compiler does not tell its version.
pub fn export() -> io::Result<()> {
    let variable = |name| env::var(name).map_err(io::Error::other);
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files)?;
    files.sort();
    let (name, version) = (variable("CARGO_PKG_NAME")?, variable("CARGO_PKG_VERSION")?);
    let compiler = Command::new(variable("RUSTC")?).arg("-vV").output()?.stdout;
    let built_in = PathBuf::from(variable("OUT_DIR")?);
    let lock = built_in.ancestors().map(|folder| folder.join("Cargo.lock"));
    let lock = lock.into_iter().find(|file| file.is_file());
    let below = match &lock {
        Some(file) => lock::below(&fs::read_to_string(file)?, &name),
        None => String::new(),
    };
    // Fixed keys; another hash of another standard library costs a compilation.
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    let mut add = |part: &[u8]| {
        for half in &mut halves {
            half.write_usize(part.len());
            half.write(part);
        }
    };
    add(&compiler);
    add(below.as_bytes());
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy();
        add(name.as_bytes());
        add(&fs::read(file)?);
    }
    let [high, low] = halves.map(|half| half.finish());
    let changes = lock.map(|file| format!("cargo:rerun-if-changed={}", file.display()));
    let lines = [
        changes.unwrap_or_default(),
        "cargo:rerun-if-changed=src".to_string(),
        format!("cargo:rustc-env=EXACTILE_SOURCES={name} {version} {high:016x}{low:016x}"),
    ];
    io::Write::write_all(
        &mut io::stdout(),
        format!("{}\n", lines.join("\n")).as_bytes(),
    )
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
