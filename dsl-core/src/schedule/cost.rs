//! How long a function takes on a multiprocessor under a schedule, estimated before anything is made of it.
//!
//! The estimate orders what a tuner tries. It follows from what is moved, what is issued, what waits for what, and how many programs
//! a multiprocessor holds at once. It is no promise: what caches keep and what an assembler makes of code it does not know.

mod ops;
mod residents;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::origin::{Origin, origins};
use crate::entity::EntityMap;
use crate::ir::op::Control;
use crate::ir::{Func, Inst, Literal, Op, Region, Value, op};
use crate::launch::{Launch, Passed};
use crate::passes::indices::Indices;
use crate::schedule::assign::warps_of;
use crate::semantics;
use crate::target::{Schedule, Target, WARP_LANES};

/// Iterations of a loop of which nothing is known.
const ITERATIONS: f64 = 8.0;

/// Programs of each multiprocessor in a launch of which nothing is known.
const PROGRAMS: f64 = 64.0;

/// What a function costs under a schedule.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Cycles of a multiprocessor for its share of the launch, or of one that is long where none is known.
    pub cycles: f64,
    /// Cycles for which it moves what memory has to give and to take.
    pub memory: f64,
    /// Cycles for which it moves the same from and to the cache that all share.
    pub cache: f64,
    /// Cycles for which it issues instructions.
    pub issue: f64,
    /// Cycles for which it waits, all programs that it holds beside one another.
    pub latency: f64,
    /// Cycles for which it begins thread blocks.
    pub start: f64,
    /// Cycles from the begin of a program to its end.
    pub program: f64,
    /// Warps of a program.
    pub warps: u32,
    /// Warps of a program that states none.
    pub suiting_warps: u32,
    /// Registers of a lane, without those that it would have to spill.
    pub registers: u32,
    /// Registers that do not fit.
    pub spilled: u32,
    /// Programs that a multiprocessor holds at once.
    pub residents: u32,
}

/// A function with what is known of it, to be asked for its cost under many schedules.
pub struct Costs<'a> {
    func: &'a Func,
    target: &'a Target,
    indices: Indices,
    origins: EntityMap<Value, Origin>,
    /// What scalars are in the first program.
    numbers: EntityMap<Value, Option<Literal>>,
    /// The programs of the launch, if it is known.
    programs: Option<f64>,
    /// Bytes behind the parameters, as far as they are known.
    bytes: BTreeMap<Value, f64>,
    /// Tiles that bulk copies bring to shared memory.
    boxes: BTreeSet<Value>,
}

impl<'a> Costs<'a> {
    /// A function of the block stage; `launch` where one is known.
    #[must_use]
    pub fn of(func: &'a Func, target: &'a Target, launch: Option<&Launch<'_>>) -> Self {
        let insts = func.all_insts();
        let mut costs = Self {
            func,
            target,
            indices: Indices::of(func),
            origins: origins(func, &insts).of,
            numbers: EntityMap::filled(func.value_count(), None),
            programs: launch.map(|launch| launch.grid.iter().map(|&it| f64::from(it)).product()),
            bytes: BTreeMap::new(),
            boxes: BTreeSet::new(),
        };
        let arguments = launch.map_or(&[][..], |launch| launch.arguments);
        for (&value, argument) in func.arguments().iter().zip(arguments) {
            match *argument {
                Passed::Scalar(literal) => costs.numbers[value] = Some(literal),
                Passed::Memory { bytes, .. } => {
                    costs.bytes.insert(value, bytes as f64);
                }
            }
        }
        for inst in insts {
            costs.evaluate(inst, launch);
            if matches!(func.op(inst), Op::LoadBox(_)) {
                costs.boxes.extend(&func.inst(inst).results);
            }
        }
        costs
    }

    /// Notes what an instruction gives in the first program, and in the first iteration of a loop.
    fn evaluate(&mut self, inst: Inst, launch: Option<&Launch<'_>>) {
        let func = self.func;
        if let Some(Control::For(op)) = func.op(inst).control() {
            let counter = func.region(op.body).parameters[0];
            self.numbers[counter] = self.numbers[op.lower];
        }
        let &[result] = func.inst(inst).results.as_slice() else {
            return;
        };
        let ty = func.ty(result);
        let Some(dtype) = ty.dtype().filter(|_| ty.is_scalar()) else {
            return;
        };
        let op = func.op(inst);
        self.numbers[result] = if let Op::Constant(op) = op {
            Some(op.value)
        } else if let Op::ProgramId(_) = op {
            Literal::from_integer(dtype, 0)
        } else if let Op::NumPrograms(op) = op {
            let extent = launch.and_then(|launch| launch.grid.get(op.axis.index()));
            extent.and_then(|&extent| Literal::from_integer(dtype, extent.into()))
        } else if let Some(elementwise) = op.elementwise()
            && !matches!(op, Op::InlinePtx(_))
            && op.operands().iter().all(|&it| self.numbers[it].is_some())
        {
            let zero = Literal::from_bits(dtype, 0);
            let at = |value: Value| self.numbers[value].unwrap_or(zero);
            let bits = semantics::elementwise(elementwise, dtype, &at);
            Some(Literal::from_bits(dtype, bits))
        } else {
            None
        };
    }

    /// How often the body of a loop runs.
    fn iterations(&self, op: &op::For) -> f64 {
        let bound = |value: Value| self.numbers[value].and_then(Literal::integer);
        match (bound(op.lower), bound(op.upper)) {
            (Some(lower), Some(upper)) => {
                ((upper - lower).max(0) as f64 / op.step.max(1) as f64).ceil()
            }
            _ => ITERATIONS,
        }
    }

    /// The cost under a schedule whose numbers are in their ranges.
    #[must_use]
    pub fn on(&self, schedule: &Schedule) -> Cost {
        let gpu = &self.target.gpu;
        let warps = warps_of(self.func, self.target, schedule);
        let mut walk = Walk::new(self, warps, schedule);
        walk.region(self.func.body());
        let held = walk.most_held(self.func.body());
        let sum = walk.sum;
        let resident = residents::residents(gpu, schedule, warps, held, sum.shared);
        // What does not fit goes to memory and back each time.
        let spills = f64::from(resident.spilled) * f64::from(warps) * ops::SPILL * walk.repeats;
        let slots = sum.slots + spills;
        // A lane issues one instruction after the other.
        let program = sum.latency + slots / f64::from(warps) + f64::from(gpu.latency);
        let shares = f64::from(gpu.multiprocessors);
        let all = self.programs.unwrap_or(PROGRAMS * shares);
        let count = (all / shares).max(1.0);
        let beside = f64::from(resident.programs).min(count.ceil());
        // What is accessed again comes from the cache.
        let of_memory = sum.bytes.iter().map(|(base, bytes)| {
            let known = self.bytes.get(base);
            known.map_or(bytes * all, |&most| most.min(bytes * all))
        });
        let memory = of_memory.sum::<f64>() / shares / f64::from(gpu.memory_bytes);
        let cache = sum.all_bytes() * all / shares / f64::from(gpu.cache_bytes);
        let issue = count * slots / f64::from(ops::SCHEDULERS);
        let latency = count * program / beside;
        let blocks = count / f64::from(resident.shared_by);
        let start = blocks * f64::from(gpu.start_cycles);
        let parts = [memory, cache, issue, latency, start];
        // Parts that are as long as the longest do not overlap without a loss.
        let power: f64 = parts.iter().map(|part| part.powf(ops::OVERLAP)).sum();
        Cost {
            cycles: power.powf(1.0 / ops::OVERLAP) + program,
            memory,
            cache,
            issue,
            latency,
            start,
            program,
            warps,
            suiting_warps: warps_of(self.func, self.target, &Schedule::AUTO),
            registers: resident.registers,
            spilled: resident.spilled,
            residents: resident.programs,
        }
    }
}

/// What one program does.
#[derive(Clone, Default)]
struct Sum {
    /// Instructions of warps, each as long as a scheduler is busy with it.
    slots: f64,
    /// Cycles of the longest way from what is known at the begin to an effect, without the instructions.
    latency: f64,
    /// Bytes that each base hands over.
    bytes: Vec<(Value, f64)>,
    /// Bytes of shared memory.
    shared: f64,
}

impl Sum {
    fn all_bytes(&self) -> f64 {
        self.bytes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// When a value is there: after loads, and were there none.
type Ready = [f64; 2];

struct Walk<'c> {
    costs: &'c Costs<'c>,
    warps: f64,
    lanes: usize,
    stages: Option<u32>,
    /// How often the region at hand runs.
    times: f64,
    /// How often what runs most often runs.
    repeats: f64,
    ready: EntityMap<Value, Ready>,
    sum: Sum,
}

impl<'c> Walk<'c> {
    fn new(costs: &'c Costs<'_>, warps: u32, schedule: &Schedule) -> Self {
        Self {
            costs,
            warps: f64::from(warps),
            lanes: (warps * WARP_LANES) as usize,
            stages: schedule.stages,
            times: 1.0,
            repeats: 1.0,
            ready: EntityMap::filled(costs.func.value_count(), [0.0; 2]),
            sum: Sum::default(),
        }
    }

    /// Elements of a value that a lane holds.
    fn each(&self, value: Value) -> f64 {
        let elements = self.costs.func.ty(value).shape.elements();
        elements.div_ceil(self.lanes) as f64
    }

    /// Registers of a lane for a value.
    fn words(&self, value: Value) -> f64 {
        let bytes = ops::bytes(self.costs.func, value);
        let whole = self
            .costs
            .func
            .ty(value)
            .dtype()
            .map_or(0.0, |_| self.each(value));
        (whole * bytes / 4.0).ceil()
    }

    fn issue(&mut self, slots: f64) {
        self.sum.slots += slots * self.warps * self.times;
    }

    fn moved(&mut self, base: Value, bytes: f64) {
        self.sum.bytes.push((base, bytes * self.times));
    }

    /// All of a region; when the last of it has ended.
    fn region(&mut self, region: Region) -> Ready {
        let func = self.costs.func;
        let mut end = [0.0; 2];
        for &inst in &func.region(region).insts {
            let operands = func.op(inst).operands();
            let begin = operands.iter().fold([0.0; 2], |latest: Ready, &operand| {
                later(latest, self.ready[operand])
            });
            let took = self.inst(inst);
            let done = [begin[0] + took[0], begin[1] + took[1]];
            for &result in &func.inst(inst).results {
                self.ready[result] = done;
            }
            end = later(end, done);
        }
        self.sum.latency = self.sum.latency.max(end[0]);
        end
    }

    fn inst(&mut self, inst: Inst) -> Ready {
        match self.costs.func.op(inst).control() {
            Some(Control::For(op)) => {
                let iterations = self.costs.iterations(op);
                let stages = self.stages.map_or(op.stages as f64, f64::from);
                self.looped(&[op.body], iterations, stages.max(ops::AHEAD))
            }
            Some(Control::While(op)) => self.looped(&[op.before, op.body], ITERATIONS, 1.0),
            Some(Control::If(op)) => self.branch([op.on_true, op.on_false]),
            None => self.plain(inst),
        }
    }

    fn looped(&mut self, regions: &[Region], iterations: f64, ahead: f64) -> Ready {
        let (times, latency) = (self.times, self.sum.latency);
        self.times *= iterations;
        self.repeats = self.repeats.max(self.times);
        let mut once = [0.0; 2];
        for &region in regions {
            for &parameter in &self.costs.func.region(region).parameters {
                self.ready[parameter] = [0.0; 2];
            }
            once = later(once, self.region(region));
        }
        self.times = times;
        self.sum.latency = latency;
        // What is loaded for later iterations is under way beside this one.
        let each = once[1].max(once[0] / ahead);
        [
            once[0] + (iterations - 1.0).max(0.0) * each,
            iterations * once[1],
        ]
    }

    /// Of two versions of one thing the faster, else what does more.
    fn branch(&mut self, regions: [Region; 2]) -> Ready {
        let before = std::mem::take(&mut self.sum);
        let mut each = regions.map(|region| {
            let took = self.region(region);
            (std::mem::take(&mut self.sum), took)
        });
        let [one, other] = &each;
        let (bytes, slots) = (
            one.0.all_bytes().total_cmp(&other.0.all_bytes()),
            one.0.slots.total_cmp(&other.0.slots),
        );
        let second = match bytes {
            Ordering::Equal if one.0.all_bytes() > 0.0 => slots.is_gt(),
            Ordering::Equal => slots.is_lt(),
            Ordering::Less | Ordering::Greater => bytes.is_lt(),
        };
        let (sum, took) = std::mem::take(&mut each[usize::from(second)]);
        self.sum = before;
        self.sum.slots += sum.slots;
        self.sum.bytes.extend(sum.bytes);
        self.sum.shared = self.sum.shared.max(sum.shared);
        took
    }
}

fn later(one: Ready, other: Ready) -> Ready {
    [one[0].max(other[0]), one[1].max(other[1])]
}
