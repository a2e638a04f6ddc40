//! Ways out of loops: what `break`, `continue` and `return` in a loop set, and what a loop asks of it.

use std::panic::Location;

use super::branch::{Condition, Decision};
use super::carry::{Carry, Part, Slot};
use super::context::{self, Context, Handle};
use crate::ir::{DType, Literal, Shape, Value};

/// Whether something has been left: made by the macros for each loop, body or function that a
/// statement leaves.
///
/// What is known while tracing is a number of the host, so that conditions of the host unroll.
#[derive(Clone, Copy)]
pub struct Exit {
    known: bool,
    /// Replaces `known` once a loop or branch of the device carries it.
    handle: Option<Handle>,
}

impl Default for Exit {
    fn default() -> Self {
        Self::new()
    }
}

impl Exit {
    /// Nothing has been left.
    pub const fn new() -> Self {
        Self {
            known: false,
            handle: None,
        }
    }

    /// Leaves.
    pub fn leave(&mut self) {
        *self = Self {
            known: true,
            handle: None,
        };
    }

    /// A condition that holds where none of these has been left.
    #[track_caller]
    pub fn none<const N: usize>(exits: [Self; N]) -> Stays {
        let mut conditions = Vec::new();
        for exit in exits {
            match exit.decide() {
                Decision::Host(true) => return Stays(Decision::Host(false)),
                Decision::Host(false) => {}
                Decision::Device(handle) => conditions.push(handle),
            }
        }
        let stays = context::with(Location::caller(), |context| {
            let conditions = conditions.iter().map(|&handle| context.value(handle));
            let conditions: Vec<Value> = conditions.collect();
            let stays = context.none(&conditions)?;
            Some(context.handle(stays))
        });
        let stays = stays.flatten().map(Decision::Device);
        Stays(stays.unwrap_or(Decision::Host(true)))
    }

    /// Whether one of these is known to have been left.
    pub fn any<const N: usize>(exits: [Self; N]) -> bool {
        exits.into_iter().any(Self::is_left)
    }

    fn is_left(self) -> bool {
        matches!(self.decide(), Decision::Host(true))
    }

    fn decide(self) -> Decision {
        let Some(handle) = self.handle else {
            return Decision::Host(self.known);
        };
        let known = context::with(Location::caller(), |context| {
            let value = context.value(handle);
            context.known_exit(value)
        });
        match known {
            Some(None) => Decision::Device(handle),
            Some(Some(known)) => Decision::Host(known),
            // Outside of a trace nothing is on the device.
            None => Decision::Host(self.known),
        }
    }

    /// Makes it this condition of the trace.
    pub(super) fn set(&mut self, condition: Handle) {
        self.handle = Some(condition);
    }

    /// The condition in the trace.
    pub(super) fn handle_mut(&mut self) -> &mut Handle {
        let known = self.known;
        self.handle
            .get_or_insert_with(|| context::emit(Location::caller(), |context| context.exit(known)))
    }
}

impl Carry for Exit {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Exit(self));
    }
}

/// Whether to go on: made by [`Exit::none`].
pub struct Stays(Decision);

impl Condition for Stays {
    fn decide(self) -> Decision {
        self.0
    }
}

/// The condition of a `loop`, which runs on the device.
pub struct Forever;

impl Condition for Forever {
    #[track_caller]
    fn decide(self) -> Decision {
        let always = context::with(Location::caller(), |context| {
            let always = Literal::from_bits(DType::Bool, 1);
            let always = context.builder.filled(always, Shape::SCALAR);
            context.handle(always)
        });
        always.map_or(Decision::Host(true), Decision::Device)
    }
}

/// Whether a statement is known to have left a loop with these slots.
pub(super) fn is_left(slots: &mut [Slot<'_>]) -> bool {
    let mut left = false;
    for slot in slots {
        if let Slot::Carried { value, .. } = slot {
            value.visit(&mut |part| {
                if let Part::Exit(exit) = part {
                    left |= exit.is_left();
                }
            });
        }
    }
    left
}

impl Context {
    /// A condition of an exit whose number is known.
    pub(super) fn exit(&mut self, left: bool) -> Value {
        let literal = Literal::from_bits(DType::Bool, u64::from(left));
        let value = self.builder.filled(literal, Shape::SCALAR);
        self.exits.insert(value, left);
        value
    }

    /// The number of an exit's condition, if it is known.
    pub(super) fn known_exit(&self, value: Value) -> Option<bool> {
        self.exits.get(&value).copied()
    }

    /// The condition that none of these holds; nothing if there is none.
    pub(super) fn none(&mut self, conditions: &[Value]) -> Option<Value> {
        let (&first, others) = conditions.split_first()?;
        let any = others
            .iter()
            .fold(first, |any, &other| self.builder.or(any, other));
        Some(self.builder.not(any))
    }
}
