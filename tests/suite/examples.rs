//! The machine code of the examples in the configurations of the demo: it assembles without spills, and
//! as recorded.

use std::path::PathBuf;

use exactile::internals;
use exactile::{Bounds, Configure, Determinism, Kernel, Options, Schedule, Target, bf16, f16};
use exactile_core::facts::{Boxed, Facts, Known, Within};
use exactile_core::pipeline;
use exactile_core::verify::BlockFunc;
use exactile_kernels::{
    attention, cumsum, gather, histogram, layer_norm, matmul, mean, scaled_matmul, softmax, sort,
    sum, tensor_matmul, topk, vector_add,
};
use exactile_nvptx::{Assembler, emit};
use rayon::prelude::*;

use crate::held_operands::{successive, written_while_read};

/// A kernel with what a launch on well-aligned and contiguous arguments knows.
#[derive(Clone)]
struct Launched {
    func: BlockFunc,
    facts: Facts,
}

fn launched<P>(kernel: &Kernel<P>) -> Launched {
    launched_without(kernel, &[])
}

/// The launch without the optional parameters of which this says so.
fn launched_without<P>(kernel: &Kernel<P>, left_out: &[bool]) -> Launched {
    let func = internals::trace_without(kernel, left_out).expect("traces");
    let is_stride = |index: usize| {
        let parameter = func.parameters.get(index);
        parameter.is_some_and(|parameter| parameter.name.contains("_stride"))
    };
    let known = |index: usize| match is_stride(index) && !is_stride(index + 1) {
        true => Known::One,
        false => Known::Divisor(16),
    };
    let arguments = (0..func.parameters.len()).map(known).collect();
    Launched {
        func,
        facts: Facts {
            arguments,
            apart: true,
            inside: true,
            boxes: Boxed::All,
            ..Facts::default()
        },
    }
}

#[derive(Clone)]
struct Configuration {
    name: String,
    func: Launched,
    warps: u32,
    bounds: Bounds,
}

/// Whether the kernel is a loop over rows.
fn loops(name: &str) -> bool {
    name.contains("_loop")
}

/// Every kernel with three tile sizes, on the numbers of warps that give a lane at most 32 elements.
fn configurations() -> Vec<Configuration> {
    let mut list = Vec::new();
    let mut add = |name: &str, block: usize, elements: usize, func: Launched| {
        for warps in [1, 4, 8] {
            if elements <= 32 * 32 * warps as usize {
                let name = format!("{name}_{block}_{warps}");
                list.push(Configuration {
                    name,
                    func: func.clone(),
                    warps,
                    bounds: Bounds::Unchecked,
                });
            }
        }
    };
    for block in [256, 1024, 4096] {
        let kernel = vector_add::vector_add::<f32>().block(block);
        add("vector_add", block, block, launched(&kernel));
    }
    rows(&mut add);
    for block in [1024, 4096, 8192] {
        let kernel = cumsum::cumsum::<f32>().block(block);
        add("cumsum", block, block, launched(&kernel));
        let kernel = cumsum::cumsum::<f16>().block(block);
        add("cumsum_f16", block, block, launched(&kernel));
    }
    for rows in [32, 64, 128] {
        let kernel = mean::mean::<f32>().rows(rows);
        add("mean", rows, rows * 16, launched(&kernel));
    }
    sums(&mut add);
    lookups(&mut add);
    for block in [16, 32, 64] {
        let kernel = matmul::matmul::<f32, f32>().bm(block).bn(block);
        add("matmul", block, block * block, launched(&kernel));
    }
    list
}

/// Rows that are normalised.
fn rows(add: &mut impl FnMut(&str, usize, usize, Launched)) {
    for block in [1024, 2048, 4096] {
        let kernel = softmax::softmax::<f32>().block(block);
        add("softmax", block, block, launched(&kernel));
        let kernel = softmax::softmax::<f16>().block(block);
        add("softmax_f16", block, block, launched(&kernel));
        let kernel = softmax::softmax_loop::<f32>().block(block);
        add("softmax_loop", block, block, launched(&kernel));
        let kernel = softmax::softmax_loop::<f16>().block(block);
        add("softmax_loop_f16", block, block, launched(&kernel));
        let kernel = layer_norm::layer_norm_loop::<f32>().block(block);
        add("layer_norm_loop", block, block, launched(&kernel));
        let kernel = layer_norm::layer_norm::<f32>().block(block);
        add("layer_norm", block, block, launched(&kernel));
    }
}

/// Counts and gathers.
fn lookups(add: &mut impl FnMut(&str, usize, usize, Launched)) {
    for block in [4096, 8192] {
        let kernel = histogram::count().bins(256).block(block);
        let func = launched(&kernel);
        add("histogram", block, block, func);
    }
    for block in [1024, 4096] {
        let kernel = gather::gather_rows::<f32>().block(block);
        add("gather", block, block, launched(&kernel));
    }
}

fn sums(add: &mut impl FnMut(&str, usize, usize, Launched)) {
    for (rows, block) in [(1, 8192), (2, 8192), (1, 2048)] {
        let kernel = sum::sum_rows::<f32>()
            .rows(rows)
            .block(block)
            .tiles(8192 / block);
        add("sum_rows", block, rows * block, launched(&kernel));
    }
    for rows in [8, 16] {
        let kernel = sum::sum_columns::<f32, f32>()
            .rows(rows)
            .columns(128)
            .tiles(2048 / rows);
        add("sum_columns", rows, rows * 128, launched(&kernel));
    }
    for block in [1024, 4096, 8192] {
        let kernel = sum::sum_parts::<f32, f32>()
            .block(block)
            .tiles(65536 / block);
        add("sum_parts", block, block, launched(&kernel));
    }
}

/// Rows of any length, of which a thread block takes one.
fn long_rows() -> Vec<Configuration> {
    let rows = |name: &str, mut func: Launched, columns: usize| {
        func.facts.arguments[columns] = Known::Divisor(1);
        func.facts.within = vec![Within {
            parameter: columns,
            least: 24_577,
            most: 26_624,
        }];
        Configuration {
            name: format!("long_{name}_32768_32"),
            func,
            warps: 32,
            bounds: Bounds::Unchecked,
        }
    };
    let wide = softmax::softmax::<f32>().block(32_768);
    let half = softmax::softmax::<bf16>().block(32_768);
    vec![
        rows("softmax", launched(&wide), 2),
        rows("softmax_bf16", launched(&half), 2),
    ]
}

/// Sorts of rows of 1024, which a warp holds.
fn sorts() -> Vec<Configuration> {
    let mut list = Vec::new();
    for (rows, warps) in [(1, 1), (1, 4), (4, 4)] {
        let mut add = |name: &str, func: Launched| {
            let name = format!("{name}_{rows}_{warps}");
            let bounds = Bounds::Unchecked;
            list.push(Configuration {
                name,
                func,
                warps,
                bounds,
            });
        };
        let whole = sort::sort::<f32>().columns(1024).rows(rows);
        add("sort", launched(&whole));
        let first = topk::topk::<f32>().columns(1024).rows(rows);
        add("topk", launched(&first));
        let with_indices = topk::topk_indices::<f32>().columns(1024).rows(rows);
        let kernel = with_indices;
        add("topk_indices", launched(&kernel));
    }
    list
}

/// Products by groups of four warps, with as many numbers of the accumulator as a lane may hold.
fn products() -> Vec<Configuration> {
    let sizes = [(128, 256, 8), (128, 128, 4), (64, 256, 4)];
    let configuration = |(bm, bn, warps): (usize, usize, u32)| {
        let kernel = tensor_matmul::tensor_matmul::<bf16>().bm(bm).bn(bn);
        let func = launched(&kernel);
        let name = format!("tensor_matmul_{bm}_{bn}_{warps}");
        let bounds = Bounds::Unchecked;
        Configuration {
            name,
            func,
            warps,
            bounds,
        }
    };
    let mut list = sizes.map(configuration).to_vec();
    let checked = Configuration {
        name: "tensor_matmul_checked".to_string(),
        bounds: Bounds::Checked,
        ..list[0].clone()
    };
    // Where arrays are not such as copies of boxes take them.
    let mut by_lanes = list[0].clone();
    by_lanes.name = "tensor_matmul_by_lanes".to_string();
    by_lanes.func.facts.boxes = Boxed::Nothing;
    list.extend([checked, by_lanes]);
    let bytes = scaled_matmul::rows_matmul::<i8, i32>().bm(128).bn(256);
    let floats = scaled_matmul::rows_matmul::<f32, f32>().bm(128).bn(256);
    let of_rows = [
        ("rows_matmul_i8", of_rows(launched(&bytes))),
        ("rows_matmul_f32", of_rows(launched(&floats))),
    ];
    list.extend(of_rows.map(|(name, func)| Configuration {
        name: name.to_string(),
        func,
        warps: 8,
        bounds: Bounds::Unchecked,
    }));
    let attentions = [(128, 64, 4), (64, 128, 8), (128, 128, 8)];
    list.extend(attentions.map(|it| of_attention(it, false)));
    list.push(of_attention((128, 128, 8), true));
    list.extend(of_few_queries());
    list
}

/// The launch with a second factor whose columns are the rows of an array.
fn of_rows(mut launched: Launched) -> Launched {
    let parameters = launched.func.parameters.iter();
    let strides = parameters
        .enumerate()
        .filter(|(_, parameter)| parameter.name.starts_with("b_stride"));
    let strides: Vec<usize> = strides.map(|(at, _)| at).collect();
    launched.facts.arguments.swap(strides[0], strides[1]);
    launched
}

/// Attention over elements of a width, in tiles of so many queries and keys.
fn of_attention((width, tile, warps): (usize, usize, u32), causal: bool) -> Configuration {
    let kernel = attention::attention::<bf16>()
        .d(width)
        .width(width)
        .causal(causal)
        .whole(true)
        .m(tile)
        .n(tile);
    let mask = if causal { "_causal" } else { "" };
    // Results and logarithms, and nothing else.
    let left_out: Vec<bool> = (0..17).map(|at| at > 1).collect();
    Configuration {
        name: format!("attention_{width}_{tile}_{warps}{mask}"),
        func: launched_without(&kernel, &left_out),
        warps,
        bounds: Bounds::Unchecked,
    }
}

/// Attention of a query of eight heads by parts of the keys that they share: all of them, and by lengths.
fn of_few_queries() -> [Configuration; 2] {
    let kernel = attention::attention::<bf16>()
        .d(128)
        .width(128)
        .group(8)
        .heads(8)
        .together(true)
        .causal(false)
        .m(64)
        .n(64);
    [("parts", true), ("lengths", false)].map(|(name, whole)| {
        // Sums of parts with what they are scaled by, lengths, and the keys of a part.
        let left_out = (0..17).map(|at| !matches!(at, 2..=4 | 12) && (whole || at != 9));
        let left_out: Vec<bool> = left_out.collect();
        Configuration {
            name: format!("attention_{name}"),
            func: launched_without(&kernel.clone().whole(whole), &left_out),
            warps: 4,
            bounds: Bounds::Unchecked,
        }
    })
}

/// What the assembler made of a configuration.
struct Made {
    name: String,
    sass: String,
    report: String,
}

impl Made {
    fn new(configuration: &Configuration, assembler: &Assembler) -> Result<Self, String> {
        let name = configuration.name.clone();
        let failed = |error: String| format!("{name}: {error}");
        let schedule = Schedule::AUTO.warps(configuration.warps);
        let options = Options {
            bounds: configuration.bounds,
            schedule,
            ..Options::default()
        };
        let Launched { func, facts } = configuration.func.clone();
        let observe = &mut pipeline::unobserved;
        let lane = pipeline::compile(func, &Target::SM_90A, &options, &facts, observe)
            .map_err(|error| failed(error.to_string()))?;
        let ptx = emit(&lane, &Target::SM_90A, &name).map_err(|error| failed(error.to_string()))?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let assembled = assembler
            .assemble(ptx.text(), &folder, &name)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            sass: assembled.sass,
            report: assembled.report,
            name,
        })
    }

    fn count(&self, instruction: &str) -> usize {
        self.sass.matches(instruction).count()
    }

    /// What is wrong with the machine code.
    fn problems(&self) -> Vec<String> {
        let name = &self.name;
        let mut problems = Vec::new();
        let spills = !self
            .report
            .contains("0 bytes spill stores, 0 bytes spill loads");
        if spills || self.count(" LDL") + self.count(" STL") > 0 {
            problems.push(format!("{name} uses local memory: {}", self.report));
        }
        let rows = name.starts_with("softmax_1") || name.starts_with("softmax_4");
        let rows = rows || name.starts_with("cumsum_8") || name.starts_with("sum_");
        let streams = rows
            || (name.starts_with("layer_norm") && !loops(name))
            || name.starts_with("vector_add_1024");
        let others = ["sort", "topk", "histogram"];
        let streams = streams || others.iter().any(|start| name.starts_with(start));
        if streams && self.count("LDG.E.128") == 0 {
            problems.push(format!("{name} loads no vectors of 16 bytes"));
        }
        if loops(name) && self.count("LDGSTS") == 0 {
            problems.push(format!("{name} copies nothing ahead"));
        }
        // One increment an element where a tile is whole and where it ends, each by the instruction
        // that adds equal bins of a warp up, and sums that leave nothing to return.
        if name.starts_with("histogram") {
            let increments = self.count("ATOMS.POPC.INC.32");
            if increments == 0 || self.count("ATOMS") != increments {
                problems.push(format!("{name} counts by other atomics than increments"));
            }
            if self.count("REDG.E.ADD") == 0 || self.count("ATOMG") > 0 {
                problems.push(format!("{name} does not add its counts by reductions"));
            }
        }
        if name.starts_with("long_") && self.count("UBLKCP") == 0 {
            problems.push(format!("{name} loads its rows by lanes"));
        }
        if self.report.contains("serialized") {
            problems.push(format!("{name} waits for each product: {}", self.report));
        }
        let written = written_while_read(&self.sass).into_iter();
        problems.extend(written.map(|it| format!("{name} writes what a product reads: {it}")));
        let by_groups = ["tensor_matmul", "rows_matmul", "attention"];
        let multiplies = by_groups.iter().any(|start| name.starts_with(start));
        if multiplies && self.count("GMMA") == 0 {
            problems.push(format!("{name} does not multiply by groups of warps"));
        }
        if name.starts_with("attention") && successive(&self.sass, "MUFU") > 16 {
            problems.push(format!("{name} has its exponentials one after the other"));
        }
        let by_boxes = ["tensor_matmul_1", "tensor_matmul_6", "rows_matmul"];
        if by_boxes.iter().any(|start| name.starts_with(start)) && self.count("UTMASTG") == 0 {
            problems.push(format!("{name} stores its sums by lanes"));
        }
        let multiplies_apart = ["vector_add", "sum_", "cumsum"];
        let apart = multiplies_apart.iter().any(|start| name.starts_with(start));
        if apart && self.count("FFMA") > 0 {
            problems.push(format!("{name} fuses what the kernel does not"));
        }
        problems
    }

    /// One line of the record: how many registers a lane has, and the instructions that tell how
    /// memory is reached.
    fn line(&self) -> String {
        let registers = self.report.split("Used ").nth(1).unwrap_or_default();
        let registers = registers.split(' ').next().unwrap_or_default();
        let instructions = [
            "LDG.E.128",
            "LDGSTS",
            "STG.E.128",
            "SHFL",
            " LDS",
            " STS",
            "BAR.SYNC",
            "GMMA",
        ];
        let counts = instructions.map(|name| format!(" {} {}", name.trim(), self.count(name)));
        let bulk = ["UTMASTG", "UBLKCP"].map(|name| match self.count(name) {
            0 => String::new(),
            count => format!(" {name} {count}"),
        });
        format!(
            "{}: registers {registers}{}{}\n",
            self.name,
            counts.concat(),
            bulk.concat()
        )
    }
}

/// Where the record of the machine code is kept. `BLESS=1` writes it anew.
const RECORD: &str = "tests/suite/machine_code.txt";

#[test]
fn examples_assemble_as_recorded() {
    let root = crate::root();
    let Some(assembler) = Assembler::find(root) else {
        eprintln!("SKIPPED: no ptxas; set EXACTILE_PTXAS or run tools/test, which installs it");
        return;
    };
    let configurations = [configurations(), long_rows(), sorts(), products()].concat();
    assert!(configurations.len() > 35, "{}", configurations.len());
    let made: Result<Vec<Made>, String> = configurations
        .par_iter()
        .map(|configuration| Made::new(configuration, &assembler))
        .collect();
    let made = made.unwrap_or_else(|error| panic!("{error}"));
    let problems: Vec<String> = made.iter().flat_map(Made::problems).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));

    let versions = assembler
        .versions()
        .expect("the assembler tells its version");
    let lines: String = made.iter().map(Made::line).collect();
    let found = format!("{versions}\n{lines}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root.join(RECORD), &found).expect("is written");
    }
    let recorded = std::fs::read_to_string(root.join(RECORD)).expect("the record is there");
    if recorded.lines().next() != Some(versions.as_str()) {
        eprintln!("SKIPPED: the record is of other tools than {versions}");
        return;
    }
    let changed: Vec<&str> = found
        .lines()
        .filter(|line| !recorded.lines().any(|old| old == *line))
        .collect();
    assert!(
        found == recorded,
        "the machine code is not as recorded; look at it, then run with BLESS=1:\n{}",
        changed.join("\n")
    );
}

#[test]
fn approximations_are_used_where_bits_are_not_promised() {
    let softmax = softmax::softmax::<f32>().block(1024);
    let exact = softmax.ptx().expect("compiles");
    assert!(!exact.contains("approx"), "{exact}");
    let fast = softmax.determinism(Determinism::NotGuaranteed);
    let fast = fast.ptx().expect("compiles");
    assert!(fast.contains("ex2.approx"), "{fast}");
    let root = crate::root();
    if let Some(assembler) = Assembler::find(root) {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let made = assembler.assemble(&fast, &folder, "softmax_fast");
        let sass = made.expect("assembles").sass;
        assert!(sass.contains("MUFU.EX2"), "{sass}");
    }
}
