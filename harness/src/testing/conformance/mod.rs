//! The cases of Triton's test suite: each check runs a group of them wherever kernels run, compares the bits, and
//! judges them by plain Rust. The page `docs/conformance.md` lists every case with what became of it.

mod arithmetic;
mod atomics;
mod constructs;
mod control;
mod forms;
mod held;
mod judge;
mod memory;
mod products;
mod reductions;
mod runtime_table;
mod shapes;
mod table;
mod wide;

use std::fmt::Write;

use exactile::prelude::*;
use exactile::{Error, Result};
use rayon::prelude::*;

pub use held::{HELD, Held};
use judge::Judge;
pub use products::philox;

/// Calls a function for each type.
macro_rules! each {
    ($function:ident($judge:expr): $($T:ty)*) => {
        $($function::<$T>($judge)?;)*
    };
}
use each;

/// What became of a case.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The check with this name runs it.
    Runs(&'static str),
    /// A test of this repository holds it to account: `path::function`, or the path of a filetest.
    Elsewhere(&'static str),
    /// The language lacks what it needs.
    NotYet(&'static str),
    /// It has no meaning here; says why.
    Pointless(&'static str),
}

/// The cases of one part of the suite, by name.
pub type Section = (&'static str, &'static [(&'static str, Outcome)]);

/// A group of cases that run together.
pub struct Check {
    /// What it checks.
    pub name: &'static str,
    /// The data types.
    pub types: &'static str,
    /// How results are judged beside plain Rust; between devices bits always are.
    pub judged: &'static str,
    run: fn(&mut Judge<'_>) -> Result<()>,
}

impl Check {
    /// Runs it on these devices. The number of results that were compared.
    ///
    /// # Errors
    /// The first result that is not as expected, with the case, the device and the schedule.
    pub fn run(&self, devices: &[Device]) -> Result<usize> {
        let mut judge = Judge::new(devices);
        let judged = (self.run)(&mut judge);
        judged.map_err(|error| Error::Mismatch(format!("{}: {error}", self.name)))?;
        Ok(judge.compared)
    }
}

macro_rules! checks {
    ($($name:literal: $types:literal, $judged:literal, $run:path;)*) => {
        /// All checks.
        pub const CHECKS: &[Check] = &[$(
            Check { name: $name, types: $types, judged: $judged, run: $run }
        ),*];
    };
}

checks! {
    "arithmetic": "all integers and floats", "bits", arithmetic::all_numbers;
    "integer operators": "all integers", "bits", arithmetic::all_integers;
    "float operators": "all floats", "bits", arithmetic::all_floats;
    "choices": "all types", "bits", arithmetic::choices;
    "literals": "i32, f32", "bits", arithmetic::operands;
    "casts": "all types to all types", "bits", arithmetic::casts;
    "codes": "every code of f16, bf16, F8E4M3, F8E5M2", "bits", arithmetic::codes;
    "joins": "all types", "bits", shapes::joins;
    "squares": "all types", "bits", shapes::squares;
    "permutations": "i8, i32, f16, bf16, f32", "bits", shapes::permutations;
    "gathers": "f32", "bits", shapes::gathers;
    "axes and places": "i32, i64", "bits", shapes::places;
    "reductions of rows": "all integers, f16, bf16, f32, f64", "bits", reductions::rows;
    "reductions along axes": "i8, f16, bf16, f32", "bits", reductions::axes;
    "special values": "f32", "bits", reductions::specials;
    "scans": "i32, i64, u8, f16, bf16, f32, f64", "bits", reductions::prefixes;
    "scans of flags": "bool", "bits", reductions::flags;
    "own combines": "f32", "1e-4", reductions::moments;
    "histograms": "i32", "bits", reductions::counts;
    "masks": "all types", "bits", memory::masks;
    "hints": "f32, i8", "bits", memory::hints;
    "buffers and strides": "f32, i16", "bits", memory::places;
    "tensors that change": "i32", "bits", constructs::tensors;
    "packed numbers": "u8, u32, f32", "bits", constructs::packed;
    "Bessel functions": "f32", "1e-6", constructs::bessel;
    "atomics": "i32, u32, i64, u64, f16, bf16, f32, f64", "bits", atomics::atomics;
    "atomics with results": "i32, u32, i64, u64, f32, f64", "bits", atomics::fetches;
    "atomic extremes": "f32, f64", "bits", atomics::float_extremes;
    "atomics on tiles": "i32, u32, i64, u64, f16, bf16, f32, f64", "bits", atomics::tiles;
    "branches": "i32", "bits", control::ifs;
    "stores of one program": "f32", "bits", control::stores_of_one;
    "loops": "i64", "bits", control::iterations;
    "loops downwards": "i64", "bits", control::countdowns;
    "pipelines": "f32", "bits", control::pipelines;
    "grids": "i32", "bits", control::grids;
    "wrong launches": "i32", "errors", control::refusals;
    "products": "f32, f64, f16, bf16, F8E4M3, F8E5M2, i8", "bits; what `dot` takes of f16 and bf16 by itself: k units of 2^-22", products::products;
    "forms of products": "f32, f16, bf16, u8", "bits", forms::all;
    "sorts": "i32, u8, f16, bf16, f32", "bits", products::sorts;
    "functions": "f16, bf16, f32, f64", "a unit in the last place; 3e-7 for `sin` to `cbrt` of f32", products::maths;
    "random numbers": "u32, f32", "bits of the words, moments", products::randoms;
}

/// Runs all checks on these devices, side by side: the name of each with what it compared.
pub fn run(devices: &[Device]) -> Vec<(&'static str, Result<usize>)> {
    let checks = CHECKS.par_iter();
    checks
        .map(|check| (check.name, check.run(devices)))
        .collect()
}

/// All cases, in the order of the suite.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    table::SECTIONS.iter().chain(runtime_table::SECTIONS)
}

/// The page `docs/conformance.md`.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    let counts = |of: fn(&Outcome) -> bool| {
        let all = sections().flat_map(|(_, cases)| cases.iter());
        all.filter(|(_, outcome)| of(outcome)).count()
    };
    let [runs, elsewhere, later, pointless] = [
        counts(|outcome| matches!(outcome, Outcome::Runs(_))),
        counts(|outcome| matches!(outcome, Outcome::Elsewhere(_))),
        counts(|outcome| matches!(outcome, Outcome::NotYet(_))),
        counts(|outcome| matches!(outcome, Outcome::Pointless(_))),
    ];
    let _ = writeln!(
        page,
        "{runs} rows run, {elsewhere} are held by other tests, {later} are not yet there, {pointless} have no meaning \
         here.\n\n## Checks\n\n| check | types | beside plain Rust |\n|---|---|---|"
    );
    for Check {
        name,
        types,
        judged,
        ..
    } in CHECKS
    {
        let _ = writeln!(page, "| {name} | {types} | {judged} |");
    }
    for (title, cases) in sections() {
        let _ = writeln!(page, "\n## {title}\n\n{HEAD}");
        for (case, outcome) in *cases {
            let _ = writeln!(page, "| {case} | {} |", outcome.cells().join(" | "));
        }
    }
    page
}

const HEAD: &str = "\
| case | types | interpreter | CPU | GPU | judged | here |
|---|---|---|---|---|---|---|";

impl Outcome {
    /// What a row says behind the case: the types, where it runs, how it is judged, and what became of it.
    fn cells(self) -> [String; 6] {
        let nowhere = ["", "", "", "", ""];
        let (cells, here) = match self {
            Self::Runs(name) => {
                let check = CHECKS.iter().find(|check| check.name == name);
                let cells = check.map(|check| [check.types, "yes", "yes", "yes", check.judged]);
                (cells, format!("runs: {name}"))
            }
            Self::Elsewhere(path) => {
                let held = HELD.iter().find(|held| held.test == path);
                (held.map(Held::cells), format!("held by `{path}`"))
            }
            Self::NotYet(what) => (None, format!("not yet: {what}")),
            Self::Pointless(why) => (None, format!("no meaning here: {why}")),
        };
        let [types, interpreter, cpu, gpu, judged] =
            cells.unwrap_or(nowhere).map(ToString::to_string);
        [types, interpreter, cpu, gpu, judged, here]
    }
}

const INTRODUCTION: &str = "\
# Conformance

Written from the tables of `harness/src/testing/conformance` by `BLESS=1 cargo test --test suite conformance`; do not
edit.

The cases are those of Triton's test suite that run kernels, by the names that they have there; a name with `*` stands
for all that begin so. Each check runs its cases on the block interpreter, on the CPU, and as the code of a GPU under
the interpreter of lanes by two schedules, with two tile sizes where a case has one, and on a GPU by `exactile selftest
conformance` where there is one. All must give the same bits, and these are judged beside plain Rust. The inputs of
elementwise cases, moves and sorts hold zeros of both signs, subnormal numbers, infinities, NaN and extreme integers,
where their type has such; their lengths are no multiples of tiles where there is a tail to test.

In the columns of a row, *yes* is where the case runs; of a GPU, *lanes* is its code under the interpreter of lanes alone,
*assembled* code that is made and looked at, and *layouts* what code is made of. A product by a function that a machine
refuses is left out there. *Bits* are those that plain Rust expects; a tolerance is one beside plain Rust, while all
devices still agree in bits. Rows about tools have no columns.

";
