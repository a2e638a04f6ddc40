//! What the machine code holds: vector accesses, no spills, no surprises.

use exactile_core::ir::{Access, DType, Op, Space, Type, op};
use exactile_core::target::Target;

use crate::{aligned, assemble, compile, count, lane_offset, load, store, verified};

#[test]
fn aligned_vectors_move_sixteen_bytes() {
    for dtype in [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::I8,
        DType::F64,
        DType::I64,
    ] {
        let width = 16 / dtype.bytes() as usize;
        let ptx = compile(&format!("copy_{dtype}"), |builder| {
            let input = aligned(builder, "x", dtype, Access::Read);
            let output = aligned(builder, "y", dtype, Access::ReadWrite);
            let offset = lane_offset(builder, width as i64);
            let x = load(builder, input, offset, width);
            store(builder, output, offset, x);
        });
        assert!(ptx.text().contains("ld.global.nc"), "{}", ptx.text());
        let Some(assembled) = assemble(&ptx) else {
            return;
        };
        assert_eq!(count(&assembled, "LDG.E.128"), 1, "{}", assembled.sass);
        assert_eq!(count(&assembled, "STG.E.128"), 1, "{}", assembled.sass);
        assert_eq!(count(&assembled, "LDL") + count(&assembled, "STL"), 0);
    }
}

#[test]
fn masked_vectors_become_predicated_accesses() {
    let ptx = compile("masked_copy", |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let limit = builder.scalar_parameter("limit", DType::I64);
        let start = lane_offset(builder, 4);
        let mut loaded = Vec::new();
        for part in 0..4 {
            let distance = builder.index(part * 128);
            let offset = builder.add(start, distance);
            let mask = builder.lt(offset, limit);
            let op = Op::LaneLoad(op::LaneLoad {
                base: input,
                offset,
                mask: Some(mask),
                other: None,
                align: 16,
                cache: None,
            });
            let x = builder.declared(op, Type::vector(DType::F32, 4));
            loaded.push((offset, mask, x));
        }
        for (offset, mask, value) in loaded {
            let op = Op::LaneStore(op::LaneStore {
                base: output,
                offset,
                value,
                mask: Some(mask),
                align: 16,
                cache: None,
            });
            builder.emit(op, &[]);
        }
    });
    let Some(assembled) = assemble(&ptx) else {
        return;
    };
    assert_eq!(count(&assembled, "LDG.E.128"), 4, "{}", assembled.sass);
    assert_eq!(count(&assembled, "STG.E.128"), 4, "{}", assembled.sass);
    let first_store = assembled.sass.find("STG.E.128").unwrap_or(0);
    let last_load = assembled.sass.rfind("LDG.E.128").unwrap_or(usize::MAX);
    assert!(
        last_load < first_store,
        "loads wait for stores:\n{}",
        assembled.sass
    );
    assert_eq!(count(&assembled, "BSSY"), 0, "{}", assembled.sass);
}

/// What PTX adds to an address has 32 bits.
#[test]
fn offsets_that_differ_by_constants_share_an_address() {
    let ptx = compile("neighbours", |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let offset = lane_offset(builder, 3);
        let (one, six) = (builder.index(1), builder.index(6));
        let behind = builder.add(offset, one);
        let scaled = builder.mul(behind, six);
        let mask = builder.lt(one, offset);
        let other = load(builder, output, offset, 1);
        for distance in [0, 8, 1 << 40] {
            let distance = builder.index(distance);
            let offset = builder.sub(scaled, distance);
            let load = Op::LaneLoad(op::LaneLoad {
                base: input,
                offset,
                mask: Some(mask),
                other: Some(other),
                align: 4,
                cache: None,
            });
            let x = builder.declared(load, Type::vector(DType::F32, 1));
            store(builder, output, offset, x);
        }
    });
    let loads: Vec<&str> = ptx
        .text()
        .lines()
        .filter_map(|line| line.split_once("ld.global.nc.b32"))
        .filter_map(|(_, operands)| operands.split_once('['))
        .filter_map(|(_, address)| address.split_once(']'))
        .map(|(address, _)| address)
        .collect();
    let [first, second, far] = loads[..] else {
        panic!("there are three loads:\n{}", ptx.text());
    };
    let base = first.trim_end_matches("+24");
    assert_eq!(
        [first, second],
        [format!("{base}+24"), format!("{base}+-8")]
    );
    assert!(!far.contains('+') && far != base, "{far}");
    assemble(&ptx);
}

#[test]
fn shared_memory_may_exceed_the_static_limit() {
    let func = verified("large_shared", 8, |builder| {
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let ty = Type::pointer(DType::F32, Space::Shared);
        let shared = builder.declared(
            Op::Alloc(op::Alloc {
                offset: 65536,
                count: 16384,
            }),
            ty,
        );
        let offset = lane_offset(builder, 4);
        let x = load(builder, output, offset, 4);
        store(builder, shared, offset, x);
        builder.emit(Op::Barrier(op::Barrier {}), &[]);
        let back = builder.index(124);
        let other = builder.sub(back, offset);
        let x = load(builder, shared, other, 4);
        store(builder, output, offset, x);
    });
    let ptx = exactile_nvptx::emit(&func, &Target::SM_90A, "large_shared")
        .expect("the function compiles");
    assert_eq!(ptx.shared_bytes(), 65536 + 65536);
    assert_eq!(ptx.threads(), 256);
    let Some(assembled) = assemble(&ptx) else {
        return;
    };
    assert_eq!(count(&assembled, "LDS.128"), 1, "{}", assembled.sass);
    assert_eq!(count(&assembled, "STS.128"), 1, "{}", assembled.sass);
    assert_eq!(count(&assembled, "BAR.SYNC"), 1, "{}", assembled.sass);
}

#[test]
fn lanes_that_write_for_each_other_keep_their_order() {
    let ptx = compile("exchange", |builder| {
        let memory = aligned(builder, "x", DType::I32, Access::ReadWrite);
        let offset = lane_offset(builder, 1);
        let x = load(builder, memory, offset, 1);
        let back = builder.index(31);
        let mirrored = builder.sub(back, offset);
        store(builder, memory, mirrored, x);
        builder.emit(Op::Barrier(op::Barrier {}), &[]);
        let own = load(builder, memory, offset, 1);
        let sum = builder.add(own, x);
        store(builder, memory, offset, sum);
    });
    let Some(assembled) = assemble(&ptx) else {
        return;
    };
    assert_eq!(count(&assembled, "LDG"), 2, "{}", assembled.sass);
    assert_eq!(count(&assembled, "STG"), 2, "{}", assembled.sass);
}

/// One comparison gives both the lesser and the greater; of 64 bits it takes two instructions.
#[test]
fn wide_integers_are_put_in_order_by_one_comparison() {
    let ptx = compile("put_in_order", |builder| {
        let memory = aligned(builder, "x", DType::I64, Access::ReadWrite);
        let offset = lane_offset(builder, 1);
        let distance = builder.index(32);
        let next = builder.add(offset, distance);
        let (a, b) = (
            load(builder, memory, offset, 1),
            load(builder, memory, next, 1),
        );
        let less = builder.lt(a, b);
        let lesser = builder.select(less, a, b);
        let greater = builder.select(less, b, a);
        store(builder, memory, offset, lesser);
        store(builder, memory, next, greater);
    });
    let Some(assembled) = assemble(&ptx) else {
        return;
    };
    assert_eq!(count(&assembled, "ISETP"), 2, "{}", assembled.sass);
    assert_eq!(count(&assembled, "SEL"), 4, "{}", assembled.sass);
}
