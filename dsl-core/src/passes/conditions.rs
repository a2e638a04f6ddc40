//! What the arguments of a launch must be like for code to rely on it. Each launch evaluates it; what it does not
//! show is not assumed.

use super::apart;
use crate::facts::Facts;
use crate::ir::Func;
use crate::launch::{Boxes, Inside, Launch};
use crate::target::{Distribution, Target};

/// The conditions of a kernel.
#[derive(Clone, Debug)]
pub struct Conditions {
    inside: Inside,
    apart: apart::Conditions,
    boxes: Option<Boxes>,
}

impl Conditions {
    /// Those of a traced function, of what is lowered for `target` in its place, and of what loads boxes in place of
    /// that.
    #[must_use]
    pub fn of(traced: &Func, prepared: &Func, boxed: Option<&Func>, target: &Target) -> Self {
        Self {
            inside: Inside::of(traced),
            apart: match target.distribution {
                // One worker stores in order.
                Distribution::Sequential => apart::Conditions::default(),
                Distribution::Distributed => apart::Conditions::of(prepared),
            },
            boxes: boxed.map(Boxes::of),
        }
    }

    /// Which of them hold for a launch; nothing of each argument alone.
    #[must_use]
    pub fn facts(&self, launch: &Launch<'_>) -> Facts {
        Facts {
            arguments: Vec::new(),
            within: Vec::new(),
            apart: self.apart.hold(launch),
            inside: self.inside.holds(launch),
            boxes: self.boxes.as_ref().is_some_and(|boxes| boxes.hold(launch)),
        }
    }
}
