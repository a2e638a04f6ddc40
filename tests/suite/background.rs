//! Searches that go on while launches do: one for a problem, on inputs of their own, with errors that nobody else is told.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exactile::autotune::{TuneKey, Tuner, Workload, with_output};
use exactile::prelude::*;
use exactile::{Array, Determinism, Result};

use crate::logged;

/// More than any search of these takes.
const LONG: Duration = Duration::from_secs(120);

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("background_{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the folder is writable");
    path
}

fn key(kernel: &str, extent: usize) -> TuneKey {
    TuneKey {
        kernel: kernel.to_string(),
        extents: vec![extent],
        variant: "none".to_string(),
    }
}

/// Writes the number that it is launched with, after waiting for as many microseconds; 13 panics.
struct Fake(f32);

impl Workload<(u8, u64)> for Fake {
    fn launch(&mut self, &(number, microseconds): &(u8, u64)) -> Result<()> {
        assert_ne!(number, 13, "on purpose");
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_micros(microseconds) {}
        self.0 = f32::from(number);
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(vec![Array::from_slice([1], &[self.0])?])
    }

    fn spoil(&mut self) -> Result<()> {
        self.0 = f32::NAN;
        Ok(())
    }
}

fn golden() -> Vec<Array> {
    vec![Array::from_slice([1], &[1.0f32]).expect("one element")]
}

type Candidate = (u8, u64);

/// Asks for the winner among `candidates`, for `key`, by a search that notes that it has begun.
fn choose(
    tuner: &Tuner,
    key: &TuneKey,
    candidates: &[Candidate],
    begun: &Arc<AtomicUsize>,
) -> Result<Option<Candidate>> {
    let begun = Arc::clone(begun);
    let level = Determinism::Exact;
    tuner.choose(&Device::cpu(), key, level, candidates, move |_| {
        begun.fetch_add(1, Ordering::Relaxed);
        Ok((golden(), Fake(0.0)))
    })
}

const CANDIDATES: [Candidate; 3] = [(1, 2000), (2, 0), (1, 20)];

#[test]
fn threads_that_ask_for_one_problem_begin_one_search() -> Result<()> {
    let file = folder("threads").join("winners.json");
    let (begun, key) = (Arc::new(AtomicUsize::new(0)), key("threads", 8));
    let (go, waits): (Sender<()>, Receiver<()>) = channel();
    let waits = Arc::new(Mutex::new(waits));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                // Tuners of one file are one.
                let tuner = Tuner::with_file(&file).in_background();
                let (begun, waits) = (Arc::clone(&begun), Arc::clone(&waits));
                let search = move |_: &Device| {
                    begun.fetch_add(1, Ordering::Relaxed);
                    let _ = waits.lock().expect("one waits").recv();
                    Ok((golden(), Fake(0.0)))
                };
                let level = Determinism::Exact;
                let chosen = tuner.choose(&Device::cpu(), &key, level, &CANDIDATES, search);
                assert_eq!(chosen.expect("the file is readable"), None);
                assert!(!tuner.wait(Duration::ZERO).expect("no error"));
            });
        }
    });
    drop(go);
    let tuner = Tuner::with_file(&file).in_background();
    assert!(tuner.wait(LONG)?);
    assert_eq!(choose(&tuner, &key, &CANDIDATES, &begun)?, Some((1, 20)));
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    // It is on file as any other.
    let other = Tuner::with_file(&file);
    let known = other.known(&Device::cpu(), &key)?;
    assert_eq!(known.map(|known| known.config), Some("(1, 20)".to_string()));
    assert_eq!(choose(&other, &key, &CANDIDATES, &begun)?, Some((1, 20)));
    Ok(())
}

#[test]
fn an_unseen_problem_goes_on_with_the_nearest_winner() -> Result<()> {
    for tuner in [
        Tuner::with_file(folder("nearest").join("winners.json")),
        Tuner::forgetful(),
    ] {
        let begun = Arc::new(AtomicUsize::new(0));
        let ask = |tuner: &Tuner, extent, candidates: &[Candidate]| {
            choose(tuner, &key("nearest", extent), candidates, &begun)
        };
        assert_eq!(ask(&tuner, 8, &CANDIDATES)?, None);
        assert_eq!(begun.load(Ordering::Relaxed), 0, "it was not asked for");
        let tuner = tuner.in_background();
        assert_eq!(ask(&tuner, 8, &CANDIDATES)?, None);
        assert!(tuner.wait(LONG)?);
        let other = [(1, 20), (1, 0)];
        assert_eq!(ask(&tuner, 64, &other)?, Some((1, 20)));
        assert!(tuner.wait(LONG)?);
        assert_eq!(ask(&tuner, 64, &other)?, Some((1, 0)));
        assert_eq!(ask(&tuner, 8, &CANDIDATES)?, Some((1, 20)));
        assert_eq!(begun.load(Ordering::Relaxed), 2);
        // What cannot be chosen any more is searched for again, as often as it takes: once.
        let newer = [(1, 5)];
        assert_eq!(ask(&tuner, 256, &newer)?, None);
        assert!(tuner.wait(LONG)?);
        assert_eq!(ask(&tuner, 256, &newer)?, Some((1, 5)));
    }
    Ok(())
}

#[test]
fn a_search_that_fails_is_told_once_and_not_begun_again() -> Result<()> {
    logged::begin();
    let tuner = Tuner::with_file(folder("fails").join("winners.json")).in_background();
    let begun = Arc::new(AtomicUsize::new(0));
    // A panic is passed over, and what is wrong does not win, however fast it is.
    let some = key("background_panics", 8);
    let candidates = [(13, 0), (2, 0), (1, 500)];
    assert_eq!(choose(&tuner, &some, &candidates, &begun)?, None);
    assert!(tuner.wait(LONG)?);
    assert_eq!(choose(&tuner, &some, &candidates, &begun)?, Some((1, 500)));
    let none = key("background_differs", 8);
    assert_eq!(choose(&tuner, &none, &[(2, 0), (13, 0)], &begun)?, None);
    let message = tuner.wait(LONG).expect_err("none is right").to_string();
    let told = "the search in the background for `background_differs` [8] failed: none of 2 configurations is right";
    assert!(message.starts_with(told), "{message}");
    assert_eq!(logged::lines("background_differs"), [message]);
    assert!(tuner.wait(LONG)?, "it is told once");
    assert_eq!(choose(&tuner, &none, &[(2, 0), (13, 0)], &begun)?, None);
    assert_eq!(begun.load(Ordering::Relaxed), 2);
    let level = Determinism::Exact;
    let panics = key("background_workload", 8);
    let chosen =
        tuner.choose(
            &Device::cpu(),
            &panics,
            level,
            &[(1, 0)],
            |_| match std::hint::black_box(true) {
                true => panic!("no workload"),
                false => Ok((golden(), Fake(0.0))),
            },
        );
    assert_eq!(chosen?, None);
    let message = tuner.wait(LONG).expect_err("it panics").to_string();
    assert!(
        message.ends_with("the search panicked: no workload"),
        "{message}"
    );
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_winner_that_no_file_takes_serves_this_process() -> Result<()> {
    logged::begin();
    let folder = folder("closed");
    // A folder that cannot be made, by whoever it is.
    std::os::unix::fs::symlink(folder.join("nothing"), folder.join("link")).expect("is writable");
    let tuner = Tuner::with_file(folder.join("link/winners.json")).in_background();
    let (begun, key) = (Arc::new(AtomicUsize::new(0)), key("background_closed", 8));
    assert_eq!(choose(&tuner, &key, &CANDIDATES, &begun)?, None);
    let message = tuner.wait(LONG).expect_err("nothing is kept").to_string();
    assert!(message.contains("background_closed/link"), "{message}");
    assert_eq!(logged::lines("`background_closed`"), [message]);
    assert_eq!(choose(&tuner, &key, &CANDIDATES, &begun)?, Some((1, 20)));
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    Ok(())
}

/// Adds one, where the tile size lets it.
#[kernel(BLOCK = 64, grid = n.div_ceil(BLOCK))]
fn incremented<#[meta(32..=256)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let own = load(out + at).mask(at < n);
    store(out + at, own + load(x + at).mask(at < n)).mask(at < n);
}

#[test]
fn a_kernel_takes_the_winner_of_a_search_on_copies_of_its_arguments() -> Result<()> {
    let gpu = Device::cuda(0).ok();
    for device in [Device::cpu(), Device::lanes()].into_iter().chain(gpu) {
        let n = 500;
        let mut x = Buffer::from_slice(&device, &[1.0f32; 500])?;
        let mut out = Buffer::from_slice(&device, &[3.0f32; 500])?;
        let tuner = Tuner::forgetful()
            .budget(Duration::from_secs(1))
            .in_background();
        let tuned = |x: &Buffer<f32>, out: &mut Buffer<f32>| {
            incremented().tuned(&tuner, &device, (), (x, out, n))
        };
        let plain = tuned(&x, &mut out)?;
        assert_eq!(plain.config(), incremented().config());
        // Both are the user's to change at once.
        x.fill(2.0)?;
        plain.run(&device, (), (&x, &mut out, n))?;
        assert_eq!(out.to_vec()?, [5.0; 500]);
        assert!(tuner.wait(LONG)?);
        assert_eq!(
            (x.to_vec()?, out.to_vec()?),
            (vec![2.0; 500], vec![5.0; 500])
        );
        let known = tuner.known(&device, &key("incremented", 1))?;
        assert_eq!(known, None, "another number of extents");
        let found = tuned(&x, &mut out)?;
        found.run(&device, (), (&x, &mut out, n))?;
        assert_eq!(out.to_vec()?, [7.0; 500]);
    }
    Ok(())
}

/// Stores at a place that the launch states.
#[kernel]
fn stored(out: PtrMut<f32>, place: i32) {
    store(out + place + arange(0, 4), full([4], 1.0f32));
}

#[test]
fn errors_of_candidates_are_no_errors_of_the_user() -> Result<()> {
    let device = Device::cpu();
    let tuner = Tuner::forgetful().in_background();
    let (launched, sees) = channel();
    let (goes, go) = channel();
    let candidates = [1000, 0];
    let search = move |device: &Device| {
        let device = device.clone();
        let out = Buffer::<f32>::zeros(&device, 4)?;
        let workload = with_output(out, move |out, &place: &i32| {
            stored().launch(&device, 1, (out, place))?;
            if place > 0 && launched.send(()).is_ok() {
                let _ = go.recv();
            }
            Ok(())
        });
        Ok((vec![Array::from_slice([4], &[1.0f32; 4])?], workload))
    };
    let (key, level) = (key("stored", 4), Determinism::Exact);
    let chosen = tuner.choose(&device, &key, level, &candidates, search)?;
    assert_eq!(chosen, None);
    // The launch that is only listed, and the one that runs.
    for _ in 0..2 {
        sees.recv_timeout(LONG).expect("it is launched");
        device.synchronize()?;
        goes.send(()).expect("it waits");
    }
    drop((sees, goes));
    assert!(tuner.wait(LONG)?);
    device.synchronize()?;
    let config = tuner.known(&device, &key)?.map(|known| known.config);
    assert_eq!(config, Some("0".to_string()));
    Ok(())
}

/// Tells each launch, and takes 20 ms.
struct Slow(Sender<()>);

impl Workload<u32> for Slow {
    fn launch(&mut self, _: &u32) -> Result<()> {
        let _ = self.0.send(());
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(Vec::new())
    }

    fn spoil(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
#[expect(clippy::exit, reason = "the end of a process is what is tested")]
fn a_process_that_ends_in_a_search_leaves_nothing() -> Result<()> {
    const CHILD: &str = "EXACTILE_TEST_BACKGROUND";
    const NAME: &str = "background::a_process_that_ends_in_a_search_leaves_nothing";
    if let Some(child) = std::env::var_os(CHILD) {
        let child = child.into_string().expect("the parent wrote UTF-8");
        let (launches, file) = child.split_once(' ').expect("a number and a file");
        let tuner = Tuner::with_file(file).in_background();
        let candidates: Vec<u32> = (0..10).collect();
        let (launched, sees) = channel();
        let (key, level) = (key("slow", 1), Determinism::Exact);
        let search = |_: &Device| Ok((Vec::new(), Slow(launched)));
        tuner.choose(&Device::cpu(), &key, level, &candidates, search)?;
        for _ in 0..launches.parse().expect("a number") {
            sees.recv_timeout(LONG).expect("it is launched");
        }
        std::process::exit(0);
    }
    let folder = folder("ends");
    let binary = std::env::current_exe().expect("the test's binary has a path");
    // While launches are listed, while one is compared, and while one is measured.
    for launches in [5, 15, 30] {
        let file = folder.join("winners.json");
        let child = std::process::Command::new(&binary)
            .args(["--exact", NAME])
            .env(CHILD, format!("{launches} {}", file.display()))
            .output()
            .expect("the test's binary starts");
        assert!(child.status.success(), "{child:?}");
        let left = std::fs::read_dir(&folder)
            .expect("the folder is there")
            .count();
        assert_eq!(left, 0, "after {launches} launches");
    }
    Ok(())
}
