//! All integration tests in one binary: each linked copy of LLVM costs 50 MB.

mod accesses;
mod accumulators;
mod activations;
mod approximate;
mod arguments;
mod arrays;
mod autotune;
mod background;
mod bad_inputs;
mod bench;
mod bessel;
mod bits;
mod book;
mod boxes;
#[cfg(feature = "nvptx")]
mod built;
mod circuits;
mod cli;
mod code_bound;
mod compare;
mod composed;
mod configure;
mod conformance;
mod correct;
mod debug;
mod determinism;
mod drawn;
#[cfg(all(feature = "nvptx", target_os = "linux"))]
mod driver;
mod each;
mod edges;
#[cfg(feature = "nvptx")]
mod examples;
mod exits;
#[cfg(target_os = "linux")]
mod faults;
mod filetests;
mod finishes;
mod first_use;
mod foreign;
mod functions;
mod given;
mod grid;
mod held;
#[cfg(feature = "nvptx")]
mod held_operands;
#[cfg(target_arch = "x86_64")]
mod host_flags;
mod hostile;
mod in_place;
mod interop;
#[cfg(feature = "nvptx")]
mod kept;
mod kernels;
mod language;
mod large;
mod launch;
mod launch_words;
mod lines;
mod literals;
mod log_sum_exp;
mod logged;
mod long_rows;
mod lookup;
mod meeting;
mod memory;
mod messages;
mod narrow;
mod narrow_floats;
mod nesting;
mod npy;
mod ops;
mod outcomes;
mod outputs;
mod overflow;
mod overlap;
mod pairs;
mod parts;
mod plot;
mod prefixes;
mod print;
mod products;
mod programs;
mod promoted;
mod proofs;
#[cfg(feature = "nvptx")]
mod ptx;
mod purity;
mod random;
mod ranks;
mod reentry;
mod refusals;
mod refused_launches;
mod remedies;
mod rounded;
mod runtime;
mod rustdoc;
mod scaled;
mod scans;
mod searches;
mod slices;
mod smaller;
mod sort;
mod soundness;
#[cfg(target_os = "linux")]
mod steady;
mod supervised;
mod tidy;
mod tile_order;
mod trace;
mod values;
mod views;
mod winners;
mod winners_kept;
mod words;

use std::path::Path;

/// The folder of the repository. The package of this binary, which has the program, lies below it.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("lies in the repository")
}
