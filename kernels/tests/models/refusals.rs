//! What the launches of ready kernels refuse, and what they tell of numbers that do not fit.

use exactile::{Buffer, Device, F8E4M3, Number, Optional, Result, TensorViewMut, bf16, f16};
use exactile_kernels::attention::{Keys, Options, Shape as Heads, Split, parts as attention_parts};
use exactile_kernels::attention_backward::Given;
use exactile_kernels::attention_merge::merge_parts;
use exactile_kernels::conv2d::Shape as Images;
use exactile_kernels::group_norm::Affine;
use exactile_kernels::layer_norm_backward::{Gradients, Inputs};
use exactile_kernels::paged::Shape as Pages;
use exactile_kernels::routing::Routes;
use exactile_kernels::sampling::Draw;
use exactile_kernels::{
    Setting, attention, attention_backward, block_scaled_matmul, conv2d, cross_entropy,
    embedding_backward, group_norm, grouped_matmul, histogram, layer_norm_backward, mean,
    paged_append, routing, sampling, sort, sum, sum_all, sum_columns,
};

fn zeros<T: Number>(len: usize) -> Buffer<T> {
    Buffer::zeros(&Device::cpu(), len).expect("fits")
}

/// A launch is refused, or what waits for it tells an error.
#[track_caller]
fn told(launched: Result<()>, message: &str, device: &Device) {
    let told = launched.and_then(|()| device.synchronize());
    let told = told.expect_err(message).to_string();
    assert!(told.contains(message), "{message}\nis not in\n{told}");
}

#[track_caller]
fn refused(launched: Result<()>, message: &str) {
    let text = launched.expect_err(message).to_string();
    assert!(text.contains(message), "{message}\nis not in\n{text}");
}

fn tiles(block: usize, width: usize) -> Setting {
    Setting {
        block,
        width,
        ..Setting::default()
    }
}

/// What a launch of attention over a head of two tokens says of these options.
#[track_caller]
fn refuse(shape: Heads, options: Options<'_>, setting: &Setting, message: &str) {
    let (x, mut out) = (zeros::<bf16>(16), zeros::<bf16>(16));
    refused(
        attention([&x; 3], &mut out, shape, options, setting),
        message,
    );
}

/// What a gradient is given, of an array for both the output and its gradient.
fn given<'a>(x: &'a Buffer<bf16>, log_sums: &'a Buffer<f32>) -> Given<'a, bf16> {
    Given {
        out: x,
        gradient: x,
        log_sums,
    }
}

#[test]
fn forms_of_attention_are_checked() {
    let (usual, none) = (Setting::default(), Options::default);
    let shape = Heads::new(1, 2, 8, false);
    let shared = Heads {
        key_heads: 2,
        ..shape
    };
    let message = "1 heads of 8 elements do not share 2 heads of keys";
    refuse(shared, none(), &usual, message);
    let (starts, few) = (zeros(2), zeros(3));
    let mut options = none();
    options.query_starts = Some(&starts);
    let message = "starts and pages are of arrays in which tokens come first";
    refuse(shape, options, &usual, message);
    let mut options = none();
    options.window = Some(0);
    refuse(shape, options, &usual, "a window of 0 keys shows none");
    let mut options = none();
    options.cap = Some(-1.0);
    let message = "the scale and the cap of logits are positive numbers";
    refuse(shape, options, &usual, message);
    let mut options = none();
    options.greatest = Some(&few);
    refuse(shape, options, &usual, "found [3], expected [2]");
    for (keys, width, message) in [
        (24, 0, "a part of 24 keys is no multiple of 16"),
        (
            48,
            32,
            "a part of 48 keys is no multiple of the 32 that are taken at a time",
        ),
    ] {
        let mut room = zeros(attention_parts(shape, keys, 16));
        let mut options = none();
        options.split = Some(Split {
            keys,
            parts: &mut room,
        });
        refuse(shape, options, &tiles(0, width), message);
    }
}

#[test]
fn entries_of_tables_are_pages() {
    let (usual, lengths) = (Setting::default(), [32, 16]);
    let shape = Heads {
        tokens_first: true,
        ..Heads::new(1, 32, 16, false)
    };
    let (x, mut out) = (zeros::<bf16>(512), zeros::<bf16>(512));
    let refused_tables = [[0, 2], [-1, 1], [i32::MAX, 0]].map(|it| (it, 0));
    for (entries, length) in refused_tables.into_iter().chain([([0, 2], 1)]) {
        let on = |numbers: &[i32]| Buffer::from_slice(&Device::cpu(), numbers).expect("fits");
        let (tables, lengths) = (on(&entries), on(&lengths[length..=length]));
        let options = Options {
            keys: Keys::Pages {
                tables: &tables,
                lengths: &lengths,
                page: 16,
            },
            ..Options::default()
        };
        let launched = attention([&x; 3], &mut out, shape, options, &usual);
        let launched = launched.and_then(|()| out.to_vec().map(drop));
        match length {
            0 => refused(launched, "the entries of a table are pages that there are"),
            _ => launched.expect("the second page is not read"),
        }
    }
}

#[test]
fn pages_and_starts_are_checked() {
    let (usual, none) = (Setting::default(), Options::default);
    let shape = Heads {
        tokens_first: true,
        ..Heads::new(1, 2, 8, false)
    };
    let (tables, lengths) = (zeros(1), zeros(1));
    for (page, message) in [
        (1, "1 pages of 1 tokens do not hold 2 keys"),
        (4, "16 elements are no rows of 32"),
    ] {
        let mut options = none();
        options.keys = Keys::Pages {
            tables: &tables,
            lengths: &lengths,
            page,
        };
        refuse(shape, options, &usual, message);
    }
    let (x, mut out) = (zeros::<bf16>(16), zeros::<bf16>(16));
    for starts in [[0, 3], [2, 1], [-1, 0]] {
        let starts = Buffer::from_slice(&Device::cpu(), &starts).expect("fits");
        let mut options = none();
        options.keys = Keys::Starts(&starts);
        let launched = attention([&x; 3], &mut out, shape, options, &usual);
        refused(
            launched.and_then(|()| out.to_vec().map(drop)),
            "starts ascend, by no more than a sequence may have",
        );
    }
    let starts = Buffer::from_slice(&Device::cpu(), &[1, 3]).expect("fits");
    let options = Options {
        keys: Keys::Starts(&starts),
        ..Options::default()
    };
    let launched = attention([&x; 3], &mut out, shape, options, &usual);
    refused(
        launched.and_then(|()| out.to_vec().map(drop)),
        "the keys of a sequence are rows that there are",
    );
    let mut gradients = [zeros(16), zeros(16), zeros(16)];
    refused(
        attention_backward(
            [&x; 3],
            given(&x, &zeros(2)),
            gradients.each_mut(),
            shape,
            &usual,
        ),
        "gradients are those of heads with their own keys",
    );
}

#[test]
fn shapes_of_models_are_checked() {
    let usual = Setting::default();
    let heads = Heads::new(1, 2, 8, false);
    let (x, mut out) = (zeros::<bf16>(16), zeros::<bf16>(16));
    let tile = Setting { block: 8, ..usual };
    refused(
        attention([&x; 3], &mut out, heads, Options::default(), &tile),
        "8 is no power of two from 16, as the tiles of attention are",
    );
    let mut gradients = [zeros(16), zeros(16), zeros(16)];
    refused(
        attention_backward(
            [&x; 3],
            given(&x, &zeros(2)),
            gradients.each_mut(),
            heads,
            &usual,
        ),
        "8 is no power of two from 16, as the width of attention is",
    );
    let images = Images {
        images: 1,
        inputs: 1,
        outputs: 1,
        extents: [4, 4],
        window: [2, 3],
    };
    let (x, mut out) = (zeros::<f32>(16), zeros::<f32>(16));
    refused(
        conv2d(&x, &zeros(6), &mut out, images, &usual),
        "a window of 2 x 3, expected odd extents",
    );
    let affine = Affine {
        weight: &zeros(4),
        bias: &zeros(4),
    };
    refused(
        group_norm(&x, affine, &mut out, (3, 0.0), [1, 4, 4], &usual),
        "4 channels in 3 groups",
    );
    refused(
        grouped_matmul([&x; 2], &zeros(0), &mut out, [4, 4, 4], &usual),
        "the groups have no starts",
    );
}

#[test]
fn scaled_blocks_are_checked() {
    let usual = Setting::default();
    refused(
        block_scaled_matmul(
            [&zeros::<f16>(1 << 14); 2],
            [&zeros(128), &zeros(1)],
            &mut zeros::<f32>(1 << 14),
            [128; 3],
            &usual,
        ),
        "floats of 8 bits",
    );
    refused(
        block_scaled_matmul(
            [&zeros::<F8E4M3>(1 << 16); 2],
            [&zeros(512), &zeros(4)],
            &mut zeros::<f32>(1 << 16),
            [256; 3],
            &Setting {
                width: 256,
                ..usual
            },
        ),
        "tiles of at most 128 columns, which share a scale",
    );
}

#[test]
fn rows_and_tiles_are_checked() {
    let usual = Setting::default();
    refused(
        histogram(&zeros(8), &mut zeros(3), &usual),
        "3 bins are no power of two",
    );
    let (x, mut out) = (zeros::<f32>(4097), zeros::<f32>(4097));
    let inputs = Inputs {
        x: &x,
        weight: &zeros(1),
        gradient: &x,
        means: &x,
        scales: &x,
    };
    let gradients = Gradients {
        x: &mut out,
        weight: &mut zeros(1),
        bias: &mut zeros(1),
    };
    refused(
        layer_norm_backward(inputs, gradients, [4097, 1], &tiles(1, 0)),
        "4097 rows are more than 4096 tiles of 1",
    );
    refused(
        mean(&x, &mut zeros(1), [1, 4097, 1], &tiles(1, 0)),
        "4097 elements are more than 256 tiles of 1",
    );
    refused(
        sort(&zeros::<f32>(12), &mut zeros(12), [1, 12], &usual),
        "rows of 12 elements are no power of two",
    );
    let mut parts = zeros(sum::column_parts([4097, 1]));
    refused(
        sum_columns(&x, &mut parts, &mut zeros(1), [4097, 1], &tiles(3, 0)),
        "tiles of 3 rows do not divide ",
    );
    let mut parts = zeros(sum::all_parts(4097));
    refused(
        sum_all(&x, &mut parts, &mut zeros(1), &tiles(0, 3000)),
        "parts of 3000 elements are no powers of two from ",
    );
    refused(
        cross_entropy(
            &zeros::<f32>(0),
            &zeros(0),
            &mut zeros(0),
            [0, 1 << 31],
            &usual,
        ),
        "extent 2147483648 is over 2147483647",
    );
}

#[test]
fn choices_are_among_what_is_there() {
    let usual = Setting::default();
    let scores = zeros::<f32>(4);
    let routes = Routes {
        experts: &mut zeros(8),
        shares: &mut zeros(8),
        counts: &mut zeros(4),
    };
    refused(
        routing(&scores, routes, 8, [1, 4], &usual),
        "8 chosen of 4 experts",
    );
    let draw = Draw {
        best: 4,
        heat: 1.0,
        share: 1.0,
        seed: 0,
    };
    let sample = |draw| sampling(&scores, &mut zeros(1), draw, [1, 4], &usual);
    sample(draw).expect("is launched");
    refused(sample(Draw { best: 8, ..draw }), "the best 8 of 4 columns");
    refused(
        sample(Draw { share: 0.0, ..draw }),
        "a share of 0 and a heat of 1",
    );
}

#[test]
fn numbers_that_do_not_fit_are_told() {
    let (usual, device) = (Setting::default(), Device::cpu());
    let on = |numbers: &[i32]| Buffer::from_slice(&device, numbers).expect("fits");
    let floats = |len| Buffer::<f32>::zeros(&device, len).expect("fits");
    told(
        cross_entropy(&floats(4), &on(&[4]), &mut floats(1), [1, 4], &usual),
        "a class has a column",
        &device,
    );
    let pages = Pages {
        sequences: 1,
        heads: 1,
        width: 16,
        page: 16,
        pages: 1,
    };
    let (query, table) = (floats(16), on(&[0]));
    let shape = Heads {
        queries: 1,
        keys: 16,
        ..Heads::new(1, 1, 16, true)
    };
    let keys = Buffer::<bf16>::zeros(&device, 256).expect("fits");
    let mut out = Buffer::<bf16>::zeros(&device, 16).expect("fits");
    let lengths = on(&[17]);
    let options = Options {
        keys: Keys::Lengths(&lengths),
        ..Options::default()
    };
    let one = Buffer::<bf16>::zeros(&device, 16).expect("fits");
    told(
        attention([&one, &keys, &keys], &mut out, shape, options, &usual),
        "a length is from 0 to the keys that there may be",
        &device,
    );
    let mut caches = [floats(256), floats(256)];
    told(
        paged_append(
            [&query; 2],
            caches.each_mut(),
            [&table, &on(&[16])],
            pages,
            &usual,
        ),
        "the pages have room for a token",
        &device,
    );
    told(
        embedding_backward(&floats(2), &on(&[4]), &mut floats(8), [4, 2], &usual),
        "an index is that of a row",
        &device,
    );
}

#[test]
fn parts_that_do_not_fit_a_tile_are_told() {
    let device = Device::cpu();
    let few = merge_parts::<f32>().d(16).parts(4).whole(true);
    let of_parts = zeros::<f32>(8);
    let one_each = || of_parts.view([8, 1]).expect("fits");
    let totals = zeros::<f32>(8 * 16);
    let totals = totals.view([8, 1, 16]).expect("fits");
    let mut merged = zeros::<f32>(16);
    let merged = merged.view_mut([1, 16]).expect("fits");
    told(
        few.launch(
            &device,
            (),
            (
                totals,
                one_each(),
                one_each(),
                merged,
                Optional(None::<TensorViewMut<f32, 1>>),
            ),
        ),
        "a tile of all parts has as many as there are",
        &device,
    );
}
