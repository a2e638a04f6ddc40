//! The fingerprint of a package's sources, for build scripts: other sources, other code on disk.

#![warn(missing_docs)]

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Sets `EXACTILE_SOURCES` for the package that is built: its name, its version and a hash of 128 bits over the
/// names and bytes of all files in `src`, wherever the package came from.
///
/// # Errors
/// When a file cannot be read.
pub fn export() -> io::Result<()> {
    let variable = |name| env::var(name).map_err(io::Error::other);
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files)?;
    files.sort();
    // Fixed keys; another hash of another standard library costs a compilation.
    let mut halves = [DefaultHasher::new(), DefaultHasher::new()];
    halves[1].write_u8(1);
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy();
        let bytes = fs::read(file)?;
        for half in &mut halves {
            for part in [name.as_bytes(), &bytes] {
                half.write_usize(part.len());
                half.write(part);
            }
        }
    }
    let [high, low] = halves.map(|half| half.finish());
    let (name, version) = (variable("CARGO_PKG_NAME")?, variable("CARGO_PKG_VERSION")?);
    let lines = [
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
