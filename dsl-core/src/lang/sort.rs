//! Sorting along an axis, whole or of the first elements only.
//!
//! One total order: numbers by value, -0 < +0, every NaN after all numbers (and given as the
//! canonical one), false before true. *Descending* is that order turned round, so NaN comes first.
//! Equal elements keep their order, in either direction.

use std::panic::Location;

use super::context::{self, Context};
use super::element::Element;
use super::reduce::Reducible;
use super::tile::{DeviceValue, Tile, axis_of, map};
use crate::ir::{Op, SortOrder, Value, op};

/// What to sort by and how much to keep.
#[derive(Clone, Copy)]
struct Request {
    name: &'static str,
    axis: usize,
    direction: SortOrder,
    /// `None`: all.
    count: Option<usize>,
}

impl Context {
    /// Sorts `sources` by the first `keys` of them; `None` after an error.
    fn sorted(&mut self, sources: Vec<Value>, keys: i64, request: Request) -> Option<Vec<Value>> {
        let ty = self.ty(sources[0]);
        if sources.iter().any(|&source| self.ty(source).is_poison()) {
            return None;
        }
        let Request { name, axis, .. } = request;
        if axis >= ty.shape.rank() {
            let message = format!("`{name}`: axis {axis} is out of range for `{ty}`");
            self.builder.error(message);
            return None;
        }
        let extent = ty.shape.extent(axis);
        let count = request.count.unwrap_or(extent);
        if !count.is_power_of_two() || count > extent {
            self.builder.error(format!(
                "`{name}` of {count} elements, expected a power of two up to {extent}, the extent \
                 of axis {axis} of `{ty}`"
            ));
            return None;
        }
        let op = Op::Sort(op::Sort {
            sources,
            keys,
            axis: axis_of(axis),
            direction: request.direction,
            count: count as i64,
        });
        let inst = self.builder.emit(op, &[]);
        Some(self.builder.results(inst).to_vec())
    }

    fn sorted_tile(&mut self, x: Value, request: Request) -> Value {
        let sorted = self.sorted(vec![x], 1, request);
        sorted.map_or_else(|| self.builder.poison(), |sorted| sorted[0])
    }

    /// The sorted elements and where each of them was: the index is the last key.
    fn sorted_with_index(&mut self, x: Value, request: Request) -> [Value; 2] {
        let ty = self.ty(x);
        if ty.is_poison() || request.axis >= ty.shape.rank() {
            return [self.sorted_tile(x, request); 2];
        }
        let own = self.builder.narrow_index_along(request.axis, ty.shape);
        let turned = |context: &mut Self, index: Value| match request.direction {
            SortOrder::Ascending => index,
            SortOrder::Descending => context.builder.not(index),
        };
        let index = turned(self, own);
        match self.sorted(vec![x, index], 2, request) {
            Some(sorted) => {
                let index = turned(self, sorted[1]);
                [sorted[0], self.cast(index, crate::ir::DType::I64)]
            }
            None => [self.builder.poison(); 2],
        }
    }
}

#[track_caller]
fn with_index<T: Element>(x: Tile<T>, request: Request) -> (Tile<T>, Tile<i64>) {
    let location = Location::caller();
    let pair = context::with(location, |context| {
        let x = context.value(x.handle());
        let pair = context.sorted_with_index(x, request);
        pair.map(|value| context.handle(value))
    });
    match pair {
        Some([value, index]) => (Tile::from_handle(value), Tile::from_handle(index)),
        None => (x, Tile::from_handle(x.handle())),
    }
}

/// The methods that sort everything, and those that take the first elements.
macro_rules! sorts {
    ($($(#[$doc:meta])* $name:ident $with:ident $arg:ident $direction:ident;)*) => { $(
        impl<T: Element> Tile<T> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, axis: usize) -> Self {
                let request = Request {
                    name: stringify!($name),
                    axis,
                    direction: SortOrder::$direction,
                    count: None,
                };
                map(self, |context, x| context.sorted_tile(x, request))
            }

            #[doc = concat!("The indices along `axis` that [`Tile::", stringify!($name), "`] takes \
                elements from; of equal elements the lowest index first.")]
            #[track_caller]
            pub fn $arg(self, axis: usize) -> Tile<i64> {
                let request = Request {
                    name: stringify!($arg),
                    axis,
                    direction: SortOrder::$direction,
                    count: None,
                };
                map(self, |context, x| context.sorted_with_index(x, request)[1])
            }

            #[doc = concat!("As [`Tile::", stringify!($name), "`], with tiles of the same shape \
                that move along; elements that are equal here keep their order.")]
            #[track_caller]
            pub fn $with<P: Reducible>(self, others: P, axis: usize) -> (Self, P) {
                let request = Request {
                    name: stringify!($with),
                    axis,
                    direction: SortOrder::$direction,
                    count: None,
                };
                sort_along(self, others, request)
            }
        }
    )* };
}

sorts! {
    /// The elements in order along `axis`: NaN last, -0 before +0.
    #[cfg_attr(not(doctest), doc = include_str!("examples/sort.md"))]
    sort sort_with argsort Ascending;
    /// The elements in falling order along `axis`: NaN first, +0 before -0.
    sort_descending sort_descending_with argsort_descending Descending;
}

macro_rules! firsts {
    ($($(#[$doc:meta])* $name:ident $with:ident $arg:ident $direction:ident;)*) => { $(
        impl<T: Element> Tile<T> {
            $(#[$doc])*
            #[track_caller]
            pub fn $name(self, k: usize, axis: usize) -> Self {
                let request = Request {
                    name: stringify!($name),
                    axis,
                    direction: SortOrder::$direction,
                    count: Some(k),
                };
                map(self, |context, x| context.sorted_tile(x, request))
            }

            #[doc = concat!("The indices along `axis` of the elements that [`Tile::",
                stringify!($name), "`] gives; of equal elements the lowest index first.")]
            #[track_caller]
            pub fn $arg(self, k: usize, axis: usize) -> Tile<i64> {
                self.$with(k, axis).1
            }

            #[doc = concat!("What [`Tile::", stringify!($name), "`] gives, with the index along \
                `axis` of each element; of equal elements the lowest index first.")]
            #[track_caller]
            pub fn $with(self, k: usize, axis: usize) -> (Self, Tile<i64>) {
                let request = Request {
                    name: stringify!($name),
                    axis,
                    direction: SortOrder::$direction,
                    count: Some(k),
                };
                with_index(self, request)
            }
        }
    )* };
}

firsts! {
    /// The `k` greatest elements along `axis`, the greatest first; NaN counts as greater than all
    /// numbers. `k` is a power of two, at most the extent.
    #[cfg_attr(not(doctest), doc = include_str!("examples/topk.md"))]
    topk topk_with_indices argtopk Descending;
    /// The `k` least elements along `axis`, the least first; NaN counts as greater than all
    /// numbers. `k` is a power of two, at most the extent.
    bottomk bottomk_with_indices argbottomk Ascending;
}

#[track_caller]
fn sort_along<T: Element, P: Reducible>(key: Tile<T>, others: P, request: Request) -> (Tile<T>, P) {
    let location = Location::caller();
    let sorted = context::with(location, |context| {
        let key = context.value(key.handle());
        let shape = context.ty(key).shape;
        let mut sources = vec![key];
        for handle in others.handles() {
            let value = context.value(handle);
            sources.push(context.broadcast(request.name, value, shape));
        }
        let sorted = context.sorted(sources, 1, request)?;
        let handles = sorted.into_iter().map(|value| context.handle(value));
        Some(handles.collect::<Vec<_>>())
    });
    match sorted.flatten() {
        Some(sorted) => (Tile::from_handle(sorted[0]), P::from_handles(&sorted[1..])),
        None => (key, others),
    }
}
