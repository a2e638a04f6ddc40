//! Drivers that are too old, lack a function or find nothing: an error that says so, never a panic. The driver is a stub
//! that a C compiler makes, in a process that is told to load it.

#![expect(unsafe_code, reason = "streams of others are there by their word")]

mod alike;
mod refusals;

use std::ffi::c_void;
use std::path::PathBuf;
use std::process::{Command, Output};

use exactile::internals::{CACHE_FOLDER, CACHE_SWITCH};
use exactile::prelude::*;
use exactile::{Result, Stream};
use rayon::prelude::*;

const STUB: &str = include_str!("driver.c");

/// Set in the processes that load a stub, to what they do.
const CHILD: &str = "EXACTILE_TEST_DRIVER";

#[kernel]
fn doubles(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = arange(0, 8);
    store(y + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
}

/// Needs its checks in every launch.
#[kernel]
fn scatters(x: Ptr<i32>, y: PtrMut<i32>) {
    store(y + load(x + arange(0, 8)), 1);
}

/// What a program does with a GPU.
fn work() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::from_slice(&device, &[1.0f32; 8])?;
    let mut y = Buffer::<f32>::zeros(&device, 8)?;
    let kernel = doubles();
    for _ in 0..3 {
        kernel.launch(&device, 1, (&x, &mut y, 8))?;
    }
    let (stream, begin) = (device.stream()?, device.event()?);
    kernel.launch(&stream, 1, (&x, &mut y, 8))?;
    stream.event()?.synchronize()?;
    begin.synchronize()?;
    let mut graph = stream.capture(|stream| kernel.launch(stream, 1, (&x, &mut y, 8)))?;
    graph.update(&stream, |stream| kernel.launch(stream, 1, (&x, &mut y, 7)))?;
    graph.replay(&stream, (&x, &mut y))?;
    kernel.launch(&adopted(&device, 1)?, 1, (&x, &mut y, 8))?;
    adopted(&device, 2)?;
    // Nothing ran.
    assert_eq!(y.to_vec()?, [0.0; 8]);
    device.synchronize()
}

/// A stream of others, of which the stub wants no more than a handle.
fn adopted(device: &Device, handle: usize) -> Result<Stream> {
    let handle = std::ptr::without_provenance_mut::<c_void>(0x1000 * handle);
    // SAFETY: the stub has nothing behind a handle.
    unsafe { Stream::from_raw(device, handle, ()) }
}

/// A launch with an access out of bounds, behind which the event fails.
fn event_fails() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::from_slice(&device, &[1.0f32; 8])?;
    let mut y = Buffer::<f32>::zeros(&device, 8)?;
    let told = doubles().launch(&device, 1, (&x, &mut y, 8));
    assert!(
        told.expect_err("fails")
            .to_string()
            .contains("the stub says no")
    );
    y.to_vec().map(drop)
}

/// A launch with an access out of bounds, before a fill that fails.
fn fill_fails() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::from_slice(&device, &[1.0f32; 8])?;
    let mut y = Buffer::<f32>::zeros(&device, 8)?;
    doubles().launch(&device, 1, (&x, &mut y, 8))?;
    let told = y.fill(1.0).expect_err("fails").to_string();
    assert!(told.contains("no such function"), "{told}");
    y.to_vec().map(drop)
}

/// What launches and replays that check bounds ask of the driver, each after the one before it has ended.
fn checks() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::from_slice(&device, &[1i32; 8])?;
    let mut y = Buffer::<i32>::zeros(&device, 8)?;
    let kernel = scatters();
    kernel.launch(&device, 1, (&x, &mut y))?;
    println!("\nbegin");
    for _ in 0..2 {
        kernel.launch(&device, 1, (&x, &mut y))?;
    }
    println!("end");
    let early = scatters().early(2);
    early.launch(&device, 1, (&x, &mut y))?;
    println!("begin");
    early.launch(&device, 1, (&x, &mut y))?;
    println!("end");
    let stream = device.stream()?;
    let graph = stream.capture(|stream| {
        kernel.launch(stream, 1, (&x, &mut y))?;
        kernel.launch(stream, 1, (&x, &mut y))
    })?;
    graph.replay(&stream, (&x, &mut y))?;
    println!("begin");
    graph.replay(&stream, (&x, &mut y))?;
    println!("end");
    Ok(())
}

/// Launches of which each 64th, which has the first record again, has an access out of bounds.
fn errors_in_turns() -> Result<()> {
    let device = Device::cuda(0)?;
    let x = Buffer::from_slice(&device, &[1i32; 8])?;
    let mut y = Buffer::<i32>::zeros(&device, 8)?;
    for launch in 0..130 {
        scatters().launch(&device, 1, (&x, &mut y))?;
        println!("\nbegin");
        let told = device.synchronize();
        println!("end");
        assert_eq!(told.is_err(), launch % 64 == 0, "{launch}: {told:?}");
    }
    Ok(())
}

/// Streams of others in turns, each of which has work under way; and so many that one must be waited for.
fn streams_in_turns() -> Result<()> {
    let device = Device::cuda(0)?;
    let mut names = Vec::new();
    for handle in [1, 2, 1, 2] {
        names.push(format!("{:?}", adopted(&device, handle)?));
    }
    assert_eq!(names[..2], names[2..]);
    for handle in 3..=16 {
        adopted(&device, handle)?;
    }
    for _ in 0..2 {
        let told = adopted(&device, 100).expect_err("must wait").to_string();
        assert!(told.contains("`cuStreamSynchronize` failed"), "{told}");
    }
    // None was lost.
    assert_eq!(format!("{:?}", adopted(&device, 1)?), names[0]);
    Ok(())
}

/// What processes do, by name.
const WORKS: [(&str, fn() -> Result<()>); 13] = [
    ("work", work),
    ("event fails", event_fails),
    ("checks", checks),
    ("fill fails", fill_fails),
    ("errors in turns", errors_in_turns),
    ("streams in turns", streams_in_turns),
    ("places", refusals::places),
    ("capture of others", refusals::capture_of_others),
    ("searches", refusals::searches),
    ("clocks", refusals::clocks),
    ("alike, checks", alike::checks),
    ("alike, words", alike::words),
    ("alike, keeps", alike::keeps),
];

struct Stub(PathBuf);

impl Stub {
    /// Compiles the driver with these definitions; nothing without a compiler.
    fn new(name: &str, definitions: &[String]) -> Option<Self> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("driver_{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder is writable");
        let source = folder.join("driver.c");
        std::fs::write(&source, STUB).expect("the folder is writable");
        let library = folder.join("libcuda.so.1");
        let definitions = definitions.iter().map(|it| format!("-D{it}"));
        let compiler = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .args(definitions)
            .output();
        let Ok(compiler) = compiler else {
            eprintln!("SKIPPED: no C compiler makes a driver");
            return None;
        };
        assert!(compiler.status.success(), "{compiler:?}");
        // The bindings look for this name first.
        std::os::unix::fs::symlink(&library, folder.join("libcuda.so")).expect("is new");
        Some(Self(folder))
    }

    /// Works with the driver in a process of its own.
    fn run(&self, work: &str) -> Output {
        let test = "driver::a_whole_driver_is_taken";
        let mut command = Command::new(std::env::current_exe().expect("has a name"));
        command
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, work)
            .env("LD_LIBRARY_PATH", &self.0)
            .env("RUST_BACKTRACE", "0")
            .env(CACHE_FOLDER, self.0.join("cache"))
            .env_remove(CACHE_SWITCH)
            .env_remove("EXACTILE_PTXAS");
        command.output().expect("the test's binary starts")
    }

    /// What some work said.
    fn outcome(&self, work: &str) -> String {
        let output = self.run(work);
        let text = String::from_utf8_lossy(&output.stdout);
        let end = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}{end}", self.0.display());
        let (_, outcome) = text.split_once("outcome: ").expect("is said");
        outcome.lines().next().expect("is a line").to_string()
    }
}

/// The functions of the stub.
fn functions() -> Vec<&'static str> {
    let lines = STUB.lines().filter_map(|line| line.strip_prefix("Code "));
    lines
        .filter_map(|line| Some(line.split_once('(')?.0))
        .collect()
}

/// The outcome of [`work`] with a driver that is made with these definitions.
fn outcome(name: &str, definitions: &[&str]) -> Option<String> {
    outcome_of("work", name, definitions)
}

fn outcome_of(work: &str, name: &str, definitions: &[&str]) -> Option<String> {
    let definitions: Vec<String> = definitions.iter().map(ToString::to_string).collect();
    Some(Stub::new(name, &definitions)?.outcome(work))
}

#[test]
fn a_whole_driver_is_taken() {
    if let Ok(name) = std::env::var(CHILD) {
        let work = WORKS.iter().find(|(known, _)| *known == name);
        let (_, work) = work.expect("is known");
        let outcome = work().map_or_else(|error| error.to_string(), |()| "all works".to_string());
        println!("\noutcome: {}", outcome.replace('\n', " "));
        return;
    }
    if let Some(outcome) = outcome("whole", &[]) {
        assert_eq!(outcome, "all works");
    }
}

#[test]
fn a_driver_without_a_function_is_an_error() {
    let functions = functions();
    let outcomes: Vec<(&str, Option<String>)> = functions
        .par_iter()
        .map(|&function| {
            let definition = format!("{function}=missing");
            (function, outcome(function, &[&definition]))
        })
        .collect();
    let mut told = 0;
    for (function, outcome) in outcomes {
        let Some(outcome) = outcome else {
            return;
        };
        if outcome != "all works" {
            told += 1;
            let wanted = format!(
                "`{function}` failed: the driver library `libcuda.so.1` has no such function, expected one for CUDA 12.8"
            );
            assert!(outcome.contains(&wanted), "{outcome}");
        }
    }
    assert!(told > 20, "{told}");
}

#[test]
fn the_driver_is_called_by_what_knows_its_functions() {
    let folder = crate::root().join("backends/nvptx/src");
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("is a folder") {
            let path = entry.expect("is listed").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("is read");
            let mut calls = text.split("sys::cu").skip(1);
            let around = calls.find(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
            assert_eq!(
                around,
                None,
                "{}: `call!` and `ask!` are the way",
                path.display()
            );
        }
    }
}

#[test]
fn a_driver_that_cannot_be_used_says_why() {
    for (name, definition, wanted) in [
        (
            "old",
            "VERSION=12040",
            "the driver is for CUDA 12.4, expected 12.8",
        ),
        ("none", "DEVICES=0", "device 0 of 0"),
        ("refuses", "STARTS=999", "`cuInit` failed: the stub says no"),
    ] {
        if let Some(outcome) = outcome(name, &[definition]) {
            assert!(outcome.contains(wanted), "{outcome}");
        }
    }
}

#[test]
fn a_file_that_is_no_library_is_an_error() {
    let Some(stub) = Stub::new("text", &[]) else {
        return;
    };
    std::fs::remove_file(stub.0.join("libcuda.so")).expect("is there");
    std::fs::write(stub.0.join("libcuda.so.1"), "no library").expect("is writable");
    let outcome = stub.outcome("work");
    assert!(
        outcome.contains("the driver library `libcuda.so.1` does not open"),
        "{outcome}"
    );
}

#[test]
fn what_was_queued_before_a_failure_is_seen_to_its_end() {
    for (work, definition) in [
        ("event fails", "EVENTS=1"),
        ("fill fails", "cuMemsetD32Async=missing"),
    ] {
        if let Some(outcome) = outcome_of(work, &work.replace(' ', "_"), &["WRONG", definition]) {
            let wanted = "kernel `doubles` accesses element 0 of `x`, which has 8";
            assert!(outcome.contains(wanted), "{work}: {outcome}");
        }
    }
}

#[test]
fn streams_of_others_in_turns_wait_for_nothing_and_stay_known() {
    let definitions = ["BUSY=600", "cuStreamSynchronize=missing"];
    if let Some(outcome) = outcome_of("streams in turns", "turns", &definitions) {
        assert_eq!(outcome, "all works");
    }
}

/// The calls that put work into a stream, from each beginning to its end.
fn calls_of(work: &str, definitions: &[&str]) -> Option<Vec<Vec<String>>> {
    let definitions: Vec<String> = definitions.iter().map(ToString::to_string).collect();
    let output = Stub::new(&work.replace(' ', "_"), &definitions)?.run(work);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("outcome: all works"), "{output:?}");
    let parts = text.split("begin\n").skip(1);
    let parts = parts.map(|part| part.split_once("end\n").expect("ends").0);
    let call = |line: &str| line.trim_start_matches("call: ").to_string();
    Some(parts.map(|part| part.lines().map(call).collect()).collect())
}

/// So many words of each launch, from each beginning to its end.
fn words_of(work: &str, words: usize) -> Option<Vec<Vec<String>>> {
    calls_of(work, &[&format!("WORDS={words}")])
}

/// Their owner may begin to capture a stream that others have made.
#[test]
fn an_error_leaves_nothing_to_do_in_its_stream() {
    let Some(calls) = calls_of("errors in turns", &["TELLS", "WRONG", "AGAIN=64"]) else {
        return;
    };
    assert_eq!(calls, vec![Vec::<String>::new(); 130]);
}

#[test]
fn a_checked_launch_is_a_kernel_and_an_event() {
    let Some(calls) = calls_of("checks", &["TELLS"]) else {
        return;
    };
    let launch = ["cuLaunchKernel", "cuEventRecord"];
    let early = ["cuLaunchKernelEx", "cuEventRecord"];
    // A second stream has events behind all work.
    let replay = [
        "cuMemcpyHtoDAsync_v2",
        "cuGraphLaunch",
        "cuEventRecord",
        "cuEventRecord",
    ];
    assert_eq!(
        calls,
        [[launch, launch].concat(), early.to_vec(), replay.to_vec()]
    );
}
