//! Products that stay under way while their loop goes on: sums are carried without waiting for them, an iteration
//! waits for those of the one before, and copies start once the tensor cores have work.

use std::collections::BTreeSet;

use super::read_back::insert_before;
use crate::ir::{Func, Inst, Op, Region, Type, Value, op};
use crate::passes::rewrite::replace_uses;

/// The most products of an iteration that stay under way.
const MOST: usize = 4;

/// The products from sums that a loop carries to the sums that it carries on.
struct Chain {
    /// Which of the carried values.
    position: usize,
    pend: Inst,
    settle: Inst,
}

/// The products of a loop that may stay under way.
pub(super) struct Overlap {
    products: Vec<Inst>,
    chains: Vec<Chain>,
}

impl Overlap {
    /// Those of a body, if all its products add to carried sums and read `slot`.
    pub(super) fn find(func: &Func, body: Region, slot: Value) -> Option<Self> {
        let products = products(func, body);
        let (chains, counts): (Vec<Chain>, Vec<usize>) = chains(func, body).into_iter().unzip();
        let of_slot = |&product: &Inst| {
            let Op::DotSlots(op) = func.op(product) else {
                return false;
            };
            [op.a_slot, op.b_slot] == [slot; 2]
        };
        let all = products.iter().all(of_slot) && (1..=MOST).contains(&products.len());
        let found: usize = counts.iter().sum();
        (all && found == products.len()).then_some(Self { products, chains })
    }

    /// Carries the sums of a loop as pending ones. `ahead` are the instructions of its body that start copies: they
    /// move behind the products.
    pub(super) fn apply(self, func: &mut Func, inst: Inst, body: Region, ahead: &BTreeSet<Inst>) {
        reorder(func, body, &self.products, ahead);
        for chain in self.chains {
            carry(func, inst, body, &chain);
        }
    }
}

/// The products of a region and of those in it.
fn products(func: &Func, region: Region) -> Vec<Inst> {
    let mut found = Vec::new();
    func.walk(region, &mut |inst| {
        if matches!(func.op(inst), Op::DotSlots(_)) {
            found.push(inst);
        }
    });
    found
}

/// Each chain of products of a body, with the number of its products.
fn chains(func: &Func, body: Region) -> Vec<(Chain, usize)> {
    let insts = func.region(body).insts.iter().copied();
    let insts: BTreeSet<Inst> = insts.collect();
    let parameters = &func.region(body).parameters[1..];
    let yielded = func.yielded(body);
    let positions = 0..parameters.len();
    let chain = |position: usize| {
        let pend = only_user(func, parameters[position])?;
        if !matches!(func.op(pend), Op::Pend(_)) {
            return None;
        }
        let (mut at, mut count) = (pend, 0);
        while !matches!(func.op(at), Op::Settle(_)) {
            at = only_user(func, func.inst(at).results[0])?;
            if !insts.contains(&at) {
                return None;
            }
            let more = matches!(func.op(at), Op::DotSlots(_));
            if !more && !matches!(func.op(at), Op::Settle(_)) {
                return None;
            }
            count += usize::from(more);
        }
        let sums = func.inst(at).results[0];
        only_user(func, sums)?;
        let found = Chain {
            position,
            pend,
            settle: at,
        };
        (yielded[position] == sums).then_some((found, count))
    };
    positions.filter_map(chain).collect()
}

/// The instruction that uses a value, if there is one use alone.
fn only_user(func: &Func, value: Value) -> Option<Inst> {
    let mut uses = func.all_insts().into_iter().flat_map(|inst| {
        let operands = func.op(inst).operands().into_iter();
        operands.filter(|&it| it == value).map(move |_| inst)
    });
    uses.next().filter(|_| uses.next().is_none())
}

/// Starts copies once the products of an iteration are under way, and waits then for those of the one before.
fn reorder(func: &mut Func, body: Region, products: &[Inst], ahead: &BTreeSet<Inst>) {
    let insts = std::mem::take(&mut func.region_mut(body).insts);
    let (copies, rest): (Vec<Inst>, Vec<Inst>) =
        insts.into_iter().partition(|inst| ahead.contains(inst));
    let last = rest.iter().rposition(|inst| products.contains(inst));
    let (before, after) = rest.split_at(last.map_or(0, |last| last + 1));
    let loc = func.inst(products[0]).loc.clone();
    let pending = products.len() as i64;
    let wait = Op::WaitProducts(op::WaitProducts { pending });
    let wait = func.add_inst(wait, &[], loc);
    func.region_mut(body).insts = [before, &copies, &[wait], after].concat();
}

/// Carries sums as pending ones, and settles them after the loop.
fn carry(func: &mut Func, inst: Inst, body: Region, chain: &Chain) {
    let parameter = func.region(body).parameters[1 + chain.position];
    let result = func.inst(inst).results[chain.position];
    let tile = func.ty(result);
    let (layout, loc) = (func.layout(result), func.inst(chain.settle).loc.clone());
    let pend_result = func.inst(chain.pend).results[0];
    let sums = func.ty(pend_result);
    let settled = func.inst(chain.settle).results[0];
    let Op::Settle(op::Settle { x }) = *func.op(chain.settle) else {
        return;
    };
    func.region_mut(body)
        .insts
        .retain(|it| ![chain.pend, chain.settle].contains(it));
    func.set_type(parameter, sums);
    replace_uses(func, &|value| match value {
        value if value == pend_result => parameter,
        value if value == settled => x,
        value => value,
    });
    let make = |func: &mut Func, op: Op, ty: Type| {
        let made = func.add_inst(op, &[ty], loc.clone());
        let value = func.inst(made).results[0];
        func.set_layout(value, layout);
        (made, value)
    };
    let Op::For(op) = func.op(inst) else { return };
    let first = op.init[chain.position];
    let (begin, begun) = make(func, Op::Pend(op::Pend { x: first }), sums);
    if let Op::For(op) = &mut func.inst_mut(inst).op {
        op.init[chain.position] = begun;
    }
    insert_before(func, inst, vec![begin]);
    let (end, last) = make(func, Op::Settle(op::Settle { x: result }), tile);
    replace_uses(func, &|value| if value == result { last } else { value });
    func.inst_mut(end).op = Op::Settle(op::Settle { x: result });
    func.set_type(result, sums);
    insert_after(func, inst, end);
}

fn insert_after(func: &mut Func, inst: Inst, after: Inst) {
    for region in func.all_regions() {
        let found = &mut func.region_mut(region).insts;
        if let Some(at) = found.iter().position(|&it| it == inst) {
            found.insert(at + 1, after);
            return;
        }
    }
}
