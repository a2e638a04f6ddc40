//! Where in a loop, and before it, stands what a pipeline adds.

use std::collections::BTreeSet;

use super::super::MayEnd;
use super::super::overlap::Overlap;
use super::super::read_back::{insert_before, read_back};
use super::read_ahead::Reads;
use super::{Own, Pipeliner};
use crate::ir::{Effect, Func, Inst, Op, Value, op};

impl Pipeliner {
    /// Puts together an iteration: what waits for its copies, its own instructions, those that start copies `ahead`, and the
    /// `releases` of its slots. So many groups of copies may be `pending` behind the wait. The iteration carries on `next`, and with a
    /// `reader` also the tiles of the next iteration, which it reads. Returns the products that stay under way, which are not
    /// carried yet, the instructions before the loop that read the first tiles, and those tiles.
    pub(super) fn compose(
        &mut self,
        (slot, pending): (Value, i64),
        (mut insts, ahead, releases): (Vec<Inst>, &[Inst], &[Inst]),
        (mut next, reader): (Vec<Value>, Option<(&op::For, Own, Reads)>),
    ) -> (Option<Overlap>, (Vec<Inst>, Vec<Value>)) {
        let func = self.builder.func_mut();
        read_back(func, &self.rings, &self.buffers, (self.body, slot));
        let overlap = Overlap::find(func, self.body, slot).filter(|_| self.overlaps);
        let (mut first, mut late) = ((Vec::new(), Vec::new()), Vec::new());
        if let Some((op, own, reads)) = reader {
            let [before, (read, tiles)] = self.read_ahead((op, own));
            first = before;
            match reads {
                Reads::First => insts.extend(read),
                Reads::Late => late = read,
            }
            next.extend(tiles);
        }
        let func = self.builder.func_mut();
        let own = std::mem::take(&mut func.region_mut(self.body).insts);
        // Fragments are read and multiplied first where the next iteration does not wait for these copies.
        let moves = self.rings.values().any(|ring| ring.moved.is_some());
        let mut own = match (releases, own.split_last()) {
            ([], Some((last, own))) if moves && pending > 0 => {
                [own, &late, ahead, &[*last]].concat()
            }
            ([], Some((last, own))) => [ahead, own, &late, &[*last]].concat(),
            (_, _) => behind_products(func, own, ahead),
        };
        let last = own.pop();
        insts.extend(own);
        if overlap.is_none() {
            insts.extend(releases);
        }
        insts.extend(last);
        func.region_mut(self.body).insts = insts;
        if let Some(last) = last
            && let Op::Yield(op::Yield { values }) = &mut func.inst_mut(last).op
        {
            values.extend(next);
        }
        (overlap, first)
    }

    /// Puts the buffers of a loop and its first copies before it, and before the loop around it.
    pub(super) fn begin(
        &mut self,
        (inst, outermost): (Inst, Inst),
        (begun, before): (Vec<Inst>, Vec<Inst>),
        may_end: MayEnd<'_>,
    ) {
        // Boxes need no more of what comes before than their addresses, and what those are loaded from.
        let boxes = self.rings.keys().all(|&load| self.is_box(load));
        let func = self.builder.func_mut();
        if boxes && outermost == inst {
            let all = [begun, before].concat();
            let first = earliest(func, inst, &all, may_end);
            insert_before(func, first, all);
        } else {
            insert_before(func, outermost, begun);
            insert_before(func, inst, before);
        }
    }
}

/// A body with what starts copies `ahead`: other warps may be late to release slots, so copies come behind the products that read
/// such slots in this iteration, and behind the further ones that begin before any sums are needed.
fn behind_products(func: &Func, own: Vec<Inst>, ahead: &[Inst]) -> Vec<Inst> {
    let runs = runs_of_products(func, &own);
    let first = runs.first().copied().unwrap_or(0);
    let reads = |inst: Inst, filled: &BTreeSet<Value>| {
        let Op::DotSlots(op) = func.op(inst) else {
            return false;
        };
        filled.contains(&op.a) || filled.contains(&op.b)
    };
    let place = |inst: Inst| {
        let filled = filled_by(func, inst);
        let reader = own.iter().rposition(|&inst| reads(inst, &filled));
        let run = reader.and_then(|reader| runs.iter().find(|&&end| end > reader));
        run.copied().unwrap_or(first)
    };
    let places: Vec<usize> = ahead.iter().map(|&inst| place(inst)).collect();
    let mut all = Vec::new();
    for at in 0..=own.len() {
        let here = ahead.iter().zip(&places).filter(|&(_, &place)| place == at);
        all.extend(here.map(|(inst, _)| *inst));
        all.extend(own.get(at));
    }
    all
}

/// Whether an instruction takes one of these values, or one in its regions does.
pub(super) fn takes(func: &Func, inst: Inst, values: &BTreeSet<Value>) -> bool {
    let takes = |inst: Inst| {
        let mut operands = func.op(inst).operands().into_iter();
        operands.any(|it| values.contains(&it))
    };
    let mut found = takes(inst);
    for region in func.op(inst).regions() {
        func.walk(region, &mut |inner| found |= takes(inner));
    }
    found
}

/// The buffers that boxes are copied to by an instruction.
fn filled_by(func: &Func, inst: Inst) -> BTreeSet<Value> {
    let mut filled = BTreeSet::new();
    for region in func.op(inst).regions() {
        func.walk(region, &mut |inner| {
            if let Op::CopyBox(op) = func.op(inner) {
                filled.insert(op.buffer);
            }
        });
    }
    filled
}

/// Where in a body products end that begin one after the other, before what takes any of their sums.
fn runs_of_products(func: &Func, body: &[Inst]) -> Vec<usize> {
    let mut sums: BTreeSet<Value> = BTreeSet::new();
    let (mut runs, mut end) = (Vec::new(), None);
    for (at, &inst) in body.iter().enumerate() {
        let op = func.op(inst);
        if takes(func, inst, &sums) {
            runs.extend(end.take());
            sums.clear();
        }
        if matches!(op, Op::DotSlots(_)) {
            end = Some(at + 1);
        } else if matches!(op, Op::Settle(_)) {
            sums.extend(&func.inst(inst).results);
        }
    }
    runs.extend(end);
    runs
}

/// The first instruction of those before a loop in its region that these may stand before: behind what they use, behind
/// other loops and what those leave under way, behind all beside which the program may end, behind what may write what they
/// load, and behind copies that are waited for before the loop, which come first as they are needed first. A product alone is no reason:
/// copies are under way while it waits for its own operands.
fn earliest(func: &Func, around: Inst, insts: &[Inst], may_end: MayEnd<'_>) -> Inst {
    let mut used = BTreeSet::new();
    let mut uses = |inst: Inst| used.extend(func.op(inst).operands());
    for &inst in insts {
        uses(inst);
        for region in func.op(inst).regions() {
            func.walk(region, &mut uses);
        }
    }
    let regions = func.all_regions().into_iter();
    let mut regions = regions.map(|region| &func.region(region).insts);
    let own = regions.find(|insts| insts.contains(&around));
    let before = own.into_iter().flatten().take_while(|&&it| it != around);
    let before: Vec<Inst> = before.copied().collect();
    let of_loop = |sums: Value| {
        let mut loops = before
            .iter()
            .filter(|&&it| matches!(func.op(it), Op::For(_)));
        loops.any(|&it| func.inst(it).results.contains(&sums))
    };
    let is_behind_loop = |op: &Op| {
        let is_loop = matches!(op, Op::For(_) | Op::While(_) | Op::WaitProducts(_));
        is_loop || matches!(op, Op::Settle(op) if of_loop(op.x))
    };
    let waited = |buffer: Value| {
        let mut waits = before.iter().map(|&it| func.op(it));
        waits.any(|op| matches!(op, Op::WaitBox(op) if op.buffer == buffer))
    };
    let mut loaded = BTreeSet::new();
    for region in insts.iter().flat_map(|&inst| func.op(inst).regions()) {
        func.walk(region, &mut |inner| {
            if let Op::Load(load) = func.op(inner) {
                loaded.insert(load.base);
            }
        });
    }
    let may_write = |op: &Op| {
        let access = op.access().filter(|it| it.effect != Effect::Reads);
        access.is_some_and(|it| loaded.contains(&it.base))
            || op.memory_order().is_some() && !loaded.is_empty()
    };
    let is_needed_first = |op: &Op| matches!(op, Op::CopyBox(op) if waited(op.buffer));
    let bound = |inst: Inst| {
        let results = func.inst(inst).results.iter();
        let op = func.op(inst);
        let stays = |op: &Op| may_end(op) || is_behind_loop(op) || may_write(op);
        let mut holds = stays(op) || is_needed_first(op);
        for region in op.regions() {
            func.walk(region, &mut |inner| holds |= stays(func.op(inner)));
        }
        holds || results.copied().any(|it| used.contains(&it))
    };
    let after = before.iter().rposition(|&inst| bound(inst));
    let mut free = before[after.map_or(0, |at| at + 1)..].iter();
    free.next().copied().unwrap_or(around)
}
