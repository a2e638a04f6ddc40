//! Replays a lane function to see that its buffers do not disturb each other: what a buffer holds is
//! its own from `alloc` to the last use, and nobody is late to leave the bytes that a buffer begins in.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::{Func, Inst, Op, Region, Value, op};

/// Checks that no `alloc` takes bytes that another buffer still needs, or that lanes of a thread block
/// may have touched since the last barrier. Buffers that overlap on purpose fail, too.
///
/// # Errors
/// Each use of a buffer whose bytes are another's, and each buffer that begins too early.
pub fn placement(func: &Func) -> Result<(), Diagnostics> {
    let mut replay = Replay {
        func,
        bytes: BTreeMap::new(),
        errors: BTreeMap::new(),
    };
    replay.region(func.body(), &mut State::default());
    let mut diagnostics = Diagnostics::new();
    for (inst, message) in replay.errors {
        let loc = func.inst(inst).loc.clone();
        diagnostics.push(Diagnostic::new(loc, message));
    }
    diagnostics.into_result(())
}

/// What holds at one point, on every path there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// The buffers whose bytes are theirs.
    whole: BTreeSet<Value>,
    /// The buffers that lanes may have touched since the last barrier.
    touched: BTreeSet<Value>,
    /// The buffers that products may read that nobody has waited for.
    multiplied: BTreeSet<Value>,
    /// Those that bulk copies may read so.
    copied: BTreeSet<Value>,
    /// Those of barriers with phases, which stay such.
    words: BTreeSet<Value>,
}

impl State {
    fn join(&mut self, other: &State) {
        self.whole.retain(|buffer| other.whole.contains(buffer));
        self.touched.extend(&other.touched);
        self.multiplied.extend(&other.multiplied);
        self.copied.extend(&other.copied);
        self.words.extend(&other.words);
    }
}

struct Replay<'a> {
    func: &'a Func,
    bytes: BTreeMap<Value, Range<i64>>,
    errors: BTreeMap<Inst, String>,
}

impl Replay<'_> {
    fn region(&mut self, region: Region, state: &mut State) {
        let func = self.func;
        for &inst in &func.region(region).insts {
            let op = func.op(inst);
            for operand in op.operands() {
                if self.bytes.contains_key(&operand) {
                    self.touch(inst, operand, state);
                }
            }
            if let Op::Barrier(_) = op {
                state.touched.clear();
            } else if let Op::GroupMma(op) = op {
                let in_memory = op.a_offset.map(|_| op.a);
                state.multiplied.extend(in_memory.into_iter().chain([op.b]));
            } else if let Op::Settle(op::Settle { pending: 0, .. }) = op {
                let read = std::mem::take(&mut state.multiplied);
                read.into_iter().for_each(|it| self.touch(inst, it, state));
            } else if let Op::MbarrierInit(op) = op {
                state.words.insert(op.word);
            } else if let Op::CopyOut(op) = op {
                state.copied.insert(op.source);
            } else if let Op::WaitCopiesOut(op::WaitCopiesOut { pending: 0 })
            | Op::WaitCopiesRead(op::WaitCopiesRead { pending: 0 }) = op
            {
                let read = std::mem::take(&mut state.copied);
                read.into_iter().for_each(|it| self.touch(inst, it, state));
            } else if let Op::Alloc(op) = op {
                self.begin(inst, op, state);
            } else if let Op::If(op) = op {
                let (mut other, before) = (state.clone(), state.copied.clone());
                self.region(op.on_true, state);
                self.region(op.on_false, &mut other);
                let left = left_by_branches(&before, [&state.copied, &other.copied]);
                state.join(&other);
                state.copied = left;
            } else if let Op::For(op) = op {
                self.repeat(None, op.body, state);
            } else if let Op::While(op) = op {
                self.repeat(Some(op.before), op.body, state);
            } else if let Op::Roles(op) = op {
                let before = state.clone();
                for &(_, region) in &op.warps {
                    let mut role = before.clone();
                    self.region(region, &mut role);
                    state.join(&role);
                }
            }
        }
    }

    /// A loop, until nothing more is learned of what holds at its head.
    fn repeat(&mut self, before: Option<Region>, body: Region, state: &mut State) {
        loop {
            let mut next = state.clone();
            if let Some(before) = before {
                self.region(before, &mut next);
            }
            let left = next.clone();
            self.region(body, &mut next);
            let mut head = state.clone();
            head.join(&next);
            if head == *state {
                *state = left;
                return;
            }
            *state = head;
        }
    }

    fn touch(&mut self, inst: Inst, buffer: Value, state: &mut State) {
        if !state.whole.contains(&buffer) {
            let message = "the bytes of this buffer are another's by now";
            self.errors.insert(inst, message.to_string());
        }
        state.touched.insert(buffer);
    }

    fn begin(&mut self, inst: Inst, op: &op::Alloc, state: &mut State) {
        let buffer = self.func.inst(inst).results[0];
        let pointee = self.func.ty(buffer).pointee();
        let size = pointee.map_or(0, |(dtype, _)| i64::from(dtype.bytes()));
        let own = op.offset..op.offset + op.count * size;
        self.bytes.insert(buffer, own.clone());
        let overlaps = |other: &Value| {
            let other = &self.bytes[other];
            own.start < other.end && other.start < own.end
        };
        let late = state.touched.iter().chain(&state.multiplied);
        let words = state.words.iter().filter(|&&it| it != buffer);
        let mut used = late.chain(&state.copied).chain(words);
        if self.func.warps > 0 && used.any(overlaps) {
            let message = "lanes may still use the bytes in which this buffer begins";
            self.errors.insert(inst, message.to_string());
        }
        state.whole.retain(|other| !overlaps(other));
        state.whole.insert(buffer);
    }
}

/// What bulk copies may still read after two branches: one warp has started them, and waits for them in its branch.
pub(crate) fn left_by_branches<T: Copy + Ord>(
    before: &BTreeSet<T>,
    after: [&BTreeSet<T>; 2],
) -> BTreeSet<T> {
    let [a, b] = after;
    let begun = a.union(b).filter(|it| !before.contains(it));
    let kept = a.intersection(b);
    begun.chain(kept).copied().collect()
}
