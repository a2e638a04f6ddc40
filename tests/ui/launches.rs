//! What a launch and a replay are handed.

use exactile::prelude::*;

#[kernel]
fn copies(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    store(out + n, load(x));
}

fn main() -> exactile::Result<()> {
    let device = Device::cpu();
    let x = Buffer::<f32>::zeros(&device, 1)?;
    let mut out = Buffer::<f32>::zeros(&device, 1)?;
    copies().into_kernel().run(&device, 1, (&x, &mut out))?;
    let stream = device.stream()?;
    let graph = stream.capture(|_| Ok(()))?;
    graph.replay(&stream, (&x, 1))
}
