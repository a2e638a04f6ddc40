//! The page of the ready kernels is what their files hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::root;

const INTRODUCTION: &str = "\
# Kernels

Written from the files of `kernels/src` by `BLESS=1 cargo test --test suite kernels::`; do not edit.

What stands ready in the package `exactile-kernels`: each file holds the kernels, a function that launches them on
buffers, what they compute in plain Rust, and the settings that a tuner chooses from. Lines are those of the kernel
that are not blank, from its name to its last brace, and behind a `+` those of the functions of the package that it calls.

| kernel | lines | file |
|---|---|---|
";

const TUTORIALS_INTRODUCTION: &str = "
## Triton's tutorials

The kernels of its tutorials, with those of them here. Lines of Triton are counted alike: from `def`, without blank lines and
comments, the functions that a kernel calls included. `linear` calls the function of all activations, which has 14 of
its lines, and has a bias, which has 4; the tutorial has one activation and no bias.

| tutorial | here | lines | Triton |
|---|---|---|---|
";

const LIBRARIES_INTRODUCTION: &str = "
## Kernels of libraries

The other kernels that have a counterpart in a public package of Triton kernels, counted alike, without docstrings too:
FlagGems 5.0.2 (`flag-gems`), Liger Kernel 0.8.5 (`liger-kernel`), bitsandbytes 0.50.2, SGLang 0.5.23 (`sglang`), torchao
0.18.0 and vLLM 0.33.0, as the Python package index has them, and generative-recommenders at commit 0d456a1. A kernel
there may have options that the one here lacks, and the other way round; what it does is the same, but for the selective
scan, which there does one step of time, and for `sampling`, of which the end of this page speaks.

| kernel | lines | Triton | counted there |
|---|---|---|---|
";

const LIBRARIES_END: &str = "
The gradient of an embedding that has the same bits in every run adds in an order that the numbers fix: `embedding_backward`
has no kernel of its own, it puts the numbers in order, by the row of places, and adds by `segment_sum`, so that with the
order it is 102 lines, and who needs the gradient calls one function. What stands beside it takes numbers that a
library of CUDA has put in order, too, and adds the parts of a number at the seams of its blocks by atomics; PyTorch, where
it is asked for the same bits, sorts by a library of CUDA and adds by kernels in CUDA. We found no kernel of Triton that
adds in a fixed order. One that needs no order at all and adds by atomics as they arrive is 28 lines, FlagGems'
`embedding_backward_kernel`: its bits follow the arrivals, and here it is refused in exact mode.

`sampling` draws a token too, where the kernel beside it leaves only the scores that may be drawn; that one takes rows and
numbers of the best of any length, and here a row is one tile. No counterpart was found of `segment_sum` with weights, which
is `spmm` too.
";

const TUTORIALS_END: &str = "
Not here: block-scaled products of the formats of compute capability 10 (`block_scaled_matmul` above has scales of 128 by 128
numbers). Two tutorials need no kernel of their own: launches that depend on the one before them are `vector_add` with `.early(2)`,
and functions from libraries are in the language. What 06, fused attention, does forward is the plainest form of `attention`, which stands
below beside kernels that have its other forms.
";

/// The tutorials, the kernels that do the same with their files, and the lines of Triton's.
const TUTORIALS: [(&str, &[(&str, &str)], usize); 10] = [
    (
        "01 vector addition",
        &[("kernels/src/vector_add.rs", "vector_add")],
        15,
    ),
    (
        "02 fused softmax",
        &[("kernels/src/softmax.rs", "softmax")],
        16,
    ),
    (
        "03 matrix multiplication",
        &[("kernels/src/tensor_matmul.rs", "tensor_matmul")],
        47,
    ),
    (
        "03 with an activation",
        &[("kernels/src/linear.rs", "linear")],
        49,
    ),
    (
        "04 low-memory dropout",
        &[("kernels/src/dropout.rs", "dropout")],
        17,
    ),
    (
        "05 layer normalisation",
        &[("kernels/src/layer_norm.rs", "layer_norm")],
        41,
    ),
    (
        "05 its gradients",
        &[
            ("kernels/src/layer_norm_backward.rs", "layer_norm_rows"),
            ("kernels/src/layer_norm_backward.rs", "layer_norm_columns"),
        ],
        71,
    ),
    (
        "06 its gradients",
        &[
            ("kernels/src/attention_backward.rs", "attention_deltas"),
            ("kernels/src/attention_backward.rs", "attention_queries"),
            ("kernels/src/attention_backward.rs", "attention_keys"),
        ],
        182,
    ),
    (
        "08 grouped matrix products",
        &[("kernels/src/grouped_matmul.rs", "grouped_matmul")],
        53,
    ),
    (
        "09 persistent matrix product",
        &[("kernels/src/persistent_matmul.rs", "persistent_matmul")],
        55,
    ),
];

/// A row of a table of libraries: the kernels that do one thing, with their files, the lines of Triton's, and where those
/// are.
type Beside = (
    &'static str,
    &'static [(&'static str, &'static str)],
    usize,
    &'static str,
);

const LIBRARIES: &[Beside] = &[
    (
        "residual and RMSNorm",
        &[("rms_norm", "add_rms_norm")],
        32,
        "FlagGems, `fused/fused_add_rms_norm.py`: `fused_add_rms_norm_kernel`",
    ),
    (
        "RoPE in place",
        &[("rope", "rope")],
        72,
        "Liger Kernel, `ops/rope.py`: `_triton_rope`, of queries and keys by a table of cosines and sines",
    ),
    (
        "RoPE by a table",
        &[("rope", "rope_by_table")],
        75,
        "FlagGems, `fused/rotary_embedding.py`: `apply_rotary_pos_emb_kernel`, of queries and keys",
    ),
    (
        "SwiGLU",
        &[("activation", "swiglu")],
        15,
        "Liger Kernel, `ops/swiglu.py`: `_swiglu_forward_kernel`",
    ),
    (
        "its gradients",
        &[("activation", "swiglu_backward")],
        18,
        "Liger Kernel, `ops/swiglu.py`: `_swiglu_backward_kernel`",
    ),
    (
        "cross entropy",
        &[("cross_entropy", "cross_entropy")],
        45,
        "FlagGems, `fused/cross_entropy_loss.py`: `celoss_indices_kernel`",
    ),
    (
        "log softmax",
        &[("log_softmax", "log_softmax")],
        35,
        "FlagGems, `ops/log_softmax.py`: `log_softmax_kernel`",
    ),
    (
        "group norm",
        &[("group_norm", "group_norm")],
        46,
        "FlagGems, `ops/groupnorm.py`: `group_norm_kernel`",
    ),
    (
        "batch norm",
        &[
            ("group_norm", "batch_moments"),
            ("group_norm", "batch_norm"),
        ],
        108,
        "FlagGems, `ops/batch_norm.py`: `batch_norm_forward_kernel`",
    ),
    (
        "convolution of images",
        &[("conv2d", "conv2d")],
        115,
        "FlagGems, `ops/conv2d.py`: `conv2d_forward_kernel`",
    ),
    (
        "quantisation of blocks",
        &[("quantise", "quantise")],
        30,
        "FlagGems, `ops/per_token_group_quant_fp8.py`: `_per_token_group_quant_fp8`",
    ),
    (
        "product of bytes with scales",
        &[("scaled_matmul", "scaled_matmul")],
        61,
        "torchao, `prototype/quantized_training/int8_mm.py`: `_scaled_int8_mm_kernel`",
    ),
    (
        "product of 8-bit floats",
        &[("scaled_matmul", "float8_matmul")],
        82,
        "SGLang, `kernels/ops/gemm/fp8_kernel.py`: `scaled_mm_kernel`",
    ),
    (
        "product of 8-bit floats with scales of blocks",
        &[("scaled_matmul", "block_scaled_matmul")],
        64,
        "FlagGems, `ops/fp8_matmul.py`: `_fp8_matmul_kernel`",
    ),
    (
        "new keys and values in pages",
        &[("paged", "append")],
        38,
        "FlagGems, `fused/reshape_and_cache_flash.py`: `reshape_and_cache_flash_kernel`",
    ),
    (
        "embedding",
        &[("embedding", "embedding")],
        16,
        "FlagGems, `ops/embedding.py`: `embedding_kernel`",
    ),
    (
        "places of numbers in their order",
        &[
            ("places", "count_digits"),
            ("places", "add_counts"),
            ("places", "order_digits"),
        ],
        150,
        "FlagGems, `ops/sort.py`: `compute_global_hist_kernel` and `sweep`",
    ),
    (
        "gradients of an embedding, by places in order",
        &[("places", "starts"), ("segment_sum", "segment_sum")],
        49,
        "generative-recommenders, `ops/triton/triton_position.py`: `_add_embeddings_bwd_kernel`",
    ),
    (
        "experts of tokens",
        &[("routing", "routing")],
        50,
        "FlagGems, `fused/topk_softmax.py`: `topk_gating_softmax_kernel`",
    ),
    (
        "tokens among the best and likeliest",
        &[("sampling", "sampling")],
        619,
        "vLLM, `v1/sample/ops/topk_topp_triton.py`: `_topk_topp_kernel`",
    ),
    (
        "product with an addend",
        &[("addmm", "addmm")],
        53,
        "FlagGems, `ops/addmm.py`: `addmm_kernel`",
    ),
    (
        "a step of AdamW",
        &[("adamw", "adamw")],
        67,
        "bitsandbytes, `backends/triton/kernels_optim.py`: `_optimizer_update_2state_32bit_triton_kernel`",
    ),
    (
        "attention, of many queries and by parts of the keys",
        &[
            ("attention", "attention"),
            ("attention_merge", "merge_parts"),
        ],
        746,
        "SGLang, `kernels/ops/attention/decode_attention.py`: `_fwd_grouped_kernel_stage1`, `_fwd_kernel_stage2` and `tanh`; `extend_attention.py`: `_fwd_kernel`",
    ),
    (
        "selective scan",
        &[("selective_scan", "selective_scan")],
        253,
        "SGLang, `kernels/ops/mamba/triton_ops/mamba_ssm.py`: `_selective_scan_update_kernel`",
    ),
    (
        "batch of products",
        &[("bmm", "bmm")],
        91,
        "FlagGems, `ops/bmm.py`: `bmm_kernel`",
    ),
];

/// A kernel, or a function that kernels call.
struct Function {
    kernel: bool,
    lines: usize,
    calls: BTreeSet<String>,
}

/// The functions of a file that are traced.
struct Functions<'a> {
    lines: Vec<&'a str>,
    found: BTreeMap<String, Function>,
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        let marked = |by: &str| item.attrs.iter().any(|it| it.path().is_ident(by));
        let kernel = marked("kernel");
        if kernel || marked("device") {
            let (first, last) = (item.sig.span().start().line, item.block.span().end().line);
            let lines = self.lines[first - 1..last].iter();
            let mut calls = Calls::default();
            calls.visit_block(&item.block);
            let function = Function {
                kernel,
                lines: lines.filter(|line| !line.trim().is_empty()).count(),
                calls: calls.0,
            };
            self.found.insert(item.sig.ident.to_string(), function);
        }
    }
}

/// The names of what a function calls.
#[derive(Default)]
struct Calls(BTreeSet<String>);

impl<'a> Visit<'a> for Calls {
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func
            && let Some(segment) = path.path.segments.last()
        {
            self.0.insert(segment.ident.to_string());
        }
        visit::visit_expr_call(self, call);
    }
}

fn functions(path: &Path) -> BTreeMap<String, Function> {
    let text = fs::read_to_string(path).expect("is read");
    let mut functions = Functions {
        lines: text.lines().collect(),
        found: BTreeMap::new(),
    };
    functions.visit_file(&syn::parse_file(&text).expect("is Rust"));
    functions.found
}

/// The functions of the package by file, as `kernels/src/sum.rs`.
fn files() -> BTreeMap<String, BTreeMap<String, Function>> {
    let folder = fs::read_dir(root().join("kernels/src")).expect("is a folder");
    let files = folder.map(|file| {
        let path = file.expect("is read").path();
        let name = path.file_name().expect("has a name").to_string_lossy();
        (format!("kernels/src/{name}"), functions(&path))
    });
    files.collect()
}

type Files = BTreeMap<String, BTreeMap<String, Function>>;

/// The lines of all functions that one calls, and that those call: of its own file, or of the package.
fn called_lines(files: &Files, file: &str, of: &Function) -> usize {
    let mut pending: Vec<(&str, &Function)> = vec![(file, of)];
    let mut seen = BTreeSet::new();
    let mut lines = 0;
    while let Some((file, function)) = pending.pop() {
        for name in &function.calls {
            let own = [(file, &files[file])].into_iter();
            let all = own.chain(files.iter().map(|(file, found)| (file.as_str(), found)));
            let mut known = all.filter_map(|(file, found)| Some((file, found.get(name)?)));
            let called = known.find(|(_, function)| !function.kernel);
            if let Some((file, function)) = called
                && seen.insert((file, name))
            {
                lines += function.lines;
                pending.push((file, function));
            }
        }
    }
    lines
}

fn page() -> String {
    let files = files();
    let mut rows = Vec::new();
    for (file, found) in &files {
        let Some(short) = file.strip_prefix("kernels/src/") else {
            continue;
        };
        for (name, function) in found.iter().filter(|(_, function)| function.kernel) {
            let lines = match called_lines(&files, file, function) {
                0 => function.lines.to_string(),
                called => format!("{} + {called}", function.lines),
            };
            rows.push(format!("| `{name}` | {lines} | [{short}](../{file}) |"));
        }
    }
    rows.sort();
    let mut page = INTRODUCTION.to_string() + &rows.join("\n") + "\n" + TUTORIALS_INTRODUCTION;
    for (tutorial, kernels, triton) in TUTORIALS {
        let (names, lines) = together(&files, kernels);
        assert!(
            lines <= triton,
            "{tutorial}: {lines} lines, Triton has {triton}"
        );
        let _ = writeln!(page, "| {tutorial} | {names} | {lines} | {triton} |");
    }
    page += TUTORIALS_END;
    page += LIBRARIES_INTRODUCTION;
    for (what, kernels, triton, of) in LIBRARIES {
        let file = |file: &str| format!("kernels/src/{file}.rs");
        let kernels: Vec<_> = kernels.iter().map(|(at, name)| (file(at), *name)).collect();
        let kernels: Vec<_> = kernels
            .iter()
            .map(|(at, name)| (at.as_str(), *name))
            .collect();
        let (names, lines) = together(&files, &kernels);
        assert!(
            lines <= *triton,
            "{what}: {lines} lines, Triton has {triton}"
        );
        let _ = writeln!(page, "| {what}: {names} | {lines} | {triton} | {of} |");
    }
    page + LIBRARIES_END
}

/// Links to kernels, and the lines of all.
fn together(files: &Files, kernels: &[(&str, &str)]) -> (String, usize) {
    let lines = kernels.iter().map(|(file, name)| {
        let function = &files[*file][*name];
        function.lines + called_lines(files, file, function)
    });
    let names: Vec<String> = kernels
        .iter()
        .map(|(file, name)| format!("[`{name}`](../{file})"))
        .collect();
    (names.join(", "), lines.sum())
}

#[test]
fn the_page_of_kernels_is_fresh() {
    let path = root().join("docs/kernels.md");
    let page = page();
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/kernels.md is stale: run `BLESS=1 cargo test --test suite kernels::`"
    );
}
