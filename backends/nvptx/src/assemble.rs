//! NVIDIA's assembler and disassembler, for checks of the machine code without a GPU.
//!
//! Nothing at run time needs them: the driver compiles PTX itself, unless a `ptxas` is named.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::generator;
use crate::inlined::explained;
use crate::ptx::{Ptx, names_lines};

/// Names a `ptxas`, which then assembles all kernels.
const PTXAS: &str = "EXACTILE_PTXAS";

/// The first CUDA whose assembler gives registers of lanes to nothing else while products of groups of warps read them, as drivers
/// count. Source: release notes of CUDA 13.3.
const KEEPS_OPERANDS: i32 = 13030;

/// The programs `ptxas` and `nvdisasm`.
#[derive(Clone, Debug)]
pub struct Assembler {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
}

/// What became of a PTX text.
#[derive(Clone, Debug)]
pub struct Assembled {
    /// The disassembled machine code.
    pub sass: String,
    /// What `ptxas -v` says: registers, stack, spills.
    pub report: String,
}

impl Assembler {
    /// The programs: `ptxas` of `EXACTILE_PTXAS` with its neighbour, else those of the virtual
    /// environment `.venv` in `root` or a folder above it.
    pub fn find(root: &Path) -> Option<Self> {
        if let Some(ptxas) = named() {
            let folder = ptxas.parent()?.to_path_buf();
            return Self::in_folder(&folder);
        }
        root.ancestors().find_map(|folder| {
            let libraries = std::fs::read_dir(folder.join(".venv/lib")).ok()?;
            let mut pythons: Vec<PathBuf> = libraries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            pythons.sort();
            pythons
                .iter()
                .find_map(|python| Self::in_folder(&python.join("site-packages/nvidia/cu13/bin")))
        })
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let (ptxas, nvdisasm) = (folder.join("ptxas"), folder.join("nvdisasm"));
        (ptxas.is_file() && nvdisasm.is_file()).then_some(Self { ptxas, nvdisasm })
    }

    /// The versions of LLVM and of the assembler, which the machine code depends on.
    pub fn versions(&self) -> Result<String> {
        Ok(format!("{}, ptxas {}", generator(), version(&self.ptxas)?))
    }

    /// Assembles PTX and disassembles the result, with temporary files in `folder`.
    pub fn assemble(&self, ptx: &str, folder: &Path, name: &str) -> Result<Assembled> {
        let (source, cubin) = (
            folder.join(format!("{name}.ptx")),
            folder.join(format!("{name}.cubin")),
        );
        let io = |error: std::io::Error| in_folder(folder, &error);
        std::fs::create_dir_all(folder).map_err(io)?;
        std::fs::write(&source, ptx).map_err(io)?;
        let architecture = architecture(ptx);
        let mut arguments = vec![
            OsStr::new(&architecture),
            OsStr::new("-v"),
            source.as_os_str(),
            OsStr::new("-o"),
            cubin.as_os_str(),
        ];
        arguments.extend(line_table(ptx));
        let (_, report) = assembled(&self.ptxas, ptx, &arguments)?;
        let (sass, _) = run(&self.nvdisasm, &[OsStr::new("-c"), cubin.as_os_str()])?;
        Ok(Assembled { sass, report })
    }
}

impl Ptx {
    /// Has the `ptxas` that `EXACTILE_PTXAS` names make machine code; whether it names one. Without one, the driver
    /// assembles.
    ///
    /// # Errors
    /// When the assembler does not run or refuses the text.
    pub fn assemble(&mut self) -> Result<bool> {
        self.machine_code = machine_code(&self.text)?;
        Ok(self.machine_code.is_some())
    }
}

/// Whether what assembles kernels gives registers of lanes to nothing else while products of groups of warps read them: the `ptxas`
/// that `EXACTILE_PTXAS` names, else that of a driver for this CUDA. One whose version nobody knows may not.
pub fn keeps_operands(driver: Option<i32>) -> bool {
    let cuda = match named() {
        Some(ptxas) => version(&ptxas).ok().and_then(|it| cuda_of(&it)),
        None => driver,
    };
    cuda.is_some_and(|cuda| cuda >= KEEPS_OPERANDS)
}

/// What `EXACTILE_PTXAS` names.
fn named() -> Option<PathBuf> {
    let name = std::env::var_os(PTXAS).filter(|name| !name.is_empty());
    name.map(PathBuf::from)
}

/// The version of a `ptxas`, such as 13.0.88.
fn version(ptxas: &Path) -> Result<String> {
    let (text, _) = run(ptxas, &[OsStr::new("--version")])?;
    let release = text.split(" V").nth(1).unwrap_or_default();
    let release = release.split_whitespace().next().unwrap_or_default();
    Ok(release.to_string())
}

/// The CUDA of a version, as drivers count.
fn cuda_of(version: &str) -> Option<i32> {
    let mut parts = version.split('.').map(|part| part.parse::<i32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    major.checked_mul(1000)?.checked_add(minor.checked_mul(10)?)
}

/// Machine code by the `ptxas` that `EXACTILE_PTXAS` names; nothing where it names none, and the driver
/// assembles.
///
/// The driver assembles one kernel at a time, whatever the threads; this runs on all of them.
///
/// # Errors
/// When the assembler does not run or refuses the text.
pub fn machine_code(ptx: &str) -> Result<Option<Vec<u8>>> {
    let Some(ptxas) = named() else {
        return Ok(None);
    };
    let folder = new_folder()?;
    let code = cubin(&ptxas, ptx, &folder);
    // What is left behind harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    code.map(Some)
}

/// The `ptxas` that `EXACTILE_PTXAS` names, by its path, size and time of change; nothing where it names none.
///
/// # Errors
/// When there is no such file.
pub fn assembler() -> Result<Option<String>> {
    let Some(path) = named() else {
        return Ok(None);
    };
    let absent = |error: std::io::Error| in_folder(&path, &error);
    let metadata = path.metadata().map_err(absent)?;
    let changed = metadata.modified().map_err(absent)?;
    let size = metadata.len();
    Ok(Some(format!("{} {size} {changed:?}", path.display())))
}

/// A folder of its own: of what others left behind, or use now in another container, none is touched.
fn new_folder() -> Result<PathBuf> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    loop {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let name = format!("exactile-{}-{turn}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(in_folder(&folder, &error)),
        }
    }
}

/// The option for a table of lines, which changes no instruction.
fn line_table(ptx: &str) -> Option<&'static OsStr> {
    names_lines(ptx).then(|| OsStr::new("-lineinfo"))
}

/// The option for the architecture that the text names.
fn architecture(ptx: &str) -> String {
    let mut lines = ptx.lines();
    let name = lines.find_map(|line| line.strip_prefix(".target "));
    let name = name.and_then(|names| names.split(',').next());
    format!("-arch={}", name.unwrap_or_default().trim())
}

fn cubin(ptxas: &Path, ptx: &str, folder: &Path) -> Result<Vec<u8>> {
    let (source, code) = (folder.join("kernel.ptx"), folder.join("kernel.cubin"));
    std::fs::write(&source, ptx).map_err(|error| in_folder(folder, &error))?;
    let architecture = architecture(ptx);
    let mut arguments = vec![
        OsStr::new(&architecture),
        source.as_os_str(),
        OsStr::new("-o"),
        code.as_os_str(),
    ];
    arguments.extend(line_table(ptx));
    assembled(ptxas, ptx, &arguments)?;
    std::fs::read(&code).map_err(|error| in_folder(folder, &error))
}

fn in_folder(folder: &Path, error: &std::io::Error) -> Error {
    Error::Tool(format!("{}: {error}", folder.display()))
}

/// Runs `ptxas`; what it refuses of inline PTX names the line of the kernel.
fn assembled(ptxas: &Path, ptx: &str, arguments: &[&OsStr]) -> Result<(String, String)> {
    run(ptxas, arguments).map_err(|error| {
        if let Error::Tool(refusal) = error {
            Error::Tool(explained(ptx, refusal))
        } else {
            error
        }
    })
}

fn run(program: &Path, arguments: &[&OsStr]) -> Result<(String, String)> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| Error::Tool(format!("{}: {error}", program.display())))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let message = text(&output.stderr) + &text(&output.stdout);
        return Err(Error::Tool(format!(
            "{} failed: {message}",
            program.display()
        )));
    }
    Ok((text(&output.stdout), text(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_counted_as_drivers_count() {
        assert_eq!(cuda_of("13.0.88"), Some(13000));
        assert_eq!(cuda_of("13.3.33"), Some(KEEPS_OPERANDS));
        assert_eq!(cuda_of("14.1"), Some(14010));
        for text in ["", "13", "13.x", "x.3", "9999999.1"] {
            assert_eq!(cuda_of(text), None, "{text}");
        }
    }
}
