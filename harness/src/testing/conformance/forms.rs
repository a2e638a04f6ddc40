//! Matrix products in the forms that went wrong elsewhere: between other ops, in chains, of packed and of turned operands.

use exactile::prelude::*;
use exactile::{Comparable, Number, Result};

use super::judge::{Judge, expect};

/// `[m, k]` times `[k, n]`, of numbers whose sums no order rounds.
fn multiplied(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let at = (0..m).flat_map(|row| (0..n).map(move |column| (row, column)));
    at.map(|(row, column)| (0..k).map(|at| a[row * k + at] * b[at * n + column]).sum())
        .collect()
}

/// Integers of small size, other ones for each `turn`.
fn small<T: Number>(count: usize, range: usize, turn: usize, of: fn(f32) -> T) -> Vec<T> {
    let number = |at: usize| ((at * 7 + at / 5 + turn * 3) % range) as f32;
    (0..count).map(|at| of(number(at))).collect()
}

fn whole(x: f32) -> f32 {
    x
}

#[kernel]
fn joined_product(x: Ptr<f32>, out: PtrMut<f32>) {
    let half = load(x + arange(0, 32).expand(1) * 16 + arange(0, 16).expand(0));
    let both = half.join(half * 2.0).reshape([32, 32]);
    let at = arange(0, 32).expand(1) * 32 + arange(0, 32).expand(0);
    store(out + at, dot(both, both, zeros::<f32>([32, 32])));
}

/// A product of what two tiles were joined to.
fn of_joined(judge: &mut Judge<'_>) -> Result<()> {
    let x = small(32 * 16, 5, 0, whole);
    let found = judge.same("a product of joined tiles", &[1], |way| {
        let (given, mut out) = (way.given(&x)?, way.room::<f32>(32 * 32)?);
        let kernel = joined_product().schedule(way.schedule);
        kernel.run(&way.device, 1, (&given, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let both: Vec<f32> = x.iter().flat_map(|&x| [x, 2.0 * x]).collect();
    let want = multiplied(&both, &both, [32, 32, 32]);
    expect("a product of joined tiles", &found[0], &want)
}

#[kernel]
fn chained<const M: usize, const N: usize, const K: usize>(
    a: Ptr<f16>,
    b: Ptr<f16>,
    c: Ptr<f16>,
    out: PtrMut<f16>,
    n: i32,
) {
    let rows = program_id(0) * M + arange(0, M);
    let along = arange(0, K);
    let left = load(a + rows.expand(1) * K + along.expand(0));
    let mut sum = zeros::<f32>([M, K]);
    for start in range(0, n).step(N) {
        let at = (start + arange(0, N)).expand(1) * K + along.expand(0);
        let (middle, right) = (load(b + at), load(c + at));
        let product = dot_with(
            Precision::Ieee,
            left,
            middle.transpose(),
            zeros::<f32>([M, N]),
        );
        sum = dot_with(Precision::Ieee, product.to::<f16>(), right, sum);
    }
    store(out + rows.expand(1) * K + along.expand(0), sum.to::<f16>());
}

/// Two products in a loop, the second of what the first gives.
fn chains(judge: &mut Judge<'_>) -> Result<()> {
    let (m, n, k) = (32, 64, 32);
    let [a, b, c] = [(m, 0), (n, 1), (n, 2)].map(|it| small(it.0 * k, 2, it.1, whole));
    let halves = |x: &[f32]| -> Vec<f16> { x.iter().map(|&x| f16::from_f32(x)).collect() };
    let found = judge.same("a chain of products", &[16, 32], |way| {
        let [a, b, c] = [&a, &b, &c].map(|x| way.given(&halves(x)));
        let mut out = way.room::<f16>(m * k)?;
        let kernel = chained().m(16).n(way.block).k(k).schedule(way.schedule);
        let arguments = (&a?, &b?, &c?, &mut out, n as i32);
        kernel.run(&way.device, m / 16, arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    let turned: Vec<f32> = (0..k * n).map(|at| b[at % n * k + at / n]).collect();
    let product = multiplied(&a, &turned, [m, n, k]);
    let want = multiplied(&product, &c, [m, k, n]);
    expect("a chain of products", &found[0], &halves(&want))
}

#[kernel]
fn row_product<const N: usize, const K: usize>(
    a: Ptr<f32>,
    b: Ptr<f32>,
    out: PtrMut<f32>,
    n: i32,
    k: i32,
) {
    let rows = program_id(0) * 4 + arange(0, 4);
    let columns = program_id(1) * N + arange(0, N);
    let mut sum = sum_accumulator::<f32>([4, N]);
    for start in range(0, k).step(K) {
        let at = start + arange(0, K);
        let left = load(a + rows.expand(1) * k + at.expand(0)).expand(2);
        let right = load(b + (at.expand(1) * n + columns.expand(0))).expand(0);
        sum.add(left * right, 1);
    }
    store(out + rows.expand(1) * n + columns.expand(0), sum.finish());
}

/// Products of rows written as sums of a tile of three axes.
fn rows(judge: &mut Judge<'_>) -> Result<()> {
    let [m, n, k] = [8, 64, 128];
    let (a, b) = (small(m * k, 4, 0, whole), small(k * n, 4, 1, whole));
    let found = judge.same("products of rows", &[16, 32], |way| {
        let (left, right) = (way.given(&a)?, way.given(&b)?);
        let mut out = way.room::<f32>(m * n)?;
        let kernel = row_product().n(16).k(way.block).schedule(way.schedule);
        let arguments = (&left, &right, &mut out, n as i32, k as i32);
        kernel.run(&way.device, (m / 4, n / 16), arguments)?;
        Ok(vec![out.to_array()?])
    })?;
    expect(
        "products of rows",
        &found[0],
        &multiplied(&a, &b, [m, n, k]),
    )
}

/// Offsets that come of the index of the loop: before the loads, behind them, or an iteration or two ahead.
#[kernel]
fn placed<const M: usize, const K: usize, const STAGES: usize, const FORM: usize>(
    a: Ptr<f32>,
    b: Ptr<f32>,
    out: PtrMut<f32>,
    k: i32,
) {
    let rows = arange(0, M);
    let along = arange(0, K);
    let mut sum = zeros::<f32>([M, M]);
    let mut left = rows.expand(1) * k + along.expand(0);
    let mut right = along.expand(1) * M + rows.expand(0);
    let mut ahead = left + K;
    for start in range(0, k).step(K).stages(STAGES) {
        if FORM == 0 {
            left = rows.expand(1) * k + (start + along).expand(0);
            right = (start + along).expand(1) * M + rows.expand(0);
        }
        sum = dot(load(a + left), load(b + right), sum);
        if FORM == 1 {
            left = rows.expand(1) * k + (start + K + along).expand(0);
            right = (start + K + along).expand(1) * M + rows.expand(0);
        }
        if FORM == 2 {
            left = ahead;
            ahead = rows.expand(1) * k + (start + 2 * K + along).expand(0);
            right += K * M;
        }
    }
    store(out + rows.expand(1) * M + rows.expand(0), sum);
}

/// Products whose operands lie where the index of their loop says.
fn places(judge: &mut Judge<'_>) -> Result<()> {
    let (m, k) = (32, 128);
    let (a, b) = (small(m * k, 5, 0, whole), small(k * m, 5, 1, whole));
    for (form, stages) in [(0, 3), (1, 4), (2, 3), (2, 4)] {
        let what = format!("offsets in form {form}, {stages} stages");
        let found = judge.same(&what, &[16, 32], |way| {
            let (left, right) = (way.given(&a)?, way.given(&b)?);
            let mut out = way.room::<f32>(m * m)?;
            let kernel = placed()
                .m(m)
                .k(way.block)
                .stages(stages)
                .form(form)
                .schedule(way.schedule);
            kernel.run(&way.device, 1, (&left, &right, &mut out, k as i32))?;
            Ok(vec![out.to_array()?])
        })?;
        expect(&what, &found[0], &multiplied(&a, &b, [m, m, k]))?;
    }
    Ok(())
}

#[kernel]
fn turned_weights(x: Ptr<f16>, weights: Ptr<f16>, out: PtrMut<f32>) {
    let (rows, along, columns) = (arange(0, 16), arange(0, 32), arange(0, 8));
    let left = load(x + rows.expand(1) * 32 + along.expand(0));
    // In memory [8, 4, 8]: of the product `[32, 8]` by `[4, 8, 8]`.
    let blocks = arange(0, 4).expand(1).expand(2) * 8
        + arange(0, 8).expand(0).expand(2)
        + columns.expand(0).expand(0) * 32;
    let right = load(weights + blocks).reshape([32, 8]);
    let sums = dot(left, right, zeros::<f32>([16, 8]));
    store(out + rows.expand(1) * 8 + columns.expand(0), sums);
}

/// A product by an operand whose axes were permuted.
fn turned(judge: &mut Judge<'_>) -> Result<()> {
    let (x, weights) = (small(16 * 32, 4, 0, whole), small(32 * 8, 4, 1, whole));
    let halves = |x: &[f32]| -> Vec<f16> { x.iter().map(|&x| f16::from_f32(x)).collect() };
    let found = judge.same("a product by permuted weights", &[1], |way| {
        let (left, right) = (way.given(&halves(&x))?, way.given(&halves(&weights))?);
        let mut out = way.room::<f32>(16 * 8)?;
        let kernel = turned_weights().schedule(way.schedule);
        kernel.run(&way.device, 1, (&left, &right, &mut out))?;
        Ok(vec![out.to_array()?])
    })?;
    let right: Vec<f32> = (0..32 * 8)
        .map(|at| weights[at % 8 * 32 + at / 8])
        .collect();
    let want = multiplied(&x, &right, [16, 8, 32]);
    expect("a product by permuted weights", &found[0], &want)
}

/// The first operand in halves of bytes that lie beside each other in its rows of `k`, the second of `bf16`.
#[kernel]
fn packed<const M: usize, const N: usize, const K: usize>(
    a: Tensor<u8, 2>,
    b: Tensor<bf16, 2>,
    out: TensorMut<f32, 2>,
    k: i32,
) {
    let mut sum = zeros::<f32>([M, N]);
    for step in range(0, k) {
        // Two numbers of a column are a byte: rows of memory are columns of the operand.
        let bytes = a.tile([K, M / 2]).at((step, 0)).load();
        let left = unpack_int4(bytes).transpose().to::<bf16>();
        let right = b.tile([K, N]).at((step, 0)).load();
        sum = dot(left, right, sum);
    }
    out.tile([M, N]).at((0, 0)).store(sum);
}

/// A product of integers of 4 bits, two of neighbouring rows in a byte, and `bf16`.
fn of_packed(judge: &mut Judge<'_>) -> Result<()> {
    let [m, n, k] = [32, 16, 64];
    let a: Vec<f32> = small(m * k, 16, 0, |x| x - 8.0);
    let b = small(k * n, 4, 1, whole);
    let nibble = |row: usize, at: usize| (a[row * k + at] as i8 as u8) & 15;
    let bytes = (0..k).flat_map(|at| (0..m / 2).map(move |pair| (at, 2 * pair)));
    let bytes = bytes.map(|(at, row)| nibble(row, at) | nibble(row + 1, at) << 4);
    let bytes: Vec<u8> = bytes.collect();
    let right: Vec<bf16> = b.iter().map(|&x| bf16::from_f32(x)).collect();
    let found = judge.same("a product of packed integers", &[16, 32], |way| {
        let (left, right) = (way.given(&bytes)?, way.given(&right)?);
        let mut out = way.room::<f32>(m * n)?;
        let kernel = packed().m(m).n(n).k(way.block).schedule(way.schedule);
        let views = (
            left.view([k, m / 2])?,
            right.view([k, n])?,
            out.view_mut([m, n])?,
            (k / way.block) as i32,
        );
        kernel.run(&way.device, 1, views)?;
        Ok(vec![out.to_array()?])
    })?;
    let want = multiplied(&a, &b, [m, n, k]);
    expect("a product of packed integers", &found[0], &want)
}

/// Operands whose tiles lie in memory as tiles: tensors of four axes, loaded and made matrices.
#[kernel]
fn tiled<T: Float, const M: usize, const N: usize, const K: usize>(
    a: Tensor<T, 4>,
    b: Tensor<T, 4>,
    out: TensorMut<f32, 2>,
    k: i32,
) {
    let (row, column) = (program_id(0), program_id(1));
    let mut sum = zeros::<f32>([M, N]);
    for step in range(0, k) {
        let left = a.tile([1, 1, M, K]).at((row, step, 0, 0)).load();
        let right = b.tile([1, 1, K, N]).at((step, column, 0, 0)).load();
        sum = dot(left.reshape([M, K]), right.reshape([K, N]), sum);
    }
    out.tile([M, N]).at((row, column)).store(sum);
}

fn tiled_on<T: Float + Number>(judge: &mut Judge<'_>, of: fn(f32) -> T) -> Result<()> {
    let [m, n, k, block] = [32, 48, 64, 16];
    let (a, b) = (small(m * k, 4, 0, whole), small(k * n, 4, 1, whole));
    // Tile by tile, and row by row in each.
    let blocks = |x: &[f32], columns: usize| -> Vec<T> {
        let wide = columns / block;
        let at = |at: usize| {
            let (tile, row, column) = (at / (block * block), at / block % block, at % block);
            x[(tile / wide * block + row) * columns + tile % wide * block + column]
        };
        (0..x.len()).map(|place| of(at(place))).collect()
    };
    let what = format!("a product of tiled {}", T::DTYPE);
    let found = judge.same(&what, &[1], |way| {
        let (left, right) = (way.given(&blocks(&a, k))?, way.given(&blocks(&b, n))?);
        let mut out = way.room::<f32>(m * n)?;
        let kernel = tiled::<T>()
            .m(block)
            .n(block)
            .k(block)
            .schedule(way.schedule);
        let views = (
            left.view([m / block, k / block, block, block])?,
            right.view([k / block, n / block, block, block])?,
            out.view_mut([m, n])?,
            (k / block) as i32,
        );
        kernel.run(&way.device, (m / block, n / block), views)?;
        Ok(vec![out.to_array()?])
    })?;
    expect(&what, &found[0], &multiplied(&a, &b, [m, n, k]))
}

/// Products of tiles of tensors that are made matrices.
fn of_tiles(judge: &mut Judge<'_>) -> Result<()> {
    tiled_on::<f32>(judge, whole)?;
    tiled_on::<f16>(judge, f16::from_f32)?;
    tiled_on::<bf16>(judge, bf16::from_f32)
}

#[kernel]
fn batches<const RANK: usize, const B: usize, const TURNED: usize>(
    a: Ptr<bf16>,
    b: Ptr<bf16>,
    out: PtrMut<f32>,
) {
    // The first axes but one are pairs.
    let shape = |rows: usize, columns: usize| {
        let mut shape = vec![2; RANK - 2];
        shape.extend([rows, columns]);
        shape
    };
    let at =
        |rows: usize, columns: usize| arange(0, B * rows * columns).reshape(shape(rows, columns));
    let mut left = load(a + at(16, 16));
    let mut right = load(b + at(16, 16));
    if TURNED % 2 == 1 {
        left = left.transpose();
    }
    if TURNED / 2 == 1 {
        right = right.transpose();
    }
    let sums = dot_with(Precision::Ieee, left, right, zeros::<f32>(shape(16, 16)));
    store(out + at(16, 16), sums);
}

/// Batches of products in none to four axes.
fn of_batches(judge: &mut Judge<'_>) -> Result<()> {
    for (rank, turned) in [(2, 1), (3, 2), (4, 0), (4, 3), (5, 1), (6, 2)] {
        let count = 1 << (rank - 2);
        let part = 16 * 16;
        let a: Vec<f32> = small(count * part, 9, 0, |x| x - 4.0);
        let b: Vec<f32> = small(count * part, 9, 1, |x| x - 4.0);
        let narrow = |x: &[f32]| -> Vec<bf16> { x.iter().map(|&x| bf16::from_f32(x)).collect() };
        let what = format!("products of rank {rank}, turned {turned}");
        let found = judge.same(&what, &[1], |way| {
            let (left, right) = (way.given(&narrow(&a))?, way.given(&narrow(&b))?);
            let mut out = way.room::<f32>(count * part)?;
            let kernel = batches()
                .rank(rank)
                .b(count)
                .turned(turned)
                .schedule(way.schedule);
            kernel.run(&way.device, 1, (&left, &right, &mut out))?;
            Ok(vec![out.to_array()?])
        })?;
        let mut want = Vec::new();
        for (a, b) in a.chunks(part).zip(b.chunks(part)) {
            let turn = |x: &[f32], turn: bool| -> Vec<f32> {
                let at = |at: usize| {
                    if turn {
                        x[at % 16 * 16 + at / 16]
                    } else {
                        x[at]
                    }
                };
                (0..part).map(at).collect()
            };
            let (a, b) = (turn(a, turned % 2 == 1), turn(b, turned / 2 == 1));
            want.extend(multiplied(&a, &b, [16, 16, 16]));
        }
        expect(&what, &found[0], &want)?;
    }
    Ok(())
}

/// All forms.
pub(super) fn all(judge: &mut Judge<'_>) -> Result<()> {
    of_joined(judge)?;
    chains(judge)?;
    rows(judge)?;
    places(judge)?;
    turned(judge)?;
    of_packed(judge)?;
    of_tiles(judge)?;
    of_batches(judge)
}
