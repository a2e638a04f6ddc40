//! Products of one tile in registers with tiles that lie side by side in shared memory, which one instruction computes: their
//! columns together.

use std::collections::BTreeMap;

use exactile_core::ir::operand::may_have_columns;
use exactile_core::ir::{BinaryOp, Func, Inst, Op, Value, op};

/// Log2 of the columns of a chunk.
const CHUNK_BITS: u32 = 6;

/// Products that begin together.
#[derive(Default)]
pub(super) struct Adjoined {
    /// For each second product of a pair the first one.
    pub(super) firsts: BTreeMap<Inst, Inst>,
    /// For each wait behind such products how many instructions' it leaves under way.
    pending: BTreeMap<Inst, i64>,
}

impl Adjoined {
    /// The pairs of a function: between two such products nothing happens but arithmetic, which does not take the first one's
    /// sums.
    pub(super) fn of(func: &Func) -> Self {
        let mut firsts = BTreeMap::new();
        for region in func.all_regions() {
            let mut last: Option<Inst> = None;
            for &inst in &func.region(region).insts {
                if let Op::GroupMma(second) = func.op(inst) {
                    let first = last.filter(|&first| lies_behind(func, first, second));
                    firsts.extend(first.map(|first| (inst, first)));
                    // A product is of one pair at most.
                    last = Some(inst).filter(|_| first.is_none());
                } else if !func.is_pure(inst) && !matches!(func.op(inst), Op::Pend(_)) {
                    last = None;
                }
            }
        }
        let pending = match firsts.is_empty() {
            true => BTreeMap::new(),
            false => pending_groups(func, &firsts),
        };
        Self { firsts, pending }
    }

    /// How many groups of products a wait leaves under way that leaves so many products.
    pub(super) fn pending(&self, wait: Inst, products: i64) -> i64 {
        self.pending.get(&wait).copied().unwrap_or(products)
    }

    /// Whether there are such products.
    pub(super) fn any(&self) -> bool {
        !self.firsts.is_empty()
    }

    /// Whether a product begins with a later one.
    pub(super) fn is_first(&self, inst: Inst) -> bool {
        self.firsts.values().any(|&first| first == inst)
    }
}

/// For each wait the groups that begin after all of its products have: two products that begin together are one.
fn pending_groups(func: &Func, firsts: &BTreeMap<Inst, Inst>) -> BTreeMap<Inst, i64> {
    let mut found = BTreeMap::new();
    for region in func.all_regions() {
        let mut begun: Vec<Inst> = Vec::new();
        for &inst in &func.region(region).insts {
            if let Op::GroupMma(_) = func.op(inst) {
                begun.push(inst);
            } else if let Op::Settle(op::Settle { pending, .. })
            | Op::WaitProducts(op::WaitProducts { pending }) = *func.op(inst)
            {
                let left = &begun[begun.len().saturating_sub(pending as usize)..];
                let pairs = left.iter().filter(|it| firsts.contains_key(it));
                found.insert(inst, pending - pairs.count() as i64);
            }
        }
    }
    found
}

/// Whether the columns of the second product follow those of the first in shared memory.
fn lies_behind(func: &Func, first: Inst, second: &op::GroupMma) -> bool {
    let sums = func.inst(first).results[0];
    let Op::GroupMma(first) = func.op(first) else {
        return false;
    };
    let alike = first.a == second.a
        && first.b == second.b
        && first.products == second.products
        && first.transposed == second.transposed
        && first.chunks[1] == second.chunks[1]
        && first.precision == second.precision
        && second.accumulator != sums;
    let held = first.a_offset.is_none() && second.a_offset.is_none();
    let fits = func
        .ty(first.b)
        .pointee()
        .is_some_and(|(dtype, _)| may_have_columns(dtype, first.columns + second.columns));
    let whole = first.transposed[1] == 1 && first.columns % (1 << CHUNK_BITS) == 0;
    let distance = (first.columns >> CHUNK_BITS) * i64::from(first.chunks[1]);
    alike && held && whole && fits && is_sum(func, second.b_offset, first.b_offset, distance)
}

/// Whether a value is the sum of another and a number.
fn is_sum(func: &Func, sum: Value, x: Value, number: i64) -> bool {
    let definitions = func.definitions();
    let op = |value: Value| definitions[value].map(|inst| func.op(inst));
    let is_number = |value: Value| matches!(op(value), Some(Op::Constant(op)) if op.value.integer() == Some(i128::from(number)));
    match op(sum) {
        Some(&Op::Binary(op::Binary {
            op: BinaryOp::Add,
            lhs,
            rhs,
        })) => lhs == x && is_number(rhs) || rhs == x && is_number(lhs),
        _ => false,
    }
}
