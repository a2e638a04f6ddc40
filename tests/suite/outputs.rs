//! Where the command's results go: links, fifos, devices, several files at once, and places that
//! take nothing.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use exactile_harness::npy;

/// Writes 0, 1, 2, 3 and their doubles.
const COUNT: &str = "func @count block (%x: ptr<i64> write, %y: ptr<i64> write) {
  %i = arange start=0, end=4 : tile<4xi64>
  %d = add %i, %i : tile<4xi64>
  store %x, %i, %i
  store %y, %i, %d
}
";

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("outputs_{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("the folder is writable");
        fs::write(path.join("count.bir"), COUNT).expect("the folder is writable");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a line of a shell in which `$E` is the command.
    fn shell(&self, line: &str) -> Output {
        Command::new("sh")
            .args(["-c", line])
            .env("E", env!("CARGO_BIN_EXE_exactile"))
            .current_dir(&self.0)
            .output()
            .expect("a shell starts")
    }

    /// Runs the kernel with its results in two files.
    fn count(&self, x: &str, y: &str, rest: &str) -> Output {
        self.shell(&format!(
            "\"$E\" run count.bir --device interp --out 'x=@{x}:i64[4]' --out 'y=@{y}:i64[4]' {rest}"
        ))
    }

    fn numbers(&self, name: &str) -> Vec<i64> {
        let array = npy::read(&self.path(name)).expect("the result was written");
        array.to_vec().expect("i64")
    }
}

fn succeeded(output: &Output) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
}

fn failed(output: &Output, expected: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(expected), "{message}");
}

#[test]
fn results_go_through_links() {
    let folder = Folder::new("links");
    fs::create_dir(folder.path("there")).expect("the folder is writable");
    fs::write(folder.path("there/old.npy"), "old").expect("the folder is writable");
    symlink("there/old.npy", folder.path("x.npy")).expect("the folder is writable");
    symlink("dangling.npy", folder.path("there/first.npy")).expect("the folder is writable");
    symlink("there/first.npy", folder.path("y.npy")).expect("the folder is writable");
    succeeded(&folder.count("x.npy", "y.npy", ""));
    for link in ["x.npy", "y.npy", "there/first.npy"] {
        assert!(folder.path(link).is_symlink(), "{link} was replaced");
    }
    assert_eq!(folder.numbers("there/old.npy"), [0, 1, 2, 3]);
    assert_eq!(folder.numbers("there/dangling.npy"), [0, 2, 4, 6]);
}

#[test]
fn results_flow_into_fifos_and_devices() {
    let folder = Folder::new("streams");
    symlink("/dev/stdout", folder.path("stdout.npy")).expect("the folder is writable");
    let output = folder.shell(
        "mkfifo fifo.npy; cat fifo.npy > read.npy & \
         timeout 60 \"$E\" run count.bir --device interp --out x=@fifo.npy:i64[4] \
         --out y=@stdout.npy:i64[4] | cat > printed.npy; wait",
    );
    succeeded(&output);
    let kind = fs::metadata(folder.path("fifo.npy")).expect("the fifo is there");
    assert!(kind.file_type().is_fifo(), "the fifo was replaced");
    assert!(
        folder.path("stdout.npy").is_symlink(),
        "the link was replaced"
    );
    assert_eq!(folder.numbers("read.npy"), [0, 1, 2, 3]);
    assert_eq!(folder.numbers("printed.npy"), [0, 2, 4, 6]);
    succeeded(&folder.shell(
        "\"$E\" run count.bir --device interp --out x=@stdout.npy:i64[4] --arg 'y=i64[4]' > to.npy",
    ));
    assert_eq!(folder.numbers("to.npy"), [0, 1, 2, 3]);
}

#[test]
fn results_appear_together_or_not_at_all() {
    let folder = Folder::new("together");
    fs::create_dir(folder.path("folder.npy")).expect("the folder is writable");
    symlink("/dev/full", folder.path("full.npy")).expect("the folder is writable");
    symlink("circle.npy", folder.path("circle.npy")).expect("the folder is writable");
    symlink("x.npy", folder.path("same.npy")).expect("the folder is writable");
    for (second, reason) in [
        ("folder.npy", "is a directory"),
        ("absent/y.npy", "No such file"),
        ("circle.npy", "symbolic links"),
        ("full.npy", "No space left"),
        ("x.npy", "two results"),
        ("same.npy", "two results"),
        ("./x.npy", "two results"),
    ] {
        failed(&folder.count("x.npy", second, ""), reason);
        assert!(
            !folder.path("x.npy").exists(),
            "{second} left the first file"
        );
    }
    let entries = fs::read_dir(&folder.0)
        .expect("the folder is there")
        .count();
    assert_eq!(entries, 5, "temporary files are left");
}

#[test]
fn files_have_the_usual_permissions() {
    let folder = Folder::new("permissions");
    fs::write(folder.path("y.npy"), "old").expect("the folder is writable");
    fs::set_permissions(folder.path("y.npy"), fs::Permissions::from_mode(0o600))
        .expect("the file is ours");
    succeeded(&folder.shell(
        "umask 027; \"$E\" run count.bir --device interp --out x=@x.npy:i64[4] --out y=@y.npy:i64[4]",
    ));
    let mode = |name| {
        fs::metadata(folder.path(name))
            .expect("written")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("x.npy"), 0o640, "what the umask leaves");
    assert_eq!(mode("y.npy"), 0o600, "that of the file before");
}

#[test]
fn full_and_closed_streams_are_no_panic() {
    let folder = Folder::new("full");
    for (line, code) in [
        ("\"$E\" run absent.bir 2> /dev/full", 1),
        ("\"$E\" run absent.bir 2>&-", 1),
        ("\"$E\" ops > /dev/full", 1),
        ("\"$E\" ops > /dev/full 2> /dev/full", 1),
        ("\"$E\" ops --nonsense 2> /dev/full", 2),
        (
            "\"$E\" selftest math --function sqrt --dtype bf16 --device cpu > /dev/full",
            1,
        ),
        ("\"$E\" demo --kernel vector_add 2> /dev/full", 0),
        ("\"$E\" demo --kernel vector_add > /dev/full", 1),
    ] {
        let output = folder.shell(line);
        assert_eq!(output.status.code(), Some(code), "{line}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!message.contains("panicked"), "{line}: {message}");
    }
}
