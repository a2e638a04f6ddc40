//! Checks that a kernel states itself.
//!
//! [`require`](super::require) checks what is known when the kernel is compiled: extents, meta-parameters, data
//! types. [`device_assert`] checks numbers while it runs, and [`device_print`] shows them. `println!` in a kernel prints
//! while it is traced, a shape or a meta-parameter for instance; every kernel is traced more than once.

use std::panic::Location;

use super::context::{self, Handle};
use super::memory::Stored;
use super::tile::{DeviceValue, IntoTile};
use super::tuples::for_each_tuple;
use crate::ir::prints::WORDS;
use crate::ir::{NumberFormat, Op, op};

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

/// Prints the numbers of a tile, or a scalar, while the kernel runs: a line for each element.
///
/// A line has the place in the source, the program, the label, the index in the tile and the number:
/// `kernel.rs:12:5 (3, 0, 0) x[1, 7]: 0.5`. `.mask(condition)` directly behind it chooses elements; where the
/// condition is that of one program, the others print nothing: `device_print("x", x).mask(program_id(0) == 3)`.
/// `.hexadecimal()`, before a mask, shows the bits of the numbers. Of a tuple the values are printed one after the other, as
/// `x.0`, `x.1` and so on; a mask counts for each.
///
/// The lines of a launch come when it has ended, sorted by program, then in the order in which a program printed
/// them, then by element: the same text on every device, if all of it finds room. They go to standard error, or where
/// `Device::on_print` sends them. A launch that prints waits for its end, and returns what its programs do wrong; the
/// lines of programs up to the first one that fails have come then.
/// There is room for 65,534 words of 64 bits: each print takes two and its elements, twice as many with a mask. What
/// finds no room is left out, and a last line says how many prints were; which ones may differ from run to run.
///
/// Printing changes no bits of a result. A kernel that prints is compiled anew, and is slower; each of its launches clears
/// and reads all that room.
///
/// ```
/// use exactile_core::lang::debug::device_print;
/// use exactile_core::lang::{Ptr, PtrMut, arange, load, store};
///
/// fn doubled(x: Ptr<f32>, doubtful: Ptr<bool>, out: PtrMut<f32>) {
///     let at = arange(0, 64);
///     let x = load(x + at);
///     device_print("doubtful", x).mask(load(doubtful + at));
///     store(out + at, x + x);
/// }
/// ```
#[track_caller]
pub fn device_print(label: &str, value: impl Shown) -> Stored {
    let printed = context::with(Location::caller(), |context| {
        let handles = value.handles();
        let is_one = handles.len() == 1;
        let mut insts = Vec::new();
        for (place, handle) in handles.into_iter().enumerate() {
            let x = context.value(handle);
            if context.ty(x).is_poison() {
                continue;
            }
            let print = Op::Print(op::Print {
                record: context.record(),
                x,
                mask: None,
                label: match is_one {
                    true => label.to_string(),
                    false => format!("{label}.{place}"),
                },
                number: 0,
                words: WORDS,
                format: None,
            });
            insts.push(context.builder.emit(print, &[]));
        }
        context.all_stored(insts)
    });
    printed.unwrap_or_default()
}

impl Stored {
    /// Directly behind `device_print`, before a mask: shows the bits of the numbers, by digits to the base 16.
    #[track_caller]
    pub fn hexadecimal(self) -> Self {
        self.told("hexadecimal", "device_print", |op| {
            let Op::Print(print) = op else { return false };
            print.format = Some(NumberFormat::Hexadecimal);
            true
        })
    }
}

/// What [`device_print`] shows: a tile, a scalar, or a tuple of them.
pub trait Shown {
    /// The values in the trace.
    #[doc(hidden)]
    fn handles(self) -> Vec<Handle>;
}

impl<V: DeviceValue> Shown for V {
    fn handles(self) -> Vec<Handle> {
        vec![self.handle()]
    }
}

macro_rules! shown_tuples {
    ($($Item:ident $index:tt)+) => {
        impl<$($Item: DeviceValue),+> Shown for ($($Item,)+) {
            fn handles(self) -> Vec<Handle> {
                vec![$(self.$index.handle()),+]
            }
        }
    };
}
for_each_tuple!(shown_tuples, up to twelve);
