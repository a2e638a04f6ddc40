//! How many programs share a thread block. A lane function says what one of them does, whatever their number:
//! the backend gives each its warps, its shared memory and its barriers.

use crate::ir::Func;
use crate::schedule::reread::{BLOCKS, has_reread};
use crate::target::{Schedule, Target};

/// How many thread blocks of a function a multiprocessor is to have registers for, if that is stated or rows are read again.
pub(super) fn occupancy(block: &Func, asked: &Schedule) -> Option<u32> {
    let again = || has_reread(block).then_some(BLOCKS);
    asked.occupancy.or_else(again)
}

/// What a function states of the programs of a thread block, if anything: what is asked for or, of programs of
/// one warp, enough to fill a multiprocessor.
pub(super) fn programs(func: &Func, target: &Target, asked: &Schedule) -> Option<u32> {
    let shared = i64::from(target.gpu.shared_bytes);
    if let Some(most) = asked.programs {
        return Some(most.min(fitting(func, target, asked, shared)));
    }
    // An occupancy counts thread blocks, of whoever asked for it.
    if func.warps > 1 || asked.occupancy.is_some() {
        return None;
    }
    // As many blocks fit as the multiprocessor has warps for.
    let gpu = &target.gpu;
    let blocks = i64::from(gpu.resident_warps / gpu.shared_warps);
    let programs = fitting(func, target, asked, shared / blocks).min(gpu.shared_warps);
    Some(programs).filter(|&programs| programs > 1)
}

/// The most programs that a thread block has room for in so much shared memory, a power of two.
fn fitting(func: &Func, target: &Target, asked: &Schedule, shared: i64) -> u32 {
    if func.takes_thread_block() {
        return 1;
    }
    let resident = target.gpu.resident_warps / asked.occupancy.unwrap_or(1);
    let warps = target.gpu.most_warps.min(resident) / func.warps;
    let bank = i64::from(target.gpu.bank_bytes);
    let own = func.shared_bytes().max(1);
    let memory = shared / (own.saturating_add(bank - 1) / bank * bank);
    let most = i64::from(warps).min(memory).max(1);
    1 << most.ilog2()
}
