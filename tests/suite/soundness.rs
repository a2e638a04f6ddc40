//! What safe programs may not reach: code of another kernel, values of another trace, a lock on
//! themselves.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use exactile::prelude::*;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Error, Kernel};

fn computed(kernel: &Kernel<(Ptr<f32>, PtrMut<f32>)>, device: &Device) -> f32 {
    let x = Buffer::from_slice(device, &[12.0f32]).expect("fits");
    let mut y = Buffer::<f32>::zeros(device, 1).expect("fits");
    kernel.launch(device, 1, (&x, &mut y)).expect("runs");
    y.to_vec().expect("is there")[0]
}

macro_rules! by_four {
    ($($name:ident $op:tt)*) => { $(
        fn $name() -> Kernel<(Ptr<f32>, PtrMut<f32>)> {
            #[kernel]
            fn by_four(x: Ptr<f32>, y: PtrMut<f32>) {
                store(y, load(x) $op 4.0);
            }
            by_four(Default::default())
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
        operates::<Local>(Default::default())
    };
    let square = {
        struct Local;
        impl Operation for Local {
            fn of(x: Scalar<f32>) -> Scalar<f32> {
                x * x
            }
        }
        operates::<Local>(Default::default())
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
    launches_itself(Default::default()).launch(device, 1, (&mut y,))
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
    uses(Default::default()).check().expect("keeps nothing yet");
    keeps(Default::default()).check().expect("is a kernel");
    let error = uses(Default::default())
        .check()
        .expect_err("uses what is kept");
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
            let numbers = exactile::Array::from_slice(&[1], &[0.0f32]).expect("fits");
            let at = <i64 as exactile::Number>::literal(7);
            let mut arguments = [
                ("y".to_string(), TextArgument::Array(numbers)),
                ("n".to_string(), TextArgument::Scalar(at)),
            ]
            .into();
            match kernel.launch(&device, [1, 1, 1], &mut arguments) {
                Err(Error::OutOfBounds { loc, .. }) => assert_eq!(&*loc.file, file, "{device}"),
                other => panic!("{device}: expected an error, found {other:?}"),
            }
        }
    }
}
