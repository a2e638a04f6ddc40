//! Which kernels one checked launch proves to be in bounds for good.
//!
//! Where no address, mask or branch around an access depends on a number that the kernel loads,
//! the accesses follow from the grid, the scalars and the lengths alone. A checked launch without
//! an error then proves every later launch with the same of these, whatever the memory holds, and
//! they run without checks.

use crate::entity::EntityMap;
use crate::ir::{Func, Inst, InstData, Op, Order, Region, Trait, Value, op};
use crate::target::Determinism;

/// Whether no access of a block function, compiled at this level, depends on memory.
pub fn accesses_ignore_memory(func: &Func, determinism: Determinism) -> bool {
    let mut analysis = Analysis {
        func,
        determinism,
        loaded: EntityMap::filled(func.value_count(), false),
        changed: true,
        dependent: false,
    };
    while analysis.changed {
        analysis.changed = false;
        analysis.region(func.body(), false);
    }
    !analysis.dependent
}

/// Which values follow from loaded numbers, or from an order that is left open. Grows until nothing
/// changes.
struct Analysis<'a> {
    func: &'a Func,
    determinism: Determinism,
    loaded: EntityMap<Value, bool>,
    changed: bool,
    dependent: bool,
}

impl Analysis<'_> {
    /// `controlled`: whether the region runs depends on memory.
    fn region(&mut self, region: Region, controlled: bool) {
        for &inst in &self.func.region(region).insts {
            self.inst(inst, controlled);
        }
    }

    fn inst(&mut self, inst: Inst, controlled: bool) {
        let data = self.func.inst(inst);
        match &data.op {
            Op::For(op::For {
                lower,
                upper,
                init,
                body,
                ..
            }) => {
                let trips = controlled || self.loaded[*lower] || self.loaded[*upper];
                let parameters = &self.func.region(*body).parameters;
                if let Some((&index, carried)) = parameters.split_first() {
                    self.mark(index, trips);
                    self.flow(init, carried, trips);
                    self.flow(self.func.yielded(*body), carried, trips);
                }
                self.region(*body, trips);
                self.flow(init, &data.results, trips);
                self.flow(self.func.yielded(*body), &data.results, trips);
            }
            Op::While(op::While { init, before, body }) => {
                let (condition, next) = match self.func.yielded(*before).split_first() {
                    Some((&condition, next)) => (self.loaded[condition], next),
                    None => (true, &[][..]),
                };
                let trips = controlled || condition;
                let [entry, work] =
                    [before, body].map(|region| &self.func.region(*region).parameters);
                self.flow(init, entry, trips);
                self.flow(self.func.yielded(*body), entry, trips);
                self.flow(next, work, trips);
                self.region(*before, trips);
                self.region(*body, trips);
                self.flow(next, &data.results, trips);
            }
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }) => {
                let taken = controlled || self.loaded[*condition];
                for region in [on_true, on_false] {
                    self.region(*region, taken);
                    self.flow(self.func.yielded(*region), &data.results, taken);
                }
            }
            Op::Load(op::Load { offsets, mask, .. }) => {
                self.access(controlled, *offsets, *mask);
                self.flow(&[], &data.results, true);
            }
            Op::Store(op::Store { offsets, mask, .. })
            | Op::AtomicReduce(op::AtomicReduce { offsets, mask, .. }) => {
                self.access(controlled, *offsets, *mask);
            }
            Op::Gather(op::Gather { x, indices, .. }) => {
                self.access(controlled, *indices, None);
                let any = self.loaded[*x] || self.loaded[*indices];
                self.flow(&[], &data.results, any);
            }
            op => self.combined(data, op, controlled),
        }
    }

    /// What holds for any op: a result follows from all operands, from what the regions yield, which
    /// may be captured, and from the order if the schedule chooses it. A combiner takes its own results.
    fn combined(&mut self, data: &InstData, op: &Op, controlled: bool) {
        let operands = op.operands();
        let loaded = operands.iter().any(|&operand| self.loaded[operand]);
        let accesses = op.is(Trait::reads) || op.is(Trait::writes) || op.is_checked();
        self.dependent |= accesses && (controlled || loaded);
        let mut any = loaded || op.is(Trait::reads) || self.is_open(op);
        for region in op.regions() {
            let yielded = self.func.yielded(region);
            any |= yielded.iter().any(|&value| self.loaded[value]);
        }
        for region in op.regions() {
            self.flow(&[], &self.func.region(region).parameters, any);
            self.region(region, controlled);
        }
        self.flow(&[], &data.results, any);
    }

    /// Whether checked and unchecked code may combine in another order, to another result.
    fn is_open(&self, op: &Op) -> bool {
        let (Op::Reduce(op::Reduce { order, .. }) | Op::Scan(op::Scan { order, .. })) = op else {
            return false;
        };
        *order == Order::Any || self.determinism == Determinism::NotGuaranteed
    }

    fn access(&mut self, controlled: bool, offsets: Value, mask: Option<Value>) {
        let masked = mask.is_some_and(|mask| self.loaded[mask]);
        self.dependent |= controlled || self.loaded[offsets] || masked;
    }

    /// Values that go from one list to the other, position by position; `all` marks every one.
    fn flow(&mut self, from: &[Value], to: &[Value], all: bool) {
        for (position, &target) in to.iter().enumerate() {
            let source = from
                .get(position)
                .is_some_and(|&source| self.loaded[source]);
            self.mark(target, all || source);
        }
    }

    fn mark(&mut self, value: Value, loaded: bool) {
        if loaded && !self.loaded[value] {
            self.loaded[value] = true;
            self.changed = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn check(body: &str, expected: bool) {
        let source = format!(
            "func @f block (%x: ptr<i64>, %y: ptr<i64> write, %n: i64) {{
               %zero = constant value=i64(0) : i64
               %v = load %x, %zero : i64
               {body}
             }}"
        );
        let func = parse(&source, "test.bir").expect("parses");
        let provable = accesses_ignore_memory(&func, Determinism::Exact);
        assert_eq!(provable, expected, "{source}");
        let relaxed = accesses_ignore_memory(&func, Determinism::NotGuaranteed);
        assert!(provable || !relaxed, "{source}");
    }

    #[test]
    fn stored_numbers_may_be_loaded_ones() {
        check("store %y, %n, %v", true);
    }

    #[test]
    fn loaded_offsets_and_masks_prove_nothing() {
        check("store %y, %v, %n", false);
        check(
            "%c = lt %v, %n : bool\n store %y, %zero, %n, mask=%c",
            false,
        );
        check("%o = add %n, %v : i64\n store %y, %o, %n", false);
    }

    #[test]
    fn branches_on_loaded_numbers_prove_nothing() {
        let branch = |condition: &str| {
            format!(
                "%c = lt {condition}, %n : bool
                 if %c () {{ store %y, %n, %n\n yield [] }} () {{ yield [] }}"
            )
        };
        check(&branch("%v"), false);
        check(&branch("%zero"), true);
    }

    #[test]
    fn whiles_on_loaded_numbers_prove_nothing() {
        let repeat = |limit: &str| {
            format!(
                "%r = while [%zero] (%a: i64) {{
                   %c = lt %a, {limit} : bool
                   yield [%c, %a]
                 }} (%b: i64) {{
                   %d = add %b, %n : i64
                   store %y, %d, %v
                   yield [%d]
                 }} : i64"
            )
        };
        check(&repeat("%v"), false);
        check(&repeat("%n"), true);
    }

    #[test]
    fn loops_carry_what_they_load() {
        let carried = |init: &str, offset: &str| {
            format!(
                "%s, %t = for %zero, %n, [{init}, %zero], step=1, stages=1 (%i: i64, %a: i64, %b: i64) {{
                   %w = load %x, %i : i64
                   %d = add %a, %w : i64
                   %e = add %b, %i : i64
                   yield [%d, %e]
                 }} : i64, i64
                 store %y, {offset}, %s"
            )
        };
        check(&carried("%zero", "%t"), true);
        check(&carried("%zero", "%s"), false);
        let bound = "for %zero, %v, [], step=1, stages=1 (%i: i64) { store %y, %i, %n\n yield [] }";
        check(bound, false);
    }

    #[test]
    fn combiners_hand_on_what_they_capture() {
        let combined = |op: &str, region: &str| {
            format!(
                "%i = arange start=0, end=2 : tile<2xi64>
                 %s = {op} [%i], axis=0, order=tree{region} : i64
                 store %y, %s, %n"
            )
        };
        let reduce = |yielded: &str| {
            combined(
                "reduce",
                &format!(" (%a: i64, %b: i64) {{ yield [{yielded}] }}"),
            )
        };
        check(&reduce("%a"), true);
        check(&reduce("%n"), true);
        check(&reduce("%v"), false);
        let chosen = "%c = lt %v, %a : bool
                      %d = if %c () { yield [%a] } () { yield [%b] } : i64
                      yield [%d]";
        check(
            &combined("reduce", &format!(" (%a: i64, %b: i64) {{ {chosen} }}")),
            false,
        );
        let scan = |yielded: &str| {
            format!(
                "%i = arange start=0, end=2 : tile<2xi64>
                 %s = scan [%i], axis=0, order=tree, direction=forward (%a: i64, %b: i64) {{
                   yield [{yielded}]
                 }} : tile<2xi64>
                 store %y, %s, %i"
            )
        };
        check(&scan("%b"), true);
        check(&scan("%v"), false);
    }

    /// Checked and unchecked code may combine in another order and so reach other numbers.
    #[test]
    fn an_open_order_proves_nothing() {
        let sum = |order: &str| {
            format!(
                "%i = arange start=0, end=2 : tile<2xi64>
                 %s = reduce [%i], axis=0, order={order} (%a: i64, %b: i64) {{
                   %d = sub %a, %b : i64
                   yield [%d]
                 }} : i64
                 store %y, %s, %n"
            )
        };
        check(&sum("tree"), true);
        check(&sum("any"), false);
    }
}
