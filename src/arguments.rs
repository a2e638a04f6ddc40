//! Which values a launch takes for the parameters of a kernel's signature.

use exactile_core::for_each_number;
use exactile_core::ir::Number;
use exactile_core::lang::{Element, Ptr, PtrMut, Scalar, Tensor, TensorMut};

use crate::bound::Bound;
use crate::buffer::Buffer;
use crate::tensor::{Extents, TensorView, TensorViewMut};

/// A value that a launch takes for a parameter of type `P`: `&Buffer<T>` for `Ptr<T>`,
/// `&mut Buffer<T>` for `PtrMut<T>`, a number for a number.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter `{P}`",
    note = "pass `&buffer` for `Ptr<T>`, `&mut buffer` for `PtrMut<T>`, `buffer.view(..)?` for `Tensor<T, RANK>`, and a number of the same type for a number"
)]
pub trait Argument<'a, P> {
    /// Appends what the parameter stands for in the IR.
    #[doc(hidden)]
    fn bind(self, bound: &mut BoundArguments<'a>);
}

/// The arguments of a launch, as the IR declares them.
#[derive(Default)]
pub struct BoundArguments<'a> {
    pub(crate) list: Vec<Bound<'a>>,
}

impl<'a> BoundArguments<'a> {
    fn number(&mut self, number: impl Number) {
        self.list.push(Bound::Scalar(number.literal()));
    }

    /// Memory, then extents and strides in the order in which a tensor parameter declares them.
    fn tensor<const RANK: usize>(&mut self, memory: Bound<'a>, layout: Extents<RANK>) {
        self.list.push(memory);
        for value in layout.extents.into_iter().chain(layout.strides) {
            // A view fits its buffer, so only the stride of an axis of extent 1 can be too large;
            // it never counts.
            self.number(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

impl<'a, T: Element + Number> Argument<'a, Ptr<T>> for &'a Buffer<T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.list.push(Bound::Read(self.device(), self.storage()));
    }
}

impl<'a, T: Element + Number> Argument<'a, PtrMut<T>> for &'a mut Buffer<T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        let (device, storage) = self.parts_mut();
        bound.list.push(Bound::ReadWrite(device, storage));
    }
}

impl<'a, T: Element + Number, const RANK: usize> Argument<'a, Tensor<T, RANK>>
    for TensorView<'a, T, RANK>
{
    fn bind(self, bound: &mut BoundArguments<'a>) {
        let memory = Bound::Read(self.buffer.device(), self.buffer.storage());
        bound.tensor(memory, self.layout);
    }
}

impl<'a, T: Element + Number, const RANK: usize> Argument<'a, TensorMut<T, RANK>>
    for TensorViewMut<'a, T, RANK>
{
    fn bind(self, bound: &mut BoundArguments<'a>) {
        let (device, storage) = self.buffer.parts_mut();
        bound.tensor(Bound::ReadWrite(device, storage), self.layout);
    }
}

impl<'a, T: Element + Number> Argument<'a, Scalar<T>> for T {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.number(self);
    }
}

macro_rules! numbers {
    ($($Host:ty)*) => { $(
        impl<'a> Argument<'a, $Host> for $Host {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                bound.number(self);
            }
        }
    )* };
}
for_each_number!(numbers);

/// The tuple of arguments for the tuple of parameters.
pub trait Arguments<'a, P> {
    /// Binds all in order.
    #[doc(hidden)]
    fn bind_all(self) -> BoundArguments<'a>;
}

macro_rules! tuples {
    ($(($($A:ident $P:ident $index:tt),*);)*) => { $(
        impl<'a, $($A: Argument<'a, $P>, $P),*> Arguments<'a, ($($P,)*)> for ($($A,)*) {
            fn bind_all(self) -> BoundArguments<'a> {
                let mut list = BoundArguments::default();
                let _bound = &mut list;
                $(self.$index.bind(_bound);)*
                list
            }
        }
    )* };
}
tuples! {
    ();
    (A0 P0 0);
    (A0 P0 0, A1 P1 1);
    (A0 P0 0, A1 P1 1, A2 P2 2);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10);
    (A0 P0 0, A1 P1 1, A2 P2 2, A3 P3 3, A4 P4 4, A5 P5 5, A6 P6 6, A7 P7 7, A8 P8 8, A9 P9 9, A10 P10 10, A11 P11 11);
}
