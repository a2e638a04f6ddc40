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

fn fields_alone(device: &Device, out: &mut Buffer<f32>) -> exactile::Result<()> {
    spans().launch(device, 1, (out, 3i64))
}

fn main() {}
