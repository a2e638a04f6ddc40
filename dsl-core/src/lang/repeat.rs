//! Whether two traces of a kernel are alike, of which one went through the bodies of loops again.

use std::collections::BTreeMap;

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

/// Whether a function has a loop of the device.
pub(super) fn has_loops(func: &Func) -> bool {
    let insts = func.all_insts().into_iter();
    let mut ops = insts.map(|inst| func.op(inst));
    ops.any(|op| matches!(op, Op::For(_) | Op::While(_)))
}

/// The error of a kernel whose second trace differs from the first, which is at fault somewhere before.
pub(super) fn error(name: &str, loc: Loc) -> Diagnostic {
    let message =
        format!("kernel `{name}` computes something else when its loops are traced again");
    Diagnostic::new(loc, message).note(
        "a kernel is a function of its arguments and its configuration: let a loop change variables of the \
         kernel, and no `Cell`, `RefCell` or other state of the host",
    )
}

/// The first instruction of a function that differs in another one.
pub(super) fn difference(one: &Func, other: &Func) -> Option<Loc> {
    let pairs = other.arguments().iter().zip(one.arguments());
    let mut comparison = Comparison {
        one,
        other,
        known: pairs.map(|(&other, &one)| (other, one)).collect(),
        last: Loc::none(),
    };
    comparison.regions(one.body(), other.body()).err()
}

struct Comparison<'a> {
    one: &'a Func,
    other: &'a Func,
    /// The values of the first function that those of the other one are.
    known: BTreeMap<Value, Value>,
    /// Where the last instruction is that both have.
    last: Loc,
}

impl Comparison<'_> {
    fn regions(&mut self, one: Region, other: Region) -> Result<(), Loc> {
        let [one, other] = [self.one.region(one), self.other.region(other)];
        if one.insts.len() != other.insts.len() || one.parameters.len() != other.parameters.len() {
            let pairs = one.insts.iter().zip(&other.insts);
            let mut differ =
                pairs.filter(|&(&a, &b)| self.one.op(a).mnemonic() != self.other.op(b).mnemonic());
            let first = differ.next().map(|(&it, _)| self.one.inst(it).loc.clone());
            return Err(first.unwrap_or_else(|| self.last.clone()));
        }
        let parameters = other.parameters.iter().zip(&one.parameters);
        self.known
            .extend(parameters.map(|(&other, &one)| (other, one)));
        for (&a, &b) in one.insts.iter().zip(&other.insts) {
            self.insts(a, b)?;
        }
        Ok(())
    }

    fn insts(&mut self, one: Inst, other: Inst) -> Result<(), Loc> {
        let (a, b) = (self.one.inst(one), self.other.inst(other));
        self.last = a.loc.clone();
        let mut op = b.op.clone();
        op.map_operands(&mut |value| self.known.get(&value).copied().unwrap_or(value));
        let types = |func: &Func, values: &[Value]| -> Vec<_> {
            values.iter().map(|&value| func.ty(value)).collect()
        };
        let same = without_regions(&a.op) == without_regions(&op)
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

fn without_regions(op: &Op) -> Op {
    let mut op = op.clone();
    op.map_regions(&mut |_| Region::new(0));
    op
}
