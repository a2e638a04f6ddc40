//! The math functions over all their inputs: compiled code against an oracle, devices against each
//! other.

use std::collections::BTreeMap;

use exactile_core::ir::{DType, Kind, Literal, UnaryOp};
use exactile_core::semantics::derived::{ACCURACY, Domain};
use exactile_core::semantics::oracle::{reference, ulp_error};
use exactile_core::semantics::{canonical, cast};
use exactile_core::target::Options;
use rayon::prelude::*;
use serde::Serialize;

use exactile::Array;
use exactile::Device;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Error, Result};

/// What to run.
#[derive(Clone, Debug)]
pub struct MathOptions {
    /// The functions; all derived ones and `sqrt` when empty.
    pub functions: Vec<UnaryOp>,
    /// The data types, each `f16`, `bf16` or `f32`.
    pub dtypes: Vec<DType>,
    /// Devices whose results must equal those of the CPU in every bit.
    pub devices: Vec<Device>,
    /// Of the chunks of 2^24 inputs of a 32-bit type, each `stride`-th is run; 1 runs all 2^32.
    pub stride: usize,
}

/// What was found for one function and data type.
#[derive(Clone, Debug, Serialize)]
pub struct MathRow {
    /// The function; `short` where arguments that are not positive took the definition for those.
    pub function: String,
    /// The data type.
    pub dtype: String,
    /// How many inputs were tried.
    pub inputs: u64,
    /// The greatest error of the CPU's results against the oracle, in units in the last place.
    pub max_ulp: f64,
    /// The bits of the input with the greatest error.
    pub at: u64,
    /// The error that the documentation states.
    pub stated_ulp: f64,
    /// For each other device, how many results differ from the CPU's.
    pub mismatches: BTreeMap<String, u64>,
}

impl MathRow {
    /// Whether the stated error holds and all devices agree.
    pub fn passes(&self) -> bool {
        self.max_ulp <= self.stated_ulp && self.mismatches.values().all(|&count| count == 0)
    }
}

const CHUNK: usize = 1 << 24;
const BLOCK: usize = 1024;

/// Runs the functions; `progress` hears of each finished row.
pub fn math(options: &MathOptions, progress: &mut dyn FnMut(&MathRow)) -> Result<Vec<MathRow>> {
    let derived = UnaryOp::ALL.iter().copied();
    let all = derived.filter(|op| op.kind() == Kind::Derived || *op == UnaryOp::Sqrt);
    let functions = match options.functions.is_empty() {
        true => all.collect(),
        false => options.functions.clone(),
    };
    let mut rows = Vec::new();
    for &dtype in &options.dtypes {
        for &function in &functions {
            for &domain in domains(function) {
                let row = run((function, domain), dtype, options)?;
                progress(&row);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// The domains for which a function has a definition.
const fn domains(function: UnaryOp) -> &'static [Domain] {
    match function {
        UnaryOp::Exp | UnaryOp::Exp2 => &[Domain::Anything, Domain::NotPositive],
        _ => &[Domain::Anything],
    }
}

/// A kernel that makes the inputs from their bits and stores the results: for those in `domain` by the
/// definition for that domain.
fn source(function: UnaryOp, domain: Domain, dtype: DType) -> Result<String> {
    let bits = match dtype {
        DType::F16 | DType::BF16 => DType::U16,
        DType::F32 => DType::U32,
        _ => {
            return Err(Error::Invalid(format!(
                "`{dtype}` has too many inputs to try them all"
            )));
        }
    };
    let index = format!("tile<{BLOCK}xi64>");
    let (name, tile) = (function.mnemonic(), format!("tile<{BLOCK}x{dtype}>"));
    let result = match domain {
        Domain::Anything => format!("%r = {name} %x : {tile}"),
        Domain::NotPositive => format!(
            "%zero = constant value={dtype}(0.0) : {tile}
             %positive = gt %x, %zero : tile<{BLOCK}xbool>
             %rest = select %positive, %zero, %x : {tile}
             %long = {name} %x : {tile}
             %short = {name} %rest : {tile}
             %r = select %positive, %long, %short : {tile}"
        ),
    };
    Ok(format!(
        "func @{name} block (%y: ptr<{dtype}> write, %first: i64) {{
           %program = program_id axis=0 : i64
           %block = constant value=i64({BLOCK}) : i64
           %start = mul %program, %block : i64
           %starts = splat %start : {index}
           %steps = arange start=0, end={BLOCK} : {index}
           %offsets = add %starts, %steps : {index}
           %firsts = splat %first : {index}
           %numbers = add %offsets, %firsts : {index}
           %bits = cast %numbers : tile<{BLOCK}x{bits}>
           %x = bitcast %bits : {tile}
           {result}
           store %y, %offsets, %r
         }}"
    ))
}

fn stated(function: UnaryOp, dtype: DType) -> f64 {
    let row = ACCURACY
        .iter()
        .find(|row| row.op == function && row.dtype == dtype);
    row.map_or(0.5, |row| row.max_ulp)
}

fn run(
    (function, domain): (UnaryOp, Domain),
    dtype: DType,
    options: &MathOptions,
) -> Result<MathRow> {
    let source = source(function, domain, dtype)?;
    let kernel = TextKernel::parse(&source, "math.bir", Options::default())?;
    let total = 1usize << dtype.bits();
    let chunk = CHUNK.min(total);
    let mut row = MathRow {
        function: match domain {
            Domain::Anything => function.mnemonic().to_string(),
            Domain::NotPositive => format!("{} short", function.mnemonic()),
        },
        dtype: dtype.name().to_string(),
        inputs: 0,
        max_ulp: 0.0,
        at: 0,
        stated_ulp: stated(function, dtype),
        mismatches: options
            .devices
            .iter()
            .map(|device| (device.to_string(), 0))
            .collect(),
    };
    let golden = Device::cpu();
    for first in (0..total).step_by(chunk * options.stride.max(1)) {
        let expected = results(&kernel, &golden, dtype, first, chunk)?;
        let (error, at) = worst(function, dtype, first, expected.bytes());
        if error > row.max_ulp {
            (row.max_ulp, row.at) = (error, at);
        }
        row.inputs += chunk as u64;
        for device in &options.devices {
            let found = results(&kernel, device, dtype, first, chunk)?;
            let differ = differences(dtype, expected.bytes(), found.bytes());
            *row.mismatches.entry(device.to_string()).or_default() += differ;
        }
    }
    Ok(row)
}

fn results(
    kernel: &TextKernel,
    device: &Device,
    dtype: DType,
    first: usize,
    count: usize,
) -> Result<Array> {
    let output = Array::zeros(dtype, &[count])?;
    let first = Literal::from_bits(DType::I64, first as u64);
    let mut arguments = BTreeMap::from([
        ("y".to_string(), TextArgument::Array(output)),
        ("first".to_string(), TextArgument::Scalar(first)),
    ]);
    kernel.launch(device, [(count / BLOCK) as u32, 1, 1], &mut arguments)?;
    match arguments.remove("y") {
        Some(TextArgument::Array(array)) => Ok(array),
        _ => Err(Error::Invalid("the results are missing".to_string())),
    }
}

fn read(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The greatest error and its input.
fn worst(function: UnaryOp, dtype: DType, first: usize, results: &[u8]) -> (f64, u64) {
    let size = dtype.bytes() as usize;
    let errors = results
        .par_chunks_exact(size)
        .enumerate()
        .map(|(index, result)| {
            let input = (first + index) as u64;
            let x = f64::from_bits(cast(dtype, DType::F64, input));
            let expected = reference(function, x).unwrap_or(f64::NAN);
            let error = ulp_error(dtype, read(result), expected, 0.0);
            (error.unwrap_or(f64::INFINITY), input)
        });
    errors.reduce(
        || (0.0, 0),
        |a, b| {
            if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) {
                b
            } else {
                a
            }
        },
    )
}

fn differences(dtype: DType, expected: &[u8], found: &[u8]) -> u64 {
    let size = dtype.bytes() as usize;
    let pairs = expected
        .par_chunks_exact(size)
        .zip(found.par_chunks_exact(size));
    let differ =
        pairs.filter(|(a, b)| a != b && canonical(dtype, read(a)) != canonical(dtype, read(b)));
    differ.count() as u64
}
