//! Loops whose loads run ahead: how many copies, how much memory, and what stays synchronous.

use super::*;
use crate::ir::{Op, op};

fn count(func: &Func, wanted: impl Fn(&Op) -> bool) -> usize {
    let insts = func.all_insts().into_iter();
    insts.filter(|&inst| wanted(func.op(inst))).count()
}

/// The asynchronous copies of each lane.
fn copies(func: &Func) -> usize {
    let insts = func.all_insts().into_iter();
    let copied = insts.filter_map(|inst| {
        let Op::StartCopy(op) = func.op(inst) else {
            return None;
        };
        Some(func.ty(op.offset).shape.elements())
    });
    copied.sum()
}

fn shared_bytes(func: &Func) -> i64 {
    let insts = func.all_insts().into_iter();
    let ends = insts.filter_map(|inst| {
        let Op::Alloc(op::Alloc { offset, count }) = func.op(inst) else {
            return None;
        };
        let (dtype, _) = func.ty(func.inst(inst).results[0]).pointee()?;
        Some(offset + count * i64::from(dtype.bytes()))
    });
    ends.max().unwrap_or(0)
}

fn lowered(source: &str, warps: u32, stages: Option<u32>) -> LaneFunc {
    let func = parse(source, "test.bir").expect("parses");
    let func = verify::block(func).expect("verifies");
    let options = Options {
        bounds: Bounds::Unchecked,
        schedule: Schedule {
            warps: Some(warps),
            stages,
            ..Schedule::default()
        },
        ..Options::default()
    };
    compiled(func, &options)
}

/// Adds rows of 1024 numbers.
fn rows(stages: i64) -> String {
    format!(
        "func @rows block (%x: ptr<f32> divisor=16, %y: ptr<f32> write divisor=16, %n: i64) {{
        %zero = constant value=i64(0) : i64
        %size = constant value=i64(1024) : i64
        %i = arange start=0, end=1024 : tile<1024xi64>
        %none = constant value=f32(0) : tile<1024xf32>
        %s = for %zero, %n, [%none], step=1, stages={stages} (%k: i64, %c: tile<1024xf32>) {{
          %r = mul %k, %size : i64
          %t = splat %r : tile<1024xi64>
          %o = add %t, %i : tile<1024xi64>
          %v = load %x, %o : tile<1024xf32>
          %e = add %c, %v : tile<1024xf32>
          yield [%e]
        }} : tile<1024xf32>
        store %y, %i, %s
      }}"
    )
}

#[test]
fn each_stage_has_a_buffer_and_no_barrier() {
    for stages in 1..=4 {
        let func = lowered(&rows(stages), 4, None);
        let copies = copies(&func);
        // Two vectors of four numbers for each lane and stage.
        let expected = if stages == 1 { 0 } else { 2 * stages };
        assert_eq!(copies as i64, expected, "{}", &*func);
        let bytes = if stages == 1 { 0 } else { 4096 * stages };
        assert_eq!(shared_bytes(&func), bytes);
        assert_eq!(
            count(&func, |op| matches!(op, Op::Barrier(op::Barrier {}))),
            0
        );
        let loads = count(
            &func,
            |op| matches!(op, Op::LaneLoad(op::LaneLoad { base, .. }) if func.parameter_index(*base).is_some()),
        );
        assert_eq!(loads, if stages == 1 { 1 } else { 0 });
        let given = [
            Given::Random(8192, 0),
            Given::Random(1024, 0),
            Given::Scalar(8),
        ];
        for report in check(&rows(stages), [1, 1, 1], &given) {
            assert_eq!(report.total().bank_conflicts, 0);
        }
    }
}

#[test]
fn the_schedule_states_the_depth() {
    let copies = |stages, schedule| copies(&lowered(&rows(stages), 4, Some(schedule)));
    assert_eq!(copies(1, 3), 6);
    assert_eq!(copies(4, 1), 0);
    assert_eq!(copies(4, 2), 4);
}

#[test]
fn without_asynchronous_copies_nothing_runs_ahead() {
    let func = verify::block(parse(&rows(3), "test.bir").expect("parses")).expect("verifies");
    let mut target = Target::SM_80;
    target.gpu.copy_bytes = &[];
    let options = Options::default();
    let func = pipeline::compile(func, &target, &options, &facts(), &mut pipeline::unobserved);
    let func = func.expect("compiles");
    assert_eq!(count(&func, |op| matches!(op, Op::StartCopy(_))), 0);
    assert!(count(&func, |op| matches!(op, Op::LaneLoad(_))) > 0);
}

#[test]
fn a_pipeline_that_does_not_fit_is_shallower() {
    let large = rows(8).replace("1024", "16384");
    let func = lowered(&large, 8, None);
    // 64 KiB a stage.
    assert_eq!(shared_bytes(&func), 3 * 65536);
}

#[test]
fn a_stated_depth_that_does_not_fit_is_an_error() {
    let large = rows(1).replace("1024", "16384");
    let func = verify::block(parse(&large, "test.bir").expect("parses")).expect("verifies");
    let options = Options {
        schedule: Schedule {
            warps: Some(8),
            stages: Some(4),
            ..Schedule::default()
        },
        ..Options::default()
    };
    let error = lower(&func, &options).expect_err("does not fit");
    assert_eq!(
        error.to_string(),
        "error: the kernel takes 262144 bytes of shared memory, expected at most 232448\n  \
         --> test.bir:10:11\n  \
         note: the largest buffers take 262144 at test.bir:10:11\n  \
         note: use smaller tiles or fewer stages"
    );
}

#[test]
fn loads_of_what_the_loop_stores_stay() {
    let aliased = rows(3).replace("yield [%e]", "store %x, %o, %e\n yield [%e]");
    let aliased = aliased.replace("%x: ptr<f32> divisor", "%x: ptr<f32> write divisor");
    let func = lowered(&aliased, 4, None);
    assert_eq!(count(&func, |op| matches!(op, Op::StartCopy(_))), 0);
}

#[test]
fn loads_at_loaded_places_stay() {
    let source =
        "func @gather block (%x: ptr<f32>, %p: ptr<i64> divisor=16, %y: ptr<f32> write, %n: i64) {
        %zero = constant value=i64(0) : i64
        %size = constant value=i64(64) : i64
        %i = arange start=0, end=64 : tile<64xi64>
        %none = constant value=f32(0) : tile<64xf32>
        %s = for %zero, %n, [%none], step=1, stages=2 (%k: i64, %c: tile<64xf32>) {
          %r = mul %k, %size : i64
          %t = splat %r : tile<64xi64>
          %o = add %t, %i : tile<64xi64>
          %at = load %p, %o : tile<64xi64>
          %v = load %x, %at : tile<64xf32>
          %same = load %x, %i : tile<64xf32>
          %d = mul %v, %same : tile<64xf32>
          %e = add %c, %d : tile<64xf32>
          yield [%e]
        } : tile<64xf32>
        store %y, %i, %s
      }";
    let func = lowered(source, 1, None);
    // One vector of two offsets for each lane, twice; nothing else runs ahead.
    assert_eq!(count(&func, |op| matches!(op, Op::StartCopy(_))), 2);
}
