//! Programs that come back into Exactile from where it calls them, from many threads, and that panic there: an error or
//! an answer, and everything works afterwards.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use exactile::prelude::*;
use exactile::{Error, Result};

/// What `work` gives, in a thread of its own; an error where it waits for itself.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(work()));
    let ended = receiver.recv_timeout(Duration::from_mins(2));
    ended.expect("ends, and does not wait for itself")
}

#[kernel]
fn doubles(x: PtrMut<f32>) {
    let at = x + arange(0, 8);
    store(at, load(at) * 2.0);
}

fn doubled(device: &Device) -> Result<Vec<f32>> {
    let mut x = Buffer::from_slice(device, &[1.5f32; 8])?;
    doubles().launch(device, 1, (&mut x,))?;
    x.to_vec()
}

thread_local! {
    static PANICS: Cell<bool> = const { Cell::new(false) };
}

fn panic_in_some() {
    assert!(!PANICS.get(), "in this thread");
}

#[kernel]
fn panics_in_some_threads(x: PtrMut<f32>) {
    store(x, 1.0);
    panic_in_some();
}

#[test]
fn a_body_that_panics_in_some_threads_runs_in_the_others() {
    for round in 0..4 {
        let begin = Arc::new(Barrier::new(16));
        let device = Device::cpu();
        let threads = (0..16).map(|number| {
            let (begin, device) = (Arc::clone(&begin), device.clone());
            thread::spawn(move || {
                PANICS.set((number + round) % 2 == 0);
                let mut x = Buffer::<f32>::zeros(&device, 1)?;
                begin.wait();
                panics_in_some_threads().run(&device, 1, (&mut x,))?;
                Ok(x.to_vec()?[0])
            })
        });
        let threads: Vec<_> = threads.collect();
        for (number, thread) in threads.into_iter().enumerate() {
            let outcome: Result<f32> = thread.join().expect("does not panic");
            match outcome {
                Ok(number) => assert_eq!(number, 1.0),
                Err(error) => {
                    assert_eq!((number + round) % 2, 0, "{error}");
                    assert!(error.to_string().contains("in this thread"), "{error}");
                }
            }
        }
    }
}

static INNER: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note(outcome: &Result<Vec<f32>>) {
    let text = format!("{outcome:?}");
    INNER.lock().expect("no panic").push(text);
}

#[kernel]
fn launches_in_a_combine(x: PtrMut<f32>) {
    let sum = reduce(load(x + arange(0, 8)), 0, |a, b| {
        note(&doubled(&Device::cpu()));
        a + b
    });
    store(x, sum);
}

#[kernel]
fn works_in_its_body(x: PtrMut<f32>) {
    let device = Device::cpu();
    let buffer = Buffer::from_slice(&device, &[4.0f32]).expect("fits");
    let number = buffer.to_vec().expect("is there")[0];
    // Another thread traces nothing.
    let other = thread::spawn(move || doubled(&device));
    let twice = other.join().expect("ends").expect("runs")[0];
    store(x, f64::from(number * twice));
}

#[test]
fn bodies_may_work_but_not_launch() {
    in_time(|| {
        let device = Device::cpu();
        let mut x = Buffer::from_slice(&device, &[1.0f32; 8]).expect("fits");
        let kernel = launches_in_a_combine();
        kernel.run(&device, 1, (&mut x,)).expect("runs");
        assert_eq!(x.to_vec().expect("is there")[0], 8.0);
        let noted = INNER.lock().expect("no panic").join("\n");
        assert!(noted.contains("while the body of one is traced"), "{noted}");
        let kernel = works_in_its_body();
        kernel.run(&device, 1, (&mut x,)).expect("runs");
        assert_eq!(x.to_vec().expect("is there")[0], 12.0);
    });
}

#[kernel]
fn prints(x: Ptr<f32>) {
    device_print("x", load(x + arange(0, 4)));
}

/// Comes back to its device when it goes.
struct Last(Device);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.on_print(|_| {});
    }
}

#[test]
fn printers_may_launch_panic_and_replace_themselves() {
    in_time(|| {
        let device = Device::cpu();
        let x = Buffer::from_slice(&device, &[1.0f32; 4]).expect("fits");
        let run = |device: &Device| prints().run(device, 1, (&x,));
        device.on_print(|_| panic!("no paper"));
        let ended = catch_unwind(AssertUnwindSafe(|| run(&device)));
        assert!(ended.is_err(), "the panic of a printer is the caller's");
        let lines = Arc::new(Mutex::new(0));
        let (count, same) = (Arc::clone(&lines), device.clone());
        device.on_print(move |_| {
            *count.lock().expect("no panic") += 1;
            let outcome = doubled(&same);
            assert!(outcome.is_ok(), "{outcome:?}");
            same.on_print(|_| {});
        });
        run(&device).expect("runs");
        run(&device).expect("runs");
        assert!(*lines.lock().expect("no panic") > 0);
        let last = Last(device.clone());
        device.on_print(move |_| drop(last.0.stream()));
        device.on_print(|_| {});
        assert_eq!(doubled(&device).expect("runs"), [3.0; 8]);
    });
}

#[test]
fn what_goes_first_does_not_matter() {
    let device = Device::cpu();
    let (stream, twin) = (device.stream().expect("is"), device.stream().expect("is"));
    let event = stream.event().expect("is");
    let mut x = Buffer::from_slice(&device, &[1.0f32; 8]).expect("fits");
    let kernel = doubles();
    kernel.launch(&stream, 1, (&mut x,)).expect("is queued");
    drop(device);
    drop(stream.clone());
    drop(stream);
    drop(kernel);
    twin.wait(&event).expect("waits");
    drop(twin);
    event.synchronize().expect("has ended");
    assert_eq!(x.to_vec().expect("is there"), [2.0; 8]);
    // All threads read one array while others launch with it.
    let x = Arc::new(x);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut y = x.try_clone().expect("fits");
                doubles()
                    .run(&x.device().clone(), 1, (&mut y,))
                    .expect("runs");
                assert_eq!(x.to_vec().expect("is there"), [2.0; 8]);
                assert_eq!(y.to_vec().expect("is there"), [4.0; 8]);
            });
        }
    });
}

#[kernel]
fn overruns(x: PtrMut<f32>) {
    store(x + arange(0, 16), 1.0);
}

#[test]
fn an_error_is_told_once_by_whoever_asks_first() {
    let device = Device::cpu();
    let mut x = Buffer::<f32>::zeros(&device, 8).expect("fits");
    overruns().launch(&device, 1, (&mut x,)).expect("is queued");
    let told: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| x.to_vec())).collect();
        threads
            .into_iter()
            .map(|it| it.join().expect("ends"))
            .collect()
    });
    let errors = told.iter().filter_map(|it| it.as_ref().err());
    let errors: Vec<_> = errors.collect();
    assert!(!errors.is_empty(), "nobody was told");
    for error in errors {
        assert!(matches!(error, Error::OutOfBounds { .. }), "{error}");
    }
    drop(x);
    let _ = device.synchronize();
    device.synchronize().expect("was told");
    assert_eq!(doubled(&device).expect("runs"), [3.0; 8]);
}

/// Names that the output of the macro might have, or that are none elsewhere.
mod names {
    use exactile::prelude::*;

    #[kernel]
    pub(super) fn config<const SOURCE: usize>(source: Ptr<f32>, config: PtrMut<f32>, place: i32) {
        let (header, name) = (source + arange(0, SOURCE), config + arange(0, SOURCE));
        store(name, load(header) + place.to::<f32>());
    }

    #[kernel]
    pub(super) fn r#loop(r#type: Ptr<f32>, mut r#fn: PtrMut<f32>, größe: i32, _unused: i32) {
        let step = größe;
        r#fn += 0;
        for r#in in 0..step {
            store(r#fn + r#in, load(r#type + r#in));
        }
    }

    #[kernel]
    pub(super) fn core(core: PtrMut<f32>, std: f32) {
        store(core, std);
    }
}

#[test]
fn names_are_the_users_own() {
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32; 4]).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 4).expect("fits");
    let kernel = names::config().source(4);
    kernel.run(&device, 1, (&x, &mut y, 2)).expect("runs");
    assert_eq!(y.to_vec().expect("is there"), [3.0; 4]);
    let kernel = names::r#loop();
    kernel.run(&device, 1, (&x, &mut y, 4, 0)).expect("runs");
    assert_eq!(y.to_vec().expect("is there"), [1.0; 4]);
    let kernel = names::core();
    kernel.run(&device, 1, (&mut y, 7.0)).expect("runs");
    assert_eq!(y.to_vec().expect("is there")[0], 7.0);
}
