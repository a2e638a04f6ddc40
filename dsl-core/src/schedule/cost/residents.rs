//! How many programs a multiprocessor holds at once, and with how many registers.

use std::collections::BTreeMap;

use super::Walk;
use super::ops::BESIDE;
use crate::ir::{Region, Value};
use crate::schedule::origin::Origin;
use crate::target::{Gpu, Schedule, WARP_LANES};

/// What a multiprocessor has room for.
pub(super) struct Residents {
    /// Registers of a lane.
    pub(super) registers: u32,
    /// Those that do not fit.
    pub(super) spilled: u32,
    /// Programs at once.
    pub(super) programs: u32,
    /// Programs of a thread block.
    pub(super) shared_by: u32,
}

pub(super) fn residents(
    gpu: &Gpu,
    schedule: &Schedule,
    warps: u32,
    held: f64,
    shared: f64,
) -> Residents {
    let lanes = warps * WARP_LANES;
    let shared_by = match schedule.programs {
        Some(programs) => programs.min(gpu.most_warps / warps),
        None if warps == 1 && schedule.occupancy.is_none() => gpu.shared_warps,
        None => 1,
    };
    let block = lanes * shared_by;
    let wanted = held as u32 + BESIDE;
    let asked = schedule
        .occupancy
        .map_or(u32::MAX, |it| gpu.registers / (block * it).max(1));
    let most = gpu.thread_registers.1.min(gpu.registers / block);
    let most = most.min(asked).min(schedule.registers.unwrap_or(most));
    let most = most.max(gpu.thread_registers.0);
    let registers = wanted.min(most).next_multiple_of(8).min(most);
    let of_memory = (f64::from(gpu.shared_bytes) / (shared * f64::from(shared_by)).max(1.0)) as u32;
    let blocks = (gpu.registers / (registers * block).max(1))
        .min(gpu.resident_warps / (warps * shared_by))
        .min(gpu.resident_blocks)
        .min(of_memory)
        .max(1);
    Residents {
        registers,
        spilled: wanted.saturating_sub(most),
        programs: blocks * shared_by,
        shared_by,
    }
}

impl Walk<'_> {
    /// The most registers that a lane holds at once in a region and all in it.
    pub(super) fn most_held(&self, region: Region) -> f64 {
        let func = self.costs.func;
        let data = func.region(region);
        let mut last: BTreeMap<Value, usize> = BTreeMap::new();
        for (at, &inst) in data.insts.iter().enumerate() {
            let mut note = |value: Value| {
                last.insert(value, at);
            };
            func.op(inst).operands().into_iter().for_each(&mut note);
            for inner in func.op(inst).regions() {
                func.walk(inner, &mut |inst| {
                    func.op(inst).operands().into_iter().for_each(&mut note);
                });
            }
        }
        let held = |value: Value| {
            let computed = self.costs.origins[value] == Origin::Computed;
            let elsewhere = func.ty(value).is_scalar() || self.costs.boxes.contains(&value);
            if computed && !elsewhere {
                self.words(value)
            } else {
                0.0
            }
        };
        let mut ends = vec![0.0; data.insts.len()];
        let mut now: f64 = 0.0;
        for &value in &data.parameters {
            now += held(value);
            if let Some(&at) = last.get(&value) {
                ends[at] += held(value);
            }
        }
        let mut most = now;
        for (at, &inst) in data.insts.iter().enumerate() {
            let inner = func.op(inst).regions().into_iter();
            let inner = inner.map(|it| self.most_held(it)).fold(0.0, f64::max);
            most = most.max(now + inner);
            now -= ends[at];
            for &value in &func.inst(inst).results {
                // What nothing uses is never there.
                if let Some(&end) = last.get(&value) {
                    now += held(value);
                    ends[end] += held(value);
                }
            }
            most = most.max(now);
        }
        most
    }
}
