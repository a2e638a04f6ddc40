//! Compilations that no launch waits for: to be timed, or to be looked at.

use exactile_core::facts::{Boxed, Facts};
use exactile_core::launch::Launch;
use exactile_core::passes::boxes::boxes_of;
use exactile_core::passes::conditions::Conditions;
use exactile_core::pipeline::PreparedFunc;
use exactile_core::target::{Distribution, Options, Target};
use exactile_core::verify::{BlockFunc, LaneFunc};
use exactile_store::Store;

use super::{Compilation, Narrower, StageTime};
use crate::cache::CodeKey;
use crate::code::Sites;
use crate::cuda::GridMapping;
use crate::disk::Origin;
use crate::error::{Error, Result};

/// What is shown of a kernel without a launch: that of one whose rows do not meet.
pub(crate) const ORDINARY: Facts = Facts {
    arguments: Vec::new(),
    within: Vec::new(),
    apart: true,
    inside: true,
    boxes: Boxed::All,
};

/// Refuses a machine that somebody has made up: its numbers may mean nothing.
pub(crate) fn expect_known(target: &Target) -> Result<()> {
    match target.is_known() {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "there is no machine `{}` with these properties, expected one of `Target::all()`",
            target.name
        ))),
    }
}

/// The times of all stages to machine code of a CPU or of a GPU, or to PTX. Nothing is taken from memory or put
/// there; what is for a GPU is taken from `store` and put there.
pub(crate) fn compile_times(
    target: &Target,
    options: &Options,
    facts: &Facts,
    store: Option<&Store>,
    trace: impl FnOnce() -> Result<BlockFunc>,
) -> Result<Vec<StageTime>> {
    expect_known(target)?;
    let mut compilation = Compilation::new();
    let traced = trace()?;
    compilation.name(&traced);
    compilation.done("trace", &traced);
    let origin = Origin::of(&traced, facts);
    let block = compilation.prepare(traced, target, options, facts)?;
    let boxes = boxes_of(&block);
    let facts = facts.clone();
    let facts = &Facts { boxes, ..facts };
    let grid = GridMapping::Direct;
    let place = origin.place(target, options, facts, grid);
    let cached = store.and_then(|store| place.as_ref()?.cached(store));
    if cached.as_ref().is_some_and(|it| it.find().is_some()) {
        compilation.note("disk");
        return Ok(compilation.times);
    }
    let lane = compilation.lane(&block, target, options, facts)?;
    match target.distribution {
        Distribution::Sequential => drop(compilation.cpu(&lane)?),
        Distribution::Distributed => {
            let ptx = compilation.ptx(&lane, target, grid, compilation.shown.writes())?;
            if let Some(cached) = cached {
                cached.keep(&CodeKey::new(&lane, grid.name()), &Sites::of(&lane), &ptx);
                compilation.note("disk");
            }
        }
    }
    Ok(compilation.times)
}

/// The lane IR that code for `target` is made from, of launches of which these facts are known.
pub(crate) fn lane_ir(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<LaneFunc> {
    let mut compilation = Compilation::of(&traced);
    let block = compilation.prepare(traced, target, options, facts)?;
    compilation.lane(&block, target, options, facts)
}

/// What a launch on a machine is made from.
pub(crate) struct Lowered {
    pub(crate) block: PreparedFunc,
    pub(crate) lane: LaneFunc,
    /// What both rely on.
    pub(crate) facts: Facts,
}

/// What the code for `launch` is made from; `facts`: what is known of each argument.
pub(crate) fn lowered_for(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    launch: &Launch<'_>,
) -> Result<Lowered> {
    expect_known(target)?;
    let mut compilation = Compilation::of(&traced);
    let block = compilation.prepare(traced.clone(), target, options, facts)?;
    let narrower = Narrower::of(traced.clone(), &block, target, options, facts);
    let within = narrower.map_or(Vec::new(), |it| it.known(launch).to_vec());
    let facts = &Facts {
        within,
        ..facts.clone()
    };
    let block = match facts.within.is_empty() {
        true => block,
        false => compilation.prepare(traced.clone(), target, options, facts)?,
    };
    let boxed = compilation.boxed(&traced, target, options, facts)?;
    let conditions = Conditions::of(&traced, &block, boxed.as_deref(), target);
    let holding = conditions.facts(launch);
    let block = boxed
        .filter(|_| holding.boxes != Boxed::Nothing)
        .unwrap_or(block);
    let lane = compilation.lane(&block, target, options, &holding)?;
    let facts = Facts {
        arguments: facts.arguments.clone(),
        within: facts.within.clone(),
        ..holding
    };
    Ok(Lowered { block, lane, facts })
}

/// The block IR that is lowered for `target`, of arguments that nothing is known of.
pub(crate) fn block_ir(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<PreparedFunc> {
    Compilation::of(&traced).prepare(traced, target, options, facts)
}
