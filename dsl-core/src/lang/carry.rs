//! What loops and branches carry: handles, and the host values that must not change in them.

use std::any::type_name;
use std::marker::PhantomData;

use super::context::{self, Handle};
use super::element::Element;
use super::exit::Exit;
use super::outcome;
use super::ptr::{Ptr, PtrMut, PtrMutTile, PtrTile};
use super::tile::{DeviceValue, Scalar, Tile};
use super::tuples::for_each_tuple;

/// A part of a carried binding.
pub enum Part<'a> {
    /// A value that may differ after an iteration.
    Value(&'a mut Handle),
    /// A value that must stay: the argument that a pointer or a tensor points into.
    Fixed(Handle),
    /// Whether a statement has left something: the loop that carries it then ends.
    Exit(&'a mut Exit),
}

/// A binding that loops and branches carry: handles, and arrays, tuples, vectors and options of
/// them. A structure of handles derives it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be carried through a loop or branch",
    note = "a structure of handles derives `Carry`: `#[derive(Clone, Copy, Carry)]`",
    note = "a number of the host stays outside of what is carried: a traced body would change it once"
)]
pub trait Carry {
    /// Calls `visitor` with each part, always the same number in the same order.
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>));

    /// One whose parts no statement has set yet; `None` where it points into an argument or has any number of parts, so that
    /// it cannot leave a loop by `break` or `return`.
    #[doc(hidden)]
    #[track_caller]
    fn unset() -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

impl<T: Element> Carry for Tile<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Value(self.handle_mut()));
    }

    fn unset() -> Option<Self> {
        Some(Self::from_handle(outcome::unset()))
    }
}

impl<T: Element> Carry for Scalar<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Value(self.handle_mut()));
    }

    fn unset() -> Option<Self> {
        Some(Self::from_handle(outcome::unset()))
    }
}

macro_rules! carried_pointers {
    ($($Pointer:ident)*) => { $(
        impl<T: Element> Carry for $Pointer<T> {
            #[track_caller]
            fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
                let location = std::panic::Location::caller();
                let address = self.address_mut();
                visitor(Part::Fixed(address.base));
                visitor(Part::Value(address.offset.get_or_insert_with(|| {
                    context::emit(location, |context| context.builder.index(0))
                })));
            }
        }
    )* };
}
carried_pointers!(Ptr PtrMut PtrTile PtrMutTile);

impl<C: Carry, const N: usize> Carry for [C; N] {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.iter_mut().for_each(|item| item.visit(visitor));
    }

    fn unset() -> Option<Self> {
        let items: Option<Vec<C>> = (0..N).map(|_| C::unset()).collect();
        items?.try_into().ok()
    }
}

impl<C: Carry> Carry for Vec<C> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.iter_mut().for_each(|item| item.visit(visitor));
    }
}

impl<C: Carry> Carry for Option<C> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.iter_mut().for_each(|item| item.visit(visitor));
    }
}

macro_rules! carried_tuples {
    ($($Item:ident $index:tt)+) => {
        impl<$($Item: Carry),+> Carry for ($($Item,)+) {
            fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
                $(self.$index.visit(visitor);)+
            }

            fn unset() -> Option<Self> {
                Some(($($Item::unset()?,)+))
            }
        }
    };
}
for_each_tuple!(carried_tuples, up to twelve);

/// A binding that a loop or branch mentions.
pub enum Slot<'a> {
    /// Carried as values of the trace.
    Carried {
        /// The name in the source.
        name: &'static str,
        /// The binding.
        value: &'a mut (dyn Carry + 'a),
    },
    /// A host value, which a traced body may read but not change.
    Host {
        /// The name in the source.
        name: &'static str,
        /// Whether it differs from what it was before.
        changed: bool,
    },
    /// Something else, which a traced body may not hold since it could hide handles.
    Opaque {
        /// The name in the source.
        name: &'static str,
        /// Its type.
        type_name: &'static str,
    },
}

/// The type of a binding, from which autoref picks [`Carried`], [`Host`] or [`Opaque`].
pub struct Kind<V: ?Sized>(PhantomData<fn(&V)>);

impl<V: ?Sized> Kind<V> {
    /// The kind of a binding.
    pub const fn of(_: &V) -> Self {
        Self(PhantomData)
    }
}

impl<V> Kind<V> {
    /// The kind of the value of an `if`.
    pub const fn of_branches(_: &super::control::Branches<V>) -> Self {
        Self(PhantomData)
    }
}

/// Marks bindings that implement [`Carry`].
pub struct Carried;
/// Marks host values, which can be compared. Handles compare with nothing, so none hides in them.
pub struct Host;
/// Marks everything else.
pub struct Opaque;

/// First choice: [`Carry`].
pub trait CarriedKind {
    /// The mark.
    fn kind(&self) -> Carried;
}
impl<V: Carry> CarriedKind for &&Kind<V> {
    fn kind(&self) -> Carried {
        Carried
    }
}

/// Second choice: values that can be compared and cloned.
pub trait HostKind {
    /// The mark.
    fn kind(&self) -> Host;
}
impl<V: PartialEq + Clone> HostKind for &Kind<V> {
    fn kind(&self) -> Host {
        Host
    }
}

/// Last choice: anything.
pub trait OpaqueKind {
    /// The mark.
    fn kind(&self) -> Opaque;
}
impl<V: ?Sized> OpaqueKind for Kind<V> {
    fn kind(&self) -> Opaque {
        Opaque
    }
}

impl Carried {
    /// Nothing to remember.
    pub fn save<V>(&self, _: &V) {}

    /// The binding as a slot.
    pub fn slot<'a, V: Carry + 'a>(
        &self,
        name: &'static str,
        value: &'a mut V,
        (): &(),
    ) -> Slot<'a> {
        Slot::Carried { name, value }
    }
}

impl Host {
    /// The value before.
    pub fn save<V: Clone>(&self, value: &V) -> V {
        value.clone()
    }

    /// Whether the value differs from what it was.
    pub fn slot<'a, V: PartialEq>(&self, name: &'static str, value: &mut V, saved: &V) -> Slot<'a> {
        Slot::Host {
            name,
            changed: *value != *saved,
        }
    }
}

impl Opaque {
    /// Nothing to remember.
    pub fn save<V: ?Sized>(&self, _: &V) {}

    /// Only its type is known.
    pub fn slot<'a, V: ?Sized>(&self, name: &'static str, _: &mut V, (): &()) -> Slot<'a> {
        Slot::Opaque {
            name,
            type_name: type_name::<V>(),
        }
    }
}
