//! Which values a launch takes for the parameters of a kernel's signature.

use exactile_core::for_each_number;
use exactile_core::ir::Number;
use exactile_core::lang::{
    Element, InOut, OptionalParameter, Ptr, PtrMut, Scalar, Tensor, TensorInOut, TensorMut,
};
use smallvec::SmallVec;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::bound::{Bound, Choices, FEW};
use crate::buffer::Buffer;
use crate::part::{Part, PartMut};
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::tensor::{Layout, TensorView, TensorViewMut};

/// A value that a launch takes for a parameter of type `P`: `&Buffer<T>` for `Ptr<T>`,
/// `&mut Buffer<T>` for `PtrMut<T>`, parts of buffers in place of either, on the host also `&[T]` and `&mut [T]`, a
/// number for a number. Options, tuples and arrays of parameters take those of their arguments; a structure that derives
/// `KernelArguments` takes the one that is derived with it. An optional pointer takes `Some(&buffer)` and `None`, and in
/// [`Optional`] every argument that the pointer takes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel parameter `{P}`",
    note = "pass `&buffer` for `Ptr<T>`, `&mut buffer` for `PtrMut<T>`, `buffer.view(..)?` for `Tensor<T, RANK>`, and a number of the same type for a number",
    note = "options, tuples and arrays are passed as they are, a structure `S` as `SArguments`"
)]
pub trait Argument<'a, P> {
    /// Appends what the parameter stands for in the IR.
    #[doc(hidden)]
    fn bind(self, bound: &mut BoundArguments<'a>);
}

/// The arguments of a launch, as the IR declares them.
#[derive(Default)]
pub struct BoundArguments<'a> {
    pub(crate) list: SmallVec<[Bound<'a>; FEW]>,
    pub(crate) choices: Choices,
}

impl<'a> BoundArguments<'a> {
    /// Those of a launch. A launch that is to be fast fills a list where it lies: moving one takes time.
    pub(crate) fn of<P, const COUNT: usize>(arguments: impl Arguments<'a, P, COUNT>) -> Self {
        let mut bound = Self::default();
        arguments.bind_all(&mut bound);
        bound
    }

    fn number(&mut self, number: impl Number) {
        self.list.push(Bound::Scalar(number.literal()));
    }

    fn option<P, A: Argument<'a, P>>(&mut self, argument: Option<A>) {
        self.choices.push(argument.is_none());
        if let Some(argument) = argument {
            argument.bind(self);
        }
    }

    /// Memory, then extents and strides, and where the first element is unless that is the lowest, in the order in which
    /// a tensor parameter declares them.
    fn tensor<const RANK: usize>(&mut self, (memory, layout): (Bound<'a>, Layout<RANK>)) {
        self.list.push(memory);
        for extent in layout.extents {
            // A view fits its memory.
            self.number(i64::try_from(extent).unwrap_or(i64::MAX));
        }
        for stride in layout.strides {
            self.number(stride as i64);
        }
        let runs_back = layout.start > 0;
        self.choices.push(runs_back);
        if runs_back {
            self.number(i64::try_from(layout.start).unwrap_or(i64::MAX));
        }
    }
}

impl<'a, T: Element + Number> Argument<'a, Ptr<T>> for &'a Buffer<T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.list.push(Bound::Read(self.part()));
    }
}

impl<'a, T: Element + Number> Argument<'a, PtrMut<T>> for &'a mut Buffer<T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.list.push(Bound::ReadWrite(self.part_mut()));
    }
}

impl<'a, T: Element + Number> Argument<'a, Ptr<T>> for BufferSlice<'a, T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.list.push(Bound::Read(self.part));
    }
}

impl<'a, T: Element + Number> Argument<'a, PtrMut<T>> for BufferSliceMut<'a, T> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.list.push(Bound::ReadWrite(self.part));
    }
}

/// Memory of the program itself, for launches on the host. Nothing is copied.
impl<'a, T: Element + Number + IntoBytes + Immutable> Argument<'a, Ptr<T>> for &'a [T] {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        let part = Part::Slice(self.as_bytes());
        bound.list.push(Bound::Read(part));
    }
}

/// Memory of the program itself, for launches on the host. Nothing is copied, and an error of the launch is told by its
/// stream.
impl<'a, T: Element + Number + IntoBytes + FromBytes> Argument<'a, PtrMut<T>> for &'a mut [T] {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        let part = PartMut::Slice(self.as_mut_bytes());
        bound.list.push(Bound::ReadWrite(part));
    }
}

impl<'a, T: Element + Number, const RANK: usize> Argument<'a, Tensor<T, RANK>>
    for TensorView<'a, T, RANK>
{
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.tensor(self.bound());
    }
}

impl<'a, T: Element + Number, const RANK: usize> Argument<'a, TensorMut<T, RANK>>
    for TensorViewMut<'a, T, RANK>
{
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.tensor(self.bound());
    }
}

/// One array for what a kernel reads and for what it writes: `InPlace(&mut buffer)` for a parameter
/// [`InOut<T>`](crate::prelude::InOut), `InPlace(buffer.view_mut(..)?)` for a
/// [`TensorInOut<T, RANK>`](crate::prelude::TensorInOut). Two arrays are passed as a pair.
///
/// ```
/// # use exactile::prelude::*;
/// #[kernel]
/// fn double(numbers: InOut<f32>) {
///     let at = arange(0, 4);
///     store(numbers.output + at, load(numbers.input + at) * 2.0);
/// }
///
/// let device = Device::cpu();
/// let mut x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let mut out = Buffer::zeros(&device, 4)?;
/// let kernel = double();
/// kernel.run(&device, 1, ((&x, &mut out),))?;
/// kernel.run(&device, 1, (InPlace(&mut x),))?;
/// assert_eq!(x.to_vec()?, out.to_vec()?);
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Debug)]
pub struct InPlace<A>(pub A);

macro_rules! in_out {
    ($($InOut:ty: $Read:ty, $Write:ty $(, $RANK:ident)?;)*) => { $(
        impl<'a, T: Element + Number, R, W $(, const $RANK: usize)?> Argument<'a, $InOut> for (R, W)
        where
            R: Argument<'a, $Read>,
            W: Argument<'a, $Write>,
        {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                bound.choices.push(false);
                self.0.bind(bound);
                self.1.bind(bound);
            }
        }
        impl<'a, T: Element + Number, W $(, const $RANK: usize)?> Argument<'a, $InOut> for InPlace<W>
        where
            W: Argument<'a, $Write>,
        {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                bound.choices.push(true);
                self.0.bind(bound);
            }
        }
    )* };
}
in_out! {
    InOut<T>: Ptr<T>, PtrMut<T>;
    TensorInOut<T, RANK>: Tensor<T, RANK>, TensorMut<T, RANK>, RANK;
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
        impl<'a> Argument<'a, Option<$Host>> for Option<$Host> {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                bound.option::<$Host, _>(self);
            }
        }
    )* };
}
for_each_number!(numbers);

macro_rules! options {
    ($($Argument:ty: $Parameter:ty $(, $RANK:ident)?;)*) => { $(
        impl<'a, T: Element + Number $(, const $RANK: usize)?> Argument<'a, Option<$Parameter>>
            for Option<$Argument>
        {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                bound.option::<$Parameter, _>(self);
            }
        }
    )* };
}
// One for each kind, so that the type of a bare `None` is known.
options! {
    &'a Buffer<T>: Ptr<T>;
    &'a mut Buffer<T>: PtrMut<T>;
    TensorView<'a, T, RANK>: Tensor<T, RANK>, RANK;
    TensorViewMut<'a, T, RANK>: TensorMut<T, RANK>, RANK;
    T: Scalar<T>;
}

/// What a launch passes or leaves out, of any kind that the parameter takes: a part of a buffer or memory of the host for
/// an optional pointer, of which the type of a bare `None` would tell nothing.
///
/// ```
/// # use exactile::prelude::*;
/// #[kernel]
/// fn scaled(x: Ptr<f32>, factor: Option<Ptr<f32>>, out: PtrMut<f32>) {
///     let at = arange(0, 4);
///     let mut number = load(x + at);
///     if let Some(factor) = factor {
///         number *= load(factor);
///     }
///     store(out + at, number);
/// }
///
/// let device = Device::cpu();
/// let x = Buffer::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let mut out = Buffer::zeros(&device, 4)?;
/// let kernel = scaled();
/// for (factor, first) in [(None, 1.0), (Some(x.slice(2..)?), 3.0)] {
///     kernel.run(&device, 1, (&x, Optional(factor), &mut out))?;
///     assert_eq!(out.to_vec()?[0], first);
/// }
/// # Ok::<(), exactile::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Optional<A>(pub Option<A>);

impl<'a, A: Argument<'a, P>, P: OptionalParameter> Argument<'a, Option<P>> for Optional<A> {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        bound.option::<P, A>(self.0);
    }
}

impl<'a, A: Argument<'a, P>, P, const N: usize> Argument<'a, [P; N]> for [A; N] {
    fn bind(self, bound: &mut BoundArguments<'a>) {
        for argument in self {
            argument.bind(bound);
        }
    }
}

/// The tuple of the types of a kernel's parameters, of which there are `COUNT`, at most 64.
pub trait Parameters<const COUNT: usize> {}

/// The tuple of arguments for the tuple `P` of parameters, of which there are `COUNT`, at most 64.
#[diagnostic::on_unimplemented(
    message = "a launch passes other arguments than the kernel takes: it has {COUNT} parameters",
    label = "found `{Self}`",
    note = "the types of the {COUNT} parameters are `{P}`: pass a tuple with one argument for each, in this order",
    note = "more than 64 fit as a structure that derives `KernelArguments`, or as an array"
)]
pub trait Arguments<'a, P, const COUNT: usize>: Sized {
    /// Binds all in order.
    #[doc(hidden)]
    fn bind_all(self, bound: &mut BoundArguments<'a>);
}

impl Parameters<0> for () {}

impl<'a> Arguments<'a, (), 0> for () {
    fn bind_all(self, _bound: &mut BoundArguments<'a>) {}
}

/// Tuples of all lengths up to that of the list.
macro_rules! tuples {
    ([$($A:ident $P:ident)*]) => {};
    ([$($A:ident $P:ident)*] $Next:ident $Parameter:ident $($rest:tt)*) => {
        tuples!(@one $($A $P)* $Next $Parameter);
        tuples!([$($A $P)* $Next $Parameter] $($rest)*);
    };
    (@one $($A:ident $P:ident)*) => {
        impl<$($P),*> Parameters<{ [$(stringify!($P)),*].len() }> for ($($P,)*) {}

        impl<'a, $($A: Argument<'a, $P>, $P),*>
            Arguments<'a, ($($P,)*), { [$(stringify!($P)),*].len() }> for ($($A,)*)
        {
            fn bind_all(self, bound: &mut BoundArguments<'a>) {
                #[expect(non_snake_case, reason = "named as the types")]
                let ($($A,)*) = self;
                $($A.bind(bound);)*
            }
        }
    };
}
tuples! { []
    A0 P0 A1 P1 A2 P2 A3 P3 A4 P4 A5 P5 A6 P6 A7 P7
    A8 P8 A9 P9 A10 P10 A11 P11 A12 P12 A13 P13 A14 P14 A15 P15
    A16 P16 A17 P17 A18 P18 A19 P19 A20 P20 A21 P21 A22 P22 A23 P23
    A24 P24 A25 P25 A26 P26 A27 P27 A28 P28 A29 P29 A30 P30 A31 P31
    A32 P32 A33 P33 A34 P34 A35 P35 A36 P36 A37 P37 A38 P38 A39 P39
    A40 P40 A41 P41 A42 P42 A43 P43 A44 P44 A45 P45 A46 P46 A47 P47
    A48 P48 A49 P49 A50 P50 A51 P51 A52 P52 A53 P53 A54 P54 A55 P55
    A56 P56 A57 P57 A58 P58 A59 P59 A60 P60 A61 P61 A62 P62 A63 P63
}

macro_rules! nested_tuples {
    ($(($($A:ident $P:ident),+);)*) => { $(
        impl<'a, $($A: Argument<'a, $P>, $P),+> Argument<'a, ($($P,)+)> for ($($A,)+) {
            fn bind(self, bound: &mut BoundArguments<'a>) {
                #[expect(non_snake_case, reason = "named as the types")]
                let ($($A,)+) = self;
                $($A.bind(bound);)+
            }
        }
    )* };
}
nested_tuples! {
    (A0 P0);
    (A0 P0, A1 P1);
    (A0 P0, A1 P1, A2 P2);
    (A0 P0, A1 P1, A2 P2, A3 P3);
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4);
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5);
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6);
    (A0 P0, A1 P1, A2 P2, A3 P3, A4 P4, A5 P5, A6 P6, A7 P7);
}
