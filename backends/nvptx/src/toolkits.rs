//! Assemblers that toolkits and Python packages have left on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::assemble::{KEEPS_OPERANDS, cuda_of, version};

/// The newest `ptxas` of CUDA 13.3 or later that is found, looked for once a process.
pub(crate) fn newest() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        newest_of(places(
            &|name| std::env::var_os(name),
            Path::new("/usr/local"),
        ))
    };
    FOUND.get_or_init(find).as_deref()
}

/// Where a `ptxas` may be: in the toolkit that the environment names, in the folders of programs, in toolkits under `local`, and in the
/// packages of the Python environment that is active.
fn places(variable: &dyn Fn(&str) -> Option<OsString>, local: &Path) -> Vec<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut folders = Vec::new();
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(set(name).map(|home| PathBuf::from(home).join("bin")));
    }
    let programs = set("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&programs).filter(|folder| folder.is_absolute()));
    let toolkits = inside(local).into_iter();
    let toolkits =
        toolkits.filter(|it| named(it, |name| name == "cuda" || name.starts_with("cuda-")));
    folders.extend(toolkits.map(|toolkit| toolkit.join("bin")));
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let libraries = set(name).map(|root| inside(&PathBuf::from(root).join("lib")));
        let pythons = libraries.into_iter().flatten();
        let pythons = pythons.filter(|it| named(it, |name| name.starts_with("python")));
        folders.extend(pythons.map(|python| python.join("site-packages/nvidia/cu13/bin")));
    }
    let programs = folders.into_iter().map(|folder| folder.join("ptxas"));
    programs.filter(|it| it.is_file()).collect()
}

fn named(path: &Path, is: impl Fn(&str) -> bool) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(is)
}

/// What is in a folder, in order.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    paths.sort();
    paths
}

/// The newest of programs that keeps operands; of equals the first. One that does not run, or says no version, is none.
fn newest_of(places: Vec<PathBuf>) -> Option<PathBuf> {
    let mut asked = Vec::new();
    let mut best: Option<(i32, PathBuf)> = None;
    for place in places {
        let real = place.canonicalize().unwrap_or_else(|_| place.clone());
        if asked.contains(&real) {
            continue;
        }
        asked.push(real);
        let cuda = version(&place).ok().and_then(|it| cuda_of(&it));
        let better = |&cuda: &i32| {
            let least = best.as_ref().map_or(KEEPS_OPERANDS, |(best, _)| best + 1);
            cuda >= least
        };
        if let Some(cuda) = cuda.filter(better) {
            best = Some((cuda, place));
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program of a folder that says it is of this version.
    fn program(folder: &Path, says: &str) -> PathBuf {
        std::fs::create_dir_all(folder).expect("a folder can be made");
        let path = folder.join("ptxas");
        let script = format!("#!/bin/sh\necho 'Cuda compilation tools, release x, V{says}'\n");
        std::fs::write(&path, script).expect("a file can be written");
        let all = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, all).expect("a file can be made a program");
        path
    }

    #[test]
    fn the_newest_assembler_that_keeps_operands_is_found_where_toolkits_and_packages_have_it() {
        let root = std::env::temp_dir().join(format!("exactile-toolkits-{}", std::process::id()));
        let local = root.join("local");
        let old = program(&local.join("cuda/bin"), "13.0.88");
        let newer = program(&local.join("cuda-13.4/bin"), "13.4.1");
        program(&local.join("other/bin"), "14.0.0");
        let in_package = root.join("venv/lib/python3.11/site-packages/nvidia/cu13/bin");
        let wheel = program(&in_package, "13.5.37");
        let silent = program(&root.join("programs"), "none");
        let value = |name: &str| match name {
            "VIRTUAL_ENV" => Some(root.join("venv").into_os_string()),
            "PATH" => Some(root.join("programs").into_os_string()),
            "CUDA_HOME" => Some(local.join("cuda").into_os_string()),
            _ => None,
        };
        let found = places(&value, &local);
        let expected = [&old, &silent, &old, &newer, &wheel].map(Clone::clone);
        let chosen = [
            newest_of(found.clone()),
            newest_of(places(&|_| None, &local)),
            newest_of(vec![old, silent]),
        ];
        std::fs::remove_dir_all(&root).expect("a folder can be taken away");
        assert_eq!(found, expected);
        assert_eq!(chosen, [Some(wheel), Some(newer), None]);
    }
}
