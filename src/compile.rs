//! The pipeline on one page: verified block IR in, code for a device out.
//!
//! `EXACTILE_LOG` set to a kernel's name, or to `all`, prints the IR after each pass to standard
//! error.

use std::fmt;
use std::time::{Duration, Instant};

use exactile_core::diagnostic::Diagnostics;
use exactile_core::ir::Func;
use exactile_core::passes::{self, Approximations};
use exactile_core::target::{Bounds, Options};
use exactile_core::verify::BlockFunc;

use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};

/// A kernel compiled for a device.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    /// Whether the code checks its accesses.
    pub(crate) bounds: Bounds,
    pub(crate) stages: Vec<StageTime>,
}

/// What a device executes.
pub(crate) enum Code {
    /// Block IR as it was traced.
    Interpreter(BlockFunc),
}

/// How long a stage of a compilation took.
#[derive(Clone, Debug)]
pub struct StageTime {
    /// The stage or pass.
    pub name: &'static str,
    /// Its time.
    pub time: Duration,
}

/// Compiles a kernel for `device`.
pub(crate) fn compile(traced: BlockFunc, device: &Device, options: &Options) -> Result<Compiled> {
    let mut pipeline = Pipeline::new(&traced.name);
    pipeline.show("trace", &traced);
    let code = match device.kind() {
        DeviceKind::Interpreter => {
            // Only for its errors: the specification runs what was traced.
            pipeline.block(traced.clone(), options, Approximations::Absent)?;
            Code::Interpreter(traced)
        }
        DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
            pipeline.block(traced, options, Approximations::Absent)?;
            return Err(Error::Device(format!(
                "no code generator for device `{device}`"
            )));
        }
    };
    Ok(Compiled {
        code,
        bounds: options.bounds,
        stages: pipeline.times,
    })
}

/// The block IR that is lowered: flags resolved, functions decomposed, cleaned up.
pub(crate) fn prepare_block(traced: BlockFunc, options: &Options) -> Result<BlockFunc> {
    Pipeline::new(&traced.name).block(traced, options, Approximations::Absent)
}

/// One compilation: its log and its times.
struct Pipeline {
    kernel: String,
    logged: bool,
    last: Instant,
    times: Vec<StageTime>,
}

impl Pipeline {
    fn new(kernel: &str) -> Self {
        let wanted = std::env::var("EXACTILE_LOG").unwrap_or_default();
        Self {
            kernel: kernel.to_string(),
            logged: wanted == "all" || wanted == kernel,
            last: Instant::now(),
            times: Vec::new(),
        }
    }

    /// The passes over block IR.
    fn block(
        &mut self,
        func: BlockFunc,
        options: &Options,
        approximations: Approximations,
    ) -> Result<BlockFunc> {
        let level = options.determinism;
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let prepared = passes::prepare_observed(func, level, approximations, observe);
        let prepared = self.accepted(prepared)?;
        self.done("verify", &prepared);
        Ok(prepared)
    }

    /// Notes the time of a stage that has ended, and shows what it made.
    fn done(&mut self, name: &'static str, func: &Func) {
        self.times.push(StageTime {
            name,
            time: self.last.elapsed(),
        });
        self.show(name, func);
        self.last = Instant::now();
    }

    fn show(&self, name: &str, func: &Func) {
        if self.logged {
            eprintln!("; {} after {name}\n{func}", self.kernel);
        }
    }

    fn accepted<T>(&self, result: Result<T, Diagnostics>) -> Result<T> {
        result.map_err(|diagnostics| Error::Compile {
            kernel: self.kernel.clone(),
            diagnostics,
        })
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.code {
            Code::Interpreter(_) => "Compiled(interpreter)",
        })
    }
}
