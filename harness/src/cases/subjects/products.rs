//! Products and attention by tensor cores.

use exactile::{Schedule, bf16, f16};
use exactile_kernels as kernels;
use exactile_kernels::Setting;
use exactile_kernels::attention::Shape;

use super::super::{Case, attention, elementwise, products};
use super::Size;
use crate::bench::Subject;

/// How the bytes of a product are counted.
const PRODUCT: &str = "both factors and the product, once each";

fn product(case: Case) -> Subject {
    Subject {
        case,
        formula: PRODUCT,
        candidates: kernels::tensor_matmul::space(),
    }
}

/// Products of 16 and 8 bits, of `f32` and `f64`, fused, in groups and scaled, and attention.
pub(super) fn subjects(size: Size, list: &mut Vec<Subject>) {
    let (all, wide, of_floats): (&[usize], &[usize], &[usize]) = match size {
        Size::Gpu => (
            &[1024, 2048, 4096, 8192, 16384],
            &[4096, 8192],
            &[1024, 4096],
        ),
        Size::Cpu => return,
        Size::Quick => (&[130], &[130], &[130]),
    };
    for &extent in all {
        let case = products::tensor_matmul::<bf16>(extent, extent, extent);
        list.push(product(case));
        // Beyond, the golden run of programs that take tiles in turns takes minutes, and some of them say nothing.
        if extent <= 8192 {
            list.push(product(products::persistent_matmul::<bf16>(extent)));
        }
    }
    for &extent in wide {
        let shape = [extent; 3];
        let cases = [
            products::tensor_matmul::<f16>(extent, extent, extent),
            products::float8_matmul(shape, false),
            products::rows_matmul::<i8, i32>(shape),
            products::scaled_matmul(shape),
            products::rows_matmul::<f32, f32>(shape),
            products::linear_gelu::<bf16>(shape),
        ];
        list.extend(cases.map(product));
        let blocks = [
            products::float8_matmul(shape, true),
            products::block_scaled_matmul(shape),
        ];
        list.extend(blocks.map(|case| Subject {
            candidates: kernels::scaled_matmul::blocks_space(),
            ..product(case)
        }));
    }
    odd_and_grouped(size, list);
    for rows in [16, 64, 128] {
        list.extend(wide.iter().map(|&extent| {
            let case = products::tensor_matmul::<bf16>(rows, extent, extent);
            let kernel = "few_rows";
            Subject {
                candidates: few_rows(),
                ..product(Case { kernel, ..case })
            }
        }));
    }
    attentions(size, list);
    for &extent in of_floats {
        list.extend(exact(extent));
    }
}

/// Products in IEEE arithmetic.
fn exact(extent: usize) -> [Subject; 2] {
    let cases = [
        elementwise::matmul::<f32>(extent, extent, extent),
        elementwise::matmul::<f64>(extent, extent, extent),
    ];
    cases.map(|case| Subject {
        candidates: kernels::matmul::space(),
        ..product(case)
    })
}

/// Extents that no tile and no bulk copy divides, and groups beside one product of as much work.
fn odd_and_grouped(size: Size, list: &mut Vec<Subject>) {
    let ([m, n, k], groups, of_group) = match size {
        Size::Gpu | Size::Cpu => ([4095, 4097, 4099], 64, [512, 2048, 2048]),
        Size::Quick => ([63, 65, 67], 4, [32, 64, 64]),
    };
    let [rows, columns, terms] = of_group;
    let cases = [
        products::tensor_matmul::<bf16>(m, n, k),
        products::grouped_matmul::<bf16>(groups, of_group),
        products::tensor_matmul::<bf16>(groups * rows, columns, terms),
    ];
    list.extend(cases.map(product));
}

/// Heads of queries of which eight share a head of keys.
fn grouped_queries(size: Size) -> Option<Shape> {
    let (heads, tokens, width) = match size {
        Size::Gpu => (64, 4096, 128),
        Size::Cpu => return None,
        Size::Quick => (8, 200, 64),
    };
    Some(Shape {
        key_heads: heads / 8,
        ..Shape::new(heads, tokens, width, true)
    })
}

fn attentions(size: Size, list: &mut Vec<Subject>) {
    let heads: &[([usize; 3], bool)] = match size {
        Size::Gpu => &[
            ([128, 4096, 128], false),
            ([128, 4096, 128], true),
            ([128, 4096, 64], false),
            ([128, 4096, 64], true),
            ([32, 16384, 128], false),
            ([32, 16384, 128], true),
        ],
        Size::Cpu => &[],
        Size::Quick => &[([2, 200, 64], true)],
    };
    let mut shapes: Vec<Shape> = heads
        .iter()
        .map(|&([heads, tokens, width], causal)| Shape::new(heads, tokens, width, causal))
        .collect();
    shapes.extend(grouped_queries(size));
    let forward = shapes.into_iter();
    list.extend(forward.map(|shape| of_attention(attention::tensor_attention(shape), shape)));
    let (heads, tokens, width) = match size {
        Size::Gpu | Size::Cpu => (32, 4096, 128),
        Size::Quick => (2, 200, 64),
    };
    let shape = Shape::new(heads, tokens, width, true);
    list.push(Subject {
        case: attention::attention_backward(shape),
        formula: "queries, keys, values, the output, four gradients and sums, once each",
        candidates: kernels::attention_backward::space(),
    });
    list.extend(packed(size));
    single_queries(size, list);
}

/// Sequences behind each other.
fn packed(size: Size) -> Option<Subject> {
    let (sequences, heads, tokens, width) = match size {
        Size::Gpu => (4, 32, 4096, 128),
        Size::Cpu => return None,
        Size::Quick => (3, 2, 100, 64),
    };
    let shape = Shape {
        sequences,
        tokens_first: true,
        ..Shape::new(heads, tokens, width, true)
    };
    Some(of_attention(attention::packed_attention(shape), shape))
}

/// A query of each head over keys in order, in a cache, and in pages.
fn single_queries(size: Size, list: &mut Vec<Subject>) {
    let few: &[(usize, usize)] = match size {
        Size::Gpu => &[(1, 32768), (64, 32768)],
        Size::Cpu => &[],
        Size::Quick => &[(2, 300)],
    };
    for &(sequences, keys) in few {
        let shape = Shape {
            sequences,
            key_heads: 8,
            queries: 1,
            keys,
            ..Shape::new(64, 1, 128, false)
        };
        let cached = Shape {
            sequences: sequences.min(8),
            ..shape
        };
        let in_pages = Shape {
            tokens_first: true,
            ..cached
        };
        list.push(of_attention(attention::decode_attention(shape), shape));
        list.push(of_attention(
            attention::cached_attention(cached, None),
            cached,
        ));
        let paged = [64, 16].map(|page| attention::cached_attention(in_pages, Some(page)));
        list.extend(paged.map(|case| of_attention(case, in_pages)));
    }
}

fn of_attention(case: Case, shape: Shape) -> Subject {
    Subject {
        case,
        formula: "queries, keys, values and the output, once each",
        candidates: kernels::attention::space(shape),
    }
}

/// The tiles that a product of few rows chooses, in rings of some depths, and those of many rows.
fn few_rows() -> Vec<Setting> {
    let depths = [4, 8].map(|stages| Setting {
        schedule: Schedule::AUTO.stages(stages),
        ..Setting::default()
    });
    let wide = kernels::tensor_matmul::space().into_iter();
    depths
        .into_iter()
        .chain(wide.filter(|it| it.block == 64))
        .collect()
}
