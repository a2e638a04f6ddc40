//! Every op of the lane stage, for every data type, becomes PTX that assembles.

use std::collections::BTreeMap;

use exactile_core::builder::Builder;
use exactile_core::ir::{
    Access, Approximate, Axis, BinaryOp, CompareOp, DType, Literal, Op, Space, TernaryOp, Type,
    UnaryOp, Value, op,
};
use exactile_core::launch::Input;
use exactile_core::target::Target;
use exactile_nvptx::{EmitOptions, Error, GridMapping, emit, emit_with};

use crate::{aligned, assemble, compile, lane_offset, lanes, load, store, verified};

/// Stores each result at a new place of the output of its type.
struct Sink {
    outputs: BTreeMap<DType, Value>,
    stored: i64,
}

impl Sink {
    fn new(builder: &mut Builder) -> Self {
        let mut output = |&dtype: &DType| {
            (
                dtype,
                aligned(builder, dtype.name(), dtype, Access::ReadWrite),
            )
        };
        Self {
            outputs: DType::ALL.iter().map(&mut output).collect(),
            stored: 0,
        }
    }

    fn put(&mut self, builder: &mut Builder, value: Value) {
        let dtype = builder.ty(value).dtype().expect("a number");
        let base = lane_offset(builder, 1 << 16);
        let place = builder.index(self.stored * 16);
        let offset = builder.add(base, place);
        store(builder, self.outputs[&dtype], offset, value);
        self.stored += 1;
    }
}

fn elementwise(builder: &mut Builder, sink: &mut Sink, dtype: DType, [x, y, z]: [Value; 3]) {
    for &op in UnaryOp::ALL {
        if op.accepts().admits(dtype) {
            let value = builder.unary(op, x);
            sink.put(builder, value);
        }
    }
    for &op in Approximate::ALL {
        if op.accepts().admits(dtype) {
            let value = builder.approximate(op, x);
            sink.put(builder, value);
        }
    }
    for &op in BinaryOp::ALL {
        if op.accepts().admits(dtype) {
            let value = builder.binary(op, x, y);
            sink.put(builder, value);
        }
    }
    for &op in TernaryOp::ALL {
        if op.accepts().admits(dtype) {
            let value = builder.ternary(op, x, y, z);
            sink.put(builder, value);
        }
    }
    for &op in CompareOp::ALL {
        if op.accepts().admits(dtype) {
            let value = builder.compare(op, x, y);
            sink.put(builder, value);
        }
    }
}

#[test]
fn elementwise_ops_and_casts_assemble() {
    for &dtype in DType::ALL {
        for count in [1, 16 / dtype.bytes() as usize] {
            let name = format!("elementwise_{dtype}_{count}");
            let ptx = compile(&name, |builder| {
                let input = aligned(builder, "x", dtype, Access::Read);
                let mut sink = Sink::new(builder);
                let at = lane_offset(builder, 64);
                let operands = [0, 16, 32].map(|distance| {
                    let distance = builder.index(distance);
                    let offset = builder.add(at, distance);
                    load(builder, input, offset, count)
                });
                elementwise(builder, &mut sink, dtype, operands);
                for &to in DType::ALL {
                    let value = builder.cast(operands[0], to);
                    sink.put(builder, value);
                    if to.bits() == dtype.bits() {
                        let value = builder.bitcast(operands[0], to);
                        sink.put(builder, value);
                    }
                }
                let condition = builder.eq(operands[0], operands[1]);
                let value = builder.select(condition, operands[0], operands[1]);
                sink.put(builder, value);
            });
            assemble(&ptx);
        }
    }
}

fn masked(
    builder: &mut Builder,
    base: Value,
    offset: Value,
    mask: Value,
    count: usize,
    align: i64,
) {
    let (dtype, _) = builder.ty(base).pointee().expect("a pointer");
    let ty = Type::vector(dtype, count);
    let other = builder.filled(Literal::from_f64(dtype, 1.0), ty.shape);
    for other in [None, Some(other)] {
        let op = Op::LaneLoad(op::LaneLoad {
            base,
            offset,
            mask: Some(mask),
            other,
            align,
            cache: None,
        });
        let value = builder.declared(op, ty);
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset,
            value,
            mask: Some(mask),
            align,
            cache: None,
        });
        builder.emit(op, &[]);
    }
}

#[test]
fn masked_accesses_of_every_width_assemble() {
    for &dtype in DType::ALL {
        let ptx = compile(&format!("masked_{dtype}"), |builder| {
            let global = aligned(builder, "x", dtype, Access::ReadWrite);
            let ty = Type::pointer(dtype, Space::Shared);
            let shared = builder.declared(
                Op::Alloc(op::Alloc {
                    offset: 0,
                    count: 4096,
                }),
                ty,
            );
            let limit = builder.scalar_parameter("limit", DType::I64);
            let offset = lane_offset(builder, 16);
            let mask = builder.lt(offset, limit);
            let mut count = 1;
            while count * dtype.bytes() as usize <= 32 {
                let bytes = count as i64 * i64::from(dtype.bytes());
                for align in [i64::from(dtype.bytes()), bytes] {
                    masked(builder, global, offset, mask, count, align);
                    masked(builder, shared, offset, mask, count, align);
                }
                count *= 2;
            }
        });
        assemble(&ptx);
    }
}

#[test]
fn shuffles_of_every_type_assemble() {
    for &dtype in DType::ALL {
        let ptx = compile(&format!("shuffle_{dtype}"), |builder| {
            let input = aligned(builder, "x", dtype, Access::Read);
            let output = aligned(builder, "y", dtype, Access::ReadWrite);
            let offset = lane_offset(builder, 32);
            let source = builder.value(Op::LaneId(op::LaneId {}));
            let three = builder.int32(3);
            let source = builder.xor(source, three);
            for count in [1, 2, 4, 8, 16] {
                let x = load(builder, input, offset, count);
                let x = builder.value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask: 5 }));
                let source_lane = source;
                let x = builder.value(Op::ShuffleIndex(op::ShuffleIndex { x, source_lane }));
                store(builder, output, offset, x);
            }
        });
        let words = 2 * (u64::from(ptx.text().contains("shfl.sync.bfly")) as usize);
        assert_eq!(words, 2, "{}", ptx.text());
        assemble(&ptx);
    }
}

#[test]
fn vectors_and_grid_positions_assemble() {
    let fill = |builder: &mut Builder| {
        let output = aligned(builder, "y", DType::I64, Access::ReadWrite);
        let mut elements = Vec::new();
        for axis in 0..3 {
            elements.push(builder.value(Op::ProgramId(op::ProgramId { axis: Axis(axis) })));
            elements.push(builder.value(Op::NumPrograms(op::NumPrograms { axis: Axis(axis) })));
        }
        let warp = builder.value(Op::WarpId(op::WarpId {}));
        elements.push(builder.cast(warp, DType::I64));
        elements.push(builder.index(7));
        let vector = builder.value(Op::Vector(op::Vector { elements }));
        let indices = vec![0, 8, 3, 15];
        let picked = builder.value(Op::ShuffleVector(op::ShuffleVector {
            a: vector,
            b: vector,
            indices,
        }));
        let last = builder.value(Op::Extract(op::Extract {
            vector: picked,
            index: 3,
        }));
        let repeated = builder.declared(
            Op::Splat(op::Splat { x: last }),
            Type::vector(DType::I64, 4),
        );
        let sum = builder.add(picked, repeated);
        let offset = lane_offset(builder, 4);
        store(builder, output, offset, sum);
        let ones = builder.filled(Literal::from_bits(DType::I64, 1), lanes(2));
        store(builder, output, offset, ones);
        builder.emit(Op::Barrier(op::Barrier {}), &[]);
    };
    for grid in [GridMapping::Direct, GridMapping::Linear] {
        let func = verified("positions", 4, fill);
        let name = format!("positions_{grid:?}");
        let options = EmitOptions {
            grid,
            ..EmitOptions::new(Target::SM_90A)
        };
        let ptx = emit_with(&func, &name, options).expect("the function compiles");
        assert!(ptx.text().contains(".reqntid 128"), "{}", ptx.text());
        assert!(ptx.text().contains("bar"), "{}", ptx.text());
        assemble(&ptx);
    }
}

#[test]
fn control_flow_assembles() {
    let ptx = compile("control", |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let n = builder.scalar_parameter("n", DType::I64);
        let flag = builder.scalar_parameter("flag", DType::Bool);
        let at = lane_offset(builder, 4);
        let zero = builder.index(0);
        let start = builder.filled(Literal::from_f64(DType::F32, 0.0), lanes(4));
        let sums = builder.for_loop((zero, n), 3, &[start], |builder, index, carried| {
            let offset = builder.add(at, index);
            let x = load(builder, input, offset, 4);
            let chosen = builder.if_else(
                flag,
                |builder| vec![builder.add(carried[0], x)],
                |builder| vec![builder.mul(carried[0], x)],
            );
            vec![chosen[0]]
        });
        let types = [builder.ty(n), builder.ty(sums[0])];
        let before = builder.region_with(&types, |builder, values| {
            let one = builder.index(1);
            let more = builder.gt(values[0], one);
            vec![more, values[0], values[1]]
        });
        let body = builder.region_with(&types, |builder, values| {
            let two = builder.index(2);
            let half = builder.div(values[0], two);
            let root = builder.sqrt(values[1]);
            vec![half, root]
        });
        let init = vec![n, sums[0]];
        let inst = builder.emit(Op::While(op::While { init, before, body }), &[]);
        let value = builder.results(inst)[1];
        store(builder, output, at, value);
    });
    assemble(&ptx);
}

#[test]
fn checks_of_accesses_in_order_meet_once() {
    for (sites, meets) in [([0, 1, 2], 1), ([0, 2, 1], 2), ([1, 1, 0], 3)] {
        let ptx = compile("stops", |builder| {
            let base = aligned(builder, "x", DType::F32, Access::Read);
            let offset = lane_offset(builder, 1);
            for site in sites {
                let stop = op::StopOutside {
                    base,
                    offset,
                    element: offset,
                    mask: None,
                    count: 1,
                    site,
                };
                builder.emit(Op::StopOutside(stop), &[]);
            }
        });
        assert_eq!(
            ptx.text().matches("vote.sync.any").count(),
            meets,
            "{sites:?}"
        );
        assemble(&ptx);
    }
}

#[test]
fn bounds_checks_assemble() {
    let ptx = compile("checked", |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let limit = builder.scalar_parameter("limit", DType::I64);
        let offset = lane_offset(builder, 4);
        let element = builder.value(Op::LaneId(op::LaneId {}));
        let inside = builder.lt(offset, limit);
        for (site, base) in [input, output].into_iter().enumerate() {
            let stop = |mask| {
                Op::StopOutside(op::StopOutside {
                    base,
                    offset,
                    element,
                    mask,
                    count: 4,
                    site: site as i64,
                })
            };
            builder.emit(stop(None), &[]);
            builder.emit(stop(Some(inside)), &[]);
            if base == input {
                masked(builder, output, offset, inside, 4, 16);
            } else {
                let x = load(builder, input, offset, 4);
                store(builder, output, offset, x);
            }
        }
    });
    assert!(ptx.has_bounds_checks());
    assert_eq!(ptx.hidden().len(), 3);
    assemble(&ptx);
    // Five words each for the device and the host, four of them in pairs; fences of the whole system behind the lock and before its release.
    let count = |words: &[&str]| {
        let all = ptx.text().split_whitespace();
        all.filter(|it| words.contains(it)).count()
    };
    assert_eq!(count(&["st.volatile.global.b64"]), 2, "{}", ptx.text());
    assert_eq!(count(&["st.volatile.global.v2.b64"]), 4, "{}", ptx.text());
    assert_eq!(
        count(&["fence.sc.sys;", "membar.sys;"]),
        2,
        "{}",
        ptx.text()
    );
}

/// Launches pay for each parameter.
#[test]
fn parameters_that_no_code_reads_are_left_out() {
    let hidden = |grid, programs, fill: fn(&mut Builder, Value, Value)| {
        let func = verified("reads", 1, |builder| {
            builder.func_mut().schedule.programs = Some(programs);
            let input = aligned(builder, "x", DType::F32, Access::Read);
            let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
            let offset = lane_offset(builder, 1);
            fill(builder, output, offset);
            let x = load(builder, input, offset, 1);
            store(builder, output, offset, x);
        });
        let options = EmitOptions {
            grid,
            ..EmitOptions::new(Target::SM_90A)
        };
        let ptx = emit_with(&func, "reads", options).expect("compiles");
        assemble(&ptx);
        ptx.hidden().to_vec()
    };
    let stop = |builder: &mut Builder, base, offset| {
        let stop = Op::StopOutside(op::StopOutside {
            base,
            offset,
            element: offset,
            mask: None,
            count: 1,
            site: 0,
        });
        builder.emit(stop, &[]);
    };
    let index = |builder: &mut Builder, _, offset| {
        let stop = Op::StopIndex(op::StopIndex {
            index: offset,
            element: offset,
            axis: Axis(0),
            extent: 8,
            mask: None,
            site: 0,
        });
        builder.emit(stop, &[]);
    };
    let (direct, linear) = (GridMapping::Direct, GridMapping::Linear);
    let grid = |axes| (0..axes).map(Input::Grid);
    let length = Input::Length(1, DType::F32);
    assert_eq!(hidden(direct, 1, |_, _, _| ()), []);
    assert_eq!(hidden(direct, 2, |_, _, _| ()), Vec::from_iter(grid(1)));
    assert_eq!(hidden(linear, 2, |_, _, _| ()), Vec::from_iter(grid(3)));
    assert_eq!(hidden(direct, 1, stop), [length, Input::ErrorRecord]);
    assert_eq!(
        hidden(direct, 2, index),
        [Input::ErrorRecord, Input::Grid(0)]
    );
}

#[test]
fn launches_that_begin_early_wait_before_they_touch_memory() {
    let func = verified("copies", 2, |builder| {
        builder.func_mut().schedule.early = Some(2);
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let n = builder.scalar_parameter("n", DType::I64);
        let (at, zero) = (lane_offset(builder, 4), builder.index(0));
        builder.for_loop((zero, n), 1, &[], |builder, index, _| {
            let offset = builder.add(at, index);
            let x = load(builder, input, at, 4);
            store(builder, output, offset, x);
            Vec::new()
        });
        let op = Op::LaneLoad(op::LaneLoad {
            base: input,
            offset: at,
            mask: Some(builder.lt(at, n)),
            other: None,
            align: 16,
            cache: None,
        });
        let x = builder.declared(op, Type::vector(DType::F32, 4));
        store(builder, output, at, x);
    });
    for target in Target::GPUS {
        let ptx = emit(&func, target, "copies").expect("compiles");
        let waits = ptx.text().matches("griddepcontrol.wait;").count();
        assert_eq!(
            waits,
            usize::from(target.gpu.begins_early),
            "{}",
            target.name
        );
        let begins = ptx.text().split_once("griddepcontrol.launch_dependents;");
        let is_behind = begins.map(|(before, _)| before.contains("griddepcontrol.wait;"));
        let expected = target.gpu.begins_early.then_some(true);
        assert_eq!(is_behind, expected, "{}", target.name);
        let constant = ptx.text().contains("ld.global.nc");
        assert_eq!(constant, !target.gpu.begins_early, "{}", ptx.text());
    }
    assemble(&emit(&func, &Target::SM_90A, "copies").expect("compiles"));
}

#[test]
fn ops_that_a_gpu_lacks_are_refused() {
    let func = verified("fenced", 1, |builder| {
        builder.emit(Op::ProxyFence(op::ProxyFence {}), &[]);
    });
    for target in Target::GPUS {
        let made = emit(&func, target, "fenced");
        match target.gpu.copies_boxes {
            true => assert!(made.is_ok(), "{}", target.name),
            false => assert!(
                matches!(&made, Err(Error::Unsupported(op)) if op == "proxy_fence"),
                "{}",
                target.name
            ),
        }
    }
}
