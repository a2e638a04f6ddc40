//! Machines that nobody has, for which no code is made.

use exactile::built::{Build, Built};
use exactile::prelude::*;
use exactile::{ListingStage, Target};

use super::text::copies;
use super::{Tried, adds};

/// The machines that nobody has: one number of a GPU is another.
fn machines() -> Vec<Target> {
    let mut all = Vec::new();
    for base in [Target::SM_90A, Target::SM_80] {
        for number in [0u32, 1, 3, 7, u32::MAX] {
            let mut changed = [base; 14];
            changed[0].gpu.shared_bytes = number;
            changed[1].gpu.bank_bytes = number;
            changed[2].gpu.exchange_bytes = number;
            changed[3].gpu.apart_bytes = -i64::from(number);
            changed[4].gpu.tile_registers = number;
            changed[5].gpu.registers = number;
            changed[6].gpu.thread_registers = (number, number);
            changed[7].gpu.most_warps = number;
            changed[8].gpu.shared_warps = number;
            changed[9].gpu.resident_warps = number;
            changed[10].gpu.resident_blocks = number;
            changed[11].vector_bytes = number;
            changed[12].line_bytes = number;
            changed[13].nest_lanes = 2 + number as usize;
            all.extend(changed);
        }
        all.push(Target {
            name: "no\0name",
            ..base
        });
        all.push(Target {
            distribution: Target::CPU.distribution,
            ..base
        });
        all.push(Target {
            distribution: base.distribution,
            ..Target::CPU
        });
        all.push(Target {
            native: Target::CPU.native,
            ..base
        });
    }
    for number in [0usize, 1, 3, 7] {
        all.push(Target {
            nest_lanes: number,
            ..Target::CPU
        });
        all.push(Target {
            vector_bytes: number as u32,
            ..Target::CPU
        });
        all.push(Target {
            line_bytes: number as u32,
            ..Target::CPU
        });
    }
    all
}

#[test]
fn machines_that_nobody_has() {
    let mut tried = Tried::default();
    let device = Device::cpu();
    let folder = std::env::temp_dir().join(format!("exactile-bad-{}", std::process::id()));
    for (index, machine) in machines().into_iter().enumerate() {
        let x = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let mut y = Buffer::<f32>::zeros(&device, 8).expect("fits");
        let kernel = adds();
        let name = format!("machine {index}");
        tried.refused(&name, || kernel.compile_times(&machine));
        for stage in ListingStage::ALL.into_iter().skip(1) {
            tried.refused(&name, || {
                let inspected = kernel.inspect(&device, 1, (&x, &mut y, 8))?;
                inspected.on(machine).text(stage)
            });
        }
        tried.refused(&name, || {
            let inspected = kernel.inspect(&device, 1, (&x, &mut y, 8))?;
            inspected.on(machine).after("lower")
        });
        tried.refused(&name, || copies()?.after("lower", &machine));
        tried.refused(&name, || Build::new(&folder, &machine));
    }
    tried.refused("none", || Build::new(&folder, &Target::CPU));
    tried.refused("none", || Built::open(&folder));
    assert!(!folder.exists());
    tried.end(100);
}
