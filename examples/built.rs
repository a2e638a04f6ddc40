//! Code that is built ahead of time. With `--features exactile/nvptx`, `built build DIR` writes it; with
//! `--features exactile/cuda`, which needs no LLVM, `built check DIR` finds it, and `built run DIR` runs it on a GPU.

use exactile::built::{Build, Built};
use exactile::prelude::*;
use exactile::{Result, Target, assert_bits_equal};

#[kernel(BLOCK = 256, grid = n.div_ceil(BLOCK))]
fn axpy<const BLOCK: usize>(a: f32, x: Ptr<f32>, y: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let sum = load(y + at).mask(at < n) + load(x + at).mask(at < n) * a;
    store(y + at, sum).mask(at < n);
}

fn work(device: &Device) -> Result<Vec<f32>> {
    let x = Buffer::from_slice(device, &[0.25; 1000])?;
    let mut y = Buffer::from_slice(device, &[1.5; 1000])?;
    axpy().launch(device, (), (0.3, &x, &mut y, 1000))?;
    y.to_vec()
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let launches = |device: &Device| work(device).map(drop);
    match &words[..] {
        [action, folder] if action == "build" => {
            let mut build = Build::new(folder, &Target::SM_90A)?;
            build.add(launches)?;
            build.finish()?;
        }
        [action, folder] if action == "run" => {
            let gpu = Device::cuda(0)?;
            gpu.use_built(&Built::open(folder)?);
            assert_bits_equal(&work(&gpu)?, &work(&Device::cpu())?);
        }
        [_, folder] => Built::open(folder)?.check(&Target::SM_90A, launches)?,
        _ => panic!("`build`, `check` or `run`, and a folder"),
    }
    Ok(())
}
