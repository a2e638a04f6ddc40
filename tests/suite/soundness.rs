//! What safe programs may not reach: code of another kernel, values of another trace, a lock on
//! themselves.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use exactile::prelude::*;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Error, Kernel, Schedule};

fn computed(kernel: &Kernel<(Ptr<f32>, PtrMut<f32>)>, device: &Device) -> f32 {
    let x = Buffer::from_slice(device, &[12.0f32]).expect("fits");
    let mut y = Buffer::<f32>::zeros(device, 1).expect("fits");
    kernel.run(device, 1, (&x, &mut y)).expect("runs");
    y.to_vec().expect("is there")[0]
}

macro_rules! by_four {
    ($($name:ident $op:tt)*) => { $(
        fn $name() -> Kernel<(Ptr<f32>, PtrMut<f32>)> {
            #[kernel]
            fn by_four(x: Ptr<f32>, y: PtrMut<f32>) {
                store(y, load(x) $op 4.0);
            }
            by_four().into_kernel()
        }
    )* };
}
by_four! { subtract - divide / }

#[test]
fn kernels_of_one_line_and_name_are_told_apart() {
    let device = Device::interpreter();
    assert_eq!(computed(&subtract(), &device), 8.0);
    assert_eq!(computed(&divide(), &device), 3.0);
}

trait Operation {
    fn of(x: Scalar<f32>) -> Scalar<f32>;
}

#[kernel]
fn operates<O: Operation>(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y, O::of(load(x)));
}

#[test]
fn types_of_one_name_are_told_apart() {
    let negation = {
        struct Local;
        impl Operation for Local {
            fn of(x: Scalar<f32>) -> Scalar<f32> {
                -x
            }
        }
        operates::<Local>()
    };
    let square = {
        struct Local;
        impl Operation for Local {
            fn of(x: Scalar<f32>) -> Scalar<f32> {
                x * x
            }
        }
        operates::<Local>()
    };
    let device = Device::interpreter();
    assert_eq!(computed(&negation, &device), -12.0);
    assert_eq!(computed(&square, &device), 144.0);
}

static SHARED: OnceLock<Device> = OnceLock::new();
static INNER: Mutex<String> = Mutex::new(String::new());

#[kernel]
fn launches_itself(y: PtrMut<f32>) {
    store(y, 1.0);
    launch_again();
}

fn launch_again() {
    let message = launch_shared().map_or_else(|error| error.to_string(), |()| "runs".to_string());
    *INNER.lock().expect("no panic") = message;
}

fn launch_shared() -> exactile::Result<()> {
    let device = SHARED.get_or_init(Device::cpu);
    let mut y = Buffer::<f32>::zeros(device, 1)?;
    launches_itself().run(device, 1, (&mut y,))
}

#[test]
fn a_body_that_launches_is_told_so() {
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(launch_shared().is_ok()));
    let ended = receiver.recv_timeout(Duration::from_mins(1));
    assert_eq!(ended, Ok(true), "the launch waits for itself");
    let message = INNER.lock().expect("no panic").clone();
    assert!(
        message.contains("while the body of one is traced"),
        "{message}"
    );
}

thread_local! {
    static KEPT: Cell<Option<PtrMut<f32>>> = const { Cell::new(None) };
}

#[kernel]
fn keeps(y: PtrMut<f32>) {
    KEPT.set(Some(y));
    store(y, 1.0);
}

#[kernel]
fn uses(y: PtrMut<f32>) {
    let kept = KEPT.get();
    store(kept.unwrap_or(y), 1.0);
}

#[test]
fn a_handle_of_an_earlier_trace_is_an_error() {
    uses().check().expect("keeps nothing yet");
    keeps().check().expect("is a kernel");
    let error = uses().check().expect_err("uses what is kept");
    let message = error.to_string();
    assert!(message.contains("made outside of this kernel"), "{message}");
}

#[test]
fn errors_of_equal_kernels_name_their_own_files() {
    let source = "func @past block (%y: ptr<f32> write, %n: i64) {
      %one = constant value=f32(1) : f32
      store %y, %n, %one
    }";
    for device in [Device::interpreter(), Device::lanes(), Device::cpu()] {
        for file in ["one.bir", "other.bir"] {
            let kernel = TextKernel::parse(source, file, Default::default()).expect("parses");
            let numbers = exactile::Array::from_slice([1], &[0.0f32]).expect("fits");
            let at = <i64 as exactile::Number>::literal(7);
            let mut arguments = [
                ("y".to_string(), TextArgument::Array(numbers)),
                ("n".to_string(), TextArgument::Scalar(at)),
            ]
            .into();
            match kernel.run(&device, [1, 1, 1], &mut arguments) {
                Err(Error::OutOfBounds { loc, .. }) => assert_eq!(&*loc.file, file, "{device}"),
                other => panic!("{device}: expected an error, found {other:?}"),
            }
        }
    }
}

/// Reads a tile of a tensor at `start` under a mask of its own.
#[kernel]
fn masked_tile(x: Tensor<f32, 1>, y: PtrMut<f32>, start: i64) {
    let all = arange(0, 8) >= 0;
    store(
        y + arange(0, 8),
        load(x.tile([8]).at_offset([start])).mask(all),
    );
}

#[test]
fn a_mask_behind_a_tile_joins_the_tensors_own() {
    for device in [Device::interpreter(), Device::lanes(), Device::cpu()] {
        let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0]).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
        for (start, first) in [
            (0i64, 1.0f32),
            (3, 4.0),
            (4, 0.0),
            (1 << 40, 0.0),
            (-1, 0.0),
        ] {
            let view = x.view([4]).expect("fits");
            let kernel = masked_tile();
            kernel
                .run(&device, 1, (view, &mut y, start))
                .expect("reads nothing outside");
            assert_eq!(y.to_vec().expect("is there")[0], first, "{start}");
        }
    }
}

/// A kernel that says it takes numbers, and declares a tensor: one that does not lie in its memory is checked.
#[test]
fn a_forged_tensor_is_checked() {
    use exactile::__private::{KernelHeader, KernelSource, LoopOrder};
    use exactile_core::lang::KernelParameter;

    type Declared = (Ptr<f32>, i64, i64, PtrMut<f32>);
    let header = KernelHeader {
        name: "forged",
        file: "here",
        place: [1, 1],
        schedule: Schedule::AUTO,
        order: LoopOrder::Whole,
    };
    let source: KernelSource<Declared> = KernelSource::new::<(), u8>(header, 1, || {
        let x = <Tensor<f32, 1> as KernelParameter>::declare("x");
        let y = <PtrMut<f32> as KernelParameter>::declare("y");
        store(y + arange(0, 8), load(x.tile([8]).at_offset([1i64 << 40])));
    });
    let device = Device::cpu();
    let x = Buffer::from_slice(&device, &[1.0f32]).expect("fits");
    let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
    let kernel = Kernel::from(source);
    let mut launch = |extent: i64| kernel.run(&device, 1, (&x, extent, 1i64, &mut y));
    launch(1).expect("reads nothing");
    for extent in [i64::MAX, 2 << 40] {
        let launched = launch(extent);
        assert!(
            matches!(launched, Err(Error::OutOfBounds { .. })),
            "{extent}"
        );
    }
}

type Keeper = Box<dyn Fn() + Send>;
static LATER: Mutex<Vec<Keeper>> = Mutex::new(Vec::new());

#[kernel]
fn keeps_stores(y: PtrMut<f32>) {
    for _ in 0..40usize {
        let stored = Mutex::new(Some(store(y + arange(0, 8), 1.0)));
        let later = move || {
            if let Some(stored) = stored.lock().expect("no panic").take() {
                stored.mask(true);
            }
        };
        LATER.lock().expect("no panic").push(Box::new(later));
    }
}

#[kernel]
fn stores_a_tile<const SKIPPED: usize>(y: TensorMut<f32, 1>, start: i64) {
    y.tile([8]).at_offset([start]).store(full([8], 7.0));
    if let Some(later) = LATER.lock().expect("no panic").get(SKIPPED) {
        later();
    }
}

#[test]
fn a_store_of_another_trace_takes_no_mask() {
    keeps_stores().check().expect("is a kernel");
    for skipped in 0..40 {
        let kernel = stores_a_tile().skipped(skipped);
        let message = kernel.check().expect_err("masks a kept store").to_string();
        assert!(message.contains("does not directly follow"), "{message}");
    }
}

#[kernel]
fn captures(x: Ptr<i64>, y: PtrMut<f32>) {
    let s = load(x + 0);
    let offset = reduce(arange(0, 2), 0, |_, _| s);
    store(y + offset, 1.0);
}

#[test]
fn a_captured_number_proves_nothing() {
    for device in [Device::cpu(), Device::lanes(), Device::interpreter()] {
        let mut y = Buffer::<f32>::zeros(&device, 4).expect("fits");
        let mut launch = |at: i64| {
            let x = Buffer::from_slice(&device, &[at])?;
            captures().run(&device, 1, (&x, &mut y))
        };
        launch(0).expect("is inside");
        launch(0).expect("is inside");
        for at in [100, 1 << 36, -1] {
            let outside = matches!(launch(at), Err(Error::OutOfBounds { .. }));
            assert!(outside, "{device}: {at}");
        }
    }
}
