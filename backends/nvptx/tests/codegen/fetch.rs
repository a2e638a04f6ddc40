//! Atomics of every op and data type, masked and not, assemble.

use exactile_core::builder::Builder;
use exactile_core::ir::{Access, AtomicOp, DType, MemoryOrder, Op, Value, op};
use exactile_core::target::Target;
use exactile_nvptx::emit;

use crate::{aligned, assemble, count, lane_offset, store, verified};

fn fetch(builder: &mut Builder, fetch: op::LaneFetch, out: Value) {
    let old = builder.value(Op::LaneFetch(fetch));
    let offset = lane_offset(builder, 1);
    store(builder, out, offset, old);
}

/// Every atomic with a result that the data type has.
fn fetches(builder: &mut Builder, dtype: DType) {
    let base = aligned(builder, "x", dtype, Access::ReadWrite);
    let out = aligned(builder, "y", dtype, Access::ReadWrite);
    let limit = builder.scalar_parameter("limit", DType::I64);
    let value = builder.scalar_parameter("value", dtype);
    let offset = lane_offset(builder, 1);
    let inside = builder.lt(offset, limit);
    for &op in AtomicOp::ALL.iter().filter(|op| op.admits(dtype)) {
        let compares = op == AtomicOp::Exchange;
        for expected in [None, Some(value).filter(|_| compares)] {
            for mask in [None, Some(inside)] {
                let access = op::LaneFetch {
                    base,
                    offset,
                    value,
                    mask,
                    expected,
                    op,
                    order: None,
                    scope: None,
                };
                fetch(builder, access, out);
            }
        }
    }
}

#[test]
fn atomics_with_results_assemble() {
    let every = DType::ALL.iter().copied();
    let dtypes: Vec<DType> = every
        .filter(|&dtype| AtomicOp::Exchange.admits(dtype))
        .collect();
    for (target, dtype) in [Target::SM_80, Target::SM_90A]
        .iter()
        .flat_map(|target| dtypes.iter().map(move |&dtype| (target, dtype)))
    {
        let name = format!("fetch_{dtype}_{}", target.name);
        let func = verified(&name, 1, |builder| fetches(builder, dtype));
        let ptx = emit(&func, target, &name).expect("the function compiles");
        let text = ptx.text();
        let bits = dtype.bits();
        let mut expected = vec![format!("cas.b{bits}")];
        if bits > 16 {
            expected.push(format!("exch.b{bits}"));
        } else if dtype == DType::F16 {
            expected.push("add.noftz.f16".to_string());
        }
        for expected in expected {
            let expected = format!("atom.relaxed.gpu.global.{expected}");
            assert!(text.contains(&expected), "{text}");
        }
        if let Some(assembled) = assemble(&ptx) {
            assert!(count(&assembled, "ATOMG") > 0, "{}", assembled.sass);
        }
    }
}

/// Atomics of floats without a result that no instruction of every GPU is.
fn combine(builder: &mut Builder, dtype: DType) {
    let base = aligned(builder, "x", dtype, Access::ReadWrite);
    let limit = builder.scalar_parameter("limit", DType::I64);
    let value = builder.scalar_parameter("value", dtype);
    let offset = lane_offset(builder, 1);
    let inside = builder.lt(offset, limit);
    let ops = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max].into_iter();
    for op in ops.filter(|op| op.admits(dtype)) {
        for (mask, order) in [
            (None, None),
            (Some(inside), Some(MemoryOrder::Release)),
            (Some(inside), None),
        ] {
            let atomic = op::LaneAtomic {
                base,
                offset,
                value,
                mask,
                op,
                order,
                scope: None,
            };
            builder.emit(Op::LaneAtomic(atomic), &[]);
        }
    }
}

#[test]
fn atomics_of_floats_assemble_for_every_gpu() {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    for (target, &dtype) in [Target::SM_80, Target::SM_90A]
        .iter()
        .flat_map(|target| floats.iter().map(move |dtype| (target, dtype)))
    {
        let name = format!("combine_{dtype}_{}", target.name);
        let func = verified(&name, 1, |builder| combine(builder, dtype));
        let ptx = emit(&func, target, &name).expect("the function compiles");
        let text = ptx.text();
        let loops = text.matches("bra attempt;").count();
        let expected = match AtomicOp::Min.admits(dtype) {
            true => 6,
            false => 3 * usize::from(dtype == DType::BF16 && target.gpu.capability < (9, 0)),
        };
        assert_eq!(loops, expected, "{text}");
        assemble(&ptx);
    }
}

/// Two atomics by the first lane with a barrier behind each, as a scalar atomic of several warps is lowered.
fn in_turn(builder: &mut Builder, is_atomic: bool) {
    let base = aligned(builder, "x", DType::I32, Access::ReadWrite);
    let out = aligned(builder, "y", DType::I32, Access::ReadWrite);
    let mut value = builder.scalar_parameter("value", DType::I32);
    let offset = lane_offset(builder, 1);
    let one = builder.index(1);
    let mask = Some(builder.lt(offset, one));
    for op in [AtomicOp::And, AtomicOp::Add] {
        if is_atomic {
            value = builder.value(Op::LaneFetch(op::LaneFetch {
                base,
                offset,
                value,
                mask,
                expected: None,
                op,
                order: None,
                scope: None,
            }));
        }
        builder.emit(Op::Barrier(op::Barrier {}), &[]);
    }
    store(builder, out, offset, value);
}

#[test]
fn barriers_near_atomics_promise_nothing_of_lanes() {
    let compiled = |is_atomic| {
        let func = verified("in_turn", 2, |builder| in_turn(builder, is_atomic));
        emit(&func, &Target::SM_90A, "in_turn").expect("compiles")
    };
    let (with, without) = (compiled(true), compiled(false));
    assert_eq!(
        with.text().matches("barrier.sync").count(),
        2,
        "{}",
        with.text()
    );
    assert_eq!(
        with.text().matches("bar.sync").count(),
        0,
        "{}",
        with.text()
    );
    assert_eq!(
        without.text().matches("bar.sync").count(),
        2,
        "{}",
        without.text()
    );
    if let Some(assembled) = assemble(&with) {
        let (atomics, meetings) = (count(&assembled, "ATOMG"), count(&assembled, "BSYNC"));
        assert_eq!((atomics, meetings), (2, 2), "{}", assembled.sass);
    }
}
