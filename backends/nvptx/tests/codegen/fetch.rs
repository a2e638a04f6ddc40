//! Atomics with a result of every op and data type, masked and not, assemble.

use exactile_core::builder::Builder;
use exactile_core::ir::{Access, AtomicOp, DType, Op, Value, op};

use crate::{aligned, assemble, compile, count, lane_offset, store};

fn fetch(builder: &mut Builder, fetch: op::LaneFetch, out: Value) {
    let old = builder.value(Op::LaneFetch(fetch));
    let offset = lane_offset(builder, 1);
    store(builder, out, offset, old);
}

#[test]
fn atomics_with_results_assemble() {
    for &dtype in DType::ALL {
        if !AtomicOp::Exchange.admits(dtype) {
            continue;
        }
        let ptx = compile(&format!("fetch_{dtype}"), |builder| {
            let base = aligned(builder, "x", dtype, Access::ReadWrite);
            let out = aligned(builder, "y", dtype, Access::ReadWrite);
            let limit = builder.scalar_parameter("limit", DType::I64);
            let value = builder.scalar_parameter("value", dtype);
            let offset = lane_offset(builder, 1);
            let inside = builder.lt(offset, limit);
            for &op in AtomicOp::ALL.iter().filter(|op| op.admits(dtype)) {
                let compares = op == AtomicOp::Exchange && !dtype.is_float();
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
        });
        let text = ptx.text();
        let bits = dtype.bits();
        assert!(
            text.contains(&format!("atom.relaxed.gpu.global.exch.b{bits}")),
            "{text}"
        );
        if !dtype.is_float() {
            assert!(
                text.contains(&format!("atom.relaxed.gpu.global.cas.b{bits}")),
                "{text}"
            );
        }
        if let Some(assembled) = assemble(&ptx) {
            assert!(count(&assembled, "ATOMG") > 0, "{}", assembled.sass);
        }
    }
}
