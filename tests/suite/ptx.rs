//! Random programs become PTX that NVIDIA's assembler takes.

use std::path::PathBuf;

use exactile::{Bounds, Options, Schedule, Target};
use exactile_core::facts::Facts;
use exactile_core::pipeline;
use exactile_core::text::parse;
use exactile_core::verify;
use exactile_harness::testing::is_too_much_code;
use exactile_harness::testing::programs::generate::{Limits, able, generate};
use exactile_nvptx::{Assembler, emit};
use rayon::prelude::*;

/// Programs that are compiled.
const PROGRAMS: usize = 32;

/// Of so many compiled programs one is assembled, which takes much longer. GPUs take turns in steps
/// that have no factor in common with it, so that it comes to each.
const ASSEMBLED: usize = 5;

fn compile(index: usize, assembler: Option<&Assembler>) -> Result<(), String> {
    let program = generate(2, index, Limits::default());
    let able = able(&program.func);
    if able.is_empty() {
        return Ok(());
    }
    for (turn, warps) in [1, 4].into_iter().enumerate() {
        let schedule = Schedule {
            stages: program.schedule.stages,
            early: Some(1 + (index % 2) as u32),
            ..Schedule::AUTO.warps(warps)
        };
        let options = Options {
            bounds: program.bounds,
            determinism: program.determinism,
            schedule,
        };
        let facts = Facts {
            apart: turn == 0,
            ..program.facts.clone()
        };
        let observe = &mut pipeline::unobserved;
        let func = program.func.clone();
        let target = able[(index + turn) % able.len()];
        let lane = match pipeline::compile(func, &target, &options, &facts, observe) {
            Err(error) if is_too_much_code(&error.to_string()) => continue,
            lane => lane.map_err(|error| error.to_string())?,
        };
        let name = format!("program_{index}_{warps}");
        let ptx = emit(&lane, &target, &name).map_err(|error| error.to_string())?;
        if let Some(assembler) = assembler
            && (index + turn).is_multiple_of(ASSEMBLED)
        {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
            let assembled = assembler.assemble(ptx.text(), &folder, &name);
            assembled.map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[test]
fn random_programs_assemble() {
    let assembler = Assembler::find(crate::root());
    if assembler.is_none() {
        eprintln!("SKIPPED: no ptxas; set EXACTILE_PTXAS or run tools/test, which installs it");
    }
    let failures: Vec<String> = (0..PROGRAMS)
        .into_par_iter()
        .filter_map(|index| {
            let error = compile(index, assembler.as_ref()).err()?;
            Some(format!("program {index}: {error}"))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Two 16-bit numbers of a register and more values of `f64` than 24 registers hold: `ptxas` 13.0 would load the register
/// again, and take the second number from the one behind it.
#[test]
fn numbers_of_one_register_are_loaded_once() {
    let text = "func @f block (%x: ptr<bf16> divisor=16, %y: ptr<f32> write divisor=16) {
         %i = arange start=0, end=256 : tile<256xi64>
         %a = load %x, %i : tile<256xbf16>
         %b = cast %a : tile<256xf32>
         %c = asinh %b : tile<256xf32>
         store %y, %i, %c
       }";
    let func = parse(text, "f.bir").expect("parses");
    let func = verify::block(func).expect("is valid");
    let options = Options {
        bounds: Bounds::Unchecked,
        schedule: Schedule {
            registers: Some(24),
            ..Schedule::AUTO.warps(4)
        },
        ..Options::default()
    };
    let (facts, observe) = (Facts::default(), &mut pipeline::unobserved);
    let lane = pipeline::compile(func, &Target::SM_90A, &options, &facts, observe);
    let ptx = emit(&lane.expect("compiles"), &Target::SM_90A, "f").expect("is PTX");
    let Some(assembler) = Assembler::find(crate::root()) else {
        eprintln!("SKIPPED: no ptxas; set EXACTILE_PTXAS or run tools/test, which installs it");
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let assembled = assembler.assemble(ptx.text(), &folder, "pair_of_numbers");
    let sass = assembled.expect("assembles").sass;
    assert_eq!(sass.matches("LDG").count(), 1, "{sass}");
}

/// Divisions of `f64` part a warp, and behind them `ptxas` 13.0 brings it together too late where a loop is entered in two places,
/// as LLVM makes it of this program by itself: shuffles between lanes that are apart gave -0 for NaN.
#[test]
fn loops_are_entered_in_one_place() {
    let program = generate(77, 265, Limits::default());
    let options = Options {
        bounds: program.bounds,
        determinism: program.determinism,
        schedule: Schedule {
            registers: Some(32),
            ..Schedule::AUTO.warps(1)
        },
    };
    let observe = &mut pipeline::unobserved;
    let lane = pipeline::compile(
        program.func,
        &Target::SM_90A,
        &options,
        &program.facts,
        observe,
    );
    emit(&lane.expect("compiles"), &Target::SM_90A, "f").expect("has no loop with two entries");
}
