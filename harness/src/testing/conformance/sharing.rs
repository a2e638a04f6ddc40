//! Atomics whose elements meet: by places from memory, in pairs, shifted, with masks, and under conditions.

use exactile::prelude::*;
use exactile::{Comparable, DType, Determinism, Number, Result};

use super::each;
use super::judge::{Judge, expect};
use super::wide::{Wide, modest, pair};

#[kernel]
fn placed<T: AtomicAdd, const N: usize>(
    x: Ptr<T>,
    places: Ptr<i64>,
    out: PtrMut<T>,
    count: i64,
    step: i64,
) {
    let at = arange(0, N);
    let inside = at < count;
    let value = load(x + program_id(0) * count + at).mask(inside);
    let place = load(places + at).mask(inside);
    atomic_add(out + place, value).mask(inside & (at % step == 0));
}

/// Where the elements go, by name.
fn patterns(count: usize) -> [(&'static str, Vec<i64>); 6] {
    let places = |place: &dyn Fn(usize) -> usize| (0..count).map(|at| place(at) as i64).collect();
    let half = count.div_ceil(2);
    [
        ("increasing", places(&|at| at)),
        ("decreasing", places(&|at| count - 1 - at)),
        ("permuted", places(&|at| (at * 7 + 3) % count)),
        (
            "at random",
            places(&|at| (at * at * 31 + at * 17 + 5) % 61 % count),
        ),
        ("in pairs", places(&|at| at / 2)),
        (
            "a second row shifted by one",
            places(&|at| at / half + at % half),
        ),
    ]
}

fn placed_on<T: AtomicAdd + Number>(judge: &mut Judge<'_>) -> Result<()> {
    for count in [2, 4, 25, 36, 64, 128] {
        // Small integers: no order of adding them rounds.
        let small = |x: T| match Wide::of(x) {
            Wide::Float(x) => Wide::Float(x.round().clamp(-3.0, 3.0)).to(),
            Wide::Int(x) => Wide::Int(x).to(),
        };
        let x: Vec<T> = modest(3 * count, 25).into_iter().map(small).collect();
        for (name, places) in patterns(count) {
            for step in 1..=4 {
                let what = format!("{count} sums of {} {name}, each {step}th", T::DTYPE);
                let found = judge.same(&what, &[1], |way| {
                    let (given, places) = (way.given(&x)?, way.given(&places)?);
                    let mut out = Buffer::<T>::zeros(&way.device, count + 1)?;
                    let kernel = placed::<T>().n(count.next_power_of_two());
                    let kernel = kernel.schedule(way.schedule);
                    let kernel = kernel.determinism(match T::DTYPE.is_float() {
                        true => Determinism::NotGuaranteed,
                        false => Determinism::Exact,
                    });
                    let arguments = (&given, &places, &mut out, count as i64, step as i64);
                    kernel.run(&way.device, 3, arguments)?;
                    Ok(vec![out.to_array()?])
                })?;
                let mut want = vec![Wide::of(T::default()); count + 1];
                for (at, &x) in x.iter().enumerate() {
                    let own = at % count;
                    if own.is_multiple_of(step) {
                        let place = &mut want[places[own] as usize];
                        *place = pair(*place, Wide::of(x), |a, b| a + b, |a, b| a + b);
                    }
                }
                let want: Vec<T> = want.into_iter().map(Wide::to).collect();
                expect(&what, &found[0], &want)?;
            }
        }
    }
    Ok(())
}

/// Sums by places from memory, in six patterns, with masks.
pub(super) fn shared_places(judge: &mut Judge<'_>) -> Result<()> {
    each!(placed_on(judge): i32 u64 f16 bf16 f32);
    Ok(())
}

#[kernel]
fn some_programs(out: PtrMut<i32>) {
    let program = program_id(0);
    if program < 64 {
        atomic_max(out, program.to::<i32>());
    }
    if program % 1000 == 17 {
        atomic_add(out + 1, 1);
    }
}

/// Atomics of some of very many programs.
pub(super) fn under_conditions(judge: &mut Judge<'_>) -> Result<()> {
    let what = format!("atomics of some programs in {}", DType::I32);
    let found = judge.same(&what, &[1], |way| {
        let mut out = Buffer::<i32>::zeros(&way.device, 2)?;
        let kernel = some_programs().schedule(way.schedule);
        kernel.run(&way.device, 4096, (&mut out,))?;
        Ok(vec![out.to_array()?])
    })?;
    expect(&what, &found[0], &[63, 5])
}
