//! NVIDIA's assembler and disassembler, for checks of the machine code without a GPU.
//!
//! Nothing at run time needs them: the driver compiles PTX itself, unless a `ptxas` is named, or a product reads registers, an old driver may
//! give these away, and a newer `ptxas` is found.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::generator;
use crate::inlined::explained;
use crate::ptx::{Ptx, names_lines};
use crate::toolkits;

/// Names a `ptxas`, which then assembles all kernels.
const PTXAS: &str = "EXACTILE_PTXAS";

/// The first CUDA whose assembler gives registers of lanes to nothing else while products of groups of warps read them, as drivers
/// count. Source: release notes of CUDA 13.3.
pub(crate) const KEEPS_OPERANDS: i32 = 13030;

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
    /// Has the `ptxas` that `EXACTILE_PTXAS` names make machine code, or, where a product reads registers that the driver may give away,
    /// one that is found; whether there is one. Without one, the driver assembles.
    ///
    /// The driver assembles one kernel at a time, whatever the threads; this runs on all of them.
    ///
    /// # Errors
    /// When the assembler does not run or refuses the text.
    pub fn assemble(&mut self) -> Result<bool> {
        let ptxas = named().or_else(|| in_place_of_driver().filter(|_| self.reads_registers));
        self.machine_code = ptxas.map(|it| machine_code(&it, &self.text)).transpose()?;
        Ok(self.machine_code.is_some())
    }
}

/// Whether what assembles kernels whose products read registers gives these to nothing else meanwhile: the `ptxas` that `EXACTILE_PTXAS`
/// names, else that of the driver, or one that is found where the driver's is older. `shipped` code is assembled by nobody knows which driver.
pub fn keeps_operands(shipped: bool) -> bool {
    if let Some(ptxas) = named() {
        let cuda = version(&ptxas).ok().and_then(|it| cuda_of(&it));
        return cuda.is_some_and(keeps);
    }
    !shipped && (driver().is_some_and(keeps) || in_place_of_driver().is_some())
}

fn keeps(cuda: i32) -> bool {
    cuda >= KEEPS_OPERANDS
}

/// The CUDA that the driver is for.
fn driver() -> Option<i32> {
    static DRIVER: OnceLock<Option<i32>> = OnceLock::new();
    *DRIVER.get_or_init(Driver::version)
}

/// What assembles kernels whose products read registers, where the driver may give these away and another assembler is found.
fn in_place_of_driver() -> Option<PathBuf> {
    let found = || toolkits::newest().map(Path::to_path_buf);
    driver().filter(|&cuda| !keeps(cuda)).and_then(|_| found())
}

/// What `EXACTILE_PTXAS` names.
fn named() -> Option<PathBuf> {
    let name = std::env::var_os(PTXAS).filter(|name| !name.is_empty());
    name.map(PathBuf::from)
}

/// The version of a `ptxas`, such as 13.0.88.
pub(crate) fn version(ptxas: &Path) -> Result<String> {
    let (text, _) = run(ptxas, &[OsStr::new("--version")])?;
    let release = text.split(" V").nth(1).unwrap_or_default();
    let release = release.split_whitespace().next().unwrap_or_default();
    Ok(release.to_string())
}

/// The CUDA of a version, as drivers count.
pub(crate) fn cuda_of(version: &str) -> Option<i32> {
    let mut parts = version.split('.').map(|part| part.parse::<i32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    major.checked_mul(1000)?.checked_add(minor.checked_mul(10)?)
}

/// Machine code by a `ptxas`.
fn machine_code(ptxas: &Path, ptx: &str) -> Result<Vec<u8>> {
    let folder = new_folder()?;
    let code = cubin(ptxas, ptx, &folder);
    // What is left behind harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    code
}

/// What assembles kernels: the `ptxas` that `EXACTILE_PTXAS` names, by its path, size and time of change, else the driver by its version, with
/// the one that is found in its place for products that read registers.
///
/// # Errors
/// When there is no such file.
pub fn assembler() -> Result<String> {
    if let Some(ptxas) = named() {
        return identity(&ptxas);
    }
    let found = in_place_of_driver().map(|it| identity(&it)).transpose()?;
    Ok(format!(
        "driver {:?} {}",
        driver(),
        found.unwrap_or_default()
    ))
}

fn identity(ptxas: &Path) -> Result<String> {
    let absent = |error: std::io::Error| in_folder(ptxas, &error);
    let metadata = ptxas.metadata().map_err(absent)?;
    let changed = metadata.modified().map_err(absent)?;
    let size = metadata.len();
    Ok(format!("{} {size} {changed:?}", ptxas.display()))
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
