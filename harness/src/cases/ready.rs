//! The ready kernels with small arrays: what `exactile bench compile` compiles and nobody runs.

use exactile::internals::Job;
use exactile::{Buffer, Device, F8E4M3, Result, Target, bf16};
use exactile_kernels as kernels;
use exactile_kernels::Setting;
use exactile_kernels::activation::Activation;
use exactile_kernels::attention::{Keys, Options, Shape as Heads, Split, parts};
use exactile_kernels::group_norm::Affine;
use exactile_kernels::paged::Shape as Pages;
use exactile_kernels::rope::Pairs;
use exactile_kernels::routing::Routes;
use exactile_kernels::sampling::Draw;
use exactile_kernels::segment_sum::Segments;
use exactile_kernels::{adamw, conv2d, layer_norm_backward, selective_scan};

use super::{Case, attention, cases, elementwise, products, rows};
use crate::compile::recorded;

/// Launches of ready kernels with a setting.
pub struct Ready {
    /// Their name, with the type and the extents where they have several.
    pub name: String,
    /// Launches them.
    pub launch: Box<dyn Fn(&Device, &Setting) -> Result<()>>,
}

impl Ready {
    /// The name of what it launches, without types and extents.
    pub fn kernel(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }

    /// What it would compile for a machine, none of which runs.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn jobs(&self, target: &Target, setting: &Setting) -> Result<Vec<Job>> {
        recorded(target, |device| (self.launch)(device, setting))
    }
}

/// All ready kernels, and what the demonstration has besides.
pub fn ready() -> Vec<Ready> {
    let mut list: Vec<Ready> = cases(true).into_iter().map(of_case).collect();
    let others = [
        rows::softmax::<bf16>(2, 16384),
        rows::softmax::<f32>(2, 16384),
        rows::softmax::<f32>(2, 65536),
        rows::cross_entropy::<bf16>(2, 50257),
        rows::transpose::<f32>(200, 100),
        rows::embedding::<bf16>(300, 1000),
        products::tensor_matmul::<bf16>(512, 512, 512),
        products::float8_matmul([512; 3], false),
        products::float8_matmul([512; 3], true),
        products::rows_matmul::<i8, i32>([512; 3]),
        products::rows_matmul::<f32, f32>([512; 3]),
        elementwise::matmul::<f64>(512, 512, 512),
        attention::tensor_attention(Heads::new(2, 512, 128, true)),
        attention::tensor_attention(Heads::new(2, 512, 128, false)),
        attention::decode_attention(ONE_QUERY),
        attention::cached_attention(ONE_QUERY, None),
        attention::packed_attention(Heads {
            sequences: 2,
            tokens_first: true,
            ..Heads::new(2, 512, 128, true)
        }),
        attention::cached_attention(
            Heads {
                tokens_first: true,
                ..ONE_QUERY
            },
            Some(16),
        ),
    ];
    list.extend(others.into_iter().map(of_case));
    list.extend(scores());
    list.extend(layers());
    list.extend(updates());
    list.extend(models());
    list.extend(products());
    list
}

fn of_case(case: Case) -> Ready {
    let shape: Vec<String> = case.shape.iter().map(ToString::to_string).collect();
    Ready {
        name: format!("{} {} {}", case.kernel, case.dtype.name(), shape.join("x")),
        launch: Box::new(move |device, setting| {
            let first = case.blocks.first().copied().unwrap_or_default();
            let block = match setting.block {
                0 => first,
                block => block,
            };
            (case.setup)(device)?.launch(&Setting { block, ..*setting })
        }),
    }
}

fn named(name: &str, launch: impl Fn(&Device, &Setting) -> Result<()> + 'static) -> Ready {
    Ready {
        name: name.to_string(),
        launch: Box::new(launch),
    }
}

fn zeros<T: exactile::Number>(device: &Device, len: usize) -> Result<Buffer<T>> {
    Buffer::zeros(device, len)
}

fn floats(device: &Device, len: usize) -> Result<Buffer<f32>> {
    zeros(device, len)
}

fn halves(device: &Device, len: usize) -> Result<Buffer<bf16>> {
    zeros(device, len)
}

fn indices(device: &Device, len: usize) -> Result<Buffer<i32>> {
    zeros(device, len)
}

fn scores() -> Vec<Ready> {
    const SHAPE: [usize; 2] = [3, 5000];
    vec![
        named("log_softmax bf16", |device, setting| {
            let (x, mut out) = (halves(device, 15_000)?, halves(device, 15_000)?);
            kernels::log_softmax(&x, &mut out, SHAPE, setting)
        }),
        named("sampling f32", |device, setting| {
            let (x, mut tokens) = (floats(device, 15_000)?, indices(device, 3)?);
            let draw = Draw {
                best: 16,
                heat: 0.7,
                share: 0.9,
                seed: 5,
            };
            kernels::sampling(&x, &mut tokens, draw, SHAPE, setting)
        }),
        named("routing f32", |device, setting| {
            let routes = Routes {
                experts: &mut indices(device, 2000)?,
                shares: &mut floats(device, 2000)?,
                counts: &mut indices(device, 64)?,
            };
            kernels::routing(&floats(device, 64_000)?, routes, 2, [1000, 64], setting)
        }),
        named("dropout bf16", |device, setting| {
            let (x, mut out) = (halves(device, 9000)?, halves(device, 9000)?);
            kernels::dropout(&x, &mut out, 0.25, 42, setting)
        }),
        named("swiglu_backward bf16", |device, setting| {
            let x = halves(device, 9000)?;
            let (mut gates, mut values) = (halves(device, 9000)?, halves(device, 9000)?);
            kernels::swiglu_backward([&x, &x, &x], [&mut gates, &mut values], setting)
        }),
    ]
}

fn layers() -> Vec<Ready> {
    const SHAPE: [usize; 2] = [100, 1024];
    const LEN: usize = 102_400;
    vec![
        named("add_rms_norm bf16", |device, setting| {
            let (x, weight) = (halves(device, LEN)?, halves(device, 1024)?);
            let (mut kept, mut out) = (halves(device, LEN)?, halves(device, LEN)?);
            kernels::add_rms_norm(&x, &mut kept, &weight, &mut out, 1e-5, SHAPE, setting)
        }),
        named("layer_norm_backward bf16", |device, setting| {
            let inputs = layer_norm_backward::Inputs {
                x: &halves(device, LEN)?,
                weight: &halves(device, 1024)?,
                gradient: &halves(device, LEN)?,
                means: &floats(device, 100)?,
                scales: &floats(device, 100)?,
            };
            let gradients = layer_norm_backward::Gradients {
                x: &mut halves(device, LEN)?,
                weight: &mut halves(device, 1024)?,
                bias: &mut halves(device, 1024)?,
            };
            kernels::layer_norm_backward(inputs, gradients, SHAPE, setting)
        }),
        named("group_norm bf16", |device, setting| {
            let weight = &halves(device, 64)?;
            let affine = Affine {
                weight,
                bias: weight,
            };
            let (x, mut out) = (halves(device, 64 * 1600)?, halves(device, 64 * 1600)?);
            kernels::group_norm(&x, affine, &mut out, (8, 1e-5), [1, 64, 1600], setting)
        }),
        named("batch_norm bf16", |device, setting| {
            let (x, weight) = (halves(device, LEN)?, &halves(device, 1024)?);
            let mut moments = [floats(device, 1024)?, floats(device, 1024)?];
            let [means, variances] = &mut moments;
            kernels::batch_moments(&x, means, variances, SHAPE, setting)?;
            let affine = Affine {
                weight,
                bias: weight,
            };
            let mut out = halves(device, LEN)?;
            let moments = moments.each_ref();
            kernels::batch_norm(&x, moments, affine, &mut out, (SHAPE, 1e-5), setting)
        }),
    ]
}

fn updates() -> Vec<Ready> {
    const LEN: usize = 102_400;
    vec![
        named("adamw bf16", |device, setting| {
            let state = adamw::State {
                means: &mut floats(device, LEN)?,
                squares: &mut floats(device, LEN)?,
                greatest: Some(&mut floats(device, LEN)?),
                overflow: None,
            };
            let step = adamw::Step {
                rate: 0.01,
                keep_mean: 0.9,
                keep_square: 0.99,
                epsilon: 1e-8,
                decay: 0.1,
                unscale: 0.5,
                ascend: true,
                count: 3,
            };
            let gradients = halves(device, LEN)?;
            kernels::adamw(&mut halves(device, LEN)?, &gradients, state, step, setting)
        }),
        named("quantise bf16", |device, setting| {
            let (x, mut scales) = (halves(device, LEN)?, floats(device, 800)?);
            let mut narrow = zeros::<F8E4M3>(device, LEN)?;
            kernels::quantise(&x, &mut narrow, &mut scales, [800, 128], setting)?;
            kernels::dequantise(
                &narrow,
                &scales,
                &mut halves(device, LEN)?,
                [800, 128],
                setting,
            )
        }),
        named("conv2d bf16", |device, setting| {
            let shape = conv2d::Shape {
                images: 2,
                inputs: 64,
                outputs: 64,
                extents: [28, 28],
                window: [3, 3],
            };
            let len = 2 * 64 * 28 * 28;
            let (x, weights) = (halves(device, len)?, halves(device, 64 * 64 * 9)?);
            kernels::conv2d(&x, &weights, &mut halves(device, len)?, shape, setting)
        }),
    ]
}

/// Heads of which eight share keys.
const ONE_QUERY: Heads = Heads {
    key_heads: 8,
    queries: 1,
    keys: 4096,
    ..Heads::new(64, 1, 128, false)
};

/// Attention of a query of each sequence over keys in pages, by parts.
fn over_pages(device: &Device, setting: &Setting) -> Result<()> {
    const OWN: usize = 3 * 4 * 64;
    let (query, pages) = (halves(device, OWN)?, halves(device, 128 * OWN)?);
    let shape = Heads {
        sequences: 3,
        queries: 1,
        keys: 128,
        tokens_first: true,
        ..Heads::new(4, 1, 64, true)
    };
    let mut room = floats(device, parts(shape, 64, OWN))?;
    let options = Options {
        keys: Keys::Pages {
            tables: &indices(device, 24)?,
            lengths: &indices(device, 3)?,
            page: 16,
        },
        split: Some(Split {
            keys: 64,
            parts: &mut room,
        }),
        ..Options::default()
    };
    let mut out = halves(device, OWN)?;
    kernels::attention([&query, &pages, &pages], &mut out, shape, options, setting)
}

fn models() -> Vec<Ready> {
    const PAGES: Pages = Pages {
        sequences: 3,
        heads: 4,
        width: 64,
        page: 16,
        pages: 8,
    };
    const OWN: usize = 3 * 4 * 64;
    vec![
        named("rope bf16", |device, setting| {
            let (mut x, places) = (halves(device, 32 * OWN)?, indices(device, 96)?);
            kernels::rope(&mut x, &places, 1e4, Pairs::Halves, [96, 4, 64], setting)
        }),
        named("paged_append bf16", |device, setting| {
            let new = halves(device, OWN)?;
            let mut pages = [halves(device, 128 * OWN)?, halves(device, 128 * OWN)?];
            let [keys, values] = &mut pages;
            let places = [&indices(device, 24)?, &indices(device, 3)?];
            kernels::paged_append([&new, &new], [keys, values], places, PAGES, setting)
        }),
        named("attention over pages bf16", over_pages),
        named("selective_scan f32", |device, setting| {
            let (len, states) = (2 * 512 * 64, 16);
            let b = floats(device, 2 * 512 * states)?;
            let inputs = selective_scan::Inputs {
                x: &floats(device, len)?,
                deltas: &floats(device, len)?,
                a: &floats(device, 64 * states)?,
                b: &b,
                c: &b,
            };
            let mut out = floats(device, len)?;
            kernels::selective_scan(inputs, &mut out, states, [2, 512, 64], setting)
        }),
        named("segment_sum bf16", |device, setting| {
            let segments = Segments {
                starts: &indices(device, 101)?,
                members: &indices(device, 1000)?,
                weights: Some(&halves(device, 1000)?),
            };
            let (x, mut out) = (halves(device, 512_000)?, halves(device, 51_200)?);
            kernels::segment_sum(&x, segments, &mut out, 512, setting)
        }),
        named("embedding_backward f32", |device, setting| {
            let (gradients, places) = (floats(device, 512_000)?, indices(device, 1000)?);
            let mut out = floats(device, 358_400)?;
            kernels::embedding_backward(&gradients, &places, &mut out, [700, 512], setting)
        }),
    ]
}

fn products() -> Vec<Ready> {
    const SHAPE: [usize; 3] = [512, 512, 512];
    const LEN: usize = 512 * 512;
    vec![
        named("linear bf16", |device, setting| {
            // So many that programs may take tiles in turns.
            let shape @ [m, n, k] = [2048, 2048, 512];
            let (x, bias) = (halves(device, m * k)?, halves(device, n)?);
            let activation = Some(Activation::Gelu);
            let mut out = halves(device, m * n)?;
            kernels::linear([&x, &x], Some(&bias), activation, &mut out, shape, setting)
        }),
        named("addmm bf16", |device, setting| {
            let x = halves(device, LEN)?;
            let mut out = halves(device, LEN)?;
            kernels::addmm([&x, &x], Some(&x), [0.5, 2.0], &mut out, SHAPE, setting)
        }),
        named("bmm bf16", |device, setting| {
            let x = halves(device, 4 * LEN)?;
            kernels::bmm(
                [&x, &x],
                &mut halves(device, 4 * LEN)?,
                [4, 512, 512, 512],
                setting,
            )
        }),
        named("persistent_matmul bf16", |device, setting| {
            let x = halves(device, LEN)?;
            kernels::persistent_matmul([&x, &x], &mut halves(device, LEN)?, SHAPE, setting)
        }),
        named("grouped_matmul bf16", |device, setting| {
            let (x, weights) = (halves(device, LEN)?, halves(device, 4 * LEN)?);
            let (starts, mut out) = (indices(device, 5)?, halves(device, LEN)?);
            kernels::grouped_matmul([&x, &weights], &starts, &mut out, SHAPE, setting)
        }),
        named("scaled_matmul bf16", |device, setting| {
            let (x, scales) = (zeros::<i8>(device, LEN)?, floats(device, 512)?);
            let mut out = halves(device, LEN)?;
            kernels::scaled_matmul([&x, &x], [&scales, &scales], &mut out, SHAPE, setting)
        }),
        named("block_scaled_matmul bf16", |device, setting| {
            let x = zeros::<F8E4M3>(device, LEN)?;
            let scales = [&floats(device, 512 * 4)?, &floats(device, 4 * 4)?];
            let mut out = halves(device, LEN)?;
            kernels::block_scaled_matmul([&x, &x], scales, &mut out, SHAPE, setting)
        }),
    ]
}
