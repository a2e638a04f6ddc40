//! Recorded launches do nothing, and what they would compile is compiled once.

use std::collections::BTreeMap;

use std::time::Duration;

use super::crew::{Outcome, units};
use super::*;
use crate::assert_bits_equal;
use crate::prelude::*;

/// A `BLOCK` that is no power of two is an error of the trace.
#[kernel]
fn scale<const BLOCK: usize, const TIMES: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let inside = at < n;
    let scaled = load(x + at).mask(inside) * TIMES as f64;
    store(y + at, scaled).mask(inside);
}

struct Setup {
    device: Device,
    x: Buffer<f32>,
    y: Buffer<f32>,
}

impl Setup {
    fn new(device: Device) -> Self {
        let x = Buffer::from_slice(&device, &[1.0f32; 100]).expect("fits");
        let y = Buffer::zeros(&device, 100).expect("fits");
        Self { device, x, y }
    }

    fn launch(&mut self, block: usize, times: usize, warps: u32) -> Result<()> {
        let schedule = crate::Schedule::AUTO.warps(warps);
        let kernel = scale().block(block).times(times).schedule(schedule);
        let grid = 100usize.div_ceil(block);
        kernel.launch(&self.device, grid, (&self.x, &mut self.y, 100))
    }

    fn record(&mut self, (block, times, warps): (usize, usize, u32)) -> Vec<Job> {
        let device = self.device.clone();
        let recorded = device.record(|| self.launch(block, times, warps));
        recorded.expect("recording traces nothing")
    }

    fn compile(
        &mut self,
        sets: &[Vec<(usize, usize, u32)>],
        limit: Option<Duration>,
    ) -> BTreeMap<usize, Outcome> {
        let mut jobs = Vec::new();
        for set in sets {
            let set = set.iter().flat_map(|&settings| self.record(settings));
            jobs.push(set.collect());
        }
        let mut outcomes = BTreeMap::new();
        compile_all(
            &self.device,
            &jobs,
            limit,
            threads(),
            &mut |index, outcome| {
                let before = outcomes.insert(index, outcome);
                assert!(before.is_none(), "set {index} ended twice");
            },
        );
        outcomes
    }

    fn codes(&self) -> usize {
        self.device.cache().costs().codes
    }
}

#[test]
fn recorded_launches_do_nothing_and_those_of_other_threads_run() {
    let mut setup = Setup::new(Device::cpu());
    let device = setup.device.clone();
    let mut other = Setup::new(device.clone());
    let jobs = device.record(|| {
        setup.launch(16, 2, 1)?;
        thread::scope(|scope| scope.spawn(|| other.launch(16, 3, 1)).join())
            .expect("does not panic")
    });
    assert_eq!(jobs.expect("both are right").len(), 1);
    assert_bits_equal(&setup.y, &[0.0f32; 100]);
    assert_bits_equal(&other.y, &[3.0f32; 100]);
    setup.launch(16, 2, 1).expect("runs");
    assert_bits_equal(&setup.y, &[2.0f32; 100]);
}

#[test]
fn a_recording_ends_with_an_error_or_a_panic() {
    let mut setup = Setup::new(Device::cpu());
    let device = setup.device.clone();
    let failed = device.record(|| Err(crate::Error::Invalid("no".to_string())));
    assert!(failed.is_err());
    let panics = std::panic::AssertUnwindSafe(|| device.record(|| panic!("on purpose")));
    assert!(std::panic::catch_unwind(panics).is_err());
    setup.launch(8, 2, 1).expect("runs");
    assert_bits_equal(&setup.y, &[2.0f32; 100]);
}

/// Later launches, checked and proved in bounds, compile nothing, and no code is made twice.
#[test]
fn jobs_of_several_sets_are_compiled_once() {
    for device in [Device::cpu(), Device::lanes(), Device::interpreter()] {
        let mut setup = Setup::new(device.clone());
        // The warps make other launches of them, and other code for a GPU alone.
        let all = [8, 16, 32, 64].map(|block| [(block, 2, 1), (block, 2, 2), (block, 5, 1)]);
        let sets: Vec<Vec<_>> = (0..40)
            .map(|index| all[index % 4].into_iter().chain(all[0]).collect())
            .collect();
        let outcomes = setup.compile(&sets, None);
        assert!(outcomes.len() == 40 && outcomes.values().all(Outcome::is_ok));
        let codes = setup.codes();
        let distinct = match device.kind() {
            crate::DeviceKind::Interpreter => 8,
            crate::DeviceKind::Cpu => 16,
            crate::DeviceKind::Lanes | crate::DeviceKind::Cuda(_) => 24,
        };
        assert_eq!(codes, distinct, "{device}");
        for (block, times, warps) in all.into_iter().flatten() {
            for _ in 0..2 {
                setup.launch(block, times, warps).expect("runs");
            }
        }
        assert_eq!(setup.codes(), codes, "{device}");
    }
}

/// Else a thread for each of them would wait for the first one.
#[test]
fn what_is_like_no_other_is_compiled_first() {
    let mut setup = Setup::new(Device::lanes());
    let settings = [(8, 2, 1), (8, 2, 1), (8, 2, 1), (16, 2, 1), (8, 2, 2)];
    let sets = settings.map(|settings| setup.record(settings));
    let turns: Vec<_> = units(&sets).iter().map(|unit| unit.set).collect();
    // Each is a checked code and an unchecked one.
    assert_eq!(turns, [0, 0, 3, 3, 4, 4, 1, 1, 2, 2]);
}

#[test]
fn sets_that_fail_have_the_reason_of_a_launch() {
    let mut setup = Setup::new(Device::lanes());
    let sets = [(16, 2, 1), (24, 2, 1), (16, 2, 3), (32, 2, 1), (24, 2, 1)];
    let outcomes = setup.compile(&sets.map(|settings| vec![settings]), None);
    for (index, (block, times, warps)) in sets.into_iter().enumerate() {
        let launched = setup.launch(block, times, warps);
        let reason = launched.map_err(|error| error.to_string());
        assert_eq!(outcomes[&index], reason);
        assert_eq!(reason.is_err(), block == 24 || warps == 3, "{reason:?}");
    }
}

#[test]
fn after_the_time_one_set_is_ready_and_few_more_are_begun() {
    let mut setup = Setup::new(Device::cpu());
    let failing = (0..3).map(|_| vec![(24, 1, 0)]);
    let good = (0..50).map(|times| vec![(8, times, 0), (16, times, 0)]);
    let sets: Vec<_> = failing.chain(good).collect();
    let outcomes = setup.compile(&sets, Some(Duration::ZERO));
    let ready = outcomes.values().filter(|outcome| outcome.is_ok()).count();
    assert!((1..=threads()).contains(&ready), "{outcomes:?}");
}
