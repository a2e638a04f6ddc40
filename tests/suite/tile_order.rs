//! Loops whose sums follow the tile size are found, whatever is between; others are not.

use exactile::prelude::*;
use exactile::{Determinism, Kernel};

/// The lines of this file that a kernel's error names, without the notes.
fn found<P>(kernel: &Kernel<P>) -> Vec<String> {
    let lints = kernel.lints().expect("traces");
    let text = |line: u32| include_str!("tile_order.rs").lines().nth(line as usize - 1);
    let lines = lints
        .iter()
        .map(|it| text(it.loc.line).expect("is a line").trim().to_string());
    let lines = lines.collect();
    let fails = kernel.check().is_err();
    assert_eq!(fails, !lints.is_empty());
    lines
}

macro_rules! finds {
    ($($kernel:ident: [$($line:literal),*];)*) => { $(
        let wanted: &[&str] = &[$($line),*];
        assert_eq!(found(&$kernel()), wanted, stringify!($kernel));
    )* };
}

#[kernel(BLOCK = 64)]
fn sums<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut acc = load(x);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        acc += load(x + at).mask(at < n).sum(0).scalar();
    }
    store(out, acc);
}

#[kernel(BLOCK = 64)]
fn by_pointer<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32, stride: i32) {
    let mut acc = load(x);
    let mut at = x + arange(0, BLOCK) * stride;
    let mut i = zeros::<i32>([]).scalar();
    while i < n {
        let scale = exp(load(out + i));
        let part = load(at).sum(0).scalar() * 2.0;
        acc = acc * scale - part;
        at += stride * BLOCK;
        i += BLOCK;
    }
    store(out, acc);
}

#[kernel(BLOCK = 64)]
fn dealt<const BLOCK: usize>(x: Tensor<f32, 1>, out: PtrMut<f32>) {
    let mut best = full::<f32>([], f32::NEG_INFINITY);
    let mut acc = zeros::<f32>([]);
    for k in range(program_id(0) * BLOCK, x.extent(0)).step(num_programs(0) * BLOCK) {
        let tile = load(x.tile([BLOCK]).at_offset((k,)));
        best = maximum(best, tile.max(0));
        if k > 7 {
            acc += tile.product(0);
        }
    }
    store(out, acc + best);
}

#[kernel(BLOCK = 64)]
fn online<const BLOCK: usize>(x: Tensor<f32, 1>, out: PtrMut<f32>) {
    let mut best = full::<f32>([], f32::NEG_INFINITY);
    let mut sum = zeros::<f32>([]);
    for k in range(0, x.extent(0)).step(BLOCK) {
        let tile = load(x.tile([BLOCK]).at_offset((k,)));
        let next = maximum(best, tile.max(0));
        sum = fma(sum, exp(best - next), exp(tile - next).sum(0));
        best = next;
    }
    store(out, sum);
}

#[kernel(BLOCK = 64)]
fn positions<const BLOCK: usize>(x: Tensor<f32, 1>, out: PtrMut<f32>) {
    let mut acc = zeros::<f32>([BLOCK]);
    for k in range(0, x.extent(0)).step(BLOCK) {
        acc += load(x.tile([BLOCK]).at_offset((k,)));
    }
    let halves = acc.reshape([2, BLOCK / 2]).expand(0);
    store(out, halves.sum(2).reshape([2]).max(0));
}

#[kernel(BK = 16)]
fn products<const BK: usize>(a: Tensor<f32, 2>, b: Tensor<f32, 2>, out: TensorMut<f32, 2>) {
    let mut sum = zeros::<f32>([16, 16]);
    let mut scaled = zeros::<f32>([16, 16]);
    let mut chain = zeros::<f32>([16, 16]);
    let mut promoted = zeros::<f32>([16, 16]);
    for k in range(0, a.extent(1)).step(BK) {
        let left = load(a.tile([16, BK]).at_offset((0, k)));
        let right = load(b.tile([BK, 16]).at_offset((k, 0)));
        sum += dot(left, right, zeros::<f32>([16, 16]));
        scaled = dot(left, right, scaled * 0.5);
        chain = dot(left, right, chain);
        promoted = dot_promoted(Precision::Ieee, 8, left, right, promoted);
    }
    store(
        out.tile([16, 16]).at((0, 0)),
        sum + scaled + chain + promoted,
    );
}

#[test]
fn sums_of_tiles_are_found() {
    finds! {
        sums: ["acc += load(x + at).mask(at < n).sum(0).scalar();"];
        by_pointer: ["acc = acc * scale - part;"];
        dealt: ["acc += tile.product(0);"];
        online: ["sum = fma(sum, exp(best - next), exp(tile - next).sum(0));"];
        positions: [
            "store(out, halves.sum(2).reshape([2]).max(0));",
            "store(out, halves.sum(2).reshape([2]).max(0));"
        ];
        products: [
            "sum += dot(left, right, zeros::<f32>([16, 16]));",
            "scaled = dot(left, right, scaled * 0.5);"
        ];
    }
}

/// Sums that are no op of two operands: of each element by a closure, of a pair along an axis, and of a float that the loop
/// carries as bits.
#[kernel(BLOCK = 64)]
fn disguised<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut mapped = zeros::<f32>([]);
    let mut branching = zeros::<f32>([]);
    let mut joined = zeros::<f32>([]);
    let mut bits = zeros::<u32>([]);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n).sum(0);
        mapped = map_elementwise((mapped, tile), |(a, b)| a + b);
        branching = map_elementwise((branching, tile), |(a, b)| {
            let mut a = a;
            if b > 0.0 {
                a += b;
            }
            a
        });
        joined = joined.join(tile).sum(0);
        bits = (bits.bitcast::<f32>() + tile).bitcast::<u32>();
    }
    store(out, mapped + branching + joined + bits.bitcast::<f32>());
}

/// What a closure or a pair chooses rounds nothing.
#[kernel(BLOCK = 64)]
fn chosen_numbers<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut mapped = full::<f32>([], f32::NEG_INFINITY);
    let mut joined = full::<f32>([], f32::NEG_INFINITY);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n).max(0);
        mapped = map_elementwise((mapped, tile), |(a, b)| maximum(a, b));
        joined = joined.join(tile).max(0);
    }
    store(out, mapped + joined);
}

/// Accumulators of which a tile says whether they take it.
#[kernel(BLOCK = 64)]
fn chosen_tiles<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = sum_accumulator::<f32>([]);
    let mut greatest = max_accumulator::<f32>([]);
    let mut every = sum_accumulator::<f32>([]);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        let some = (tile != 0.0).any(0);
        if some {
            sum.add(tile, 0);
            greatest.add(tile, 0);
        }
        every.add(select(some, tile, 0.0), 0);
    }
    store(out, sum.finish() + greatest.finish() + every.finish());
}

/// The same of tiles that one of another loop chooses, and of rows.
#[kernel(BLOCK = 64)]
fn chosen_rows<const BLOCK: usize>(x: Tensor<f32, 2>, flags: Ptr<i32>, out: PtrMut<f32>) {
    let mut all = zeros::<f32>([]);
    let mut sums = sum_accumulator::<f32>([]);
    for row in range(0, x.extent(0)) {
        let whole = load(x.tile([1, BLOCK]).at_offset((row, 0)));
        if whole.sum(1).sum(0) > 0.0 {
            sums.add(whole.reshape([BLOCK]), 0);
        }
        let mut sum = sum_accumulator::<f32>([]);
        for k in range(0, x.extent(1)).step(BLOCK) {
            let tile = load(x.tile([1, BLOCK]).at_offset((row, k)));
            if load(flags + row) > 0 {
                sum.add(tile.reshape([BLOCK]), 0);
            }
        }
        all += sum.finish();
    }
    store(out, all + sums.finish());
}

/// A loop that a tile ends: what it was given before is where it was.
#[kernel(BLOCK = 64)]
fn ends<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut sum = sum_accumulator::<f32>([]);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        if tile.max(0) > 100.0 {
            return;
        }
        if n > 5 {
            if tile.min(0) < -100.0 {
                break;
            }
        }
        sum.add(tile, 0);
    }
    store(out, sum.finish());
}

/// A tile is passed over, by a `continue` and by what branches give.
#[kernel(BLOCK = 64)]
fn passes_over<const BLOCK: usize>(x: Ptr<f32>, flags: Ptr<i32>, out: PtrMut<f32>, n: i32) {
    let mut sum = sum_accumulator::<f32>([]);
    let mut other = sum_accumulator::<f32>([]);
    for k in range(0, n).step(BLOCK) {
        let at = k + arange(0, BLOCK);
        let tile = load(x + at).mask(at < n);
        if (tile != 0.0).any(0) && load(flags) > 0 {
            sum.add(tile, 0);
        }
        if tile.max(0) > 100.0 {
            break;
        }
        if n > 5 {
            if tile.min(0) < -100.0 {
                continue;
            }
        }
        other.add(tile * 2.0, 0);
    }
    store(out, sum.finish() + other.finish());
}

#[test]
fn sums_in_disguise_and_chosen_tiles_are_found() {
    finds! {
        disguised: [
            "mapped = map_elementwise((mapped, tile), |(a, b)| a + b);",
            "a += b;",
            "joined = joined.join(tile).sum(0);",
            "bits = (bits.bitcast::<f32>() + tile).bitcast::<u32>();"
        ];
        chosen_numbers: [];
        chosen_tiles: ["sum.add(tile, 0);"];
        chosen_rows: [];
        ends: [];
        passes_over: ["sum.add(tile, 0);", "other.add(tile * 2.0, 0);"];
    }
    let told = chosen_tiles().check().expect_err("is found").to_string();
    for part in [
        "an accumulator takes a tile or does not by what a tile has as a whole, so its bits",
        "give it a tile in every iteration, by `select` or a mask one that changes nothing",
    ] {
        assert!(told.contains(part), "{told}");
    }
}

/// Each way to follow the tile size says what to write instead.
#[test]
fn the_notes_name_the_remedy() {
    let notes = |kernel: exactile::Result<()>| kernel.expect_err("is found").to_string();
    for (text, parts) in [
        (
            notes(by_pointer().check()),
            [
                "combines what a loop carries with what each tile has as a whole",
                "give the tiles to a `sum_accumulator` by `.add(tile, axis)` and take its `.finish()` after the loop",
            ],
        ),
        (
            notes(positions().check()),
            [
                "takes what a loop has added up at each position of a tile",
                "by `.add(tile, axis)` instead of adding them up before",
            ],
        ),
        (
            notes(products().check()),
            [
                "goes on from what a loop carries and rounds elsewhere too",
                "let the carried tile be changed by one `dot(a, b, acc)` alone, and scale it after the loop",
            ],
        ),
    ] {
        let declared = "a kernel that means one result for each tile size says";
        for part in parts.into_iter().chain([declared]) {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
    }
}

/// Rows are no tiles of a sum; what is added up at each position alone is a chain.
#[kernel(ROWS = 4, COLUMNS = 64)]
fn columns<const ROWS: usize, const COLUMNS: usize>(
    x: Tensor<f32, 2>,
    weight: Ptr<f32>,
    out: TensorMut<f32, 1>,
    sums: PtrMut<f32>,
) {
    let mut one = zeros::<f32>([1, COLUMNS]);
    let mut rows = zeros::<f32>([]);
    let scale = load(weight + arange(0, COLUMNS));
    for row in range(0, x.extent(0)) {
        let tile = load(
            x.tile([1, COLUMNS])
                .at_offset((row, program_id(0) * COLUMNS)),
        );
        one += tile * scale.expand(0);
        rows += tile.sum(1).sum(0);
    }
    store(
        out.tile([COLUMNS]).at((program_id(0),)),
        one.reshape([COLUMNS]),
    );
    store(sums, rows + one.sum(1).sum(0));
}

/// Every element by itself, and numbers that no order changes.
#[kernel(BLOCK = 64)]
fn free<const BLOCK: usize>(x: Tensor<f32, 1>, y: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut chain = load(y);
    let mut greatest = load(y);
    let mut count = zeros::<i64>([]).scalar();
    let mut sum = sum_accumulator::<f32>([]);
    for i in 0..n {
        chain = chain * 0.5 + load(y + i);
    }
    for k in range(0, x.extent(0)).step(BLOCK) {
        let tile = load(x.tile([BLOCK]).at_offset((k,)));
        greatest = maximum(greatest, tile.max(0).scalar());
        count += (tile > 0.0).to::<i64>().sum(0).scalar();
        sum.add(tile, 0);
    }
    store(out, chain + greatest + count.to::<f32>() + sum.finish());
}

/// A step of a recurrent network: the state is a tile that each product takes whole.
#[kernel]
fn recurrent(weights: Tensor<f32, 2>, x: Tensor<f32, 2>, out: TensorMut<f32, 2>, steps: i32) {
    let matrix = load(weights.tile([16, 16]).at((0, 0)));
    let mut state = zeros::<f32>([16, 16]);
    for step in 0..steps {
        let input = load(x.tile([16, 16]).at((step, 0)));
        state = tanh(dot(state, matrix, input));
    }
    store(out.tile([16, 16]).at((0, 0)), state);
}

#[test]
fn chains_rows_and_what_no_order_changes_are_not_found() {
    finds! {
        columns: [];
        free: [];
        recurrent: [];
    }
}

#[kernel(BLOCK = 64, order = "tile")]
fn declared<const BLOCK: usize>(x: Tensor<f32, 1>, out: PtrMut<f32>) {
    let mut acc = zeros::<f32>([]);
    for k in range(0, x.extent(0)).step(BLOCK) {
        acc += load(x.tile([BLOCK]).at_offset((k,))).sum(0);
    }
    store(out, acc);
}

#[test]
fn levels_below_and_declarations_allow_it() {
    let kernel = sums();
    for level in [Determinism::ScheduleInvariant, Determinism::Exact] {
        assert!(kernel.clone().determinism(level).check().is_err());
    }
    assert!(
        kernel
            .determinism(Determinism::BatchInvariant)
            .check()
            .is_ok()
    );
    let kernel = declared();
    assert!(kernel.check().is_ok());
    assert_eq!(kernel.lints().expect("traces").iter().count(), 1);
}

#[test]
fn errors_name_the_accumulator() {
    let error = sums().check().expect_err("is found").to_string();
    assert!(
        error.contains("so its bits follow the tile size"),
        "{error}"
    );
    assert!(
        error.contains("`sum_accumulator`") && error.contains("order = \"tile\""),
        "{error}"
    );
}
