//! What `exactile bench` measures: kernels, inputs, and the settings to choose from.

mod products;

use exactile::bf16;
use exactile_kernels as kernels;
use exactile_kernels::Setting;

use super::{elementwise, orders, rows, sums};
use crate::bench::Subject;

/// Inputs for a GPU, for a CPU, or for a test of the harness.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// What keeps a GPU busy.
    Gpu,
    /// More than the caches of a CPU hold.
    Cpu,
    /// What compiles longer than it runs.
    Quick,
}

/// All subjects of a size, in the order of the report.
pub fn subjects(size: Size) -> Vec<Subject> {
    let mut list = vec![vector_add(size)];
    small_programs(size, &mut list);
    activations(size, &mut list);
    softmaxes(size, &mut list);
    losses(size, &mut list);
    layer_norms(size, &mut list);
    sums_of_layers(size, &mut list);
    reductions(size, &mut list);
    lookups(size, &mut list);
    moves(size, &mut list);
    sorts(size, &mut list);
    products::subjects(size, &mut list);
    with_defaults(list)
}

/// Puts what the kernel and the compiler choose by themselves in front of all candidates.
fn with_defaults(mut list: Vec<Subject>) -> Vec<Subject> {
    for subject in &mut list {
        subject.candidates.insert(0, Setting::default());
    }
    list
}

/// Additions and softmax of rows of 1024, from little to all that a GPU's memory has room for.
pub fn sizes(size: Size) -> Vec<Subject> {
    let powers = match size {
        Size::Gpu => 10..=30,
        Size::Cpu => 10..=26,
        Size::Quick => 10..=12,
    };
    let columns: usize = 1024;
    let softmax = |n: usize| Subject {
        case: rows::softmax::<f32>(n / columns, columns),
        formula: "the input and the output, once each",
        candidates: kernels::softmax::space([n / columns, columns]),
    };
    let numbers: Vec<usize> = powers.step_by(2).map(|power| 1 << power).collect();
    let sums = numbers.iter().map(|&n| addition(n));
    let all = sums.chain(numbers.iter().map(|&n| softmax(n)));
    with_defaults(all.collect())
}

fn vector_add(size: Size) -> Subject {
    addition(match size {
        Size::Gpu => 1 << 28,
        Size::Cpu => 1 << 24,
        Size::Quick => 10_007,
    })
}

fn addition(n: usize) -> Subject {
    Subject {
        case: elementwise::vector_add::<f32>(n),
        formula: "two inputs and the output, once each",
        candidates: kernels::vector_add::space(),
    }
}

/// So little to do for each program that starting them counts.
fn small_programs(size: Size, list: &mut Vec<Subject>) {
    let (n, shape) = match size {
        Size::Gpu => (64_000_000, [8, 4096, 32, 128]),
        Size::Cpu => return,
        Size::Quick => (10_007, [2, 3, 4, 64]),
    };
    list.push(Subject {
        case: elementwise::vector_add_small::<f32>(n),
        formula: "two inputs and the output, once each",
        candidates: kernels::vector_add::small_space(64),
    });
    list.push(Subject {
        case: rows::rope_by_table::<bf16>(shape),
        formula: "the input, the output, cosines and sines, once each",
        candidates: kernels::rope::space(shape[3]),
    });
}

fn activations(size: Size, list: &mut Vec<Subject>) {
    let n = match size {
        Size::Gpu => 1 << 27,
        Size::Cpu => 1 << 24,
        Size::Quick => 10_007,
    };
    let candidates = kernels::activation::space;
    for case in [
        elementwise::swiglu::<bf16>(n),
        elementwise::swiglu::<f32>(n),
    ] {
        list.push(Subject {
            case,
            formula: "two inputs and the output, once each",
            candidates: candidates(),
        });
    }
    for function in kernels::activation::Activation::ALL {
        for case in [
            elementwise::activation::<bf16>(function, n),
            elementwise::activation::<f32>(function, n),
        ] {
            list.push(Subject {
                case,
                formula: "the input and the output, once each",
                candidates: candidates(),
            });
        }
    }
}

fn softmaxes(size: Size, list: &mut Vec<Subject>) {
    let shapes: &[(usize, usize)] = match size {
        Size::Gpu => &[
            (16384, 1024),
            (16384, 4096),
            (8192, 16384),
            (4096, 32768),
            (1000, 1000),
            (16384, 5001),
            (16384, 5120),
            (4096, 50257),
            (4096, 50176),
        ],
        Size::Cpu => &[(4096, 4096)],
        Size::Quick => &[(7, 300)],
    };
    for &(rows, columns) in shapes {
        for case in [
            rows::softmax::<f32>(rows, columns),
            rows::softmax::<bf16>(rows, columns),
        ] {
            list.push(Subject {
                case,
                formula: "the input and the output, once each",
                candidates: kernels::softmax::space([rows, columns]),
            });
        }
    }
}

fn losses(size: Size, list: &mut Vec<Subject>) {
    let shapes: &[(usize, usize)] = match size {
        Size::Gpu => &[(16384, 5001), (16384, 5120), (8192, 50257), (8192, 50176)],
        Size::Cpu => &[],
        Size::Quick => &[(7, 300)],
    };
    for &(rows, columns) in shapes {
        for case in [
            rows::cross_entropy::<bf16>(rows, columns),
            rows::cross_entropy::<f32>(rows, columns),
        ] {
            list.push(Subject {
                case,
                formula: "the scores, the classes and the losses, once each",
                candidates: kernels::cross_entropy::space(),
            });
        }
    }
}

fn layer_norms(size: Size, list: &mut Vec<Subject>) {
    let shapes: &[(usize, usize)] = match size {
        Size::Gpu => &[
            (16384, 4096),
            (16384, 8192),
            (16384, 5001),
            (16384, 5120),
            (4096, 50257),
            (4096, 50176),
        ],
        Size::Cpu => &[(4096, 4096)],
        Size::Quick => &[(7, 300)],
    };
    for &(rows, columns) in shapes {
        for case in [
            rows::layer_norm::<bf16>(rows, columns),
            rows::layer_norm::<f32>(rows, columns),
        ] {
            list.push(Subject {
                case,
                formula: "the input, the output, weight and bias, means and reciprocal deviations, once each",
                candidates: kernels::layer_norm::space([rows, columns]),
            });
        }
    }
}

/// What stands between the layers of a transformer.
fn sums_of_layers(size: Size, list: &mut Vec<Subject>) {
    let (rows, columns) = match size {
        Size::Gpu => (16384, 4096),
        Size::Cpu => return,
        Size::Quick => (7, 300),
    };
    for case in [
        rows::add_rms_norm::<bf16>(rows, columns),
        rows::add_rms_norm::<f32>(rows, columns),
    ] {
        list.push(Subject {
            case,
            formula: "both inputs, their sum, the output and the weight, once each",
            candidates: kernels::rms_norm::space([rows, columns]),
        });
    }
}

fn reductions(size: Size, list: &mut Vec<Subject>) {
    let formula = "the input and the sums, once each";
    let (outer, middle, inner): (usize, usize, usize) = match size {
        Size::Gpu => (2048, 4096, 16),
        Size::Cpu => (64, 4096, 64),
        Size::Quick => (3, 100, 16),
    };
    list.push(Subject {
        case: sums::mean::<f32>(outer, middle, inner),
        formula,
        candidates: kernels::mean::space([outer, middle, inner]),
    });
    let (rows, columns): (usize, usize) = match size {
        Size::Gpu => (65536, 8192),
        Size::Cpu => (4096, 4096),
        Size::Quick => (50, 200),
    };
    list.push(Subject {
        case: sums::all::<f32>(rows * columns),
        formula,
        candidates: kernels::sum::all_space(),
    });
    let odd: &[(usize, usize)] = match size {
        Size::Gpu => &[(16384, 5001), (16384, 5120), (4096, 50257), (4096, 50176)],
        Size::Cpu | Size::Quick => &[],
    };
    for &(rows, columns) in [(rows, columns)].iter().chain(odd) {
        list.push(Subject {
            case: sums::rows::<f32>(rows, columns),
            formula,
            candidates: kernels::sum::rows_space([rows, columns]),
        });
    }
    for &(rows, columns) in odd {
        list.push(Subject {
            case: sums::rows::<bf16>(rows, columns),
            formula,
            candidates: kernels::sum::rows_space([rows, columns]),
        });
    }
    list.push(Subject {
        case: sums::columns::<f32>(rows, columns),
        formula,
        candidates: kernels::sum::columns_space(),
    });
    list.push(Subject {
        case: rows::cumsum::<f32>(rows, columns),
        formula: "the input and the output, once each",
        candidates: kernels::cumsum::space([rows, columns]),
    });
}

fn lookups(size: Size, list: &mut Vec<Subject>) {
    let (n, rows, columns) = match size {
        Size::Gpu => (1 << 28, 16384, 1024),
        Size::Cpu => (1 << 24, 4096, 1024),
        Size::Quick => (10_007, 7, 300),
    };
    list.push(Subject {
        case: elementwise::histogram(256, n),
        formula: "the numbers and the counts, once each",
        candidates: kernels::histogram::space(),
    });
    list.push(Subject {
        case: rows::gather::<f32>(rows, columns),
        formula: "the input, the indices of 8 bytes and the output, once each",
        candidates: kernels::gather::space([rows, columns]),
    });
}

fn moves(size: Size, list: &mut Vec<Subject>) {
    let (extent, [rows, columns]) = match size {
        Size::Gpu => (8192, [65536, 4096]),
        Size::Cpu => return,
        Size::Quick => (130, [7, 300]),
    };
    for case in [
        rows::transpose::<f32>(extent, extent),
        rows::transpose::<bf16>(extent, extent),
    ] {
        list.push(Subject {
            case,
            formula: "the matrix and its transpose, once each",
            candidates: kernels::transpose::space(),
        });
    }
    list.push(Subject {
        case: rows::embedding::<bf16>(rows, columns),
        formula: "the rows, their copies and their numbers, once each",
        candidates: kernels::embedding::space(),
    });
}

fn sorts(size: Size, list: &mut Vec<Subject>) {
    let (rows, columns) = match size {
        Size::Gpu => (16384, 1024),
        Size::Cpu => (4096, 1024),
        Size::Quick => (6, 256),
    };
    let cases = [
        (
            orders::sort::<f32>(rows, columns),
            "the input and the output, once each",
        ),
        (
            orders::topk::<f32>(rows, columns),
            "the input and the 32 greatest of each row, once each",
        ),
        (
            orders::topk_indices::<f32>(rows, columns),
            "the input, the 32 greatest of each row and their indices, once each",
        ),
    ];
    for (case, formula) in cases {
        list.push(Subject {
            case,
            formula,
            candidates: kernels::sort::space([rows, columns]),
        });
    }
}
