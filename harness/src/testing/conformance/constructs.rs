//! Tensors that loops and branches change, numbers that are packed, and Bessel functions.

use exactile::prelude::*;
use exactile::{Array, Comparable, Result};
use exactile_core::ir::Function;
use exactile_core::semantics::oracle::reference;

use super::judge::{Judge, expect, expect_near};

/// A part that a branch chooses, and that a loop makes smaller by a row and a column each time.
#[kernel]
fn walks(x: Tensor<i32, 2>, out: TensorMut<i32, 2>, n: i32) {
    let mut rest = if n > 2 {
        x.part([1, 0], [4, 4])
    } else {
        x.part([0, 2], [2, 3])
    };
    let mut target = out;
    for _ in 0..n {
        let tile = load(rest.tile([2, 4]).at([0, 0]));
        store(target.tile([2, 4]).at([0, 0]), tile);
        rest = rest.part([1, 1], [rest.extent(0), rest.extent(1)]);
        target = target.part([2, 0], [target.extent(0), target.extent(1)]);
    }
}

/// What [`walks`] gives of `[5, 6]` numbers.
fn walked(x: &[i32], n: usize) -> Vec<i32> {
    let [row, column, rows, columns] = match n > 2 {
        true => [1, 0, 4, 4],
        false => [0, 2, 2, 3],
    };
    let places =
        (0..n).flat_map(|step| (0..2).flat_map(move |i| (0..4).map(move |j| (step, i, j))));
    let number = |(step, i, j): (usize, usize, usize)| {
        let there = step + i < rows && step + j < columns;
        if there {
            x[(row + step + i) * 6 + column + step + j]
        } else {
            0
        }
    };
    places.map(number).collect()
}

/// Tensors as results of loops and branches.
pub(super) fn tensors(judge: &mut Judge<'_>) -> Result<()> {
    let x: Vec<i32> = (1..=30).collect();
    for n in 1..=4 {
        let what = format!("{n} parts of a tensor");
        let found = judge.same(&what, &[1], |way| {
            let (given, mut out) = (way.given(&x)?, way.room::<i32>(8 * n)?);
            let arguments = (given.view([5, 6])?, out.view_mut([2 * n, 4])?, n as i32);
            walks()
                .schedule(way.schedule)
                .run(&way.device, 1, arguments)?;
            Ok(vec![out.to_array()?])
        })?;
        expect(&what, &found[0], &walked(&x, n))?;
    }
    Ok(())
}

#[kernel]
fn packs(x: Ptr<f32>, bytes: Ptr<u8>, fours: PtrMut<u8>, words: PtrMut<u32>, rounded: PtrMut<f32>) {
    let at = arange(0, 64);
    let x = load(x + at);
    store(fours + arange(0, 32), pack_e2m1(x));
    store(rounded + at, round_to_tf32(x));
    let packed = pack_bytes(load(bytes + at));
    store(words + arange(0, 16), packed);
    store(
        words + 16 + arange(0, 16),
        pack_bytes(unpack_bytes(packed) & 0x0f),
    );
}

/// The code of the nearest float of 4 bits, of two the even one.
fn code(x: f32) -> u8 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let away = |code: u8| (x.abs().min(6.0) - MAGNITUDES[usize::from(code)]).abs();
    let nearest = (1..8).fold(0, |best, code| {
        let closer = away(code) < away(best) || away(code) == away(best) && code % 2 == 0;
        if closer { code } else { best }
    });
    nearest | u8::from(x.is_sign_negative()) << 3
}

/// Floats of 4 bits, bytes in words, and TF32.
pub(super) fn packed(judge: &mut Judge<'_>) -> Result<()> {
    let x: Vec<f32> = (0..64)
        .map(|i| (i as f32 - 31.0) * 0.251 + 0.000_3)
        .collect();
    let bytes: Vec<u8> = (0..64).map(|i| (i * 37 + 11) as u8).collect();
    let found = judge.same("packed numbers", &[1], |way| {
        let (given, small) = (way.given(&x)?, way.given(&bytes)?);
        let (mut fours, mut words) = (way.room::<u8>(32)?, way.room::<u32>(32)?);
        let mut rounded = way.room::<f32>(64)?;
        let arguments = (&given, &small, &mut fours, &mut words, &mut rounded);
        packs()
            .schedule(way.schedule)
            .run(&way.device, 1, arguments)?;
        Ok(vec![
            fours.to_array()?,
            words.to_array()?,
            rounded.to_array()?,
        ])
    })?;
    let pairs = x.chunks(2).map(|pair| code(pair[0]) | code(pair[1]) << 4);
    expect("floats of 4 bits", &found[0], &pairs.collect::<Vec<u8>>())?;
    let word = |four: &[u8]| u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    let words = bytes.chunks(4).map(word);
    let words = words.clone().chain(words.map(|word| word & 0x0f0f_0f0f));
    expect("bytes in words", &found[1], &words.collect::<Vec<u32>>())?;
    let tf32 = x
        .iter()
        .map(|x| f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000));
    expect("TF32", &found[2], &tf32.collect::<Vec<f32>>())
}

#[kernel]
fn waves(x: Ptr<f32>, out: PtrMut<f32>) {
    let at = arange(0, 64);
    let x = load(x + at);
    let values = [
        bessel_j0(x),
        bessel_j1(x),
        bessel_y0(x),
        bessel_y1(x),
        bessel_i0(x),
        bessel_i1(x),
        bessel_jn(2, x),
        bessel_yn((at & 1).to::<i32>() + 1, x),
    ];
    for (place, value) in values.into_iter().enumerate() {
        store(out + place * 64 + at, value);
    }
}

/// Bessel functions, within `1e-6` of their values.
pub(super) fn bessel(judge: &mut Judge<'_>) -> Result<()> {
    use Function::{BesselI0, BesselI1, BesselJ0, BesselJ1, BesselY0, BesselY1};
    let x: Vec<f32> = (0..64).map(|i| 0.3 + 1.37 * i as f32).collect();
    let found = judge.same("Bessel functions", &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.room::<f32>(512)?);
        waves()
            .schedule(way.schedule)
            .run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let value = |op: Function, x: f32| reference(op, f64::from(x));
    // From the recurrence of three orders.
    let second = |first: f64, zero: f64, x: f32| 2.0 / f64::from(x) * first - zero;
    let rows = [BesselJ0, BesselJ1, BesselY0, BesselY1, BesselI0, BesselI1];
    let mut want: Vec<f64> = rows
        .iter()
        .flat_map(|&op| x.iter().map(move |&x| value(op, x)))
        .collect();
    want.extend(
        x.iter()
            .map(|&x| second(value(BesselJ1, x), value(BesselJ0, x), x)),
    );
    want.extend(x.iter().enumerate().map(|(at, &x)| match at % 2 {
        0 => value(BesselY1, x),
        _ => second(value(BesselY1, x), value(BesselY0, x), x),
    }));
    let want: Vec<f32> = want.into_iter().map(|value| value as f32).collect();
    let found: &Array = &found[0];
    expect_near("Bessel functions", found, &want, 1e-6)
}
