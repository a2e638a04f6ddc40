//! Memory of others as buffers: taken over without copies, given back once, never reached twice.

#![expect(unsafe_code, reason = "memory of others is there by their word")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use exactile::prelude::*;
use exactile::{Error, Stream};

#[kernel]
fn triple(x: Ptr<f32>, y: PtrMut<f32>) {
    let at = arange(0, 8);
    store(y + at, load(x + at) * 3.0);
}

#[kernel]
fn triple_in_place(y: PtrMut<f32>) {
    let at = y + arange(0, 8);
    store(at, load(at) * 3.0);
}

fn hosts() -> [Device; 3] {
    [Device::interpreter(), Device::cpu(), Device::lanes()]
}

fn numbers() -> Vec<f32> {
    (0..8).map(|i| i as f32).collect()
}

fn tripled() -> Vec<f32> {
    (0..8).map(|i| i as f32 * 3.0).collect()
}

#[test]
fn a_vector_is_taken_over_and_given_back() {
    for device in hosts() {
        let vector = numbers();
        let place = vector.as_ptr();
        let mut y = Buffer::from_vec(&device, vector).expect("fits");
        let kernel = triple_in_place();
        kernel.run(&device, 1, (&mut y,)).expect("runs");
        let vector = y.into_vec().expect("is read");
        assert_eq!((vector.as_ptr(), &vector), (place, &tripled()), "{device}");
        // What was never a vector is copied.
        let y = Buffer::from_slice(&device, &vector).expect("fits");
        assert_eq!(y.into_vec().expect("is read"), vector);
        let none = Buffer::<f32>::from_vec(&device, Vec::new()).expect("fits");
        assert!(none.into_vec().expect("is read").is_empty());
    }
}

/// A list that keeps the bytes may hold others.
#[test]
fn an_owner_is_never_taken_for_the_numbers() {
    for device in hosts() {
        let mut owner = numbers();
        let start = owner.as_mut_ptr().wrapping_add(2);
        let want = owner[2..6].to_vec();
        // SAFETY: the numbers are there as long as the list, which nobody else has.
        let buffer = unsafe { Buffer::from_raw_parts(&device, start, 4, owner) };
        let found = buffer.expect("lies well").into_vec().expect("is read");
        assert_eq!(found, want);
    }
}

#[test]
fn shared_numbers_are_copied_before_they_are_written() {
    for device in hosts() {
        let shared: Arc<[f32]> = numbers().into();
        let mut y = Buffer::from_arc(&device, Arc::clone(&shared)).expect("fits");
        let kernel = triple_in_place();
        kernel.run(&device, 1, (&mut y,)).expect("runs");
        assert_eq!(y.to_vec().expect("is read"), tripled(), "{device}");
        assert_eq!(*shared, numbers());
        // It was let go with the copy.
        assert_eq!(Arc::strong_count(&shared), 1);
        let place = shared.as_ptr();
        let mut y = Buffer::from_arc(&device, shared).expect("fits");
        kernel.run(&device, 1, (&mut y,)).expect("runs");
        let shared: Arc<[f32]> = y.into_owner().expect("it has it");
        assert_eq!((shared.as_ptr(), &*shared), (place, &tripled()[..]));
    }
}

/// Counts how often one goes.
struct Owner {
    numbers: Vec<f32>,
    gone: Arc<AtomicUsize>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.gone.fetch_add(1, Ordering::Relaxed);
    }
}

/// Numbers of an owner as a buffer.
fn lent(device: &Device, gone: &Arc<AtomicUsize>) -> Buffer<f32> {
    let gone = Arc::clone(gone);
    let mut owner = Owner {
        numbers: numbers(),
        gone,
    };
    let (start, len) = (owner.numbers.as_mut_ptr(), owner.numbers.len());
    // SAFETY: the owner keeps its vector as it is, and nobody else has it.
    unsafe { Buffer::from_raw_parts(device, start, len, owner) }.expect("is taken")
}

#[test]
fn an_owner_goes_once_with_its_buffer_or_comes_back() {
    for device in hosts() {
        let gone = Arc::<AtomicUsize>::default();
        let mut y = lent(&device, &gone);
        let kernel = triple_in_place();
        kernel.run(&device, 1, (&mut y,)).expect("runs");
        let owner: Owner = y.into_owner().expect("it has it");
        assert_eq!(owner.numbers, tripled(), "{device}");
        assert_eq!(gone.load(Ordering::Relaxed), 0);
        drop(owner);
        assert_eq!(gone.load(Ordering::Relaxed), 1);
        drop(lent(&device, &gone));
        assert_eq!(gone.load(Ordering::Relaxed), 2);
        let other = lent(&device, &gone).into_owner::<String>();
        let message = other.map(drop).expect_err("it has another one").to_string();
        assert_eq!(
            message,
            "the buffer has no owner of the type `alloc::string::String`"
        );
        assert_eq!(gone.load(Ordering::Relaxed), 3);
        let own = Buffer::from_slice(&device, &numbers()).expect("fits");
        assert!(own.into_owner::<Owner>().is_err());
    }
}

#[test]
fn addresses_of_nothing_are_refused() {
    for device in hosts() {
        let mut bytes = [0.0_f32; 3];
        let start = bytes.as_mut_ptr();
        let taken = |start: *mut f32, len| {
            // SAFETY: it is refused, or there are no numbers.
            unsafe { Buffer::from_raw_parts(&device, start, len, ()) }.map(drop)
        };
        let odd = taken(start.wrapping_byte_add(2), 2);
        let odd = odd.expect_err("is refused").to_string();
        assert!(
            odd.contains("is not a multiple of 4, the size of a `f32`"),
            "{odd}"
        );
        let null = taken(std::ptr::null_mut(), 2);
        assert_eq!(null.expect_err("is refused").to_string(), "8 bytes at null");
        let huge = taken(start, usize::MAX / 4);
        assert!(matches!(huge, Err(Error::Invalid(_))), "{huge:?}");
        taken(std::ptr::null_mut(), 0).expect("nothing is there");
        // SAFETY: it is refused.
        let stream = unsafe { Stream::from_raw(&device, std::ptr::null_mut(), ()) };
        let message = stream.map(drop).expect_err("is refused").to_string();
        assert_eq!(
            message,
            format!("the device `{device}` has no streams of a GPU")
        );
    }
}

#[test]
fn one_launch_never_writes_what_it_reaches_twice() {
    for device in hosts() {
        let mut vector = vec![1.0_f32; 12];
        let start = vector.as_mut_ptr();
        let part = |first: usize| {
            // SAFETY: the launch that has both is refused before it reaches either.
            unsafe { Buffer::from_raw_parts(&device, start.wrapping_add(first), 8, ()) }
        };
        let (x, mut y) = (part(0).expect("is taken"), part(4).expect("is taken"));
        let refused = triple().run(&device, 1, (&x, &mut y));
        let message = refused.expect_err("is refused").to_string();
        assert_eq!(
            message,
            "kernel `triple`: arguments `x` and `y` share memory that the kernel writes: read it through the one that is \
             written, or declare both as one `InOut`",
            "{device}"
        );
        drop((x, y));
        assert_eq!(vector, [1.0; 12]);
    }
}

#[test]
fn one_replay_never_writes_what_it_reaches_twice() {
    for device in hosts() {
        let mut vector = vec![1.0_f32; 12];
        let start = vector.as_mut_ptr();
        let part = |first: usize, len| {
            // SAFETY: the launch that has two of them is refused before it reaches either.
            unsafe { Buffer::from_raw_parts(&device, start.wrapping_add(first), len, ()) }
        };
        let (x, mut y) = (part(0, 8).expect("is taken"), part(4, 8).expect("is taken"));
        let stream = device.stream().expect("is made");
        let graph = stream.capture(|stream| triple().launch(stream, 1, (&x, &mut y)));
        let graph = graph.expect("is captured");
        drop((x, y));
        let mut all = part(0, 12).expect("is taken");
        let message = graph.replay(&stream, &mut all).expect_err("is refused");
        assert_eq!(
            message.to_string(),
            "kernel `triple`: two arguments of a launch of the graph share memory that it writes",
            "{device}"
        );
        drop(all);
        assert_eq!(vector, [1.0; 12]);
    }
}
