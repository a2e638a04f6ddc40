//! Functions of two and of three values, element by element, that are made of several instructions.

use std::panic::Location;

use super::context;
use super::operators::Elementwise;
use super::tile::DeviceValue;
use crate::builder::Builder;
use crate::ir::Value;

/// A function of two values in their common type and shape.
#[track_caller]
pub(super) fn pair<A: Elementwise<B>, B>(
    name: &str,
    define: impl FnOnce(&mut Builder, Value, Value) -> Value,
    a: A,
    b: B,
) -> A::Output {
    A::Output::from_handle(context::emit(Location::caller(), |context| {
        let (a, b) = a.operands(b, context);
        let (a, b) = context.broadcast_pair(name, a, b);
        if context.ty(a).is_poison() || context.ty(b).is_poison() {
            return context.builder.poison();
        }
        define(&mut context.builder, a, b)
    }))
}

/// What three values combine to.
pub(super) type Triple<A, B, C> = <<A as Elementwise<B>>::Output as Elementwise<C>>::Output;

/// A function of three values in their common type and shape.
#[track_caller]
pub(super) fn triple<A, B, C>(
    name: &str,
    define: impl FnOnce(&mut Builder, [Value; 3]) -> Value,
    (a, b, c): (A, B, C),
) -> Triple<A, B, C>
where
    A: Elementwise<B, Output: Elementwise<C>>,
{
    Triple::<A, B, C>::from_handle(context::emit(Location::caller(), |context| {
        let (a, mut b) = a.operands(b, context);
        let first = A::Output::from_handle(context.handle(a));
        let (a, c) = first.operands(c, context);
        if let Some(dtype) = context.ty(a).dtype() {
            b = context.cast(b, dtype);
        }
        let (a, b) = context.broadcast_pair(name, a, b);
        let (a, c) = context.broadcast_pair(name, a, c);
        let (b, c) = context.broadcast_pair(name, b, c);
        if [a, b, c].iter().any(|&it| context.ty(it).is_poison()) {
            return context.builder.poison();
        }
        define(&mut context.builder, [a, b, c])
    }))
}
