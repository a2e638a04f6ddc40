//! Memory that goes and comes while work is under way.

use exactile::prelude::*;
use exactile::{DeviceKind, Result};

use super::{LEN, expect, mix, mixed, steps};

/// An array goes while a stream works on it, and its memory is given to another one.
pub(super) fn memory_is_used_again(device: &Device) -> Result<()> {
    let stream = device.stream()?;
    for round in 0..40 {
        let x = Buffer::from_slice(device, &[round; LEN])?;
        let mut y = Buffer::from_slice(device, &[7; LEN])?;
        let times = steps(device);
        mix(Default::default()).launch(&stream, 1, (&x, &mut y, times))?;
        let copy = y.try_clone()?;
        drop((x, y));
        // Of the same size, so that it may take the place of one that went.
        let zeros = Buffer::<i32>::zeros(device, LEN)?;
        let later = Buffer::from_slice(device, &[round + 1; LEN])?;
        mix(Default::default()).launch(device, 1, (&later, &mut zeros.try_clone()?, times))?;
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

/// The host goes on while the device works on what goes.
pub(super) fn nobody_waits_for_memory(device: &Device) -> Result<()> {
    if !matches!(device.kind(), DeviceKind::Cuda(_)) {
        return Ok(());
    }
    let stream = device.stream()?;
    let x = Buffer::from_slice(device, &[1; LEN])?;
    let work = |times: i32| -> Result<Buffer<i32>> {
        let mut y = Buffer::from_slice(device, &[7; LEN])?;
        mix(Default::default()).launch(&stream, 1, (&x, &mut y, times))?;
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
