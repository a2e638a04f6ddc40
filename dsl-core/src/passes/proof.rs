//! Which kernels one checked launch proves to be in bounds for good.
//!
//! Where no address, mask or branch around an access depends on a number that the kernel loads,
//! the accesses follow from the grid, the scalars and the lengths alone. A checked launch without
//! an error then proves every later launch with the same of these, whatever the memory holds, and
//! they run without checks.

use crate::entity::EntityMap;
use crate::ir::{Carried, Func, Inst, InstData, Op, Order, Region, Trait, Value, op};
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
        if let Some(deciding) = self.func.deciding(inst) {
            let controlled = controlled || deciding.iter().any(|&value| self.loaded[value]);
            self.control(inst, controlled);
        } else if let Some(access) = data.op.access() {
            self.access(controlled, access.offsets, access.mask);
            self.mark_all(&data.results, true);
        } else if let Op::Gather(op::Gather { x, indices, .. }) = data.op {
            self.access(controlled, indices, None);
            self.mark_all(&data.results, self.loaded[x] || self.loaded[indices]);
        } else {
            self.combined(data, controlled);
        }
    }

    /// `controlled`: whether it depends on memory which regions run and how often.
    fn control(&mut self, inst: Inst, controlled: bool) {
        self.mark_all(&self.func.inst(inst).results, controlled);
        for region in self.func.op(inst).regions() {
            self.mark_all(&self.func.region(region).parameters, controlled);
            self.region(region, controlled);
        }
        for (value, sources) in self.func.carried(inst).iter().flat_map(Carried::flows) {
            self.mark(value, sources.iter().any(|&source| self.loaded[source]));
        }
    }

    /// What holds for any op: a result follows from all operands, from what the regions yield, which
    /// may be captured, and from the order if the schedule chooses it. A combiner takes its own results.
    fn combined(&mut self, data: &InstData, controlled: bool) {
        let op = &data.op;
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
            self.mark_all(&self.func.region(region).parameters, any);
            self.region(region, controlled);
        }
        self.mark_all(&data.results, any);
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

    fn mark_all(&mut self, values: &[Value], loaded: bool) {
        values.iter().for_each(|&value| self.mark(value, loaded));
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
