//! The tuner: only right candidates win, and winners are remembered.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use exactile::autotune::{TuneKey, Tuner, Verdict, Workload, with_output};
use exactile::prelude::*;
use exactile::{
    Array, Comparable, Determinism, DeviceKind, Error, Graph, Result, Schedule, Stream,
};

/// Configuration `(value, microseconds)`: writes the value after waiting.
struct Fake {
    output: f32,
    launches: usize,
}

impl Workload<(f32, u64)> for Fake {
    fn launch(&mut self, config: &(f32, u64)) -> Result<()> {
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_micros(config.1) {}
        self.output = config.0;
        self.launches += 1;
        Ok(())
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(vec![Array::from_slice([1], &[self.output])?])
    }

    fn spoil(&mut self) -> Result<()> {
        self.output = f32::NAN;
        Ok(())
    }
}

fn key() -> TuneKey {
    TuneKey {
        kernel: "fake".to_string(),
        extents: vec![1000, 7],
        variant: "f32".to_string(),
    }
}

fn golden() -> [Array; 1] {
    [Array::from_slice([1], &[1.0f32]).expect("one element")]
}

fn fake() -> Fake {
    Fake {
        output: 0.0,
        launches: 0,
    }
}

#[test]
fn the_fastest_right_candidate_wins() {
    let wrong = f32::from_bits(1.0f32.to_bits() + 1);
    let candidates = [(1.0, 3000), (wrong, 0), (1.0, 300)];
    let (device, tuner) = (Device::cpu(), Tuner::forgetful());
    let tune =
        |level, fake: &mut Fake| tuner.tune(&device, &key(), level, &candidates, &golden(), fake);
    let tuned = tune(Determinism::Exact, &mut fake()).expect("two are right");
    assert_eq!(tuned.config, (1.0, 300));
    assert!(matches!(tuned.trials[1].1, Verdict::Wrong(_)));
    let loose = tune(Determinism::NotGuaranteed, &mut fake()).expect("all are close");
    assert_eq!(loose.config, (wrong, 0));
}

#[test]
fn no_right_candidate_is_an_error_that_says_why() {
    let result = Tuner::forgetful().tune(
        &Device::cpu(),
        &key(),
        Determinism::Exact,
        &[(2.0, 0)],
        &golden(),
        &mut fake(),
    );
    let message = result.expect_err("nothing is right").to_string();
    assert!(
        message.contains("none of 1 configurations is right"),
        "{message}"
    );
    assert!(message.contains("found 2e0"), "{message}");
}

#[test]
fn winners_are_kept_in_a_file() {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("winners.json");
    let _ = std::fs::remove_file(&file);
    let (device, tuner) = (Device::cpu(), Tuner::with_file(&file));
    let candidates = [(1.0, 400), (1.0, 0)];
    let tune = |key: &TuneKey, fake: &mut Fake| {
        tuner.tune(
            &device,
            key,
            Determinism::Exact,
            &candidates,
            &golden(),
            fake,
        )
    };
    assert!(!tune(&key(), &mut fake()).expect("right").trials.is_empty());
    let mut again = fake();
    let tuned = tune(&key(), &mut again).expect("right");
    assert!(tuned.trials.is_empty() && tuned.config == (1.0, 0));
    assert_eq!(
        again.launches, 1,
        "the winner on file is checked, not measured"
    );
    let mut similar = key();
    similar.extents = vec![600, 5];
    assert!(
        tune(&similar, &mut fake())
            .expect("right")
            .trials
            .is_empty()
    );
    similar.extents = vec![2000, 5];
    assert!(
        !tune(&similar, &mut fake())
            .expect("right")
            .trials
            .is_empty()
    );
}

/// The sum of a row, tile by tile, in one tree over the row.
#[kernel]
fn tree_sum<const BLOCK: usize>(x: Tensor<f32, 2>, out: PtrMut<f32>) {
    let row = program_id(0);
    let tiles = x.tile([1, BLOCK]);
    let mut sum = sum_accumulator::<f32>([1]);
    for start in range(0, x.extent(1)).step(BLOCK) {
        sum.add(load(tiles.at_offset((row, start))), 1);
    }
    store(out + row + arange(0, 1), sum.finish());
}

/// The same, but the sums of tiles are added one after another: the bits depend on `BLOCK`.
#[kernel(order = "tile")]
fn chain_sum<const BLOCK: usize>(x: Tensor<f32, 2>, out: PtrMut<f32>) {
    let row = program_id(0);
    let tiles = x.tile([1, BLOCK]);
    let mut sum = zeros::<f32>([1]);
    for start in range(0, x.extent(1)).step(BLOCK) {
        sum += load(tiles.at_offset((row, start))).sum(1);
    }
    store(out + row + arange(0, 1), sum);
}

const ROWS: usize = 3;
const COLUMNS: usize = 1000;

/// How many tile sizes a tuner finds right.
fn right(
    device: &Device,
    launch: impl Fn(&Buffer<f32>, &mut Buffer<f32>, usize) -> Result<()>,
) -> usize {
    let numbers = exactile_harness::demo::random::<f32>(1, ROWS * COLUMNS);
    let x = Buffer::from_slice(device, &numbers).expect("fits");
    let candidates = [512, 64, 128, 16];
    let mut golden = Buffer::zeros(device, ROWS).expect("fits");
    launch(&x, &mut golden, candidates[0]).expect("runs");
    let golden = [golden.to_array().expect("is on the host")];
    let out = Buffer::zeros(device, ROWS).expect("fits");
    let mut workload = with_output(out, |out, &block: &usize| launch(&x, out, block));
    let level = Determinism::Exact;
    let tuned = Tuner::forgetful()
        .tune(device, &key(), level, &candidates, &golden, &mut workload)
        .expect("the first is right");
    let is_right = |trial: &&(usize, Verdict)| matches!(trial.1, Verdict::Measured(_));
    tuned.trials.iter().filter(is_right).count()
}

#[test]
fn a_kernel_is_tuned_over_its_tile_sizes() {
    let device = Device::cpu();
    let tree = right(&device, |x, out, block| {
        let kernel = tree_sum().block(block);
        kernel.run(&device, ROWS, (x.view([ROWS, COLUMNS])?, out))
    });
    assert_eq!(tree, 4);
    let chain = right(&device, |x, out, block| {
        let kernel = chain_sum().block(block);
        kernel.run(&device, ROWS, (x.view([ROWS, COLUMNS])?, out))
    });
    assert!(chain < 4, "a chain of tile sums depends on the tile size");
}

/// Nothing waits for all that is compiled, nor for new memory.
#[test]
fn candidates_are_compared_while_others_are_compiled() -> Result<()> {
    let device = Device::lanes();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    let tuner = Tuner::forgetful().on_progress(move |line| {
        let word = line.split(' ').next().unwrap_or("").to_string();
        told.lock().expect("nobody panics").push(word);
    });
    let x = Buffer::from_slice(&device, &[1.0f32; 64])?;
    let out = Buffer::<f32>::zeros(&device, 1)?;
    let launching = device.clone();
    let mut workload = with_output(out, move |out: &mut Buffer<f32>, &block: &usize| {
        let kernel = tree_sum().block(block);
        kernel.launch(&launching, 1, (x.view([1, 64])?, out))
    });
    let golden = [Array::from_slice([1], &[64.0f32])?];
    let blocks = [4, 8, 16];
    tuner.tune(
        &device,
        &key(),
        Determinism::Exact,
        &blocks,
        &golden,
        &mut workload,
    )?;
    let lines = lines.lock().expect("nobody panics");
    let judging = ["compiled", "comparing"].repeat(blocks.len());
    assert_eq!(lines[..judging.len()], judging);
    let first = Workload::<usize>::outputs(&workload)?;
    let place = first[0].bytes().as_ptr();
    let again = Workload::<usize>::outputs_again(&workload, first)?;
    assert_eq!(again[0].bytes().as_ptr(), place);
    assert_eq!(again[0].to_vec::<f32>()?, [64.0]);
    Ok(())
}

#[test]
fn candidates_that_do_not_compile_keep_their_reason() {
    let device = Device::cpu();
    let numbers = exactile_harness::demo::random::<f32>(1, ROWS * COLUMNS);
    let x = Buffer::from_slice(&device, &numbers).expect("fits");
    let launch = |out: &mut Buffer<f32>, &block: &usize| {
        let kernel = tree_sum().block(block);
        kernel.run(&device, ROWS, (x.view([ROWS, COLUMNS])?, out))
    };
    let mut golden = Buffer::zeros(&device, ROWS).expect("fits");
    launch(&mut golden, &512).expect("runs");
    let golden = [golden.to_array().expect("is on the host")];
    let mut workload = with_output(Buffer::zeros(&device, ROWS).expect("fits"), launch);
    let candidates = [64, 100, 128];
    let level = Determinism::Exact;
    let tuned = Tuner::forgetful()
        .tune(&device, &key(), level, &candidates, &golden, &mut workload)
        .expect("two are right");
    let [first, second, third] = &tuned.trials[..] else {
        panic!("found {:?}", tuned.trials);
    };
    assert!(matches!(first.1, Verdict::Measured(_)), "{first:?}");
    assert!(matches!(third.1, Verdict::Measured(_)), "{third:?}");
    let mut out = Buffer::zeros(&device, ROWS).expect("fits");
    let reason = launch(&mut out, &100).expect_err("100 is no power of two");
    assert!(
        matches!(&second.1, Verdict::Rejected(found) if *found == reason.to_string()),
        "{second:?}"
    );
}

#[test]
fn candidates_beyond_a_limit_fail_and_the_rest_goes_on() {
    for device in [Device::cpu(), Device::lanes()] {
        let numbers = exactile_harness::demo::random::<f32>(1, ROWS * COLUMNS);
        let x = Buffer::from_slice(&device, &numbers).expect("fits");
        let launch = |out: &mut Buffer<f32>, &(block, warps): &(usize, u32)| {
            let schedule = Schedule::AUTO.warps(warps);
            let kernel = tree_sum().block(block).schedule(schedule);
            kernel.run(&device, ROWS, (x.view([ROWS, COLUMNS])?, out))
        };
        let mut golden = Buffer::zeros(&device, ROWS).expect("fits");
        launch(&mut golden, &(64, 1)).expect("runs");
        let golden = [golden.to_array().expect("is on the host")];
        let mut workload = with_output(Buffer::zeros(&device, ROWS).expect("fits"), launch);
        // Too many elements for a tile, for memory and for a number; warps that no block has.
        let beyond = [
            (1 << 25, 1),
            (1 << 62, 1),
            (usize::MAX, 1),
            (64, 64),
            (64, 3),
        ];
        let on_lanes = device.kind() == DeviceKind::Lanes;
        let candidates: Vec<(usize, u32)> = beyond.into_iter().chain([(128, 1)]).collect();
        let level = Determinism::Exact;
        let tuned = Tuner::forgetful()
            .tune(&device, &key(), level, &candidates, &golden, &mut workload)
            .expect("one is right");
        assert_eq!(tuned.trials.len(), candidates.len());
        for (candidate, verdict) in &tuned.trials {
            let fails = beyond.contains(candidate) && (on_lanes || candidate.1 == 1);
            assert_eq!(
                matches!(verdict, Verdict::Rejected(reason) if !reason.is_empty()),
                fails,
                "{candidate:?}: {verdict:?}"
            );
        }
    }
}

/// Ends in one of the ways in which candidates fail, or writes a number.
fn odd(config: &&'static str) -> Result<f32> {
    match *config {
        "panics" => panic!("an index is 7"),
        "fails" => Err(exactile::Error::Invalid("no such tile".to_string())),
        "nan" => Ok(f32::NAN),
        "infinite" => Ok(f32::INFINITY),
        "minus" => Ok(f32::NEG_INFINITY),
        "large" => Ok(f32::MAX),
        "near" => Ok(1.000_001),
        _ => Ok(1.0),
    }
}

/// What became of each of `candidates` where the golden run gave `golden`, without exact bits.
fn verdicts(candidates: &[&'static str], golden: f32) -> Vec<Verdict> {
    let golden = [Array::from_slice([1], &[golden]).expect("one element")];
    let device = Device::cpu();
    let output = Buffer::<f32>::zeros(&device, 1).expect("fits");
    let mut workload = with_output(output, |out, config: &&'static str| {
        let number = odd(config)?;
        *out = Buffer::from_slice(out.device(), &[number])?;
        Ok(())
    });
    let level = Determinism::NotGuaranteed;
    let tuned = Tuner::forgetful()
        .tune(&device, &key(), level, candidates, &golden, &mut workload)
        .expect("one is right");
    tuned
        .trials
        .into_iter()
        .map(|(_, verdict)| verdict)
        .collect()
}

#[test]
fn infinities_and_nan_are_judged_right_without_exact_bits() {
    let all = ["nan", "infinite", "minus", "large", "near", "one"];
    for (golden, right) in [
        (1.0, &["near", "one"][..]),
        (f32::INFINITY, &["infinite"]),
        (f32::NAN, &["nan"]),
    ] {
        for (config, verdict) in all.iter().zip(verdicts(&all, golden)) {
            assert_eq!(
                matches!(verdict, Verdict::Measured(_)),
                right.contains(config),
                "{golden}: {config}: {verdict:?}"
            );
        }
    }
}

#[test]
fn candidates_that_panic_or_fail_are_reported_and_passed_over() {
    let verdicts = verdicts(&["panics", "fails", "one"], 1.0);
    let failed = |text: &str| Verdict::Failed(text.to_string());
    assert_eq!(verdicts[0], failed("it panicked: an index is 7"));
    assert_eq!(verdicts[1], failed("no such tile"));
    assert!(matches!(verdicts[2], Verdict::Measured(_)));
}

/// Increments by replays: of a graph that was captured before, or that is captured when the candidate runs.
struct Replays {
    stream: Stream,
    x: Buffer<f32>,
    before: Graph,
    told: Vec<Result<usize>>,
    left: Vec<f32>,
}

#[kernel]
fn increment(x: PtrMut<f32>) {
    store(x, load(x) + 1.0);
}

impl Replays {
    fn new(device: &Device) -> Result<Self> {
        let (stream, mut x) = (device.stream()?, Buffer::zeros(device, 1)?);
        Ok(Self {
            before: stream.capture(|stream| increment().launch(stream, 1, (&mut x,)))?,
            stream,
            x,
            told: Vec::new(),
            left: Vec::new(),
        })
    }
}

impl Workload<bool> for Replays {
    fn launch(&mut self, captures: &bool) -> Result<()> {
        let (stream, x) = (&self.stream, &mut self.x);
        let replayed = match captures {
            false => self.before.replay(stream, &mut *x),
            true => {
                let graph = stream.capture(|stream| increment().launch(stream, 1, (&mut *x,)));
                let told = graph.as_ref().map(Graph::len);
                self.told
                    .push(told.map_err(|it| Error::Invalid(it.to_string())));
                graph.and_then(|graph| graph.replay(stream, &mut *x))
            }
        };
        self.left.push(self.x.to_vec()?[0]);
        replayed
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        Ok(vec![self.x.to_array()?])
    }

    fn spoil(&mut self) -> Result<()> {
        self.x.fill(0.0)
    }
}

#[test]
fn graphs_are_neither_made_nor_replayed_where_launches_are_listed() -> Result<()> {
    for device in [Device::cpu(), Device::lanes()] {
        let mut work = Replays::new(&device)?;
        let tuned = Tuner::forgetful().tune(
            &device,
            &key(),
            Determinism::Exact,
            &[false, true],
            &golden(),
            &mut work,
        )?;
        let measured = |(_, verdict): &(bool, Verdict)| matches!(verdict, Verdict::Measured(_));
        assert!(tuned.trials.iter().all(measured), "{tuned}");
        // Once each, to see what they would compile.
        assert_eq!(work.left[..3], [0.0, 0.0, 1.0]);
        let mut told = work.told.into_iter();
        let first = told
            .next()
            .expect("is told")
            .expect_err("is refused")
            .to_string();
        let wanted = "a capture while launches are listed for compilation would hold none";
        assert!(
            first.contains(wanted) && first.contains("autotune.rs"),
            "{first}"
        );
        for later in told {
            assert_eq!(later?, 1);
        }
    }
    Ok(())
}

#[test]
fn a_budget_ends_a_search_and_what_had_no_turn_says_so() {
    let candidates: Vec<(f32, u64)> = (0..40).map(|_| (1.0, 20_000)).collect();
    let (device, budget) = (Device::cpu(), Duration::from_millis(400));
    let tuner = Tuner::forgetful().budget(budget);
    let level = Determinism::Exact;
    let tuned = tuner
        .tune(&device, &key(), level, &candidates, &golden(), &mut fake())
        .expect("all are right");
    let skipped = |trial: &&((f32, u64), Verdict)| matches!(&trial.1, Verdict::Skipped(reason) if reason == "the budget of 0.4 s was over");
    let count = tuned.trials.iter().filter(skipped).count();
    // Each candidate takes 20 ms to compare, and 100 ms or more to measure.
    assert!((20..40).contains(&count), "{count}");
    // Without any time, one is still found.
    let tuner = Tuner::forgetful().budget(Duration::ZERO);
    let wrong_first = [(2.0, 0), (1.0, 0), (1.0, 0)];
    let tuned = tuner
        .tune(&device, &key(), level, &wrong_first, &golden(), &mut fake())
        .expect("two are right");
    assert_eq!(tuned.config, (1.0, 0));
}

#[test]
fn a_search_prints_as_a_ranked_table_with_its_provenance() {
    let candidates = [(1.0, 3000), (2.0, 0), (1.0, 300)];
    let (device, level) = (Device::cpu(), Determinism::Exact);
    let tuned = Tuner::forgetful()
        .tune(&device, &key(), level, &candidates, &golden(), &mut fake())
        .expect("two are right");
    let table = tuned.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        lines[0],
        "rank    cold ms    warm ms  rounds  configuration"
    );
    assert!(lines[1].starts_with("   1") && lines[1].ends_with("(1.0, 300)"));
    assert!(lines[2].starts_with("   2") && lines[2].ends_with("(1.0, 3000)"));
    let wrong = "   - (2.0, 0): wrong: 1 of 1 elements of `f32` differ in bits";
    assert!(lines[3].starts_with(wrong), "{table}");
    assert!(
        lines[4].starts_with("found on 20") && lines[4].contains(device.name()),
        "{table}"
    );
    assert!(
        tuned.provenance.sources.starts_with("exactile-core "),
        "{table}"
    );
}
