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
/// # use exactile::{ArrayList, ReplayArrays};
/// struct Layer {
///     weights: Buffer<f32>,
///     activations: Buffer<f32>,
/// }
///
/// impl<'a> ReplayArrays<'a> for &'a mut Layer {
///     fn add_to(self, list: &mut ArrayList<'a>) {
///         (&self.weights, &mut self.activations).add_to(list);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array that a replay can be handed",
    note = "pass `&buffer` for what the graph reads, `&mut buffer` for what it writes, and a tuple for several"
)]
pub trait ReplayArrays<'a> {
    /// Adds its arrays to the list.
    fn add_to(self, list: &mut ArrayList<'a>);
}

/// The arrays that a replay is handed; [`ReplayArrays`] adds to it.
#[derive(Default)]
pub struct ArrayList<'a>(pub(crate) SmallVec<[Bound<'a>; FEW]>);

impl<'a, T: Number> ReplayArrays<'a> for &'a Buffer<T> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(Bound::Read(self.part()));
    }
}

impl<'a, T: Number> ReplayArrays<'a> for &'a mut Buffer<T> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(Bound::ReadWrite(self.part_mut()));
    }
}

impl<'a, T> ReplayArrays<'a> for BufferSlice<'a, T> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(Bound::Read(self.part));
    }
}

impl<'a, T> ReplayArrays<'a> for BufferSliceMut<'a, T> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(Bound::ReadWrite(self.part));
    }
}

impl<'a, T: Number, const RANK: usize> ReplayArrays<'a> for TensorView<'a, T, RANK> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(self.bound().0);
    }
}

impl<'a, T: Number, const RANK: usize> ReplayArrays<'a> for TensorViewMut<'a, T, RANK> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(self.bound().0);
    }
}

/// Memory of the program itself, for replays on the host.
impl<'a, T: Element + Number + IntoBytes + Immutable> ReplayArrays<'a> for &'a [T] {
    fn add_to(self, list: &mut ArrayList<'a>) {
        list.0.push(Bound::Read(Part::Slice(self.as_bytes())));
    }
}

/// Memory of the program itself, for replays on the host.
impl<'a, T: Element + Number + IntoBytes + FromBytes> ReplayArrays<'a> for &'a mut [T] {
    fn add_to(self, list: &mut ArrayList<'a>) {
        let part = PartMut::Slice(self.as_mut_bytes());
        list.0.push(Bound::ReadWrite(part));
    }
}

impl<'a, A: ReplayArrays<'a>, const N: usize> ReplayArrays<'a> for [A; N] {
    fn add_to(self, list: &mut ArrayList<'a>) {
        self.into_iter().for_each(|each| each.add_to(list));
    }
}

impl<'a, A: ReplayArrays<'a>> ReplayArrays<'a> for Vec<A> {
    fn add_to(self, list: &mut ArrayList<'a>) {
        self.into_iter().for_each(|each| each.add_to(list));
    }
}

impl<'a> ReplayArrays<'a> for () {
    fn add_to(self, _list: &mut ArrayList<'a>) {}
}

macro_rules! tuples {
    () => {};
    ($First:ident $($A:ident)*) => {
        impl<'a, $First: ReplayArrays<'a>, $($A: ReplayArrays<'a>),*> ReplayArrays<'a> for ($First, $($A,)*) {
            fn add_to(self, list: &mut ArrayList<'a>) {
                #[expect(non_snake_case, reason = "named as the types")]
                let ($First, $($A,)*) = self;
                $First.add_to(list);
                $($A.add_to(list);)*
            }
        }
        tuples!($($A)*);
    };
}
tuples!(A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15);
