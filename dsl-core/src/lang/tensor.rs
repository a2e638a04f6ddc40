//! Tensors: arguments with extents and strides, and tiles of them that are in bounds by
//! construction.

use std::marker::PhantomData;
use std::panic::Location;

use super::context::{self, Context, Handle};
use super::control::IntoIndex;
use super::element::Element;
use super::memory::{Source, Stored, Target};
use super::parameter::KernelParameter;
use super::parameter::sealed::Sealed;
use super::tile::{DeviceValue, IntoTile, Scalar, Tile};
use crate::ir::{Access, Op, Parameter, Shape, Space, Type, Value, op};

macro_rules! tensors {
    ($($(#[doc = $doc:literal])* $Name:ident $View:ident $Placed:ident $access:ident;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// In the IR it is a pointer followed by `RANK` extents and `RANK` strides (`i64`,
        /// outermost axis first), named `name_extent0 ..` and `name_stride0 ..`, of which `tensor` makes a value.
        pub struct $Name<T: Element, const RANK: usize> {
            tensor: Handle,
            extents: [Scalar<i64>; RANK],
            strides: [Scalar<i64>; RANK],
            element: PhantomData<T>,
        }

        impl<T: Element, const RANK: usize> Clone for $Name<T, RANK> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T: Element, const RANK: usize> Copy for $Name<T, RANK> {}

        impl<T: Element, const RANK: usize> $Name<T, RANK> {
            /// The extent of `axis`.
            #[track_caller]
            pub fn extent(&self, axis: usize) -> Scalar<i64> {
                pick(&self.extents, axis)
            }

            /// How many elements apart neighbours along `axis` are.
            #[track_caller]
            pub fn stride(&self, axis: usize) -> Scalar<i64> {
                pick(&self.strides, axis)
            }

            /// Cuts the tensor into tiles of `shape`; each extent is a power of two.
            pub fn tile(&self, shape: [usize; RANK]) -> $View<T, RANK> {
                $View { tensor: *self, shape }
            }
        }

        impl<T: Element, const RANK: usize> Sealed for $Name<T, RANK> {}
        impl<T: Element, const RANK: usize> KernelParameter for $Name<T, RANK> {
            type Handle = Self;
            fn declare(name: &str) -> Self {
                let location = Location::caller();
                let base = context::emit(location, |context| {
                    let parameter = Parameter::new(name, Access::$access);
                    let ty = Type::pointer(T::DTYPE, Space::Global);
                    context.builder.parameter(parameter, ty)
                });
                let scalars = |what: &str| -> [Scalar<i64>; RANK] {
                    std::array::from_fn(|axis| {
                        <i64 as KernelParameter>::declare(&format!("{name}_{what}{axis}"))
                    })
                };
                let (extents, strides) = (scalars("extent"), scalars("stride"));
                let tensor = context::emit(location, |context| {
                    let base = context.value(base);
                    let [extents, strides] = [extents, strides].map(|scalars| {
                        let values = scalars.iter();
                        values.map(|scalar| context.value(scalar.handle())).collect()
                    });
                    let tensor = op::Tensor { base, extents, strides };
                    context.builder.value(Op::Tensor(tensor))
                });
                Self {
                    tensor,
                    extents,
                    strides,
                    element: PhantomData,
                }
            }
        }

        /// A tensor cut into tiles.
        #[derive(Clone, Copy)]
        #[must_use = "choose a tile with `.at(..)` or `.at_offset(..)`"]
        pub struct $View<T: Element, const RANK: usize> {
            tensor: $Name<T, RANK>,
            shape: [usize; RANK],
        }

        impl<T: Element, const RANK: usize> $View<T, RANK> {
            /// The tile with this index along each axis.
            #[track_caller]
            pub fn at(self, index: impl Coordinates<RANK>) -> $Placed<T, RANK> {
                let index = index.coordinates();
                let start = std::array::from_fn(|axis| index[axis] * self.shape[axis]);
                self.place(start)
            }

            /// The tile whose first element has these coordinates.
            #[track_caller]
            pub fn at_offset(self, start: impl Coordinates<RANK>) -> $Placed<T, RANK> {
                self.place(start.coordinates())
            }

            fn place(self, origin: [Scalar<i64>; RANK]) -> $Placed<T, RANK> {
                $Placed {
                    place: Place { tensor: self.tensor.tensor, shape: self.shape, origin },
                    element: PhantomData,
                }
            }
        }

        /// One tile of a tensor: elements outside of the tensor read as +0 and are not written.
        #[derive(Clone, Copy)]
        #[must_use = "a tile of a tensor does nothing until it is loaded or stored"]
        pub struct $Placed<T: Element, const RANK: usize> {
            place: Place<RANK>,
            element: PhantomData<T>,
        }

        impl<T: Element, const RANK: usize> $Placed<T, RANK> {
            /// Reads the tile.
            #[track_caller]
            pub fn load(self) -> Tile<T> {
                self.place.load()
            }
        }

        impl<T: Element, const RANK: usize> Source for $Placed<T, RANK> {
            type Output = Tile<T>;
            #[track_caller]
            fn read(self) -> Tile<T> {
                self.place.load()
            }
        }
    )* };
}

tensors! {
    /// A buffer that the kernel reads, with extents and strides.
    Tensor TensorTiles TensorTile Read;
    /// A buffer that the kernel reads and writes, with extents and strides.
    TensorMut TensorMutTiles TensorMutTile ReadWrite;
}

impl<T: Element, const RANK: usize> TensorMutTile<T, RANK> {
    /// Writes the tile; `.mask(condition)` behind it writes only where the condition holds.
    #[track_caller]
    pub fn store(self, value: impl IntoTile<T>) -> Stored {
        self.place.store(value)
    }
}

impl<T: Element, const RANK: usize> Target for TensorMutTile<T, RANK> {
    type Element = T;
    type Stored = Stored;
    #[track_caller]
    fn write(self, value: impl IntoTile<T>) -> Stored {
        self.place.store(value)
    }
}

/// Coordinates in a tensor: an array of indices of one type, or a tuple of any.
pub trait Coordinates<const RANK: usize> {
    /// The coordinates.
    fn coordinates(self) -> [Scalar<i64>; RANK];
}

impl<I: IntoIndex, const RANK: usize> Coordinates<RANK> for [I; RANK] {
    #[track_caller]
    fn coordinates(self) -> [Scalar<i64>; RANK] {
        self.map(IntoIndex::into_index)
    }
}

macro_rules! tuple_coordinates {
    ($($rank:literal: $($Item:ident $index:tt),+;)*) => { $(
        impl<$($Item: IntoIndex),+> Coordinates<$rank> for ($($Item,)+) {
            #[track_caller]
            fn coordinates(self) -> [Scalar<i64>; $rank] {
                [$(self.$index.into_index()),+]
            }
        }
    )* };
}
tuple_coordinates! {
    1: A 0;
    2: A 0, B 1;
    3: A 0, B 1, C 2;
    4: A 0, B 1, C 2, D 3;
    5: A 0, B 1, C 2, D 3, E 4;
}

#[track_caller]
fn pick<const RANK: usize>(of: &[Scalar<i64>; RANK], axis: usize) -> Scalar<i64> {
    if let Some(&found) = of.get(axis) {
        return found;
    }
    Scalar::from_handle(context::emit(Location::caller(), |context| {
        context.builder.error(format!(
            "axis {axis} is out of range for a tensor of rank {RANK}"
        ));
        context.builder.poison()
    }))
}

/// A tile of a tensor in the trace.
#[derive(Clone, Copy)]
struct Place<const RANK: usize> {
    tensor: Handle,
    shape: [usize; RANK],
    origin: [Scalar<i64>; RANK],
}

impl<const RANK: usize> Place<RANK> {
    /// The tensor, the index of the first element and the shape; `None` where there is no such shape.
    fn parts(&self, context: &mut Context) -> Option<(Value, Vec<Value>, Shape)> {
        let shape = context.shape("tile", &self.shape)?;
        let tensor = context.value(self.tensor);
        let origin = self.origin.iter();
        let origin = origin.map(|index| context.value(index.handle())).collect();
        Some((tensor, origin, shape))
    }

    #[track_caller]
    fn load<T: Element>(self) -> Tile<T> {
        Tile::from_handle(context::emit(Location::caller(), |context| {
            let Some((tensor, origin, shape)) = self.parts(context) else {
                return context.builder.poison();
            };
            let load = Op::TileLoad(op::TileLoad {
                tensor,
                origin,
                mask: None,
                other: None,
            });
            context.builder.declared(load, Type::tile(T::DTYPE, shape))
        }))
    }

    #[track_caller]
    fn store<T: Element>(self, value: impl IntoTile<T>) -> Stored {
        let stored = context::with(Location::caller(), |context| {
            let value = value.into_value(context);
            let Some((tensor, origin, shape)) = self.parts(context) else {
                return context.stored(None);
            };
            let value = context.broadcast("store", value, shape);
            if context.ty(value).is_poison() {
                return context.stored(None);
            }
            let store = op::TileStore {
                tensor,
                origin,
                value,
                mask: None,
            };
            let inst = context.builder.emit(Op::TileStore(store), &[]);
            context.stored(Some(inst))
        });
        stored.unwrap_or_default()
    }
}
