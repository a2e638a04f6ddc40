//! Kernels over three tile sizes, on the CPU and on a GPU where there is one: all have the same bits.

use exactile::{Buffer, Device, Result, assert_bits_equal};
use exactile_kernels::adamw::{State, Step};
use exactile_kernels::group_norm::Affine;
use exactile_kernels::paged::Shape as Pages;
use exactile_kernels::rope::{Pairs, Table};
use exactile_kernels::sampling::Draw;
use exactile_kernels::{
    Setting, adamw, batch_moments, batch_norm, cross_entropy, cumsum, dropout, embedding,
    embedding_backward, group_norm, log_softmax, matmul, mean, paged_append, rope, rope_by_table,
    sampling, softmax, sort, sum_all, sum_columns, sum_rows, topk, topk_with_indices, transpose,
    vector_add,
};

use super::super::numbers;
use super::{sizes, tiles, widths};

/// Whether a kernel gives the bits that it has on the CPU without a setting, with each of these as well, there and on a GPU.
pub(super) fn same(
    name: &str,
    settings: [Setting; 3],
    run: impl Fn(&Device, &Setting) -> Result<Vec<f32>>,
) {
    let run = |device: &Device, setting: &Setting| {
        run(device, setting)
            .unwrap_or_else(|error| panic!("{name}, {device}, {setting:?}: {error}"))
    };
    let (cpu, default) = (Device::cpu(), Setting::default());
    let golden = run(&cpu, &default);
    assert!(
        golden.iter().any(|number| *number != 0.0),
        "{name} gives something"
    );
    for setting in &settings {
        assert_bits_equal(&run(&cpu, setting), &golden);
    }
    let gpu = match Device::cuda(0) {
        Ok(gpu) => gpu,
        Err(error) => return eprintln!("{name}: skipped on a GPU: {error}"),
    };
    for setting in [default].iter().chain(&settings) {
        assert_bits_equal(&run(&gpu, setting), &golden);
    }
}

pub(super) fn given(device: &Device, numbers: &[f32]) -> Result<Buffer<f32>> {
    Buffer::from_slice(device, numbers)
}

#[test]
fn rows_have_the_bits_of_the_cpu() {
    let shape @ [rows, columns] = [5, 1000];
    let x = numbers(rows * columns);
    type Rows = fn(&Buffer<f32>, &mut Buffer<f32>, [usize; 2], &Setting) -> Result<()>;
    let kernels: [(&str, [Setting; 3], Rows); 4] = [
        ("softmax", sizes([1024, 2048, 4096]), softmax::<f32>),
        ("log_softmax", sizes([64, 256, 2048]), log_softmax::<f32>),
        ("cumsum", sizes([1024, 2048, 4096]), cumsum::<f32>),
        (
            "sum_rows",
            tiles([(64, 2), (256, 4), (1024, 1)]),
            |x, out, shape, setting| {
                let mut sums = Buffer::zeros(x.device(), shape[0])?;
                sum_rows(x, &mut sums, shape, setting)?;
                out.copy_from_slice(&sums.to_vec()?.repeat(shape[1]))
            },
        ),
    ];
    for (name, settings, kernel) in kernels {
        same(name, settings, |device, setting| {
            let mut out = Buffer::zeros(device, x.len())?;
            kernel(&given(device, &x)?, &mut out, shape, setting)?;
            out.to_vec()
        });
    }
    same("sort and topk", sizes([1, 2, 8]), |device, setting| {
        let shape = [5, 128];
        let x = given(device, &x[..640])?;
        let (mut out, mut best) = (Buffer::zeros(device, 640)?, Buffer::zeros(device, 40)?);
        let mut columns = Buffer::<i64>::zeros(device, 40)?;
        sort(&x, &mut out, shape, setting)?;
        topk(&x, &mut best, shape, setting)?;
        let greatest = best.to_vec()?;
        topk_with_indices(&x, &mut best, &mut columns, shape, setting)?;
        let columns = columns.to_vec()?.into_iter().map(|column| column as f32);
        Ok([out.to_vec()?, greatest, best.to_vec()?, columns.collect()].concat())
    });
    let tiled = tiles([(1024, 1024), (512, 8192), (2048, 65_536)]);
    same("sum_all", tiled, |device, setting| {
        let mut all = Buffer::zeros(device, 1)?;
        let mut parts = Buffer::zeros(device, exactile_kernels::sum::all_parts(x.len()))?;
        sum_all(&given(device, &x)?, &mut parts, &mut all, setting)?;
        all.to_vec()
    });
    same(
        "sum_columns",
        tiles([(1, 32), (4, 128), (64, 64)]),
        |device, setting| {
            let mut sums = Buffer::zeros(device, columns)?;
            let mut parts = Buffer::zeros(device, exactile_kernels::sum::column_parts(shape))?;
            sum_columns(&given(device, &x)?, &mut parts, &mut sums, shape, setting)?;
            sums.to_vec()
        },
    );
}

#[test]
fn elements_have_the_bits_of_the_cpu() {
    let x = numbers(3000);
    same("vector_add", sizes([64, 512, 2048]), |device, setting| {
        let (x, mut out) = (given(device, &x)?, Buffer::zeros(device, 3000)?);
        vector_add(&x, &x, &mut out, setting)?;
        out.to_vec()
    });
    same("dropout", sizes([64, 512, 4096]), |device, setting| {
        let mut out = Buffer::zeros(device, 3000)?;
        dropout(&given(device, &x)?, &mut out, 0.25, 42, setting)?;
        out.to_vec()
    });
    same("transpose", sizes([16, 32, 64]), |device, setting| {
        let mut out = Buffer::zeros(device, 3000)?;
        transpose(&given(device, &x)?, &mut out, [30, 100], setting)?;
        out.to_vec()
    });
    same(
        "mean",
        tiles([(4, 16), (16, 32), (128, 1)]),
        |device, setting| {
            let mut out = Buffer::zeros(device, 30)?;
            mean(&given(device, &x)?, &mut out, [3, 100, 10], setting)?;
            out.to_vec()
        },
    );
    same("matmul", sizes([16, 32, 128]), |device, setting| {
        let x = given(device, &x[..2000])?;
        let mut out = Buffer::zeros(device, 1600)?;
        matmul(&x, &x, &mut out, [40, 40, 50], setting)?;
        out.to_vec()
    });
    same("adamw", sizes([64, 1024, 4096]), |device, setting| {
        let squares: Vec<f32> = x.iter().map(|x| x * x).collect();
        let [mut weights, gradients, mut means] = [&x, &x, &x].map(|x| given(device, x));
        let (mut kept, mut most) = (given(device, &squares)?, given(device, &squares)?);
        let (weights, means) = (
            weights.as_mut().expect("fits"),
            means.as_mut().expect("fits"),
        );
        let state = State {
            means,
            squares: &mut kept,
            greatest: Some(&mut most),
            overflow: None,
        };
        let step = Step {
            rate: 0.01,
            keep_mean: 0.9,
            keep_square: 0.99,
            epsilon: 1e-8,
            decay: 0.1,
            unscale: 0.5,
            ascend: true,
            count: 3,
        };
        adamw(weights, &gradients?, state, step, setting)?;
        Ok([weights.to_vec()?, kept.to_vec()?, most.to_vec()?].concat())
    });
}

#[test]
fn normalisations_have_the_bits_of_the_cpu() {
    let shape @ [rows, channels] = [100, 40];
    let x = numbers(rows * channels);
    same("batch_norm", sizes([4, 32, 128]), |device, setting| {
        let (given, weight) = (given(device, &x)?, given(device, &x[..channels])?);
        let mut moments = [
            Buffer::zeros(device, channels)?,
            Buffer::zeros(device, channels)?,
        ];
        let [means, variances] = &mut moments;
        batch_moments(&given, means, variances, shape, setting)?;
        let affine = Affine {
            weight: &weight,
            bias: &weight,
        };
        let mut out = Buffer::zeros(device, x.len())?;
        batch_norm(
            &given,
            moments.each_ref(),
            affine,
            &mut out,
            (shape, 1e-5),
            setting,
        )?;
        out.to_vec()
    });
    same("group_norm", sizes([16, 64, 128]), |device, setting| {
        let (given, weight) = (given(device, &x)?, given(device, &x[..20])?);
        let affine = Affine {
            weight: &weight,
            bias: &weight,
        };
        let mut out = Buffer::zeros(device, x.len())?;
        group_norm(&given, affine, &mut out, (5, 1e-5), [2, 20, 100], setting)?;
        out.to_vec()
    });
}

#[test]
fn models_have_the_bits_of_the_cpu() {
    let x = numbers(6 * 2 * 32);
    same("rope", widths([1, 2, 4]), |device, setting| {
        let mut turning = given(device, &x)?;
        let places = Buffer::from_slice(device, &[0, 1, 7, 100, 5000, 3])?;
        rope(
            &mut turning,
            &places,
            1e4,
            Pairs::Halves,
            [6, 2, 32],
            setting,
        )?;
        turning.to_vec()
    });
    same("rope_by_table", widths([1, 2, 4]), |device, setting| {
        let table = given(device, &x[..48])?;
        let table = Table {
            cosines: &table,
            sines: &table,
        };
        let mut out = Buffer::zeros(device, x.len())?;
        rope_by_table(
            &given(device, &x)?,
            &table,
            &mut out,
            [2, 3, 2, 32],
            setting,
        )?;
        out.to_vec()
    });
}

#[test]
fn pages_have_the_bits_of_the_cpu() {
    let x = numbers(192);
    same(
        "paged",
        tiles([(4, 1), (1, 2), (64, 4)]),
        |device, setting| {
            let shape = Pages {
                sequences: 3,
                heads: 4,
                width: 16,
                page: 2,
                pages: 2,
            };
            let new = given(device, &x)?;
            let tables = Buffer::from_slice(device, &[5, 0, 3, 1, 2, 4])?;
            let lengths = Buffer::from_slice(device, &[3, 0, 2])?;
            let [mut keys, mut values] =
                [(); 2].map(|()| given(device, &numbers(768)).expect("fits"));
            let pages = [&mut keys, &mut values];
            paged_append([&new, &new], pages, [&tables, &lengths], shape, setting)?;
            Ok([keys.to_vec()?, values.to_vec()?].concat())
        },
    );
}

#[test]
fn tables_have_the_bits_of_the_cpu() {
    let x = numbers(190);
    same(
        "embedding and its gradient",
        sizes([1, 4, 16]),
        |device, setting| {
            let indices: Vec<i32> = (0..300).map(|at| at * at % 19).collect();
            let (table, indices) = (given(device, &x)?, Buffer::from_slice(device, &indices)?);
            let (mut taken, mut sums) = (Buffer::zeros(device, 3000)?, Buffer::zeros(device, 190)?);
            embedding(&table, &indices, &mut taken, 10, setting)?;
            embedding_backward(&taken, &indices, &mut sums, [19, 10], setting)?;
            sums.to_vec()
        },
    );
}

#[test]
fn scores_have_the_bits_of_the_cpu() {
    let [rows, columns] = [2, 50_257];
    let x: Vec<f32> = numbers(rows * columns).iter().map(|x| x * 9.0).collect();
    same(
        "cross_entropy",
        sizes([1024, 4096, 16_384]),
        |device, setting| {
            let classes = Buffer::from_slice(device, &[50_256, 7])?;
            let mut out = Buffer::zeros(device, rows)?;
            cross_entropy(
                &given(device, &x)?,
                &classes,
                &mut out,
                [rows, columns],
                setting,
            )?;
            out.to_vec()
        },
    );
    same("sampling", sizes([1024, 2048, 4096]), |device, setting| {
        let draw = Draw {
            best: 16,
            heat: 0.7,
            share: 0.9,
            seed: 5,
        };
        let mut tokens = Buffer::zeros(device, 10)?;
        sampling(
            &given(device, &x[..10_000])?,
            &mut tokens,
            draw,
            [10, 1000],
            setting,
        )?;
        Ok(tokens
            .to_vec()?
            .into_iter()
            .map(|token: i32| token as f32)
            .collect())
    });
}
