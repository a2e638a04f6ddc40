//! What a compilation shows of itself, as the environment asks.
//!
//! `EXACTILE_LOG` is a list of words, with commas between them: `compile` prints a line for each code to standard error: how
//! it came about, how long that took, what it takes of a GPU. The name of a kernel, or `all`, also prints the IR after each
//! stage. `EXACTILE_DUMP_DIR` names a folder for the stages of the code that launches run and for its line, in a folder for
//! each kernel with what is known of its arguments. Kernels whose stages are shown are compiled and not taken from the disk.

use std::ffi::OsString;
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

use exactile_core::facts::{Boxed, Facts};
use exactile_core::ir::Func;
use exactile_core::target::Bounds;
use exactile_store::sum;

use crate::cuda::GridMapping;

/// Names what is printed.
const LOG: &str = "EXACTILE_LOG";

/// Names the folder of stages.
const FOLDER: &str = "EXACTILE_DUMP_DIR";

/// Which of the codes of a kernel this is, in words that can stand in the name of a file.
pub(crate) fn variant(bounds: Bounds, facts: &Facts, grid: GridMapping) -> String {
    let bounds = match bounds {
        Bounds::Checked => "checked",
        Bounds::Unchecked => "unchecked",
    };
    let apart = if facts.apart { "" } else { "-meeting" };
    let inside = if facts.inside { "" } else { "-outside" };
    let boxes = match facts.boxes {
        Boxed::Nothing => "",
        Boxed::Loads => "-boxes-in",
        Boxed::All => "-boxes",
    };
    format!("{bounds}{apart}{inside}{boxes}-{}", grid.name())
}

/// What of a compilation is shown.
#[derive(Clone, Default, Debug)]
pub(crate) struct Shown {
    kernel: String,
    /// A line for each code.
    lines: bool,
    /// The IR after each stage.
    stages: bool,
    /// Where files are written, if anywhere.
    folder: Option<PathBuf>,
    /// How the names of files begin.
    variant: String,
    /// Stages so far.
    count: usize,
}

impl Shown {
    /// What the environment asks for this kernel. Nothing is written before [`Shown::write_for`].
    pub(crate) fn of(kernel: &str) -> Self {
        Self::wanted(kernel, std::env::var_os(LOG))
    }

    fn wanted(kernel: &str, log: Option<OsString>) -> Self {
        let wanted = log.unwrap_or_default();
        let wanted = wanted.to_string_lossy();
        let mut words = wanted.split(',').map(str::trim);
        let stages = words.clone().any(|word| word == "all" || word == kernel);
        Self {
            kernel: kernel.to_string(),
            lines: stages || words.any(|word| word == "compile"),
            stages,
            ..Self::default()
        }
    }

    /// Has files be written for what launches run; `key` tells the kernel with what is known of its arguments.
    pub(crate) fn write_for(&mut self, key: impl FnOnce() -> String) {
        if let Some(named) = std::env::var_os(FOLDER).filter(|name| !name.is_empty()) {
            self.write_to(Path::new(&named), &key());
        }
    }

    fn write_to(&mut self, folder: &Path, key: &str) {
        let safe = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let name: String = self.kernel.chars().map(safe).collect();
        let key = sum(key);
        self.folder = Some(folder.join(format!("{name}-{}", &key[..12])));
    }

    /// The same for one of the codes that are made of a kernel.
    pub(crate) fn variant(&self, variant: &str) -> Self {
        Self {
            variant: format!("{variant}-"),
            count: 0,
            ..self.clone()
        }
    }

    /// Whether the stages are shown, and so are to run.
    pub(crate) fn has_stages(&self) -> bool {
        self.stages || self.folder.is_some()
    }

    /// Whether files are written.
    pub(crate) fn writes(&self) -> bool {
        self.folder.is_some()
    }

    /// Shows what a stage made.
    pub(crate) fn stage(&mut self, stage: &str, func: &Func) {
        if self.stages {
            // A log that nobody can read is no failure of the kernel.
            let _ = writeln!(stderr(), "; {} after {stage}\n{func}", self.kernel);
        }
        if self.writes() {
            self.count += 1;
            let name = format!("{:02}-{stage}.bir", self.count);
            self.file(&name, func.to_string().as_bytes());
        }
    }

    /// Writes a file where files are written.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) {
        let Some(folder) = &self.folder else {
            return;
        };
        let path = folder.join(format!("{}{name}", self.variant));
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, bytes));
        if let Err(error) = written {
            log::warn!("`{}` is not written: {error}", path.display());
        }
    }

    /// Prints a line where lines are printed, and writes it where files are written.
    pub(crate) fn line(&self, text: impl FnOnce() -> String) {
        if !self.lines && !self.writes() {
            return;
        }
        let text = format!("{}: {}", self.kernel, text());
        if self.lines {
            let _ = writeln!(stderr(), "exactile: {text}");
        }
        self.file("code.txt", format!("{text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_what_is_shown() {
        let wanted = |log: &str| Shown::wanted("softmax", Some(log.into()));
        assert!(!wanted("").lines && !wanted("sum").lines);
        assert!(wanted("compile").lines && !wanted("compile").has_stages());
        for log in ["all", "softmax", "sum,softmax", "compile, softmax"] {
            assert!(wanted(log).lines && wanted(log).has_stages(), "{log}");
        }
        assert!(!wanted("sum,softmax_rows").has_stages());
        assert!(wanted("sum,compile").lines && !wanted("sum,compile").has_stages());
    }

    #[test]
    fn each_kernel_has_a_folder_and_each_code_its_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shown = Shown::wanted("../sum", None);
        shown.file("none", b"");
        shown.write_to(folder.path(), "key");
        shown.variant("checked").file("ptx", b"text");
        let path = shown.folder.clone().expect("is there");
        assert_eq!(path.parent(), Some(folder.path()));
        let name = path.file_name().expect("is there").to_string_lossy();
        assert!(name.starts_with("___sum-") && name.len() == 19, "{name}");
        let text = fs::read(path.join("checked-ptx")).expect("is written");
        assert_eq!(text, b"text");
        shown.variant("checked").line(|| "compiled".to_string());
        let line = fs::read(path.join("checked-code.txt")).expect("is written");
        assert_eq!(line, b"../sum: compiled\n");
    }
}
