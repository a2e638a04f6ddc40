//! The sum of two vectors: offsets, a mask for the tail, loads and a store.

use exactile::prelude::*;
use exactile::{Number, Result};
use exactile_harness::demo::{Case, problem, random};

#[kernel(BLOCK = 1024)]
pub(crate) fn vector_add<T: Numeric, const BLOCK: usize>(
    x: Ptr<T>,
    y: Ptr<T>,
    out: PtrMut<T>,
    n: i32,
) {
    let offsets = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = offsets < n;
    let sum = load(x + offsets).mask(mask) + load(y + offsets).mask(mask);
    store(out + offsets, sum).mask(mask);
}

pub(crate) fn case<T: Float + Number>(n: usize) -> Case {
    Case {
        kernel: "vector_add",
        dtype: <T as Number>::DTYPE,
        shape: vec![n],
        bytes: (3 * n * size_of::<T>()) as u64,
        flops: n as u64,
        blocks: vec![1024, 256, 4096],
        elements: |block| block,
        setup: Box::new(move |device| {
            let x = Buffer::from_slice(device, &random::<T>(1, n))?;
            let y = Buffer::from_slice(device, &random::<T>(2, n))?;
            let device = device.clone();
            let out = Buffer::<T>::zeros(&device, n)?;
            Ok(problem(out, move |out, setting| {
                let config = vector_add::Config {
                    block: setting.block,
                    ..vector_add::Config::new()
                }
                .scheduled(setting.schedule());
                vector_add::<T>(config)
                    .determinism(setting.determinism)
                    .launch(&device, n.div_ceil(setting.block), (&x, &y, out, n as i32))
            }))
        }),
    }
}

/// What the demo runs; `quick` takes small inputs.
pub(crate) fn cases(quick: bool) -> Vec<Case> {
    let n = if quick { 100_003 } else { 1 << 24 };
    vec![case::<f32>(n), case::<f16>(n), case::<bf16>(n)]
}

fn main() -> Result<()> {
    exactile_harness::demo::main(&cases(true))
}
