//! A bound on the code of a lane, so that compiling ends soon: LLVM and assemblers take a tenth of a millisecond and more for
//! each instruction, and several times that where registers do not suffice.

use super::{Observer, PreparedFunc, distribute, unobserved};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::facts::Facts;
use crate::ir::Op;
use crate::launch::Boxes;
use crate::passes::code_size::{carried, instructions, longest, steps};
use crate::target::{Gpu, Options, Schedule, Target};
use crate::verify::LaneFunc;

/// The most instructions of a lane, as [`instructions`] counts them, where tiles and not what is written make them many.
pub const MOST_INSTRUCTIONS: usize = 11_000;

/// A lane that has fewer words of most tiles has as much code for any number of warps: what is written is long.
const WORDS: usize = 4;

/// The code of a lane, on the warps that are asked for. Where nobody asks for any and those that suit the tiles lead to too much
/// code, on the next number of warps that does not, for which the function is prepared again; `observe` sees every number that
/// is tried then.
///
/// # Errors
/// Those of the stages, and code beyond the bound: which numbers of warps lead to less.
pub(super) fn lower(
    block: &PreparedFunc,
    target: &Target,
    options: &Options,
    facts: &Facts,
    observe: &mut Observer<'_>,
) -> Result<LaneFunc, Diagnostics> {
    let lane = distribute(block, target, options, facts, observe)?;
    let Some(excess) = excess(&lane, &target.gpu) else {
        return Ok(lane);
    };
    let on = |warps: u32| Options {
        schedule: Schedule {
            warps: Some(warps),
            ..options.schedule
        },
        ..*options
    };
    let stated = options.schedule.warps;
    let observe: &mut Observer<'_> = match stated {
        None => observe,
        Some(_) => &mut unobserved,
    };
    let asked = Boxes::of(block);
    for warps in others(sharing(&lane), target.gpu.most_warps) {
        let options = &on(warps);
        let Some(again) = block.again(target, options, observe) else {
            return Err(excess.note("use other warps, or a smaller tile").into());
        };
        let again = match stated {
            None => again.and_then(|block| block.within(&asked)),
            Some(_) => again,
        };
        let other = again.and_then(|block| distribute(&block, target, options, facts, observe));
        if let Ok(lane) = other
            && self::excess(&lane, &target.gpu).is_none()
        {
            return match stated {
                None => Ok(lane),
                Some(_) => {
                    let fitting = of_warps(warps);
                    let remedy = format!("use {fitting}, or a smaller tile");
                    Err(excess.note(remedy).into())
                }
            };
        }
    }
    Err(excess.note("use a smaller tile").into())
}

/// The warps that share tiles.
fn sharing(lane: &LaneFunc) -> u32 {
    let mut insts = lane.all_insts().into_iter();
    let first = insts.find_map(|inst| {
        let Op::Roles(op) = lane.op(inst) else {
            return None;
        };
        op.warps.first().map(|&(warps, _)| warps)
    });
    first.unwrap_or(lane.warps)
}

/// Other numbers of warps than `warps`: more of them, the fewest first, then fewer.
fn others(warps: u32, most: u32) -> impl Iterator<Item = u32> {
    let twice = move |&warps: &u32| warps.checked_mul(2).filter(|&warps| warps <= most);
    let half = |&warps: &u32| Some(warps / 2).filter(|&warps| warps > 0);
    let more = std::iter::successors(twice(&warps), twice);
    more.chain(std::iter::successors(half(&warps), half))
}

/// What a lane has too much of.
fn excess(lane: &LaneFunc, gpu: &Gpu) -> Option<Diagnostic> {
    let (warps, most) = (of_warps(sharing(lane)), gpu.thread_registers.1 as usize);
    let (carried, values) = carried(lane);
    let message = if carried > most && carried > WORDS * values {
        format!(
            "a loop carries {carried} registers of each lane on {warps}, expected at most {most}"
        )
    } else {
        let found = instructions(lane);
        let many = found > MOST_INSTRUCTIONS && found > WORDS * steps(lane);
        many.then(|| {
            format!(
                "the code of a lane on {warps} is about {found} instructions, expected at most {MOST_INSTRUCTIONS}"
            )
        })?
    };
    Some(Diagnostic::new(longest(lane), message))
}

fn of_warps(warps: u32) -> String {
    match warps {
        1 => "1 warp".to_string(),
        _ => format!("{warps} warps"),
    }
}
