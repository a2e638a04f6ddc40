//! Compiled kernels as values, and how often they are compiled.

use exactile::internals::{Costs, Store, costs, forget_code};
use exactile::prelude::*;
use exactile::{DeviceKind, Error, Result};

use super::graphs::says;
use super::{Check, LEN, expect, is_of, look_up, lookups, mix};

/// All checks.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "code that was kept on disk is machine code",
        run: machine_code_is_kept,
    },
    Check {
        name: "a launch that has ended proves later ones in bounds",
        run: ends_prove,
    },
    Check {
        name: "a compiled kernel launches as the kernel does, and compiles nothing more",
        run: launches_compile_nothing,
    },
    Check {
        name: "a compiled kernel refuses arguments that it was not compiled for, and says why",
        run: misfits_are_refused,
    },
];

/// Its accesses follow from its numbers alone.
#[kernel]
fn copy_some(x: Ptr<i32>, y: PtrMut<i32>, n: i32) {
    let at = arange(0, LEN);
    let inside = at < n;
    store(y + at, load(x + at).mask(inside)).mask(inside);
}

fn launches_compile_nothing(device: &Device) -> Result<()> {
    let [x, inside, outside, mut y] = lookups(device)?;
    let stream = device.stream()?;
    let kernel = look_up();
    let compiled = kernel.compile(device, 1, (&x, &inside, &mut y))?;
    let copy = copy_some().compile(device, 1, (&x, &mut y, 61))?;
    let codes = device.compiled_kernels();
    expect(y.to_vec()? == x.to_vec()?, "compiling runs the kernel")?;
    compiled.launch(&stream, 1, (&x, &outside, &mut y))?;
    expect(
        is_of(&stream.synchronize(), "look_up"),
        "its error is not told",
    )?;
    let told = compiled.run(device, 1, (&x, &outside, &mut y));
    expect(is_of(&told, "look_up"), "`run` tells no error")?;
    y.copy_from_slice(&[0; LEN])?;
    compiled.run(device, 1, (&x, &inside, &mut y))?;
    expect(y.to_vec()? == x.to_vec()?, "other numbers are looked up")?;
    for n in [61, 61, 61, 63, 61, 63] {
        y.copy_from_slice(&[0; LEN])?;
        copy.launch(&stream, 1, (&x, &mut y, n))?;
        stream.synchronize()?;
        let mut copied = x.to_vec()?;
        copied[n as usize..].fill(0);
        expect(y.to_vec()? == copied, "other numbers are copied")?;
    }
    let told = copy.run(device, 1, (&x, y.slice_mut(..LEN - 8)?, 61));
    expect(
        is_outside(&told),
        "a shorter array is taken for a proved one",
    )?;
    let graph = stream.capture(|stream| copy.launch(stream, 1, (&x, &mut y, 61)))?;
    graph.replay(&stream, (&x, &mut y))?;
    stream.synchronize()?;
    expect(device.compiled_kernels() == codes, "a launch compiles")
}

fn is_outside(told: &Result<()>) -> bool {
    matches!(told, Err(Error::OutOfBounds { kernel, .. }) if kernel == "copy_some")
}

#[kernel]
fn fill_some(y: PtrMut<i32>, n: i32, number: Option<i32>) {
    let at = arange(0, LEN);
    let number = match number {
        Some(number) => number + at.to::<i32>(),
        None => at.to::<i32>(),
    };
    store(y + at, number).mask(at < n);
}

fn misfits_are_refused(device: &Device) -> Result<()> {
    let mut y = Buffer::<i32>::zeros(device, 2 * LEN)?;
    let kernel = fill_some();
    let compiled = kernel.compile(device, 1, (&mut y, 48, None))?;
    let told = compiled.launch(device, 1, (&mut y, 47, None));
    let words = [
        "kernel `fill_some`",
        "argument 1",
        "a multiple of 1,",
        "a multiple of 16",
    ];
    expect(says(&told, &words), "less is known of a number")?;
    let told = compiled.launch(device, 1, (&mut y, 1, None));
    expect(
        says(&told, &["argument 1 is 1"]),
        "1 is taken for a multiple",
    )?;
    let told = compiled.launch(device, 1, (y.slice_mut(1..)?, 48, None));
    let words = ["argument 0", "a multiple of 4", "a multiple of 16"];
    expect(says(&told, &words), "less is known of an address")?;
    let told = compiled.launch(device, 1, (&mut y, 48, Some(3)));
    expect(
        says(&told, &["other optional arguments"]),
        "another choice is taken",
    )?;
    let other = Device::interpreter();
    let mut z = Buffer::<i32>::zeros(&other, 2 * LEN)?;
    let told = compiled.launch(&other, 1, (&mut z, 48, None));
    expect(
        says(
            &told,
            &["it was compiled for", "compile it for that device"],
        ),
        "another device is taken",
    )?;
    if let DeviceKind::Cuda(_) = device.kind() {
        let told = compiled.launch(device, 1, (&mut z, 48, None));
        expect(told.is_err(), "memory of the host is taken")?;
    }
    device.synchronize()?;
    expect(y.to_vec()? == [0; 2 * LEN], "a launch that is refused runs")?;
    // More is known of these than it was compiled for.
    let weak = kernel.compile(device, 1, (&mut y, 47, None))?;
    weak.run(device, 1, (&mut y, 48, None))?;
    weak.run(device, 1, (&mut y, 1, None))?;
    let mut counted: Vec<i32> = (0..48).collect();
    counted.resize(2 * LEN, 0);
    expect(y.to_vec()? == counted, "other numbers are written")
}

fn machine_code_is_kept(device: &Device) -> Result<()> {
    let keeps = matches!(device.kind(), DeviceKind::Cuda(_)) && Store::of_environment().is_some();
    if !keeps {
        return Ok(());
    }
    let x = Buffer::from_slice(device, &[3; LEN])?;
    let mut y = Buffer::<i32>::zeros(device, LEN)?;
    let mut launch = || -> Result<Costs> {
        mix().run(device, 1, (&x, &mut y, 5))?;
        Ok(costs(device))
    };
    let before = launch()?;
    forget_code(device);
    let after = launch()?;
    expect(after.codes == before.codes, "it is compiled again")?;
    for stage in ["llvm", "ptxas", "link"] {
        let same = after.seconds.get(stage) == before.seconds.get(stage);
        expect(same, &format!("it takes the stage `{stage}` again"))?;
    }
    Ok(())
}

fn ends_prove(device: &Device) -> Result<()> {
    let x = Buffer::from_slice(device, &[3; LEN])?;
    let mut y = Buffer::<i32>::zeros(device, LEN)?;
    let before = device.compiled_kernels();
    for launches in 1..4 {
        copy_some().launch(device, 1, (&x, &mut y, 61))?;
        device.synchronize()?;
        let codes = device.compiled_kernels() - before;
        let wanted = match device.kind() {
            DeviceKind::Interpreter => 1,
            DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => launches.min(2),
        };
        expect(
            codes == wanted,
            &format!("{codes} codes after {launches} launches"),
        )?;
    }
    Ok(())
}
