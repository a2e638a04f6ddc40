//! Launches that skip their checks because an earlier one had no error: only those whose accesses are the same, whatever
//! way a number takes to an address, and all of those, whatever the other numbers are.

use std::sync::{Arc, Mutex};

use exactile::prelude::*;
use exactile::{Bounds, Error, Kernel, LaunchHook, LaunchMoment, Result};

use super::language::devices;

/// Whether the launches of a device were checked, in their order.
struct Seen {
    checked: Arc<Mutex<Vec<bool>>>,
    _hook: LaunchHook,
}

impl Seen {
    fn of(device: &Device) -> Self {
        let checked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&checked);
        let hook = device.on_launch(move |info, moment| {
            if moment == LaunchMoment::Before {
                let is_checked = info.bounds == Bounds::Checked;
                list.lock().expect("no panic").push(is_checked);
            }
        });
        Self {
            checked,
            _hook: hook,
        }
    }

    fn take(&self) -> Vec<bool> {
        std::mem::take(&mut self.checked.lock().expect("no panic"))
    }
}

#[device]
fn helped(at: Scalar<i64>) -> Scalar<i64> {
    for i in 0..at {
        if i * i > 100 {
            return scalar::<i64>(1000);
        }
    }
    at
}

#[derive(Clone, Copy, Carry)]
struct Place {
    at: Scalar<i64>,
    still: Scalar<f32>,
}

#[device]
fn loop_until(at: Scalar<i64>) -> Scalar<i64> {
    let mut i = scalar::<i64>(0);
    loop {
        if i >= at {
            break i;
        }
        i += 1;
    }
}

fn few() -> Tile<i64> {
    arange(0, 16)
}

/// What all ways take: where they store, what they read, what they store, and the numbers of which one moves an access.
type Way = Kernel<(PtrMut<f32>, Ptr<i64>, f32, i64, f32)>;

/// Kernels by name, and a list of them.
macro_rules! ways {
    ($list:ident ($y:ident, $x:ident, $still:ident, $at:ident, $by:ident) $($name:ident $body:block)*) => {
        $(
            #[kernel]
            fn $name($y: PtrMut<f32>, $x: Ptr<i64>, $still: f32, $at: i64, $by: f32) $body
        )*

        fn $list() -> Vec<(&'static str, Way)> {
            vec![$((stringify!($name), $name().into_kernel())),*]
        }
    };
}

// Each stores at 3, or there and below, where `at` is 3; at 1000 or above, or fails an assertion, where it is 1003. Whatever
// `still` is, it is stored.
ways! { moved_by_integer (y, x, still, at, by)
    plain { store(y + at, still); }
    read { store(y, load(x + at).to::<f32>() + still); }
    tile { store(y + (few() + at), still); }
    for_end {
        for i in range(0, at) {
            store(y + i, still);
        }
    }
    for_start {
        for i in range(6 - at, 1).step(1) {
            store(y - i, still);
        }
    }
    device_function { store(y + helped(at), still); }
    while_loop {
        let mut i = scalar::<i64>(0);
        while i < at {
            i += 1;
        }
        store(y + i, still);
    }
    loop_value {
        let found = loop_until(at);
        store(y + found, still);
    }
    match_number {
        match at {
            3 => {
                store(y + 3, still);
            }
            _ => {
                store(y + 1000, still);
            }
        }
    }
    structure {
        let place = Place {
            at: scalar::<i64>(0),
            still,
        };
        let mut place = place;
        for i in range(0, 4) {
            if i == 2 {
                place = Place {
                    at,
                    still: place.still + 1.0,
                };
            }
        }
        store(y + place.at, place.still);
    }
    scan_of { store(y + full([16], at).cumsum(0) / 16, still); }
    sum_of { store(y + full([16], at).sum(0) / 16, still); }
    late_in_a_loop {
        // Reaches the address in the ninth iteration only.
        let mut turn = [scalar::<i64>(1); 9];
        turn[0] = at;
        for _ in range(0, 8) {
            turn = [
                scalar::<i64>(1),
                turn[0],
                turn[1],
                turn[2],
                turn[3],
                turn[4],
                turn[5],
                turn[6],
                turn[7],
            ];
        }
        store(y + turn[8], still);
    }
    carried_pointer {
        let mut p = y;
        for _ in range(0, at) {
            p += 1;
        }
        store(p, still);
    }
    index_of_gather { store(y + gather(few(), full([16], at), 0), still); }
    sorted { store(y + full([16], at).sort(0).max(0), still); }
    atomic { atomic_max(y + at, still); }
    extent {
        let tensor = y.tensor([at + 1], [1]);
        tensor
            .tile([2048])
            .at_offset([0])
            .store(full([2048], still));
    }
    stride {
        let tensor = y.tensor([2], [at]);
        tensor.tile([2]).at_offset([0]).store(full([2], still));
    }
    assertion { device_assert(at * at < 100, "is small"); }
    each_element {
        store(
            y + map_elementwise(few(), |i| if i > 14 { helped(at) } else { i }),
            still,
        );
    }
    random {
        store(
            y + (randint64(at.to::<u64>(), few()) % 2).to::<i64>() * at,
            still,
        );
    }
    wrapped { store(y + few() * at % 67, still); }
    product {
        store(
            y + dot(
                full([16, 16], at),
                full([16, 16], 1),
                zeros::<i64>([16, 16]),
            )
            .max(0)
            .max(0)
                / 16,
            still,
        );
    }
    accumulated {
        let mut most = max_accumulator::<i64>([]);
        for _ in range(0, 2) {
            most.add(full([16], at), 0);
        }
        store(y + most.finish(), still);
    }
    counted {
        let counts = histogram(full([1024], at / 500), 4);
        store(y + counts.argmax(0) * 500, still);
    }
}

// The same with `by`.
ways! { moved_by_float (y, x, still, at, by)
    cast_number { store(y + by.to::<i64>(), still); }
    selected { store(y + select(by > 5.0, 1000, 3), still); }
    branched {
        if by > 5.0 {
            store(y + 1000, still);
        }
    }
    masked { store(y + 1000 + few(), full([16], still)).mask(full([16], by) > 5.0); }
    early_return {
        if by < 5.0 {
            return;
        }
        store(y + 1000, still);
    }
    bits_of {
        store(
            y + by.bitcast::<i32>() / 1_078_000_000 * by.to::<i32>(),
            still,
        );
    }
    argmax_of { store(y + full([16], by).argmax(0) + by.to::<i64>(), still); }
    broken_off {
        let mut leaves = scalar::<i64>(0);
        for i in range(0, 2000) {
            if i.to::<f32>() > by {
                break;
            }
            leaves = i;
        }
        store(y + leaves, still);
    }
    captured {
        // The combiner captures it alone, in a branch.
        let place = reduce(
            few(),
            0,
            |a, b| if by > 5.0 { a + 1000 } else { minimum(a, b) },
        );
        store(y + place, still);
    }
    chosen_pointer {
        let mut p = y;
        if by > 5.0 {
            p = y + 1000;
        }
        store(p, still);
    }
    captured_in_scan {
        store(
            y + scan(few(), 0, |a, b| maximum(a, b + by.to::<i64>())),
            still,
        );
    }
    nested_loops {
        for _ in range(0, 2) {
            for i in range(0, 2) {
                if by > 5.0 {
                    let t = load(x + i + 1000);
                    store(y, t.to::<f32>());
                }
            }
        }
        store(y, still);
    }
    exponential { store(y + exp2(by).to::<i64>() / 8 * 3, still); }
}

fn is_error_of_programs(result: &Result<()>) -> bool {
    matches!(
        result,
        Err(Error::OutOfBounds { .. } | Error::Assertion { .. })
    )
}

#[test]
fn a_number_that_moves_an_access_is_part_of_a_proof_and_no_other_is() {
    for device in devices() {
        let seen = Seen::of(&device);
        let mut y = Buffer::<f32>::zeros(&device, 64).expect("fits");
        let x = Buffer::<i64>::zeros(&device, 64).expect("fits");
        // The other number, and numbers outside: their divisors are those of the first ones, so that the code is the same.
        let by_integer = moved_by_integer().into_iter();
        let by_integer = by_integer.map(|way| (way, (3, 7.25), (1003, 3.0)));
        let by_float = moved_by_float().into_iter();
        let by_float = by_float.map(|way| (way, (1003, 3.0), (3, 1003.0)));
        for ((name, way), other, outside) in by_integer.chain(by_float) {
            let mut launch = |still: f32, (at, by): (i64, f32)| {
                let told = way.run(&device, 1, (&mut y, &x, still, at, by));
                (told, seen.take())
            };
            let inside = (3, 3.0);
            let (told, checked) = launch(1.0, inside);
            told.unwrap_or_else(|error| panic!("{name} on {device}: {error}"));
            assert_eq!(checked, [true], "{name} on {device}");
            for (still, numbers) in [(2.0, inside), (-4.5, other)] {
                let (told, checked) = launch(still, numbers);
                told.expect("is proved");
                assert_eq!(checked, [false], "{name} on {device}");
            }
            let (told, checked) = launch(1.0, outside);
            assert!(is_error_of_programs(&told), "{name} on {device}: {told:?}");
            assert_eq!(checked, [true], "{name} on {device}");
            let (told, checked) = launch(1.0, inside);
            told.expect("is still proved");
            assert_eq!(checked, [false], "{name} on {device}");
        }
    }
}

/// The same for kernels that were compiled before, which keep one proof themselves.
#[test]
fn kernels_compiled_before_keep_the_rule() {
    let device = Device::cpu();
    let seen = Seen::of(&device);
    let mut y = Buffer::<f32>::zeros(&device, 64).expect("fits");
    let x = Buffer::<i64>::zeros(&device, 64).expect("fits");
    for (name, way) in moved_by_integer().into_iter().chain(moved_by_float()) {
        let way = way.compile(&device, 1, (&mut y, &x, 1.0, 3, 3.0));
        let way = way.expect("compiles");
        let mut launch =
            |still: f32, at: i64, by: f32| way.run(&device, 1, (&mut y, &x, still, at, by));
        for still in [1.0, 2.0, 3.0] {
            launch(still, 3, 3.0).expect("is inside");
        }
        assert_eq!(seen.take(), [true, false, false], "{name}");
        assert!(is_error_of_programs(&launch(1.0, 1003, 1003.0)), "{name}");
        assert_eq!(seen.take(), [true], "{name}");
        launch(9.0, 3, 3.0).expect("is still proved");
        assert_eq!(seen.take(), [false], "{name}");
    }
}

#[kernel]
fn optional(y: PtrMut<f32>, still: Option<f32>, at: Option<i64>) {
    let value = match still {
        Some(still) => still,
        None => scalar::<f32>(7.0),
    };
    match at {
        Some(at) => {
            store(y + at, value);
        }
        None => {
            store(y + 1000, value);
        }
    }
}

#[kernel(overflow = "checked")]
fn overflows(y: PtrMut<f32>, still: f32, at: i64) {
    let product = at * (i64::MAX / 1000);
    store(y + select(product > 5, 3, 2), still);
}

#[test]
fn optional_numbers_and_checked_arithmetic_are_part_of_a_proof() {
    for device in devices() {
        let seen = Seen::of(&device);
        let mut y = Buffer::<f32>::zeros(&device, 64).expect("fits");
        let mut launch =
            |still: Option<f32>, at: Option<i64>| optional().run(&device, 1, (&mut y, still, at));
        for still in [1.0, 2.0] {
            launch(Some(still), Some(3)).expect("is inside");
        }
        assert_eq!(seen.take(), [true, false], "{device}");
        for (still, at) in [(Some(1.0), Some(1003)), (Some(1.0), None), (None, None)] {
            assert!(is_error_of_programs(&launch(still, at)), "{device}");
            assert_eq!(seen.take(), [true], "{device}");
        }
        let mut launch = |still: f32, at: i64| overflows().run(&device, 1, (&mut y, still, at));
        launch(1.0, 3).expect("is exact");
        launch(2.0, 3).expect("is exact");
        assert_eq!(seen.take(), [true, false], "{device}");
        assert!(is_error_of_programs(&launch(1.0, 1003)), "{device}");
    }
}

/// What memory holds stays out of proofs: a number that it was made of proves nothing.
#[kernel]
fn through_memory(y: PtrMut<f32>, places: PtrMut<i64>, at: i64) {
    store(places, at);
    store(y + load(places), 1.0);
}

#[test]
fn a_number_that_comes_back_from_memory_proves_nothing() {
    let device = Device::cpu();
    let seen = Seen::of(&device);
    let mut y = Buffer::<f32>::zeros(&device, 64).expect("fits");
    let mut places = Buffer::<i64>::zeros(&device, 1).expect("fits");
    for at in [3, 3, 5] {
        let told = through_memory().run(&device, 1, (&mut y, &mut places, at));
        told.expect("is inside");
    }
    let told = through_memory().run(&device, 1, (&mut y, &mut places, 1003));
    assert!(is_error_of_programs(&told), "{told:?}");
    assert_eq!(seen.take(), [true; 4]);
}

/// A training loop: the step and the rate change with each launch, and no access follows from them.
#[test]
fn steps_of_adamw_are_proved_by_the_first() {
    let device = Device::cpu();
    let seen = Seen::of(&device);
    let mut weights = Buffer::from_slice(&device, &[0.5f32; 100]).expect("fits");
    let gradients = Buffer::from_slice(&device, &[0.1f32; 100]).expect("fits");
    let mut means = Buffer::<f32>::zeros(&device, 100).expect("fits");
    let mut squares = Buffer::<f32>::zeros(&device, 100).expect("fits");
    for count in 1..6 {
        let state = exactile_kernels::adamw::State {
            means: &mut means,
            squares: &mut squares,
            greatest: None,
            overflow: None,
        };
        let step = exactile_kernels::adamw::Step {
            rate: 1e-3 / count as f32,
            keep_mean: 0.9,
            keep_square: 0.999,
            epsilon: 1e-8,
            decay: 0.01,
            unscale: 1.0,
            ascend: false,
            count,
        };
        let setting = Default::default();
        exactile_kernels::adamw::launch(&mut weights, &gradients, state, step, &setting)
            .expect("runs");
    }
    assert_eq!(seen.take(), [true, false, false, false, false]);
}

#[kernel]
fn shown(y: PtrMut<f32>, still: f32, at: i64) {
    device_print("at", at);
    store(y + at, still);
}

/// Its code has an argument more than the launch, for what it prints.
#[test]
fn a_kernel_that_prints_is_proved_as_any_other() {
    let device = Device::cpu();
    let seen = Seen::of(&device);
    let mut y = Buffer::<f32>::zeros(&device, 10).expect("fits");
    for (still, at) in [(1.0, 3), (2.0, 3), (2.0, 4)] {
        let told = shown().run(&device, 1, (&mut y, still, at));
        told.expect("is inside");
    }
    assert_eq!(seen.take(), [true, false, true]);
    let told = shown().run(&device, 1, (&mut y, 2.0, 1000));
    assert!(is_error_of_programs(&told), "{told:?}");
}
