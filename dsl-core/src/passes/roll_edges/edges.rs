//! Which branches are for programs at an edge.

use std::collections::BTreeSet;

use crate::entity::EntityMap;
use crate::ir::{BinaryOp, CompareOp, Func, Inst, Op, Region, Value, op};

/// The most values that the side of a comparison is computed from.
const MOST_VALUES: usize = 64;

/// What is known of the branches of a function.
pub(super) struct Edges<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
}

/// The accesses of arrays in a region, in order.
struct Accesses {
    /// Whether each writes, and its array.
    which: Vec<(bool, Value)>,
    /// Whether each has a mask.
    masked: Vec<bool>,
}

impl<'a> Edges<'a> {
    pub(super) fn of(func: &'a Func) -> Self {
        Self {
            func,
            definitions: func.definitions(),
        }
    }

    pub(super) fn definitions(&self) -> &EntityMap<Value, Option<Inst>> {
        &self.definitions
    }

    /// The region of an instruction that programs at an edge run: the second branch, where the first has the same accesses
    /// and fewer masks, and which of them is taken follows from the place of the program in the grid. Otherwise all programs
    /// may take the second.
    pub(super) fn region(&self, inst: Inst) -> Option<Region> {
        let Op::If(op::If {
            condition,
            on_true,
            on_false,
        }) = *self.func.op(inst)
        else {
            return None;
        };
        let [whole, masked] = [on_true, on_false].map(|region| self.accesses(region));
        let mut pairs = whole.masked.iter().zip(&masked.masked);
        let fewer = pairs.clone().any(|(whole, masked)| !whole && *masked)
            && pairs.all(|(whole, masked)| !whole || *masked);
        let edge = self.func.inst(inst).results.is_empty()
            && whole.which == masked.which
            && fewer
            && self.is_of_programs(condition);
        edge.then_some(on_false)
    }

    fn accesses(&self, region: Region) -> Accesses {
        let (mut which, mut masked) = (Vec::new(), Vec::new());
        self.func.walk(region, &mut |inst| {
            let op = self.func.op(inst);
            let (writes, base, mask) = if let Op::LaneLoad(op) = op {
                (false, op.base, op.mask)
            } else if let Op::LaneStore(op) = op {
                (true, op.base, op.mask)
            } else {
                return;
            };
            which.push((writes, base));
            masked.push(mask.is_some());
        });
        Accesses { which, masked }
    }

    /// Whether each part of a conjunction compares what differs among programs with what does not.
    fn is_of_programs(&self, condition: Value) -> bool {
        let mut pending = vec![condition];
        while let Some(value) = pending.pop() {
            match self.op(value) {
                Some(&Op::Binary(op::Binary {
                    op: BinaryOp::And,
                    lhs,
                    rhs,
                })) => pending.extend([lhs, rhs]),
                Some(&Op::Compare(op::Compare { op, lhs, rhs })) => {
                    let of_one = match [lhs, rhs].map(|side| self.varies(side)) {
                        [Some(left), Some(right)] => left != right,
                        _ => false,
                    };
                    let asks_for_wraps = op == CompareOp::Le && self.goes_on_from(rhs, lhs);
                    if !(of_one || asks_for_wraps) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        true
    }

    /// Whether a value is a sum of another one and something: a comparison of both asks whether it wraps.
    fn goes_on_from(&self, sum: Value, start: Value) -> bool {
        matches!(self.op(sum), Some(&Op::Binary(op::Binary { op: BinaryOp::Add, lhs, .. })) if lhs == start)
    }

    /// Whether a value differs among programs, or among iterations of a loop; nothing where that takes long to see.
    fn varies(&self, value: Value) -> Option<bool> {
        let mut pending = vec![value];
        let mut seen = BTreeSet::new();
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            if seen.len() > MOST_VALUES {
                return None;
            }
            match self.op(value) {
                Some(Op::ProgramId(_)) => return Some(true),
                Some(op) => pending.extend(op.operands()),
                None if self.func.arguments().contains(&value) => {}
                None => return Some(true),
            }
        }
        Some(false)
    }

    fn op(&self, value: Value) -> Option<&Op> {
        Some(self.func.op(self.definitions[value]?))
    }
}
