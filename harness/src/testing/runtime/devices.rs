//! Several devices of a host at once.

use std::thread;

use exactile::internals::{Store, costs, forget_code};
use exactile::prelude::*;
use exactile::{DeviceKind, Error, Result};
use exactile_core::random::Random;

use super::{
    Check, LEN, expect, is_of, look_elsewhere, look_up, lookups, mix, mixed, numbers, steps,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "two devices work at once, with copies between them",
        run: two_devices_work_at_once,
    },
    Check {
        name: "errors stay with their device, and a GPU refuses arrays of another device",
        run: errors_stay_with_their_device,
    },
    Check {
        name: "two devices have the same bits",
        run: two_devices_have_the_same_bits,
    },
    Check {
        name: "what one device compiled, another of its kind takes from the disk",
        run: devices_share_code_on_disk,
    },
];

/// Numbers that are rounded, and a sum of all.
#[kernel]
fn round(x: Ptr<f32>, y: PtrMut<f32>, sums: PtrMut<f32>) {
    let at = program_id(0) * LEN + arange(0, LEN);
    let value = (load(x + at).exp() + load(x + at).sin()).tanh();
    store(y + at, value);
    store(sums + program_id(0), value.sum(0));
}

/// Another GPU where there is one, the CPU beside a lone GPU, and the interpreter beside others.
fn other(device: &Device) -> Result<Device> {
    match device.kind() {
        DeviceKind::Cuda(ordinal) => {
            Ok(Device::cuda(ordinal + 1).unwrap_or_else(|_| Device::cpu()))
        }
        DeviceKind::Interpreter => Ok(Device::cpu()),
        DeviceKind::Cpu | DeviceKind::Lanes => Ok(Device::interpreter()),
    }
}

/// Random launches and copies on both, in a stream of each, and the same on the host.
fn work_on_both(devices: [&Device; 2], seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 2);
    let streams = [devices[0].stream()?, devices[1].stream()?];
    let mut model = [numbers(&mut random), numbers(&mut random)];
    let array = |index: usize, numbers: &[i32]| Buffer::from_slice(devices[index], numbers);
    let added = [array(0, &[5; LEN])?, array(1, &[5; LEN])?];
    let mut arrays = [array(0, &model[0])?, array(1, &model[1])?];
    for _ in 0..30 {
        let at = random.below(2);
        match random.below(4) {
            0 => {
                arrays[at] = arrays[1 - at].to_device(devices[at])?;
                model[at] = model[1 - at].clone();
            }
            1 => expect(
                arrays[at].to_vec()? == model[at],
                "an array has other numbers in between",
            )?,
            _ => {
                let times = steps(devices[at]);
                mix().launch(&streams[at], 1, (&added[at], &mut arrays[at], times))?;
                model[at]
                    .iter_mut()
                    .for_each(|it| *it = mixed(5, *it, times));
            }
        }
    }
    for (array, model) in arrays.iter().zip(&model) {
        expect(array.to_vec()? == *model, "an array has other numbers")?;
    }
    Ok(())
}

fn two_devices_work_at_once(device: &Device) -> Result<()> {
    let other = other(device)?;
    work_on_both([device, &other], 0)?;
    thread::scope(|scope| {
        let both = [device, &other];
        let threads = (1..5).map(|seed| scope.spawn(move || work_on_both(both, seed)));
        let threads: Vec<_> = threads.collect();
        let panicked = |_| Err(Error::Mismatch("a thread panicked".to_string()));
        let mut ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(panicked));
        ended.try_for_each(|ended| ended)
    })?;
    device.synchronize()?;
    other.synchronize()
}

fn errors_stay_with_their_device(device: &Device) -> Result<()> {
    let other = other(device)?;
    let [x, _, outside, mut y] = lookups(device)?;
    let [z, inside, _, mut w] = lookups(&other)?;
    look_up().launch(device, 1, (&x, &outside, &mut y))?;
    look_elsewhere().launch(&other, 1, (&z, &inside, &mut w))?;
    other.synchronize()?;
    w.to_vec()?;
    expect(
        is_of(&device.synchronize(), "look_up"),
        "its own error is not told",
    )?;
    let told = look_up().launch(device, 1, (&x, &inside, &mut y));
    let refused = matches!(told, Err(Error::Placement { index: 1, .. }));
    // The devices of the host share its memory.
    expect(
        refused == is_gpu(device),
        "an array of another device is taken",
    )
}

fn is_gpu(device: &Device) -> bool {
    matches!(device.kind(), DeviceKind::Cuda(_))
}

fn two_devices_have_the_same_bits(device: &Device) -> Result<()> {
    let other = other(device)?;
    let mut random = Random::stream(7, 3);
    let count = 32;
    let x: Vec<f32> = (0..count * LEN)
        .map(|_| random.below(1 << 16) as f32 / 4096.0 - 8.0)
        .collect();
    let run = |device: &Device| -> Result<[Vec<u32>; 2]> {
        let x = Buffer::from_slice(device, &x)?;
        let mut y = Buffer::<f32>::zeros(device, count * LEN)?;
        let mut sums = Buffer::<f32>::zeros(device, count)?;
        round().launch(device, count, (&x, &mut y, &mut sums))?;
        let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect();
        Ok([bits(y.to_vec()?), bits(sums.to_vec()?)])
    };
    expect(run(device)? == run(&other)?, "their bits differ")
}

fn devices_share_code_on_disk(device: &Device) -> Result<()> {
    let other = other(device)?;
    let both = [device, &other];
    let are_gpus = both.into_iter().all(is_gpu);
    if !are_gpus || Store::of_environment().is_none() || device.name() != other.name() {
        return Ok(());
    }
    let launch = |device: &Device| -> Result<usize> {
        let x = Buffer::from_slice(device, &[3; LEN])?;
        let mut y = Buffer::<i32>::zeros(device, LEN)?;
        mix().run(device, 1, (&x, &mut y, 5))?;
        Ok(costs(device).codes)
    };
    launch(device)?;
    forget_code(&other);
    let before = costs(&other).codes;
    expect(launch(&other)? == before, "it is compiled again")
}
