//! Whether two traces of a kernel are alike, of which one went through the bodies of loops again, or left bodies
//! of loops and branches out.

use std::collections::BTreeMap;

use super::bodies::Omitted;
use super::context::Context;
use crate::diagnostic::{Diagnostic, Loc};
use crate::entity::Entity;
use crate::ir::{Func, Inst, Op, Region, Value};

/// The passes over the body of a loop: one, or one to forget and another one.
#[derive(Default)]
pub(super) struct Passes {
    /// Whether this loop is one that goes through its body again.
    repeats: bool,
    /// Whether the pass under way is to be forgotten.
    forgets: bool,
}

impl Passes {
    /// Those of a loop that begins. Loops within a pass to forget have one.
    pub(super) fn begin(context: &mut Context) -> Self {
        let repeats = std::mem::replace(&mut context.repeats, false);
        Self {
            repeats,
            forgets: repeats,
        }
    }

    /// Whether what the body traced is to be forgotten, after which the next pass begins.
    pub(super) fn forgets(&mut self) -> bool {
        std::mem::replace(&mut self.forgets, false)
    }

    /// Lets the loops of the next pass, or those after the loop, go through their bodies again.
    pub(super) fn go_on(&self, context: &mut Context) {
        context.repeats = self.repeats;
    }
}

/// The error of a kernel of which another trace differs from the first, which is at fault somewhere before.
pub(super) fn error(name: &str, loc: Loc) -> Diagnostic {
    let message = format!("kernel `{name}` computes something else when it is traced again");
    Diagnostic::new(loc, message)
        .note(
            "a kernel is a function of its arguments and its configuration: let a loop or branch change `mut` \
             variables of the kernel, and no `Cell`, `RefCell` or other state of the host",
        )
        .note(
            "it is traced once more with each body of a loop and each combine again, and without some bodies of loops, \
             branches and combines, none of which what follows may show",
        )
}

/// The first instruction of a function that differs in another one, which has nothing of what is `left_out`.
pub(super) fn difference(one: &Func, other: &Func, left_out: Omitted) -> Option<Loc> {
    let pairs = other.arguments().iter().zip(one.arguments());
    let mut comparison = Comparison {
        one,
        other,
        left_out,
        known: pairs.map(|(&other, &one)| (other, one)).collect(),
    };
    comparison.regions(one.body(), other.body()).err()
}

struct Comparison<'a> {
    one: &'a Func,
    other: &'a Func,
    left_out: Omitted,
    /// The values of the first function that those of the other one are.
    known: BTreeMap<Value, Value>,
}

impl Comparison<'_> {
    fn regions(&mut self, one: Region, other: Region) -> Result<(), Loc> {
        if self.left_out.regions.contains(&other) {
            return Ok(());
        }
        let [one, other] = [self.one.region(one), self.other.region(other)];
        let parameters = other.parameters.iter().zip(&one.parameters);
        self.known
            .extend(parameters.map(|(&other, &one)| (other, one)));
        let is_traced = |inst: &Inst| !self.left_out.dissolved.contains(inst);
        let insts = one.insts.iter().copied();
        let all: Vec<Inst> = insts.filter(is_traced).collect();
        for (&a, &b) in all.iter().zip(&other.insts) {
            self.insts(a, b)?;
        }
        let count = all.len().min(other.insts.len());
        match (all.get(count), other.insts.get(count)) {
            (Some(&inst), _) => Err(self.one.inst(inst).loc.clone()),
            (None, Some(&inst)) => Err(self.other.inst(inst).loc.clone()),
            (None, None) => Ok(()),
        }
    }

    fn insts(&mut self, one: Inst, other: Inst) -> Result<(), Loc> {
        let (a, b) = (self.one.inst(one), self.other.inst(other));
        let mut op = b.op.clone();
        op.map_operands(&mut |value| self.known.get(&value).copied().unwrap_or(value));
        let types = |func: &Func, values: &[Value]| -> Vec<_> {
            values.iter().map(|&value| func.ty(value)).collect()
        };
        let same = alone(&a.op) == alone(&op)
            && types(self.one, &a.results) == types(self.other, &b.results);
        if !same {
            return Err(a.loc.clone());
        }
        for (one, other) in a.op.regions().into_iter().zip(b.op.regions()) {
            self.regions(one, other)?;
        }
        let results = b.results.iter().zip(&a.results);
        self.known
            .extend(results.map(|(&other, &one)| (other, one)));
        Ok(())
    }
}

/// An op without its regions and without the number of a print, which counts those of regions left out.
fn alone(op: &Op) -> Op {
    let mut op = op.clone();
    op.map_regions(&mut |_| Region::new(0));
    if let Op::Print(print) = &mut op {
        print.number = 0;
    }
    op
}
