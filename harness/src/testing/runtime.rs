//! Launches as a program makes them: queued in streams, with errors that come later, from many threads.

mod compiled;
mod devices;
mod graphs;
mod interop;
mod memory;
mod padded;
mod watch;

use std::thread;

use exactile::prelude::*;
use exactile::{DeviceKind, Error, Result, Stream};
use exactile_core::random::Random;

/// Elements of each array.
const LEN: usize = 64;

/// More launches than the records of errors of a stream.
const MANY: usize = 200;

/// `times` steps that later ones cannot do without.
#[kernel]
fn mix(x: Ptr<i32>, y: PtrMut<i32>, times: i32) {
    let at = arange(0, LEN);
    let added = load(x + at);
    let mut value = load(y + at);
    for _ in range(0, times) {
        value = value * 3 + added;
    }
    store(y + at, value);
}

/// What [`mix`] makes of one element.
fn mixed(x: i32, y: i32, times: i32) -> i32 {
    (0..times).fold(y, |y, _| y.wrapping_mul(3).wrapping_add(x))
}

/// Each launch is checked: the accesses depend on loaded numbers.
#[kernel]
fn look_up(x: Ptr<i32>, index: Ptr<i32>, y: PtrMut<i32>) {
    let at = arange(0, LEN);
    store(y + at, load(x + load(index + at)));
}

/// Like [`look_up`], under another name.
#[kernel]
fn look_elsewhere(x: Ptr<i32>, index: Ptr<i32>, y: PtrMut<i32>) {
    let at = arange(0, LEN);
    store(y + at, load(x + load(index + at)) + 1);
}

/// A check on a device.
pub struct Check {
    /// What holds.
    pub name: &'static str,
    run: fn(&Device) -> Result<()>,
}

impl Check {
    /// Runs it.
    ///
    /// # Errors
    /// What does not hold, or why it could not be seen.
    pub fn run(&self, device: &Device) -> Result<()> {
        (self.run)(device)
    }
}

/// All checks.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    let more = [
        compiled::CHECKS,
        devices::CHECKS,
        graphs::CHECKS,
        padded::CHECKS,
        watch::CHECKS,
    ];
    CHECKS.iter().chain(more.into_iter().flatten())
}

/// Those of streams and launches.
const CHECKS: &[Check] = &[
    Check {
        name: "launches that share arrays keep their order over all streams",
        run: streams_keep_the_order,
    },
    Check {
        name: "launches that begin early wait for those before them",
        run: early_launches_wait,
    },
    Check {
        name: "errors come when somebody waits, once, and name the kernel",
        run: errors_come_later,
    },
    Check {
        name: "an error of one stream is not told by another",
        run: errors_stay_in_their_stream,
    },
    Check {
        name: "each error is told, though others were told before",
        run: told_errors_hide_none,
    },
    Check {
        name: "who runs a kernel is told its error, and nobody else is",
        run: runs_tell_their_own,
    },
    Check {
        name: "a stream that is used again tells nothing of its former owner",
        run: streams_forget_their_owners,
    },
    Check {
        name: "more launches may be under way than there are records of errors",
        run: many_checked_launches,
    },
    Check {
        name: "events tell the time between them, and order streams",
        run: events_tell_the_time,
    },
    Check {
        name: "threads launch side by side, and arrays go while work is under way",
        run: threads_launch,
    },
    memory::MEMORY_IS_USED_AGAIN,
    memory::NOBODY_WAITS_FOR_MEMORY,
    memory::PINNED_COPIES_KEEP_THE_ORDER,
    memory::PINNED_COPIES_RUN_BESIDE_LAUNCHES,
    interop::ARRAYS_COME_AND_GO,
    interop::WHAT_OVERLAPS_KEEPS_THE_ORDER,
    #[cfg(feature = "nvptx")]
    interop::SLICES_OF_CUDARC_KEEP_THE_ORDER,
];

fn expect(holds: bool, what: &str) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::Mismatch(what.to_string())),
    }
}

/// Steps that take a GPU long enough for others to overtake.
fn steps(device: &Device) -> i32 {
    match device.kind() {
        DeviceKind::Cuda(_) => 20_000,
        DeviceKind::Cpu | DeviceKind::Interpreter | DeviceKind::Lanes => 20,
    }
}

/// Each launch of a chain reads what the one before has written, and writes what that one has read.
fn early_launches_wait(device: &Device) -> Result<()> {
    let mut random = Random::stream(7, 0);
    let mut want = [numbers(&mut random), numbers(&mut random)];
    let stream = device.stream()?;
    let of = |numbers: &Vec<i32>| Buffer::from_slice(device, numbers);
    let mut arrays = [of(&want[0])?, of(&want[1])?];
    let early = mix().early(2);
    for at in 0..MANY {
        let [x, y] = &mut arrays;
        let kernel = if at % 7 == 3 { &mix() } else { &early };
        let times = (at % 5) as i32 * steps(device) / 20;
        kernel.launch(&stream, 1, (&*x, y, times))?;
        arrays.swap(0, 1);
        let [x, y] = &mut want;
        let steps = x.iter().zip(y.iter_mut());
        steps.for_each(|(&x, y)| *y = mixed(x, *y, times));
        want.swap(0, 1);
    }
    let [x, y] = &arrays;
    expect(
        [x.to_vec()?, y.to_vec()?] == want,
        "a launch that began early met the one before it",
    )
}

fn numbers(random: &mut Random) -> Vec<i32> {
    (0..LEN).map(|_| random.below(1000) as i32).collect()
}

/// Random launches of streams on a few arrays, and the same on the host.
fn keep_order(device: &Device, seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 0);
    let streams = (0..3).map(|_| device.stream());
    let streams: Vec<Stream> = streams.collect::<Result<_>>()?;
    let mut model: Vec<Vec<i32>> = (0..4).map(|_| numbers(&mut random)).collect();
    let arrays = model.iter().map(|each| Buffer::from_slice(device, each));
    let mut arrays: Vec<Buffer<i32>> = arrays.collect::<Result<_>>()?;
    for _ in 0..40 {
        let (from, times) = (random.below(4), random.below(2) as i32 * steps(device) + 1);
        let to = (from + 1 + random.below(3)) % 4;
        let mut written = arrays.swap_remove(to);
        // What was the last one stands in its place now.
        let last = arrays.len();
        let read = &arrays[if from == last { to } else { from }];
        let arguments = (read, &mut written, times);
        match random.below(4) {
            3 => mix().launch(device, 1, arguments)?,
            number => mix().launch(&streams[number], 1, arguments)?,
        }
        arrays.push(written);
        arrays.swap(to, last);
        let added = model[from].clone();
        for (y, x) in model[to].iter_mut().zip(added) {
            *y = mixed(x, *y, times);
        }
        if random.below(8) == 0 {
            let which = random.below(4);
            let same = arrays[which].to_vec()? == model[which];
            expect(same, "an array has other numbers in between")?;
        }
    }
    for (array, model) in arrays.iter().zip(&model) {
        expect(array.to_vec()? == *model, "an array has other numbers")?;
    }
    Ok(())
}

fn streams_keep_the_order(device: &Device) -> Result<()> {
    // Streams that were given back are used again.
    (0..4).try_for_each(|seed| keep_order(device, seed))
}

/// Whether this is an access of `kernel` out of bounds.
fn is_of<T>(told: &Result<T>, kernel: &str) -> bool {
    matches!(told, Err(Error::OutOfBounds { kernel: name, offset: 1000, .. }) if name == kernel)
}

/// Arrays for [`look_up`], with indices inside and outside.
fn lookups(device: &Device) -> Result<[Buffer<i32>; 4]> {
    let numbers: Vec<i32> = (0..LEN as i32).collect();
    let mut outside = numbers.clone();
    outside[7] = 1000;
    let array = |numbers: &[i32]| Buffer::from_slice(device, numbers);
    Ok([
        array(&numbers)?,
        array(&numbers)?,
        array(&outside)?,
        array(&numbers)?,
    ])
}

fn errors_come_later(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let wrong = |queue: &Device, y: &mut Buffer<i32>| look_up().launch(queue, 1, (&x, &outside, y));
    wrong(device, &mut y)?;
    look_elsewhere().launch(device, 1, (&x, &outside, &mut y))?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "the first error is not told",
    )?;
    device.synchronize()?;
    y.copy_from_slice(&[0; LEN])?;
    wrong(device, &mut y)?;
    expect(is_of(&y.to_vec(), "look_up"), "a read tells no error")?;
    y.to_vec()?;
    device.synchronize()?;
    let told = look_up().run(device, 1, (&x, &outside, &mut y));
    expect(is_of(&told, "look_up"), "`run` tells no error")?;
    look_up().run(device, 1, (&x, &inside, &mut y))?;
    let short = Buffer::<i32>::zeros(device, LEN - 1)?;
    let told = look_up().run(device, 1, (&x, &short, &mut y));
    expect(
        matches!(told, Err(Error::OutOfBounds { argument, length: 63, .. }) if argument == "index"),
        "another argument is named",
    )?;
    look_up().run(device, 1, (&x, &inside, &mut y))?;
    expect(
        y.to_vec()? == x.to_vec()?,
        "the device is of no use after errors",
    )
}

fn errors_stay_in_their_stream(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    let (one, other) = (device.stream()?, device.stream()?);
    look_up().launch(&one, 1, (&x, &outside, &mut y))?;
    look_elsewhere().launch(&other, 1, (&x, &inside, &mut z))?;
    other.synchronize()?;
    z.to_vec()?;
    // It waits for the other one, and tells nothing of it.
    mix().launch(&other, 1, (&y, &mut z, 1))?;
    other.synchronize()?;
    look_elsewhere().launch(&other, 1, (&x, &outside, &mut z))?;
    expect(
        is_of(&one.synchronize(), "look_up"),
        "its own error is not told",
    )?;
    one.synchronize()?;
    expect(
        is_of(&device.synchronize(), "look_elsewhere"),
        "the device tells no error",
    )?;
    device.synchronize()
}

/// A read tells of the launches that wrote the array, and what comes after is told as well.
fn told_errors_hide_none(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    let wrong = |y: &mut Buffer<i32>| look_up().launch(device, 1, (&x, &outside, y));
    let elsewhere = |z: &mut Buffer<i32>| look_elsewhere().launch(device, 1, (&x, &outside, z));
    wrong(&mut y)?;
    expect(is_of(&y.to_vec(), "look_up"), "a read tells no error")?;
    let told = look_elsewhere().run(device, 1, (&x, &outside, &mut z));
    expect(
        is_of(&told, "look_elsewhere"),
        "`run` tells no error after a read",
    )?;
    wrong(&mut y)?;
    expect(
        is_of(&y.to_vec(), "look_up"),
        "a second read tells no error",
    )?;
    elsewhere(&mut z)?;
    let told = device.synchronize();
    expect(
        is_of(&told, "look_elsewhere"),
        "a device tells no error after a read",
    )?;
    z.copy_from_slice(&[0; LEN])?;
    wrong(&mut y)?;
    elsewhere(&mut z)?;
    // A right launch after it does not make the array right.
    look_up().launch(device, 1, (&x, &inside, &mut z))?;
    expect(
        is_of(&y.to_vec(), "look_up"),
        "the first read tells no error",
    )?;
    expect(
        is_of(&z.to_vec(), "look_elsewhere"),
        "the other read tells no error",
    )?;
    device.synchronize()?;
    wrong(&mut y)?;
    elsewhere(&mut z)?;
    expect(
        is_of(&z.to_vec(), "look_elsewhere"),
        "the last one is not told first",
    )?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "the one before it is lost",
    )?;
    device.synchronize()
}

fn runs_tell_their_own(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    look_up().launch(device, 1, (&x, &outside, &mut y))?;
    look_elsewhere().run(device, 1, (&x, &inside, &mut z))?;
    let told = look_elsewhere().run(device, 1, (&x, &outside, &mut z));
    expect(
        is_of(&told, "look_elsewhere"),
        "`run` tells no error of its own",
    )?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "the launch before it is lost",
    )?;
    device.synchronize()?;
    let run = |right: bool| -> Result<()> {
        let [x, inside, outside, mut y] = lookups(device)?;
        for _ in 0..30 {
            let index = if right { &inside } else { &outside };
            let told = look_up().run(device, 1, (&x, index, &mut y));
            let same = if right {
                told.is_ok()
            } else {
                is_of(&told, "look_up")
            };
            expect(same, "a thread is told the error of another")?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..4)
            .map(|index| scope.spawn(move || run(index % 2 == 0)))
            .collect();
        let panicked = |_| Err(Error::Mismatch("a thread panicked".to_string()));
        let mut ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked));
        ended.try_for_each(|ended| ended)
    })?;
    device.synchronize()
}

fn streams_forget_their_owners(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let mut z = Buffer::<i32>::zeros(device, LEN)?;
    let former = device.stream()?;
    look_up().launch(&former, 1, (&x, &outside, &mut y))?;
    drop(former);
    let next = device.stream()?;
    look_elsewhere().launch(&next, 1, (&x, &inside, &mut z))?;
    next.synchronize()?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "the error of a former owner is lost",
    )?;
    next.synchronize()
}

fn many_checked_launches(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let stream = device.stream()?;
    for _ in 0..MANY {
        look_up().launch(&stream, 1, (&x, &inside, &mut y))?;
    }
    stream.synchronize()?;
    expect(y.to_vec()? == x.to_vec()?, "other numbers are looked up")?;
    for index in 0..MANY {
        let index = if index == 3 { &outside } else { &inside };
        look_up().launch(&stream, 1, (&x, index, &mut y))?;
    }
    expect(
        is_of(&stream.synchronize(), "look_up"),
        "one error of many is lost",
    )?;
    for _ in 0..MANY {
        look_up().launch(&stream, 1, (&x, &inside, &mut y))?;
    }
    stream.synchronize()
}

fn events_tell_the_time(device: &Device) -> Result<()> {
    let x = Buffer::from_slice(device, &[5; LEN])?;
    let mut y = Buffer::from_slice(device, &[7; LEN])?;
    let (one, other) = (device.stream()?, device.stream()?);
    // Compiled before the clock runs.
    mix().run(&one, 1, (&x, &mut y, 1))?;
    let times = 50 * steps(device);
    let start = one.event()?;
    mix().launch(&one, 1, (&x, &mut y, times))?;
    let end = one.event()?;
    other.wait(&end)?;
    let after = other.event()?;
    after.synchronize()?;
    expect(end.has_ended()?, "an event waits for no other stream")?;
    let (long, back) = (end.seconds_since(&start)?, start.seconds_since(&end)?);
    expect(long > 0.0 && long < 60.0, "a launch takes no time")?;
    expect(
        back < 0.0 && (back + long).abs() < 1e-5,
        "time goes one way",
    )?;
    expect(after.seconds_since(&end)? >= 0.0, "what waits comes first")?;
    let same = (0..LEN)
        .map(|_| mixed(5, mixed(5, 7, 1), times))
        .collect::<Vec<_>>();
    expect(y.to_vec()? == same, "other numbers are computed")
}

fn threads_launch(device: &Device) -> Result<()> {
    let work = |seed: u64| -> Result<()> {
        keep_order(device, seed)?;
        let stream = device.stream()?;
        for _ in 0..20 {
            let x = Buffer::from_slice(device, &[1; LEN])?;
            let mut y = Buffer::from_slice(device, &[1; LEN])?;
            mix().launch(&stream, 1, (&x, &mut y, steps(device)))?;
        }
        stream.synchronize()
    };
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..4)
            .map(|seed| scope.spawn(move || work(100 + seed)))
            .collect();
        let ended = threads.into_iter().map(|thread| {
            let panicked = |_| Err(Error::Mismatch("a thread panicked".to_string()));
            thread.join().unwrap_or_else(panicked)
        });
        ended.collect()
    })
}
