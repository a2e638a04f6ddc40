//! What lanes compute while products are under way. LLVM moves arithmetic behind a wait that does not need it, and the
//! assembler the wait before the arithmetic, so both are told.

use std::collections::{BTreeMap, BTreeSet};

use exactile_core::ir::{Func, Inst, Op, Value, op};

/// What waits for products are told of other values.
pub(super) struct Beside {
    /// For each wait what lanes compute before it and use after it.
    pub(super) computed: BTreeMap<Inst, Vec<Value>>,
    /// For each wait what the products that it waits for read from registers until then.
    pub(super) held: BTreeMap<Inst, Vec<Value>>,
    /// The waits behind which several branches use what is made of the sums.
    pub(super) parted: BTreeSet<Inst>,
}

impl Beside {
    pub(super) fn of(func: &Func) -> Self {
        Self {
            computed: computed_beside(func),
            held: held_until(func),
            parted: parted(func),
        }
    }
}

/// For each wait for sums, the tiles that are computed between the product and the wait, and used after it.
fn computed_beside(func: &Func) -> BTreeMap<Inst, Vec<Value>> {
    let mut found = BTreeMap::new();
    for region in func.all_regions() {
        let insts = &func.region(region).insts;
        for (at, &inst) in insts.iter().enumerate() {
            let Op::Settle(op::Settle { x, .. }) = *func.op(inst) else {
                continue;
            };
            // The wait before this one is behind them already.
            if at > 0 && found.contains_key(&insts[at - 1]) {
                continue;
            }
            let product = insts[..at].iter().rposition(|&it| gives(func, it, x));
            let Some(product) = product else { continue };
            let mut used = BTreeSet::new();
            for &later in &insts[at + 1..] {
                used.extend(func.op(later).operands());
                for inner in func.op(later).regions() {
                    func.walk(inner, &mut |it| used.extend(func.op(it).operands()));
                }
            }
            let beside = insts[product + 1..at]
                .iter()
                .filter(|&&it| func.is_pure(it));
            let made = beside.flat_map(|&it| func.inst(it).results.iter().copied());
            let made = made.filter(|&it| !func.ty(it).is_scalar() && used.contains(&it));
            let made: Vec<Value> = made.collect();
            if !made.is_empty() {
                found.insert(inst, made);
            }
        }
    }
    found
}

/// For each wait for products, what those that it waits for read from registers: nothing may be written there before.
fn held_until(func: &Func) -> BTreeMap<Inst, Vec<Value>> {
    let mut found = BTreeMap::new();
    for region in func.all_regions() {
        let mut begun: Vec<Option<Value>> = Vec::new();
        for &inst in &func.region(region).insts {
            if let Op::GroupMma(op::GroupMma { a, a_offset, .. }) = *func.op(inst) {
                begun.push(a_offset.is_none().then_some(a));
            } else if let Op::Settle(op::Settle { pending, .. })
            | Op::WaitProducts(op::WaitProducts { pending }) = *func.op(inst)
            {
                let over = begun.len().saturating_sub(pending as usize);
                let held: Vec<Value> = begun.drain(..over).flatten().collect();
                if !held.is_empty() {
                    found.insert(inst, held);
                }
            }
        }
    }
    found
}

/// The waits of which branches of one `if` use what arithmetic makes of the sums. The assembler (`ptxas` 13.5) lets no product be under
/// way before such a wait, unless it begins a block of instructions.
fn parted(func: &Func) -> BTreeSet<Inst> {
    let mut found = BTreeSet::new();
    for region in func.all_regions() {
        let insts = &func.region(region).insts;
        for (at, &inst) in insts.iter().enumerate() {
            if !matches!(func.op(inst), Op::Settle(_)) {
                continue;
            }
            let mut made: BTreeSet<Value> = func.inst(inst).results.iter().copied().collect();
            for &later in &insts[at + 1..] {
                let op = func.op(later);
                let mut branches = 0;
                for inner in op.regions() {
                    let mut used = false;
                    func.walk(inner, &mut |it| {
                        used |= func.op(it).operands().iter().any(|it| made.contains(it));
                    });
                    branches += usize::from(used);
                }
                if branches > 1 {
                    found.insert(inst);
                }
                if func.is_pure(later) && op.operands().iter().any(|it| made.contains(it)) {
                    made.extend(&func.inst(later).results);
                }
            }
        }
    }
    found
}

/// Whether an instruction is the product that adds to these sums.
fn gives(func: &Func, inst: Inst, sums: Value) -> bool {
    matches!(func.op(inst), Op::GroupMma(_)) && func.inst(inst).results.contains(&sums)
}
