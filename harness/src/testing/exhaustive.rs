//! The math functions over all their inputs: compiled code against an oracle, devices against each
//! other.

use std::collections::BTreeMap;

use exactile_core::ir::{DType, Function, Literal, UnaryOp};
use exactile_core::semantics::derived::{Domain, accuracy, domains};
use exactile_core::semantics::oracle::{reference, ulp_error};
use exactile_core::semantics::{canonical, cast};
use exactile_core::target::Options;
use rayon::prelude::*;
use serde::Serialize;

use exactile::Array;
use exactile::Device;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Error, Result};

/// A function that has a true value to judge results by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MathFunction {
    /// The square root, which is correctly rounded.
    Sqrt,
    /// A derived function.
    Derived(Function),
}

impl MathFunction {
    fn all() -> Vec<Self> {
        let derived = Function::ALL.iter().copied().map(Self::Derived);
        std::iter::once(Self::Sqrt).chain(derived).collect()
    }

    /// The function with this name.
    pub fn from_mnemonic(mnemonic: &str) -> Option<Self> {
        let mut all = Self::all().into_iter();
        all.find(|function| function.mnemonic() == mnemonic)
    }

    fn mnemonic(self) -> &'static str {
        match self {
            Self::Sqrt => UnaryOp::Sqrt.mnemonic(),
            Self::Derived(op) => op.mnemonic(),
        }
    }

    /// The domains for which it has a definition.
    fn domains(self) -> Vec<Domain> {
        match self {
            Self::Sqrt => vec![Domain::ANYTHING],
            Self::Derived(op) => domains(op).collect(),
        }
    }

    fn value(self, x: f64) -> f64 {
        match self {
            Self::Sqrt => x.sqrt(),
            Self::Derived(op) => reference(op, x),
        }
    }

    /// The same function by CORE-MATH, whose every result is correctly rounded.
    #[cfg(feature = "referee")]
    fn referee(self) -> Option<fn(f32) -> f32> {
        let Self::Derived(op) = self else { return None };
        let referees: [(Function, fn(f32) -> f32); 8] = [
            (Function::CrExp, core_math::expf),
            (Function::CrExp2, core_math::exp2f),
            (Function::CrLog, core_math::logf),
            (Function::CrLog2, core_math::log2f),
            (Function::CrSin, core_math::sinf),
            (Function::CrCos, core_math::cosf),
            (Function::CrTanh, core_math::tanhf),
            (Function::CrErf, core_math::erff),
        ];
        let found = referees.into_iter().find(|(function, _)| *function == op);
        found.map(|(_, referee)| referee)
    }

    #[cfg(not(feature = "referee"))]
    fn referee(self) -> Option<fn(f32) -> f32> {
        None
    }

    /// The error that the documentation states.
    fn stated(self, dtype: DType) -> f64 {
        let Self::Derived(op) = self else { return 0.5 };
        let row = accuracy().find(|row| (row.op, row.dtype) == (op, dtype));
        row.map_or(0.5, |row| row.max_ulp)
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct MathOptions {
    /// The functions; all when empty.
    pub functions: Vec<MathFunction>,
    /// The data types: floats of at most 32 bits.
    pub dtypes: Vec<DType>,
    /// Devices whose results must equal those of the CPU in every bit.
    pub devices: Vec<Device>,
    /// Of the chunks of 2^24 inputs of a 32-bit type, each `stride`-th is run; 1 runs all 2^32.
    pub stride: usize,
}

/// What was found for one function and data type.
#[derive(Clone, Debug, Serialize)]
pub struct MathRow {
    /// The function, and the domain whose definition was taken for the arguments in it.
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
    /// For each other device, how many results differ from the CPU's; and how many of the CPU's from those of
    /// CORE-MATH, where the function is correctly rounded.
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
    let functions = match options.functions.is_empty() {
        true => MathFunction::all(),
        false => options.functions.clone(),
    };
    let mut rows = Vec::new();
    for &dtype in &options.dtypes {
        for &function in &functions {
            for domain in function.domains() {
                let row = run((function, domain), dtype, options)?;
                progress(&row);
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// A kernel that makes the inputs from their bits and stores the results: for those in `domain` by the
/// definition for that domain.
fn source(function: MathFunction, domain: Domain, dtype: DType) -> Result<String> {
    if !dtype.is_float() || dtype.bits() > 32 {
        let message = format!("`{dtype}` has too many inputs to try them all");
        return Err(Error::Invalid(message));
    }
    let bits = dtype.unsigned();
    let index = format!("tile<{BLOCK}xi64>");
    let (name, tile) = (function.mnemonic(), format!("tile<{BLOCK}x{dtype}>"));
    let limit = |bound: f64| format!("{dtype}({bound:?})");
    let result = match domain == Domain::ANYTHING {
        true => format!("%r = {name} %x : {tile}"),
        false => format!(
            "%least = constant value={} : {tile}
             %greatest = constant value={} : {tile}
             %above = gt %x, %greatest : tile<{BLOCK}xbool>
             %low = select %above, %greatest, %x : {tile}
             %below = lt %low, %least : tile<{BLOCK}xbool>
             %rest = select %below, %least, %low : {tile}
             %outside = or %below, %above : tile<{BLOCK}xbool>
             %long = {name} %x : {tile}
             %short = {name} %rest : {tile}
             %r = select %outside, %long, %short : {tile}",
            limit(domain.least),
            limit(domain.greatest)
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

fn run(
    (function, domain): (MathFunction, Domain),
    dtype: DType,
    options: &MathOptions,
) -> Result<MathRow> {
    let source = source(function, domain, dtype)?;
    let kernel = TextKernel::parse(&source, "math.bir", Options::default())?;
    let total = 1usize << dtype.bits();
    let chunk = CHUNK.min(total);
    let mut row = MathRow {
        function: match domain == Domain::ANYTHING {
            true => function.mnemonic().to_string(),
            false => format!(
                "{} of {} to {}",
                function.mnemonic(),
                domain.least,
                domain.greatest
            ),
        },
        dtype: dtype.name().to_string(),
        inputs: 0,
        max_ulp: 0.0,
        at: 0,
        stated_ulp: function.stated(dtype),
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
        if let Some(referee) = function.referee().filter(|_| dtype == DType::F32) {
            let differ = refuted(referee, first, expected.bytes());
            *row.mismatches.entry("CORE-MATH".to_string()).or_default() += differ;
        }
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
    let output = Array::zeros(dtype, [count])?;
    let first = Literal::from_bits(DType::I64, first as u64);
    let mut arguments = BTreeMap::from([
        ("y".to_string(), TextArgument::Array(output)),
        ("first".to_string(), TextArgument::Scalar(first)),
    ]);
    kernel.run(device, [(count / BLOCK) as u32, 1, 1], &mut arguments)?;
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
fn worst(function: MathFunction, dtype: DType, first: usize, results: &[u8]) -> (f64, u64) {
    let size = dtype.bytes() as usize;
    let errors = results
        .par_chunks_exact(size)
        .enumerate()
        .map(|(index, result)| {
            let input = (first + index) as u64;
            let x = f64::from_bits(cast(dtype, DType::F64, input));
            let expected = function.value(x);
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

/// How many results of `f32` differ from those of a function.
fn refuted(referee: fn(f32) -> f32, first: usize, results: &[u8]) -> u64 {
    let results = results.par_chunks_exact(4).enumerate();
    let differ = results.filter(|(index, result)| {
        let expected = referee(f32::from_bits((first + index) as u32)).to_bits();
        canonical(DType::F32, read(result)) != canonical(DType::F32, u64::from(expected))
    });
    differ.count() as u64
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
