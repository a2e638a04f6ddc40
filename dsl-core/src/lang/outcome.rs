//! Values that leave loops and branches: what `break value`, `return value` and branches that may be left set, and what is
//! given of it.
//!
//! No value has the type of the outcome before a statement sets it. Until then its parts are marked as unset: where a
//! branch or the body of a loop sets one, zeros of the type take its place on the other side and before the loop.
//! Nothing reads them, since the outcome is asked for only behind what was left.

use std::any::type_name;
use std::panic::Location;

use super::carry::{Carry, Part};
use super::context::{self, Context, Handle};
use crate::diagnostic::Diagnostic;
use crate::ir::{DType, Literal, Op, Region, Type, Value, op};

/// The value with which code leaves a loop, a function or a branch: made by the macros.
pub struct Outcome<V> {
    /// Nothing for what cannot be unset.
    parts: Option<V>,
    /// The value where nothing carries it.
    refused: Option<V>,
}

impl<V: Carry> Default for Outcome<V> {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Carry> Outcome<V> {
    /// Nothing has been set.
    #[track_caller]
    pub fn new() -> Self {
        Self {
            parts: V::unset(),
            refused: None,
        }
    }

    /// Sets the value.
    #[track_caller]
    pub fn set(&mut self, value: V) {
        if self.parts.is_some() || !context::is_tracing() {
            self.parts = Some(value);
            return;
        }
        self.refused = Some(value);
        context::with(Location::caller(), |context| {
            let message = format!(
                "a value of type `{}` leaves a loop or a branch",
                type_name::<V>()
            );
            let error = Diagnostic::new(context.builder.loc().clone(), message);
            context.builder.report(error.note(
                "tiles, scalars and tuples, arrays and structures of them do: set a `mut` binding in front of the loop instead",
            ));
        });
    }

    /// The value, behind what it left.
    #[track_caller]
    pub fn get(self) -> V {
        let mut value = self
            .parts
            .or(self.refused)
            .expect("broken invariant: a statement sets the outcome");
        let mut handles: Vec<Handle> = Vec::new();
        value.visit(&mut |part| {
            if let Part::Value(handle) = part {
                handles.push(*handle);
            }
        });
        context::with(Location::caller(), |context| {
            let is_unset =
                |handle: Handle| context.own(handle).is_some_and(|it| context.is_unset(it));
            if handles.into_iter().any(is_unset) {
                context.builder.error(
                    "no statement is reached that gives this loop, function or branch its value",
                );
            }
        });
        value
    }
}

impl<V: Carry + Clone> Outcome<V> {
    /// The value, behind what it left, in code that goes on to mention the outcome.
    #[track_caller]
    pub fn bound(&self) -> V {
        let own = Self {
            parts: self.parts.clone(),
            refused: self.refused.clone(),
        };
        own.get()
    }
}

impl<V: Carry> Carry for Outcome<V> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.parts.visit(visitor);
    }
}

/// A part that no statement has set.
#[track_caller]
pub(super) fn unset() -> Handle {
    context::emit(Location::caller(), |context| {
        // In no region: a function without errors may have it.
        let nothing = Op::Constant(op::Constant {
            value: Literal::from_bits(DType::Bool, 0),
        });
        let loc = context.builder.loc().clone();
        let func = context.builder.func_mut();
        let inst = func.add_inst(nothing, &[Type::POISON], loc);
        let value = func.inst(inst).results[0];
        context.unset.insert(value);
        value
    })
}

/// A part of an outcome that the body of a loop sets.
pub(super) struct SetPart {
    /// Its place among what the loop carries.
    pub(super) place: usize,
    /// Zeros, which stand for it before the loop.
    pub(super) before: Value,
    /// What the body makes of it.
    pub(super) value: Value,
}

impl Context {
    /// Whether no statement has set this part of an outcome.
    pub(super) fn is_unset(&self, value: Value) -> bool {
        self.unset.contains(&value)
    }

    /// The parts of outcomes that the body of a loop sets, which began with `entry` and ends with `next`.
    pub(super) fn set_in_loop(
        &mut self,
        entry: &[Value],
        next: &[Value],
        outer: Region,
    ) -> Vec<SetPart> {
        let pairs = entry.iter().zip(next).enumerate();
        let set = pairs
            .filter(|(_, (entry, next))| self.is_unset(**entry) && !self.ty(**next).is_poison());
        let places: Vec<(usize, Value)> = set.map(|(place, (_, &next))| (place, next)).collect();
        let parts = places.into_iter().filter_map(|(place, value)| {
            let before = self.filler(outer, self.ty(value))?;
            Some(SetPart {
                place,
                before,
                value,
            })
        });
        parts.collect()
    }

    /// A parameter of `region` for a part.
    pub(super) fn parameter_for(&mut self, region: Region, part: &SetPart) -> Value {
        let ty = self.ty(part.value);
        self.builder.func_mut().add_region_parameter(region, ty)
    }

    /// Zeros at the end of `region` in place of a part that is unset there; the region stays the one that it was.
    pub(super) fn filler(&mut self, region: Region, ty: Type) -> Option<Value> {
        let zero = Literal::from_bits(ty.dtype()?, 0);
        let current = self.builder.enter(region);
        let filler = self.builder.filled(zero, ty.shape);
        self.builder.enter(current);
        Some(filler)
    }
}
