//! A launch: arguments bound to parameters, assumptions read off them, code found or made, run.

use std::sync::Arc;

use exactile_core::backend::{Argument, LaunchError};
use exactile_core::ir::{Class, Func, Grid, Literal};
use exactile_core::target::Options;
use exactile_core::verify::{self, BlockFunc};

use crate::buffer::Storage;
use crate::cache::{CodeKey, LaunchKey};
use crate::compile::{Compiled, compile};
use crate::device::Device;
use crate::error::{Error, Result};

/// The divisor of addresses and integers that the compiler is told about: bytes of the widest
/// access.
const DIVISOR: u32 = 16;

/// An argument bound to a parameter.
pub(crate) enum Bound<'a> {
    /// Memory that the kernel reads.
    Read(&'a Device, &'a Storage),
    /// Memory that the kernel may write.
    ReadWrite(&'a Device, &'a mut Storage),
    /// A number.
    Scalar(Literal),
}

impl Bound<'_> {
    fn device(&self) -> Option<&Device> {
        match self {
            Self::Read(device, _) | Self::ReadWrite(device, _) => Some(device),
            Self::Scalar(_) => None,
        }
    }

    /// What is known to divide the address or the value.
    fn divisor(&self) -> u32 {
        let divides = match self {
            Self::Read(_, storage) => storage.address().is_multiple_of(u64::from(DIVISOR)),
            Self::ReadWrite(_, storage) => storage.address().is_multiple_of(u64::from(DIVISOR)),
            Self::Scalar(literal) => match literal.dtype.class() {
                Class::Signed | Class::Unsigned => literal
                    .integer()
                    .is_some_and(|value| value % i128::from(DIVISOR) == 0),
                Class::Bool | Class::Float => false,
            },
        };
        if divides { DIVISOR } else { 1 }
    }
}

/// Finds or makes the code of a kernel for arguments like these.
///
/// `identity` tells the kernel from all others, and `trace` gives its IR when it is needed.
pub(crate) fn prepare(
    device: &Device,
    identity: &str,
    options: &Options,
    arguments: &[Bound<'_>],
    trace: impl FnOnce() -> Result<BlockFunc>,
) -> Result<Arc<Compiled>> {
    let divisors: Vec<u32> = arguments.iter().map(Bound::divisor).collect();
    let launch = LaunchKey(format!("{identity} {options:?} {divisors:?}"));
    if let Some(compiled) = device.cache().launched(&launch) {
        return Ok(compiled);
    }
    let func = specialise(trace()?, &divisors)?;
    let code = CodeKey(format!("{} {options:?}\n{}", device.kind_name(), *func));
    device
        .cache()
        .code(launch, code, || compile(func, device, options))
}

/// Writes the known divisors into the parameters.
pub(crate) fn specialise(func: BlockFunc, divisors: &[u32]) -> Result<BlockFunc> {
    let name = func.name.clone();
    let mut func: Func = func.into_inner();
    for (parameter, &divisor) in func.parameters.iter_mut().zip(divisors) {
        parameter.divisor = parameter.divisor.max(divisor);
    }
    verify::block(func).map_err(|diagnostics| Error::Compile {
        kernel: name,
        diagnostics,
    })
}

/// Runs compiled code; on the host it has ended when this returns.
pub(crate) fn run(
    device: &Device,
    compiled: &Compiled,
    grid: Grid,
    arguments: Vec<Bound<'_>>,
) -> Result<()> {
    for (index, argument) in arguments.iter().enumerate() {
        if let Some(place) = argument.device()
            && !place.shares_memory_with(device)
        {
            return Err(Error::Placement {
                index,
                found: place.to_string(),
                expected: device.to_string(),
            });
        }
    }
    if grid.contains(&0) {
        // No program, nothing to do; an empty input is not an error.
        return Ok(());
    }
    let mut host: Vec<Argument<'_>> = arguments
        .into_iter()
        .map(|argument| match argument {
            Bound::Read(_, Storage::Host(memory)) => Argument::Read(memory.bytes()),
            Bound::ReadWrite(_, Storage::Host(memory)) => Argument::ReadWrite(memory.bytes_mut()),
            Bound::Scalar(literal) => Argument::Scalar(literal),
        })
        .collect();
    compiled.code.run(grid, &mut host)
}

/// A number of programs along up to three axes: `8`, `(8, 4)`, `(8, 4, 2)` or `[8, 4, 2]`.
pub trait IntoGrid {
    /// The extents, 1 for axes not given; too large or negative ones are an error.
    fn into_grid(self) -> Result<Grid>;
}

fn extent(value: impl TryInto<u32> + std::fmt::Display + Copy) -> Result<u32> {
    value.try_into().map_err(|_| {
        Error::Invalid(format!(
            "grid extent `{value}` is not between 0 and {}",
            u32::MAX
        ))
    })
}

macro_rules! grids {
    ($($Integer:ty)*) => { $(
        impl IntoGrid for $Integer {
            fn into_grid(self) -> Result<Grid> {
                Ok([extent(self)?, 1, 1])
            }
        }
        impl IntoGrid for [$Integer; 3] {
            fn into_grid(self) -> Result<Grid> {
                Ok([extent(self[0])?, extent(self[1])?, extent(self[2])?])
            }
        }
    )* };
}
grids!(i32 i64 isize u32 u64 usize);

impl<A, B> IntoGrid for (A, B)
where
    A: TryInto<u32> + std::fmt::Display + Copy,
    B: TryInto<u32> + std::fmt::Display + Copy,
{
    fn into_grid(self) -> Result<Grid> {
        Ok([extent(self.0)?, extent(self.1)?, 1])
    }
}

impl<A, B, C> IntoGrid for (A, B, C)
where
    A: TryInto<u32> + std::fmt::Display + Copy,
    B: TryInto<u32> + std::fmt::Display + Copy,
    C: TryInto<u32> + std::fmt::Display + Copy,
{
    fn into_grid(self) -> Result<Grid> {
        Ok([extent(self.0)?, extent(self.1)?, extent(self.2)?])
    }
}

/// The arguments do not fit the kernel.
pub(crate) fn arguments_error(kernel: &str, message: impl Into<String>) -> Error {
    Error::Launch {
        kernel: kernel.to_string(),
        source: LaunchError::Arguments(message.into()),
    }
}
