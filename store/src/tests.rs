//! Whole entries come back, and nothing else does.

mod faults;

use std::process::Command;
use std::thread;

use tempfile::TempDir;

use super::*;

/// A store in a folder of its own.
fn store(limits: Limits) -> (TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::at(folder.path().join("deep/v1"), limits);
    (folder, store)
}

fn names(store: &Store) -> Vec<String> {
    let listed = fs::read_dir(store.folder()).expect("is there");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("is listed").file_name();
    let mut names: Vec<_> = listed
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_kept_is_found_by_its_key_alone() {
    let (_folder, store) = store(Limits::default());
    assert_eq!(store.find("a"), None);
    assert_eq!(store.entries().expect("is read").len(), 0);
    store.keep("a", b"one");
    store.keep("b", b"");
    store.keep("a", b"two");
    assert_eq!(store.find("a").as_deref(), Some(&b"two"[..]));
    assert_eq!(store.find("b").as_deref(), Some(&b""[..]));
    assert_eq!(store.find("c"), None);
    store.discard("a");
    store.discard("a");
    assert_eq!(store.find("a"), None);
    assert_eq!(store.clear().expect("is cleared").0, 1);
    assert_eq!(store.find("b"), None);
}

/// What is said of the first entry.
fn first_key(store: &Store) -> Result<String, String> {
    store.entries().expect("is read")[0].key.clone()
}

#[test]
fn what_is_too_long_for_an_entry_is_none() {
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"code");
    let file = fs::OpenOptions::new().write(true).open(store.path("key"));
    file.expect("is mine").set_len(LARGEST + 1).expect("grows");
    let told = format!("it has {} bytes", LARGEST + 1);
    assert_eq!(first_key(&store), Err(told));
    assert_eq!(store.find("key"), None);
}

#[test]
fn no_changed_byte_and_no_missing_one_is_taken() {
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"payload");
    let path = store.path("key");
    let whole = fs::read(&path).expect("is read");
    let write = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("is written");
        owned(&path, 0o600);
    };
    for index in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[index] ^= 1 << (index % 8);
        write(&bytes);
        assert!(store.entries().expect("is read")[0].key.is_err());
        assert_eq!(store.find("key"), None, "byte {index}");
        assert!(!path.exists(), "byte {index}");
        write(&whole[..index]);
        assert_eq!(store.find("key"), None, "{index} bytes");
    }
    write(&[&whole[..], b"\0"].concat());
    assert_eq!(store.find("key"), None);
    write(&whole);
    assert_eq!(store.find("key").as_deref(), Some(&b"payload"[..]));
}

#[cfg(unix)]
fn owned(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("is mine");
}

#[cfg(not(unix))]
fn owned(_path: &Path, _mode: u32) {}

/// A collision of hashes would look like this.
#[test]
fn an_entry_under_the_name_of_another_is_none() {
    let (_folder, store) = store(Limits::default());
    store.keep("one", b"1");
    fs::rename(store.path("one"), store.path("two")).expect("is renamed");
    assert_eq!(
        first_key(&store),
        Err("it has the name of another key".to_string())
    );
    assert_eq!(store.find("two"), None);
    assert_eq!(store.find("one"), None);
}

#[cfg(unix)]
#[test]
fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"code");
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    assert_eq!(
        (mode(&store.path("key")), mode(store.folder())),
        (0o600, 0o700)
    );
    owned(&store.path("key"), 0o640);
    assert_eq!(store.find("key"), None);
    store.keep("key", b"code");
    owned(store.folder(), 0o770);
    store.keep("other", b"code");
    assert!(!store.path("other").exists());
    assert_eq!(store.find("key"), None);
    store.discard("key");
    assert!(store.clear().is_err());
    // What a launch does not take is not listed as whole.
    #[cfg(unix)]
    assert!(store.entries().is_err());
    owned(store.folder(), 0o700);
    assert!(store.find("key").is_some());
}

/// Links, fifos and folders are removed or left, and never opened as files.
#[cfg(unix)]
#[test]
fn nothing_but_files_is_read() {
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"code");
    let target = store.folder().join("elsewhere");
    fs::rename(store.path("key"), &target).expect("is renamed");
    std::os::unix::fs::symlink(&target, store.path("key")).expect("is linked");
    assert_eq!(store.find("key"), None);
    assert!(target.exists() && !store.path("key").exists());
    let status = Command::new("mkfifo").arg(store.path("key")).status();
    assert!(status.expect("starts").success());
    assert_eq!(store.find("key"), None);
    assert!(!store.path("key").exists());
}

/// As where root works with the home of another user.
#[cfg(unix)]
#[test]
fn what_another_user_keeps_stays() {
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"code");
    let path = store.path("key");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let give = |user| {
        for path in [store.folder(), &path] {
            std::os::unix::fs::chown(path, Some(user), None).expect("root may");
        }
    };
    give(12345);
    let told = store.entries().expect_err("nothing is found there");
    assert_eq!(told.to_string(), "another user owns it");
    assert_eq!(store.find("key"), None);
    store.keep("other", b"code");
    store.discard("key");
    assert!(store.clear().is_err());
    assert!(path.exists() && !store.path("other").exists());
    give(0);
    assert!(store.find("key").is_some());
}

#[test]
fn what_is_no_file_is_no_entry() {
    let (_folder, store) = store(Limits::default());
    store.keep("other", b"");
    fs::create_dir(store.path("key")).expect("is made");
    assert_eq!(store.find("key"), None);
    store.keep("key", b"lost");
    assert_eq!(store.find("key"), None);
    assert!(store.complained.load(Ordering::Relaxed));
}

#[test]
fn a_folder_that_cannot_be_made_keeps_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("is written");
    let store = Store::at(file.join("v1"), Limits::default());
    assert_eq!(store.find("key"), None);
    store.keep("key", b"lost");
    assert_eq!(store.find("key"), None);
    assert!(store.complained.load(Ordering::Relaxed));
}

/// A writer that was killed leaves a file with a name of its own.
#[test]
fn unfinished_files_are_no_entries_and_leave_when_they_are_old() {
    let (_folder, store) = store(Limits::default());
    store.keep("key", b"code");
    let leave = |name: &str, age: Duration| {
        let path = store.folder().join(format!("{}{name}", sweep::UNFINISHED));
        let file = File::create(&path).expect("is made");
        file.set_modified(SystemTime::now() - age).expect("is mine");
        path
    };
    let (old, new) = (leave("a", 2 * USED_AGAIN), leave("b", Duration::ZERO));
    assert_eq!(store.entries().expect("is read").len(), 1);
    sweep::sweep(store.folder(), store.limits);
    assert!(!old.exists() && new.exists());
    assert!(store.find("key").is_some());
    assert_eq!(store.clear().expect("is cleared"), (1, 63));
    assert!(!new.exists());
}

#[test]
fn the_entries_used_longest_ago_leave() {
    let limits = Limits {
        bytes: 1 << 20,
        entries: 10,
    };
    let (_folder, store) = store(limits);
    for index in 0..10 {
        let key = index.to_string();
        store.keep(&key, b"");
        let file = File::open(store.path(&key)).expect("is there");
        let age = Duration::from_secs(3600 * 48) * (10 - index);
        file.set_modified(SystemTime::now() - age).expect("is mine");
    }
    // A use makes the oldest the newest.
    assert!(store.find("0").is_some());
    sweep::sweep(store.folder(), limits);
    assert_eq!(names(&store).len(), 11);
    store.keep("10", b"");
    sweep::sweep(store.folder(), limits);
    let left = |key: &str| store.path(key).exists();
    assert_eq!(names(&store).len(), 8);
    assert!(left("0") && left("10") && left("5") && !left("4"));
    // Bytes count as entries do; the writer itself sweeps.
    store.keep("large", &[7; 1 << 20]);
    assert_eq!(names(&store), ["sweep.lock"]);
}

#[test]
fn what_cannot_be_removed_keeps_nothing_else() {
    let limits = Limits {
        bytes: 1 << 20,
        entries: 10,
    };
    let (_folder, store) = store(Limits::default());
    for index in 0..12 {
        let key = index.to_string();
        store.keep(&key, b"");
        let file = File::open(store.path(&key)).expect("is there");
        let age = Duration::from_secs(3600 * 48) * (20 - index);
        file.set_modified(SystemTime::now() - age).expect("is mine");
    }
    let oldest = store.path("0");
    let remove = |path: &Path| match path == oldest {
        true => Err(io::Error::other("it is needed")),
        false => remove_file(path),
    };
    let swept = sweep::remove_oldest(store.folder(), limits, &remove);
    assert_eq!(swept.expect_err("one stays").to_string(), "it is needed");
    let left = (0..12).filter(|index| store.path(&index.to_string()).exists());
    assert_eq!(left.collect::<Vec<_>>(), [0, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn threads_share_a_folder() {
    let (folder, _) = store(Limits::default());
    let expected = |key: usize| vec![key as u8; 1 << (key % 16)];
    thread::scope(|scope| {
        for turn in 0..16 {
            let path = folder.path().join("v1");
            scope.spawn(move || {
                let store = Store::at(path, Limits::default());
                for step in 0..64 {
                    let key = (step + turn * 4) % 32;
                    let name = key.to_string();
                    match (turn + step) % 5 {
                        0 => store.discard(&name),
                        1 | 2 => store.keep(&name, &expected(key)),
                        _ => {
                            let found = store.find(&name);
                            assert!(found.is_none_or(|found| found == expected(key)));
                        }
                    }
                }
            });
        }
    });
}

/// Set in the process that [`a_writer_that_is_killed_damages_nothing`] kills.
const CHILD: &str = "EXACTILE_TEST_STORE";

#[test]
fn a_writer_that_is_killed_damages_nothing() {
    let payload = vec![5; 1 << 20];
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = Store::at(PathBuf::from(folder), Limits::default());
        loop {
            store.keep("key", &payload);
        }
    }
    let (_folder, store) = store(Limits::default());
    let test = "tests::a_writer_that_is_killed_damages_nothing";
    let mut found = 0;
    for round in 0..20 {
        let mut child = Command::new(std::env::current_exe().expect("has a name"));
        child.args(["--exact", test]).env(CHILD, store.folder());
        let mut child = child.spawn().expect("starts");
        thread::sleep(Duration::from_millis(30 + 7 * round));
        child.kill().expect("is mine");
        child.wait().expect("has ended");
        if let Some(kept) = store.find("key") {
            assert_eq!(kept, payload);
            found += 1;
        }
    }
    assert!(found > 0, "no process came so far");
}
