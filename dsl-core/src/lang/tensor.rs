//! Tensors: arguments with extents and strides, and tiles of them that are in bounds by
//! construction.

use std::marker::PhantomData;
use std::panic::Location;

use super::context::{self, Context, Handle};
use super::control::IntoIndex;
use super::element::Element;
use super::kernel::KernelParameter;
use super::kernel::sealed::Sealed;
use super::memory::{Source, Target};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile, axis_of};
use crate::ir::{Access, CompareOp, Op, Parameter, Shape, Space, Type, Value, op};

macro_rules! tensors {
    ($($(#[doc = $doc:literal])* $Name:ident $View:ident $Placed:ident $access:ident;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// In the IR it is a pointer followed by `RANK` extents and `RANK` strides (`i64`,
        /// outermost axis first), named `name_extent0 ..` and `name_stride0 ..`.
        pub struct $Name<T: Element, const RANK: usize> {
            base: Handle,
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
                    let mut parameter = Parameter::new(name, Access::$access);
                    parameter.view = RANK as u32;
                    let ty = Type::pointer(T::DTYPE, Space::Global);
                    context.builder.parameter(parameter, ty)
                });
                let scalars = |what: &str| {
                    std::array::from_fn(|axis| {
                        <i64 as KernelParameter>::declare(&format!("{name}_{what}{axis}"))
                    })
                };
                Self {
                    base,
                    extents: scalars("extent"),
                    strides: scalars("stride"),
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
            pub fn at(self, index: impl Coordinates<RANK>) -> $Placed<T> {
                let index = index.coordinates();
                let start = std::array::from_fn(|axis| index[axis] * self.shape[axis]);
                self.place(start)
            }

            /// The tile whose first element has these coordinates.
            #[track_caller]
            pub fn at_offset(self, start: impl Coordinates<RANK>) -> $Placed<T> {
                self.place(start.coordinates())
            }

            #[track_caller]
            fn place(self, start: [Scalar<i64>; RANK]) -> $Placed<T> {
                let tensor = &self.tensor;
                $Placed {
                    place: Place::new(tensor.base, &self.shape, [&start, &tensor.extents, &tensor.strides]),
                    element: PhantomData,
                }
            }
        }

        /// One tile of a tensor: elements outside of the tensor read as +0 and are not written.
        #[derive(Clone, Copy)]
        #[must_use = "a tile of a tensor does nothing until it is loaded or stored"]
        pub struct $Placed<T: Element> {
            place: Place,
            element: PhantomData<T>,
        }

        impl<T: Element> $Placed<T> {
            /// Reads the tile.
            #[track_caller]
            pub fn load(self) -> Tile<T> {
                self.place.load()
            }
        }

        impl<T: Element> Source for $Placed<T> {
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

impl<T: Element> TensorMutTile<T> {
    /// Writes the tile.
    #[track_caller]
    pub fn store(self, value: impl IntoTile<T>) {
        self.place.store(value);
    }
}

impl<T: Element> Target for TensorMutTile<T> {
    type Element = T;
    type Stored = ();
    #[track_caller]
    fn write(self, value: impl IntoTile<T>) {
        self.place.store(value);
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

/// Element offsets of a tile and which of them are inside the tensor.
#[derive(Clone, Copy)]
struct Place {
    base: Handle,
    offsets: Handle,
    inside: Handle,
}

impl Place {
    /// `axes` are the first coordinates, the extents and the strides.
    #[track_caller]
    fn new(base: Handle, shape: &[usize], axes: [&[Scalar<i64>]; 3]) -> Self {
        let made = context::with(Location::caller(), |context| {
            let (offsets, inside) = match context.shape("tile", shape) {
                Some(shape) => place(context, shape, axes),
                None => {
                    let poison = context.builder.poison();
                    (poison, poison)
                }
            };
            [offsets, inside].map(|value| context.handle(value))
        });
        let [offsets, inside] = made.unwrap_or([base; 2]);
        Self {
            base,
            offsets,
            inside,
        }
    }

    #[track_caller]
    fn load<T: Element>(self) -> Tile<T> {
        Tile::from_handle(context::emit(Location::caller(), |context| {
            let [base, offsets, mask] =
                [self.base, self.offsets, self.inside].map(|handle| context.value(handle));
            context.builder.value(Op::Load(op::Load {
                base,
                offsets,
                mask: Some(mask),
                other: None,
            }))
        }))
    }

    #[track_caller]
    fn store<T: Element>(self, value: impl IntoTile<T>) {
        context::with(Location::caller(), |context| {
            let value = value.into_value(context);
            let [base, offsets, mask] =
                [self.base, self.offsets, self.inside].map(|handle| context.value(handle));
            let ty = context.ty(offsets);
            let value = context.broadcast("store", value, ty.shape);
            if ty.is_poison() || context.ty(value).is_poison() {
                return;
            }
            context.builder.emit(
                Op::Store(op::Store {
                    base,
                    offsets,
                    value,
                    mask: Some(mask),
                }),
                &[],
            );
        });
    }
}

fn place(context: &mut Context, shape: Shape, axes: [&[Scalar<i64>]; 3]) -> (Value, Value) {
    let (mut offsets, mut inside) = (None, None);
    for axis in 0..shape.rank() {
        let [start, extent, stride] = axes.map(|values| context.value(values[axis].handle()));
        let (offset, within) = along(context, shape, axis, [start, extent, stride]);
        offsets = Some(match offsets {
            Some(sum) => {
                let (sum, offset) = context.broadcast_pair("tile", sum, offset);
                context.builder.add(sum, offset)
            }
            None => offset,
        });
        inside = Some(match inside {
            Some(all) => {
                let (all, within) = context.broadcast_pair("tile", all, within);
                context.builder.and(all, within)
            }
            None => within,
        });
    }
    match (offsets, inside) {
        (Some(offsets), Some(inside)) => (
            context.broadcast("tile", offsets, shape),
            context.broadcast("tile", inside, shape),
        ),
        (_, _) => {
            context.builder.error("a tile of a tensor needs an axis");
            let poison = context.builder.poison();
            (poison, poison)
        }
    }
}

/// Offsets along one axis and which coordinates exist, with extent 1 along all others.
fn along(
    context: &mut Context,
    shape: Shape,
    axis: usize,
    [start, extent, stride]: [Value; 3],
) -> (Value, Value) {
    let end = shape.extent(axis) as i64;
    let steps = context
        .builder
        .value(Op::Arange(op::Arange { start: 0, end }));
    let (start, steps) = context.broadcast_pair("tile", start, steps);
    let mut index = context.builder.add(start, steps);
    for other in 0..shape.rank() {
        if other != axis {
            let axis = axis_of(other);
            index = context
                .builder
                .value(Op::ExpandDims(op::ExpandDims { x: index, axis }));
        }
    }
    let (index, extent) = context.broadcast_pair("tile", index, extent);
    let below = context.builder.compare(CompareOp::Lt, index, extent);
    let zero = context.builder.constant_like(index, 0.0);
    let above = context.builder.compare(CompareOp::Ge, index, zero);
    let within = context.builder.and(above, below);
    let (index, stride) = context.broadcast_pair("tile", index, stride);
    (context.builder.mul(index, stride), within)
}
