//! Exponentials of a tile in parts. The assembler orders what does not depend on each other by how much follows it, so that of a tile all
//! multiplications come first and all exponentials last, one after the other, each of which keeps the unit for eight clocks. Where blocks
//! of instructions end between parts, the arithmetic of a part fills the clocks that the exponentials of the part before leave.

use std::collections::BTreeMap;

use exactile_core::ir::op::{Elementwise, LaneOp};
use exactile_core::ir::{Inst, Op, Region, Value, op};
use exactile_core::verify::LaneFunc;

use super::Emitter;
use super::value::Elements;
use crate::error::Result;

/// Elements of a part: their exponentials keep the unit for 128 clocks, where the arithmetic before takes 16 for each of its instructions.
const PART: usize = 16;

/// The instructions that are emitted in parts: for the first of them how many there are.
#[derive(Default)]
pub(super) struct Parts(BTreeMap<Inst, usize>);

impl Parts {
    /// Those of a function: where groups of warps multiply, what leads to one of the approximations of a device and nowhere else.
    pub(super) fn of(func: &LaneFunc) -> Self {
        let insts = func.all_insts();
        if !insts.iter().any(|&it| is_product(func, it)) {
            return Self::default();
        }
        let mut uses: BTreeMap<Value, usize> = BTreeMap::new();
        for inst in insts {
            for operand in func.op(inst).operands() {
                *uses.entry(operand).or_default() += 1;
            }
        }
        let mut found = BTreeMap::new();
        for region in func.all_regions() {
            found.extend(chains(func, region, &uses));
        }
        Self(found)
    }

    /// How many instructions are emitted in parts, of which this is the first one.
    pub(super) fn from(&self, first: Inst) -> Option<usize> {
        self.0.get(&first).copied()
    }
}

fn is_product(func: &LaneFunc, inst: Inst) -> bool {
    matches!(func.op(inst), Op::GroupMma(_))
}

/// Those of a region.
fn chains(func: &LaneFunc, region: Region, uses: &BTreeMap<Value, usize>) -> Vec<(Inst, usize)> {
    let insts = &func.region(region).insts;
    if !insts.iter().any(|&it| is_product(func, it)) {
        return Vec::new();
    }
    let leads_on = |&at: &usize| {
        let elementwise = matches!(func.lane_op(insts[at]), LaneOp::Elementwise(op) if !matches!(op, Elementwise::InlinePtx(_)));
        let next = func.op(insts[at + 1]).operands();
        let made = &func.inst(insts[at]).results;
        elementwise && made.iter().all(|it| next.contains(it) && uses[it] == 1)
    };
    let approximates = |&at: &usize| {
        let Op::Approximate(op::Approximate { x, .. }) = func.op(insts[at]) else {
            return false;
        };
        let elements = func.ty(*x).shape.elements();
        elements > PART && elements.is_multiple_of(PART)
    };
    let ends = (0..insts.len()).filter(approximates);
    let chain = |end: usize| {
        let first = (0..end).rev().take_while(leads_on).last()?;
        Some((insts[first], end + 1 - first))
    };
    ends.filter_map(chain).collect()
}

impl<'c> Emitter<'_, 'c> {
    /// Emits instructions of which each takes what the one before it gives, and the last of which is an approximation.
    pub(super) fn in_parts(&mut self, insts: &[Inst]) -> Result<()> {
        let Some((&last, before)) = insts.split_last() else {
            return Ok(());
        };
        let func = self.func;
        let made = |it: &Inst| func.inst(*it).results[0];
        let inner: Vec<Value> = before.iter().map(made).collect();
        let operands = insts.iter().flat_map(|&it| func.op(it).operands());
        let taken = operands.filter(|it| !inner.contains(it));
        let taken: BTreeMap<Value, Elements<'c>> = taken.map(|it| (it, self.get(it))).collect();
        let mut all = Vec::new();
        for start in (0..self.result_elements(last)).step_by(PART) {
            for (&value, whole) in &taken {
                self.values[value] = whole[start..start + PART].to_vec();
            }
            for &inst in before {
                self.inst(inst)?;
            }
            self.behind(&self.all_words(Some(&func.op(last).operands()))?)?;
            self.inst(last)?;
            all.extend(self.get(made(&last)));
        }
        for (value, whole) in taken {
            self.values[value] = whole;
        }
        self.define(last, all);
        Ok(())
    }
}
