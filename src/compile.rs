//! The pipeline on one page: verified block IR in, code for a device out.
//!
//! `EXACTILE_LOG` set to a kernel's name, or to `all`, prints the IR after each pass to standard
//! error.

use std::fmt;
use std::time::{Duration, Instant};

use exactile_core::diagnostic::{Diagnostics, Loc};
use exactile_core::ir::{Axis, Func, Op};
use exactile_core::lower::{distributed, sequential};
use exactile_core::passes::{self, Approximations};
use exactile_core::target::{Bounds, Options};
use exactile_core::verify::{self, BlockFunc, LaneFunc};

use crate::cuda::{Gpu, GpuCode};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::proof::accesses_ignore_memory;

/// A kernel compiled for a device.
pub(crate) struct Compiled {
    pub(crate) code: Code,
    /// Whether the code checks its accesses.
    pub(crate) bounds: Bounds,
    /// Whether a checked launch without an error proves later ones in bounds.
    pub(crate) provable: bool,
    pub(crate) stages: Vec<StageTime>,
}

/// What a device executes.
pub(crate) enum Code {
    /// Block IR as it was traced.
    Interpreter(BlockFunc),
    /// Lane IR, for the interpreter of thread blocks.
    Lanes(LaneFunc),
    /// Machine code for this computer's processor.
    Cpu(exactile_cranelift::Executable),
    /// A kernel that a GPU has loaded.
    Gpu(LaneFunc, GpuCode),
}

/// What a checked access can miss.
pub(crate) enum Accessed {
    /// The memory behind this parameter.
    Parameter(usize),
    /// An axis of a tile, of this extent.
    Axis(Axis, i64),
}

impl Code {
    /// The kernel's name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Interpreter(func) => &func.name,
            Self::Lanes(func) | Self::Gpu(func, _) => &func.name,
            Self::Cpu(executable) => &executable.func().name,
        }
    }

    /// The lane IR that the code was made from.
    pub(crate) fn lane(&self) -> Option<&LaneFunc> {
        match self {
            Self::Interpreter(_) => None,
            Self::Lanes(func) | Self::Gpu(func, _) => Some(func),
            Self::Cpu(executable) => Some(executable.func()),
        }
    }

    /// The source line of a checked access, and what it accesses.
    pub(crate) fn access(&self, wanted: u64) -> Option<(Loc, Accessed)> {
        let func = self.lane()?;
        func.all_insts().into_iter().find_map(|inst| {
            let data = func.inst(inst);
            match data.op {
                Op::CheckBounds { base, site, .. } if u64::try_from(site) == Ok(wanted) => {
                    let parameter = func.parameter_index(base)?;
                    Some((data.loc.clone(), Accessed::Parameter(parameter)))
                }
                Op::CheckIndex {
                    axis, extent, site, ..
                } if u64::try_from(site) == Ok(wanted) => {
                    Some((data.loc.clone(), Accessed::Axis(axis, extent)))
                }
                _ => None,
            }
        })
    }
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
    let provable = accesses_ignore_memory(&traced);
    let code = match (device.kind(), device.gpu()) {
        (DeviceKind::Interpreter, _) => {
            // Only for its errors: the specification runs what was traced.
            pipeline.block(traced.clone(), options, Approximations::Absent)?;
            Code::Interpreter(traced)
        }
        (DeviceKind::Cpu, _) => pipeline.cpu(traced, options)?,
        (DeviceKind::Lanes, _) | (DeviceKind::Cuda(_), None) => {
            Code::Lanes(pipeline.lanes(traced, options, Approximations::Absent)?)
        }
        (DeviceKind::Cuda(_), Some(gpu)) => pipeline.gpu(traced, options, gpu)?,
    };
    Ok(Compiled {
        code,
        bounds: options.bounds,
        provable,
        stages: pipeline.times,
    })
}

/// The lane IR that a CPU worker's code is made from.
pub(crate) fn worker_ir(traced: BlockFunc, options: &Options) -> Result<LaneFunc> {
    Pipeline::new(&traced.name).worker(traced, options)
}

/// The lane IR that a GPU's code is made from.
pub(crate) fn thread_block_ir(traced: BlockFunc, options: &Options) -> Result<LaneFunc> {
    Pipeline::new(&traced.name).lanes(traced, options, Approximations::Native)
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

    /// Lane IR of a CPU worker.
    fn worker(&mut self, traced: BlockFunc, options: &Options) -> Result<LaneFunc> {
        let block = self.block(traced, options, Approximations::Absent)?;
        let lane = self.accepted(sequential::lower(&block, options))?;
        self.lane(lane)
    }

    /// Lane IR of a thread block.
    fn lanes(
        &mut self,
        traced: BlockFunc,
        options: &Options,
        approximations: Approximations,
    ) -> Result<LaneFunc> {
        let block = self.block(traced, options, approximations)?;
        let lane = self.accepted(distributed::lower(&block, options))?;
        self.lane(lane)
    }

    /// The passes over lane IR.
    fn lane(&mut self, lane: LaneFunc) -> Result<LaneFunc> {
        self.done("lower", &lane);
        let mut func = lane.into_inner();
        passes::tidy(&mut func);
        self.done("tidy", &func);
        let lane = self.accepted(verify::lane(func))?;
        self.done("verify", &lane);
        Ok(lane)
    }

    fn cpu(&mut self, traced: BlockFunc, options: &Options) -> Result<Code> {
        let lane = self.worker(traced, options)?;
        let executable = exactile_cranelift::compile(&lane)
            .map_err(|error| self.refused("the CPU", &error.to_string()))?;
        self.done("cranelift", &lane);
        Ok(Code::Cpu(executable))
    }

    fn gpu(&mut self, traced: BlockFunc, options: &Options, gpu: &Gpu) -> Result<Code> {
        let lane = self.lanes(traced, options, Approximations::Native)?;
        let code = gpu
            .compile(&lane)
            .map_err(|error| self.refused(gpu.name(), &error.to_string()))?;
        self.done("nvptx", &lane);
        Ok(Code::Gpu(lane, code))
    }

    fn refused(&self, device: &str, message: &str) -> Error {
        Error::Backend {
            kernel: self.kernel.clone(),
            device: device.to_string(),
            message: message.to_string(),
        }
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
            Code::Lanes(_) => "Compiled(lanes)",
            Code::Cpu(_) => "Compiled(cpu)",
            Code::Gpu(..) => "Compiled(gpu)",
        })
    }
}
