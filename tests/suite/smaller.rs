//! Tiles that a kernel states as the most: small problems take smaller ones, with the same bits.

use exactile::prelude::*;
use exactile::{Determinism, Kernel, ListingStage, Result, assert_bits_equal};

use crate::language::devices;

/// Twice the numbers, and how many programs there were.
#[device]
fn double_and_count(
    (x, out): (Ptr<f32>, PtrMut<f32>),
    count: PtrMut<i32>,
    n: Scalar<i32>,
    block: usize,
) {
    let at = program_id(0) * block + arange(0, block);
    store(out + at, load(x + at).mask(at < n) * 2.0).mask(at < n);
    store(count, num_programs(0).to::<i32>()).mask(program_id(0) == 0);
}

#[kernel(BLOCK = ..=1024, grid = n.div_ceil(BLOCK))]
fn counted<#[meta(64..=1024)] const BLOCK: usize>(
    x: Ptr<f32>,
    out: PtrMut<f32>,
    count: PtrMut<i32>,
    n: i32,
) {
    double_and_count((x, out), count, n, BLOCK);
}

/// One whose sums could follow the tile.
#[kernel(BLOCK = ..=1024, order = "tile", grid = n.div_ceil(BLOCK))]
fn by_tiles<#[meta(64..=1024)] const BLOCK: usize>(
    x: Ptr<f32>,
    out: PtrMut<f32>,
    count: PtrMut<i32>,
    n: i32,
) {
    double_and_count((x, out), count, n, BLOCK);
}

type Counted = Kernel<(Ptr<f32>, PtrMut<f32>, PtrMut<i32>, i32)>;

/// What one launch of a kernel gives: the numbers, and of how many programs.
fn launched(kernel: &Counted, device: &Device, n: usize) -> Result<(Vec<f32>, usize)> {
    let numbers: Vec<f32> = (0..n).map(|i| i as f32 / 8.0).collect();
    let x = Buffer::from_slice(device, &numbers)?;
    let (mut out, mut count) = (Buffer::zeros(device, n)?, Buffer::zeros(device, 1)?);
    kernel.run(device, (), (&x, &mut out, &mut count, n as i32))?;
    Ok((out.to_vec()?, count.to_vec()?[0] as usize))
}

#[test]
fn small_problems_take_smaller_tiles() -> Result<()> {
    for device in devices() {
        let parts = device.multiprocessors();
        for tiles in [1, parts / 2 + 1, parts, 5 * parts] {
            let n = 256 * tiles;
            let want: Vec<f32> = (0..n).map(|i| i as f32 / 4.0).collect();
            let own = n.div_ceil(1024);
            let (found, programs) = launched(&counted(), &device, n)?;
            assert_bits_equal(&found, &want);
            assert!(own <= programs, "{programs} programs, not {own}");
            if own >= parts {
                assert_eq!(programs, own);
            } else if tiles == parts {
                assert_eq!(programs, parts);
            }
            // What is set stays, and what follows from the tile may not follow from the device.
            let stay = launched(&counted().block(1024), &device, n)?;
            assert_bits_equal(&stay.0, &want);
            let level = counted().determinism(Determinism::BatchInvariant);
            let other = launched(&level, &device, n)?;
            let tile = launched(&by_tiles(), &device, n)?;
            assert_eq!([stay.1, other.1, tile.1], [own; 3]);
        }
    }
    Ok(())
}

/// A kernel whose grid panics for no numbers.
#[kernel(BLOCK = ..=1024, grid = 1024 / n.min(1) * n.div_ceil(BLOCK))]
fn panics<#[meta(64..=1024)] const BLOCK: usize>(out: PtrMut<f32>, n: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(out + at, 1.0).mask(at < n);
}

#[test]
fn a_grid_that_panics_is_an_error_with_its_kernel() -> Result<()> {
    let device = exactile::Device::cpu();
    let mut out = Buffer::zeros(&device, 1)?;
    let error = panics()
        .run(&device, (), (&mut out, 0))
        .expect_err("divides by zero");
    let told = error.to_string();
    assert!(
        told.contains("smaller.rs") && told.contains("block: 1024"),
        "{told}"
    );
    Ok(())
}

#[test]
fn compiled_and_inspected_kernels_are_what_a_launch_runs() -> Result<()> {
    for device in devices() {
        let n = 256 * device.multiprocessors();
        let x = Buffer::from_slice(&device, &vec![1.5f32; n])?;
        let (mut out, mut count) = (Buffer::zeros(&device, n)?, Buffer::zeros(&device, 1)?);
        let arguments = (&x, &mut out, &mut count, n as i32);
        let ready = counted().compile(&device, (), arguments)?;
        let (_, programs) = launched(&counted(), &device, n)?;
        assert_eq!(launched(&ready, &device, n)?.1, programs);
        let mut text = |kernel: &Counted| -> Result<String> {
            let arguments = (&x, &mut out, &mut count, n as i32);
            kernel
                .inspect(&device, (), arguments)?
                .text(ListingStage::Block)
        };
        let block = match device.multiprocessors() {
            1 => 1024,
            _ => 256,
        };
        assert_eq!(text(&counted())?, text(&counted().block(block))?);
        // A launch that states its grid takes the numbers of the kernel.
        let grid = n.div_ceil(1024);
        counted().run(&device, grid, (&x, &mut out, &mut count, n as i32))?;
        assert_bits_equal(&out, &vec![3.0f32; n]);
    }
    Ok(())
}
