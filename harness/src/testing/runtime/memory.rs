//! Memory that goes and comes while work is under way.

use exactile::prelude::*;
use exactile::{DeviceKind, Result, Stream};
use exactile_core::random::Random;

use super::{Check, LEN, expect, mix, mixed, steps};

pub(super) const MEMORY_IS_USED_AGAIN: Check = Check {
    name: "memory of arrays that went is used again after the work on it",
    run: memory_is_used_again,
};

/// An array goes while a stream works on it, and its memory is given to another one.
fn memory_is_used_again(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    for round in 0..40 {
        let x = Buffer::from_slice(device, &[round; LEN])?;
        let mut y = Buffer::from_slice(device, &[7; LEN])?;
        let times = steps(device);
        mix().launch(&stream, 1, (&x, &mut y, times))?;
        let copy = y.try_clone()?;
        drop((x, y));
        // Of the same size, so that it may take the place of one that went.
        let zeros = Buffer::<i32>::zeros(device, LEN)?;
        let later = Buffer::from_slice(device, &[round + 1; LEN])?;
        mix().launch(device, 1, (&later, &mut zeros.try_clone()?, times))?;
        expect(zeros.to_vec()? == [0; LEN], "new memory is not zero")?;
        let wanted = [mixed(round, 7, times); LEN];
        expect(copy.to_vec()? == wanted, "a copy has other numbers")?;
        expect(
            later.to_vec()? == [round + 1; LEN],
            "an array has the numbers of another",
        )?;
    }
    device.trim_memory()?;
    let x = Buffer::<i32>::zeros(device, LEN)?;
    expect(
        x.to_vec()? == [0; LEN],
        "memory is not zero after the pool is emptied",
    )
}

pub(super) const NOBODY_WAITS_FOR_MEMORY: Check = Check {
    name: "nobody waits for arrays that come and go",
    run: nobody_waits_for_memory,
};

/// The host goes on while the device works on what goes.
fn nobody_waits_for_memory(device: &Device) -> Result<()> {
    if !matches!(device.kind(), DeviceKind::Cuda(_)) {
        return Ok(());
    }
    let stream = device.stream()?;
    let x = Buffer::from_slice(device, &[1; LEN])?;
    let work = |times: i32| -> Result<Buffer<i32>> {
        let mut y = Buffer::from_slice(device, &[7; LEN])?;
        mix().launch(&stream, 1, (&x, &mut y, times))?;
        Ok(y)
    };
    // Compiled, and with memory for later ones.
    work(1)?.to_vec()?;
    let y = work(400 * steps(device))?;
    let end = stream.event()?;
    drop(y);
    let other = Buffer::<i32>::zeros(device, LEN)?;
    expect(!end.has_ended()?, "an array that goes waits for the device")?;
    expect(other.to_vec()? == [0; LEN], "new memory is not zero")?;
    stream.synchronize()
}

pub(super) const PINNED_COPIES_KEEP_THE_ORDER: Check = Check {
    name: "copies from and to pinned memory have the order of launches",
    run: pinned_copies_keep_the_order,
};

/// Random copies and launches in one to three streams, and the same on the host.
fn pinned_copies_keep_the_order(device: &Device) -> Result<()> {
    for seed in 0..6 {
        let mut random = Random::stream(seed, 1);
        let streams = (0..seed / 2).map(|_| device.stream());
        let streams: Vec<Stream> = streams.collect::<Result<_>>()?;
        let x = Buffer::from_slice(device, &[3; LEN])?;
        let mut y = Buffer::from_slice(device, &[1; LEN])?;
        let mut pinned = device.pinned::<i32>(LEN)?;
        let (mut on_device, mut on_host) = ([1; LEN], [0; LEN]);
        for _ in 0..60 {
            let stream = streams.get(random.below(streams.len() + 1));
            match random.below(5) {
                0 => {
                    match stream {
                        None => pinned.copy_from(device, y.slice(..)?)?,
                        Some(stream) => pinned.copy_from(stream, y.slice(..)?)?,
                    }
                    on_host = on_device;
                }
                1 => {
                    match stream {
                        None => pinned.copy_to(device, y.slice_mut(..)?)?,
                        Some(stream) => pinned.copy_to(stream, y.slice_mut(..)?)?,
                    }
                    on_device = on_host;
                }
                2 => {
                    let (kernel, times) = (mix(), steps(device));
                    match stream {
                        None => kernel.launch(device, 1, (&x, &mut y, times))?,
                        Some(stream) => kernel.launch(stream, 1, (&x, &mut y, times))?,
                    }
                    on_device = on_device.map(|it| mixed(3, it, times));
                }
                3 => expect(pinned.as_slice()? == on_host, "other numbers are copied")?,
                _ => {
                    let place = random.below(LEN);
                    pinned.as_mut_slice()?[place] += 1;
                    on_host[place] += 1;
                }
            }
        }
        expect(y.to_vec()? == on_device, "an array has other numbers")?;
        expect(pinned.as_slice()? == on_host, "other numbers are copied")?;
    }
    Ok(())
}

pub(super) const PINNED_COPIES_RUN_BESIDE_LAUNCHES: Check = Check {
    name: "copies from and to pinned memory run beside launches",
    run: pinned_copies_run_beside_launches,
};

/// A copy ends while a launch of another stream is under way.
fn pinned_copies_run_beside_launches(device: &Device) -> Result<()> {
    if !matches!(device.kind(), DeviceKind::Cuda(_)) {
        return Ok(());
    }
    let (launches, copies) = (device.stream()?, device.stream()?);
    let len = 1 << 20;
    let numbers: Vec<i32> = (0..len as i32).collect();
    let mut target = Buffer::<i32>::zeros(device, len)?;
    let [mut from, mut to] = [device.pinned(len)?, device.pinned(len)?];
    from.as_mut_slice()?.copy_from_slice(&numbers);
    let x = Buffer::from_slice(device, &[1; LEN])?;
    let mut y = Buffer::from_slice(device, &[7; LEN])?;
    mix().run(&launches, 1, (&x, &mut y, 1))?;
    let times = 2000 * steps(device);
    let begin = launches.event()?;
    mix().launch(&launches, 1, (&x, &mut y, times))?;
    let end = launches.event()?;
    from.copy_to(&copies, target.slice_mut(..)?)?;
    to.copy_from(&copies, target.slice(..)?)?;
    let copied = copies.event()?;
    expect(to.as_slice()? == numbers, "other numbers are copied")?;
    expect(
        !end.has_ended()?,
        "copies wait for a launch of another stream",
    )?;
    let (long, short) = (end.seconds_since(&begin)?, copied.seconds_since(&begin)?);
    expect(0.0 < short && short < long, "copies end after the launch")
}
