//! What kernels say of handles as if they were numbers of the host: traits that no handle implements, whose messages say what
//! to write.

use std::ops;

use super::carry::Kind;
use super::element::Element;
use super::tile::{Scalar, Tile};

/// What a tile would be indexed by.
#[diagnostic::on_unimplemented(
    message = "a tile is not indexed by `[..]`",
    label = "write `.pick(axis, position)`",
    note = "`.slice(axis, start, count)` takes several positions, and `gather(tile, indices, axis)` those that the device knows"
)]
pub trait TileIndex {}

impl<T: Element, I: TileIndex> ops::Index<I> for Tile<T> {
    type Output = Self;
    fn index(&self, _: I) -> &Self {
        self
    }
}

/// What a method `max` or `min` of a scalar would take.
#[diagnostic::on_unimplemented(
    message = "a scalar has no method `max` or `min`",
    label = "write `maximum(a, b)` or `minimum(a, b)`",
    note = "`.max(axis)` and `.min(axis)` of a tile reduce an axis"
)]
pub trait OtherScalar {}

impl<T: Element> Scalar<T> {
    /// There is none: [`maximum`](super::math::maximum) takes two values.
    #[doc(hidden)]
    pub fn max(self, _: impl OtherScalar) -> Self {
        self
    }

    /// There is none: [`minimum`](super::math::minimum) takes two values.
    #[doc(hidden)]
    pub fn min(self, _: impl OtherScalar) -> Self {
        self
    }
}

/// What `std::cmp` orders.
#[diagnostic::on_unimplemented(
    message = "`std::cmp` does not order `{Self}`",
    label = "write `maximum(a, b)` or `minimum(a, b)`"
)]
pub trait HostOrder: Sized {
    /// The lesser one.
    fn lesser(self, other: Self) -> Self;
    /// The greater one.
    fn greater(self, other: Self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<V: Ord> HostOrder for V {
    fn lesser(self, other: Self) -> Self {
        self.min(other)
    }
    fn greater(self, other: Self) -> Self {
        self.max(other)
    }
}

/// `std::cmp::min` in a kernel: made by the macros.
pub fn host_min<V: HostOrder>(a: V, b: V) -> V {
    a.lesser(b)
}

/// `std::cmp::max` in a kernel: made by the macros.
pub fn host_max<V: HostOrder>(a: V, b: V) -> V {
    a.greater(b)
}

/// A condition beside a pattern: made by the macros.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand beside a pattern, which the host decides",
    label = "decided on the device",
    note = "nest them: `if let Some(x) = x {{ if condition {{ .. }} }}`"
)]
pub trait HostCondition {
    /// The condition.
    fn holds(self) -> bool;
}

impl HostCondition for bool {
    fn holds(self) -> bool {
        self
    }
}

/// What the header of a `for` goes through backwards or in steps: made by the macros.
#[diagnostic::on_unimplemented(
    message = "a loop of the device has no `.rev()` and no `.step_by(..)`",
    label = "write `range(start, end).step(4)`, or `range(last, start - 1).step(-1)` for downwards"
)]
pub trait HostRange: Sized {
    /// Backwards.
    fn rev(self) -> std::iter::Rev<Self>;
    /// Each `step`-th one.
    fn step_by(self, step: usize) -> std::iter::StepBy<Self>;
}

#[diagnostic::do_not_recommend]
impl<I: DoubleEndedIterator> HostRange for I {
    fn rev(self) -> std::iter::Rev<Self> {
        Iterator::rev(self)
    }
    fn step_by(self, step: usize) -> std::iter::StepBy<Self> {
        Iterator::step_by(self, step)
    }
}

/// What is added to a variable that begins with a literal: made by the macros.
#[diagnostic::on_unimplemented(
    message = "a variable that begins with a literal is a number of the host, which does not take `{Self}`",
    label = "begin with `scalar(0.0)`, or `zeros(shape)` for a tile"
)]
pub trait HostOperand {}

macro_rules! host_operands {
    ($($Host:ty)*) => { $(
        impl HostOperand for $Host {}
        impl HostOperand for &$Host {}
    )* };
}
host_operands!(f32 f64 i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize bool);

/// Takes what is added.
pub const fn host_operand<V: HostOperand>(_: &V) {}

macro_rules! of_the_host {
    ($($(#[$about:meta])* $Host:ident $Device:ident $Refused:ident $method:ident;)*) => { $(
        $(#[$about])*
        pub trait $Refused {}

        /// Anything that is no handle.
        pub trait $Host {
            /// Nothing.
            fn $method(&self) {}
        }
        impl<V> $Host for Kind<V> {}

        /// A handle, by autoref before anything else.
        pub trait $Device {
            /// The handle.
            type Handle;
            /// What the handle is not.
            fn $method(&self)
            where
                Self::Handle: $Refused,
            {
            }
        }
        impl<T: Element> $Device for &Kind<Scalar<T>> {
            type Handle = Scalar<T>;
        }
        impl<T: Element> $Device for &Kind<Tile<T>> {
            type Handle = Tile<T>;
        }
    )* };
}
of_the_host! {
    /// What `as` converts.
    #[diagnostic::on_unimplemented(
        message = "`as` does not convert `{Self}`",
        label = "write `.to::<f32>()`, or the type that it becomes",
        note = "what a tile is made of, such as an extent, is a number of the host: a `const` parameter of the kernel"
    )]
    HostCast DeviceCast Cast cast;
    /// What a macro of the standard library prints.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` is not known while the kernel is traced, when this prints",
        label = "write `device_print(\"name\", value)`"
    )]
    HostPrint DevicePrint Printed print;
    /// What a pattern in a tuple names.
    #[diagnostic::on_unimplemented(
        message = "no number in a tuple pattern matches `{Self}`",
        label = "write comparisons, such as `if a == 0 && b == 1`",
        note = "a `match` on one number of the device takes literals and ranges of them"
    )]
    HostMatch DeviceMatch Matched matched;
}
