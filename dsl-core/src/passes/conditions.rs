//! What the arguments of a launch must be like for code to rely on it. Each launch evaluates it; what it does not
//! show is not assumed.

use std::borrow::Cow;

use super::{apart, boxes, tidy};
use crate::facts::{Boxed, Facts};
use crate::ir::{DType, Func, Value};
use crate::launch::{Boxes, Inside, Launch, Numbers};
use crate::target::{Distribution, Target};
use crate::verify::BlockFunc;

/// The conditions of a kernel.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The parameters that are integers.
    integers: Numbers,
    inside: Inside,
    apart: apart::Conditions,
    boxes: Option<Boxes>,
}

/// Which conditions hold for all launches with the same numbers and lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfNumbers {
    apart: bool,
    inside: bool,
}

/// The function with what lanes do in place of boxes that its author has written: nothing but a launch shows that these are of
/// rows that lie apart.
fn by_lanes(func: &Func) -> Cow<'_, Func> {
    if boxes::boxes_of(func) == Boxed::Nothing {
        return Cow::Borrowed(func);
    }
    let mut func = func.clone();
    boxes::expand_boxes(&mut func, &|_, _| false);
    tidy(&mut func);
    Cow::Owned(func)
}

impl Conditions {
    /// Those of a traced function, of what is lowered for `target` in its place, and of what accesses boxes in place of
    /// that.
    #[must_use]
    pub fn of(traced: &Func, prepared: &Func, boxed: Option<&BlockFunc>, target: &Target) -> Self {
        let dtype = |value: Value| traced.ty(value).dtype();
        let is_integer = |value| dtype(value).is_some_and(DType::is_integer);
        let arguments = traced.arguments().iter().enumerate();
        Self {
            integers: arguments
                .filter(|&(_, &value)| is_integer(value))
                .map(|(index, _)| index)
                .collect(),
            inside: Inside::of(traced),
            apart: match target.distribution {
                // One worker stores in order.
                Distribution::Sequential => apart::Conditions::default(),
                Distribution::Distributed => apart::Conditions::of(&by_lanes(prepared)),
            },
            boxes: boxed.map(|boxed| Boxes::of(boxed)),
        }
    }

    /// Which of them hold for a launch; nothing of each argument alone.
    #[must_use]
    pub fn facts(&self, launch: &Launch<'_>) -> Facts {
        self.facts_with(self.of_numbers(launch), launch)
    }

    /// The numbers that [`of_numbers`](Self::of_numbers) may follow from: a [`LaunchExpression`](crate::launch::LaunchExpression) is
    /// one of integers alone.
    #[must_use]
    pub fn integers(&self) -> Numbers {
        self.integers
    }

    /// Whether they may hold for one launch and not for another that differs in the addresses of its memory alone.
    #[must_use]
    pub fn ask_addresses(&self) -> bool {
        self.boxes.is_some()
    }

    /// What of it follows from the integers of the launch and the lengths of its memory, wherever that is.
    #[must_use]
    pub fn of_numbers(&self, launch: &Launch<'_>) -> OfNumbers {
        OfNumbers {
            apart: self.apart.hold(launch),
            inside: self.inside.holds(launch),
        }
    }

    /// [`facts`](Self::facts) of a launch of which [`of_numbers`](Self::of_numbers) is known.
    #[must_use]
    pub fn facts_with(&self, numbers: OfNumbers, launch: &Launch<'_>) -> Facts {
        Facts {
            arguments: Vec::new(),
            within: Vec::new(),
            apart: numbers.apart,
            inside: numbers.inside,
            boxes: self
                .boxes
                .as_ref()
                .map_or(Boxed::Nothing, |it| it.hold(launch)),
        }
    }
}
