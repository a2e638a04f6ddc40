//! `exactile demo`: runs a kernel under several settings, judges its bits, and measures it.

mod inputs;
mod judge;

use exactile_core::ir::DType;
use exactile_kernels::Setting;
use serde::Serialize;

use exactile::Array;
use exactile::Device;
use exactile::Result;
use exactile::autotune::{Outputs, Workload, with_output};

pub use inputs::{linspace, random, uniform};
pub(crate) use judge::{compare_written, golden_run, golden_sample, sampled_run};
pub use judge::{judge, judge_first};

/// A kernel with its buffers on one device.
pub type Problem = Box<dyn Workload<Setting>>;

/// A problem with an output, or a tuple of them: `launch` runs the kernel with it.
pub fn problem<O: Outputs + 'static>(
    output: O,
    launch: impl FnMut(&mut O, &Setting) -> Result<()> + 'static,
) -> Problem {
    Box::new(with_output(output, launch))
}

/// A problem whose `launch` runs several kernels, one on the results of another.
pub fn problem_in_phases<O: Outputs + 'static>(
    output: O,
    launch: impl FnMut(&mut O, &Setting) -> Result<()> + 'static,
) -> Problem {
    Box::new(InPhases(with_output(output, launch)))
}

struct InPhases<W>(W);

impl<C, W: Workload<C>> Workload<C> for InPhases<W> {
    fn launch(&mut self, config: &C) -> Result<()> {
        self.0.launch(config)
    }

    fn outputs(&self) -> Result<Vec<Array>> {
        self.0.outputs()
    }

    fn outputs_again(&self, earlier: Vec<Array>) -> Result<Vec<Array>> {
        self.0.outputs_again(earlier)
    }

    fn spoil(&mut self) -> Result<()> {
        self.0.spoil()
    }

    fn in_phases(&self) -> bool {
        true
    }
}

/// A kernel with an input.
pub struct Case {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The type of its numbers.
    pub dtype: DType,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// Bytes that must move between memory and processor.
    pub bytes: u64,
    /// Floating-point operations that the result needs.
    pub flops: u64,
    /// The tile sizes to run; the first one gives the golden run.
    pub blocks: Vec<usize>,
    /// Elements of the largest tile of a program with this tile size.
    pub elements: fn(usize) -> usize,
    /// Makes the buffers on a device.
    pub setup: Box<dyn Fn(&Device) -> Result<Problem>>,
}

/// What became of one case under one setting.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The kernel's name.
    pub kernel: &'static str,
    /// The type of its numbers.
    pub dtype: &'static str,
    /// The extents of its input.
    pub shape: Vec<usize>,
    /// Its configuration.
    pub config: Setting,
    /// The device.
    pub device: String,
    /// The level promised.
    pub determinism: &'static str,
    /// Time to trace and compile, in milliseconds.
    pub compile_ms: f64,
    /// Median time of a launch, in milliseconds.
    pub run_ms: f64,
    /// Gigabytes a second.
    pub gb_s: f64,
    /// Giga floating-point operations a second.
    pub gflop_s: f64,
    /// Whether all bits are those of the reference.
    pub bits_equal: bool,
    /// The greatest distance from the reference, in units in the last place.
    pub max_ulp: u64,
    /// Whether the row is as promised: equal bits, or within tolerance where bits are not promised.
    pub passed: bool,
    /// What the results were compared with.
    pub reference: String,
    /// The first mismatches, when the row did not pass.
    pub report: Option<String>,
}

/// The header of a table of rows.
pub const HEADER: &str = "kernel      dtype shape               block warps device determinism      compile ms     run ms     GB/s  GFLOP/s  bits  max ulp  reference";

impl Row {
    /// The row as a line of a table.
    pub fn line(&self) -> String {
        let shape = self
            .shape
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("x");
        let bits = match (self.bits_equal, self.passed) {
            (true, _) => "equal",
            (false, true) => "close",
            (false, false) => "WRONG",
        };
        format!(
            "{:11} {:5} {shape:17} {:7} {:5} {:6} {:16} {:10.2} {:10.3} {:8.2} {:8.2} {bits:>5} {:8}  {}",
            self.kernel,
            self.dtype,
            self.config.block,
            self.config.schedule.warps.unwrap_or(0),
            self.device,
            self.determinism,
            self.compile_ms,
            self.run_ms,
            self.gb_s,
            self.gflop_s,
            self.max_ulp,
            self.reference,
        )
    }
}
