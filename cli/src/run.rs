//! `exactile run`: one kernel in text form, with arguments from NPY files and results to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use exactile::text_kernel::{TextArgument, TextKernel};
use exactile::{Array, DType, Device, Error, Result};
use exactile_core::ir::{Access, Type};
use exactile_core::text::number;
use exactile_harness::npy;
use serde::Serialize;

use super::settings::Settings;

/// Runs a kernel in the text form of block IR.
#[derive(Args)]
pub(crate) struct Run {
    /// The kernel
    file: PathBuf,
    /// An argument: `x=@in.npy`, `n=5`, `scale=0x1.8p1`, or zeros as `y=f32[8,1024]`
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    arguments: Vec<String>,
    /// Where a result goes: `y=@out.npy`, with its type as `y=@out.npy:f32[8,1024]` unless `--arg`
    /// gives its first contents
    #[arg(long = "out", value_name = "NAME=@FILE[:TYPE]")]
    outputs: Vec<String>,
    /// Programs along each axis, such as `8` or `8,4`
    #[arg(long, default_value = "1", value_parser = super::settings::grid)]
    grid: [u32; 3],
    /// What runs it: `interp`, `lanes`, `cpu`, `cuda` or `cuda:N`
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    settings: Settings,
    /// Print what was run as JSON
    #[arg(long)]
    json: bool,
}

/// A result and its file.
struct Output {
    name: String,
    path: PathBuf,
}

#[derive(Serialize)]
struct Report<'a> {
    kernel: &'a str,
    device: String,
    grid: [u32; 3],
    outputs: Vec<Written<'a>>,
}

#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    file: &'a Path,
    dtype: &'static str,
    shape: &'a [usize],
}

impl Run {
    pub(crate) fn execute(&self) -> Result<()> {
        let device = Device::from_name(&self.device)?;
        let kernel = TextKernel::read(&self.file, self.settings.options())?;
        let mut arguments = BTreeMap::new();
        for text in &self.arguments {
            let (name, value) = split(text, "--arg")?;
            let argument = argument(parameter_type(&kernel, name)?, name, value)?;
            insert(&mut arguments, name, argument)?;
        }
        let mut outputs = Vec::new();
        for text in &self.outputs {
            outputs.push(output(&kernel, text, &mut arguments)?);
        }
        kernel.run(&device, self.grid, &mut arguments)?;
        // Nothing is written before everything has run.
        let mut arrays = Vec::new();
        let mut written = Vec::new();
        for output in &outputs {
            let Some(TextArgument::Array(array)) = arguments.get(&output.name) else {
                return Err(Error::Invalid(format!("`{}` is no array", output.name)));
            };
            arrays.push((output.path.as_path(), array));
            written.push(Written {
                name: &output.name,
                file: &output.path,
                dtype: array.dtype().name(),
                shape: array.shape(),
            });
        }
        npy::write_all(&arrays)?;
        if self.json {
            super::print_json(&Report {
                kernel: &kernel.func().name,
                device: device.to_string(),
                grid: self.grid,
                outputs: written,
            })?;
        }
        Ok(())
    }
}

fn split<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=')
        .ok_or_else(|| Error::Invalid(format!("`{option} {text}`: expected `name=value`")))
}

fn insert(
    arguments: &mut BTreeMap<String, TextArgument>,
    name: &str,
    argument: TextArgument,
) -> Result<()> {
    match arguments.insert(name.to_string(), argument) {
        None => Ok(()),
        Some(_) => Err(Error::Invalid(format!("argument `{name}` is given twice"))),
    }
}

/// The type of a parameter and what the kernel does with it.
fn parameter_type(kernel: &TextKernel, name: &str) -> Result<(Type, Access)> {
    let func = kernel.func();
    func.parameters
        .iter()
        .zip(func.arguments())
        .find(|(parameter, _)| parameter.name == name)
        .map(|(parameter, &value)| (func.ty(value), parameter.access))
        .ok_or_else(|| {
            let known: Vec<&str> = func
                .parameters
                .iter()
                .map(|known| known.name.as_str())
                .collect();
            Error::Invalid(format!(
                "kernel `{}` has no parameter `{name}`, its parameters are `{}`",
                func.name,
                known.join("`, `")
            ))
        })
}

fn argument((ty, _): (Type, Access), name: &str, value: &str) -> Result<TextArgument> {
    if let Some(path) = value.strip_prefix('@') {
        let array = npy::read(Path::new(path))?;
        let Some((dtype, _)) = ty.pointee() else {
            return Err(Error::Invalid(format!(
                "argument `{name}`: found a file, expected a scalar `{ty}`"
            )));
        };
        return Ok(TextArgument::Array(stored_as(array, dtype)?));
    }
    match (ty.pointee(), ty.dtype()) {
        (Some((dtype, _)), _) => Ok(TextArgument::Array(zeros(name, value, dtype)?)),
        (None, Some(dtype)) => number::parse(dtype, value)
            .map(TextArgument::Scalar)
            .ok_or_else(|| Error::Invalid(format!("argument `{name}`: `{value}` is no `{dtype}`"))),
        (None, None) => Err(Error::Invalid(format!("argument `{name}` has no type"))),
    }
}

/// A file's array as the kernel's type: files hold the floats that NumPy has not, such as `bf16`, as
/// integers.
fn stored_as(array: Array, dtype: DType) -> Result<Array> {
    if array.dtype() != dtype && array.dtype().npy() == dtype.npy() {
        return Array::from_bytes(dtype, array.shape(), array.bytes());
    }
    Ok(array)
}

/// Zeros of a type such as `f32[8,1024]`, which must be the parameter's.
fn zeros(name: &str, text: &str, expected: DType) -> Result<Array> {
    let malformed = || {
        Error::Invalid(format!(
            "argument `{name}`: found `{text}`, expected `@FILE` or a type such as `{expected}[8,1024]`"
        ))
    };
    let (dtype, extents) = text
        .strip_suffix(']')
        .and_then(|text| text.split_once('['))
        .ok_or_else(malformed)?;
    let found = DType::from_name(dtype).ok_or_else(malformed)?;
    if found != expected {
        return Err(Error::DTypeMismatch { found, expected });
    }
    let shape = extents
        .split(',')
        .filter(|extent| !extent.trim().is_empty())
        .map(|extent| extent.trim().parse())
        .collect::<std::result::Result<Vec<usize>, _>>()
        .map_err(|_| malformed())?;
    Array::zeros(found, &shape)
}

fn output(
    kernel: &TextKernel,
    text: &str,
    arguments: &mut BTreeMap<String, TextArgument>,
) -> Result<Output> {
    let (name, target) = split(text, "--out")?;
    let (ty, access) = parameter_type(kernel, name)?;
    if ty.pointee().is_none() || access == Access::Read {
        return Err(Error::Invalid(format!(
            "kernel `{}` does not write `{name}`",
            kernel.func().name
        )));
    }
    let target = target.strip_prefix('@').ok_or_else(|| {
        Error::Invalid(format!(
            "`--out {text}`: expected `{name}=@FILE` or `{name}=@FILE:TYPE`"
        ))
    })?;
    let (path, contents) = match target.rsplit_once(':') {
        Some((path, contents)) if contents.ends_with(']') => (path, Some(contents)),
        Some(_) | None => (target, None),
    };
    match (contents, arguments.contains_key(name)) {
        (Some(contents), _) => {
            insert(arguments, name, argument((ty, access), name, contents)?)?;
        }
        (None, true) => {}
        (None, false) => {
            return Err(Error::Invalid(format!(
                "`--out {text}`: the type is missing, write `{name}=@{path}:f32[8,1024]` or give `--arg {name}=..`"
            )));
        }
    }
    Ok(Output {
        name: name.to_string(),
        path: PathBuf::from(path),
    })
}
