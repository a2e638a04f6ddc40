//! Control flow as a stack of frames, so that a warp can stop anywhere and go on later.

use super::WHILE_LIMIT;
use super::runner::Runner;
use crate::interp::elements::Elements;
use crate::interp::mask::Mask;
use crate::interp::{Fault, FaultKind};
use crate::ir::op::LaneOp;
use crate::ir::{Inst, Region, op};

/// A region that a warp is in.
pub(super) struct Frame {
    pub(super) region: Region,
    /// The lanes that take part.
    pub(super) mask: Mask,
    /// The index of the next instruction.
    pub(super) next: usize,
    owner: Owner,
}

/// What goes on at the end of a region.
enum Owner {
    /// Nothing: the warp ends.
    Body,
    /// The branch `inst`, with nothing left to run.
    Branch(Inst),
    /// The first branch that lanes take, of an `if` of which other lanes take the second.
    OnTrue { inst: Inst, others: Mask },
    /// The second, with what the lanes `taken` got from the first.
    OnFalse {
        inst: Inst,
        taken: (Mask, Vec<Elements>),
    },
    /// An iteration of a `for`.
    For(Inst, ForState),
    /// The condition of a `while`.
    Before(Inst, WhileState),
    /// The body of a `while`.
    After(Inst, WhileState),
}

struct ForState {
    index: Elements,
    carried: Vec<Elements>,
}

struct WhileState {
    /// What the lanes that have left the loop got.
    results: Vec<Elements>,
    trips: u64,
}

impl Frame {
    fn new(region: Region, mask: Mask, owner: Owner) -> Self {
        Self {
            region,
            mask,
            next: 0,
            owner,
        }
    }

    /// A region that alone runs of those of `inst`.
    pub(super) fn of_branch(region: Region, mask: Mask, inst: Inst) -> Self {
        Self::new(region, mask, Owner::Branch(inst))
    }

    /// The whole function.
    pub(super) fn body(region: Region, lanes: usize) -> Self {
        Self::new(region, Mask::all(lanes), Owner::Body)
    }
}

impl Runner<'_, '_> {
    /// Leaves the innermost region, which yields `values`.
    pub(super) fn leave(&mut self, values: Vec<Elements>) -> Result<(), Fault> {
        let Some(Frame { mask, owner, .. }) = self.warp.frames.pop() else {
            return Ok(());
        };
        let func = self.machine.func;
        match owner {
            Owner::Body => {}
            Owner::Branch(inst) => self.define(inst, values),
            Owner::OnTrue { inst, others } => {
                if let LaneOp::If(op) = func.lane_op(inst) {
                    let taken = (mask, values);
                    let owner = Owner::OnFalse { inst, taken };
                    let frame = Frame::new(op.on_false, others, owner);
                    self.enter(op.on_false, Vec::new(), frame);
                }
            }
            Owner::OnFalse { inst, taken } => {
                let merged = self.merge_all(inst, taken.0, &taken.1, &values);
                self.define(inst, merged);
            }
            Owner::For(inst, state) => {
                if let LaneOp::For(op) = func.lane_op(inst) {
                    self.next_for(inst, op, (mask, state), &values);
                }
            }
            Owner::Before(inst, state) => {
                if let LaneOp::While(op) = func.lane_op(inst) {
                    self.check_while(inst, op, (mask, state), values);
                }
            }
            Owner::After(inst, mut state) => {
                state.trips += 1;
                if state.trips == WHILE_LIMIT {
                    return Err(self.fault(inst, FaultKind::Endless(WHILE_LIMIT)));
                }
                if let LaneOp::While(op) = func.lane_op(inst) {
                    let frame = Frame::new(op.before, mask, Owner::Before(inst, state));
                    self.enter(op.before, values, frame);
                }
            }
        }
        Ok(())
    }

    pub(super) fn branch(&mut self, inst: Inst, op: &op::If, mask: Mask) -> Result<(), Fault> {
        let condition = self.read(op.condition);
        let (on, off) = (mask.and(&condition, true), mask.and(&condition, false));
        let (region, mask, owner) = match (on.any(), off.any()) {
            (true, false) => (op.on_true, on, Owner::Branch(inst)),
            (false, _) => (op.on_false, off, Owner::Branch(inst)),
            (true, true) => (op.on_true, on, Owner::OnTrue { inst, others: off }),
        };
        self.enter(region, Vec::new(), Frame::new(region, mask, owner));
        Ok(())
    }

    /// Values like the results of `inst`: `on` in the lanes of the mask, `off` in the others.
    fn merge_all(
        &self,
        inst: Inst,
        mask: Mask,
        on: &[Elements],
        off: &[Elements],
    ) -> Vec<Elements> {
        let results = &self.machine.func.inst(inst).results;
        let merged = results.iter().zip(on.iter().zip(off));
        merged
            .map(|(&value, (on, off))| mask.merge(on, off, self.width(value)))
            .collect()
    }

    pub(super) fn start_for(&mut self, inst: Inst, op: &op::For, mask: Mask) -> Result<(), Fault> {
        let state = ForState {
            index: self.read(op.lower),
            carried: self.read_all(&op.init),
        };
        self.iterate(inst, op, mask, state);
        Ok(())
    }

    /// Runs the body for the lanes that have not reached the end, or goes on after the loop.
    fn iterate(&mut self, inst: Inst, op: &op::For, mask: Mask, state: ForState) {
        let (index, upper) = (&state.index, &self.warp.values[op.upper]);
        let active =
            mask.filter(|lane| index.get(lane).cast_signed() < upper.get(lane).cast_signed());
        if !active.any() {
            return self.define(inst, state.carried);
        }
        let arguments = [vec![index.clone()], state.carried.clone()].concat();
        let frame = Frame::new(op.body, active, Owner::For(inst, state));
        self.enter(op.body, arguments, frame);
    }

    fn next_for(
        &mut self,
        inst: Inst,
        op: &op::For,
        (active, state): (Mask, ForState),
        yielded: &[Elements],
    ) {
        let ForState { index, carried } = state;
        let carried = self.merge_all(inst, active, yielded, &carried);
        let stepped = |lane: usize| index.get(lane).cast_signed().checked_add(op.step);
        let active = active.filter(|lane| stepped(lane).is_some());
        let entries = if index.is_uniform() {
            1
        } else {
            self.warp.lanes
        };
        let bits = (0..entries).map(|lane| stepped(lane).unwrap_or(0).cast_unsigned());
        let index = Elements::new(bits.collect());
        self.iterate(inst, op, active, ForState { index, carried });
    }

    pub(super) fn start_while(
        &mut self,
        inst: Inst,
        op: &op::While,
        mask: Mask,
    ) -> Result<(), Fault> {
        let carried = self.read_all(&op.init);
        let state = WhileState {
            results: carried.clone(),
            trips: 0,
        };
        let frame = Frame::new(op.before, mask, Owner::Before(inst, state));
        self.enter(op.before, carried, frame);
        Ok(())
    }

    /// Goes on with the body for the lanes whose condition holds, or after the loop.
    fn check_while(
        &mut self,
        inst: Inst,
        op: &op::While,
        (active, mut state): (Mask, WhileState),
        mut next: Vec<Elements>,
    ) {
        let condition = next.remove(0);
        state.results = self.merge_all(inst, active, &next, &state.results);
        let active = active.and(&condition, true);
        if !active.any() {
            return self.define(inst, state.results);
        }
        let frame = Frame::new(op.body, active, Owner::After(inst, state));
        self.enter(op.body, next, frame);
    }
}
