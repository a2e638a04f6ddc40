//! Memory that goes to other libraries and comes from them.

#![expect(unsafe_code, reason = "memory of others is there by their word")]

use exactile::interop::dlpack::{Exported, Imported};
use exactile::prelude::*;
use exactile::{Result, Stream};

use super::{Check, LEN, expect, mix, mixed, steps};

/// Adds one tensor to another.
#[kernel]
fn add(x: Tensor<i32, 1>, y: TensorMut<i32, 1>) {
    let sum = load(x.tile([LEN]).at((0,))) + load(y.tile([LEN]).at((0,)));
    store(y.tile([LEN]).at((0,)), sum);
}

pub(super) const ARRAYS_COME_AND_GO: Check = Check {
    name: "arrays go to others and come from them in the order of streams",
    run: arrays_come_and_go,
};

/// Arrays that are written in one stream go to another library, which is this one, in the same stream, another one or
/// none, and come back.
fn arrays_come_and_go(device: &Device) -> Result<()> {
    let streams = [device.stream()?, device.stream()?];
    let [first, second] = &streams;
    let readers = [None, Some(first), Some(second)];
    for round in 0..18 {
        let times = steps(device);
        let x = Buffer::from_slice(device, &[round; LEN])?;
        let mut y = Buffer::from_slice(device, &[5; LEN])?;
        mix().launch(first, 1, (&x, &mut y, times))?;
        let reader = readers[round as usize % 3];
        let exported = Exported::new(y, &[LEN], reader)?;
        // SAFETY: it was made just now, and nobody else has it.
        let y = unsafe {
            match round % 2 {
                0 => Imported::from_raw(device, exported.into_raw(), reader)?,
                _ => Imported::from_raw(device, exported.into_versioned(), reader)?,
            }
        };
        let mut sum = Buffer::from_slice(device, &[1; LEN])?;
        let arguments = (y.view()?, sum.view_mut([LEN])?);
        match round / 3 % 2 {
            0 => add().launch(second, 1, arguments)?,
            _ => add().launch(device, 1, arguments)?,
        }
        // Its memory may be used again at once.
        drop(y);
        let zeros = Buffer::<i32>::zeros(device, LEN)?;
        let wanted = mixed(round, 5, times).wrapping_add(1);
        expect(sum.to_vec()? == [wanted; LEN], "an array has other numbers")?;
        expect(zeros.to_vec()? == [0; LEN], "new memory is not zero")?;
    }
    Ok(())
}

pub(super) const WHAT_OVERLAPS_KEEPS_THE_ORDER: Check = Check {
    name: "memories of others that overlap keep the order of launches",
    run: what_overlaps_keeps_the_order,
};

/// Two buffers on parts of one memory, used in two streams.
fn what_overlaps_keeps_the_order(device: &Device) -> Result<()> {
    let streams: Vec<Stream> = (0..2).map(|_| device.stream()).collect::<Result<_>>()?;
    let numbers = [7; 2 * LEN];
    let memory = Exported::new(Buffer::from_slice(device, &numbers)?, &[2 * LEN], None)?;
    let memory = memory.into_raw();
    // SAFETY: it was made just now; it is freed when the buffers have gone.
    let start = unsafe { (*memory).tensor.data.cast::<i32>() };
    let x = Buffer::from_slice(device, &[1; LEN])?;
    let part = |first: usize| {
        // SAFETY: so many numbers are there. On the host one part is used at a time.
        unsafe { Buffer::from_raw_parts(device, start.wrapping_add(first), LEN, ()) }
    };
    let times = steps(device);
    {
        let [mut low, mut middle] = [part(0)?, part(LEN / 2)?];
        let refused = mix().launch(device, 1, (&low, &mut middle, 1));
        let refused = refused.map_err(|error| error.to_string());
        let shares =
            |it: &Result<(), String>| it.as_ref().is_err_and(|it| it.contains("share memory"));
        expect(shares(&refused), "one launch takes memory twice")?;
        for _ in 0..4 {
            mix().launch(&streams[0], 1, (&x, &mut low, times))?;
            mix().launch(&streams[1], 1, (&x, &mut middle, times))?;
        }
    }
    let wanted: Vec<i32> = (0..2 * LEN)
        .map(|place| match place {
            _ if place < LEN / 2 => mixed(1, 7, 4 * times),
            _ if place < LEN => mixed(1, 7, 8 * times),
            _ if place < LEN + LEN / 2 => mixed(1, 7, 4 * times),
            _ => 7,
        })
        .collect();
    // SAFETY: it has not been given away yet.
    let memory = unsafe { Imported::from_raw(device, memory, None) }?;
    let mut found = Buffer::<i32>::zeros(device, 2 * LEN)?;
    for half in [0, LEN] {
        let x = memory.view::<i32, 1>()?.slice(0, half..half + LEN)?;
        let y = found.view_mut([2 * LEN])?.slice(0, half..half + LEN)?;
        add().launch(device, 1, (x, y))?;
    }
    expect(
        found.to_vec()? == wanted,
        "parts of a memory have other numbers",
    )
}

#[cfg(feature = "nvptx")]
pub(super) const SLICES_OF_CUDARC_KEEP_THE_ORDER: Check = Check {
    name: "slices and streams of cudarc have the order of launches",
    run: slices_of_cudarc_keep_the_order,
};

/// What `cudarc` puts into its streams, and launches on its slices in these and in others.
#[cfg(feature = "nvptx")]
fn slices_of_cudarc_keep_the_order(device: &Device) -> Result<()> {
    use cudarc::driver::{CudaContext, DriverError};
    use exactile::interop::cudarc::{give_back, lend, lend_mut, stream, take};
    use exactile::{DeviceKind, Error};

    let DeviceKind::Cuda(ordinal) = device.kind() else {
        return Ok(());
    };
    let failed = |error: DriverError| Error::Device(error.to_string());
    let context = CudaContext::new(ordinal).map_err(failed)?;
    let theirs = [
        context.default_stream(),
        context.new_stream().map_err(failed)?,
    ];
    let times = steps(device);
    for round in 0..12 {
        let theirs = &theirs[round % 2];
        let ours = match round % 3 {
            0 => device.stream()?,
            _ => stream(device, theirs)?,
        };
        let x = theirs.clone_htod(&[3_i32; LEN]).map_err(failed)?;
        let mut y = theirs.clone_htod(&[round as i32; LEN]).map_err(failed)?;
        lend(device, theirs, &x, |x| {
            lend_mut(device, theirs, &mut y, |y| {
                mix().launch(&ours, 1, (x, y, times))
            })
        })?;
        // Theirs comes after ours, without a wait of the host.
        let copy = theirs.clone_dtod(&y).map_err(failed)?;
        let mut y = take(device, y)?;
        let x = take(device, x)?;
        mix().launch(&ours, 1, (&x, &mut y, times))?;
        drop(x);
        let y = give_back(y)?;
        let found = [&copy, &y].map(|it| theirs.clone_dtoh(it));
        let [once, twice] = found.map(|it| it.map_err(failed));
        let wanted = [times, 2 * times].map(|times| mixed(3, round as i32, times));
        expect(
            once? == [wanted[0]; LEN],
            "a copy of a slice has other numbers",
        )?;
        expect(twice? == [wanted[1]; LEN], "a slice has other numbers")?;
    }
    let foreign = stream(device, &context.per_thread_stream()).map(drop);
    let message = foreign.map_err(|error| error.to_string());
    expect(
        message.is_err_and(|it| it.contains("another one on each thread")),
        "the stream of a thread is taken",
    )
}
