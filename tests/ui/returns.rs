//! A `return` is a statement, and each end of a value that it skips gives one. No statement may be left out.

use exactile::prelude::*;

#[kernel]
fn returns(x: PtrMut<f32>, n: i32) {
    let value = 2.0 * if n > 3 {
        return;
    } else {
        scalar::<f32>(1.0)
    };
    store(x, value);
}

#[kernel]
fn gives_nothing(x: PtrMut<f32>, n: i32) {
    let value = match n {
        1 => {
            if n > 3 {
                return;
            }
            store(x, 1.0);
        }
        _ => scalar::<f32>(1.0),
    };
    store(x, value);
}

#[kernel]
fn may_be_left_out(x: PtrMut<f32>, n: i32) {
    #[cfg(any())]
    let value = if n > 3 {
        return;
    } else {
        scalar::<f32>(1.0)
    };
    #[cfg_attr(any(), cfg(any()))]
    if n > 4 {
        store(x, 1.0);
    }
    store(x, 2.0);
}

fn main() {}
