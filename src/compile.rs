//! A compilation: a trace through the pipeline and a backend to code for a device, with log and times.
//!
//! `EXACTILE_LOG` set to a kernel's name, or to `all`, prints the IR after each stage to standard
//! error.

use std::io::{Write, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use exactile_core::diagnostic::{Diagnostics, Loc};
use exactile_core::facts::Facts;
use exactile_core::ir::{Axis, Func, Op, op};
use exactile_core::launch::Launch;
use exactile_core::passes::conditions::Conditions;
use exactile_core::passes::proof::accesses_ignore_memory;
use exactile_core::pipeline;
use exactile_core::target::{Bounds, Distribution, Options, Target};
use exactile_core::verify::{BlockFunc, LaneFunc};
use exactile_cranelift::StandardFloats;

use crate::cache::CodeKey;
use crate::cuda::{self, Gpu, GpuCode};
use crate::device::{Device, DeviceKind};
use crate::error::{Error, Result};
use crate::proofs::Proofs;
use crate::slot::Slot;

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
            if let Op::CheckBounds(op::CheckBounds { base, site, .. })
            | Op::StopOutside(op::StopOutside { base, site, .. }) = data.op
                && u64::try_from(site) == Ok(wanted)
            {
                let parameter = func.parameter_index(base)?;
                return Some((data.loc.clone(), Accessed::Parameter(parameter)));
            }
            if let Op::CheckIndex(op::CheckIndex {
                axis, extent, site, ..
            })
            | Op::StopIndex(op::StopIndex {
                axis, extent, site, ..
            }) = data.op
                && u64::try_from(site) == Ok(wanted)
            {
                return Some((data.loc.clone(), Accessed::Axis(axis, extent)));
            }
            None
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

/// A kernel's block IR, ready to be lowered for a device, with the code that was made of it.
pub(crate) struct Prepared {
    /// What is lowered; for the interpreter, which runs the specification, what was traced.
    block: BlockFunc,
    options: Options,
    /// The launches that a checked one proved in bounds.
    pub(crate) proofs: Proofs,
    /// What launches must be like for code that relies on it.
    conditions: Conditions,
    /// Code by whether it checks bounds, and by which conditions it relies on.
    codes: [[[Slot<Arc<Code>>; 2]; 2]; 2],
}

impl Prepared {
    /// Runs the passes over what `trace` gives. The bounds of `options` do not matter here.
    pub(crate) fn new(
        device: &Device,
        options: &Options,
        facts: &Facts,
        trace: impl FnOnce() -> Result<BlockFunc>,
    ) -> Result<Self> {
        let mut compilation = Compilation::new();
        let prepared = trace().and_then(|traced| {
            compilation.begin("trace", &traced);
            let provable = accesses_ignore_memory(&traced, options.determinism);
            let block = compilation.front(traced.clone(), device, options, facts)?;
            let conditions = Conditions::of(&traced, &block, &device.target());
            Ok(Self {
                block,
                options: *options,
                proofs: Proofs::new(provable),
                conditions,
                codes: Default::default(),
            })
        });
        device.cache().spent(&compilation.times);
        prepared
    }

    /// The code for launches like this one on `device`.
    pub(crate) fn code(
        &self,
        device: &Device,
        bounds: Bounds,
        launch: &Launch<'_>,
    ) -> Result<Arc<Code>> {
        let facts = self.conditions.facts(launch);
        let by_conditions = match bounds {
            Bounds::Checked => &self.codes[0],
            Bounds::Unchecked => &self.codes[1],
        };
        by_conditions[usize::from(facts.apart)][usize::from(facts.inside)].get_or_make(|| {
            let mut compilation = Compilation::of(&self.block);
            let options = Options {
                bounds,
                ..self.options
            };
            let made = compilation
                .lower(&self.block, device, &options, &facts)
                .and_then(|lowered| {
                    let key = CodeKey::of(lowered.func());
                    compilation.note("key");
                    let generate = || compilation.generate(lowered, device);
                    device.cache().code(key, generate)
                });
            device.cache().spent(&compilation.times);
            made
        })
    }
}

/// The times of all stages to machine code of a CPU or to PTX; nothing is taken from the cache or put there.
pub(crate) fn compile_times(
    target: &Target,
    options: &Options,
    facts: &Facts,
    trace: impl FnOnce() -> Result<BlockFunc>,
) -> Result<Vec<StageTime>> {
    let mut compilation = Compilation::new();
    let traced = trace()?;
    compilation.begin("trace", &traced);
    let block = compilation.prepare(traced, target, options, facts)?;
    let lane = compilation.lane(&block, target, options, facts)?;
    match target.distribution {
        Distribution::Sequential => drop(compilation.cpu(&lane)?),
        Distribution::Distributed => {
            let ptx = cuda::ptx(&lane, target)?;
            compilation.note("llvm");
            if cuda::assemble(&ptx)? {
                compilation.note("ptxas");
            }
        }
    }
    Ok(compilation.times)
}

/// The lane IR that code for `target` is made from, of arguments that nothing is known of.
pub(crate) fn lane_ir(traced: BlockFunc, target: &Target, options: &Options) -> Result<LaneFunc> {
    let mut compilation = Compilation::of(&traced);
    let block = compilation.prepare(traced, target, options, &ORDINARY)?;
    compilation.lane(&block, target, options, &ORDINARY)
}

/// The block IR that is lowered for `target`, of arguments that nothing is known of.
pub(crate) fn block_ir(traced: BlockFunc, target: &Target, options: &Options) -> Result<BlockFunc> {
    Compilation::of(&traced).prepare(traced, target, options, &ORDINARY)
}

/// One compilation: its log and its times.
struct Compilation {
    kernel: String,
    logged: bool,
    last: Instant,
    times: Vec<StageTime>,
    /// Passes compute with the kernel's numbers.
    _floats: StandardFloats,
}

/// What is shown of a kernel without a launch: that of one whose rows do not meet.
pub(crate) const ORDINARY: Facts = Facts {
    arguments: Vec::new(),
    apart: true,
    inside: true,
};

/// What a backend takes.
enum Lowered {
    /// The interpreter takes block IR.
    Interpreter(BlockFunc),
    Lane(LaneFunc),
}

impl Lowered {
    fn func(&self) -> &Func {
        match self {
            Self::Interpreter(func) => func,
            Self::Lane(func) => func,
        }
    }
}

impl Compilation {
    /// A compilation that begins with the trace.
    fn new() -> Self {
        Self {
            kernel: String::new(),
            logged: false,
            last: Instant::now(),
            times: Vec::new(),
            _floats: StandardFloats::new(),
        }
    }

    /// A compilation that begins with this function.
    fn of(func: &Func) -> Self {
        let mut compilation = Self::new();
        compilation.name(func);
        compilation
    }

    fn name(&mut self, func: &Func) {
        let wanted = std::env::var("EXACTILE_LOG").unwrap_or_default();
        self.logged = wanted == "all" || wanted == func.name;
        self.kernel.clone_from(&func.name);
    }

    /// Notes the first stage, which gave the function.
    fn begin(&mut self, stage: &'static str, func: &Func) {
        self.name(func);
        self.done(stage, func);
    }

    /// What is lowered for `device`.
    fn front(
        &mut self,
        traced: BlockFunc,
        device: &Device,
        options: &Options,
        facts: &Facts,
    ) -> Result<BlockFunc> {
        match device.kind() {
            DeviceKind::Interpreter => {
                // Only for its errors: the specification runs what was traced.
                self.prepare(traced.clone(), &device.target(), options, facts)?;
                Ok(traced)
            }
            DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                self.prepare(traced, &device.target(), options, facts)
            }
        }
    }

    fn lower(
        &mut self,
        block: &BlockFunc,
        device: &Device,
        options: &Options,
        facts: &Facts,
    ) -> Result<Lowered> {
        Ok(match device.kind() {
            DeviceKind::Interpreter => Lowered::Interpreter(block.clone()),
            DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                Lowered::Lane(self.lane(block, &device.target(), options, facts)?)
            }
        })
    }

    fn generate(&mut self, lowered: Lowered, device: &Device) -> Result<Code> {
        let lane = match lowered {
            Lowered::Interpreter(func) => return Ok(Code::Interpreter(func)),
            Lowered::Lane(lane) => lane,
        };
        match (device.kind(), device.gpu()) {
            (DeviceKind::Cpu, _) => self.cpu(&lane),
            (DeviceKind::Cuda(_), Some(gpu)) => self.gpu(lane, gpu),
            (DeviceKind::Interpreter | DeviceKind::Lanes | DeviceKind::Cuda(_), _) => {
                Ok(Code::Lanes(lane))
            }
        }
    }

    /// The stages on block IR.
    fn prepare(
        &mut self,
        traced: BlockFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Result<BlockFunc> {
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let prepared = pipeline::prepare(traced, target, options, facts, observe);
        self.note("verify");
        self.accepted(prepared)
    }

    /// The stages after those.
    fn lane(
        &mut self,
        block: &BlockFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Result<LaneFunc> {
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let lane = pipeline::lower(block, target, options, facts, observe);
        self.note("verify");
        self.accepted(lane)
    }

    fn cpu(&mut self, lane: &LaneFunc) -> Result<Code> {
        let executable = exactile_cranelift::compile(lane)
            .map_err(|error| self.refused("the CPU", &error.to_string()))?;
        self.note("cranelift");
        Ok(Code::Cpu(executable))
    }

    fn gpu(&mut self, lane: LaneFunc, gpu: &Gpu) -> Result<Code> {
        let refused =
            |compilation: &Self, error: Error| compilation.refused(gpu.name(), &error.to_string());
        let generated = cuda::ptx(&lane, &gpu.target());
        let generated = generated.map_err(|error| refused(self, error))?;
        self.note("llvm");
        let code = gpu.load(&lane, generated);
        self.note("driver");
        Ok(Code::Gpu(lane, code.map_err(|error| refused(self, error))?))
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
        self.note(name);
        self.show(name, func);
        self.last = Instant::now();
    }

    fn note(&mut self, name: &'static str) {
        self.times.push(StageTime {
            name,
            time: self.last.elapsed(),
        });
        self.last = Instant::now();
    }

    fn show(&self, name: &str, func: &Func) {
        if self.logged {
            // A log that nobody can read is no failure of the kernel.
            let _ = writeln!(stderr(), "; {} after {name}\n{func}", self.kernel);
        }
    }

    fn accepted<T>(&self, result: Result<T, Diagnostics>) -> Result<T> {
        result.map_err(|diagnostics| Error::Compile {
            kernel: self.kernel.clone(),
            diagnostics,
        })
    }
}
