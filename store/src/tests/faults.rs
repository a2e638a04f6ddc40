//! Disks that are full or cannot be written: nothing that was whole is lost, and nothing that is not whole is left.

use std::path::Path;

use super::*;

/// Set in the process whose files may not be long.
const CHILD: &str = "EXACTILE_TEST_LITTLE_ROOM";

/// Bytes that fit a file there, and bytes that do not.
const FITS: usize = 20 << 10;
const TOO_MANY: usize = 100 << 10;

/// A file system of its own with room for one entry that fits, which only root can make.
struct Small(TempDir);

impl Small {
    fn new() -> Option<Self> {
        let small = Self(tempfile::tempdir().expect("a folder"));
        if !small.mount("size=64k") {
            eprintln!("SKIPPED: a file system of its own needs root, and a system that lets it");
            return None;
        }
        Some(small)
    }

    fn mount(&self, options: &str) -> bool {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "none"]);
        let output = command.arg(self.0.path()).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).output();
    }
}

/// Where an entry that fits can be kept, and no other.
fn loses_nothing(folder: &Path) {
    let store = Store::at(folder.join("v1"), Limits::default());
    store.keep("old", &vec![1; FITS]);
    let only = names(&store);
    assert_eq!(store.entries().expect("is read").len(), 1);
    // In place of what is there, and beside it.
    for key in ["old", "new"] {
        store.keep(key, &vec![2; TOO_MANY]);
        assert_eq!(names(&store), only, "{key}");
    }
    assert!(store.complained.load(Ordering::Relaxed));
    assert_eq!(store.find("new"), None);
    assert_eq!(store.find("old"), Some(vec![1; FITS]));
    // A short one still does.
    store.keep("old", &vec![3; FITS / 2]);
    assert_eq!(store.find("old"), Some(vec![3; FITS / 2]));
}

#[test]
fn a_full_disk_keeps_what_was_whole() {
    if let Some(small) = Small::new() {
        loses_nothing(small.path());
    }
}

#[cfg(unix)]
#[test]
fn files_that_may_not_grow_keep_what_was_whole() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return loses_nothing(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let test = "tests::faults::files_that_may_not_grow_keep_what_was_whole";
    // In blocks of 512 bytes; a write beyond is an error where the signal is ignored.
    let shell = "trap '' XFSZ; ulimit -f 100; exec \"$0\" --exact \"$1\"";
    let mut child = Command::new("sh");
    child.args(["-c", shell]);
    child.arg(std::env::current_exe().expect("has a name"));
    let output = child.arg(test).env(CHILD, folder.path()).output();
    let output = output.expect("a shell starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_disk_that_cannot_be_written_is_read() {
    let Some(small) = Small::new() else {
        return;
    };
    let store = Store::at(small.path(), Limits::default());
    owned(small.path(), 0o700);
    store.keep("key", b"code");
    store.keep("damaged", b"code");
    fs::write(store.path("damaged"), "").expect("is mine");
    let before = names(&store);
    assert!(small.mount("remount,ro"), "root may");
    let store = Store::at(small.path(), Limits::default());
    assert_eq!(store.find("key").as_deref(), Some(&b"code"[..]));
    assert_eq!(store.find("damaged"), None);
    for key in ["key", "other"] {
        store.keep(key, b"other code");
    }
    assert!(store.complained.load(Ordering::Relaxed));
    store.discard("key");
    assert!(store.clear().is_err());
    sweep::sweep(store.folder(), store.limits);
    assert_eq!(store.entries().expect("is read").len(), 2);
    assert_eq!(names(&store), before);
    assert_eq!(store.find("key").as_deref(), Some(&b"code"[..]));
}
