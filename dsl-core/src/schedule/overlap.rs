//! Products that stay under way while their loop goes on: sums are carried without waiting for them, an iteration
//! waits for those of the one before, and copies start once the tensor cores have work: where warps release slots, into
//! those of the iteration before, otherwise into those of the one before that.

use std::collections::BTreeSet;

use super::read_back::{insert_after, insert_before};
use crate::ir::{Func, Inst, Op, Region, Type, Value, op};
use crate::passes::rewrite::replace_uses;

/// The most products of an iteration that stay under way.
const MOST: usize = 4;

/// The one product between sums that a loop carries and those that it carries on.
struct Chain {
    /// Which of the carried values.
    position: usize,
    pend: Inst,
    product: Inst,
    settle: Inst,
}

/// The products of a loop that may stay under way.
pub(super) struct Overlap {
    chains: Vec<Chain>,
}

/// What a pipeline adds to an iteration.
#[derive(Clone, Copy)]
pub(super) struct Added<'a> {
    /// The instructions that start copies.
    pub(super) ahead: &'a BTreeSet<Inst>,
    /// Whether those come behind what releases slots, and fill these; otherwise right behind the products of the iteration.
    pub(super) is_behind_releases: bool,
    /// What releases slots, once the products of the iteration before are waited for.
    pub(super) releases: &'a [Inst],
}

impl Overlap {
    /// Those of a body, if each of its products is the only one on a carried sum, and reads `slot`.
    pub(super) fn find(func: &Func, body: Region, slot: Value) -> Option<Self> {
        let products = products(func, body);
        let chains = chains(func, body);
        let of_slot = |op: &op::DotSlots| op.a_slot == Some(slot) && op.b_slot == slot;
        let all = products.iter().all(|&op| of_slot(op));
        let few = (1..=MOST).contains(&products.len());
        (all && few && chains.len() == products.len()).then_some(Self { chains })
    }

    /// Carries the sums of a loop as pending ones, and orders what was `added` to its body.
    pub(super) fn apply(self, func: &mut Func, inst: Inst, body: Region, added: Added<'_>) {
        let products: Vec<Inst> = self.chains.iter().map(|chain| chain.product).collect();
        reorder(func, body, &products, added);
        for chain in self.chains {
            carry(func, inst, body, &chain);
        }
    }
}

/// The products of a region and of those in it.
fn products(func: &Func, region: Region) -> Vec<&op::DotSlots> {
    let mut found = Vec::new();
    func.walk(region, &mut |inst| {
        if let Op::DotSlots(op) = func.op(inst) {
            found.push(op);
        }
    });
    found
}

/// The products of a body that add to carried sums, and that alone use them.
fn chains(func: &Func, body: Region) -> Vec<Chain> {
    let own = &func.region(body).insts;
    let yielded = func.yielded(body);
    let parameters = func.region(body).parameters[1..].iter().enumerate();
    let chain = |(position, &parameter): (usize, &Value)| {
        let pend = only_user(func, parameter)?;
        let product = only_user(func, *func.inst(pend).results.first()?)?;
        let settle = only_user(func, *func.inst(product).results.first()?)?;
        let ops = [pend, product, settle].map(|inst| func.op(inst));
        let chained = matches!(ops, [Op::Pend(_), Op::DotSlots(_), Op::Settle(_)]);
        let sums = *func.inst(settle).results.first()?;
        only_user(func, sums)?;
        let here = own.contains(&product) && yielded.get(position) == Some(&sums);
        (chained && here).then_some(Chain {
            position,
            pend,
            product,
            settle,
        })
    };
    parameters.filter_map(chain).collect()
}

/// The instruction that uses a value, if there is one use alone.
fn only_user(func: &Func, value: Value) -> Option<Inst> {
    let mut uses = func.all_insts().into_iter().flat_map(|inst| {
        let operands = func.op(inst).operands().into_iter();
        operands.filter(|&it| it == value).map(move |_| inst)
    });
    uses.next().filter(|_| uses.next().is_none())
}

/// Waits for the products of the iteration before once those of an iteration are under way.
fn reorder(func: &mut Func, body: Region, products: &[Inst], added: Added<'_>) {
    let insts = std::mem::take(&mut func.region_mut(body).insts);
    let (copies, rest): (Vec<Inst>, Vec<Inst>) = insts
        .into_iter()
        .partition(|inst| added.ahead.contains(inst));
    let last = rest.iter().rposition(|inst| products.contains(inst));
    let (before, after) = rest.split_at(last.map_or(0, |last| last + 1));
    let loc = func.inst(products[0]).loc.clone();
    let pending = products.len() as i64;
    let wait = Op::WaitProducts(op::WaitProducts { pending });
    let wait = func.add_inst(wait, &[], loc);
    let (begun, last) = match added.is_behind_releases {
        true => (&[][..], &copies[..]),
        false => (&copies[..], &[][..]),
    };
    func.region_mut(body).insts = [before, begun, &[wait], added.releases, last, after].concat();
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
    let Op::Settle(op::Settle { x, .. }) = *func.op(chain.settle) else {
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
    let settle = op::Settle {
        x: result,
        pending: 0,
    };
    let (end, last) = make(func, Op::Settle(settle.clone()), tile);
    replace_uses(func, &|value| if value == result { last } else { value });
    func.inst_mut(end).op = Op::Settle(settle);
    func.set_type(result, sums);
    insert_after(func, inst, end);
}
