//! What makes a backend's input of a traced function: every stage, in order, on one page.
//!
//! A launch, a listing, a filetest, a random program and a record of machine code all come through here, so that
//! what is tested is what runs. Stages are named; an observer sees the function after each.

mod bounded;
mod boxed;
mod prepared;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::diagnostic::{Diagnostic, Diagnostics, Loc};
use crate::facts::{Boxed, Facts};
use crate::ir::{Func, Op};
use crate::lower::{distributed, sequential};
use crate::passes::{
    boxes, cut_products, decompose, expand_accumulators, expand_elements, expand_prints,
    expand_tiles, late_zeros, legalise, long_sums, nan_bits, narrow, pingpong, producer,
    promote_dots, quotients, resolve, roll_edges, roll_slices, rounded, sort_keys, specialise,
    stagger, tidy, uniform_mask, views, widen_dots,
};
use crate::schedule::PlacedFunc;
use crate::schedule::assign::{assign, lanes_of};
use crate::schedule::depth::{Staged, staged};
use crate::schedule::place::place;
use crate::schedule::results::results;
use crate::schedule::{rotate::rotate, small_views};
use crate::target::{Approximations, Bounds, Distribution, Options, Target};
use crate::verify::{self, BlockFunc, LaneFunc, ScheduleFunc};

pub use bounded::MOST_INSTRUCTIONS;
pub use boxed::with_copied_boxes;
use boxed::{share, without_boxes};
pub use prepared::PreparedFunc;

/// Sees the function after each stage, with the stage's name.
pub type Observer<'a> = dyn FnMut(&'static str, &Func) + 'a;

/// An observer that looks away.
pub fn unobserved(_: &'static str, _: &Func) {}

/// What a stage may ask of a compilation.
struct Context<'a> {
    target: &'a Target,
    options: &'a Options,
    facts: &'a Facts,
}

/// A pass with its name.
struct Stage {
    name: &'static str,
    run: fn(&mut Func, &Context<'_>) -> Result<(), Diagnostics>,
}

/// A stage that cannot fail.
macro_rules! by_context {
    ($name:literal, |$func:ident, $context:pat_param| $run:expr) => {
        Stage {
            name: $name,
            run: |$func, $context| {
                $run;
                Ok(())
            },
        }
    };
}

/// A stage that cannot fail and asks nothing.
macro_rules! plain {
    ($name:literal, $pass:path) => {
        by_context!($name, |func, _| $pass(func))
    };
}

/// A stage like that for GPUs alone.
macro_rules! distributed {
    ($name:literal, $pass:path) => {
        Stage {
            name: $name,
            run: |func, context| {
                match context.target.distribution {
                    Distribution::Sequential => {}
                    Distribution::Distributed => $pass(func),
                }
                Ok(())
            },
        }
    };
}

/// From the trace to what is lowered.
const BLOCK: &[Stage] = &[
    plain!("expand_tiles", expand_tiles::expand_tiles),
    plain!(
        "expand_accumulators",
        expand_accumulators::expand_accumulators
    ),
    by_context!("expand_elements", |func, context| {
        expand_elements::expand_elements(func, context.target.distribution)
    }),
    plain!("promote_dots", promote_dots::promote_dots),
    by_context!("widen_dots", |func, context| {
        widen_dots::widen_dots(func, context.target)
    }),
    distributed!("late_zeros_of_tiles", late_zeros::late_zeros),
    by_context!("part_dots", |func, context| {
        promote_dots::part_dots(func, context.target)
    }),
    by_context!("cut_products", |func, context| {
        let share = share(func, context.target, context.options);
        cut_products::cut_products(func, context.target, share);
    }),
    by_context!("specialise", |func, context| {
        specialise::specialise(func, context.facts)
    }),
    Stage {
        name: "resolve",
        run: |func, context| resolve::resolve(func, context.options.determinism),
    },
    plain!("expand_prints", expand_prints::expand_prints),
    by_context!("shorten_rounded", |func, context| {
        match context.target.approximations {
            Approximations::Native => rounded::shorten_rounded(func),
            Approximations::Absent => {}
        }
    }),
    Stage {
        name: "decompose",
        run: |func, context| {
            match context.target.approximations {
                Approximations::Native => decompose::decompose_native(func),
                Approximations::Absent => decompose::decompose_approximate(func),
            }
            decompose::decompose(func);
            Ok(())
        },
    },
    plain!("sort_keys", sort_keys::sort_keys),
    plain!("views", views::views),
    distributed!("small_views", small_views::reduce_small_views),
    plain!("tidy", tidy),
    plain!("shorten_sums", long_sums::shorten_sums),
    by_context!("boxes", |func, context| {
        if context.facts.boxes != Boxed::Nothing && boxes::may_copy_boxes(func, context.target) {
            boxes::raise_boxes(func, share(func, context.target, context.options));
        }
    }),
    by_context!("uniform_masks", |func, context| {
        let lanes = lanes_of(func, context.target, &context.options.schedule);
        uniform_mask::uniform_masks(func, lanes);
    }),
    plain!("tidy_masks", tidy),
];

/// The names of the stages that say where tiles of a GPU lie, after [`BLOCK`].
const SCHEDULE: &[&str] = &[
    "assign", "place", "rotate", "homes", "results", "pipeline", "waits", "adjoin", "rows",
    "strips",
];

/// The name of the lowering, before [`LANE`].
const LOWER: &str = "lower";

/// From what the lowering made to the last clean-up.
const LANE: &[Stage] = &[
    distributed!("narrow_comparisons", narrow::narrow_comparisons),
    distributed!("decide_elements", narrow::decide_elements),
    plain!("tidy_lanes", tidy),
    distributed!("late_zeros", late_zeros::late_zeros),
    distributed!("roll_edges", roll_edges::roll_edges),
    distributed!("roll_slices", roll_slices::roll_slices),
    distributed!("stagger_products", stagger::stagger_products),
    by_context!("producer", |func, context| {
        let schedule = &context.options.schedule;
        let mut asked = [schedule.occupancy, func.schedule.occupancy].into_iter();
        let is_one = asked.all(|blocks| blocks.is_none_or(|blocks| blocks == 1));
        if schedule.producer == Some(2) && is_one {
            producer::produce(func, context.target);
        }
    }),
    by_context!("pingpong", |func, context| {
        if context.options.schedule.pingpong == Some(2) {
            pingpong::pingpong(func);
        }
    }),
];

/// What every lane function needs before a backend takes it, one written by hand as well.
const FINISH: &[Stage] = &[
    plain!("canonical_reads", nan_bits::canonical_reads),
    by_context!("shorten_quotients", |func, context| {
        quotients::shorten_quotients(func, &context.target.native)
    }),
    by_context!("legalise", |func, context| legalise::legalise(
        func,
        &context.target.native
    )),
];

/// The names of all stages, in order. A CPU has none of the schedule.
pub fn stages() -> impl Iterator<Item = &'static str> {
    let names = |stages: &'static [Stage]| stages.iter().map(|stage| stage.name);
    let last = names(LANE).chain(names(FINISH));
    let first = names(BLOCK).chain(SCHEDULE.iter().copied());
    first.chain([LOWER]).chain(last)
}

fn run(
    stages: &[Stage],
    func: &mut Func,
    context: &Context<'_>,
    observe: &mut Observer<'_>,
) -> Result<(), Diagnostics> {
    for stage in stages {
        (stage.run)(func, context)?;
        observe(stage.name, func);
    }
    Ok(())
}

/// All stages. What comes out has the bits of what went in, on every target that approximates nothing.
///
/// # Errors
/// Ops that the determinism level rules out, tiles that are too large for the target, and too much code for one lane of it.
pub fn compile(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    let block = prepare(traced, target, options, facts, observe)?;
    lower(&block, target, options, facts, observe)
}

/// The stages on block IR, which [`lower`] goes on from. The bounds of `options` do not matter to them.
///
/// # Errors
/// Ops that the determinism level rules out.
pub fn prepare(
    traced: BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<PreparedFunc, Diagnostics> {
    let context = Context {
        target,
        options,
        facts,
    };
    let distributed = target.distribution == Distribution::Distributed;
    let made_of = distributed.then(|| (traced.clone(), facts.clone()));
    let mut func = traced.into_inner();
    run(BLOCK, &mut func, &context, observe)?;
    Ok(PreparedFunc::new(verify::block(func)?, made_of))
}

/// The stages after [`prepare`].
///
/// # Errors
/// Tiles that are too large for the target, and too much code for one lane of it.
pub fn lower(
    block: &PreparedFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    match target.distribution {
        Distribution::Sequential => {
            let block: &BlockFunc = block;
            let block = match are_unshown(block, facts) {
                false => Cow::Borrowed(block),
                true => Cow::Owned(verify::block(checked_tiles(block.clone().into_inner()))?),
            };
            let block = without_boxes(block, &|_, _| false)?;
            let lane = sequential::lower(&block, target, options)?;
            end(lane, target, options, facts, observe)
        }
        Distribution::Distributed => bounded::lower(block, target, options, facts, observe),
    }
}

/// The stages after [`prepare`] for a GPU, however much code they lead to.
fn distribute(
    block: &BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    let boxed = with_copied_boxes(block, target, options, facts)?;
    let stores = boxes::boxes_of(&boxed) == Boxed::All;
    let assigned = assign(boxed.into_owned(), target, &options.schedule)?;
    observe(SCHEDULE[0], &assigned);
    let staged = stated_layouts(assigned, target, options, facts, observe)?;
    if staged.fits || !stores {
        return lanes(&staged, target, options, facts, observe);
    }
    // Lanes store a result through less shared memory.
    let boxes = Boxed::Loads;
    let facts = Facts {
        boxes,
        ..facts.clone()
    };
    distribute(block, target, options, &facts, observe)
}

/// What [`lower`] goes on from for launches in which boxes of arrays can be copied, as
/// [`Boxes`](crate::launch::Boxes) says; nothing where that is what it always goes on from.
///
/// # Errors
/// Those of [`prepare`].
pub fn prepare_boxed(
    traced: &BlockFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<Option<PreparedFunc>, Diagnostics> {
    if !boxes::may_copy_boxes(traced, target) {
        return Ok(None);
    }
    let facts = Facts {
        boxes: Boxed::All,
        ..facts.clone()
    };
    let block = prepare(traced.clone(), target, options, &facts, observe)?;
    Ok(Some(block).filter(|block| boxes::boxes_of(block) != Boxed::Nothing))
}

/// The stages after the layouts of a schedule function are stated, all or some.
///
/// # Errors
/// Tiles that are too large for the target, and warps that are not those of the function.
pub fn expand(
    assigned: ScheduleFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    let staged = stated_layouts(assigned, target, options, facts, observe)?;
    lanes(&staged, target, options, facts, observe)
}

/// The stages of the schedule after the layouts are stated.
fn stated_layouts(
    assigned: ScheduleFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<Staged, Diagnostics> {
    let outside = |message: String| Diagnostic::new(Loc::none(), message);
    options.schedule.check(&target.gpu).map_err(outside)?;
    let stated = options.schedule.warps;
    if let Some(warps) = stated.filter(|&warps| warps != assigned.warps) {
        let message = format!("a function for {} warps, expected {warps}", assigned.warps);
        return Err(outside(message).into());
    }
    let assigned = match are_unshown(&assigned, facts) {
        false => assigned,
        true => verify::schedule(checked_tiles(assigned.into_inner()))?,
    };
    let placed = place(assigned, &target.gpu)?;
    observe(SCHEDULE[1], &placed);
    let rotated = rotate(&placed, options)?;
    in_slots((rotated, placed), target, options, facts)
}

/// The stages from what [`rotate`] gave on, up to the lowering.
fn in_slots(
    (rotated, placed): (Option<PlacedFunc>, PlacedFunc),
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<Staged, Diagnostics> {
    let checked = options.bounds == Bounds::Checked;
    let func = placed.clone();
    let may_end = |op: &Op| checked && func.may_end_at(op);
    staged((rotated, placed), target, (options, facts), &may_end)
}

/// The lowering and what comes after it.
fn lanes(
    staged: &Staged,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    let lane = distributed::lower(staged.last(), target, options, facts)?;
    let stages = SCHEDULE[2..].iter().zip(&staged.stages);
    stages.for_each(|(name, func)| observe(name, func));
    end(lane, target, options, facts, observe)
}

/// The stages after one of them, of a function as it stands: what tests plant faults behind. What comes behind `place` and
/// the stages that bring tiles to shared memory is the lowering.
///
/// # Errors
/// Those of [`compile`], all that is wrong with the function, and a name that no stage has.
pub fn resume(
    stage: &str,
    func: Func,
    target: &Target,
    options: &Options,
    facts: &Facts,
) -> Result<LaneFunc, Diagnostics> {
    let observe = &mut unobserved;
    match stage {
        "assign" => expand(verify::schedule(func)?, target, options, facts, observe),
        "rotate" => {
            let func = PlacedFunc::new(func)?;
            let staged = in_slots((None, func), target, options, facts)?;
            lanes(&staged, target, options, facts, observe)
        }
        _ if SCHEDULE.contains(&stage) => {
            let func = results(PlacedFunc::new(func)?)?;
            let lane = distributed::lower(&func, target, options, facts)?;
            end(lane, target, options, facts, observe)
        }
        _ => {
            let context = Context {
                target,
                options,
                facts,
            };
            let Some(done) = BLOCK.iter().position(|it| it.name == stage) else {
                let message = format!("there is no stage `{stage}`");
                return Err(Diagnostic::new(Loc::none(), message).into());
            };
            let (mut func, rest) = (func, &BLOCK[done + 1..]);
            run(rest, &mut func, &context, observe)?;
            let block = verify::block(func)?.into();
            lower(&block, target, options, facts, observe)
        }
    }
}

/// The stages after the lowering.
fn end(
    lane: LaneFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    observe(LOWER, &lane);
    let context = Context {
        target,
        options,
        facts,
    };
    let mut func = lane.into_inner();
    run(LANE, &mut func, &context, observe)?;
    run(FINISH, &mut func, &context, observe)?;
    verify::lane(func)
}

/// Whether a function accesses tiles of tensors that are not known to lie in their memory.
fn are_unshown(func: &Func, facts: &Facts) -> bool {
    !facts.inside && func.parameters.iter().any(|parameter| parameter.tiled)
}

/// The function with every access checked, those to tiles of tensors too.
fn checked_tiles(mut func: Func) -> Func {
    for parameter in &mut func.parameters {
        parameter.tiled = false;
    }
    func
}

/// The stages that a lane function written by hand needs before a backend takes it.
///
/// # Errors
/// None for a valid function.
pub fn finish(lane: LaneFunc, target: &Target) -> Result<LaneFunc, Diagnostics> {
    let context = Context {
        target,
        options: &Options::default(),
        facts: &Facts::default(),
    };
    let mut func = lane.into_inner();
    run(FINISH, &mut func, &context, &mut unobserved)?;
    verify::lane(func)
}
