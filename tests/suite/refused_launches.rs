//! Launches, captures and searches that cannot go on: what they say.

use std::path::PathBuf;
use std::process::{Command, Output};

use exactile::autotune::{TuneKey, Tuner, Workload};
use exactile::prelude::*;
use exactile::{Array, Determinism, Result, Schedule};

#[kernel(BLOCK = 8)]
fn doubles<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
}

fn refused<T>(found: Result<T>) -> String {
    found.map(drop).expect_err("is refused").to_string()
}

#[track_caller]
fn says(text: &str, part: &str) {
    assert!(text.contains(part), "{part}\nis not in\n{text}");
}

fn buffers(device: &Device) -> Result<[Buffer<f32>; 2]> {
    Ok([Buffer::zeros(device, 64)?, Buffer::zeros(device, 64)?])
}

#[test]
fn compiled_kernels_name_the_argument_that_does_not_fit() -> Result<()> {
    let device = Device::cpu();
    let [x, mut y] = buffers(&device)?;
    let sixteens = doubles().compile(&device, 2, (&x, &mut y, 16))?;
    sixteens.run(&device, 2, (&x, &mut y, 48))?;
    let remedy = "compile it for such arguments as well, or launch the kernel itself, which compiles for any";
    let message = refused(sixteens.run(&device, 2, (&x, &mut y, 12)));
    says(
        &message,
        &format!(
            "argument 2 is a multiple of 4, and it was compiled for a multiple of 16: {remedy}"
        ),
    );
    let one = doubles().compile(&device, 2, (&x, &mut y, 1))?;
    let message = refused(one.run(&device, 2, (&x, &mut y, 16)));
    says(
        &message,
        &format!("argument 2 is a multiple of 16, and it was compiled for 1: {remedy}"),
    );
    Ok(())
}

#[test]
fn grids_have_no_more_programs_than_can_be_counted() -> Result<()> {
    let device = Device::cpu();
    let [x, mut y] = buffers(&device)?;
    let message = refused(doubles().run(&device, [u32::MAX; 3], (&x, &mut y, 16)));
    says(&message, "over 2^64 programs");
    Ok(())
}

#[test]
fn captures_take_the_launches_of_their_stream_alone() -> Result<()> {
    let device = Device::cpu();
    let [x, mut y] = buffers(&device)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let graph = stream.capture(|_| doubles().launch(&other, 2, (&x, &mut y, 16)));
    let message = refused(graph);
    says(
        &message,
        "` into another stream than the one that is captured: put it into the stream that the capture \
         hands over, or launch it before",
    );
    says(&message, "--> the capture at ");
    Ok(())
}

#[test]
fn schedules_have_room_on_the_machine() -> Result<()> {
    let device = Device::lanes();
    let [x, mut y] = buffers(&device)?;
    let crowded = Schedule::AUTO.warps(16).occupancy(8);
    let message = refused(
        doubles()
            .schedule(crowded)
            .run(&device, 2, (&x, &mut y, 16)),
    );
    says(
        &message,
        "an occupancy of 8 thread blocks, expected at most 4 of 16 warps each",
    );
    let wide = doubles().block(1 << 14).schedule(Schedule::AUTO.warps(1));
    let message = refused(wide.run(&device, 1, (&x, &mut y, 16)));
    says(
        &message,
        "a tile of shape [16384] takes 512 elements in each lane, expected at most 256",
    );
    Ok(())
}

#[kernel]
fn settles<#[meta(16..=8)] const BLOCK: usize>(y: PtrMut<f32>) {
    store(y + arange(0, BLOCK), 1.0);
}

#[test]
fn searches_need_something_to_try() -> Result<()> {
    let device = Device::cpu();
    let mut y = Buffer::<f32>::zeros(&device, 64)?;
    let found = settles().tune(&device, 1, (&mut y,));
    says(&refused(found), "there are no configurations");
    Ok(())
}

fn key() -> TuneKey {
    TuneKey {
        kernel: "refused".to_string(),
        extents: vec![1],
        variant: "none".to_string(),
    }
}

/// Gives so many results.
struct Results(usize);

impl Workload<u32> for Results {
    fn launch(&mut self, _: &u32) -> Result<()> {
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        (0..self.0)
            .map(|_| Array::from_slice([1], &[1.0f32]))
            .collect()
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn candidates_give_as_many_results_as_the_golden_run() -> Result<()> {
    let golden = [Array::from_slice([1], &[1.0f32])?];
    let level = Determinism::Exact;
    let tune = |count| {
        let mut work = Results(count);
        Tuner::forgetful().tune(&Device::cpu(), &key(), level, &[1], &golden, &mut work)
    };
    tune(1)?;
    says(
        &refused(tune(2)),
        "the workload has 2 outputs, the golden run 1",
    );
    Ok(())
}

/// What a supervised process does, by name.
const CHILD: &str = "EXACTILE_TEST_ENDS";

/// Runs the test of this name again, as a program that searches.
fn supervised(test: &str, end: &str) -> Output {
    let binary = std::env::current_exe().expect("the test's binary has a path");
    let mut command = Command::new(binary);
    command.args(["--exact", test, "--test-threads", "1", "--nocapture"]);
    let output = command.env(CHILD, end).env("RUST_BACKTRACE", "0").output();
    output.expect("the test's binary starts")
}

/// Ends the process as a shell would.
fn kill(signal: &str) -> ! {
    let own = std::process::id().to_string();
    let sent = Command::new("kill").args([signal, &own]).status();
    assert!(
        sent.is_ok_and(|it| it.success()),
        "`kill` is no program here"
    );
    loop {
        std::thread::park();
    }
}

#[cfg(unix)]
#[test]
#[expect(clippy::exit, reason = "what a candidate may do")]
fn a_supervised_search_says_how_it_ended() {
    const NAME: &str = "refused_launches::a_supervised_search_says_how_it_ended";
    if let Ok(end) = std::env::var(CHILD) {
        let found = exactile::command::supervised(|| match end.as_str() {
            "fails" => panic!("told above"),
            "stopped" => kill("-TERM"),
            "killed" => kill("-KILL"),
            "exits" => std::process::exit(0),
            _ => std::process::abort(),
        });
        println!("said: {}", refused(found));
        return;
    }
    for (end, message) in [
        ("fails", "said: tuning failed, as told above"),
        ("stopped", "said: tuning was stopped"),
        ("crashes", "said: candidates ended the process 40 times"),
        ("killed", "said: candidates ended the process 40 times"),
        ("exits", "said: candidates ended the process 40 times"),
    ] {
        let output = supervised(NAME, end);
        says(&String::from_utf8_lossy(&output.stdout), message);
    }
}

/// Ends the process where it is not only listed.
struct Deadly(bool);

impl Workload<u32> for Deadly {
    fn launch(&mut self, config: &u32) -> Result<()> {
        match config {
            1 if self.0 => std::process::abort(),
            _ => Ok(()),
        }
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        self.0 = true;
        Ok(())
    }
}

#[test]
fn a_candidate_that_ended_two_processes_is_named() {
    const NAME: &str = "refused_launches::a_candidate_that_ended_two_processes_is_named";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("refused_deadly");
    let file = folder.join("winners.json");
    let tune = |file: &std::path::Path| {
        let (tuner, level) = (Tuner::with_file(file), Determinism::Exact);
        tuner.tune(&Device::cpu(), &key(), level, &[1], &[], &mut Deadly(false))
    };
    if std::env::var_os(CHILD).is_some() {
        let _ = tune(&file);
        return;
    }
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    for _ in 0..2 {
        assert!(!supervised(NAME, "dies").status.success());
    }
    says(
        &refused(tune(&file)),
        "the process that ran it ended, twice, or its device was lost",
    );
}

#[cfg(not(feature = "cuda"))]
#[test]
fn built_code_is_for_builds_with_gpus() {
    says(
        &refused(exactile::built::Built::open("nowhere")),
        "code that was built ahead of time needs a build with the feature `cuda`",
    );
}
