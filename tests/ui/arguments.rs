//! Launches that pass other arguments than a kernel takes, and what is no structure of parameters.

use exactile::prelude::*;

#[kernel]
fn adds(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    store(out + n, load(x + n));
}

#[derive(Clone, Copy, KernelArguments)]
struct Span {
    start: Scalar<i64>,
    label: Tile<f32>,
}

#[kernel]
fn spans(out: PtrMut<f32>, span: Span) {
    store(out + span.start, 1.0);
}

fn too_few(device: &Device, x: &Buffer<f32>, out: &mut Buffer<f32>) -> exactile::Result<()> {
    adds().launch(device, 1, (x, out))
}

fn too_many(device: &Device, x: &Buffer<f32>, out: &mut Buffer<f32>) -> exactile::Result<()> {
    adds().launch(device, 1, (x, out, 1, 2))
}

fn one_of_three(device: &Device, x: &Buffer<f32>) -> exactile::Result<()> {
    adds().run(device, 1, (x,))
}

fn two_too_many(device: &Device, x: &Buffer<f32>, out: &mut Buffer<f32>) -> exactile::Result<()> {
    adds().compile(device, 1, (x, out, 1, 2, 3)).map(drop)
}

#[kernel]
fn sets(x: PtrMut<f32>) {
    store(x, 1.0);
}

fn no_tuple(device: &Device, x: &mut Buffer<f32>) -> exactile::Result<()> {
    sets().launch(device, 1, x)
}

#[kernel]
fn nothing() {}

fn too_many_for_nothing(device: &Device) -> exactile::Result<()> {
    nothing().launch(device, 1, (1,))
}

fn fields_alone(device: &Device, out: &mut Buffer<f32>) -> exactile::Result<()> {
    spans().launch(device, 1, (out, 3i64))
}

fn main() {}
