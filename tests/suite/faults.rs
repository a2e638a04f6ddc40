//! Disks that are full or cannot be written, and GPUs with too little memory of their own: clear errors, and nothing lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use exactile::autotune::{TuneKey, Tuner, with_output};
use exactile::prelude::*;
use exactile::{Array, DType, Determinism, Result};
use exactile_harness::npy;

/// A file system of its own of 64 KiB, which only root can make.
struct Small(PathBuf);

impl Small {
    fn new(name: &str) -> Option<Self> {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults_{name}"));
        std::fs::create_dir_all(&path).expect("the folder is writable");
        let small = Self(path);
        if !small.mount("size=64k") {
            eprintln!("SKIPPED: a file system of its own needs root, and a system that lets it");
            return None;
        }
        Some(small)
    }

    fn mount(&self, options: &str) -> bool {
        let mut command = Command::new("mount");
        let output = command.args(["-t", "tmpfs", "-o", options, "none"]);
        let output = output.arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Leaves no room.
    fn fill(&self) {
        let _ = std::fs::write(self.0.join("filler"), vec![0; 128 << 10]);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let listed = std::fs::read_dir(&self.0).expect("is there");
        let name =
            |entry: std::io::Result<std::fs::DirEntry>| entry.expect("is listed").file_name();
        let mut names: Vec<String> = listed
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

const COUNT: &str = "func @count block (%x: ptr<i64> write, %y: ptr<i64> write) {
  %i = arange start=0, end=4 : tile<4xi64>
  store %x, %i, %i
  store %y, %i, %i
}
";

fn count(folder: &Path, x: &Path, y: &Path) -> Output {
    let kernel = folder.join("count.bir");
    std::fs::write(&kernel, COUNT).expect("the folder is writable");
    Command::new(env!("CARGO_BIN_EXE_exactile"))
        .args(["run", "--device", "interp"])
        .arg(kernel)
        .args(["--out", &format!("x=@{}:i64[4]", x.display())])
        .args(["--out", &format!("y=@{}:i64[4]", y.display())])
        .output()
        .expect("the command starts")
}

#[test]
fn results_appear_whole_or_not_at_all() {
    let Some(small) = Small::new("results") else {
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (x, y) = (folder.join("faults_x.npy"), small.path("y.npy"));
    let _ = std::fs::remove_file(&x);
    small.fill();
    let failed = count(folder, &x, &y);
    let message = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{message}");
    assert!(message.contains("y.npy`: No space left"), "{message}");
    assert_eq!(small.names(), ["filler"]);
    assert!(!x.exists(), "the other result appeared");
    std::fs::remove_file(small.path("filler")).expect("is there");
    assert!(count(folder, &x, &y).status.success());
    small.fill();
    // What is there stays where nothing can take its place.
    let old = npy::read(&y).expect("is whole");
    assert_eq!(count(folder, &x, &y).status.code(), Some(1));
    assert_eq!(npy::read(&y).expect("is whole").bytes(), old.bytes());
    assert!(small.mount("remount,ro"), "root may");
    let failed = count(folder, &x, &y);
    let message = String::from_utf8_lossy(&failed.stderr);
    assert!(
        message.contains("y.npy`: Read-only file system"),
        "{message}"
    );
    assert_eq!(npy::read(&y).expect("is whole").bytes(), old.bytes());
}

/// Finds a winner for a kernel of this name, whose only candidate does nothing.
fn tune(file: &Path, kernel: &str) -> Result<()> {
    let device = Device::cpu();
    let key = TuneKey {
        kernel: kernel.to_string(),
        extents: vec![1],
        variant: "none".to_string(),
    };
    let golden = Array::zeros(DType::F32, [1])?;
    let mut workload = with_output(Buffer::<f32>::zeros(&device, 1)?, |out, _: &u32| {
        out.fill(0.0)
    });
    let (tuner, level) = (Tuner::with_file(file), Determinism::Exact);
    tuner
        .tune(&device, &key, level, &[1], &[golden], &mut workload)
        .map(drop)
}

#[test]
fn winners_that_were_kept_stay() {
    let Some(small) = Small::new("winners") else {
        return;
    };
    let file = small.path("winners.json");
    tune(&file, "first").expect("there is room");
    let whole = std::fs::read(&file).expect("is there");
    let names = small.names();
    small.fill();
    // The room that is left by chance is less than a page.
    let long = "k".repeat(8 << 10);
    let outcome = tune(&file, &long);
    std::fs::remove_file(small.path("filler")).expect("is there");
    if let Err(error) = outcome {
        let message = error.to_string();
        assert!(
            message.contains("winners.json`: No space left"),
            "{message}"
        );
    }
    assert_eq!(std::fs::read(&file).expect("is there"), whole);
    assert_eq!(small.names(), names);
    tune(&file, "second").expect("there is room");
    assert!(small.mount("remount,ro"), "root may");
    let whole = std::fs::read(&file).expect("is there");
    tune(&file, "first").expect("is found");
    if let Err(error) = tune(&file, "third") {
        let message = error.to_string();
        assert!(message.contains("Read-only file system"), "{message}");
    }
    assert_eq!(std::fs::read(&file).expect("is there"), whole);
}

#[kernel]
fn looks_up(x: Ptr<f64>, out: PtrMut<f64>) {
    let at = arange(0, 65536);
    store(out + at, gather(load(x + at), at, 0));
}

#[test]
fn too_little_shared_memory_is_told_with_the_largest_buffers() {
    let device = Device::lanes();
    let x = Buffer::<f64>::zeros(&device, 65536).expect("fits");
    let mut out = Buffer::<f64>::zeros(&device, 65536).expect("fits");
    let error = looks_up()
        .run(&device, 1, (&x, &mut out))
        .expect_err("a thread block has less")
        .to_string();
    for words in [
        "kernel `looks_up` does not compile",
        "the kernel takes 524288 bytes of shared memory, expected at most 232448",
        "the largest buffers take 524288 at ",
        "faults.rs:",
        "use smaller tiles or fewer stages",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}
