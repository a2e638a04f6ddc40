//! What the estimate follows from.

use super::*;
use crate::ir::{Access, DType};
use crate::text::parse;

/// Sums of `count` numbers of a row for each of `n` iterations.
fn sums(count: usize) -> Func {
    let text = format!(
        "func @f block (%x: ptr<f32> divisor=16, %o: ptr<f32> write divisor=16, %n: i64 divisor=16) {{
          %i = arange start=0, end={count} : tile<{count}xi64>
          %begin = load %x, %i : tile<{count}xf32>
          %zero = constant value=i64(0) : i64
          %sums = for %zero, %n, [%begin], step=1, stages=1 (%k: i64, %sum: tile<{count}xf32>) {{
            %places = splat %k : tile<{count}xi64>
            %at = add %i, %places : tile<{count}xi64>
            %v = load %x, %at : tile<{count}xf32>
            %next = add %sum, %v : tile<{count}xf32>
            yield [%next]
          }} : tile<{count}xf32>
          store %o, %i, %sums
        }}"
    );
    parse(&text, "cost.bir").expect("parses")
}

/// The cost for so many iterations and programs, with `bytes` of memory.
fn cost(func: &Func, [iterations, programs]: [u32; 2], bytes: u64, schedule: Schedule) -> Cost {
    let memory = |access| Passed::Memory {
        address: 0,
        bytes,
        access,
    };
    let number = Literal::from_integer(DType::I64, iterations.into()).expect("fits");
    let arguments = [
        memory(Access::Read),
        memory(Access::ReadWrite),
        Passed::Scalar(number),
    ];
    let launch = Launch::new([programs, 1, 1], &arguments);
    Costs::of(func, &Target::SM_90A, Some(&launch)).on(&schedule)
}

#[test]
fn loops_take_as_long_as_the_arguments_of_a_launch_say() {
    let func = sums(1024);
    let of = |iterations| {
        cost(
            &func,
            [iterations, 10_000],
            u64::MAX,
            Schedule::AUTO.warps(4),
        )
    };
    let [few, many] = [10, 1000].map(of);
    assert!(many.cycles > 50.0 * few.cycles, "{few:?} {many:?}");
    assert!(many.issue > 50.0 * few.issue && many.program > 50.0 * few.program);
    // Of an unknown launch it is some of them.
    let unknown = Costs::of(&func, &Target::SM_90A, None).on(&Schedule::AUTO.warps(4));
    assert!(unknown.cycles.is_finite() && unknown.cycles > 0.0);
}

#[test]
fn memory_gives_what_it_has_once_and_the_cache_the_rest() {
    let func = sums(1024);
    let of = |bytes| cost(&func, [100, 10_000], bytes, Schedule::AUTO.warps(4));
    let [small, large] = [1 << 20, u64::MAX].map(of);
    assert!(small.memory < large.memory / 100.0, "{small:?} {large:?}");
    assert!((small.cache - large.cache).abs() < 1.0);
}

#[test]
fn more_warps_have_registers_for_longer_tiles() {
    let func = sums(16_384);
    let of = |warps| cost(&func, [10, 10_000], u64::MAX, Schedule::AUTO.warps(warps));
    let [few, more, most] = [1, 8, 32].map(of);
    assert!(few.spilled > 0 && more.spilled == 0, "{few:?} {more:?}");
    assert!(few.cycles > more.cycles && more.registers > most.registers);
}

#[test]
fn lanes_with_fewer_registers_leave_room_for_more_programs() {
    let func = sums(8192);
    let of = |schedule| cost(&func, [10, 10_000], u64::MAX, schedule);
    let own = of(Schedule::AUTO.warps(4));
    let crowded = of(Schedule::AUTO.warps(4).occupancy(8));
    assert!(
        own.residents < 8 && crowded.residents >= 8,
        "{own:?} {crowded:?}"
    );
    assert!(crowded.spilled > 0 && crowded.registers < own.registers);
    // Small programs that share a thread block begin together.
    let small = sums(32);
    let [alone, shared] = [1, 8].map(|programs| {
        cost(
            &small,
            [1, 1 << 20],
            u64::MAX,
            Schedule::AUTO.warps(1).programs(programs),
        )
    });
    assert!(alone.start > 7.0 * shared.start && alone.cycles > shared.cycles);
}
