//! The tuner's file: no winner is lost between threads and processes, and a damaged file is set
//! aside.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use exactile::autotune::{TuneKey, Tuner, Workload};
use exactile::{Array, Determinism, Device, Result};

use crate::logged;

struct Nothing;

impl Workload<u32> for Nothing {
    fn launch(&mut self, _: &u32) -> Result<()> {
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Finds a winner under the name of `kernel` and keeps it in `file`.
fn tune(file: &Path, kernel: String) {
    let key = TuneKey {
        kernel,
        extents: vec![1],
        variant: "none".to_string(),
    };
    let level = Determinism::Exact;
    let tuned = Tuner::with_file(file).tune(&Device::cpu(), &key, level, &[1], &[], &mut Nothing);
    assert_eq!(tuned.expect("the only candidate is right").config, 1);
}

/// `winners` of each of `threads` threads, one after another.
fn tune_side_by_side(file: &Path, process: usize, threads: usize, winners: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for winner in 0..winners {
                    tune(file, format!("kernel_{process}_{thread}_{winner}"));
                }
            });
        }
    });
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the folder is writable");
    path
}

fn winners(file: &Path) -> usize {
    let text = std::fs::read(file).expect("the winners were written");
    let map: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
    map.len()
}

/// Files in a folder apart from the winners and their lock.
fn left_over(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !["winners.json", "winners.json.lock"].contains(&name.as_str()))
        .collect()
}

#[test]
fn threads_lose_no_winner() {
    let folder = folder("winners_threads");
    let file = folder.join("winners.json");
    tune_side_by_side(&file, 0, 8, 5);
    assert_eq!(winners(&file), 40);
    assert_eq!(left_over(&folder), [""; 0]);
}

#[test]
fn processes_lose_no_winner() {
    const CHILD: &str = "EXACTILE_TEST_WINNERS";
    const NAME: &str = "winners::processes_lose_no_winner";
    if let Some(child) = std::env::var_os(CHILD) {
        let child = child.into_string().expect("the parent wrote UTF-8");
        let (process, file) = child.split_once(' ').expect("a number and a file");
        let process = process.parse().expect("a number");
        return tune_side_by_side(Path::new(file), process, 16, 2);
    }
    let folder = folder("winners_processes");
    let file = folder.join("winners.json");
    let binary = std::env::current_exe().expect("the test's binary has a path");
    let children: Vec<_> = (0..2)
        .map(|process| {
            Command::new(&binary)
                .args(["--exact", NAME, "--test-threads", "1"])
                .env(CHILD, format!("{process} {}", file.display()))
                .spawn()
                .expect("the test's binary starts")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("the child ends").success());
    }
    assert_eq!(winners(&file), 64);
    assert_eq!(left_over(&folder), [""; 0]);
}

#[test]
fn a_damaged_file_is_set_aside_with_a_line_in_the_log() {
    logged::begin();
    let folder = folder("winners_damaged");
    let file = folder.join("winners.json");
    let damaged = b"{\"kernel\": {\"config\": \xff";
    std::fs::write(&file, damaged).expect("the folder is writable");
    tune(&file, "first".to_string());
    tune(&file, "second".to_string());
    assert_eq!(winners(&file), 2);
    let aside = std::fs::read(folder.join("winners.json.damaged")).expect("set aside");
    assert_eq!(aside, damaged);
    let lines = logged::lines("winners_damaged");
    assert_eq!(lines.len(), 1, "{lines:?}");
    // What is set aside later leaves the first one.
    std::fs::write(&file, b"[]").expect("the folder is writable");
    tune(&file, "third".to_string());
    let aside = |name: &str| std::fs::read(folder.join(name)).expect("set aside");
    assert_eq!(aside("winners.json.damaged"), damaged);
    assert_eq!(aside("winners.json.damaged-2"), b"[]");
}

#[test]
fn winners_go_through_a_link() {
    let folder = folder("winners_link");
    let (file, link) = (folder.join("winners.json"), folder.join("link.json"));
    std::os::unix::fs::symlink("winners.json", &link).expect("the folder is writable");
    tune(&link, "linked".to_string());
    assert!(link.is_symlink());
    assert_eq!(winners(&file), 1);
}

/// Finds a winner for these extents where the fastest is the first candidate.
fn tune_extents(file: &Path, extents: Vec<usize>) -> exactile::autotune::Tuned<u32> {
    let level = Determinism::Exact;
    Tuner::with_file(file)
        .tune(
            &Device::cpu(),
            &key(extents),
            level,
            &[1, 2],
            &[],
            &mut Nothing,
        )
        .expect("both are right")
}

fn key(extents: Vec<usize>) -> TuneKey {
    TuneKey {
        kernel: "nearest".to_string(),
        extents,
        variant: "none".to_string(),
    }
}

#[test]
fn an_unseen_problem_falls_back_to_the_nearest_one() {
    let file = folder("winners_nearest").join("winners.json");
    let (tuner, device) = (Tuner::with_file(&file), Device::cpu());
    let known = |extents: Vec<usize>| tuner.known(&device, &key(extents)).expect("readable");
    assert_eq!(known(vec![8, 8]), None);
    let small = tune_extents(&file, vec![8, 8]);
    tune_extents(&file, vec![1000, 8]);
    let near = known(vec![100, 9]).expect("two are on file");
    assert_eq!((near.extents, near.is_exact), (vec![1024, 8], false));
    let exact = known(vec![7, 8]).expect("on file");
    assert!(exact.is_exact && exact.provenance == small.provenance);
    assert_eq!(exact.seconds, small.seconds);
    assert_eq!(known(vec![8]), None, "another number of extents");
}

/// Ends the process where it runs candidate 1; launches that are only recorded come before the outputs are spoilt.
struct Deadly {
    runs: bool,
}

impl Workload<u32> for Deadly {
    fn launch(&mut self, config: &u32) -> Result<()> {
        match config {
            1 if self.runs => std::process::abort(),
            _ => Ok(()),
        }
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        self.runs = true;
        Ok(())
    }
}

#[test]
fn a_candidate_that_two_processes_did_not_survive_is_not_run_again() {
    const CHILD: &str = "EXACTILE_TEST_DEADLY";
    const NAME: &str = "winners::a_candidate_that_two_processes_did_not_survive_is_not_run_again";
    let tune = |file: &Path| {
        let level = Determinism::Exact;
        Tuner::with_file(file)
            .tune(
                &Device::cpu(),
                &key(vec![1]),
                level,
                &[1, 2, 3],
                &[],
                &mut Deadly { runs: false },
            )
            .expect("two are right")
    };
    if let Some(file) = std::env::var_os(CHILD) {
        tune(Path::new(&file));
        return;
    }
    let folder = folder("winners_deadly");
    let file = folder.join("winners.json");
    let binary = std::env::current_exe().expect("the test's binary has a path");
    let survives = || {
        let child = Command::new(&binary)
            .args(["--exact", NAME, "--test-threads", "1"])
            .env(CHILD, &file)
            .output();
        child.expect("the test's binary starts").status.success()
    };
    assert_eq!([survives(), survives()], [false, false]);
    // What ran ended them: nothing has to be compiled alone for it.
    let noted = std::fs::read_to_string(&file).expect("the second noted the end of the first");
    assert!(!noted.contains("all candidates"), "{noted}");
    assert!(survives());
    let tuned = tune(&file);
    assert!(tuned.trials.is_empty() && tuned.config != 1, "{tuned:?}");
    assert_eq!(left_over(&folder), [""; 0]);
}

#[test]
fn a_supervised_search_survives_what_ends_its_process() {
    const CHILD: &str = "EXACTILE_TEST_SUPERVISED";
    const NAME: &str = "winners::a_supervised_search_survives_what_ends_its_process";
    if let Some(file) = std::env::var_os(CHILD) {
        let file = PathBuf::from(file);
        let tuned = exactile::command::supervised(|| {
            let level = Determinism::Exact;
            Tuner::with_file(&file)
                .tune(
                    &Device::cpu(),
                    &key(vec![1]),
                    level,
                    &[1, 2],
                    &[],
                    &mut Deadly { runs: false },
                )
                .map(drop)
        });
        return tuned.expect("the second is right");
    }
    let folder = folder("winners_supervised");
    let file = folder.join("winners.json");
    let child = Command::new(std::env::current_exe().expect("the test's binary has a path"))
        .args(["--exact", NAME, "--test-threads", "1", "--nocapture"])
        .env(CHILD, &file)
        .output()
        .expect("the test's binary starts");
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{told}");
    let again = "a candidate ended the process (signal: 6 (SIGABRT)";
    assert_eq!(told.matches(again).count(), 2, "{told}");
    let known = Tuner::with_file(&file).known(&Device::cpu(), &key(vec![1]));
    assert_eq!(known.expect("readable").expect("found").config, "2");
    assert_eq!(left_over(&folder), [""; 0]);
}
