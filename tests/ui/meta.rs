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

#[kernel]
fn too_many<
    const A0: bool, const A1: bool, const A2: bool, const A3: bool, const A4: bool,
    const A5: bool, const A6: bool, const A7: bool, const A8: bool, const A9: bool,
    const A10: bool, const A11: bool, const A12: bool, const A13: bool, const A14: bool,
    const A15: bool, const A16: bool, const A17: bool, const A18: bool, const A19: bool,
    const A20: bool, const A21: bool, const A22: bool, const A23: bool, const A24: bool,
    const A25: bool, const A26: bool, const A27: bool, const A28: bool, const A29: bool,
    const A30: bool, const A31: bool, const A32: bool, const A33: bool, const A34: bool,
    const A35: bool, const A36: bool, const A37: bool, const A38: bool, const A39: bool,
    const A40: bool, const A41: bool, const A42: bool, const A43: bool, const A44: bool,
    const A45: bool, const A46: bool, const A47: bool, const A48: bool, const A49: bool,
    const A50: bool, const A51: bool, const A52: bool, const A53: bool, const A54: bool,
    const A55: bool, const A56: bool, const A57: bool, const A58: bool, const A59: bool,
    const A60: bool, const A61: bool, const A62: bool, const A63: bool, const A64: bool,
>(x: PtrMut<f32>) {
    store(x, 1.0);
}

#[kernel]
fn takes_a_method<const RUN: usize>(x: PtrMut<f32>) {
    store(x + arange(0, RUN), 1.0);
}

#[kernel(BLOCK = ..=128, grid = 1)]
fn smaller_than_what<const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

#[kernel(BLOCK = ..=128)]
fn smaller_for_what<#[meta(16..=128)] const BLOCK: usize>(x: PtrMut<f32>) {
    store(x + arange(0, BLOCK), 1.0);
}

fn main() {}
