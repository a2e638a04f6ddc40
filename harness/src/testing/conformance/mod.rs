//! The cases of Triton's test suite: each check runs a group of them wherever kernels run, compares the bits, and
//! judges them by plain Rust. The page `docs/conformance.md` lists every case with what became of it.

mod arithmetic;
mod atomics;
mod batches;
mod chains;
mod constructs;
mod control;
mod extents;
mod forms;
mod held;
mod judge;
mod layout_table;
mod memory;
mod names;
mod page;
mod plain;
mod product_table;
mod products;
mod reductions;
mod report;
mod runtime_table;
mod shapes;
mod sharing;
mod table;
mod wide;

use exactile::Result;
use exactile::prelude::*;
use rayon::prelude::*;

pub use held::{HELD, Held};
use judge::Judge;
pub use names::{Pattern, RowNames, names};
pub use page::page;
pub use products::philox;
pub use report::{Case, Checked, Report};

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
    /// It has no meaning here; says why.
    Pointless(&'static str),
    /// One of these but for a part of the case, which is stated.
    Partly(&'static Outcome, &'static str),
}

impl Outcome {
    /// What became of the case but for the part that is left out.
    #[must_use]
    pub fn whole(&self) -> &Self {
        match self {
            Self::Partly(whole, _) => whole,
            Self::Runs(_) | Self::Elsewhere(_) | Self::Pointless(_) => self,
        }
    }
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
    /// Runs it on these devices.
    #[must_use]
    pub fn run(&self, devices: &[Device]) -> Checked {
        let mut judge = Judge::new(devices);
        let judged = (self.run)(&mut judge);
        Checked {
            name: self.name.to_string(),
            error: judged.err().map(|error| error.to_string()),
            cases: judge.cases,
        }
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
    "mixed types": "u32, i32", "bits", plain::mixed_types;
    "methods": "f32, f64", "bits beside functions; 1.2e-7 for those of a number", plain::methods_and_functions;
    "roundings": "f16, bf16, f32, f64", "bits", plain::roundings;
    "remainders": "F8E4M3, F8E5M2, f16, bf16, f32, f64", "bits", plain::remainders_of_floats;
    "bits": "integers and floats of each width", "bits", plain::bits;
    "casts": "all types to all types", "bits", arithmetic::casts;
    "codes": "every code of f16, bf16, F8E4M3, F8E5M2", "bits", arithmetic::codes;
    "joins": "all types", "bits", shapes::joins;
    "concatenations": "i16, i32, f16, bf16, f32", "bits", extents::concatenations;
    "flips": "i32, f16, bf16, f32", "bits", extents::flips;
    "constants": "all types", "bits", extents::constants;
    "reshapes": "i32", "bits", extents::reshapes;
    "squares": "all types", "bits", shapes::squares;
    "permutations": "i8, i32, f16, bf16, f32", "bits", shapes::permutations;
    "gathers": "f32", "bits", shapes::gathers;
    "axes and places": "i32, i64", "bits", shapes::places;
    "reductions of rows": "all integers, f16, bf16, f32, f64", "bits", reductions::rows;
    "reductions along axes": "i8, f16, bf16, f32", "bits", reductions::axes;
    "sums of other types": "bool, i8, bf16", "bits", chains::sums_of_other_types;
    "chained reductions": "i32", "bits", chains::chained_reductions;
    "running maxima": "i16, f16", "bits", chains::running_maxima;
    "special values": "f32", "bits", reductions::specials;
    "scans": "i32, i64, u8, f16, bf16, f32, f64", "bits", reductions::prefixes;
    "prefixes that grow": "i32, bool", "bits", chains::prefixes_that_grow;
    "recurrences": "i32", "bits", chains::recurrences_of_integers;
    "scans of flags": "bool", "bits", reductions::flags;
    "own combines": "f32", "1e-4", reductions::moments;
    "histograms": "i32", "bits", reductions::counts;
    "masks": "all types", "bits", memory::masks;
    "hints": "f32, i8", "bits", memory::hints;
    "buffers and strides": "f32, i16", "bits", memory::places;
    "tensors of every type": "all types", "bits", memory::tensors;
    "tensors that change": "i32", "bits", constructs::tensors;
    "packed numbers": "u8, u32, f32", "bits", constructs::packed;
    "Bessel functions": "f32", "1e-6", constructs::bessel;
    "atomics": "i32, u32, i64, u64, f16, bf16, f32, f64", "bits", atomics::atomics;
    "shared places": "i32, u64, f16, bf16, f32", "bits", sharing::shared_places;
    "predicated atomics": "i32", "bits", sharing::under_conditions;
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
    "batches of products": "i8, f16, bf16, f32, f64", "bits", batches::batches;
    "products without whole loads": "f16, bf16, f32", "bits", batches::without_whole_loads;
    "forms of products": "f32, f16, bf16, u8", "bits", forms::all;
    "sorts": "i32, u8, f16, bf16, f32", "bits", products::sorts;
    "functions": "f16, bf16, f32, f64", "a unit in the last place; 3e-7 for `sin` to `cbrt` of f32", products::maths;
    "random numbers": "u32, f32", "bits of the words, moments", products::randoms;
}

/// Runs the checks whose names hold a text on these devices, side by side.
#[must_use]
pub fn run(devices: &[Device], only: &str) -> Vec<Checked> {
    let checks = CHECKS.par_iter();
    checks
        .filter(|check| check.name.contains(only))
        .map(|check| check.run(devices))
        .collect()
}

/// All cases, in the order of the suite.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    let tables = [
        table::SECTIONS,
        product_table::SECTIONS,
        runtime_table::SECTIONS,
        layout_table::SECTIONS,
    ];
    tables.into_iter().flatten()
}
