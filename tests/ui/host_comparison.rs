//! Host values other than numbers, `bool`, `char` and `&str` do not compare in a kernel.

use exactile::prelude::*;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Fast,
    Exact,
}

#[device]
fn scale(x: Tile<f32>, mode: Mode) -> Tile<f32> {
    if mode == Mode::Fast { x * 2.0 } else { x }
}

fn main() {
    let _ = Mode::Exact;
}
