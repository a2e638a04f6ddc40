//! Kernels on a GPU, where there is one; elsewhere the driver's absence is a clear error.

use exactile_core::builder::Builder;
use exactile_core::interp::lane;
use exactile_core::ir::{Access, AtomicOp, Axis, DType, Literal, Op, Space, Type, op};
use exactile_core::launch::{Argument, Passed};
use exactile_core::semantics;
use exactile_core::target::BoundsError;
use exactile_nvptx::{Context, Driver, Error, GridMapping};

use crate::{aligned, lane_offset, load, store, verified};

/// The first device; `None` with a notice where there is none.
fn context() -> Option<Context> {
    match Context::new(0) {
        Ok(context) => Some(context),
        Err(error @ Error::NoDevice(_)) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect()
}

#[test]
fn a_missing_device_is_a_clear_error() {
    match Driver::device_count() {
        Ok(count) => {
            let error = Context::new(count).expect_err("there are fewer devices");
            assert_eq!(
                error.to_string(),
                format!("no CUDA device: device {count} of {count}")
            );
        }
        Err(error) => assert!(error.to_string().starts_with("no CUDA device: "), "{error}"),
    }
}

/// `y[i] = x[i] * 2` of a program's 128 elements, checked.
fn double(builder: &mut Builder) {
    let input = aligned(builder, "x", DType::F32, Access::Read);
    let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
    let lane = lane_offset(builder, 4);
    let mut program = builder.value(Op::ProgramId(op::ProgramId { axis: Axis(2) }));
    for axis in [1, 0] {
        let extent = builder.value(Op::NumPrograms(op::NumPrograms { axis: Axis(axis) }));
        let index = builder.value(Op::ProgramId(op::ProgramId { axis: Axis(axis) }));
        let start = builder.mul(program, extent);
        program = builder.add(start, index);
    }
    let size = builder.index(128);
    let start = builder.mul(program, size);
    let offset = builder.add(start, lane);
    for (base, site) in [(input, 0), (output, 1)] {
        let stop = Op::StopOutside(op::StopOutside {
            base,
            offset,
            element: lane,
            mask: None,
            count: 4,
            site,
        });
        builder.emit(stop, &[]);
    }
    let x = load(builder, input, offset, 4);
    let value = builder.add(x, x);
    store(builder, output, offset, value);
}

#[test]
#[expect(unsafe_code, reason = "a launch of the backend is unsafe")]
fn checked_launches_compute_and_report_the_least_error() {
    let Some(context) = context() else {
        return;
    };
    let stream = context.stream().expect("a stream");
    let func = verified("double", 1, double);
    let mut errors = context.records().expect("records");
    for (grid, programs) in [([8, 1, 1], 8), ([2, 3, 4], 24), ([1, 66000, 1], 66000)] {
        let kernel = context.compile(&func, "double", GridMapping::of(grid));
        let kernel = kernel.expect("compiles");
        assert_eq!(kernel.local_bytes().expect("an attribute"), 0);
        let values: Vec<f32> = (0..programs * 128).map(|index| index as f32).collect();
        let x = context.allocate(values.len() * 4).expect("memory");
        let y = context.allocate(values.len() * 4).expect("memory");
        x.copy_from_host(0, &bytes_of(&values), &stream)
            .expect("a copy");
        let arguments = [x.passed(Access::Read), y.passed(Access::ReadWrite)];
        // SAFETY: every access is checked.
        unsafe { errors.launch(&stream, &kernel, grid, &arguments) }.expect("a launch");
        errors.end(&stream, ()).expect("an end");
        let ended = errors.take_first(&stream, true).expect("a record");
        assert_eq!(ended, Some(((), None)));
        let mut bytes = vec![0; y.len()];
        y.copy_to_host(0, &mut bytes, &stream).expect("a copy");
        let doubled: Vec<f32> = values.iter().map(|value| value + value).collect();
        assert!(bytes == bytes_of(&doubled), "grid {grid:?}");

        let short = context.allocate((programs - 3) * 512).expect("memory");
        let arguments = [x.passed(Access::Read), short.passed(Access::ReadWrite)];
        // SAFETY: every access is checked.
        unsafe { errors.launch(&stream, &kernel, grid, &arguments) }.expect("a launch");
        errors.end(&stream, ()).expect("an end");
        let least = BoundsError {
            program: programs as u64 - 3,
            site: 1,
            element: 0,
            offset: (programs as i64 - 3) * 128,
        };
        let ended = errors.take_first(&stream, true).expect("a record");
        assert_eq!(ended, Some(((), Some(least))));
        let ended = errors.take_first(&stream, true).expect("a record");
        assert_eq!(ended, None);
    }
}

#[test]
#[expect(unsafe_code, reason = "a launch of the backend is unsafe")]
fn warps_exchange_through_large_shared_memory() {
    let Some(context) = context() else {
        return;
    };
    let func = verified("mirror", 8, |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let scale = builder.scalar_parameter("scale", DType::F32);
        let ty = Type::pointer(DType::F32, Space::Shared);
        let shared = builder.declared(
            Op::Alloc(op::Alloc {
                offset: 65536,
                count: 16384,
            }),
            ty,
        );
        assert_eq!(
            builder.ty(shared).pointee(),
            Some((DType::F32, Space::Shared))
        );
        let warp = builder.value(Op::WarpId(op::WarpId {}));
        let warp = builder.cast(warp, DType::I64);
        let warp_lanes = builder.index(32);
        let start = builder.mul(warp, warp_lanes);
        let lane = lane_offset(builder, 1);
        let offset = builder.add(start, lane);
        let x = load(builder, input, offset, 1);
        store(builder, shared, offset, x);
        builder.emit(Op::Barrier(op::Barrier {}), &[]);
        let last = builder.index(255);
        let other = builder.sub(last, offset);
        let x = load(builder, shared, other, 1);
        let x = builder.value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask: 1 }));
        let x = builder.mul(x, scale);
        store(builder, output, offset, x);
    });
    let kernel = context
        .compile(&func, "mirror", GridMapping::Direct)
        .expect("compiles");
    let stream = context.stream().expect("a stream");
    let values: Vec<f32> = (0..256).map(|index| index as f32).collect();
    let x = context.allocate(1024).expect("memory");
    let y = context.allocate(1024).expect("memory");
    x.copy_from_host(0, &bytes_of(&values), &stream)
        .expect("a copy");
    let scale = Passed::Scalar(Literal::from_f64(DType::F32, 0.5));
    let arguments = [x.passed(Access::Read), y.passed(Access::ReadWrite), scale];
    // SAFETY: 256 elements are what the 256 lanes touch.
    unsafe { kernel.launch(&stream, [1, 1, 1], &arguments) }.expect("a launch");
    let mut bytes = vec![0; 1024];
    y.copy_to_host(0, &mut bytes, &stream).expect("a copy");
    let expected: Vec<f32> = (0..256)
        .map(|index| (255 - (index ^ 1)) as f32 * 0.5)
        .collect();
    assert_eq!(bytes, bytes_of(&expected));
}

/// Every lane of every program combines its number into one of four places, by both extremes.
fn extremes(builder: &mut Builder, dtype: DType) {
    let input = aligned(builder, "x", dtype, Access::Read);
    let output = aligned(builder, "y", dtype, Access::ReadWrite);
    let lane = lane_offset(builder, 1);
    let program = builder.value(Op::ProgramId(op::ProgramId { axis: Axis(0) }));
    let lanes = builder.index(32);
    let start = builder.mul(program, lanes);
    let at = builder.add(start, lane);
    let value = load(builder, input, at, 1);
    let (three, four) = (builder.index(3), builder.index(4));
    let place = builder.and(at, three);
    let above = builder.add(place, four);
    for (op, offset) in [(AtomicOp::Min, place), (AtomicOp::Max, above)] {
        let atomic = op::LaneAtomic {
            base: output,
            offset,
            value,
            mask: None,
            op,
            order: None,
            scope: None,
        };
        builder.emit(Op::LaneAtomic(atomic), &[]);
    }
}

/// Numbers by their places: NaN alone; NaN and zeros; any.
fn contended(index: usize) -> f64 {
    let number = (index * 7919 % 4001) as f64 - 2000.0;
    match (index % 4, index / 4 % 5) {
        (0, turn) if turn % 2 == 1 => -f64::NAN,
        (0, _) | (_, 0) => f64::NAN,
        (1, turn) if turn % 2 == 1 => -0.0,
        (1, _) => 0.0,
        (_, _) => number / 8.0,
    }
}

#[test]
#[expect(unsafe_code, reason = "a launch of the backend is unsafe")]
fn extremes_in_contended_memory_are_those_of_the_interpreter() {
    let Some(context) = context() else {
        return;
    };
    let (stream, programs) = (context.stream().expect("a stream"), 4096_u32);
    for dtype in [DType::F32, DType::F64] {
        let size = dtype.bytes() as usize;
        let bytes = |numbers: &[f64]| -> Vec<u8> {
            let bits = numbers.iter().map(|&it| Literal::from_f64(dtype, it).bits);
            bits.flat_map(|bits| bits.to_le_bytes()[..size].to_vec())
                .collect()
        };
        let numbers: Vec<f64> = (0..programs as usize * 32).map(contended).collect();
        let first = [-f64::NAN, f64::NAN, -f64::NAN, 1e6].repeat(2);
        let (numbers, mut held) = (bytes(&numbers), bytes(&first));

        let func = verified("extremes", 1, |builder| extremes(builder, dtype));
        let kernel = context.compile(&func, "extremes", GridMapping::Direct);
        let kernel = kernel.expect("compiles");
        let x = context.allocate(numbers.len()).expect("memory");
        let y = context.allocate(held.len()).expect("memory");
        x.copy_from_host(0, &numbers, &stream).expect("a copy");
        y.copy_from_host(0, &held, &stream).expect("a copy");
        let arguments = [x.passed(Access::Read), y.passed(Access::ReadWrite)];
        // SAFETY: each lane has a number, and eight places are what they combine into.
        unsafe { kernel.launch(&stream, [programs, 1, 1], &arguments) }.expect("a launch");
        let mut found = vec![0; held.len()];
        y.copy_to_host(0, &mut found, &stream).expect("a copy");

        let arguments = &mut [Argument::Read(&numbers), Argument::ReadWrite(&mut held)];
        lane::run(&func, [programs, 1, 1], arguments).expect("runs");
        let canonical = |bytes: &[u8]| -> Vec<u64> {
            let words = bytes.chunks(size).map(|number| {
                let mut word = [0; 8];
                word[..size].copy_from_slice(number);
                semantics::canonical(dtype, u64::from_le_bytes(word))
            });
            words.collect()
        };
        assert_eq!(canonical(&found), canonical(&held), "{dtype}");
    }
}
