//! Gives a program a group of warps more, of which one does nothing but start bulk copies.
//!
//! Where the first warp of a program fills the slots of a ring, it does so between its own products, at one place of an
//! iteration, and waits there for the slots to be free. A warp of its own fills each slot as soon as all have read it.
//! It runs what decides on the copies, all else is left to the others. Source: warp specialisation in CUTLASS.

mod shape;

use std::collections::BTreeMap;

use super::dce::dce;
use super::duplicate::duplicate;
use super::groups::{GROUP, sync};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Func, Inst, Literal, Op, Region, Stage, Trait, op};
use crate::target::Target;
use shape::Copies;

/// Moves the bulk copies that the first warp starts to a warp of their own, those that follow from numbers alone and wait for no
/// barrier of all warps.
pub fn produce(func: &mut Func, target: &Target) {
    if let Some(copies) = Copies::find(func, target) {
        let owned = std::mem::replace(func, Func::new("", Stage::Lane));
        *func = copies.apply(owned);
        dce(func);
    }
}

impl Copies {
    fn apply(&self, func: Func) -> Func {
        let mut builder = Builder::resume(func);
        let func = builder.func_mut();
        let warps = func.warps;
        func.warps += GROUP;
        let body = func.body();
        // Both roles name the same memory.
        let mut memory = Vec::new();
        take_memory(func, body, &mut memory);
        let before = func.all_insts();
        let own = std::mem::take(&mut func.region_mut(body).insts);
        let copied = duplicate(func, &own, &mut BTreeMap::new());
        func.region_mut(body).insts = copied;
        let twins: BTreeMap<Inst, Inst> = func.all_insts().into_iter().zip(before).collect();
        let [made, others] = self.barriers;
        number(func, |inst| match twins[&inst] == self.made {
            true => sync(made, warps + 1),
            false => sync(others, warps),
        });
        self.reduce(func, body, &|inst| {
            let inst = twins[&inst];
            inst == self.made || self.moved.contains(&inst)
        });
        let copies = std::mem::replace(&mut func.region_mut(body).insts, own);
        self.leave(func, body);
        number(func, |inst| match inst == self.made {
            true => sync(made, warps + 1),
            false => sync(others, warps),
        });
        let own = std::mem::take(&mut func.region_mut(body).insts);
        let holding = |insts: Vec<Inst>| {
            |builder: &mut Builder, _: &[_]| {
                let region = builder.region();
                builder.func_mut().region_mut(region).insts.extend(insts);
                Vec::new()
            }
        };
        let body = builder.region();
        builder.func_mut().region_mut(body).insts = memory;
        let own = builder.region_with(&[], holding(own));
        let others = builder.region_with(&[], |builder, _| {
            let warp = builder.value(Op::WarpId(op::WarpId {}));
            let first = builder.int32(warps.cast_signed());
            let is_first = builder.compare(CompareOp::Eq, warp, first);
            builder.if_else(
                is_first,
                |builder| holding(copies)(builder, &[]),
                |_| Vec::new(),
            );
            Vec::new()
        });
        let warps = vec![(warps, own), (GROUP, others)];
        builder.emit(Op::Roles(op::Roles { warps }), &[]);
        builder
            .finish()
            .expect("broken invariant: a warp of its own starts copies")
    }

    /// Removes from a region what has effects, unless it `stays`, and takes zero for the number of the warp.
    fn reduce(&self, func: &mut Func, region: Region, stays: &impl Fn(Inst) -> bool) {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        insts.retain(|&inst| {
            let op = func.op(inst);
            let kept = op.is(Trait::pure) || op.is(Trait::terminator) || stays(inst);
            kept || matches!(op, Op::For(_) | Op::If(_))
        });
        for &inst in &insts {
            if matches!(func.op(inst), Op::WarpId(_)) {
                let value = Literal::from_bits(DType::I32, 0);
                func.inst_mut(inst).op = Op::Constant(op::Constant { value });
            }
            for inner in func.op(inst).regions() {
                self.reduce(func, inner, stays);
            }
        }
        func.region_mut(region).insts = insts;
    }

    /// Removes what the new warp does.
    fn leave(&self, func: &mut Func, region: Region) {
        let mut insts = std::mem::take(&mut func.region_mut(region).insts);
        insts.retain(|inst| !self.moved.contains(inst));
        for &inst in &insts {
            for inner in func.op(inst).regions() {
                self.leave(func, inner);
            }
        }
        func.region_mut(region).insts = insts;
    }
}

/// Takes all that names shared memory out of a region.
fn take_memory(func: &mut Func, region: Region, memory: &mut Vec<Inst>) {
    let insts = std::mem::take(&mut func.region_mut(region).insts);
    let (allocs, insts): (Vec<Inst>, Vec<Inst>) = insts
        .into_iter()
        .partition(|&inst| matches!(func.op(inst), Op::Alloc(_)));
    memory.extend(allocs);
    for &inst in &insts {
        for inner in func.op(inst).regions() {
            take_memory(func, inner, memory);
        }
    }
    func.region_mut(region).insts = insts;
}

/// Puts numbered barriers in place of those of all warps.
fn number(func: &mut Func, numbered: impl Fn(Inst) -> Op) {
    for inst in func.all_insts() {
        if matches!(func.op(inst), Op::Barrier(_)) {
            func.inst_mut(inst).op = numbered(inst);
        }
    }
}
