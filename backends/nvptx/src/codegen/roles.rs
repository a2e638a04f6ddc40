//! Registers of warps with parts of their own.

use exactile_core::ir::{Func, Op, op};
use exactile_core::target::Target;

/// Warps that are given registers together.
const GROUP: u32 = 4;

/// The registers of a lane that multiplies nothing.
const FEW: u32 = 40;

/// The most registers that a lane is given.
const MOST: u32 = 240;

/// What the lanes of each role say about the registers that they need, where roles are groups of four warps of which some multiply: those
/// that do not give theirs away. `None` where all lanes keep what they have.
/// Source: `setmaxnreg`, PTX ISA 9.7.20.5.
pub(super) fn registers(func: &Func, target: &Target, op: &op::Roles) -> Option<Vec<String>> {
    let multiplies = |region| {
        let mut found = false;
        func.walk(region, &mut |inst| {
            found |= matches!(func.op(inst), Op::GroupMma(_))
        });
        found
    };
    let groups = |multiplying: bool| {
        let roles = op
            .warps
            .iter()
            .filter(|&&(_, region)| multiplies(region) == multiplying);
        roles.map(|&(warps, _)| warps / GROUP).sum::<u32>()
    };
    let (busy, idle) = (groups(true), groups(false));
    let is_whole = op.warps.iter().all(|&(warps, _)| warps % GROUP == 0);
    let schedule = func.schedule;
    let is_one = schedule.registers.is_none() && schedule.occupancy.is_none_or(|it| it == 1);
    if !is_whole || busy == 0 || idle == 0 || !is_one {
        return None;
    }
    let many = dealt(target.gpu.registers, busy, idle)?;
    let text = op
        .warps
        .iter()
        .map(|&(_, region)| match multiplies(region) {
            true => format!("setmaxnreg.inc.sync.aligned.u32 {many};"),
            false => format!("setmaxnreg.dec.sync.aligned.u32 {FEW};"),
        });
    Some(text.collect())
}

/// The registers of a lane in each of `busy` groups of warps, where `idle` ones give theirs away; `None` where nothing is won.
fn dealt(registers: u32, busy: u32, idle: u32) -> Option<u32> {
    // What a thread block has at first is all that it can deal out.
    let at_first = registers / (GROUP * 32) / (busy + idle) / 8 * 8;
    let all = at_first * (busy + idle);
    let many = (all.checked_sub(idle * FEW)? / busy).min(MOST) / 8 * 8;
    (many > at_first && at_first > FEW).then_some(many)
}

#[cfg(test)]
mod tests {
    use super::{FEW, GROUP, dealt};

    #[test]
    fn no_more_registers_are_dealt_than_a_thread_block_has() {
        for (busy, idle) in (1..8).flat_map(|busy| (1..8).map(move |idle| (busy, idle))) {
            let at_first = 65536 / (GROUP * 32 * (busy + idle)) / 8 * 8;
            if let Some(many) = dealt(65536, busy, idle) {
                assert!(many > at_first, "{busy} and {idle}: {many}");
                assert!(busy * many + idle * FEW <= (busy + idle) * at_first);
            }
        }
        assert_eq!(dealt(65536, 2, 1), Some(232));
        assert_eq!(dealt(65536, 4, 1), Some(104));
        assert_eq!(dealt(65536, 1, 1), None);
    }
}
