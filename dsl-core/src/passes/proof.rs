//! Which kernels one checked launch proves to be in bounds for good, and for which others.
//!
//! Where no address, mask or branch around an access depends on a number that the kernel loads,
//! the accesses follow from the grid, the lengths and some of the scalars alone. A checked launch without
//! an error then proves every later launch with the same of these, whatever the memory and the other scalars hold, and
//! they run without checks.

use crate::ir::dataflow::{Analysis, Facts, solve};
use crate::ir::{Func, Inst, Op, Order, Region, Trait, Value, op};
use crate::launch::Numbers;
use crate::target::Determinism;

/// The scalars that the accesses of a block function, compiled at this level, follow from, with the grid and the lengths; so does
/// whether an assertion holds. Nothing where they depend on memory.
pub fn numbers_of_accesses(func: &Func, determinism: Determinism) -> Option<Numbers> {
    let sources = solve(func, &Sourced { func, determinism });
    let mut accesses = Accesses {
        func,
        sources,
        found: Sources::default(),
    };
    accesses.add_region(func.body(), Sources::default());
    (!accesses.found.loaded).then_some(accesses.found.numbers)
}

/// What a value follows from, but for the grid and the lengths.
#[derive(Clone, Copy, PartialEq, Default)]
struct Sources {
    /// Whether it follows from loaded numbers, or from an order that is left open.
    loaded: bool,
    numbers: Numbers,
}

impl Sources {
    const LOADED: Self = Self {
        loaded: true,
        numbers: Numbers::ALL,
    };

    fn and(self, other: Self) -> Self {
        Self {
            loaded: self.loaded || other.loaded,
            numbers: self.numbers.and(other.numbers),
        }
    }
}

/// What each value follows from.
struct Sourced<'a> {
    func: &'a Func,
    determinism: Determinism,
}

impl Analysis for Sourced<'_> {
    type Fact = Sources;

    fn unknown(&self, _: Value) -> Sources {
        Sources::LOADED
    }

    fn join(&self, _: Value, a: &Sources, b: &Sources) -> Sources {
        a.and(*b)
    }

    /// A loop may hand numbers round for long.
    fn give_up(&self, _: Value, fact: Sources) -> Sources {
        Sources {
            numbers: Numbers::ALL,
            ..fact
        }
    }

    fn argument(&self, position: usize, _: Value) -> Sources {
        Sources {
            loaded: false,
            numbers: Numbers::of(position),
        }
    }

    /// What holds for any op: a result follows from all operands, from what the regions yield, which
    /// may be captured, and from the order if the schedule chooses it.
    fn result(&self, sources: &Facts<Sources>, inst: Inst, result: Value) -> Sources {
        let regions = self.func.op(inst).regions().into_iter();
        let yielded = regions.map(|region| all(sources, self.func.yielded(region)));
        yielded.fold(self.combined(sources, inst, result), Sources::and)
    }

    fn index(&self, sources: &Facts<Sources>, of: &op::For, _: Value) -> Sources {
        sources[of.lower].and(sources[of.upper])
    }

    fn combined(&self, sources: &Facts<Sources>, inst: Inst, _: Value) -> Sources {
        let op = self.func.op(inst);
        if op.access().is_some() || op.is(Trait::reads) || self.is_open(op) {
            return Sources::LOADED;
        }
        all(sources, &op.operands())
    }

    fn decided(&self, sources: &Facts<Sources>, by: Value) -> Option<Sources> {
        Some(sources[by])
    }
}

impl Sourced<'_> {
    /// Whether checked and unchecked code may combine in another order, to another result.
    fn is_open(&self, op: &Op) -> bool {
        let relaxed = self.determinism == Determinism::NotGuaranteed;
        matches!(op, Op::Reduce(op::Reduce { order, .. }) | Op::Scan(op::Scan { order, .. })
            if *order == Order::Any || relaxed)
    }
}

fn all(sources: &Facts<Sources>, values: &[Value]) -> Sources {
    let each = values.iter().map(|&value| sources[value]);
    each.fold(Sources::default(), Sources::and)
}

/// The accesses of a function of whose values it is known what they follow from.
struct Accesses<'a> {
    func: &'a Func,
    sources: Facts<Sources>,
    /// What those that were gone through follow from.
    found: Sources,
}

impl Accesses<'_> {
    /// Adds the accesses of a region; `controlled`: what decides whether it runs.
    fn add_region(&mut self, region: Region, controlled: Sources) {
        let func = self.func;
        for &inst in &func.region(region).insts {
            self.add(inst, controlled);
            let deciding = func.deciding(inst).unwrap_or_default();
            let inside = controlled.and(all(&self.sources, &deciding));
            for region in func.op(inst).regions() {
                self.add_region(region, inside);
            }
        }
    }

    fn add(&mut self, inst: Inst, controlled: Sources) {
        let op = self.func.op(inst);
        let moved_by = match op.placed_by() {
            Some(values) => values,
            None if op.is(Trait::reads) || op.is(Trait::writes) => op.operands(),
            None => return,
        };
        let moved = all(&self.sources, &moved_by);
        self.found = self.found.and(controlled).and(moved);
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
        let provable = numbers_of_accesses(&func, Determinism::Exact).is_some();
        assert_eq!(provable, expected, "{source}");
        let relaxed = numbers_of_accesses(&func, Determinism::NotGuaranteed).is_some();
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

    /// The numbers of `a` to `e` that accesses follow from.
    fn counting(body: &str) -> String {
        let source = format!(
            "func @f block (%y: ptr<i64> write, %a: i64, %b: i64, %c: i64, %d: i64, %e: f32) {{
               %zero = constant value=i64(0) : i64
               {body}
             }}"
        );
        let func = parse(&source, "test.bir").expect("parses");
        let numbers = numbers_of_accesses(&func, Determinism::Exact).expect("ignores memory");
        let names = ["a", "b", "c", "d", "e"].into_iter().enumerate();
        let names = names.filter(|&(index, _)| numbers.has(index + 1));
        names.map(|(_, name)| name).collect()
    }

    #[test]
    fn numbers_that_are_stored_do_not_count() {
        assert_eq!(counting(""), "");
        assert_eq!(counting("store %y, %zero, %b"), "");
        assert_eq!(counting("%o = add %a, %d : i64\n store %y, %o, %b"), "ad");
        let masked = "%f = constant value=f32(2) : f32
                      %m = lt %e, %f : bool
                      store %y, %zero, %b, mask=%m";
        assert_eq!(counting(masked), "e");
        let converted = "%o = cast %e : i64\n store %y, %o, %e";
        assert_eq!(counting(converted), "e");
    }

    #[test]
    fn what_decides_whether_an_access_runs_counts() {
        let branch = |inside: &str| {
            format!(
                "%l = lt %a, %b : bool
                 %o = if %l () {{ {inside}\n yield [%c] }} () {{ yield [%d] }} : i64"
            )
        };
        assert_eq!(counting(&branch("")), "");
        assert_eq!(counting(&branch("store %y, %zero, %d")), "ab");
        let behind = branch("") + "\n store %y, %o, %d";
        assert_eq!(counting(&behind), "abcd");
        let repeat = "%r = while [%a] (%i: i64) {
                        %l = lt %i, %b : bool
                        yield [%l, %i]
                      } (%j: i64) {
                        %n = add %j, %c : i64
                        yield [%n]
                      } : i64";
        assert_eq!(counting(repeat), "");
        assert_eq!(counting(&format!("{repeat}\n store %y, %r, %d")), "abc");
        let inside = repeat.replace("yield [%n]", "store %y, %zero, %d\n yield [%n]");
        assert_eq!(counting(&inside), "abc");
        let nested = "for %a, %b, [], step=1, stages=1 (%i: i64) {
                        for %zero, %c, [], step=1, stages=1 (%j: i64) { store %y, %zero, %d\n yield [] }
                        yield []
                      }";
        assert_eq!(counting(nested), "abc");
        assert_eq!(
            counting("%l = lt %a, %c : bool\n assert %l, message=\"\""),
            "ac"
        );
    }

    /// A number that a loop hands on once an iteration counts however late it arrives.
    #[test]
    fn loops_hand_numbers_on() {
        let turns = |count: usize| {
            let list = |name: &dyn Fn(usize) -> String| {
                let names: Vec<String> = (0..count).map(name).collect();
                names.join(", ")
            };
            let inits = list(&|i| if i == 0 { "%a" } else { "%zero" }.to_string());
            let parameters = list(&|i| format!("%p{i}: i64"));
            let next = list(&|i| match i {
                0 => "%b".to_string(),
                _ => format!("%p{}", i - 1),
            });
            let results = list(&|i| format!("%r{i}"));
            let types = list(&|_| "i64".to_string());
            counting(&format!(
                "{results} = for %zero, %c, [{inits}], step=1, stages=1 (%i: i64, {parameters}) {{
                   yield [{next}]
                 }} : {types}
                 store %y, %r{}, %d",
                count - 1
            ))
        };
        for count in [1, 2, 7, 12, 30] {
            assert_eq!(turns(count), "abc", "{count}");
        }
    }
}
