//! What the lane interpreter computes, counts and refuses.

use super::*;
use crate::text::parse;

fn interpret(source: &str, y: &mut [u8]) -> Result<Report, Fault> {
    let func = crate::verify::lane(parse(source, "test.bir").expect("parses")).expect("verifies");
    run(&func, [1, 1, 1], &mut [Argument::ReadWrite(y)])
}

fn kernel(warps: u32, body: &str) -> String {
    format!(
        "func @f lane warps={warps} (%y: ptr<i32> write) {{
        %lane = lane_id : i32
        %warp = warp_id : i32
        %wide = constant value=i32(32) : i32
        %first = mul %warp, %wide : i32
        %thread = add %first, %lane : i32
        {body}\n}}"
    )
}

fn ints(bytes: &[u8]) -> Vec<i32> {
    bytes
        .chunks_exact(4)
        .map(crate::ir::Number::read_from)
        .collect()
}

fn aligned(bytes: usize) -> Vec<u8> {
    // `check_arguments` asks for the alignment of the elements; the allocator gives 16.
    vec![0; bytes.max(64)]
}

#[test]
fn shuffles_exchange_within_each_warp() {
    let source = kernel(
        2,
        "%s = shuffle_xor %thread, lane_mask=5 : i32
        lane_store %y, %thread, %s, align=4",
    );
    let mut y = aligned(256);
    let report = interpret(&source, &mut y).expect("runs");
    assert_eq!(ints(&y), (0..64).map(|i| i ^ 5).collect::<Vec<i32>>());
    assert_eq!(report.shuffles, 2);
    assert_eq!(
        report.total(),
        Traffic {
            requests: 2,
            sectors: 8,
            bank_conflicts: 0
        }
    );
}

#[test]
fn lanes_take_their_own_branch_and_trip_count() {
    let source = kernel(
        1,
        "%zero = constant value=i64(0) : i64
        %n = cast %thread : i64
        %init = constant value=i32(0) : i32
        %sum = for %zero, %n, [%init], step=1, stages=1 (%i: i64, %acc: i32) {
          %small = cast %i : i32
          %next = add %acc, %small : i32
          yield [%next]
        } : i32
        %sixteen = constant value=i32(16) : i32
        %low = lt %lane, %sixteen : bool
        %r = if %low () {
          yield [%sum]
        } () {
          %minus = neg %sum : i32
          yield [%minus]
        } : i32
        lane_store %y, %thread, %r, align=4",
    );
    let mut y = aligned(128);
    interpret(&source, &mut y).expect("runs");
    let sum = |i: i32| i * (i - 1) / 2;
    let expected: Vec<i32> = (0..32)
        .map(|i| if i < 16 { sum(i) } else { -sum(i) })
        .collect();
    assert_eq!(ints(&y), expected);
}

const EXCHANGE: &str = "%s = alloc offset=0, count=64 : ptr<i32, shared>
        lane_store %s, %thread, %thread, align=4
        BARRIER
        %sixty = constant value=i32(63) : i32
        %other = xor %thread, %sixty : i32
        %v = lane_load %s, %other, align=4 : i32
        lane_store %y, %thread, %v, align=4";

#[test]
fn a_barrier_orders_shared_memory_and_its_absence_is_a_race() {
    let mut y = aligned(256);
    let ordered = kernel(2, &EXCHANGE.replace("BARRIER", "barrier"));
    interpret(&ordered, &mut y).expect("runs");
    assert_eq!(ints(&y), (0..64).map(|i| 63 - i).collect::<Vec<i32>>());
    let fault = interpret(&kernel(2, &EXCHANGE.replace("BARRIER", "")), &mut y).expect_err("races");
    let expected = "lane 0 reads `shared[252]` without a barrier after lane 63's write";
    assert!(fault.to_string().ends_with(expected), "{fault}");
}

#[test]
fn a_shuffle_under_a_lane_condition_is_divergent() {
    let source = kernel(
        1,
        "%c = constant value=i32(3) : i32
        %low = lt %lane, %c : bool
        if %low () {
          %s = shuffle_xor %lane, lane_mask=1 : i32
          yield []
        } () {
          yield []
        }",
    );
    let fault = interpret(&source, &mut aligned(4)).expect_err("diverges");
    assert_eq!(
        fault.kind,
        FaultKind::Divergent {
            mnemonic: "shuffle_xor",
            lane: 3
        }
    );
}

#[test]
fn equal_writes_of_two_lanes_race_too() {
    let source = kernel(
        1,
        "%zero = constant value=i32(0) : i32
        lane_store %y, %zero, %zero, align=4",
    );
    let fault = interpret(&source, &mut aligned(4)).expect_err("races");
    assert!(
        matches!(
            fault.kind,
            FaultKind::Race {
                lane: 1,
                other: 0,
                ..
            }
        ),
        "{fault}"
    );
}

#[test]
fn reading_shared_memory_that_nothing_wrote_is_a_fault() {
    let source = kernel(
        1,
        "%s = alloc offset=0, count=32 : ptr<i32, shared>
        %v = lane_load %s, %lane, align=4 : i32",
    );
    let fault = interpret(&source, &mut aligned(4)).expect_err("uninitialised");
    assert!(
        matches!(fault.kind, FaultKind::Uninitialised { .. }),
        "{fault}"
    );
}

#[test]
fn a_stride_of_two_words_conflicts_once() {
    let source = kernel(
        1,
        "%s = alloc offset=0, count=64 : ptr<i32, shared>
        %at = add %lane, %lane : i32
        lane_store %s, %at, %lane, align=4",
    );
    let report = interpret(&source, &mut aligned(4)).expect("runs");
    assert_eq!(report.total().bank_conflicts, 1);
}

#[test]
fn an_access_wider_than_its_alignment_is_a_fault() {
    let source = kernel(
        0,
        "%one = constant value=i32(1) : i32
        %v = splat %one : tile<2xi32>
        lane_store %y, %one, %v, align=8",
    );
    let fault = interpret(&source, &mut aligned(16)).expect_err("unaligned");
    assert!(
        matches!(fault.kind, FaultKind::Unaligned { align: 8, .. }),
        "{fault}"
    );
}

#[test]
fn the_least_refused_access_is_reported() {
    let source = kernel(
        1,
        "%big = constant value=i32(10) : i32
        %at = add %lane, %big : i32
        %in = check_bounds %y, %at, %lane, count=1, site=7 : bool
        lane_store %y, %at, %lane, mask=%in, align=4",
    );
    let mut y = aligned(64);
    let report = interpret(&source, &mut y).expect("runs");
    let error = report
        .out_of_bounds
        .expect("lanes from 6 on are out of bounds");
    assert_eq!((error.site, error.element, error.offset), (7, 6, 16));
    assert_eq!(ints(&y)[10..], [0, 1, 2, 3, 4, 5]);
}

#[test]
fn deep_nests_of_branches_need_no_deep_stack() {
    let depth = crate::ir::most_depth(crate::ir::Stage::Lane);
    let mut body = String::new();
    for _ in 0..depth {
        body.push_str("if %low () {\n");
    }
    body.push_str("lane_store %y, %thread, %thread, align=4\n");
    for _ in 0..depth {
        body.push_str("yield []\n} () {\nyield []\n}\n");
    }
    let source = kernel(2, &format!("%low = lt %lane, %wide : bool\n{body}"));
    let func = crate::verify::lane(parse(&source, "test.bir").expect("parses")).expect("verifies");
    let mut y = aligned(256);
    let small = std::thread::Builder::new().stack_size(128 << 10);
    std::thread::scope(|scope| {
        let work = || run(&func, [1, 1, 1], &mut [Argument::ReadWrite(&mut y)]).expect("runs");
        let thread = small.spawn_scoped(scope, work).expect("starts");
        thread.join().expect("does not overflow");
    });
    assert_eq!(ints(&y), (0..64).collect::<Vec<i32>>());
}
