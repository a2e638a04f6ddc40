//! The numbers that a tuner tries; the grid and the constraint of a kernel.

use exactile::prelude::*;

#[kernel]
fn half_open<#[meta(16..256)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel]
fn without_end<#[meta(16..)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel]
fn unknown_word<#[meta(16..=256, by = 2)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel]
fn steps_of_a_list<#[meta(16, 32, step = 2)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel]
fn twice<#[meta(16)] #[meta(32)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel]
fn other<#[cfg(test)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel(grid = 1, grid = 2)]
fn two_grids(x: PtrMut<f32>) {
    store(x, 1.0);
}

fn main() {}
