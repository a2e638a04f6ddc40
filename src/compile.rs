//! A compilation: a trace through the pipeline and a backend to code for a device, with its times.

mod alone;
mod gpu;
mod narrower;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use exactile_core::diagnostic::Diagnostics;
use exactile_core::facts::{Boxed, Facts, Within};
use exactile_core::ir::Func;
use exactile_core::launch::printed::Prints;
use exactile_core::launch::{Launch, Numbers};
use exactile_core::passes::conditions::{Conditions, OfNumbers};
use exactile_core::passes::proof::numbers_of_accesses;
use exactile_core::pipeline::{self, PreparedFunc};
use exactile_core::target::{Bounds, Options, Target};
use exactile_core::verify::{BlockFunc, LaneFunc};
use exactile_cranelift::StandardFloats;

use crate::cache::CodeKey;
use crate::code::{Code, Runs, Sites};
use crate::cuda::GridMapping;
use crate::device::{Device, DeviceKind};
use crate::disk::Origin;
use crate::error::{Error, Result};
use crate::proofs::Reach;
use crate::shown::{Shown, variant};
use crate::slot::Slot;

use gpu::Wanted;
use narrower::Narrower;

pub(crate) use alone::{
    Lowered, ORDINARY, block_ir, compile_times, expect_known, lane_ir, lowered_for,
};

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
    block: PreparedFunc,
    /// What is lowered in its place where boxes of arrays can be copied, if that is another.
    boxed: Option<PreparedFunc>,
    /// The configuration, for people.
    config: String,
    options: Options,
    /// The numbers that the accesses follow from: a checked launch without an error proves later ones with the same of
    /// these in bounds. Nothing where the accesses depend on memory.
    pub(crate) moved_by: Option<Numbers>,
    /// What launches must be like for code that relies on it.
    conditions: Conditions,
    /// The first launch, and what holds for all with the same integers, as most have: it is not computed again.
    first: OnceLock<(Reach, OfNumbers)>,
    /// What bounds of tiles are known to lie in.
    within: Vec<Within>,
    /// What knows more of them.
    narrower: Option<Narrower>,
    /// Of what a GPU runs.
    origin: Option<Origin>,
    shown: Shown,
    prints: Arc<Prints>,
    /// Code by whether it checks bounds, by which conditions it relies on, the last which boxes it copies, and by
    /// whether it splits the grid itself.
    codes: [[[[[Slot<Code>; 2]; 3]; 2]; 2]; 2],
}

impl Prepared {
    /// Runs the passes over what `trace` gives. The bounds of `options` do not matter here.
    pub(crate) fn new(
        device: &Device,
        config: &str,
        options: &Options,
        facts: &Facts,
        trace: impl FnOnce() -> Result<BlockFunc>,
    ) -> Result<Self> {
        let mut compilation = Compilation::new();
        let prepared =
            trace().and_then(|traced| compilation.prepared(device, config, options, facts, traced));
        device.cache().spent(&compilation.times);
        prepared
    }

    /// The code for launches like this one on `device`.
    pub(crate) fn code(
        &self,
        device: &Device,
        bounds: Bounds,
        launch: &Launch<'_>,
    ) -> Result<&Code> {
        let make = |facts: &Facts, traced: &BlockFunc| {
            let (config, options) = (&self.config, &self.options);
            Self::new(device, config, options, facts, || Ok(traced.clone()))
        };
        let narrower = self.narrower.as_ref();
        // Code that knows more is laid out otherwise, and may not fit where that which knows less does.
        if let Some(Ok(prepared)) = narrower.and_then(|it| it.prepared(launch, make))
            && let Ok(code) = prepared.own_code(device, bounds, launch)
        {
            let builds = device.stand_in().is_some_and(|it| it.output.is_some());
            if builds {
                // For launches whose rows end elsewhere.
                self.own_code(device, bounds, launch)?;
            }
            return Ok(code);
        }
        self.own_code(device, bounds, launch)
    }

    fn of_numbers(&self, launch: &Launch<'_>) -> OfNumbers {
        let compute = || self.conditions.of_numbers(launch);
        let integers = self.conditions.integers();
        let first = || (Reach::of(launch, integers), compute());
        let (first, numbers) = self.first.get_or_init(first);
        match first.is_of(launch, integers) {
            true => *numbers,
            false => compute(),
        }
    }

    fn own_code(&self, device: &Device, bounds: Bounds, launch: &Launch<'_>) -> Result<&Code> {
        let facts = self.conditions.facts_with(self.of_numbers(launch), launch);
        let grid = match device.runs_gpu_code() {
            true => GridMapping::of(launch.grid),
            false => GridMapping::Direct,
        };
        let by_bounds = match bounds {
            Bounds::Checked => &self.codes[0],
            Bounds::Unchecked => &self.codes[1],
        };
        let by_boxes = &by_bounds[usize::from(facts.apart)][usize::from(facts.inside)];
        let by_grid = &by_boxes[facts.boxes as usize];
        let boxed = self
            .boxed
            .as_ref()
            .filter(|_| facts.boxes != Boxed::Nothing);
        let block = boxed.unwrap_or(&self.block);
        by_grid[usize::from(grid != GridMapping::Direct)].get_or_make(|| {
            let within = self.within.clone();
            let facts = Facts { within, ..facts };
            let mut compilation = Compilation::of(block);
            let variant = variant(bounds, &facts, grid);
            compilation.shown = self.shown.variant(&variant);
            let options = Options {
                bounds,
                ..self.options
            };
            let target = device.target();
            let origin = self.origin.as_ref();
            let place = origin.and_then(|it| it.place(&target, &options, &facts, grid));
            let made = match place {
                None => compilation.on_host(block, device, &options, &facts),
                Some(place) => {
                    let wanted = Wanted {
                        block,
                        config: &self.config,
                        variant: &variant,
                        target,
                        options: &options,
                        facts: &facts,
                        grid,
                        place,
                    };
                    compilation.of_gpu(device, &wanted)
                }
            };
            device.cache().spent(&compilation.times);
            if let Ok(code) = &made {
                compilation.tell(device, &variant, &options, code);
            }
            let prints = Arc::clone(&self.prints);
            made.map(|code| Code {
                prints,
                schedule: options.schedule,
                bounds,
                asks_addresses: self.conditions.ask_addresses(),
                ..code
            })
        })
    }
}

/// One compilation: its log and its times.
struct Compilation {
    kernel: String,
    shown: Shown,
    last: Instant,
    times: Vec<StageTime>,
    /// Passes compute with the kernel's numbers.
    _floats: StandardFloats,
}

impl Compilation {
    /// A compilation that begins with the trace.
    fn new() -> Self {
        Self {
            kernel: String::new(),
            shown: Shown::default(),
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

    /// What is made of a trace.
    fn prepared(
        &mut self,
        device: &Device,
        config: &str,
        options: &Options,
        facts: &Facts,
        traced: BlockFunc,
    ) -> Result<Prepared> {
        self.name(&traced);
        let key = || format!("{device}\n{options:?}\n{facts:?}\n{}", *traced);
        self.shown.write_for(key);
        self.done("trace", &traced);
        let is_gpu = device.runs_gpu_code();
        let origin = is_gpu.then(|| Origin::of(&traced, facts));
        let moved_by = numbers_of_accesses(&traced, options.determinism);
        let target = device.target();
        let block = self.front(traced.clone(), device, options, facts)?;
        let boxed = self.boxed(&traced, &target, options, facts)?;
        let conditions = Conditions::of(&traced, &block, boxed.as_deref(), &target);
        let prints = Arc::new(Prints::of(&traced));
        let narrower = Narrower::of(traced, &block, &target, options, facts);
        Ok(Prepared {
            block,
            boxed,
            config: config.to_string(),
            options: *options,
            moved_by,
            conditions,
            first: OnceLock::new(),
            within: facts.within.clone(),
            narrower,
            origin,
            shown: self.shown.clone(),
            prints,
            codes: Default::default(),
        })
    }

    fn name(&mut self, func: &Func) {
        self.shown = Shown::of(&func.name);
        self.kernel.clone_from(&func.name);
    }

    /// What is lowered for `device`.
    fn front(
        &mut self,
        traced: BlockFunc,
        device: &Device,
        options: &Options,
        facts: &Facts,
    ) -> Result<PreparedFunc> {
        match device.kind() {
            DeviceKind::Interpreter => {
                // Only for its errors: the specification runs what was traced.
                self.prepare(traced.clone(), &device.target(), options, facts)?;
                Ok(traced.into())
            }
            DeviceKind::Cpu | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                self.prepare(traced, &device.target(), options, facts)
            }
        }
    }

    /// What is lowered where boxes of arrays can be copied, if that is another.
    fn boxed(
        &mut self,
        traced: &BlockFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Result<Option<PreparedFunc>> {
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let boxed = pipeline::prepare_boxed(traced, target, options, facts, observe);
        self.accepted(boxed)
    }

    /// Code of a device that runs on the host.
    fn on_host(
        &mut self,
        block: &PreparedFunc,
        device: &Device,
        options: &Options,
        facts: &Facts,
    ) -> Result<Code> {
        let name = block.name.as_str().into();
        let cache = device.cache();
        if device.kind() == DeviceKind::Interpreter {
            let runs = cache.code(CodeKey::with_lines(block), || {
                cache.count();
                Ok(Runs::Interpreter(BlockFunc::clone(block)))
            })?;
            let sites = Arc::default();
            return Ok(Code::new(name, sites, runs));
        }
        let lane = self.lane(block, &device.target(), options, facts)?;
        let sites = Arc::new(Sites::of(&lane));
        let runs = match device.kind() {
            DeviceKind::Cpu => cache.code(CodeKey::new(&lane, "cpu"), || {
                self.note("key");
                cache.count();
                self.cpu(&lane).map(Runs::Cpu)
            }),
            DeviceKind::Interpreter | DeviceKind::Lanes | DeviceKind::Cuda(_) => {
                cache.code(CodeKey::with_lines(&lane), || {
                    cache.count();
                    Ok(Runs::Lanes(lane))
                })
            }
        }?;
        Ok(Code::new(name, sites, runs))
    }

    /// The stages on block IR.
    fn prepare(
        &mut self,
        traced: BlockFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Result<PreparedFunc> {
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let prepared = pipeline::prepare(traced, target, options, facts, observe);
        self.note("verify");
        self.accepted(prepared)
    }

    /// The stages after those.
    fn lane(
        &mut self,
        block: &PreparedFunc,
        target: &Target,
        options: &Options,
        facts: &Facts,
    ) -> Result<LaneFunc> {
        let observe = &mut |name: &'static str, func: &Func| self.done(name, func);
        let lane = pipeline::lower(block, target, options, facts, observe);
        self.note("verify");
        self.accepted(lane)
    }

    fn cpu(&mut self, lane: &LaneFunc) -> Result<exactile_cranelift::Executable> {
        if self.shown.writes()
            && let Ok(text) = exactile_cranelift::clif(lane)
        {
            self.shown.file("code.clif", text.as_bytes());
        }
        let executable = exactile_cranelift::compile(lane);
        let executable = executable.map_err(|error| self.refused("the CPU", &error))?;
        self.note("cranelift");
        Ok(executable)
    }

    fn refused(&self, device: &str, error: &impl ToString) -> Error {
        Error::Backend {
            kernel: self.kernel.clone(),
            device: device.to_string(),
            message: error.to_string(),
        }
    }

    /// Notes the time of a stage that has ended, and shows what it made.
    fn done(&mut self, name: &'static str, func: &Func) {
        self.note(name);
        self.shown.stage(name, func);
        self.last = Instant::now();
    }

    /// Says what became of a code.
    fn tell(&self, device: &Device, variant: &str, options: &Options, code: &Code) {
        if let Runs::Gpu(code) = &*code.runs
            && let Some(machine_code) = code.ptx().machine_code()
        {
            self.shown.file("code.cubin", machine_code);
        }
        self.shown.line(|| {
            let ran = |stage| self.times.iter().any(|it| it.name == stage);
            let origin = match (ran("cranelift") || ran("llvm"), ran("disk"), ran("lower")) {
                (true, true, _) => "compiled and kept on disk",
                (true, false, _) => "compiled",
                (false, true, _) => "found on disk",
                (false, false, true) => match &*code.runs {
                    Runs::Lanes(_) => "lowered",
                    Runs::Interpreter(_) | Runs::Cpu(_) | Runs::Gpu(_) => {
                        "lowered to code that is there"
                    }
                },
                (false, false, false) => "interpreted as traced",
            };
            let total: Duration = self.times.iter().map(|it| it.time).sum();
            let mut times: Vec<&StageTime> = self.times.iter().collect();
            times.sort_by_key(|it| std::cmp::Reverse(it.time));
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            let longest = times.iter().take(3);
            let longest = longest.map(|it| format!("{} {:.2}", it.name, milliseconds(it.time)));
            let longest: Vec<String> = longest.collect();
            let resources = match &*code.runs {
                // A driver that does not say leaves them out.
                Runs::Gpu(code) => code
                    .resources()
                    .map_or_else(|_| String::new(), |it| format!("; {it}")),
                Runs::Interpreter(_) | Runs::Lanes(_) | Runs::Cpu(_) => String::new(),
            };
            format!(
                "{variant} for {device}, {:?}: {origin} in {:.2} ms ({}){resources}",
                options.schedule,
                milliseconds(total),
                longest.join(", ")
            )
        });
    }

    fn note(&mut self, name: &'static str) {
        self.times.push(StageTime {
            name,
            time: self.last.elapsed(),
        });
        self.last = Instant::now();
    }

    fn accepted<T>(&self, result: Result<T, Diagnostics>) -> Result<T> {
        result.map_err(|diagnostics| Error::Compile {
            kernel: self.kernel.clone(),
            diagnostics,
        })
    }
}
