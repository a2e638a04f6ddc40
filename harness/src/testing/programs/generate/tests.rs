//! What the programs of a run have between them.

use std::collections::BTreeSet;

use exactile_core::facts::Known;
use exactile_core::ir::{
    AtomicOp, Cache, DType, Effect, MemoryOrder, Op, Precision, Scope, Shape, Stage, Value, op,
};
use exactile_core::launch::Argument;
use exactile_core::target::ScheduleField;

use super::{Limits, Program, generate};
use crate::ops::rows;
use crate::testing::programs::values::LEAST_ADDEND;

#[test]
fn a_program_depends_on_its_seed_and_index_alone() {
    let text = |seed, index| generate(seed, index, Limits::default()).func.to_string();
    assert_eq!(text(5, 3), text(5, 3));
    assert_ne!(text(5, 3), text(5, 4));
    assert_ne!(text(5, 3), text(6, 3));
}

#[test]
fn tiles_of_one_element_are_enough_for_a_program() {
    for index in 0..30 {
        let limits = Limits {
            elements: 1,
            ..Limits::default()
        };
        generate(1, index, limits);
    }
}

/// All but a device's own functions and what passes alone make.
#[test]
fn programs_have_every_op_of_blocks() {
    let mut missing: BTreeSet<&str> = rows()
        .into_iter()
        .filter(|row| row.stages.contains(&Stage::Block.word()))
        .filter(|row| {
            row.kind != Some("approximate") && !["load_box", "store_box"].contains(&row.name)
        })
        .map(|row| row.name)
        .collect();
    let mut hints: BTreeSet<Cache> = Cache::ALL.iter().copied().collect();
    let mut ordered = BTreeSet::new();
    let mut products = BTreeSet::new();
    for index in 0..600 {
        let func = generate(1, index, Limits::default()).func;
        for inst in func.all_insts() {
            let op = func.op(inst);
            missing.remove(op.mnemonic());
            if let Op::Load(op::Load { cache, .. })
            | Op::Store(op::Store { cache, .. })
            | Op::TileLoad(op::TileLoad { cache, .. })
            | Op::TileStore(op::TileStore { cache, .. }) = op
            {
                hints.retain(|&hint| Some(hint) != *cache);
            }
            if let Op::AtomicReduce(op::AtomicReduce { order, scope, .. })
            | Op::TileAtomic(op::TileAtomic { order, scope, .. }) = op
            {
                ordered.insert(("combines", *order, *scope));
            }
            if let Op::AtomicFetch(op::AtomicFetch { order, scope, .. })
            | Op::TileFetch(op::TileFetch { order, scope, .. }) = op
            {
                ordered.insert(("fetches", *order, *scope));
            }
            if let Op::Dot(dot) = op {
                products.insert((dot.precision, func.ty(dot.a).dtype()));
            }
        }
    }
    assert!(missing.is_empty(), "never generated: {missing:?}");
    assert!(hints.is_empty(), "never generated: {hints:?}");
    let scopes = 1 + Scope::ALL.len();
    let orders = 1 + MemoryOrder::ALL.len();
    assert_eq!(ordered.len(), (2 + orders) * scopes, "{ordered:?}");
    for (precision, kinds) in [(Precision::Ieee, 14), (Precision::Hopper, 8)] {
        let found = products.iter().filter(|it| it.0 == precision);
        assert_eq!(found.count(), kinds, "{products:?}");
    }
}

/// The shapes of all results of a program.
fn shapes(program: &Program) -> Vec<Shape> {
    let func = &program.func;
    let insts = func.all_insts().into_iter();
    let results = insts.flat_map(|inst| &func.inst(inst).results);
    results.map(|&value| func.ty(value).shape).collect()
}

#[test]
fn launches_differ_in_all_that_they_can() {
    let programs: Vec<Program> = (0..480)
        .map(|index| generate(3, index, Limits::default()))
        .collect();
    let schedules = programs.iter().map(|program| program.schedule);
    for &field in ScheduleField::ALL {
        let found: BTreeSet<_> = schedules.clone().map(|it| it.get(field)).collect();
        let mut expected: BTreeSet<_> = field.row().tries.iter().copied().map(Some).collect();
        if field != ScheduleField::Warps {
            expected.insert(None);
        }
        assert_eq!(found, expected, "{field:?}");
    }

    let mut known: Vec<Known> = Vec::new();
    let mut loops = BTreeSet::new();
    let (mut strided, mut large) = (0, 0);
    let (mut ranges, mut numbers) = (0, 0);
    for program in &programs {
        known.extend(&program.facts.arguments);
        for it in &program.facts.within {
            *(if it.least == it.most {
                &mut numbers
            } else {
                &mut ranges
            }) += 1;
        }
        let parameters = program.func.parameters.iter();
        strided += parameters
            .filter(|it| it.divisor > 1 && it.name.starts_with('s'))
            .count();
        let elements = shapes(program).iter().map(|shape| shape.elements()).max();
        large += usize::from(elements == Some(64 * Limits::default().elements));
        for inst in program.func.all_insts() {
            if let Op::For(it) = program.func.op(inst) {
                loops.insert(it.stages);
            }
        }
    }
    assert!(ranges > 20 && numbers > 2, "{ranges} {numbers}");
    assert!(
        [Known::One, Known::Divisor(1), Known::Divisor(16)]
            .iter()
            .all(|it| known.contains(it))
    );
    assert_eq!(loops, (0..5).collect());
    assert!(strided > 100, "{strided} strides have a divisor");
    assert_eq!(large, 5, "programs with the largest tiles");
    let wide = programs
        .iter()
        .filter(|it| it.grid.iter().product::<u32>() > 16);
    assert_eq!(wide.count(), 10);
}

/// The op of an atomic, its pointer or its tensor, and the number.
fn combined(op: &Op) -> Option<(AtomicOp, Value, Value)> {
    if let Some(access) = op.access()
        && let Effect::Combines(op) | Effect::Fetches(op) = access.effect
    {
        return Some((op, access.base, access.value?));
    }
    let (Op::TileAtomic(op::TileAtomic {
        op, tensor, value, ..
    })
    | Op::TileFetch(op::TileFetch {
        op, tensor, value, ..
    })) = op
    else {
        return None;
    };
    Some((*op, *tensor, *value))
}

#[test]
fn sums_in_memory_are_of_no_small_numbers() {
    let mut sums = 0;
    for index in 0..960 {
        let mut program = generate(7, index, Limits::default());
        let definitions = program.func.definitions();
        for inst in program.func.all_insts() {
            let Some((AtomicOp::Add, place, value)) = combined(program.func.op(inst)) else {
                continue;
            };
            let base = match definitions[place].map(|inst| program.func.op(inst)) {
                Some(Op::Tensor(tensor)) => tensor.base,
                _ => place,
            };
            if program.func.ty(value).dtype() != Some(DType::F32) {
                continue;
            }
            sums += 1;
            let chosen = definitions[value].map(|inst| program.func.op(inst));
            assert!(matches!(chosen, Some(Op::Select(_))), "program {index}");
            let parameter = program.func.parameter_index(base).expect("is memory");
            let Argument::ReadWrite(bytes) = program.arguments[parameter].argument() else {
                panic!("program {index}: nothing to write");
            };
            for element in bytes.chunks_exact(4) {
                let bits = u32::from_le_bytes(element.try_into().expect("four bytes"));
                let size = f64::from(f32::from_bits(bits).abs());
                assert!(
                    !(size > 0.0 && size < LEAST_ADDEND),
                    "program {index}: {size:e}"
                );
            }
        }
    }
    assert!(sums > 10, "{sums}");
}
