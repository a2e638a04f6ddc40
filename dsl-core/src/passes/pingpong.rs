//! Lets two groups of warps take the iterations of a loop in turns: while one rounds and stores the sums of its tile, the other
//! multiplies for the next one.
//!
//! They have one ring of slots, which copies fill for one tile after the other, whoever takes it. A group multiplies when the
//! other has begun all products of the tile before, and stores when that has stored: numbered barriers say so. What both use in
//! shared memory is the ring, or has one of them at a time. Source: the pingpong schedule of CUTLASS.

mod shape;

use std::collections::{BTreeMap, BTreeSet};

use super::dce::dce;
use super::duplicate::duplicate;
use super::groups::{GROUP, arrive, numbered, sync, with_nested};
use crate::builder::Builder;
use crate::ir::{
    AtomicOp, BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, RawOp, Region, Shape, Stage,
    Value, op,
};
use shape::{Turns, meets, numbers_of};

/// The warps of both groups.
const BOTH: u32 = 2 * GROUP;

/// Gives a loop of tiles a second group of warps, where one has the program or multiplies beside others that start copies. Each
/// iteration has one loop of products that take slots, all of them equally many, and nothing may end the program.
pub fn pingpong(func: &mut Func) {
    if let Some(turns) = Turns::find(func) {
        let owned = std::mem::replace(func, Func::new("", Stage::Lane));
        *func = turns.apply(owned);
        dce(func);
    }
}

impl Turns {
    fn apply(&self, func: Func) -> Func {
        let mut builder = Builder::resume(func);
        self.add_group(&mut builder);
        let outside = builder.enter(self.region);
        let insts = std::mem::take(&mut builder.func_mut().region_mut(self.region).insts);
        let tiles = insts.iter().position(|&inst| inst == self.tiles);
        let (before, rest) = insts.split_at(tiles.unwrap_or(0));
        builder.set_loc(builder.func().inst(self.tiles).loc.clone());
        let warp = builder.value(Op::WarpId(op::WarpId {}));
        let bound = builder.int32(GROUP as i32);
        let is_first = builder.lt(warp, bound);
        // A vote says that all lanes of a warp agree.
        let is_first = builder.value(Op::WarpReduce(op::WarpReduce {
            x: is_first,
            op: AtomicOp::Or,
        }));
        for &inst in before {
            begin(&mut builder, inst, is_first);
        }
        let mask = builder.int32(GROUP as i32 - 1);
        let own = builder.binary(BinaryOp::And, warp, mask);
        let zero = builder.int32(0);
        let leads = builder.compare(CompareOp::Eq, own, zero);
        let now = self.of_group(&mut builder, (&insts, before), own);
        let [products, results, _] = self.barriers;
        builder.if_else(
            is_first,
            |_| Vec::new(),
            |builder| {
                builder.emit(arrive(products[0], BOTH), &[]);
                builder.emit(arrive(results[0], BOTH), &[]);
                Vec::new()
            },
        );
        self.tiles(&mut builder, is_first, leads);
        builder
            .func_mut()
            .region_mut(self.region)
            .insts
            .extend(rest);
        for &inst in rest {
            renamed(builder.func_mut(), inst, &now);
        }
        builder.enter(outside);
        builder
            .finish()
            .expect("broken invariant: two groups of warps do what one did")
    }

    /// Appends what follows from the number of a warp in its group; returns what stands for what follows from that in all, and
    /// for all numbers of warps in the loop and behind it.
    fn of_group(
        &self,
        builder: &mut Builder,
        (insts, before): (&[Inst], &[Inst]),
        own: Value,
    ) -> BTreeMap<Value, Value> {
        let func = builder.func();
        let insts = insts.iter().flat_map(|&inst| with_nested(func, inst));
        let warps = insts.filter(|&inst| matches!(func.op(inst), Op::WarpId(_)));
        let warps = warps.map(|inst| (func.inst(inst).results[0], own));
        let mut now: BTreeMap<Value, Value> = warps.collect();
        for &inst in before {
            let func = builder.func();
            let nested = with_nested(func, inst).into_iter();
            let mut operands = nested.flat_map(|inst| func.op(inst).operands());
            if operands.any(|value| now.contains_key(&value)) && func.is_pure(inst) {
                let copied = duplicate(builder.func_mut(), &[inst], &mut now);
                let region = builder.region();
                let insts = &mut builder.func_mut().region_mut(region).insts;
                insts.extend(copied);
            }
        }
        renamed(builder.func_mut(), self.tiles, &now);
        now
    }

    /// Appends what a group counts of the iterations of the other, and changes the loop.
    fn tiles(&self, builder: &mut Builder, is_first: Value, leads: Value) {
        let Op::For(mut outer) = builder.func().op(self.tiles).clone() else {
            return;
        };
        let passed = self.passed(builder);
        let later = self.after(builder, [outer.init[0], outer.init[1]], passed);
        for (init, later) in outer.init.iter_mut().zip(later) {
            *init = builder.select(is_first, *init, later);
        }
        let step = builder.index(outer.step);
        let second = builder.add(outer.lower, step);
        let has_second = builder.compare(CompareOp::Lt, outer.lower, second);
        let second = builder.select(has_second, second, outer.upper);
        outer.lower = builder.select(is_first, outer.lower, second);
        outer.step *= 2;
        let region = outer.body;
        let [products, results, _] = self.barriers;
        builder.func_mut().inst_mut(self.tiles).op = Op::For(outer);
        let outside = builder.enter(region);
        let yielded = builder.func().yielded(region).to_vec();
        let mut insts = std::mem::take(&mut builder.func_mut().region_mut(region).insts);
        insts.pop();
        let func = builder.func();
        let mut stores = insts.iter().flat_map(|&inst| with_nested(func, inst));
        let copies = stores.any(|inst| matches!(func.op(inst), Op::CopyOut(_)));
        for (at, &inst) in insts.iter().enumerate() {
            if at == self.results {
                by_group(builder, is_first, |group| sync(results[group], BOTH));
            }
            if inst == self.products {
                by_group(builder, is_first, |group| sync(products[group], BOTH));
            }
            builder.func_mut().region_mut(region).insts.push(inst);
            if inst == self.products {
                by_group(builder, is_first, |group| arrive(products[1 - group], BOTH));
            }
        }
        if copies {
            let wait = Op::WaitCopiesOut(op::WaitCopiesOut { pending: 0 });
            builder.if_else(
                leads,
                |builder| {
                    builder.emit(wait, &[]);
                    Vec::new()
                },
                |_| Vec::new(),
            );
        }
        by_group(builder, is_first, |group| arrive(results[1 - group], BOTH));
        let values = self.after(builder, [yielded[0], yielded[1]], passed);
        builder.emit(
            Op::Yield(op::Yield {
                values: values.to_vec(),
            }),
            &[],
        );
        builder.enter(outside);
        self.own_barriers(builder, region, is_first);
    }

    /// Puts barriers of a group in place of those of all warps that multiply.
    fn own_barriers(&self, builder: &mut Builder, region: Region, is_first: Value) {
        let [_, _, own] = self.barriers;
        let insts = std::mem::take(&mut builder.func_mut().region_mut(region).insts);
        let outside = builder.enter(region);
        for inst in insts {
            for inner in builder.func().op(inst).regions() {
                self.own_barriers(builder, inner, is_first);
            }
            if meets(builder.func().op(inst)) {
                by_group(builder, is_first, |group| sync(own[group], GROUP));
            } else {
                builder.func_mut().region_mut(region).insts.push(inst);
            }
        }
        builder.enter(outside);
    }

    /// Counts the second group among the warps, and in what other roles say of them.
    fn add_group(&self, builder: &mut Builder) {
        builder.func_mut().warps += GROUP;
        let Some(roles) = self.roles else {
            return;
        };
        let mut others = Vec::new();
        if let Op::Roles(op) = &mut builder.func_mut().inst_mut(roles).op {
            op.warps[0].0 = BOTH;
            others.extend(op.warps[1..].iter().map(|&(_, region)| region));
        }
        let shared = numbers_of(builder.func(), self.region);
        for region in others {
            come_later(builder, region, &shared);
        }
    }

    /// By how many slots, and turns of all slots, an iteration goes on.
    fn passed(&self, builder: &mut Builder) -> [Value; 2] {
        let Op::For(inner) = builder.func().op(self.products).clone() else {
            return [builder.int32(0), builder.int32(0)];
        };
        let [one, step, slots] = [1, inner.step, self.slots].map(|number| {
            let literal = Literal::from_bits(DType::U64, number.cast_unsigned());
            builder.filled(literal, Shape::SCALAR)
        });
        let has_one = builder.compare(CompareOp::Lt, inner.lower, inner.upper);
        let span = builder.binary(BinaryOp::Sub, inner.upper, inner.lower);
        let span = builder.bitcast(span, DType::U64);
        let last = builder.binary(BinaryOp::Sub, span, one);
        let last = builder.raw(RawOp::Div, last, step);
        let count = builder.add(last, one);
        [RawOp::Rem, RawOp::Div].map(|op| {
            let passed = builder.raw(op, count, slots);
            let passed = builder.cast(passed, DType::I32);
            let none = builder.int32(0);
            builder.select(has_one, passed, none)
        })
    }

    /// The slot and the turn that come so much later.
    fn after(
        &self,
        builder: &mut Builder,
        [slot, turn]: [Value; 2],
        [slots, turns]: [Value; 2],
    ) -> [Value; 2] {
        let all = builder.int32(self.slots as i32);
        let [zero, one] = [0, 1].map(|number| builder.int32(number));
        let later = builder.add(slot, slots);
        let wraps = builder.compare(CompareOp::Ge, later, all);
        let over = builder.select(wraps, all, zero);
        let slot = builder.binary(BinaryOp::Sub, later, over);
        let carry = builder.select(wraps, one, zero);
        let turn = builder.add(turn, turns);
        [slot, builder.add(turn, carry)]
    }
}

/// Appends what comes before the loop, by the first group alone where all warps do it.
fn begin(builder: &mut Builder, inst: Inst, is_first: Value) {
    let func = builder.func();
    let is_met = numbered(func.op(inst)).is_some();
    let is_fence = matches!(func.op(inst), Op::Barrier(_) | Op::ProxyFence(_));
    let is_all = is_met || is_fence || func.is_pure(inst);
    let has_results = !func.inst(inst).results.is_empty();
    if is_met {
        with_group(builder.func_mut(), inst);
    }
    let append = |builder: &mut Builder| {
        let region = builder.region();
        builder.func_mut().region_mut(region).insts.push(inst);
        Vec::new()
    };
    if is_all || has_results {
        append(builder);
    } else {
        builder.if_else(is_first, append, |_| Vec::new());
    }
}

/// Takes a group more into account, before the warps of a region and at the barriers that these share with it.
fn come_later(builder: &mut Builder, region: Region, shared: &BTreeSet<(i64, i64)>) {
    let insts = std::mem::take(&mut builder.func_mut().region_mut(region).insts);
    let outside = builder.enter(region);
    for inst in insts {
        for inner in builder.func().op(inst).regions() {
            come_later(builder, inner, shared);
        }
        let op = builder.func().op(inst);
        if matches!(op, Op::WarpId(_)) {
            let lhs = builder.value(Op::WarpId(op::WarpId {}));
            let rhs = builder.int32(GROUP as i32);
            let op = BinaryOp::Sub;
            builder.func_mut().inst_mut(inst).op = Op::Binary(op::Binary { op, lhs, rhs });
        } else if numbered(op).is_some_and(|it| shared.contains(&it)) {
            with_group(builder.func_mut(), inst);
        }
        builder.func_mut().region_mut(region).insts.push(inst);
    }
    builder.enter(outside);
}

/// Counts a group more at a numbered barrier.
fn with_group(func: &mut Func, inst: Inst) {
    let op = &mut func.inst_mut(inst).op;
    if let Op::NamedSync(op::NamedSync { warps, .. })
    | Op::NamedArrive(op::NamedArrive { warps, .. }) = op
    {
        *warps += i64::from(GROUP);
    }
}

/// Puts values in place of others, in an instruction and all that it owns.
fn renamed(func: &mut Func, inst: Inst, now: &BTreeMap<Value, Value>) {
    for inst in with_nested(func, inst) {
        let op = &mut func.inst_mut(inst).op;
        op.map_operands(&mut |value| now.get(&value).copied().unwrap_or(value));
    }
}

/// What each group does.
fn by_group(builder: &mut Builder, is_first: Value, does: impl Fn(usize) -> Op) {
    let one = |op: Op| {
        |builder: &mut Builder| {
            builder.emit(op, &[]);
            Vec::new()
        }
    };
    builder.if_else(is_first, one(does(0)), one(does(1)));
}
