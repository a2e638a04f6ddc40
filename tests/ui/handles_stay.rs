//! What a trace gives stays on its thread.

use std::sync::Mutex;

use exactile::prelude::*;

static KEPT: Mutex<Option<PtrMut<f32>>> = Mutex::new(None);

#[kernel]
fn keeps(x: Ptr<f32>, y: PtrMut<f32>) {
    let value = load(x);
    std::thread::scope(|scope| {
        scope.spawn(move || store(y, value));
    });
}

fn main() {}
