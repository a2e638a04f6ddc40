//! Tiles of rank 0 where one number is wanted, and numbers where functions take tiles.

use exactile::prelude::*;
use exactile_core::random::Random;

use super::language::{devices, upload};

#[kernel]
fn decides(x: Ptr<f32>, out: PtrMut<f32>, counts: PtrMut<i64>, n: i32) {
    let tile = load(x + arange(0, 8));
    let (sum, least) = (tile.sum(0), tile.argmin(0));
    let mut total = scalar::<f32>(0.0);
    if sum > 4.0 {
        total += sum;
    }
    if sum > 100.0 && n > 2 || least < n && sum > 1.0 {
        total *= 2.0;
    }
    let mut trips = scalar::<i64>(0);
    for i in least..8 {
        trips += i;
    }
    for i in range(0, tile.argmax(0)).step(least) {
        trips += 100 + i;
    }
    for i in 1..=least {
        trips += 1000 * i;
    }
    let mut half = tile.max(0);
    while half > 1.0 {
        half /= 2.0;
        trips += tile.argmax(0) * 10_000;
    }
    store(out, select(sum > 4.0, total, half));
    store(out + 1, half);
    store(out + least, load(x + least).mask(sum > 4.0).other(9.0));
    store(out + n, load(x + n).mask(sum > 1e6).other(9.0));
    store(out + n + 1, load(x + n)).mask(sum > 1e6);
    store(counts, trips);
}

#[test]
fn tiles_of_rank_zero_serve_as_scalars() {
    let x = [3.0f32, 2.0, -1.0, 5.0, 2.0, 7.0, 0.0, 1.0];
    let mut trips: i64 = (2..8).sum();
    trips += [0, 2, 4].iter().map(|i| 100 + i).sum::<i64>() + 1000 + 2000;
    trips += 3 * 5 * 10_000;
    for device in devices() {
        let x = upload(&device, &x);
        let mut out = upload(&device, &[0.0f32; 8]);
        let mut counts = upload(&device, &[0i64]);
        decides()
            .run(&device, 1, (&x, &mut out, &mut counts, 4))
            .expect("runs");
        let want = [38.0, 7.0 / 8.0, -1.0, 0.0, 9.0, 0.0, 0.0, 0.0];
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        assert_eq!(counts.to_vec().expect("reads"), [trips], "{device}");
    }
}

const WRONG: u32 = line!() + 2;
#[kernel]
fn tiles_where_one_number_is_wanted(x: PtrMut<f32>, n: i32) {
    let at = arange(0, 16);
    if at < n {
        store(x + at, 1.0);
    }
    while at < n {
        store(x, 2.0);
    }
    for i in 0..at {
        store(x + i, 3.0);
    }
    store(x + at, 1.0).mask(at < n && n > 3);
    let mut sum = scalar::<f32>(0.0);
    sum += load(x + at);
    store(x, sum);
}

#[test]
fn other_tiles_are_errors_with_a_remedy() {
    let errors = tiles_where_one_number_is_wanted().trace();
    let errors = errors.expect_err("is wrong").to_string();
    let wants = [
        (
            2,
            "the condition of an `if` or `while` needs a scalar or a tile of rank 0, found `tile<16xbool>`",
        ),
        (5, "the condition of an `if` or `while` needs"),
        (
            8,
            "an index or a bound of a loop needs a scalar or a tile of rank 0, found `tile<16xi64>`",
        ),
        (
            11,
            "`&&` or `||` needs a scalar or a tile of rank 0, found `tile<16xbool>`",
        ),
        (
            13,
            "`scalar` needs a scalar or a tile of rank 0, found `tile<16xf32>`",
        ),
    ];
    for (line, want) in wants {
        let place = format!("ranks.rs:{}:", WRONG + line);
        let message = errors
            .split("error: ")
            .find(|message| message.contains(&place));
        let message = message.unwrap_or_else(|| panic!("no error at {place}: {errors}"));
        assert!(message.starts_with(want), "{message}");
    }
    for remedy in [
        "`select(condition, a, b)`",
        "`.any(axis)`",
        "use `&` and `|`",
        "`.sum(axis)`",
    ] {
        assert!(errors.contains(remedy), "{remedy}: {errors}");
    }
}

/// Each function of a tile gives the bits that it gives of the numbers alone.
#[kernel]
fn functions_of_both(x: Ptr<f32>, words: Ptr<u32>, tiles: PtrMut<f32>, scalars: PtrMut<f32>) {
    let at = arange(0, 8);
    let x_tile = load(x + at);
    let w_tile = load(words + at);
    for (row, found) in of_both(x_tile, w_tile).into_iter().enumerate() {
        store(tiles + row * 8 + at, found);
    }
    for i in 0..8 {
        let (x, word) = (load(x + i), load(words + i));
        for (row, found) in of_both(x, word).into_iter().enumerate() {
            store(scalars + row * 8 + i, found);
        }
    }
}

macro_rules! of_both {
    ($($Kind:ident)*) => { $(
        impl Both for $Kind<f32> {
            type Words = $Kind<u32>;
            fn values(self, word: $Kind<u32>) -> Vec<$Kind<f32>> {
                let x = self;
                let [a, .., d] = rand4x(7, word);
                let (c, s) = uniforms_to_normals(a, d);
                vec![
                    fma(x, 2.0, 1.0), fma(2.0, x, x), fma(x, x, 0.5), clamp(x, -1.0, 1.0), clamp(0.5, x, 4.0),
                    relu(x), silu(x), softplus(x), gelu(x), gelu_tanh(x), rand(3, word), randn(3, word), c, s,
                    word_to_uniform(word), randint(9, word).to::<f32>(), count_ones(word).to::<f32>(),
                    leading_zeros(word).to::<f32>(), trailing_zeros(word).to::<f32>(), mulhi(word, 77).to::<f32>(),
                    rotate_left(word, 3).to::<f32>(), byte_permute(word, 5, 0x3210).to::<f32>(),
                    x.to_rounded::<half::bf16>(Rounding::Up).to::<f32>(), ldexp(x, 3), logb(x), saturate(x),
                    norm([x, x, x]), sin_pi(x), normal_cdf(x), add_rounded(x, 0.1, Rounding::Down),
                    fma_rounded(x, x, 0.1, Rounding::Up), cdiv(word, 7).to::<f32>(), cdiv(1000, word | 1).to::<f32>(),
                ]
            }
        }
    )* };
}
of_both!(Tile Scalar);

trait Both: Sized {
    type Words;
    fn values(self, words: Self::Words) -> Vec<Self>;
}

fn of_both<V: Both>(x: V, words: V::Words) -> Vec<V> {
    x.values(words)
}

#[test]
fn functions_take_scalars_and_tiles() {
    let mut random = Random::new(5);
    let x = [-2.5f32, -0.0, 0.3, 1.0, 7.75, -0.001, 12.0, 0.5];
    let words: Vec<u32> = (0..8).map(|_| random.bits() as u32).collect();
    for device in devices() {
        let (x, words) = (upload(&device, &x), upload(&device, &words));
        let mut tiles = upload(&device, &[f32::NAN; 33 * 8]);
        let mut scalars = upload(&device, &[0.0f32; 33 * 8]);
        functions_of_both()
            .run(&device, 1, (&x, &words, &mut tiles, &mut scalars))
            .expect("runs");
        let [tiles, scalars] = [tiles, scalars].map(|it| it.to_vec().expect("reads"));
        exactile::assert_bits_equal(&scalars, &tiles);
        assert!(tiles.iter().all(|it| !it.is_nan()), "{tiles:?}");
        assert_eq!(tiles[..8], [-4.0, 1.0, 1.6, 3.0, 16.5, 0.998, 25.0, 2.0]);
    }
}

#[kernel]
fn looks_up(x: Ptr<f32>, indices: Ptr<i32>, out: PtrMut<f32>, counts: PtrMut<i32>) {
    let tile = load(x + arange(0, 32)).reshape([4, 8]);
    let (row, column) = (load(indices), load(indices + 1));
    store(out + arange(0, 8), gather(tile, row, 0));
    store(out + 8 + arange(0, 4), gather(tile, column, 1));
    let place = load(indices + arange(0, 2)).max(0);
    store(out + 12, gather(gather(tile, place, 1), row, 0));
    store(
        counts + arange(0, 8),
        histogram(row, 8) + histogram_masked(column, row == 3, 8),
    );
}

#[test]
fn one_index_takes_a_row() {
    let x: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let mut want: Vec<f32> = (16..24).map(|i| i as f32).collect();
    want.extend([5.0, 13.0, 21.0, 29.0, 21.0]);
    for device in devices() {
        let (x, indices) = (upload(&device, &x), upload(&device, &[2i32, 5]));
        let mut out = upload(&device, &[0.0f32; 13]);
        let mut counts = upload(&device, &[7i32; 8]);
        looks_up()
            .run(&device, 1, (&x, &indices, &mut out, &mut counts))
            .expect("runs");
        assert_eq!(out.to_vec().expect("reads"), want, "{device}");
        let counts = counts.to_vec().expect("reads");
        assert_eq!(counts, [0, 0, 1, 0, 0, 0, 0, 0], "{device}");
    }
}
