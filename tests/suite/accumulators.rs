//! Accumulators of any combine, executed on every device of the host: the bits of one tile over all
//! of them, whatever the tile size, with the last one in part.

use exactile::prelude::*;

use super::language::{devices, noise, upload};

/// Welford's count, mean and sum of squared distances, of the elements and of their squares' rows.
#[kernel]
fn moments<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut moments = accumulator::<(Tile<f32>, Tile<f32>, Tile<f32>)>([2], |a, b| {
        let count = a.0 + b.0;
        let distance = b.1 - a.1;
        let share = b.0 / count;
        let mean = a.1 + distance * share;
        (count, mean, a.2 + b.2 + distance * distance * a.0 * share)
    });
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let mask = at < n;
        let row = load(x + at).mask(mask).expand(0);
        let rows = select(arange(0, 2).expand(1) == 0, row, row * row);
        let parts = (full::<f32>([2, BLOCK], 1.0), rows, zeros::<f32>([2, BLOCK]));
        moments.add_masked(parts, mask.expand(0), 1);
    }
    let (count, mean, squares) = moments.finish();
    let at = arange(0, 2);
    store(out + at, count);
    store(out + 2 + at, mean);
    store(out + 4 + at, squares);
}

/// The greatest element with its place, the first of equals: a combine with a branch.
#[kernel]
fn greatest<const BLOCK: usize>(x: Ptr<f32>, out: PtrMut<f32>, n: i32) {
    let mut best = accumulator::<(Tile<f32>, Tile<i64>)>([], |a, b| {
        let mut best = a;
        if b.0 > a.0 {
            best = b;
        }
        best
    });
    let mut most = max_accumulator::<f32>([]);
    let mut least = min_accumulator::<i64>([1]);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let mask = at < n;
        let tile = load(x + at).mask(mask).other(1e30);
        best.add_masked((tile, at), mask, 0);
        most.add_masked(tile, mask, 0);
        least.add_masked((at * 7 % 31 + 3).expand(0), mask.expand(0), 1);
    }
    let (value, place) = best.finish();
    store(out, value);
    store(out + 1, place.to::<f32>());
    store(out + 2, most.finish());
    store(out + 3 + arange(0, 1), least.finish().to::<f32>());
}

/// A linear recurrence `h = a * h + x` by prefixes of affine maps, and what is left.
#[kernel]
fn recurrence<const BLOCK: usize, const TILES: usize>(
    a: Ptr<f32>,
    x: Ptr<f32>,
    out: PtrMut<f32>,
    last: PtrMut<f32>,
    n: i32,
) {
    let mut maps = accumulator::<(Tile<f32>, Tile<f32>)>([], |a, b| (a.0 * b.0, b.0 * a.1 + b.1));
    let mut maps = maps.at_most(TILES);
    let mut sums = sum_accumulator::<f32>([]);
    for start in range(0, n).step(BLOCK) {
        let at = start + arange(0, BLOCK);
        let mask = at < n;
        let factors = load(a + at).mask(mask).other(1.0);
        let (_, states) = maps.scan((factors, load(x + at).mask(mask)), 0);
        store(out + at, states).mask(mask);
        sums.add_masked(states, mask, 0);
    }
    let (product, state) = maps.finish();
    store(last, product);
    store(last + 1, state);
    store(last + 2, sums.finish());
}

fn bits(buffer: &Buffer<f32>) -> Vec<u32> {
    let numbers = buffer.to_vec().expect("reads");
    numbers.iter().map(|number| number.to_bits()).collect()
}

const BLOCKS: [usize; 5] = [1, 4, 16, 64, 256];

/// What one tile over all gives is what every tile size gives.
fn same<const N: usize>(run: impl Fn(usize) -> [Vec<u32>; N], what: &str) -> [Vec<u32>; N] {
    let whole = run(256);
    for block in BLOCKS {
        assert_eq!(run(block), whole, "{what}, block {block}");
    }
    whole
}

#[test]
fn any_combine_has_the_bits_of_one_tile() {
    for n in [0, 1, 7, 64, 200] {
        let x = noise(n.max(1));
        let mut found = Vec::new();
        for device in devices() {
            let input = upload(&device, &x);
            let what = format!("{n} elements on {device:?}");
            let stats = same(
                |block| {
                    let mut out = upload(&device, &[f32::NAN; 6]);
                    moments()
                        .block(block)
                        .run(&device, 1, (&input, &mut out, n as i32))
                        .expect("runs");
                    [bits(&out)]
                },
                &what,
            );
            let best = same(
                |block| {
                    let mut out = upload(&device, &[f32::NAN; 4]);
                    greatest()
                        .block(block)
                        .run(&device, 1, (&input, &mut out, n as i32))
                        .expect("runs");
                    [bits(&out)]
                },
                &what,
            );
            found.push((stats, best));
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{n}");
        let ([stats], [best]) = &found[0];
        let number = |bits: u32| f32::from_bits(bits);
        assert_eq!(number(stats[0]), n as f32);
        if n > 0 {
            let place = (0..n).fold(0, |best, at| if x[at] > x[best] { at } else { best });
            assert_eq!((number(best[0]), number(best[1])), (x[place], place as f32));
            assert_eq!(number(best[2]), x[place]);
            let mean = x[..n].iter().sum::<f32>() / n as f32;
            assert!((number(stats[2]) - mean).abs() < 1e-3 * mean.abs().max(1.0));
        } else {
            assert_eq!((number(best[0]), number(best[1])), (0.0, 0.0));
            assert!(number(best[2]).is_nan() && number(best[3]) > 1e18);
        }
    }
}

#[test]
fn recurrences_have_the_bits_of_one_tile() {
    let n = 200;
    let (a, x) = (noise(n), noise(2 * n).split_off(n));
    let a: Vec<f32> = a.iter().map(|a| a.sin()).collect();
    let mut found = Vec::new();
    for device in devices() {
        let (factors, input) = (upload(&device, &a), upload(&device, &x));
        let run = |block: usize| {
            let mut out = upload(&device, &vec![f32::NAN; n]);
            let mut last = upload(&device, &[f32::NAN; 3]);
            let kernel = recurrence().block(block).tiles(n.div_ceil(block));
            kernel
                .run(
                    &device,
                    1,
                    (&factors, &input, &mut out, &mut last, n as i32),
                )
                .expect("runs");
            [bits(&out), bits(&last)]
        };
        let [states, last] = same(run, "recurrence");
        assert_eq!(states[n - 1], last[1]);
        found.push((states, last));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    let mut state = 0.0f64;
    for at in 0..n {
        state = f64::from(a[at]) * state + f64::from(x[at]);
        let got = f64::from(f32::from_bits(found[0].0[at]));
        assert!((got - state).abs() < 1e-3 * state.abs().max(1.0), "{at}");
    }
}

#[kernel]
fn uneven(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut best = accumulator::<(Tile<f32>, Tile<i64>)>([], |a, b| if b.0 > a.0 { b } else { a });
    best.add((load(x + arange(0, 8)), arange(0, 8)), 0);
    best.add((load(x + arange(0, 4)), arange(0, 4)), 0);
    store(out, best.finish().0);
}

#[kernel]
fn unshaped(x: Ptr<f32>, out: PtrMut<f32>) {
    let mut product = accumulator::<Tile<f32>>([4], |a, b| a * b);
    product.add(load(x + arange(0, 8)), 0);
    product.add_masked(load(x + arange(0, 8)).expand(1), arange(0, 2) < 1, 1);
    store(out, product.finish().sum(0));
}

#[test]
fn tiles_that_do_not_fit_are_named() {
    let errors = uneven().check().expect_err("is wrong").to_string();
    assert!(
        errors.contains("extent `4` along axis 0, expected `8` as before"),
        "{errors}"
    );
    let errors = unshaped().check().expect_err("is wrong").to_string();
    assert!(
        errors.contains("`accumulate` takes [tile<4xf32>, tile<4xbool>]"),
        "{errors}"
    );
}
