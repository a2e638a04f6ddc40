//! What control flow hands on, position by position.

use super::op::Control;
use super::{Func, Inst, Region, Value};

/// A result of control flow with everything that it may come from.
#[derive(Clone, Debug)]
pub struct Carried {
    /// The first value of what a loop carries; a branch has none.
    pub init: Option<Value>,
    /// What holds the value in the regions of a loop, in the order of the regions.
    pub parameters: Vec<Value>,
    /// What the regions yield for it, in their order.
    pub yielded: Vec<Value>,
    /// The result.
    pub result: Value,
}

impl Carried {
    /// For each parameter and for the result the values that it takes.
    pub fn flows(&self) -> Vec<(Value, Vec<Value>)> {
        match (self.init, &self.parameters[..], &self.yielded[..]) {
            (Some(init), &[entry, work], &[tested, next]) => vec![
                (entry, vec![init, next]),
                (work, vec![tested]),
                (self.result, vec![tested]),
            ],
            (Some(init), &[parameter], &[next]) => {
                let either = vec![init, next];
                vec![(parameter, either.clone()), (self.result, either)]
            }
            _ => vec![(self.result, self.yielded.clone())],
        }
    }
}

impl Func {
    /// What an instruction hands on, one for each result; nothing where it is not control flow.
    pub fn carried(&self, inst: Inst) -> Vec<Carried> {
        // Each region with the parameters and the yielded values that come before the carried ones.
        let (init, regions): (&[Value], Vec<(Region, usize, usize)>) = match self.op(inst).control()
        {
            Some(Control::For(op)) => (&op.init, vec![(op.body, 1, 0)]),
            Some(Control::While(op)) => (&op.init, vec![(op.before, 0, 1), (op.body, 0, 0)]),
            Some(Control::If(op)) => (&[], vec![(op.on_true, 0, 0), (op.on_false, 0, 0)]),
            None => return Vec::new(),
        };
        let at = |values: &[Value], position: usize| values.get(position).copied();
        let results = self.inst(inst).results.iter().enumerate();
        let carried = results.map(|(index, &result)| Carried {
            init: at(init, index),
            parameters: (regions.iter())
                .filter_map(|&(region, skip, _)| at(&self.region(region).parameters, index + skip))
                .collect(),
            yielded: (regions.iter())
                .filter_map(|&(region, _, skip)| at(self.yielded(region), index + skip))
                .collect(),
            result,
        });
        carried.collect()
    }

    /// What decides which regions of control flow run and how often; `None` for other instructions.
    pub fn deciding(&self, inst: Inst) -> Option<Vec<Value>> {
        Some(match self.op(inst).control()? {
            Control::For(op) => vec![op.lower, op.upper],
            Control::While(op) => self
                .yielded(op.before)
                .first()
                .copied()
                .into_iter()
                .collect(),
            Control::If(op) => vec![op.condition],
        })
    }
}
