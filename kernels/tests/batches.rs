//! A row has the same bits alone as in a batch, for the kernels that docs/batch-invariance.md lists.

use exactile::{Buffer, Device, Number, Result, bf16};
use exactile_kernels::activation::Activation;
use exactile_kernels::attention::{Options, Shape, Split, parts};
use exactile_kernels::{
    Setting, addmm, attention, linear, log_softmax, matmul, mean, softmax, tensor_matmul,
};

/// One hundred sizes: every one up to 80, and around the extents of tiles.
fn sizes() -> Vec<usize> {
    let larger = [
        95, 96, 97, 100, 112, 127, 128, 129, 160, 191, 192, 193, 200, 255, 256, 257, 300, 384, 400,
        513,
    ];
    (1..=80).chain(larger).collect()
}

/// Numbers whose sums betray their order; a longer list begins with a shorter one.
fn numbers<T: Number>(len: usize, seed: u64, number: fn(f32) -> T) -> Vec<T> {
    let random = |index: usize| {
        let bits = (index as u64 + 1 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bits = (bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(|index| number(random(index))).collect()
}

/// Launches a kernel on so many rows.
type Launch<'a, T> = dyn Fn(&Device, usize, &mut Buffer<T>, &Setting) -> Result<()> + 'a;

/// What a kernel makes of rows, each as wide as this.
struct Row<'a, T> {
    width: usize,
    launch: &'a Launch<'a, T>,
}

/// Row 0 of every size of batch, by tiles that change with the size, on the CPU; of some on the interpreter and as code of a GPU.
fn row_alone_is_row_of_batch<T: Number + PartialEq>(tiles: &[(usize, usize)], row: &Row<'_, T>) {
    let first = |device: &Device, rows: usize, setting: &Setting| {
        let mut out = Buffer::<T>::zeros(device, rows * row.width).expect("fits");
        (row.launch)(device, rows, &mut out, setting)
            .unwrap_or_else(|error| panic!("{device}, {rows} rows, {setting:?}: {error}"));
        let mut all = out.to_vec().expect("is read");
        all.truncate(row.width);
        all
    };
    let alone = first(&Device::cpu(), 1, &Setting::default());
    let sizes = sizes();
    assert_eq!(sizes.len(), 100);
    for (at, &rows) in sizes.iter().enumerate() {
        let (block, width) = tiles[at % tiles.len()];
        let setting = Setting {
            block,
            width,
            ..Setting::default()
        };
        let mut devices = vec![Device::cpu()];
        if [2, 33, 129].contains(&rows) {
            devices.extend([Device::interpreter(), Device::lanes()]);
        }
        for device in devices {
            let found = first(&device, rows, &setting);
            assert!(found == alone, "{device}, {rows} rows, {block} x {width}");
        }
    }
}

/// Products: rows and columns of a tile of the product.
const TILES: [(usize, usize); 4] = [(64, 64), (16, 32), (128, 16), (64, 16)];

const N: usize = 24;
const K: usize = 200;

#[test]
fn products_have_rows_of_their_own() {
    let weight = numbers(K * N, 1, bf16::from_f32);
    let upload = |device: &Device, rows: usize| {
        let x = Buffer::from_slice(device, &numbers(rows * K, 2, bf16::from_f32))?;
        Ok::<_, exactile::Error>((x, Buffer::from_slice(device, &weight)?))
    };
    let mm = Row {
        width: N,
        launch: &|device, rows, out, setting| {
            let (x, weight) = upload(device, rows)?;
            tensor_matmul(&x, &weight, out, [rows, N, K], setting)
        },
    };
    row_alone_is_row_of_batch::<bf16>(&TILES, &mm);
    let bias = numbers(N, 3, bf16::from_f32);
    let added = Row {
        width: N,
        launch: &|device, rows, out, setting| {
            let (x, weight) = upload(device, rows)?;
            let bias = Some(&Buffer::from_slice(device, &bias)?);
            let scales = [0.3, 1.7];
            addmm([&x, &weight], bias, scales, out, [rows, N, K], setting)
        },
    };
    row_alone_is_row_of_batch::<bf16>(&TILES, &added);
    let layer = Row {
        width: N,
        launch: &|device, rows, out, setting| {
            let (x, weight) = upload(device, rows)?;
            let bias = Some(&Buffer::from_slice(device, &bias)?);
            let (silu, shape) = (Some(Activation::Silu), [rows, N, K]);
            linear([&x, &weight], bias, silu, out, shape, setting)
        },
    };
    row_alone_is_row_of_batch::<bf16>(&TILES, &layer);
}

#[test]
fn products_of_single_precision_have_rows_of_their_own() {
    let weight = numbers(K * N, 4, |x| x);
    let mm = Row {
        width: N,
        launch: &|device, rows, out, setting| {
            let x = Buffer::from_slice(device, &numbers(rows * K, 5, |x| x))?;
            let weight = Buffer::from_slice(device, &weight)?;
            matmul(&x, &weight, out, [rows, N, K], setting)
        },
    };
    row_alone_is_row_of_batch::<f32>(&[(64, 0), (16, 0), (32, 0)], &mm);
}

#[test]
fn rows_of_scores_stand_alone() {
    const COLUMNS: usize = 301;
    let scores = |device: &Device, rows: usize| {
        Buffer::from_slice(device, &numbers(rows * COLUMNS, 6, |x| x * 8.0))
    };
    let logarithms = Row {
        width: COLUMNS,
        launch: &|device, rows, out, setting| {
            log_softmax(&scores(device, rows)?, out, [rows, COLUMNS], setting)
        },
    };
    row_alone_is_row_of_batch::<f32>(&[(64, 0), (512, 0), (256, 0)], &logarithms);
    let shares = Row {
        width: COLUMNS,
        launch: &|device, rows, out, setting| {
            softmax(&scores(device, rows)?, out, [rows, COLUMNS], setting)
        },
    };
    row_alone_is_row_of_batch::<f32>(&[(512, 0), (2048, 0), (512, 2)], &shares);
}

/// A query of two heads that share keys, in parts of these.
#[test]
fn attention_has_sequences_of_its_own() {
    const KEYS: usize = 48;
    let decode = Row {
        width: 32,
        launch: &|device, rows, out, setting| {
            let shape = Shape {
                sequences: rows,
                key_heads: 1,
                keys: KEYS,
                ..Shape::new(2, 1, 16, true)
            };
            let on = |len, seed| Buffer::from_slice(device, &numbers(len, seed, bf16::from_f32));
            let (q, k) = (on(rows * 32, 8)?, on(rows * KEYS * 16, 9)?);
            let v = on(rows * KEYS * 16, 10)?;
            let mut room = Buffer::zeros(device, parts(shape, 32, q.len()))?;
            let split = Some(Split {
                keys: 32,
                parts: &mut room,
            });
            let options = Options {
                split,
                ..Options::default()
            };
            attention([&q, &k, &v], out, shape, options, setting)
        },
    };
    row_alone_is_row_of_batch::<bf16>(&[(16, 16), (16, 32), (32, 16)], &decode);
}

#[test]
fn means_stand_alone() {
    const MIDDLE: usize = 201;
    let means = Row {
        width: 3,
        launch: &|device, rows, out, setting| {
            let x = Buffer::from_slice(device, &numbers(rows * MIDDLE * 3, 7, |x| x))?;
            mean(&x, out, [rows, MIDDLE, 3], setting)
        },
    };
    row_alone_is_row_of_batch::<f32>(&[(32, 4), (256, 0), (64, 1), (2, 2)], &means);
}

#[test]
fn the_page_lists_what_is_tested() {
    let page = include_str!("../../docs/batch-invariance.md");
    let (_, table) = page.split_once("|---|---|---|\n").expect("has a table");
    let table = table.split("\n\n").next().expect("ends");
    for name in [
        "tensor_matmul",
        "matmul",
        "addmm",
        "linear",
        "log_softmax",
        "softmax",
        "mean",
        "attention",
    ] {
        assert!(table.contains(&format!("`{name}`")), "{name}");
    }
    assert!(page.contains("100 sizes") && page.contains("up to 513"));
    assert_eq!(sizes().last(), Some(&513));
}
