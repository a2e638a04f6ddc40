//! Arrays that a replay of a graph is handed.

use exactile_core::ir::Number;
use exactile_core::lang::Element;
use smallvec::SmallVec;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::bound::{Bound, FEW};
use crate::buffer::Buffer;
use crate::part::{Part, PartMut};
use crate::slices::{BufferSlice, BufferSliceMut};
use crate::tensor::{TensorView, TensorViewMut};

/// The arrays that a replay is handed, in any order: `&buffer` for one that the graph reads, `&mut buffer` for one that it
/// writes, parts and views of buffers in place of either, on the host also slices; tuples, arrays and vectors of such, and
/// what a program's own structures make of them.
///
/// ```
/// # use exactile::prelude::*;
/// # use exactile::{Handed, Hands};
/// struct Layer {
///     weights: Buffer<f32>,
///     activations: Buffer<f32>,
/// }
///
/// impl<'a> Hands<'a> for &'a mut Layer {
///     fn hand(self, handed: &mut Handed<'a>) {
///         (&self.weights, &mut self.activations).hand(handed);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array that a replay can be handed",
    note = "pass `&buffer` for what the graph reads, `&mut buffer` for what it writes, and a tuple for several"
)]
pub trait Hands<'a> {
    /// Adds its arrays to the list.
    fn hand(self, handed: &mut Handed<'a>);
}

/// The list of [`Hands`].
#[derive(Default)]
pub struct Handed<'a>(pub(crate) SmallVec<[Bound<'a>; FEW]>);

impl<'a, T: Number> Hands<'a> for &'a Buffer<T> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(Bound::Read(self.part()));
    }
}

impl<'a, T: Number> Hands<'a> for &'a mut Buffer<T> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(Bound::ReadWrite(self.part_mut()));
    }
}

impl<'a, T> Hands<'a> for BufferSlice<'a, T> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(Bound::Read(self.part));
    }
}

impl<'a, T> Hands<'a> for BufferSliceMut<'a, T> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(Bound::ReadWrite(self.part));
    }
}

impl<'a, T: Number, const RANK: usize> Hands<'a> for TensorView<'a, T, RANK> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(self.bound().0);
    }
}

impl<'a, T: Number, const RANK: usize> Hands<'a> for TensorViewMut<'a, T, RANK> {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(self.bound().0);
    }
}

/// Memory of the program itself, for replays on the host.
impl<'a, T: Element + Number + IntoBytes + Immutable> Hands<'a> for &'a [T] {
    fn hand(self, handed: &mut Handed<'a>) {
        handed.0.push(Bound::Read(Part::Slice(self.as_bytes())));
    }
}

/// Memory of the program itself, for replays on the host.
impl<'a, T: Element + Number + IntoBytes + FromBytes> Hands<'a> for &'a mut [T] {
    fn hand(self, handed: &mut Handed<'a>) {
        let part = PartMut::Slice(self.as_mut_bytes());
        handed.0.push(Bound::ReadWrite(part));
    }
}

impl<'a, A: Hands<'a>, const N: usize> Hands<'a> for [A; N] {
    fn hand(self, handed: &mut Handed<'a>) {
        self.into_iter().for_each(|each| each.hand(handed));
    }
}

impl<'a, A: Hands<'a>> Hands<'a> for Vec<A> {
    fn hand(self, handed: &mut Handed<'a>) {
        self.into_iter().for_each(|each| each.hand(handed));
    }
}

impl<'a> Hands<'a> for () {
    fn hand(self, _handed: &mut Handed<'a>) {}
}

macro_rules! tuples {
    () => {};
    ($First:ident $($A:ident)*) => {
        impl<'a, $First: Hands<'a>, $($A: Hands<'a>),*> Hands<'a> for ($First, $($A,)*) {
            fn hand(self, handed: &mut Handed<'a>) {
                #[expect(non_snake_case, reason = "named as the types")]
                let ($First, $($A,)*) = self;
                $First.hand(handed);
                $($A.hand(handed);)*
            }
        }
        tuples!($($A)*);
    };
}
tuples!(A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15);
