//! The rules of copies of which several instructions must know: where a row may be copied, whose boxes and releases
//! barriers count, and which slots hold runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::op::Control;
use crate::ir::{Func, Inst, Op, Region, Value, op};

/// Errors where a row is copied in a loop, where more than two buffers have their slots behind each other, where boxes are
/// or runs are copied to slots that lie behind others, where a box waits for a release of slots that nobody releases, where boxes
/// are waited for, or released, that nobody copies, and where slots of runs are filled or read otherwise. Takes regions to be a tree.
pub(super) fn check(func: &Func, diagnostics: &mut Diagnostics) {
    let mut rules = Rules {
        func,
        copied: BTreeSet::new(),
        runs: BTreeSet::new(),
        released: BTreeSet::new(),
        behind: BTreeSet::new(),
        followed: BTreeMap::new(),
        diagnostics,
    };
    for inst in func.all_insts() {
        rules.remember(inst);
    }
    rules.region(func.body(), false);
}

struct Rules<'a> {
    func: &'a Func,
    /// The buffers to which boxes are copied.
    copied: BTreeSet<Value>,
    /// The buffers to which runs are copied.
    runs: BTreeSet<Value>,
    /// The buffers whose slots are released.
    released: BTreeSet<Value>,
    /// The buffers whose slots lie behind those of others, and how many have their slots behind those of each.
    behind: BTreeSet<Value>,
    followed: BTreeMap<Value, usize>,
    diagnostics: &'a mut Diagnostics,
}

impl Rules<'_> {
    fn remember(&mut self, inst: Inst) {
        let op = self.func.op(inst);
        if let Op::CopyBox(op) = op {
            self.copied.insert(op.buffer);
        } else if let Op::CopyRun(op) = op {
            self.runs.insert(op.buffer);
        } else if let Op::ReleaseSlot(op) = op {
            self.released.insert(op.buffer);
        } else if let &Op::Buffer(op::Buffer {
            behind: Some(front),
        }) = op
        {
            self.behind.extend(&self.func.inst(inst).results);
            *self.followed.entry(front).or_default() += 1;
        }
    }

    fn region(&mut self, region: Region, in_loop: bool) {
        for &inst in &self.func.region(region).insts {
            if let Some([message, note]) = self.broken(inst, in_loop) {
                let loc = self.func.inst(inst).loc.clone();
                self.diagnostics
                    .push(Diagnostic::new(loc, message).note(note));
            }
            let op = self.func.op(inst);
            let loops = matches!(op.control(), Some(Control::For(_) | Control::While(_)));
            for nested in op.regions() {
                self.region(nested, in_loop || loops);
            }
        }
    }

    /// What is wrong with an instruction, and what to do about it.
    fn broken(&self, inst: Inst, in_loop: bool) -> Option<[&'static str; 2]> {
        let op = self.func.op(inst);
        if let Op::CopyRow(_) = op {
            return in_loop.then_some([
                "a row is copied in a loop",
                "copy it once before the loop, or load a part in each iteration by `load`",
            ]);
        }
        if let Op::CopyRun(op) = op {
            return self.behind.contains(&op.buffer).then_some([
                "a run is copied to slots that lie behind those of another buffer",
                "copy it to a `buffer` without `behind`",
            ]);
        }
        if let Some(wrong) = self.not_of_runs(op) {
            return Some(wrong);
        }
        if let Op::CopyBox(op) = op {
            if self.behind.contains(&op.buffer) {
                return Some([
                    "a box is copied to slots that lie behind those of another buffer",
                    "copy it to a `buffer` without `behind`",
                ]);
            }
            let nobody = op.released.is_some() && !self.released.contains(&op.buffer);
            return nobody.then_some([
                "a box waits for a release of a slot, but nobody releases slots of its buffer",
                "put a `release_slot` behind what reads the slot, or leave out `released` and put a `barrier` before the copy",
            ]);
        }
        if let &Op::Buffer(op::Buffer {
            behind: Some(front),
        }) = op
        {
            let alone = !self.behind.contains(&front) && self.followed.get(&front) == Some(&1);
            return (!alone).then_some([
                "the slots of more than two buffers lie behind each other",
                "make a `buffer` without `behind`",
            ]);
        }
        let counted = if let Op::WaitBox(op) = op {
            op.buffer
        } else if let Op::ReleaseSlot(op) = op {
            op.buffer
        } else {
            return None;
        };
        let is_buffer = self.func.ty(counted).buffer().is_some();
        (is_buffer && !self.copied.contains(&counted)).then_some([
            "no box is copied to this buffer",
            "fill it by `copy_box`, or wait by `barrier` for what lanes store or copy there",
        ])
    }

    /// What is wrong with an instruction that fills or reads slots of runs, or is said to.
    fn not_of_runs(&self, op: &Op) -> Option<[&'static str; 2]> {
        if let Op::SlotLoad(op) = op {
            return match (self.runs.contains(&op.buffer), op.start) {
                (true, None) => Some([
                    "a run is read as if it began where its slot does",
                    "say by `start` where in memory it begins",
                ]),
                (false, Some(_)) => Some([
                    "no run is copied to this buffer",
                    "leave out `start`, or fill the buffer by `copy_run`",
                ]),
                (true, Some(_)) | (false, None) => None,
            };
        }
        let mut operands = op.operands().into_iter();
        operands.any(|it| self.runs.contains(&it)).then_some([
            "slots of runs are used by another op than `copy_run` and `slot_load`",
            "give that a `buffer` of its own",
        ])
    }
}
