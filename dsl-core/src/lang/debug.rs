//! Checks that a kernel states itself.
//!
//! [`require`](super::require) checks what is known when the kernel is compiled: extents, meta-parameters, data
//! types. [`device_assert`] checks numbers while it runs. `println!` in a kernel prints while it is traced, a
//! shape or a meta-parameter for instance; a kernel with loops is traced twice.

use std::panic::Location;

use super::context;
use super::tile::IntoTile;
use crate::ir::{Op, op};

/// Fails the launch unless the condition, a tile or a scalar, holds in every element.
///
/// What waits for the launch returns `Error::Assertion` with the message, this line, the program and the first element
/// that does not hold: of several failures the first in the order of programs, then lines, then elements. On a GPU the thread
/// block ends there. What the kernel writes is unspecified then, as where an access is out of bounds.
///
/// Elements that do not count are let through by the condition: `device_assert(!mask | (x > 0.0), "..")`. Like bounds,
/// assertions are checked by every launch but `launch_unchecked`, which has no code for them. They change no bits of
/// a result.
///
/// ```
/// use exactile_core::lang::debug::device_assert;
/// use exactile_core::lang::{Ptr, PtrMut, arange, load, store};
///
/// fn inverses(x: Ptr<f32>, measured: Ptr<bool>, out: PtrMut<f32>) {
///     let at = arange(0, 64);
///     device_assert(load(measured + at), "every x was measured");
///     store(out + at, 1.0 / load(x + at));
/// }
/// ```
#[track_caller]
pub fn device_assert(condition: impl IntoTile<bool>, message: &str) {
    context::with(Location::caller(), |context| {
        let condition = condition.into_value(context);
        if context.ty(condition).is_poison() {
            return;
        }
        let message = message.to_string();
        let assert = Op::Assert(op::Assert { condition, message });
        context.builder.emit(assert, &[]);
    });
}
