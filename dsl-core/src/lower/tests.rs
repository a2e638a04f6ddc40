//! Straight-line code of any length: no walk recurses along it, and it does not grow on the way.

use crate::builder::Builder;
use crate::facts::Facts;
use crate::interp;
use crate::ir::{Access, Axis, BinaryOp, DType, Literal, Op, Shape, Stage, Type, Value, op};
use crate::launch::Argument;
use crate::pipeline::{self, unobserved};
use crate::target::{Options, Target};
use crate::verify::{self, BlockFunc, LaneFunc};

/// What one step of a kernel does.
#[derive(Clone, Copy, Debug)]
enum Step {
    Compute,
    Move,
    Mask,
    View,
    Branch,
    Store,
}

const STEPS: [Step; 6] = [
    Step::Compute,
    Step::Move,
    Step::Mask,
    Step::View,
    Step::Branch,
    Step::Store,
];

const EXTENT: usize = 32;

fn step(builder: &mut Builder, kind: Step, [x, y, n, at]: [Value; 4], state: &mut [Value; 3]) {
    let [value, offsets, mask] = state;
    let shape = builder.ty(*value).shape;
    let load = |builder: &mut Builder, offsets, mask| {
        builder.value(Op::Load(op::Load {
            base: x,
            offsets,
            mask,
            other: None,
            cache: None,
        }))
    };
    match kind {
        Step::Compute => *value = builder.add(*value, *value),
        Step::Move => {
            let one = builder.bits_like(*offsets, DType::I64, 1);
            *offsets = builder.add(*offsets, one);
            let loaded = load(builder, *offsets, None);
            *value = builder.add(*value, loaded);
        }
        Step::Mask => {
            let end = builder.splat(n, shape);
            *offsets = builder.add(*offsets, at);
            let below = builder.lt(*offsets, end);
            *mask = builder.and(*mask, below);
            let loaded = load(builder, at, Some(*mask));
            *value = builder.add(*value, loaded);
        }
        Step::View => {
            let turned = Shape::new(&[4, EXTENT / 4]).expect("is a shape");
            let ty = Type::tile(DType::I32, turned);
            let rows = builder.declared(Op::Reshape(op::Reshape { x: *value }), ty);
            let permutation = vec![1, 0];
            let columns = builder.value(Op::Transpose(op::Transpose {
                x: rows,
                permutation,
            }));
            let ty = Type::tile(DType::I32, shape);
            *value = builder.declared(Op::Reshape(op::Reshape { x: columns }), ty);
        }
        Step::Branch => {
            let zero = builder.index(0);
            let more = builder.lt(zero, n);
            let old = *value;
            *value = builder.if_else(more, |builder| vec![builder.not(old)], |_| vec![old])[0];
        }
        Step::Store => {
            let one = builder.bits_like(*offsets, DType::I64, 1);
            *offsets = builder.binary(BinaryOp::Add, *offsets, one);
            let op = Op::Store(op::Store {
                base: y,
                offsets: *offsets,
                value: *value,
                mask: None,
                cache: None,
            });
            builder.emit(op, &[]);
        }
    }
}

fn kernel(kind: Step, steps: usize) -> BlockFunc {
    let mut builder = Builder::new("straight", Stage::Block);
    let x = builder.pointer_parameter("x", DType::I32, Access::Read);
    let y = builder.pointer_parameter("y", DType::I32, Access::ReadWrite);
    let n = builder.scalar_parameter("n", DType::I64);
    let shape = Shape::new(&[EXTENT]).expect("is a shape");
    let at = builder.index_along(0, shape);
    let program = builder.value(Op::ProgramId(op::ProgramId { axis: Axis(0) }));
    let program = builder.splat(program, shape);
    let at = builder.add(at, program);
    let loaded = builder.value(Op::Load(op::Load {
        base: x,
        offsets: at,
        mask: None,
        other: None,
        cache: None,
    }));
    let end = builder.splat(n, shape);
    let mask = builder.lt(at, end);
    let mut state = [loaded, at, mask];
    for _ in 0..steps {
        step(&mut builder, kind, [x, y, n, at], &mut state);
    }
    let op = Op::Store(op::Store {
        base: y,
        offsets: at,
        value: state[0],
        mask: None,
        cache: None,
    });
    builder.emit(op, &[]);
    verify::block(builder.finish().expect("is well typed")).expect("is valid")
}

fn lowered(kind: Step, steps: usize) -> [LaneFunc; 2] {
    [Target::CPU, Target::SM_90A].map(|target| {
        let options = Options::default();
        let facts = Facts {
            apart: true,
            inside: true,
            ..Facts::default()
        };
        let block = kernel(kind, steps);
        let made = pipeline::compile(block, &target, &options, &facts, &mut unobserved);
        made.expect("compiles")
    })
}

fn run(steps: usize, run: impl FnOnce(&mut [Argument<'_>])) -> Vec<u8> {
    let count = EXTENT + steps + 1;
    let x: Vec<u8> = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    let mut y = vec![0; x.len()];
    let n = Literal::from_bits(DType::I64, 20);
    run(&mut [
        Argument::Read(&x),
        Argument::ReadWrite(&mut y),
        Argument::Scalar(n),
    ]);
    y
}

/// Runs on a stack that recursion along the steps of a kernel would overflow.
fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let thread = thread.spawn(work).expect("a thread starts");
    thread.join().expect("the thread ends well");
}

#[test]
fn long_kernels_give_the_bits_of_the_interpreter() {
    on_a_small_stack(|| {
        for kind in STEPS {
            let steps = 2_000;
            let block = kernel(kind, steps);
            let expected = run(steps, |arguments| {
                interp::block::run(&block, [1, 1, 1], arguments).expect("runs");
            });
            for lane in lowered(kind, steps) {
                let found = run(steps, |arguments| {
                    interp::lane::run(&lane, [1, 1, 1], arguments).expect("runs");
                });
                assert!(found == expected, "{kind:?} on {} warps", lane.warps);
            }
        }
    });
}

#[test]
fn code_grows_with_the_steps_alone() {
    on_a_small_stack(|| {
        for kind in STEPS {
            let sizes = [500, 2_000].map(|steps| {
                let made = lowered(kind, steps);
                made.map(|lane| {
                    (
                        lane.all_insts().len(),
                        lane.inst_count(),
                        lane.value_count(),
                    )
                })
            });
            let [few, many] = sizes;
            for (few, many) in few.iter().zip(many) {
                let pairs = [(few.0, many.0), (few.1, many.1), (few.2, many.2)];
                for (few, many) in pairs {
                    assert!(many <= 5 * few, "{kind:?}: {few} became {many}");
                }
            }
        }
    });
}
