//! Every public function of the facade with what makes no sense: an error that says so, or an answer, never a panic.

mod arrays;
mod graphs;
mod machines;
mod text;
mod views;

use std::ops::Bound as End;
use std::panic::{AssertUnwindSafe, catch_unwind};

use exactile::autotune::{self, TuneKey, Tuner, with_output};
use exactile::prelude::*;
use exactile::{
    Array, DType, Determinism, Error, IntoGrid, ListingStage, Resources, Result, Schedule,
    ScheduleField, Tolerance, compare, compare_within,
};

/// What panicked, of all that was tried.
#[derive(Default)]
struct Tried {
    count: usize,
    panicked: Vec<String>,
}

impl Tried {
    /// Whether the call gave an error; what it gave otherwise does not matter.
    fn call<T>(&mut self, name: &str, call: impl FnOnce() -> Result<T>) -> bool {
        self.count += 1;
        match catch_unwind(AssertUnwindSafe(|| call().map(drop))) {
            Ok(Ok(())) => false,
            Ok(Err(error)) => {
                let message = error.to_string();
                if message.len() < 10 {
                    self.panicked
                        .push(format!("{name}: the error is `{message}`"));
                }
                true
            }
            Err(_) => {
                self.panicked.push(format!("{name} panics"));
                false
            }
        }
    }

    /// The call must give an error.
    fn refused<T>(&mut self, name: &str, call: impl FnOnce() -> Result<T>) {
        let before = self.panicked.len();
        if !self.call(name, call) && self.panicked.len() == before {
            self.panicked.push(format!("{name} is taken"));
        }
    }

    fn end(self, least: usize) {
        assert!(self.panicked.is_empty(), "{}", self.panicked.join("\n"));
        assert!(self.count >= least, "{} calls", self.count);
    }
}

const SIZES: [usize; 9] = [
    0,
    1,
    3,
    8,
    1 << 31,
    1 << 32,
    1 << 62,
    isize::MAX as usize,
    usize::MAX,
];

fn hosts() -> [Device; 3] {
    [Device::interpreter(), Device::lanes(), Device::cpu()]
}

#[kernel(BLOCK = 4)]
fn doubles<const BLOCK: usize>(x: Tensor<f32, 2>, y: TensorMut<f32, 2>, from: i64) {
    let place = (program_id(0) + from, program_id(1));
    let tile = load(x.tile([1, BLOCK]).at(place));
    store(y.tile([1, BLOCK]).at(place), tile * 2.0);
}

#[kernel]
fn adds(x: Ptr<f32>, y: PtrMut<f32>, n: i64) {
    let at = arange(0, 8) + program_id(0) * 8;
    store(y + at, load(x + at).mask(at < n) + 1.0).mask(at < n);
}

#[test]
fn memory_of_any_size() {
    let mut tried = Tried::default();
    for device in hosts() {
        for len in SIZES {
            tried.call("zeros", || Buffer::<f64>::zeros(&device, len));
            for other in SIZES {
                tried.call("array", || Array::zeros(DType::F64, [len, other]));
                tried.call("array", || {
                    Array::from_bytes(DType::I8, [len, other], &[0; 3])
                });
                tried.call("array", || Array::from_slice([len, other], &[1.0f32; 8]));
            }
        }
        let mut x = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let y = Buffer::<f32>::zeros(&device, 3).expect("fits");
        tried.refused("copy_from", || x.copy_from(&y));
        tried.refused("copy_from_slice", || x.copy_from_slice(&[0.0; 9]));
        tried.refused("slice", || x.slice(3..9));
        for (low, high) in SIZES
            .into_iter()
            .flat_map(|low| SIZES.map(|high| (low, high)))
        {
            tried.call("slice", || x.slice(low..high));
            tried.call("slice", || x.slice(low..=high));
            let ends = (End::Excluded(low), End::Included(high));
            tried.call("slice", || x.slice(ends));
            tried.call("slice_mut", || x.slice_mut(ends).map(drop));
            tried.call("split_at_mut", || x.split_at_mut(low).map(drop));
            tried.call("split_at", || x.slice_mut(..)?.split_at(high).map(drop));
            let part = x.slice(3..5).expect("fits");
            tried.call("slice", || part.slice(low..high));
        }
        tried.refused("copy_from", || {
            let (low, high) = x.split_at_mut(3)?;
            low.copy_from(high.as_slice())
        });
    }
    tried.end(2000);
}

#[test]
fn launches_with_any_grid_and_numbers() {
    let mut tried = Tried::default();
    for device in hosts() {
        let few = device.clone().sampling(2);
        let x = Buffer::<f32>::zeros(&few, 8).expect("fits");
        let mut y = Buffer::<f32>::zeros(&few, 8).expect("fits");
        let kernel = adds();
        tried.refused("grid", || kernel.run(&few, -1, (&x, &mut y, 8)));
        tried.refused("grid", || {
            kernel.run(&few, (1, 1i64 << 32), (&x, &mut y, 8))
        });
        tried.refused("grid", || kernel.run(&few, [u32::MAX; 3], (&x, &mut y, 8)));
        tried.call("grid", || {
            kernel.run(&few, (u32::MAX, 0, u32::MAX), (&x, &mut y, 8))
        });
        tried.call("grid", || {
            kernel.run(&few, (u32::MAX, u32::MAX), (&x, &mut y, 8))
        });
        for n in [i64::MIN, -1, 0, 9, i64::MAX] {
            tried.call("numbers", || kernel.run(&few, 2, (&x, &mut y, n)));
            tried.call("numbers", || {
                let views = (x.view([2, 4])?, y.view_mut([2, 4])?);
                doubles().run(&few, (2, 2), (views.0, views.1, n))
            });
        }
        tried.refused("out of bounds", || {
            kernel.run(&few, 2, (&x, &mut y, i64::MAX))
        });
        // An empty array, with and without programs that look at it.
        let none = Buffer::<f32>::zeros(&few, 0).expect("fits");
        let mut nothing = Buffer::<f32>::zeros(&few, 0).expect("fits");
        tried.call("empty", || kernel.run(&few, 3, (&none, &mut nothing, 0)));
        tried.refused("empty", || kernel.run(&few, 3, (&none, &mut nothing, 1)));
        tried.call("empty", || {
            let views = (none.view([0, 4])?, nothing.view_mut([4, 0])?);
            doubles().run(&few, (2, 2), (views.0, views.1, i64::MIN))
        });
        for tile in SIZES {
            let kernel = doubles().block(tile);
            tried.call("tile", || kernel.check());
            tried.call("tile", || {
                let views = (x.view([2, 4])?, y.view_mut([2, 4])?);
                kernel.run(&few, 1, (views.0, views.1, 0))
            });
        }
    }
    tried.end(70);
}

#[test]
fn schedules_of_any_numbers() {
    let mut tried = Tried::default();
    let device = Device::lanes();
    let x = Buffer::<f32>::zeros(&device, 8).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
    for &field in ScheduleField::ALL {
        for number in [0, 1, 3, 4, 1 << 16, 1 << 31, u32::MAX] {
            let mut schedule = Schedule::AUTO;
            schedule.set(field, Some(number));
            let kernel = || adds().schedule(schedule);
            tried.call("schedule", || kernel().run(&device, 1, (&x, &mut y, 8)));
            for stage in [ListingStage::Clif, ListingStage::Ptx] {
                tried.call("listing", || kernel().listing(stage));
            }
        }
    }
    tried.end(100);
}

#[test]
fn comparisons_of_any_arrays() {
    let mut tried = Tried::default();
    let one = Array::from_slice([2], &[1.0f32, f32::NAN]).expect("fits");
    let none = Array::zeros(DType::F32, [0, 5]).expect("fits");
    let other = Array::zeros(DType::I32, [2]).expect("fits");
    tried.refused("dtype", || compare(&one, &other));
    tried.refused("shape", || compare(&one, &none));
    tried.refused("numbers", || one.to_vec::<i32>());
    tried.refused("lengths", || compare(&[1.0f32; 2], &[1.0f32; 3]));
    for number in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX] {
        for nan_equals_nan in [true, false] {
            let tolerance = Tolerance {
                absolute: number,
                relative: number,
                nan_equals_nan,
            };
            for array in [&one, &none, &other] {
                tried.call("tolerance", || {
                    let compared = compare_within(array, array, tolerance)?;
                    Ok(format!("{compared} {}", compared.elements()))
                });
            }
        }
    }
    let most = Resources {
        threads: u32::MAX,
        programs: u32::MAX,
        registers: u32::MAX,
        local_bytes: u32::MAX,
        shared_bytes: u32::MAX,
        blocks: u32::MAX,
        most_threads: 0,
    };
    tried.call("resources", || Ok(most.to_string()));
    tried.end(30);
}

#[test]
fn devices_streams_and_events_that_do_not_belong_together() {
    let mut tried = Tried::default();
    for name in [
        "",
        "gpu",
        "cuda:",
        "cuda:-1",
        "cuda:x",
        "cuda:99999999999999999999",
        "cpu:0",
    ] {
        tried.refused(name, || Device::from_name(name));
    }
    for ordinal in [1000, i32::MAX as usize + 1, usize::MAX] {
        tried.refused("ordinal", || Device::cuda(ordinal));
    }
    let [one, other, cpu] = hosts();
    let (early, stream) = (one.event().expect("is"), other.stream().expect("is"));
    tried.call("event", || early.seconds_since(&stream.event()?));
    tried.call("wait", || stream.wait(&early));
    // The device has gone, and its buffer, stream and event stay.
    let gone = Device::cpu();
    let (mut x, mut y) = (
        Buffer::<f32>::zeros(&gone, 8).expect("fits"),
        Buffer::<f32>::zeros(&cpu, 8).expect("fits"),
    );
    let (stream, event) = (gone.stream().expect("is"), gone.event().expect("is"));
    drop(gone);
    assert!(!tried.call("gone", || adds().run(&stream, 1, (&y, &mut x, 8))));
    assert!(!tried.call("gone", || adds().run(&cpu, 1, (&x, &mut y, 8))));
    tried.call("gone", || stream.wait(&event));
    tried.call("gone", || event.synchronize());
    tried.call("gone", || stream.synchronize());
    assert_eq!(x.to_vec().expect("is there"), [1.0; 8]);
    for sample in [0, 1, u64::MAX] {
        let device = Device::interpreter().sampling(sample);
        tried.call("sampling", || adds().run(&device, 1, (&x, &mut y, 8)));
    }
    tried.end(20);
}

#[test]
fn tuners_of_nothing() {
    let mut tried = Tried::default();
    let device = Device::cpu();
    let key = TuneKey {
        kernel: "\0".to_string(),
        extents: vec![usize::MAX; 9],
        variant: String::new(),
    };
    let buffer = || Buffer::<f32>::zeros(&device, 1).expect("fits");
    let level = Determinism::Exact;
    let golden = Array::zeros(DType::F32, [1]).expect("fits");
    let other = Array::zeros(DType::I64, [2, 3]).expect("fits");
    let mut works = with_output(buffer(), |_, _: &u32| Ok(()));
    let mut fails = with_output(buffer(), |_, _: &u32| {
        Err(Error::Invalid("it fails always".to_string()))
    });
    let tuner = Tuner::forgetful();
    let goldens = [vec![], vec![golden.clone()], vec![other], vec![golden; 2]];
    for golden in &goldens {
        tried.refused("none", || {
            tuner.tune(&device, &key, level, &[], golden, &mut works)
        });
        tried.refused("wrong", || {
            tuner.tune(&device, &key, level, &[1, 2], golden, &mut fails)
        });
        tried.call("any", || {
            tuner.tune(&device, &key, level, &[1, 2], golden, &mut works)
        });
    }
    tried.refused("measure", || {
        autotune::measure(&device, || {
            Err(Error::Invalid("it fails always".to_string()))
        })
    });
    tried.call("measure", || autotune::measure(&device, || Ok(())));
    let grids = [(-1i64).into_grid(), i64::MAX.into_grid()];
    for grid in grids {
        tried.refused("grid", || grid);
    }
    tried.end(15);
}
