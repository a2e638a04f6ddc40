//! The pipeline on one page: verified block IR in, code for a device out.
//!
//! `EXACTILE_LOG` set to a kernel's name, or to `all`, prints the IR after each pass to standard
//! error.

use std::fmt;
use std::time::{Duration, Instant};

use exactile_core::diagnostic::Diagnostics;
use exactile_core::ir::{Func, Stage};
use exactile_core::passes;
use exactile_core::target::Options;
use exactile_core::verify::{self, BlockFunc};

use crate::code::Code;
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};

/// A kernel compiled for a device.
pub(crate) struct Compiled {
    /// After the passes.
    pub(crate) block: BlockFunc,
    pub(crate) code: Code,
    pub(crate) stages: Vec<StageTime>,
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
pub(crate) fn compile(traced: BlockFunc, device: &Device, _options: &Options) -> Result<Compiled> {
    let mut pipeline = Pipeline::new(&traced.name);
    pipeline.log("trace", &traced);
    let (block, code) = match device.kind() {
        // The specification runs what was traced.
        DeviceKind::Interpreter => (traced.clone(), Code::Interpreter(traced)),
        DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
            pipeline.block(traced)?;
            return Err(Error::Device(format!(
                "no code generator for device `{device}`"
            )));
        }
    };
    Ok(Compiled {
        block,
        code,
        stages: pipeline.times,
    })
}

/// One compilation: its log and its times.
struct Pipeline {
    kernel: String,
    logged: bool,
    times: Vec<StageTime>,
}

impl Pipeline {
    fn new(kernel: &str) -> Self {
        let wanted = std::env::var("EXACTILE_LOG").unwrap_or_default();
        Self {
            kernel: kernel.to_string(),
            logged: wanted == "all" || wanted == kernel,
            times: Vec::new(),
        }
    }

    /// The passes over block IR. None changes a bit.
    fn block(&mut self, func: BlockFunc) -> Result<BlockFunc> {
        let mut func = func.into_inner();
        self.pass("tidy", &mut func, passes::tidy)?;
        self.stage("verify", || verify::block(func))
    }

    /// Runs a pass in place; debug builds verify its result, so that the guilty one is named.
    fn pass(&mut self, name: &'static str, func: &mut Func, pass: fn(&mut Func)) -> Result<()> {
        self.stage(name, || {
            pass(func);
            Ok(())
        })?;
        self.log(name, func);
        if cfg!(debug_assertions) {
            let valid = match func.stage {
                Stage::Block => verify::block(func.clone()).map(drop),
                Stage::Lane => verify::lane(func.clone()).map(drop),
            };
            valid.map_err(|diagnostics| self.refused(diagnostics))?;
        }
        Ok(())
    }

    /// Runs and times a stage.
    fn stage<T>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<T, Diagnostics>,
    ) -> Result<T> {
        let begin = Instant::now();
        let result = work();
        self.times.push(StageTime {
            name,
            time: begin.elapsed(),
        });
        result.map_err(|diagnostics| self.refused(diagnostics))
    }

    fn refused(&self, diagnostics: Diagnostics) -> Error {
        Error::Compile {
            kernel: self.kernel.clone(),
            diagnostics,
        }
    }

    fn log(&self, name: &str, func: &Func) {
        if self.logged {
            eprintln!("; {} after {name}\n{func}", self.kernel);
        }
    }
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("kernel", &self.block.name)
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}
