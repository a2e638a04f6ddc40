//! A function for a number of warps: what is made of it, and what that must give.

use std::collections::BTreeMap;

use exactile_core::diagnostic::Diagnostics;
use exactile_core::facts::{Boxed, Facts};
use exactile_core::interp::lane::Timing;
use exactile_core::ir::{Func, Inst};
use exactile_core::passes::boxes::boxes_of;
use exactile_core::pipeline;
use exactile_core::target::{Bounds, Options, Schedule, Target};
use exactile_core::verify::{self, LaneFunc};

use super::report::{Finder, Report, Survivor};
use super::spared::is_spared;
use crate::testing::execute::{Place, Proven, compile};
use crate::testing::filetests::Ready;

/// The stages that faults are planted behind.
pub(super) const PLANTED_BEHIND: &[&str] = &[
    "boxes", "assign", "place", "rotate", "homes", "results", "pipeline", "waits", "adjoin",
    "rows", "strips",
];

/// Those of them that most functions pass unchanged: behind these, faults are planted in what they make.
const RARE: &[&str] = &["boxes", "rotate", "waits", "adjoin", "rows", "strips"];

/// A function on a number of warps, without a fault.
pub(super) struct Subject<'a> {
    ready: &'a Ready,
    warps: u32,
    /// What decides which of several like faults is planted.
    pub(super) seed: u64,
    target: Target,
    options: Options,
    facts: Facts,
    /// The function after each stage that faults are planted behind.
    stages: BTreeMap<&'static str, Func>,
    /// What it is lowered to.
    pub(super) lane: LaneFunc,
    /// What each run gives.
    wants: Vec<String>,
}

/// What launches of a function show: boxes that a person has written are those of arrays that can be copied, and those that
/// the compiler makes are where all runs show it.
fn facts(ready: &Ready, target: &Target, options: &Options) -> Result<Facts, String> {
    let facts = Facts::default();
    let Proven::Block(func) = &ready.func else {
        return Ok(facts);
    };
    let written = boxes_of(func);
    let boxes = match written {
        Boxed::Nothing => {
            let observe = &mut pipeline::unobserved;
            let boxed = pipeline::prepare_boxed(func, target, options, &facts, observe);
            let boxed = boxed.map_err(|error| error.to_string())?;
            boxed.map_or(Boxed::Nothing, |boxed| ready.boxes(&boxed))
        }
        Boxed::Loads | Boxed::All => written,
    };
    Ok(Facts { boxes, ..facts })
}

impl<'a> Subject<'a> {
    pub(super) fn new(ready: &'a Ready, warps: u32, seed: u64) -> Result<Self, String> {
        let place = Place::Lanes {
            gpu: ready.gpu,
            warps,
        };
        let target = place.target();
        let options = Options {
            bounds: Bounds::Unchecked,
            schedule: Schedule {
                warps: Some(warps),
                ..ready.schedule
            },
            ..Options::default()
        };
        let facts = facts(ready, &target, &options)?;
        let mut stages = BTreeMap::new();
        let mut before = ready.func.func().to_string();
        let observe = &mut |name: &'static str, func: &Func| {
            let text = func.to_string();
            let made = !RARE.contains(&name) || text != before;
            if PLANTED_BEHIND.contains(&name) && made {
                stages.insert(name, func.clone());
            }
            before = text;
        };
        let lane = compile(&ready.func, &target, &options, &facts, observe)?;
        let wants = (0..ready.runs()).map(|run| ready.run(&lane, run, Timing::default()));
        let wants = wants.collect::<Result<_, _>>()?;
        Ok(Self {
            ready,
            warps,
            seed,
            target,
            options,
            facts,
            stages,
            lane,
            wants,
        })
    }

    /// The function's file and name.
    pub(super) fn name(&self) -> &str {
        &self.ready.name
    }

    /// Whether a person has written the lane function.
    pub(super) fn is_lane(&self) -> bool {
        matches!(self.ready.func, Proven::Lane(_))
    }

    /// The function after a stage of [`PLANTED_BEHIND`]; nothing of one without such a stage.
    pub(super) fn after(&self, stage: &str) -> Option<&Func> {
        self.stages.get(stage)
    }

    /// What the stages after one of them make of a function.
    pub(super) fn lowered(&self, stage: &str, func: Func) -> Result<LaneFunc, Diagnostics> {
        pipeline::resume(stage, func, &self.target, &self.options, &self.facts)
    }

    /// Whether the replay of buffers holds of the function as it is: not of one that a person has written, nor behind a pass that takes
    /// buffers out of their places.
    pub(super) fn is_placed(&self) -> bool {
        !self.is_lane() && verify::placement(&self.lane).is_ok()
    }

    /// What the verifier and the replay of buffers let pass of a lane function.
    pub(super) fn verified(&self, func: Func) -> Result<LaneFunc, Finder> {
        let lane = verify::lane(func).map_err(|_| Finder::Verifier)?;
        match self.is_placed() && verify::placement(&lane).is_err() {
            true => Err(Finder::Placement),
            false => Ok(lane),
        }
    }

    /// Whether the interpreter finds a fault, or results differ: at one time, and where `goes_on` says so at others.
    pub(super) fn run(&self, lane: &LaneFunc, goes_on: &mut dyn FnMut() -> bool) -> Option<Finder> {
        let [first, others @ ..] = Timing::several(0);
        let at = |timing| self.run_at(lane, timing);
        at(first).or_else(|| match goes_on() {
            true => others.into_iter().find_map(at),
            false => None,
        })
    }

    fn run_at(&self, lane: &LaneFunc, timing: Timing) -> Option<Finder> {
        let mut wants = self.wants.iter().enumerate();
        wants.find_map(|(run, want)| match self.ready.run(lane, run, timing) {
            Err(_) => Some(Finder::Interpreter),
            Ok(found) => (found != *want).then_some(Finder::Bits),
        })
    }

    /// Whether some run of a lane function has a fault.
    pub(super) fn comes_to_fault(&self, lane: &LaneFunc) -> bool {
        let timing = Timing::default();
        (0..self.wants.len()).any(|run| self.ready.run(lane, run, timing).is_err())
    }

    /// Notes who finds a fault at an instruction of `func`, in what is made of it. One that no run reaches, or that is spared,
    /// is run at one time alone.
    pub(super) fn judge(
        &self,
        report: &mut Report,
        (fault, lane): (&'static str, Result<LaneFunc, Finder>),
        (func, inst): (&Func, Inst),
        reached: &mut dyn FnMut() -> bool,
    ) {
        let goes_on = &mut || !is_spared(fault, self.name()) && reached();
        let found = match lane {
            Err(finder) => Some(finder),
            Ok(lane) => self.run(&lane, goes_on),
        };
        match found {
            Some(finder) => report.found(fault, finder),
            None if reached() => self.survived(report, fault, (func, inst)),
            None => report.unreached(fault),
        }
    }

    /// Notes a fault at an instruction of `func` that nobody has found.
    pub(super) fn survived(
        &self,
        report: &mut Report,
        fault: &'static str,
        (func, inst): (&Func, Inst),
    ) {
        let data = func.inst(inst);
        report.survived(Survivor {
            fault,
            function: self.ready.name.clone(),
            warps: self.warps,
            inst: format!(
                "`{}` at {}, instruction {inst:?}",
                data.op.mnemonic(),
                data.loc
            ),
        });
    }
}
