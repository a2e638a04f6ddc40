//! The arguments of `; run:` lines and the contents of `; gives:` lines.

use exactile_core::interp::memory::{read_number, write_number};
use exactile_core::ir::{Access, Class, DType, Func, Literal};
use exactile_core::launch::Argument;
use exactile_core::random::Random;
use exactile_core::semantics::canonical;
use exactile_core::text::number::{format, parse};

use exactile::internals::HostMemory;

/// One argument.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Memory(DType, Access, HostMemory),
    Scalar(Literal),
}

impl Value {
    pub(super) fn argument(&mut self) -> Argument<'_> {
        match self {
            Self::Memory(_, Access::Read, memory) => Argument::Read(memory.bytes()),
            Self::Memory(_, Access::ReadWrite, memory) => Argument::ReadWrite(memory.bytes_mut()),
            Self::Scalar(literal) => Argument::Scalar(*literal),
        }
    }
}

/// Splits at the commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, character) in text.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The arguments of `func` from `x=[1.0], n=3`.
pub(super) fn read(func: &Func, text: &str) -> Result<Vec<Value>, String> {
    let mut named = Vec::new();
    for part in split(text) {
        let (name, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` is not `name=value`"))?;
        if !func
            .parameters
            .iter()
            .any(|parameter| parameter.name == name.trim())
        {
            return Err(format!("`@{}` has no parameter `{name}`", func.name));
        }
        named.push((name.trim(), value.trim()));
    }
    let mut values = Vec::new();
    for (parameter, &value) in func.parameters.iter().zip(func.arguments()) {
        let (_, text) = named
            .iter()
            .find(|(name, _)| *name == parameter.name)
            .ok_or_else(|| format!("parameter `{}` has no value", parameter.name))?;
        let ty = func.ty(value);
        values.push(match (ty.pointee(), ty.dtype()) {
            (Some((dtype, _)), _) => {
                let elements = elements(dtype, text)?;
                let size = dtype.bytes() as usize;
                let mut memory = HostMemory::zeroed(elements.len() * size);
                for (place, bits) in memory.bytes_mut().chunks_exact_mut(size).zip(elements) {
                    write_number(dtype, place, bits);
                }
                Value::Memory(dtype, parameter.access, memory)
            }
            (None, Some(dtype)) => Value::Scalar(number(dtype, text)?),
            (None, None) => return Err(format!("parameter `{}` is no argument", parameter.name)),
        });
    }
    Ok(values)
}

fn number(dtype: DType, text: &str) -> Result<Literal, String> {
    parse(dtype, text).ok_or_else(|| format!("`{text}` is no number of type {dtype}"))
}

/// A list of numbers, or `zeros(n)`, `iota(n)`, `fill(n, x)`, `random(n, seed)`, `edges(n, stride)`.
fn elements(dtype: DType, text: &str) -> Result<Vec<u64>, String> {
    if let Some(list) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        return split(list)
            .into_iter()
            .map(|item| Ok(number(dtype, item)?.bits))
            .collect();
    }
    let unknown = || format!("`{text}` is no list of numbers");
    let (name, rest) = text.split_once('(').ok_or_else(unknown)?;
    let inner = rest.strip_suffix(')').ok_or_else(unknown)?;
    let items = split(inner);
    let count = |item: &str| item.parse::<usize>().map_err(|_| unknown());
    Ok(match (name, &items[..]) {
        ("zeros", [n]) => vec![0; count(n)?],
        ("iota", [n]) => (0..count(n)?)
            .map(|i| Literal::from_f64(dtype, i as f64).bits)
            .collect(),
        ("fill", [n, x]) => vec![number(dtype, x)?.bits; count(n)?],
        ("random", [n, seed]) => random(dtype, count(n)?, count(seed)?),
        ("edges", [n, stride]) => {
            let (edges, stride) = (edges(dtype), count(stride)?.max(1));
            (0..count(n)?)
                .map(|i| edges[i / stride % edges.len()])
                .collect()
        }
        _ => return Err(unknown()),
    })
}

/// Numbers that look random: all bits of integers; floats in -8..8.
fn random(dtype: DType, count: usize, seed: usize) -> Vec<u64> {
    let mut random = Random::new(seed as u64);
    let numbers = (0..count).map(|_| {
        let bits = random.bits();
        match dtype.class() {
            Class::Float => {
                let value = bits.cast_signed() as f64 / (1u64 << 60) as f64;
                Literal::from_f64(dtype, value).bits
            }
            Class::Bool | Class::Signed | Class::Unsigned => bits & dtype.mask(),
        }
    });
    numbers.collect()
}

/// Eight numbers at which ops go wrong; `bool` has two.
fn edges(dtype: DType) -> Vec<u64> {
    let mask = dtype.mask();
    let sign = mask ^ (mask >> 1);
    match dtype.class() {
        Class::Bool => vec![0, 1],
        Class::Signed | Class::Unsigned => {
            let width = u64::from(dtype.bits());
            vec![0, 1, mask, sign, sign - 1, 7, width, mask - 2]
        }
        Class::Float => {
            let infinity = Literal::from_f64(dtype, f64::INFINITY).bits;
            let of = |value: f64| Literal::from_f64(dtype, value).bits;
            let nan = canonical(dtype, of(f64::NAN));
            vec![
                0,
                sign,
                of(1.5),
                of(-2.5),
                infinity,
                nan,
                1,
                (infinity - 1) | sign,
            ]
        }
    }
}

/// What the kernel may have written, as `; gives:` states it.
pub(super) fn write(func: &Func, values: &[Value]) -> String {
    let mut parts = Vec::new();
    for (parameter, value) in func.parameters.iter().zip(values) {
        if let Value::Memory(dtype, Access::ReadWrite, memory) = value {
            let size = dtype.bytes() as usize;
            let numbers = memory.bytes().chunks_exact(size).map(|bytes| {
                let bits = canonical(*dtype, read_number(*dtype, bytes));
                format(Literal::from_bits(*dtype, bits))
            });
            let numbers: Vec<String> = numbers.collect();
            parts.push(format!("{}=[{}]", parameter.name, numbers.join(", ")));
        }
    }
    parts.join(", ")
}
