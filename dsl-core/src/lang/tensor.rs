//! Tensors: memory with extents and strides, and tiles of it.
//!
//! Tiles of a tensor that is an argument are in bounds by construction. A kernel makes others of pointers, and parts of
//! tensors: `(ptr + offset).tensor(extents, strides)`, `tensor.part(start, extents)`, `tensor.select(axis, index)`. Their
//! extents and places may be numbers of the device. All accesses to the memory of such a tensor are checked, as those
//! through pointers are.

use std::marker::PhantomData;
use std::panic::Location;

use super::carry::{Carry, Part};
use super::context::{self, Context, Handle};
use super::control::IntoIndex;
use super::element::Element;
use super::memory::{Source, Stored, Target};
use super::parameter::KernelParameter;
use super::parameter::sealed::Sealed;
use super::ptr::{Address, Ptr, PtrMut};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile};
use crate::builder::Builder;
use crate::ir::{Access, BinaryOp, Op, Parameter, Shape, Space, Type, Value, op};

/// The tensors of one axis less.
macro_rules! selections {
    ($Name:ident: $($rank:literal $less:literal),*) => { $(
        impl<T: Element> $Name<T, $rank> {
            /// The tensor without `axis`, at this index along it; empty where the index is not in its extent.
            #[track_caller]
            #[must_use = "a part of a tensor does nothing until its tiles are loaded or stored"]
            pub fn select(&self, axis: usize, index: impl IntoIndex) -> $Name<T, $less> {
                let index = index.into_index();
                let (extent, stride) = (self.extent(axis), self.stride(axis));
                let others = |of: &[Scalar<i64>; $rank]| -> [Scalar<i64>; $less] {
                    std::array::from_fn(|at| of[at + usize::from(at >= axis)])
                };
                let extents = others(&self.extents).map(|other| where_inside(index, extent, other));
                let start = self.start.moved(BinaryOp::Add, index * stride);
                $Name::made(start, [extents, others(&self.strides)])
            }
        }
    )* };
}

macro_rules! tensors {
    ($($(#[doc = $doc:literal])* $Name:ident $View:ident $Placed:ident $access:ident of $Pointer:ident;)*) => { $(
        $(#[doc = $doc])*
        ///
        /// In the IR it is a pointer followed by `RANK` extents and `RANK` strides (`i64`,
        /// outermost axis first), named `name_extent0 ..` and `name_stride0 ..`, of which `tensor` makes a value. A view with an
        /// axis that runs backwards adds `name_start`, where its first element is from the lowest one on.
        pub struct $Name<T: Element, const RANK: usize> {
            /// The tensor in the trace; none where a loop or branch has given it other numbers since.
            tensor: Option<Handle>,
            start: Address,
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

            /// The tensor at `start`.
            #[track_caller]
            fn made(
                start: Address,
                [extents, strides]: [[Scalar<i64>; RANK]; 2],
            ) -> Self {
                let mut made = Self {
                    tensor: None,
                    start,
                    extents,
                    strides,
                    element: PhantomData,
                };
                made.tensor = Some(made.in_trace());
                made
            }

            /// The tensor in the trace.
            #[track_caller]
            fn in_trace(&self) -> Handle {
                let numbers = [self.extents, self.strides];
                self.tensor.unwrap_or_else(|| tensor_of(self.start, numbers))
            }

            /// The part whose first element has the coordinates `start`, with these extents, numbers of the device or
            /// of the host. What would go beyond the tensor is cut off; where `start` is not in the tensor, the part
            /// is empty. Elements outside of it read as +0 and are not written.
            #[track_caller]
            #[must_use = "a part of a tensor does nothing until its tiles are loaded or stored"]
            pub fn part(
                &self,
                start: impl Coordinates<RANK>,
                extents: impl Coordinates<RANK>,
            ) -> Self {
                let (origin, wanted) = (start.coordinates(), extents.coordinates());
                let mut extents = self.extents;
                let mut start = self.start;
                for axis in 0..RANK {
                    let (first, whole) = (origin[axis], self.extents[axis]);
                    let left = smaller(wanted[axis], whole - first);
                    extents[axis] = where_inside(first, whole, left);
                    start = start.moved(BinaryOp::Add, first * self.strides[axis]);
                }
                Self::made(start, [extents, self.strides])
            }

            /// Cuts the tensor into tiles of `shape`; each extent is a power of two.
            #[cfg_attr(not(doctest), doc = include_str!("examples/tile.md"))]
            pub fn tile(&self, shape: [usize; RANK]) -> $View<T, RANK> {
                $View { tensor: *self, shape }
            }
        }

        /// A loop or branch may give another tensor of the same array: where it begins, its extents and its strides
        /// are carried.
        impl<T: Element, const RANK: usize> Carry for $Name<T, RANK> {
            #[track_caller]
            fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
                // Its instruction may stand in a branch, also where the numbers are those of before.
                self.tensor = None;
                visitor(Part::Fixed(self.start.base));
                let location = Location::caller();
                let start = self.start.offset.get_or_insert_with(|| {
                    context::emit(location, |context| context.builder.index(0))
                });
                visitor(Part::Value(start));
                for number in self.extents.iter_mut().chain(&mut self.strides) {
                    visitor(Part::Value(number.handle_mut()));
                }
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
                let offset = context::next_is_chosen()
                    .then(|| <i64 as KernelParameter>::declare(&format!("{name}_start")).handle());
                Self::made(Address { base, offset }, [extents, strides])
            }
        }

        impl<T: Element> $Pointer<T> {
            /// The tensor that begins here, with these extents and strides in elements, outermost axis first: numbers of
            /// the device or of the host. Its tiles are checked as loads and stores through the pointer are.
            ///
            /// ```
            /// use exactile_core::lang::prelude::*;
            ///
            /// /// Rows of one page of a cache.
            /// fn page(cache: Ptr<f32>, pages: Ptr<i64>, rows: Scalar<i64>) -> Tile<f32> {
            ///     let page = load(pages + program_id(0));
            ///     let page = (cache + page * 1024).tensor((rows, 64), [64, 1]);
            ///     load(page.tile([16, 64]).at([0, 0]))
            /// }
            /// ```
            #[track_caller]
            pub fn tensor<const RANK: usize>(
                self,
                extents: impl Coordinates<RANK>,
                strides: impl Coordinates<RANK>,
            ) -> $Name<T, RANK> {
                let scalars = [extents.coordinates(), strides.coordinates()];
                $Name::made(self.address(), scalars)
            }
        }

        selections! { $Name: 2 1, 3 2, 4 3, 5 4 }

        /// A tensor cut into tiles.
        #[derive(Clone, Copy)]
        #[must_use = "choose a tile with `.at(..)` or `.at_offset(..)`"]
        pub struct $View<T: Element, const RANK: usize> {
            tensor: $Name<T, RANK>,
            shape: [usize; RANK],
        }

        impl<T: Element, const RANK: usize> $View<T, RANK> {
            /// The tile with this index along each axis.
            #[cfg_attr(not(doctest), doc = include_str!("examples/at.md"))]
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

            #[track_caller]
            fn place(self, origin: [Scalar<i64>; RANK]) -> $Placed<T, RANK> {
                $Placed {
                    place: Place { tensor: self.tensor.in_trace(), shape: self.shape, origin },
                    element: PhantomData,
                }
            }
        }

        /// One tile of a tensor: elements outside of the tensor read as +0 and are not written.
        #[derive(Clone, Copy)]
        #[must_use = "a tile of a tensor does nothing until it is loaded or stored"]
        pub struct $Placed<T: Element, const RANK: usize> {
            pub(super) place: Place<RANK>,
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
    Tensor TensorTiles TensorTile Read of Ptr;
    /// A buffer that the kernel reads and writes, with extents and strides.
    TensorMut TensorMutTiles TensorMutTile ReadWrite of PtrMut;
}

impl<T: Element, const RANK: usize> TensorTile<T, RANK> {
    /// The tile so many elements further along `axis`.
    #[track_caller]
    pub(super) fn moved(mut self, axis: usize, by: Scalar<i64>) -> Self {
        let origin = &mut self.place.origin[axis];
        *origin += by;
        self
    }
}

impl<T: Element, const RANK: usize> TensorMut<T, RANK> {
    /// The same tensor, to read.
    pub(super) fn to_read(self) -> Tensor<T, RANK> {
        Tensor {
            tensor: self.tensor,
            start: self.start,
            extents: self.extents,
            strides: self.strides,
            element: PhantomData,
        }
    }
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

/// A tensor that begins there, with these extents and strides.
#[track_caller]
fn tensor_of<const RANK: usize>(start: Address, numbers: [[Scalar<i64>; RANK]; 2]) -> Handle {
    context::emit(Location::caller(), |context| {
        let base = context.value(start.base);
        let offset = start.offset.map(|offset| context.value(offset));
        let [extents, strides] = numbers.map(|scalars| {
            let values = scalars.iter();
            values
                .map(|scalar| context.value(scalar.handle()))
                .collect()
        });
        let tensor = op::Tensor {
            base,
            extents,
            strides,
            offset,
        };
        context.builder.value(Op::Tensor(tensor))
    })
}

/// A number where an index is one of an axis, 0 elsewhere.
#[track_caller]
fn where_inside(index: Scalar<i64>, extent: Scalar<i64>, number: Scalar<i64>) -> Scalar<i64> {
    scalar_of(
        [index, extent, number],
        |builder, [index, extent, number]| {
            let zero = builder.index(0);
            let (from, below) = (builder.ge(index, zero), builder.lt(index, extent));
            let inside = builder.and(from, below);
            builder.select(inside, number, zero)
        },
    )
}

/// The smaller number.
#[track_caller]
fn smaller(a: Scalar<i64>, b: Scalar<i64>) -> Scalar<i64> {
    scalar_of([a, b], |builder, [a, b]| builder.minimum(a, b))
}

#[track_caller]
fn scalar_of<const COUNT: usize>(
    scalars: [Scalar<i64>; COUNT],
    make: impl FnOnce(&mut Builder, [Value; COUNT]) -> Value,
) -> Scalar<i64> {
    Scalar::from_handle(context::emit(Location::caller(), |context| {
        let values = scalars.map(|scalar| context.value(scalar.handle()));
        make(&mut context.builder, values)
    }))
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
pub(super) struct Place<const RANK: usize> {
    tensor: Handle,
    shape: [usize; RANK],
    origin: [Scalar<i64>; RANK],
}

impl<const RANK: usize> Place<RANK> {
    pub(super) fn shape(&self) -> [usize; RANK] {
        self.shape
    }

    /// The tensor, the index of the first element and the shape; `None` where there is no such shape.
    pub(super) fn parts(&self, context: &mut Context) -> Option<(Value, Vec<Value>, Shape)> {
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
                cache: None,
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
                cache: None,
            };
            let inst = context.builder.emit(Op::TileStore(store), &[]);
            context.stored(Some(inst))
        });
        stored.unwrap_or_default()
    }
}
