//! From the arguments and the grid of a launch to what the driver takes.

use std::ops::Range;

use exactile_core::ir::{Access, Grid, Literal, Type};

use crate::codegen::GridMapping;
use crate::driver::DeviceBuffer;
use crate::error::{Error, Result};
use crate::ptx::{Hidden, Ptx};

/// The greatest extents of a launch grid.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// One argument of a launch.
#[derive(Clone, Copy, Debug)]
pub enum KernelArgument<'a> {
    /// Memory of the device, whole: its length is what checks compare with.
    Buffer(&'a DeviceBuffer),
    /// A scalar.
    Scalar(Literal),
}

/// The grid of thread blocks, and the values of all parameters, each in the low bytes of a word.
pub(crate) struct Marshalled {
    pub(crate) grid: Grid,
    pub(crate) words: Vec<u64>,
}

/// Whether the device takes the extents axis by axis.
pub(crate) fn fits_directly(grid: Grid) -> bool {
    grid.iter()
        .zip(MAX_GRID)
        .all(|(&extent, most)| extent <= most)
}

/// Checks the arguments against the kernel's parameters and lays them out.
pub(crate) fn marshal(
    ptx: &Ptx,
    grid: Grid,
    arguments: &[KernelArgument<'_>],
    error_record: Option<u64>,
) -> Result<Marshalled> {
    if arguments.len() != ptx.parameters().len() {
        return Err(Error::Arguments(format!(
            "kernel `{}` takes {} arguments, found {}",
            ptx.name(),
            ptx.parameters().len(),
            arguments.len()
        )));
    }
    let mut words = Vec::with_capacity(arguments.len() + ptx.hidden().len());
    for (index, argument) in arguments.iter().enumerate() {
        words.push(argument_word(ptx, index, argument)?);
    }
    check_overlap(ptx, arguments)?;
    for hidden in ptx.hidden() {
        words.push(match hidden {
            Hidden::Length(index) => elements(ptx, *index, &arguments[*index]),
            Hidden::ErrorRecord => error_record.ok_or_else(|| {
                Error::Arguments(format!("kernel `{}` needs an error record", ptx.name()))
            })?,
            Hidden::GridExtent(axis) => u64::from(grid[usize::from(*axis)]),
        });
    }
    Ok(Marshalled {
        grid: thread_blocks(ptx.grid(), grid)?,
        words,
    })
}

fn argument_word(ptx: &Ptx, index: usize, argument: &KernelArgument<'_>) -> Result<u64> {
    let (parameter, ty) = &ptx.parameters()[index];
    let wrong = |found: String, expected: String| {
        Err(Error::Arguments(format!(
            "argument `{}`: found {found}, expected {expected}",
            parameter.name
        )))
    };
    let divisor = u64::from(parameter.divisor.max(1));
    match (argument, ty.pointee()) {
        (KernelArgument::Buffer(buffer), Some((dtype, _))) => {
            let size = u64::from(dtype.bytes());
            if !(buffer.len() as u64).is_multiple_of(size) {
                let found = format!("{} bytes", buffer.len());
                return wrong(found, format!("whole elements of `{dtype}`"));
            }
            let divisor = divisor.max(size);
            if !buffer.address().is_multiple_of(divisor) {
                let expected = format!("an address divisible by {divisor}");
                return wrong("an unaligned address".to_string(), expected);
            }
            Ok(buffer.address())
        }
        (KernelArgument::Scalar(literal), None) => {
            if *ty != Type::scalar(literal.dtype) {
                return wrong(format!("a scalar `{}`", literal.dtype), format!("`{ty}`"));
            }
            match literal.integer() {
                Some(value) if value % i128::from(divisor) != 0 => {
                    wrong(format!("`{value}`"), format!("a multiple of {divisor}"))
                }
                _ => Ok(literal.bits),
            }
        }
        (KernelArgument::Buffer(_), None) => wrong("memory".to_string(), format!("`{ty}`")),
        (KernelArgument::Scalar(literal), Some(_)) => {
            wrong(format!("a scalar `{}`", literal.dtype), format!("`{ty}`"))
        }
    }
}

fn elements(ptx: &Ptx, index: usize, argument: &KernelArgument<'_>) -> u64 {
    let bytes = match argument {
        KernelArgument::Buffer(buffer) => buffer.len() as u64,
        KernelArgument::Scalar(_) => 0,
    };
    let pointee = ptx.parameters()[index].1.pointee();
    pointee.map_or(0, |(dtype, _)| bytes / u64::from(dtype.bytes()))
}

/// Written memory must not be reached through two parameters: the optimiser relies on it.
fn check_overlap(ptx: &Ptx, arguments: &[KernelArgument<'_>]) -> Result<()> {
    let buffers: Vec<(usize, &DeviceBuffer)> = arguments
        .iter()
        .enumerate()
        .filter_map(|(index, argument)| match argument {
            KernelArgument::Buffer(buffer) if !buffer.is_empty() => Some((index, *buffer)),
            KernelArgument::Buffer(_) | KernelArgument::Scalar(_) => None,
        })
        .collect();
    for (position, &(first, one)) in buffers.iter().enumerate() {
        for &(second, other) in &buffers[position + 1..] {
            let [a, b] = [first, second].map(|index| &ptx.parameters()[index].0);
            let written = a.access == Access::ReadWrite || b.access == Access::ReadWrite;
            if written && overlap(&bytes_of(one), &bytes_of(other)) {
                return Err(Error::Arguments(format!(
                    "arguments `{}` and `{}` share memory that the kernel writes",
                    a.name, b.name
                )));
            }
        }
    }
    Ok(())
}

fn bytes_of(buffer: &DeviceBuffer) -> Range<u64> {
    buffer.address()..buffer.address() + buffer.len() as u64
}

/// Whether two ranges, neither of them empty, share a byte.
fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn thread_blocks(mapping: GridMapping, grid: Grid) -> Result<Grid> {
    if grid.contains(&0) {
        return Err(Error::Limit(format!(
            "grid {grid:?} is empty along an axis"
        )));
    }
    match mapping {
        GridMapping::Direct if fits_directly(grid) => Ok(grid),
        GridMapping::Direct => Err(Error::Limit(format!(
            "grid {grid:?} exceeds {MAX_GRID:?} and is not linearised"
        ))),
        GridMapping::Linear => {
            let programs = grid.iter().try_fold(1u64, |product, &extent| {
                product.checked_mul(u64::from(extent))
            });
            let width = programs.map(|programs| programs.min(u64::from(MAX_GRID[0])));
            let rows = programs
                .zip(width)
                .map(|(programs, width)| programs.div_ceil(width));
            match (width, rows) {
                (Some(width), Some(rows)) if rows <= u64::from(MAX_GRID[1]) => {
                    Ok([width as u32, rows as u32, 1])
                }
                _ => Err(Error::Limit(format!("grid {grid:?} has too many programs"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_where_they_share_a_byte() {
        let inner = 16..24;
        for other in [16..24, 0..17, 23..64, 18..20, 0..64] {
            assert!(
                overlap(&inner, &other) && overlap(&other, &inner),
                "{other:?}"
            );
        }
        for other in [0..16, 24..32] {
            assert!(
                !overlap(&inner, &other) && !overlap(&other, &inner),
                "{other:?}"
            );
        }
    }

    #[test]
    fn grids_are_split_within_the_limits() {
        let linear = |grid| thread_blocks(GridMapping::Linear, grid);
        assert_eq!(linear([2, 70000, 3]).expect("fits"), [420_000, 1, 1]);
        let [width, rows, 1] = linear([u32::MAX, 5, 1]).expect("fits") else {
            panic!("a third axis");
        };
        assert!(width <= MAX_GRID[0] && rows <= MAX_GRID[1]);
        assert!(u64::from(width) * u64::from(rows) >= 5 * u64::from(u32::MAX));
        assert!(linear([u32::MAX, u32::MAX, u32::MAX]).is_err());
        assert!(linear([1, 0, 1]).is_err());
        let direct = |grid| thread_blocks(GridMapping::Direct, grid);
        assert_eq!(direct([7, 65535, 1]).expect("fits"), [7, 65535, 1]);
        let message = direct([1, 65536, 1]).expect_err("too tall").to_string();
        assert!(message.contains("[1, 65536, 1]"), "{message}");
    }
}
