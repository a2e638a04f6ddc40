//! The kernels among the corpus: those of `exactile-kernels`, as small as still has every move.

use exactile::{Kernel, bf16};
use exactile_core::ir::Grid;
use exactile_kernels as kernels;

use crate::testing::filetests::{Ready, ready_kernel};

const WARPS: &[u32] = &[1, 4];

/// Every kernel with arguments.
pub(super) fn kernels() -> Vec<Ready> {
    [rows(), orders(), sums(), products()].concat()
}

/// A kernel for some numbers of warps, with arguments as a filetest states them.
fn kernel<P>(kernel: &Kernel<P>, warps: &[u32], stated: &str, grid: Grid) -> Ready {
    let func = kernel
        .trace()
        .expect("broken invariant: the kernels can be traced");
    let text = func.to_string();
    ready_kernel(func, warps, stated, grid)
        .unwrap_or_else(|message| panic!("broken invariant: {message} in\n{text}"))
}

fn rows() -> Vec<Ready> {
    use kernels::{cumsum, gather, layer_norm, softmax};
    vec![
        kernel(
            &softmax::softmax::<f32>().block(256),
            WARPS,
            "x=random(400, 1), out=zeros(400), columns=200",
            [2, 1, 1],
        ),
        kernel(
            &softmax::softmax_loop::<f32>().block(256),
            WARPS,
            "x=random(1000, 1), out=zeros(1000), rows=5, columns=200",
            [1, 1, 1],
        ),
        kernel(
            &layer_norm::layer_norm_loop::<bf16>().block(256),
            WARPS,
            "x=random(1000, 1), weight=random(200, 2), bias=random(200, 3), out=zeros(1000), means=zeros(5), \
             scales=zeros(5), rows=5, columns=200, epsilon=0.5",
            [1, 1, 1],
        ),
        kernel(
            &cumsum::cumsum::<f32>().block(256),
            WARPS,
            "x=random(400, 1), out=zeros(400), columns=200",
            [2, 1, 1],
        ),
        kernel(
            &gather::gather_rows::<f32>().block(256),
            WARPS,
            "x=random(256, 1), index=random(256, 2), out=zeros(256), columns=256",
            [1, 1, 1],
        ),
    ]
}

/// What a tensor of two axes is to a launch, of `elements`, after its name.
fn tensor(name: &str, elements: &str, [rows, columns]: [usize; 2]) -> String {
    format!(
        "{name}={elements}, {name}_extent0={rows}, {name}_extent1={columns}, {name}_stride0={columns}, \
         {name}_stride1=1"
    )
}

fn orders() -> Vec<Ready> {
    use kernels::{histogram, sort, topk};
    let (x, out) = (
        tensor("x", "random(512, 1)", [4, 128]),
        tensor("out", "zeros(512)", [4, 128]),
    );
    let first = tensor("out", "zeros(32)", [4, 8]);
    let indices = tensor("indices", "zeros(32)", [4, 8]);
    vec![
        kernel(
            &sort::sort::<f32>().columns(128),
            WARPS,
            &format!("{x}, {out}"),
            [1, 1, 1],
        ),
        kernel(
            &topk::topk_indices::<f32>().columns(128).k(8),
            WARPS,
            &format!("{x}, {first}, {indices}"),
            [1, 1, 1],
        ),
        kernel(
            &histogram::count().bins(64).block(256),
            WARPS,
            "x=edges(1000, 3), out=zeros(64), n=1000",
            [2, 1, 1],
        ),
    ]
}

fn sums() -> Vec<Ready> {
    use kernels::sum;
    let x = tensor("x", "random(1200, 1)", [3, 400]);
    vec![kernel(
        &sum::sum_rows::<f32>().block(128).tiles(4),
        WARPS,
        &format!("{x}, out=zeros(3), out_extent0=3, out_stride0=1"),
        [3, 1, 1],
    )]
}

fn products() -> Vec<Ready> {
    use kernels::{matmul, tensor_matmul};
    let tiles = matmul::matmul::<f32, f32>().bm(16).bn(16).bk(16);
    let tensor_tiles = tensor_matmul::tensor_matmul::<bf16>().bm(64).bn(32).bk(32);
    vec![
        kernel(
            &tiles,
            WARPS,
            "a=random(400, 1), b=random(400, 2), c=zeros(256), m=16, n=16, k=25",
            [1, 1, 1],
        ),
        kernel(
            &tensor_tiles,
            &[4],
            "a=random(12288, 1), b=random(6144, 2), c=zeros(2048), m=64, n=32, k=192",
            [1, 1, 1],
        ),
        // Arrays that end inside of their last tiles.
        kernel(
            &tensor_tiles,
            &[4],
            "a=random(11040, 1), b=random(4416, 2), c=zeros(1440), m=60, n=24, k=184",
            [1, 1, 1],
        ),
    ]
}
