//! Searches whose processes end before their work is done.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use exactile::autotune::{Tune, Tuner};
use exactile::prelude::*;

/// Set in the processes that search.
const CHILD: &str = "EXACTILE_TEST_SUPERVISED_CHILD";

/// Ends the process where it searches.
#[expect(clippy::exit, reason = "what a candidate may do")]
fn end_by(way: usize) {
    fn endless(depth: u64) -> u64 {
        match std::hint::black_box(depth) {
            u64::MAX => 0,
            depth => std::hint::black_box(endless(depth + 1)) + 1,
        }
    }
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match way {
        2 => std::process::abort(),
        4 => std::process::exit(0),
        8 => println!("{}", endless(0)),
        _ => {}
    }
}

/// Ends the process that traces it for some numbers.
#[kernel(WAY = 16, grid = 1)]
fn deadly<#[meta(1..=16)] const WAY: usize>(x: PtrMut<f32>) {
    end_by(WAY);
    let at = arange(0, WAY);
    store(x + at, full([WAY], 1.0f32));
}

/// This test again, as a program that searches.
fn program(test: &str, child: &str) -> Command {
    let binary = std::env::current_exe().expect("the test's binary has a path");
    let mut command = Command::new(binary);
    command.args(["--exact", test, "--test-threads", "1", "--nocapture"]);
    command.env(CHILD, child);
    command
}

#[test]
fn what_ends_a_process_while_it_is_traced_is_passed_over() {
    const NAME: &str = "supervised::what_ends_a_process_while_it_is_traced_is_passed_over";
    if let Some(file) = std::env::var_os(CHILD) {
        let ended = exactile::command::supervised(|| {
            // A schedule does not change what a trace does.
            for device in [Device::cpu(), Device::lanes()] {
                let mut x = Buffer::<f32>::zeros(&device, 16)?;
                let tuner = Tuner::with_file(&file).budget(Duration::from_secs(2));
                let tuned = deadly().tune_by(&tuner, &device, (), (&mut x,))?;
                println!("found {:?}\n{tuned}", tuned.tuned.config);
                for (config, verdict) in &tuned.tuned.trials {
                    println!("{config:?}: {verdict:?}");
                }
            }
            Ok(())
        });
        return ended.expect("others are right");
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("supervised.json");
    for file in [&file, &file.with_extension("json.lock")] {
        let _ = std::fs::remove_file(file);
    }
    let path = file.to_str().expect("is UTF-8");
    let output = program(NAME, path)
        .output()
        .expect("the test's binary starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // Two processes for each of three ways on two devices.
    assert_eq!(
        told.matches("a candidate ended the process").count(),
        12,
        "{told}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    for way in [2, 4, 8] {
        let failed = format!(
            "   - Config {{ way: {way}, schedule: Schedule }}: failed: the process that ran it ended, twice"
        );
        assert!(text.contains(&failed), "{text}");
    }
    let sibling = "Rejected(\"the process that traced it ended, twice\")";
    assert!(text.contains(sibling), "{text}");
}

/// Whether there is such a process that has not ended.
#[cfg(target_os = "linux")]
fn is_alive(process: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // Behind the name, which may hold anything.
    let state = state
        .ok()
        .and_then(|it| Some(it.rsplit_once(") ")?.1.to_string()));
    state.is_some_and(|it| !it.starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[test]
fn a_search_ends_with_who_watches_it() {
    const NAME: &str = "supervised::a_search_ends_with_who_watches_it";
    if std::env::var_os(CHILD).is_some() {
        let ended = exactile::command::supervised(|| {
            println!("\nsearch {}", std::process::id());
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        return ended.expect("ends");
    }
    let mut watch = program(NAME, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the test's binary starts");
    let lines = BufReader::new(watch.stdout.take().expect("is piped")).lines();
    let mut lines = lines.map(|line| line.expect("is text"));
    let search = lines.find_map(|line| line.strip_prefix("search ").map(str::to_string));
    let search = search.expect("tells its number");
    assert!(is_alive(&search));
    watch.kill().expect("is mine");
    watch.wait().expect("ends");
    for _ in 0..100 {
        if !is_alive(&search) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("process {search} goes on");
}
