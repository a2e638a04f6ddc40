//! What a file of winners keeps that its writer does not know, and files that are none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use exactile::autotune::{TuneKey, Tuned, Tuner, Workload};
use exactile::{Array, Determinism, Device, Result};
use serde_json::{Value, json};

/// Writes nothing; removes the folder of the winners where it has one.
struct Nothing(Option<PathBuf>);

impl Workload<u32> for Nothing {
    fn launch(&mut self, _: &u32) -> Result<()> {
        if let Some(folder) = self.0.take() {
            fs::remove_dir_all(&folder).expect("is there");
            fs::write(&folder, "no folder").expect("is written");
        }
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }
}

fn key(kernel: &str) -> TuneKey {
    TuneKey {
        kernel: kernel.to_string(),
        extents: vec![1],
        variant: "none".to_string(),
    }
}

fn search(file: &Path, kernel: &str, mut work: Nothing) -> Result<Tuned<u32>> {
    let (tuner, level) = (Tuner::with_file(file), Determinism::Exact);
    tuner.tune(&Device::cpu(), &key(kernel), level, &[1], &[], &mut work)
}

fn tune(file: &Path, kernel: &str) -> Tuned<u32> {
    search(file, kernel, Nothing(None)).expect("the only candidate is right")
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the folder is writable");
    path
}

fn entries(file: &Path) -> Value {
    let text = fs::read(file).expect("the winners were written");
    serde_json::from_slice(&text).expect("JSON")
}

/// Changes the entry of a kernel by hand.
fn edit(file: &Path, kernel: &str, change: impl Fn(&mut Value)) {
    let mut all = entries(file);
    let mut list = all.as_object_mut().expect("a map").values_mut();
    change(list.find(|it| it["kernel"] == kernel).expect("is there"));
    fs::write(file, all.to_string()).expect("is written");
}

fn entry(file: &Path, kernel: &str) -> Value {
    let all = entries(file);
    let mut list = all.as_object().expect("a map").values();
    list.find(|it| it["kernel"] == kernel)
        .expect("is there")
        .clone()
}

#[test]
fn what_other_versions_wrote_stays() {
    let file = folder("winners_other").join("winners.json");
    for kernel in ["short", "odd", "new"] {
        tune(&file, kernel);
    }
    edit(&file, "short", |entry| {
        entry["provenance"]
            .as_object_mut()
            .expect("a map")
            .remove("date");
    });
    edit(&file, "odd", |entry| entry["seconds"] = json!("fast"));
    edit(&file, "new", |entry| entry["notes"] = json!(["mine"]));
    let before = ["short", "odd", "new"].map(|kernel| entry(&file, kernel));
    // A winner of which something is not known is one.
    assert!(tune(&file, "short").trials.is_empty());
    tune(&file, "another");
    assert_eq!(
        ["short", "odd", "new"].map(|kernel| entry(&file, kernel)),
        before
    );
    // A search replaces what it found, and nothing else.
    assert!(!tune(&file, "odd").trials.is_empty());
    assert!(entry(&file, "odd")["seconds"].is_f64());
    edit(&file, "new", |entry| entry["seconds"] = json!(null));
    assert!(!tune(&file, "new").trials.is_empty());
    assert_eq!(entry(&file, "new")["notes"], json!(["mine"]));
    let files = fs::read_dir(file.parent().expect("a folder")).expect("is read");
    assert_eq!(files.count(), 2, "nothing was set aside");
}

#[cfg(unix)]
#[test]
fn winners_are_in_regular_files_alone() {
    let folder = folder("winners_places");
    let (fifo, null, link) = (
        folder.join("fifo"),
        folder.join("null"),
        folder.join("link"),
    );
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|it| it.success()));
    std::os::unix::fs::symlink("/dev/null", &null).expect("is linked");
    for file in [&fifo, &null, &folder] {
        let refused = search(file, "none", Nothing(None)).expect_err("is no file");
        let wanted = "winners are kept in a regular file, and this is none";
        assert!(refused.to_string().contains(wanted), "{refused}");
    }
    assert_eq!(fs::read_dir(&folder).expect("is read").count(), 2);
    // A damaged file leaves its own name, and the link stays.
    fs::write(folder.join("target.json"), "damaged").expect("is written");
    std::os::unix::fs::symlink("target.json", &link).expect("is linked");
    tune(&link, "linked");
    assert!(link.is_symlink() && entry(&folder.join("target.json"), "linked").is_object());
    let aside = fs::read(folder.join("target.json.damaged"));
    assert_eq!(aside.expect("is set aside"), b"damaged");
}

#[test]
fn what_killed_processes_left_half_written_goes() {
    let folder = folder("winners_left");
    let file = folder.join("winners.json");
    let old = SystemTime::now() - Duration::from_secs(7200);
    let left = |name: &str, modified: SystemTime| {
        let file = fs::File::create(folder.join(name)).expect("is made");
        file.set_modified(modified).expect("is mine");
    };
    left(".exactile-old.partial", old);
    left("winners.json.1-0.trial", old);
    left(".exactile-new.partial", SystemTime::now());
    left("mine.partial", old);
    tune(&file, "first");
    let is_there = |name: &str| folder.join(name).exists();
    assert!(!is_there(".exactile-old.partial") && !is_there("winners.json.1-0.trial"));
    assert!(is_there(".exactile-new.partial") && is_there("mine.partial"));
}

#[test]
fn a_winner_that_cannot_be_written_is_not_lost() {
    let folder = folder("winners_unsaved");
    let file = folder.join("winners.json");
    let tuned = search(&file, "unsaved", Nothing(Some(folder))).expect("is right");
    assert_eq!(tuned.config, 1);
    assert!(tuned.unsaved.is_some());
    let table = tuned.to_string();
    assert!(table.contains("the winner is not on file: "), "{table}");
}
