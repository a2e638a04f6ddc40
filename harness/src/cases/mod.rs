//! Kernels with their inputs: what the demonstration runs, those of `exactile-kernels` and a few of its own.

mod attention;
mod compound;
mod elementwise;
mod orders;
mod products;
pub mod ready;
mod rows;
pub mod subjects;
mod sums;

use exactile::{bf16, f16};
use exactile_kernels::activation::Activation;

use crate::demo::Case;

/// What the demonstration runs; `quick` takes small inputs.
pub fn cases(quick: bool) -> Vec<Case> {
    let n = if quick { 100_003 } else { 1 << 24 };
    let mut cases = vec![
        elementwise::vector_add::<f32>(n),
        elementwise::vector_add::<f16>(n),
        elementwise::vector_add::<bf16>(n),
    ];
    cases.extend(if quick { small() } else { large() });
    cases
}

fn small() -> Vec<Case> {
    vec![
        rows::softmax::<f32>(123, 781),
        rows::softmax::<f16>(61, 1000),
        rows::softmax::<bf16>(61, 1000),
        rows::softmax_loop::<f32>(123, 781),
        sums::mean::<f32>(13, 1001, 16),
        sums::mean::<bf16>(7, 300, 33),
        rows::layer_norm::<f32>(57, 1000),
        rows::layer_norm::<f16>(19, 768),
        rows::layer_norm_loop::<f16>(57, 768),
        rows::rope_by_table::<bf16>([2, 5, 3, 64]),
        sums::rows::<f32>(37, 1000),
        sums::rows::<bf16>(9, 300),
        sums::columns::<f32>(5000, 70),
        sums::all::<f32>(100_003),
        rows::cumsum::<f32>(123, 781),
        rows::cumsum::<f16>(61, 1000),
        rows::cumsum::<bf16>(61, 1000),
        elementwise::matmul::<f32>(100, 70, 50),
        elementwise::swiglu::<f32>(10_007),
        elementwise::swiglu::<bf16>(10_007),
        elementwise::activation::<bf16>(Activation::Sigmoid, 10_007),
        elementwise::activation::<f32>(Activation::Silu, 10_007),
        elementwise::activation::<f16>(Activation::Tanh, 10_007),
        elementwise::activation::<f32>(Activation::Gelu, 10_007),
        elementwise::activation::<bf16>(Activation::GeluTanh, 10_007),
        elementwise::activation::<f32>(Activation::Softplus, 10_007),
        orders::sort::<f32>(21, 1024),
        orders::sort::<f16>(10, 256),
        orders::topk::<f32>(21, 1024),
        orders::topk::<bf16>(10, 256),
        orders::topk_indices::<f32>(21, 1024),
        elementwise::histogram(256, 100_003),
        elementwise::histogram(2, 65_536),
        rows::gather::<f32>(57, 1000),
        rows::gather::<bf16>(19, 32),
        compound::flash_attention(100),
        compound::conv2d([2, 9, 7, 5, 33]),
        compound::bitonic(3, 1024),
    ]
}

fn large() -> Vec<Case> {
    vec![
        rows::softmax::<f32>(4096, 4096),
        rows::softmax::<f32>(1823, 781),
        rows::softmax::<f16>(4096, 5000),
        rows::softmax::<bf16>(4096, 5000),
        rows::softmax_loop::<f32>(4096, 4096),
        sums::mean::<f32>(2048, 4096, 16),
        sums::mean::<f32>(64, 4096, 64),
        rows::layer_norm::<f32>(4096, 3000),
        rows::layer_norm::<bf16>(4096, 4096),
        rows::layer_norm_loop::<bf16>(4096, 4096),
        sums::rows::<f32>(8192, 8192),
        sums::columns::<f32>(8192, 8192),
        sums::all::<f32>(1 << 26),
        rows::cumsum::<f32>(4096, 8192),
        rows::cumsum::<f32>(4096, 3000),
        rows::cumsum::<bf16>(4096, 4096),
        elementwise::swiglu::<bf16>(1 << 24),
        elementwise::activation::<f32>(Activation::GeluTanh, 1 << 24),
        elementwise::matmul::<f32>(1000, 700, 500),
        elementwise::matmul::<f32>(1024, 1024, 1024),
        orders::sort::<f32>(16384, 1024),
        orders::sort::<f16>(16384, 1024),
        orders::topk::<f32>(16384, 1024),
        orders::topk_indices::<f32>(16384, 1024),
        elementwise::histogram(256, 1 << 28),
        elementwise::histogram(4096, 1 << 26),
        rows::gather::<f32>(16384, 1024),
        rows::gather::<f32>(4096, 4096),
        compound::flash_attention(4096),
        compound::conv2d([8, 56, 56, 64, 64]),
        compound::bitonic(16384, 1024),
    ]
}

/// A kernel under the levels of determinism.
pub struct Levelled {
    /// The kernel with some rows.
    pub whole: Case,
    /// The same with the first of them alone.
    pub part: Option<Case>,
    /// Whether it has a loop whose loads run ahead.
    pub has_stages: bool,
    /// Whether its bits follow which program comes first, so that no run says anything of another.
    pub is_open: bool,
}

/// The kernels that are run under every level: small, since interpreters run them.
pub fn of_levels() -> Vec<Levelled> {
    let list = [
        (
            elementwise::vector_add::<f32>(1007),
            Some(elementwise::vector_add::<f32>(7)),
        ),
        (
            elementwise::activation::<f32>(Activation::Gelu, 1007),
            Some(elementwise::activation::<f32>(Activation::Gelu, 7)),
        ),
        (
            rows::softmax::<f32>(5, 300),
            Some(rows::softmax::<f32>(1, 300)),
        ),
        (
            rows::softmax_loop::<f32>(5, 300),
            Some(rows::softmax_loop::<f32>(1, 300)),
        ),
        (
            rows::layer_norm::<f32>(5, 300),
            Some(rows::layer_norm::<f32>(1, 300)),
        ),
        (
            rows::cumsum::<f32>(5, 300),
            Some(rows::cumsum::<f32>(1, 300)),
        ),
        (sums::rows::<f32>(5, 1000), Some(sums::rows::<f32>(1, 1000))),
        (sums::columns::<f32>(500, 70), None),
        (sums::all::<f32>(10_007), None),
        (sums::mean::<f32>(3, 300, 16), None),
        (
            elementwise::matmul::<f32>(40, 30, 50),
            Some(elementwise::matmul::<f32>(1, 30, 50)),
        ),
        (
            orders::sort::<f32>(5, 256),
            Some(orders::sort::<f32>(1, 256)),
        ),
        (elementwise::histogram(256, 10_007), None),
        (compound::flash_attention(100), None),
    ];
    let levelled = |(whole, part): (Case, Option<Case>)| Levelled {
        has_stages: ["softmax_loop", "matmul", "flash_attention", "mean"].contains(&whole.kernel),
        is_open: false,
        whole,
        part,
    };
    list.into_iter().map(levelled).collect()
}

/// What `exactile compile` measures: all small cases, and softmaxes whose tiles are large.
pub fn to_compile() -> Vec<Case> {
    let mut cases = cases(true);
    cases.push(rows::softmax::<f32>(1, 16384));
    cases.push(rows::softmax::<f32>(1, 65536));
    cases
}
