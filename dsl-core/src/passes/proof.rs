//! Which kernels one checked launch proves to be in bounds for good.
//!
//! Where no address, mask or branch around an access depends on a number that the kernel loads,
//! the accesses follow from the grid, the scalars and the lengths alone. A checked launch without
//! an error then proves every later launch with the same of these, whatever the memory holds, and
//! they run without checks.

use crate::ir::dataflow::{Analysis, Facts, solve};
use crate::ir::{Func, Inst, Op, Order, Region, Trait, Value, op};
use crate::target::Determinism;

/// Whether no access of a block function, compiled at this level, depends on memory.
pub fn accesses_ignore_memory(func: &Func, determinism: Determinism) -> bool {
    let loaded = solve(func, &Loaded { func, determinism });
    !Accesses { func, loaded }.depend_in(func.body(), false)
}

/// Which values follow from loaded numbers, or from an order that is left open.
struct Loaded<'a> {
    func: &'a Func,
    determinism: Determinism,
}

impl Analysis for Loaded<'_> {
    type Fact = bool;

    fn unknown(&self, _: Value) -> bool {
        true
    }

    fn join(&self, _: Value, a: &bool, b: &bool) -> bool {
        *a || *b
    }

    fn argument(&self, _: usize, _: Value) -> bool {
        false
    }

    /// What holds for any op: a result follows from all operands, from what the regions yield, which
    /// may be captured, and from the order if the schedule chooses it.
    fn result(&self, loaded: &Facts<bool>, inst: Inst, result: Value) -> bool {
        let regions = self.func.op(inst).regions().into_iter();
        let mut yielded = regions.flat_map(|region| self.func.yielded(region));
        self.combined(loaded, inst, result) || yielded.any(|&value| loaded[value])
    }

    fn index(&self, loaded: &Facts<bool>, of: &op::For, _: Value) -> bool {
        loaded[of.lower] || loaded[of.upper]
    }

    fn combined(&self, loaded: &Facts<bool>, inst: Inst, _: Value) -> bool {
        let op = self.func.op(inst);
        let reads = op.access().is_some() || op.is(Trait::reads);
        reads || self.is_open(op) || any(loaded, &op.operands())
    }

    fn decided(&self, loaded: &Facts<bool>, by: Value) -> Option<bool> {
        Some(loaded[by])
    }
}

impl Loaded<'_> {
    /// Whether checked and unchecked code may combine in another order, to another result.
    fn is_open(&self, op: &Op) -> bool {
        let relaxed = self.determinism == Determinism::NotGuaranteed;
        matches!(op, Op::Reduce(op::Reduce { order, .. }) | Op::Scan(op::Scan { order, .. })
            if *order == Order::Any || relaxed)
    }
}
fn any(loaded: &Facts<bool>, values: &[Value]) -> bool {
    values.iter().any(|&value| loaded[value])
}

/// The accesses of a function of which it is known what follows from loaded numbers.
struct Accesses<'a> {
    func: &'a Func,
    loaded: Facts<bool>,
}

impl Accesses<'_> {
    /// Whether an access in the region depends on memory; `controlled`: whether the region runs does.
    fn depend_in(&self, region: Region, controlled: bool) -> bool {
        let insts = &self.func.region(region).insts;
        insts.iter().any(|&inst| {
            let deciding = self.func.deciding(inst).unwrap_or_default();
            let inside = controlled || any(&self.loaded, &deciding);
            let regions = self.func.op(inst).regions();
            self.depends(inst, controlled)
                || regions
                    .into_iter()
                    .any(|region| self.depend_in(region, inside))
        })
    }

    fn depends(&self, inst: Inst, controlled: bool) -> bool {
        let op = self.func.op(inst);
        let moved_by = match op.placed_by() {
            Some(values) => values,
            None if op.is(Trait::reads) || op.is(Trait::writes) => op.operands(),
            None => return false,
        };
        controlled || any(&self.loaded, &moved_by)
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
    fn loaded_origins_and_extents_prove_nothing() {
        let tile = |extent: &str, origin: &str| {
            format!(
                "%t = tensor %y, [{extent}], [%n] : tensor<i64, 1>
                 %s = splat %v : tile<2xi64>
                 tile_store %t, [{origin}], %s"
            )
        };
        check(&tile("%n", "%zero"), true);
        check(&tile("%n", "%v"), false);
        check(&tile("%v", "%zero"), false);
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
