//! A crate whose command tunes, builds and shows its kernels: `cargo run -p exactile-cli --example command -- tune`.

use exactile::Result;
use exactile::command::Run;
use exactile::prelude::*;

/// Doubles `BLOCK` elements a program.
#[kernel(BLOCK = 1024, grid = n.div_ceil(BLOCK))]
fn double<#[meta(256..=4096)] const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
}

/// The sum of each row, whose tile must hold it.
#[kernel(grid = x.extent(0), constraint = BLOCK >= x.extent(1))]
fn sum<#[meta(64..=1024)] const BLOCK: usize>(x: Tensor<f32, 2>, out: PtrMut<f32>) {
    let row = program_id(0);
    let tile = load(x.tile([1, BLOCK]).at((row, 0)));
    store(out + row + arange(0, 1), tile.sum(1));
}

fn doubles(run: &mut Run<'_>) -> Result<()> {
    let n = 100_000;
    let x = Buffer::from_slice(run.device(), &vec![1.5f32; n])?;
    let mut out = Buffer::zeros(run.device(), n)?;
    run.launch(double(), (), (&x, &mut out, n as i32))
}

fn sums(run: &mut Run<'_>) -> Result<()> {
    let x = Buffer::from_slice(run.device(), &vec![0.5f32; 100 * 200])?;
    let mut out = Buffer::zeros(run.device(), 100)?;
    let kernel = sum().block(256);
    run.launch(kernel, (), (x.view([100, 200])?, &mut out))
}

exactile::main!(kernels doubles, sums);
