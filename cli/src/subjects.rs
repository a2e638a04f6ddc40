//! What `exactile bench` measures: kernels, inputs, and the configurations to choose from.

use exactile::bf16;
use exactile_harness::bench::Subject;
use exactile_harness::demo::{Case, Setting};

use super::examples::{
    cumsum, gather, histogram, layer_norm, mean, softmax, sort, sum, topk, vector_add,
};

/// Inputs for a GPU, for a CPU, or for a test of the harness.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Gpu,
    Cpu,
    Quick,
}

/// Elements of a tile that a lane may hold.
const LANE_ELEMENTS: std::ops::RangeInclusive<usize> = 1..=128;

/// What a lane holds in code that streams well.
const GOOD_LANE_ELEMENTS: usize = 16;

/// Warps of a thread block.
const WARPS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Every combination of extents and warps that gives a lane a fitting part of the tile; the
/// likeliest first: those with a good part of it.
fn space(
    blocks: &[usize],
    widths: &[usize],
    stages: &[u32],
    elements: impl Fn(usize, usize) -> usize,
) -> Vec<Setting> {
    let likely = |lane: usize, _: &Setting| distance(lane, GOOD_LANE_ELEMENTS);
    space_by(blocks, widths, stages, elements, likely)
}

/// How many doublings lie between two numbers.
fn distance(one: usize, other: usize) -> f64 {
    (one as f64 / other as f64).log2().abs()
}

/// [`space`] in an order of the caller's choice, from what a lane holds and the setting: the least
/// first.
fn space_by(
    blocks: &[usize],
    widths: &[usize],
    stages: &[u32],
    elements: impl Fn(usize, usize) -> usize,
    order: impl Fn(usize, &Setting) -> f64,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    for (&block, &width) in blocks
        .iter()
        .flat_map(|b| widths.iter().map(move |w| (b, w)))
    {
        for (warps, &stages) in WARPS
            .iter()
            .flat_map(|w| stages.iter().map(move |s| (*w, s)))
        {
            let lane = elements(block, width) / (32 * warps as usize);
            if LANE_ELEMENTS.contains(&lane) {
                let setting = Setting {
                    block,
                    width,
                    warps,
                    stages,
                    ..Setting::default()
                };
                settings.push((order(lane, &setting), setting));
            }
        }
    }
    settings.sort_by(|one, other| one.0.total_cmp(&other.0));
    settings.into_iter().map(|(_, setting)| setting).collect()
}

fn subject(case: Case, formula: &'static str, candidates: Vec<Setting>) -> Subject {
    Subject {
        case,
        candidates,
        formula,
    }
}

/// A kernel with one row in one tile.
fn whole_rows(case: Case, formula: &'static str) -> Subject {
    let block = [case.blocks[0]];
    let candidates = space(&block, &[0], &[0], |block, _| block);
    subject(case, formula, candidates)
}

/// A kernel with one row in one tile, by a program for each row or by some for each multiprocessor.
/// A lane that holds fewer than 8 elements has too little under way, one with more than 64 too few
/// neighbours.
fn looped_rows(case: Case, formula: &'static str) -> Subject {
    let rows = rows_of(&case, &[case.blocks[0]]);
    subject(case, formula, rows)
}

/// As [`looped_rows`], with short rows several to a tile too.
fn gathered_rows(case: Case, formula: &'static str) -> Subject {
    let block = case.blocks[0];
    let rows = if block <= 4096 {
        rows_of(&case, &[block, 2 * block, 4 * block, 8 * block])
    } else {
        rows_of(&case, &[block])
    };
    subject(case, formula, rows)
}

fn rows_of(case: &Case, blocks: &[usize]) -> Vec<Setting> {
    let widths = [0, 2, 1, 4];
    let place = |width: usize| widths.iter().position(|&other| other == width);
    let candidates = space_by(
        blocks,
        &widths,
        &[0],
        |block, _| block,
        |lane, setting| {
            let kind = place(setting.width).unwrap_or_default() as f64;
            kind + 0.1 * distance(lane, 32)
        },
    );
    let lane = |setting: &Setting| setting.block / (32 * setting.warps as usize);
    let fitting = |setting: &Setting| {
        let alone = setting.block == case.blocks[0] || setting.width == 0;
        alone && (setting.block < 256 || (8..=64).contains(&lane(setting)))
    };
    let candidates = candidates.into_iter().filter(fitting);
    candidates
        .flat_map(|setting| crowded(setting, lane(&setting)))
        .collect()
}

/// A setting as it is, and one in which a lane has few registers beside those of its elements, so that
/// a multiprocessor holds more programs.
fn crowded(setting: Setting, lane: usize) -> impl Iterator<Item = Setting> {
    const REGISTERS: usize = 65536;
    const BESIDE: usize = 16;
    let most = (64 / setting.warps as usize).min(32);
    let occupancy = (REGISTERS / (32 * setting.warps as usize * (lane + BESIDE))).min(most);
    let crowded = Setting {
        occupancy: occupancy as u32,
        ..setting
    };
    [setting, crowded]
        .into_iter()
        .take(1 + usize::from(occupancy > 1))
}

/// All subjects of a size, in the order of the report.
pub(super) fn subjects(size: Size) -> Vec<Subject> {
    let mut list = Vec::new();
    elementwise(size, &mut list);
    rows(size, &mut list);
    reductions(size, &mut list);
    lookups(size, &mut list);
    orders(size, &mut list);
    list
}

fn elementwise(size: Size, list: &mut Vec<Subject>) {
    let n = match size {
        Size::Gpu => 1 << 28,
        Size::Cpu => 1 << 24,
        Size::Quick => 10_007,
    };
    let blocks = [512, 1024, 2048, 4096, 8192];
    list.push(subject(
        vector_add::case::<f32>(n),
        "two inputs and the output, once each",
        space(&blocks, &[0], &[0], |block, _| block),
    ));
}

fn rows(size: Size, list: &mut Vec<Subject>) {
    let formula = "the input and the output, once each";
    let shapes: &[(usize, usize)] = match size {
        Size::Gpu => &[(16384, 1024), (16384, 4096), (8192, 16384), (4096, 32768)],
        Size::Cpu => &[(4096, 4096)],
        Size::Quick => &[(7, 300)],
    };
    for &(rows, columns) in shapes {
        list.push(gathered_rows(softmax::case::<f32>(rows, columns), formula));
        list.push(gathered_rows(softmax::case::<bf16>(rows, columns), formula));
    }
    let formula =
        "the input, the output, weight and bias, means and reciprocal deviations, once each";
    let shapes: &[(usize, usize)] = match size {
        Size::Gpu => &[(16384, 4096), (16384, 8192)],
        Size::Cpu => &[(4096, 4096)],
        Size::Quick => &[(7, 300)],
    };
    for &(rows, columns) in shapes {
        list.push(looped_rows(
            layer_norm::case::<bf16>(rows, columns),
            formula,
        ));
        list.push(looped_rows(layer_norm::case::<f32>(rows, columns), formula));
    }
}

fn reductions(size: Size, list: &mut Vec<Subject>) {
    let formula = "the input and the sums, once each";
    let (outer, middle, inner): (usize, usize, usize) = match size {
        Size::Gpu => (2048, 4096, 16),
        Size::Cpu => (64, 4096, 64),
        Size::Quick => (3, 100, 16),
    };
    list.push(subject(
        mean::case::<f32>(outer, middle, inner),
        formula,
        // Many loads of a lane are under way at once.
        space_by(
            &[128, 256, 512, 1024, 64, 32],
            &[0],
            &[3, 0],
            move |rows, _| rows * inner.next_power_of_two().min(64),
            |lane, setting| distance(lane, 32) + 0.2 * distance(setting.warps as usize, 8),
        ),
    ));
    let (rows, columns): (usize, usize) = match size {
        Size::Gpu => (65536, 8192),
        Size::Cpu => (4096, 4096),
        Size::Quick => (50, 200),
    };
    let block = columns.next_power_of_two();
    list.push(subject(
        sum::all_case::<f32>(rows * columns),
        formula,
        space(
            &[8192, 4096, 2048, 1024, 16384],
            &[65536, 32768, 131_072],
            &[0],
            |block, _| block,
        ),
    ));
    list.push(subject(
        sum::rows_case::<f32>(rows, columns),
        formula,
        space(
            &[block, block / 2, block / 4],
            &[1, 2, 4],
            &[0],
            |block, width| block * width,
        ),
    ));
    // A warp that owns its columns, 4 a lane, exchanges nothing with others.
    let own = |lane: usize, setting: &Setting| {
        distance(lane, 32) + 2.0 * distance(setting.width, 128 * setting.warps as usize)
    };
    list.push(subject(
        sum::columns_case::<f32>(rows, columns),
        formula,
        space_by(
            &[8, 16, 32, 64],
            &[32, 64, 128, 256, 512, 1024],
            &[0],
            |block, width| block * width,
            own,
        ),
    ));
    let case = cumsum::case::<f32>(rows, columns);
    list.push(whole_rows(case, "the input and the output, once each"));
}

fn lookups(size: Size, list: &mut Vec<Subject>) {
    let (n, rows, columns) = match size {
        Size::Gpu => (1 << 28, 16384, 1024),
        Size::Cpu => (1 << 24, 4096, 1024),
        Size::Quick => (10_007, 7, 300),
    };
    list.push(subject(
        histogram::case(256, n),
        "the numbers and the counts, once each",
        space(&[4096, 2048, 8192, 1024, 16384], &[0], &[0], |block, _| {
            block
        }),
    ));
    list.push(whole_rows(
        gather::case::<f32>(rows, columns),
        "the input, the indices of 8 bytes and the output, once each",
    ));
}

fn orders(size: Size, list: &mut Vec<Subject>) {
    let (rows, columns) = match size {
        Size::Gpu => (16384, 1024),
        Size::Cpu => (4096, 1024),
        Size::Quick => (6, 256),
    };
    let cases = [
        (
            sort::case::<f32>(rows, columns),
            "the input and the output, once each",
        ),
        (
            topk::case::<f32>(rows, columns),
            "the input and the 32 greatest of each row, once each",
        ),
        (
            topk::case_with_indices::<f32>(rows, columns),
            "the input, the 32 greatest of each row and their indices, once each",
        ),
    ];
    for (case, formula) in cases {
        let candidates = space(&[1, 2, 4, 8, 16], &[0], &[0], |rows, _| rows * columns);
        list.push(subject(case, formula, candidates));
    }
}
