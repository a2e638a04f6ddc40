//! What functions of elements take and give: tiles and scalars, one or several of any types.

use std::panic::Location;

use super::context::{self, Context, Handle};
use super::tile::{DeviceValue, Scalar, Tile};
use super::tuples::for_each_tuple;
use crate::ir::{DType, Number, Shape, Value};

/// Tiles and scalars that a function of elements takes: one, or a tuple of up to eight. Their shapes broadcast as
/// those of arithmetic do.
pub trait Operands: Copy {
    /// A tile for each.
    type Tiles;
    /// A scalar for each.
    type Scalars;
    /// The values in the trace.
    #[doc(hidden)]
    fn handles(&self) -> Vec<Handle>;
    /// Tiles of the trace.
    #[doc(hidden)]
    fn tiles(handles: &[Handle]) -> Self::Tiles;
    /// Scalars of the trace.
    #[doc(hidden)]
    fn scalars(handles: &[Handle]) -> Self::Scalars;
}

/// What a function of elements gives: a tile or a scalar, or a tuple of up to eight.
pub trait Results {
    /// A tile for each.
    type Tiles;
    /// The values in the trace.
    #[doc(hidden)]
    fn handles(&self) -> Vec<Handle>;
    /// Tiles of the trace.
    #[doc(hidden)]
    fn tiles(handles: &[Handle]) -> Self::Tiles;
    /// The data type of each.
    #[doc(hidden)]
    fn dtypes() -> Vec<DType>;
}

impl<V: DeviceValue> Operands for V {
    type Tiles = Tile<V::Element>;
    type Scalars = Scalar<V::Element>;
    fn handles(&self) -> Vec<Handle> {
        vec![self.handle()]
    }
    fn tiles(handles: &[Handle]) -> Self::Tiles {
        Tile::from_handle(handles[0])
    }
    fn scalars(handles: &[Handle]) -> Self::Scalars {
        Scalar::from_handle(handles[0])
    }
}

impl<V: DeviceValue> Results for V {
    type Tiles = Tile<V::Element>;
    fn handles(&self) -> Vec<Handle> {
        vec![self.handle()]
    }
    fn tiles(handles: &[Handle]) -> Self::Tiles {
        Tile::from_handle(handles[0])
    }
    fn dtypes() -> Vec<DType> {
        vec![V::Element::DTYPE]
    }
}

macro_rules! tuples {
    ($($Item:ident $index:tt)+) => {
        impl<$($Item: DeviceValue),+> Operands for ($($Item,)+) {
            type Tiles = ($(Tile<$Item::Element>,)+);
            type Scalars = ($(Scalar<$Item::Element>,)+);
            fn handles(&self) -> Vec<Handle> {
                vec![$(self.$index.handle()),+]
            }
            fn tiles(handles: &[Handle]) -> Self::Tiles {
                ($(Tile::<$Item::Element>::from_handle(handles[$index]),)+)
            }
            fn scalars(handles: &[Handle]) -> Self::Scalars {
                ($(Scalar::<$Item::Element>::from_handle(handles[$index]),)+)
            }
        }
        impl<$($Item: DeviceValue),+> Results for ($($Item,)+) {
            type Tiles = ($(Tile<$Item::Element>,)+);
            fn handles(&self) -> Vec<Handle> {
                vec![$(self.$index.handle()),+]
            }
            fn tiles(handles: &[Handle]) -> Self::Tiles {
                ($(Tile::<$Item::Element>::from_handle(handles[$index]),)+)
            }
            fn dtypes() -> Vec<DType> {
                vec![$($Item::Element::DTYPE),+]
            }
        }
    };
}
for_each_tuple!(tuples, up to eight);

/// All values in the shape that they broadcast to; `None` where one is in error.
pub(super) fn in_common_shape(
    what: &str,
    context: &mut Context,
    handles: &[Handle],
) -> Option<(Vec<Value>, Shape)> {
    let values: Vec<Value> = handles.iter().map(|&it| context.value(it)).collect();
    let mut widest = *values.first()?;
    for &value in &values {
        widest = context.broadcast_pair(what, widest, value).0;
    }
    let shape = context.ty(widest).shape;
    let values: Vec<Value> = values
        .iter()
        .map(|&value| context.broadcast(what, value, shape))
        .collect();
    let poisoned = context.ty(widest).is_poison();
    let poisoned = poisoned || values.iter().any(|&value| context.ty(value).is_poison());
    (!poisoned).then_some((values, shape))
}

/// Results in error.
pub(super) fn failed<R: Results>(location: &'static Location<'static>) -> R::Tiles {
    let poison = || context::emit(location, |context| context.builder.poison());
    let handles: Vec<Handle> = R::dtypes().iter().map(|_| poison()).collect();
    R::tiles(&handles)
}
