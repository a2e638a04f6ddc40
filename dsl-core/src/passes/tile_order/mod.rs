//! Where a loop adds up floats in an order that the tile size changes.
//!
//! A loop walks along an axis if each iteration has the elements behind those of the one before: then the
//! tile size says how many iterations there are. What a tile has along that axis, taken together by a
//! reduction, a scan, a sort or a matrix product, may not be combined with what the loop carries by an op
//! that rounds; and what iterations have added up position by position may not be taken together afterwards.
//! One matrix product that goes on from the carried tile is a chain over the whole axis, whatever the tiles.
//! An accumulator that rounds takes a tile in every iteration, or in those that no tile chooses as a whole.
//!
//! Not found are loops that run while the kernel is traced, what goes through memory, tiles that overlap, and integers
//! that count tiles or take floats of whole tiles.

mod chosen;
mod recurrences;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use chosen::Taking;
use recurrences::Recurrences;
use walk::{Loop, Walk, takes};

use super::expand_elements::expand_elements;
use super::expand_tiles::expand_tiles;
use super::indices::Indices;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::dataflow::{Facts, solve};
use crate::ir::op::Elementwise;
use crate::ir::{BinaryOp, Func, Inst, Op, Region, UnaryOp, Value, op};
use crate::target::Distribution;

/// Every place in a block function whose bits follow the tile size through the order of a loop's additions,
/// each with what to write instead.
#[must_use]
pub fn find(func: &Func) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    if !may_break(func) {
        return diagnostics;
    }
    let mut func = func.clone();
    expand_tiles(&mut func);
    expand_elements(&mut func, Distribution::Distributed);
    let recurrences = Recurrences::of(&func);
    let rounding: BTreeMap<u32, usize> = cycles(&func, &recurrences);
    let taking = Taking::new(&func);
    let loops: Vec<Inst> = (func.all_insts().into_iter())
        .filter(|&inst| is_loop(&func, inst))
        .filter(|&inst| carries(&func, &recurrences, &rounding, inst) || taking.is_chosen_in(inst))
        .collect();
    if loops.is_empty() {
        return diagnostics;
    }
    let indices = Indices::of(&func);
    let is_extent = |&inst: &Inst| matches!(func.op(inst), Op::NumPrograms(_));
    let programs = func.all_insts().into_iter().filter(is_extent);
    let programs = programs.flat_map(|inst| func.inst(inst).results.clone());
    let programs: BTreeSet<Value> = programs.collect();
    let mut found = BTreeSet::new();
    for inst in loops {
        let of = Loop::new((&func, &indices), &recurrences, &programs, inst);
        let facts = solve(&func, &of);
        let breaks = Breaks {
            func: &func,
            recurrences: &recurrences,
            rounding: &rounding,
            of: &of,
            facts,
        };
        for inst in func.all_insts() {
            if let Some(diagnostic) = breaks.at(inst).filter(|_| found.insert(inst)) {
                diagnostics.push(diagnostic);
            }
        }
        for chosen in taking.chosen(&of, &breaks.facts) {
            if found.insert(chosen) {
                diagnostics.push(breaks.told(chosen, CHOSEN, EACH));
            }
        }
    }
    diagnostics
}

/// Whether a function has a loop that carries something, and takes tiles together at all.
fn may_break(func: &Func) -> bool {
    let insts = func.all_insts();
    let carries = |&inst: &Inst| is_loop(func, inst) && !func.inst(inst).results.is_empty();
    insts.iter().any(carries)
        && insts
            .iter()
            .any(|&inst| takes(func, func.op(inst), &|_| u8::MAX))
}

fn is_loop(func: &Func, inst: Inst) -> bool {
    matches!(func.op(inst), Op::For(_) | Op::While(_))
}

/// The cycles with ops that round, and how many of these each has.
fn cycles(func: &Func, recurrences: &Recurrences) -> BTreeMap<u32, usize> {
    let mut cycles = BTreeMap::new();
    for inst in func.all_insts() {
        if !rounds(func, inst) {
            continue;
        }
        let results = func.inst(inst).results.iter();
        let of: BTreeSet<u32> = results.filter_map(|&it| recurrences.of_value(it)).collect();
        for cycle in of {
            *cycles.entry(cycle).or_default() += 1;
        }
    }
    cycles
}

fn has_rounding(func: &Func, region: Region) -> bool {
    let mut found = false;
    func.walk(region, &mut |inst| found |= rounds(func, inst));
    found
}

/// Whether a loop carries a value of a cycle that rounds.
fn carries(
    func: &Func,
    recurrences: &Recurrences,
    rounding: &BTreeMap<u32, usize>,
    inst: Inst,
) -> bool {
    let carried = func.carried(inst);
    let mut parameters = carried.iter().flat_map(|it| &it.parameters);
    parameters.any(|&it| {
        recurrences
            .of_value(it)
            .is_some_and(|cycle| rounding.contains_key(&cycle))
    })
}

/// Whether an instruction computes floats that it rounds.
fn rounds(func: &Func, inst: Inst) -> bool {
    let data = func.inst(inst);
    if let Op::Reduce(op::Reduce { combine, .. }) | Op::Scan(op::Scan { combine, .. }) = data.op {
        return has_rounding(func, combine);
    }
    let [result] = data.results[..] else {
        return false;
    };
    let Some(dtype) = func.ty(result).dtype().filter(|dtype| dtype.is_float()) else {
        return false;
    };
    if matches!(data.op, Op::Function(_) | Op::Dot(_) | Op::DotPromoted(_)) {
        return true;
    }
    match data.op.elementwise() {
        Some(Elementwise::Unary(op)) => match op.op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not => false,
            UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => {
                true
            }
        },
        Some(Elementwise::Binary(op)) => !is_exact(op.op),
        Some(Elementwise::Cast(op)) => {
            let from = func.ty(op.x).dtype();
            !from.is_some_and(|from| from.is_float() && from.bits() < dtype.bits())
        }
        Some(Elementwise::Ternary(_) | Elementwise::Approximate(_) | Elementwise::InlinePtx(_)) => {
            true
        }
        Some(Elementwise::Compare(_) | Elementwise::Select(_) | Elementwise::Bitcast(_)) | None => {
            false
        }
    }
}

/// Whether an op on floats gives one of its operands.
fn is_exact(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => true,
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => false,
    }
}

/// What one loop breaks.
struct Breaks<'a> {
    func: &'a Func,
    recurrences: &'a Recurrences,
    rounding: &'a BTreeMap<u32, usize>,
    of: &'a Loop<'a>,
    facts: Facts<Walk>,
}

impl Breaks<'_> {
    fn at(&self, inst: Inst) -> Option<Diagnostic> {
        let (what, instead) = self.combined(inst).or_else(|| self.added(inst))?;
        Some(self.told(inst, &what, instead))
    }

    fn told(&self, inst: Inst, what: &str, instead: &'static str) -> Diagnostic {
        let message = format!("{what}, so its bits follow the tile size");
        let loc = self.func.inst(inst).loc.clone();
        Diagnostic::new(loc, message).note(instead).note(
            "a kernel that means one result for each tile size says `#[kernel(order = \"tile\")]`",
        )
    }

    /// An op that rounds, of what the loop carries and of what a tile has, taken together.
    fn combined(&self, inst: Inst) -> Option<(String, &'static str)> {
        let data = self.func.inst(inst);
        if !rounds(self.func, inst) {
            return None;
        }
        let is_closed = |&it: &Value| self.of.is_inside(it) && self.of.closes(it);
        let result = data.results.iter().copied().find(is_closed)?;
        let name = data.op.mnemonic();
        if let Op::Dot(op::Dot { accumulator, .. })
        | Op::DotPromoted(op::DotPromoted { accumulator, .. }) = data.op
        {
            let cycle = self.recurrences.of_value(result)?;
            let is_chain = self.rounding[&cycle] == 1;
            let goes_on = self.recurrences.share(accumulator, result);
            let walks = self.of.takes_together(&self.facts, inst);
            return (goes_on && walks && !is_chain).then(|| {
                let what =
                    format!("`{name}` goes on from what a loop carries and rounds elsewhere too");
                (what, CHAIN)
            });
        }
        let operands = data.op.operands();
        let carried = |&it: &usize| self.recurrences.share(operands[it], result);
        let first = (0..operands.len()).find(carried)?;
        let is_both =
            matches!(data.op, Op::Reduce(_) | Op::Scan(_)) && self.facts[operands[first]].together;
        let mut others = (0..operands.len()).filter(|&it| it != first);
        (is_both || others.any(|it| self.facts[operands[it]].together)).then(|| {
            let what =
                format!("`{name}` combines what a loop carries with what each tile has as a whole");
            (what, WHOLE)
        })
    }

    /// An op that takes together what iterations have added up position by position.
    fn added(&self, inst: Inst) -> Option<(String, &'static str)> {
        let op = self.func.op(inst);
        takes(self.func, op, &|value| self.facts[value].added).then(|| {
            let name = op.mnemonic();
            (
                format!("`{name}` takes what a loop has added up at each position of a tile"),
                POSITIONS,
            )
        })
    }
}

const WHOLE: &str = "give the tiles to a `sum_accumulator` by `.add(tile, axis)` and take its `.finish()` \
     after the loop; for another combine there is `accumulator`, for a product of matrices `acc = dot(a, b, acc)`";

const CHAIN: &str =
    "let the carried tile be changed by one `dot(a, b, acc)` alone, and scale it after the loop";

const CHOSEN: &str = "an accumulator takes a tile or does not by what a tile has as a whole";

const EACH: &str = "give it a tile in every iteration, by `select` or a mask one that changes nothing, such as zeros of a sum";

const POSITIONS: &str = "give the tiles to a `sum_accumulator` by `.add(tile, axis)` instead of adding them up \
     before";
