//! Reductions along an axis, which the result no longer has.
//!
//! Every reduction names the balanced binary tree over the axis, adjacent pairs first, the lower
//! index on the left. Integers and extrema give the same bits in any order, so there the lowering
//! may choose.

use std::panic::Location;

use super::bodies::function;
use super::context::{self, Context, Handle};
use super::element::{Element, Int, Numeric};
use super::math::ordered;
use super::tile::{DeviceValue, Scalar, Tile, axis_of, map};
use super::tuples::for_each_tuple;
use crate::ir::{BinaryOp, CompareOp, DType, Op, Order, Region, Type, Value, op};

/// Tiles that a reduction combines together: one tile, or a tuple of tiles of one shape.
pub trait Reducible: Copy {
    /// What the combine takes twice and gives: a scalar for each tile.
    type Element;
    /// The tiles in the trace.
    #[doc(hidden)]
    fn handles(&self) -> Vec<Handle>;
    /// Tiles of the trace.
    #[doc(hidden)]
    fn from_handles(handles: &[Handle]) -> Self;
    /// Scalars of the trace.
    #[doc(hidden)]
    fn elements(handles: &[Handle]) -> Self::Element;
    /// The data type of each tile.
    #[doc(hidden)]
    fn dtypes() -> Vec<DType>;
    /// The scalars that the combine gave.
    #[doc(hidden)]
    fn element_handles(element: Self::Element) -> Vec<Handle>;
}

impl<T: Element> Reducible for Tile<T> {
    type Element = Scalar<T>;
    fn handles(&self) -> Vec<Handle> {
        vec![self.handle()]
    }
    fn from_handles(handles: &[Handle]) -> Self {
        Self::from_handle(handles[0])
    }
    fn elements(handles: &[Handle]) -> Scalar<T> {
        Scalar::from_handle(handles[0])
    }
    fn dtypes() -> Vec<DType> {
        vec![T::DTYPE]
    }
    fn element_handles(element: Scalar<T>) -> Vec<Handle> {
        vec![element.handle()]
    }
}

macro_rules! reducible_tuples {
    ($($Item:ident $index:tt)+) => {
        impl<$($Item: Element),+> Reducible for ($(Tile<$Item>,)+) {
            type Element = ($(Scalar<$Item>,)+);
            fn handles(&self) -> Vec<Handle> {
                vec![$(self.$index.handle()),+]
            }
            fn from_handles(handles: &[Handle]) -> Self {
                ($(Tile::<$Item>::from_handle(handles[$index]),)+)
            }
            fn elements(handles: &[Handle]) -> Self::Element {
                ($(Scalar::<$Item>::from_handle(handles[$index]),)+)
            }
            fn dtypes() -> Vec<DType> {
                vec![$($Item::DTYPE),+]
            }
            fn element_handles(element: Self::Element) -> Vec<Handle> {
                vec![$(element.$index.handle()),+]
            }
        }
    };
}
for_each_tuple!(reducible_tuples, two up to four);

/// Combines along `axis` with a closure over scalars, lower index on the left.
///
/// A tuple of tiles is combined together: `reduce((x, i), 0, |a, b| ..)`.
#[cfg_attr(not(doctest), doc = include_str!("examples/reduce.md"))]
#[track_caller]
pub fn reduce<S: Reducible>(
    source: S,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let location = Location::caller();
    let Some((open, combined)) = traced("reduce", location, source, combine) else {
        return source;
    };
    S::from_handles(&open.close(location, &combined, reduction(axis)))
}

/// Combines along `axis` only the elements where `mask` holds; where it holds for none, the result
/// is zero.
///
/// Each node of the tree knows whether it holds an element, so no identity is needed.
#[cfg_attr(not(doctest), doc = include_str!("examples/reduce_masked.md"))]
#[track_caller]
pub fn reduce_masked<S: Reducible>(
    source: S,
    mask: Tile<bool>,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> S {
    let location = Location::caller();
    let Some(results) = reduce_valid(location, source, mask, axis, combine) else {
        return source;
    };
    let Some((&valid, values)) = results.split_last() else {
        return source;
    };
    let masked = context::with(location, |context| {
        let valid = context.value(valid);
        let masked = values.iter().map(|&value| {
            let value = context.value(value);
            let zero = context.builder.constant_like(value, 0.0);
            let masked = context.builder.select(valid, value, zero);
            context.handle(masked)
        });
        masked.collect::<Vec<_>>()
    });
    S::from_handles(&masked.unwrap_or_default())
}

/// What the elements where `mask` holds combine to along `axis`, and whether it holds for one.
pub(super) fn reduce_valid<S: Reducible>(
    location: &'static Location<'static>,
    source: S,
    mask: Tile<bool>,
    axis: usize,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> Option<Vec<Handle>> {
    let name = "reduce_masked";
    combine_valid(name, location, (source, mask), combine, reduction(axis))
}

/// What an op makes of the elements where a mask holds, and whether it holds for one.
pub(super) fn combine_valid<S: Reducible>(
    what: &str,
    location: &'static Location<'static>,
    (source, mask): (S, Tile<bool>),
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
    make: impl FnOnce(&mut Context, Vec<Value>, Region) -> Op,
) -> Option<Vec<Handle>> {
    let open = open(what, location, &source.handles(), &[mask.handle()])?;
    let chosen = where_valid::<S>(location, &open, combine);
    Some(open.close(location, &chosen, make))
}

/// What a combine gives whose last operands say which of the others are valid: both together where both
/// are, else the one that is. Whether one is comes last.
pub(super) fn where_valid<S: Reducible>(
    location: &'static Location<'static>,
    open: &Open,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> Vec<Handle> {
    let [lower, higher] = open.operands();
    let combined = open.combined::<S>(location, combine);
    let chosen = context::with(location, |context| {
        let [left, right] = [&lower, &higher].map(|it| context.value(it[it.len() - 1]));
        let both = context.builder.and(left, right);
        let any = context.builder.or(left, right);
        let mut chosen = Vec::new();
        for (index, &value) in combined.iter().enumerate() {
            let value = context.value(value);
            let (a, b) = (context.value(lower[index]), context.value(higher[index]));
            let one = context.builder.select(left, a, b);
            let value = context.builder.select(both, value, one);
            chosen.push(context.handle(value));
        }
        chosen.push(context.handle(any));
        chosen
    });
    chosen.unwrap_or(combined)
}

/// The op that reduces along `axis`.
fn reduction(axis: usize) -> impl FnOnce(&mut Context, Vec<Value>, Region) -> Op {
    move |_, sources, combine| {
        Op::Reduce(op::Reduce {
            sources,
            axis: axis_of(axis),
            order: Order::Tree,
            combine,
        })
    }
}

/// A reduction or scan by a closure, up to what the closure gives; `None` when a source is in error.
pub(super) fn traced<S: Reducible>(
    what: &str,
    location: &'static Location<'static>,
    source: S,
    combine: impl FnMut(S::Element, S::Element) -> S::Element,
) -> Option<(Open, Vec<Handle>)> {
    let open = open(what, location, &source.handles(), &[])?;
    let combined = open.combined::<S>(location, combine);
    Some((open, combined))
}

/// A reduction or scan whose combine is being traced.
pub(super) struct Open {
    sources: Vec<Handle>,
    parameters: Vec<Handle>,
    region: Region,
    outer: Region,
}

pub(super) fn open(
    what: &str,
    location: &'static Location<'static>,
    tiles: &[Handle],
    more: &[Handle],
) -> Option<Open> {
    let sources = [tiles, more].concat();
    context::with(location, |context| {
        let values: Vec<Value> = sources.iter().map(|&tile| context.value(tile)).collect();
        let values = common(what, context, &values)?;
        let elements: Vec<Type> = values
            .iter()
            .map(|&value| context.ty(value).with_shape(crate::ir::Shape::SCALAR))
            .collect();
        let sources = values.iter().map(|&value| context.handle(value));
        Some(Open::enter(context, sources.collect(), &elements))
    })
    .flatten()
}

/// All values in the shape of the first; `None` when one is in error.
fn common(what: &str, context: &mut Context, values: &[Value]) -> Option<Vec<Value>> {
    let first = context.ty(*values.first()?).shape;
    let values: Vec<Value> = values
        .iter()
        .map(|&value| context.broadcast(what, value, first))
        .collect();
    let poisoned = values.iter().any(|&value| context.ty(value).is_poison());
    (!poisoned).then_some(values)
}

impl Open {
    /// A combine of elements of these types, for an op on accumulators; `None` where one is in error.
    pub(super) fn of_elements(
        location: &'static Location<'static>,
        accumulators: &[Handle],
        elements: &[Type],
    ) -> Option<Self> {
        context::with(location, |context| {
            let values: Vec<Value> = accumulators.iter().map(|&it| context.value(it)).collect();
            let poisoned = values.iter().any(|&value| context.ty(value).is_poison());
            (!poisoned).then(|| Self::enter(context, accumulators.to_vec(), elements))
        })
        .flatten()
    }

    fn enter(context: &mut Context, sources: Vec<Handle>, elements: &[Type]) -> Self {
        let region = context.builder.new_region(&[elements, elements].concat());
        let parameters = context.builder.parameters(region);
        let outer = context.builder.enter(region);
        Self {
            sources,
            parameters: parameters
                .iter()
                .map(|&value| context.handle(value))
                .collect(),
            region,
            outer,
        }
    }

    /// The lower and the higher operands.
    fn operands(&self) -> [Vec<Handle>; 2] {
        let (lower, higher) = self.parameters.split_at(self.sources.len());
        [lower.to_vec(), higher.to_vec()]
    }

    /// What a closure makes of the operands, of which there may be more than it takes.
    pub(super) fn combined<S: Reducible>(
        &self,
        location: &'static Location<'static>,
        mut combine: impl FnMut(S::Element, S::Element) -> S::Element,
    ) -> Vec<Handle> {
        let [lower, higher] = self.operands();
        function(location, || {
            S::element_handles(combine(S::elements(&lower), S::elements(&higher)))
        })
    }

    /// Ends the combine with what it gives, and makes the op of the sources and the combine.
    pub(super) fn close(
        self,
        location: &'static Location<'static>,
        combined: &[Handle],
        make: impl FnOnce(&mut Context, Vec<Value>, Region) -> Op,
    ) -> Vec<Handle> {
        let results = context::with(location, |context| {
            let values = combined.iter().map(|&value| context.value(value));
            let values: Vec<Value> = values.collect();
            context.builder.emit(Op::Yield(op::Yield { values }), &[]);
            context.builder.enter(self.outer);
            let sources = self.sources.iter().map(|&tile| context.value(tile));
            let sources = sources.collect();
            let op = make(context, sources, self.region);
            let inst = context.builder.emit(op, &[]);
            let results = context.builder.results(inst).to_vec();
            results.iter().map(|&value| context.handle(value)).collect()
        });
        results.unwrap_or(self.sources)
    }
}

impl Context {
    /// A reduction by one operation.
    pub(crate) fn reduce_by(&mut self, op: BinaryOp, x: Value, axis: usize) -> Value {
        if self.ty(x).is_poison() {
            return x;
        }
        let results = self
            .builder
            .reduce(&[x], axis, Order::Tree, |builder, a, b| {
                vec![builder.binary(op, a[0], b[0])]
            });
        results[0]
    }
}

impl<T: Numeric> Tile<T> {
    /// The sum along `axis`. `f16` and `bf16` add in `f32` and round once at the end; a zero float
    /// result is +0.
    #[cfg_attr(not(doctest), doc = include_str!("examples/sum.md"))]
    #[track_caller]
    pub fn sum(self, axis: usize) -> Self {
        map(self, |context, x| {
            let wide = context.cast(x, T::DTYPE.compute());
            let sum = context.reduce_by(BinaryOp::Add, wide, axis);
            let sum = context.builder.positive_zero(sum);
            context.cast(sum, T::DTYPE)
        })
    }

    /// The product along `axis`. `f16` and `bf16` multiply in `f32` and round once at the end.
    #[track_caller]
    pub fn product(self, axis: usize) -> Self {
        map(self, |context, x| {
            let wide = context.cast(x, T::DTYPE.compute());
            let product = context.reduce_by(BinaryOp::Mul, wide, axis);
            context.cast(product, T::DTYPE)
        })
    }

    /// The largest element along `axis`. NaN is ignored; -0 < +0.
    #[cfg_attr(not(doctest), doc = include_str!("examples/max.md"))]
    #[track_caller]
    pub fn max(self, axis: usize) -> Self {
        map(self, |context, x| {
            context.reduce_by(ordered::<T>(true), x, axis)
        })
    }

    /// The smallest element along `axis`. NaN is ignored; -0 < +0.
    #[track_caller]
    pub fn min(self, axis: usize) -> Self {
        map(self, |context, x| {
            context.reduce_by(ordered::<T>(false), x, axis)
        })
    }

    /// The largest element along `axis`, or NaN if one is NaN; -0 < +0.
    #[track_caller]
    pub fn maximum(self, axis: usize) -> Self {
        map(self, |context, x| {
            context.reduce_by(BinaryOp::Maximum, x, axis)
        })
    }

    /// The smallest element along `axis`, or NaN if one is NaN; -0 < +0.
    #[track_caller]
    pub fn minimum(self, axis: usize) -> Self {
        map(self, |context, x| {
            context.reduce_by(BinaryOp::Minimum, x, axis)
        })
    }

    /// The lowest index along `axis` that holds what [`Tile::max`] gives; 0 when all are NaN.
    #[cfg_attr(not(doctest), doc = include_str!("examples/argmax.md"))]
    #[track_caller]
    pub fn argmax(self, axis: usize) -> Tile<i64> {
        self.max_with_index(axis).1
    }

    /// The lowest index along `axis` that holds what [`Tile::min`] gives; 0 when all are NaN.
    #[track_caller]
    pub fn argmin(self, axis: usize) -> Tile<i64> {
        self.min_with_index(axis).1
    }

    /// [`Tile::max`] and [`Tile::argmax`] along `axis` by one reduction.
    #[track_caller]
    pub fn max_with_index(self, axis: usize) -> (Self, Tile<i64>) {
        self.extreme_with_index(axis, "argmax", true)
    }

    /// [`Tile::min`] and [`Tile::argmin`] along `axis` by one reduction.
    #[track_caller]
    pub fn min_with_index(self, axis: usize) -> (Self, Tile<i64>) {
        self.extreme_with_index(axis, "argmin", false)
    }

    #[track_caller]
    fn extreme_with_index(self, axis: usize, name: &str, greater: bool) -> (Self, Tile<i64>) {
        let results = context::with(Location::caller(), |context| {
            let x = context.value(self.handle());
            let results = match context.ty(x).is_poison() {
                true => [x, x],
                false => extreme_index::<T>(context, x, (axis, name), greater),
            };
            results.map(|value| context.handle(value))
        });
        let [extreme, index] = results.unwrap_or([self.handle(); 2]);
        (Self::from_handle(extreme), Tile::from_handle(index))
    }
}

/// Two operands differ in the order exactly when the bits of their extremum differ from those of
/// the lower one: so -0 and +0 differ, and NaN yields to every number.
fn extreme_index<T: Numeric>(
    context: &mut Context,
    x: Value,
    (axis, name): (usize, &str),
    greater: bool,
) -> [Value; 2] {
    let shape = context.ty(x).shape;
    if axis >= shape.rank() {
        let ty = context.ty(x);
        context
            .builder
            .error(format!("`{name}`: axis {axis} is out of range for `{ty}`"));
        return [context.builder.poison(); 2];
    }
    let index = context.builder.index_along(axis, shape);
    let bits = match T::DTYPE.bits() {
        8 => DType::I8,
        16 => DType::I16,
        32 => DType::I32,
        _ => DType::I64,
    };
    let op = ordered::<T>(greater);
    let results = context
        .builder
        .reduce(&[x, index], axis, Order::Tree, |builder, a, b| {
            let extreme = builder.binary(op, a[0], b[0]);
            let (mut left, mut right) = (a[0], extreme);
            if T::DTYPE.is_float() {
                left = builder.bitcast(left, bits);
                right = builder.bitcast(right, bits);
            }
            let higher = builder.compare(CompareOp::Ne, left, right);
            vec![extreme, builder.select(higher, b[1], a[1])]
        });
    [results[0], results[1]]
}

impl<T: Int> Tile<T> {
    /// The bits that all elements along `axis` have.
    #[track_caller]
    pub fn and(self, axis: usize) -> Self {
        map(self, |context, x| context.reduce_by(BinaryOp::And, x, axis))
    }

    /// The bits that any element along `axis` has.
    #[track_caller]
    pub fn or(self, axis: usize) -> Self {
        map(self, |context, x| context.reduce_by(BinaryOp::Or, x, axis))
    }

    /// The exclusive or along `axis`.
    #[track_caller]
    pub fn xor(self, axis: usize) -> Self {
        map(self, |context, x| context.reduce_by(BinaryOp::Xor, x, axis))
    }
}

impl Tile<bool> {
    /// Whether any element along `axis` holds.
    #[track_caller]
    pub fn any(self, axis: usize) -> Self {
        map(self, |context, x| context.reduce_by(BinaryOp::Or, x, axis))
    }

    /// Whether all elements along `axis` hold.
    #[track_caller]
    pub fn all(self, axis: usize) -> Self {
        map(self, |context, x| context.reduce_by(BinaryOp::And, x, axis))
    }
}
