//! How a kernel is run: what a tuner varies, and the checks that all kernels share.

use exactile::{Determinism, Error, Result, Schedule};
use serde::Serialize;

/// How a kernel is run. The default leaves every choice to the kernel and the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Setting {
    /// The tile size that the kernel varies; 0 lets the kernel choose.
    pub block: usize,
    /// A second extent that a kernel may vary, such as rows of a tile; 0 lets the kernel choose.
    pub width: usize,
    /// Warps of a thread block; 0 lets the compiler choose, and the CPU has none.
    pub warps: u32,
    /// Depth of software pipelines; 0 leaves it to the loops.
    pub stages: u32,
    /// Least number of thread blocks of a multiprocessor; 0 leaves it to the assembler.
    pub occupancy: u32,
    /// The level promised.
    #[serde(skip)]
    pub determinism: Determinism,
}

impl Setting {
    /// The same at another level.
    #[must_use]
    pub fn at(self, determinism: Determinism) -> Self {
        Self {
            determinism,
            ..self
        }
    }

    /// The part of it that every kernel's `Config` has.
    pub fn schedule(&self) -> Schedule {
        Schedule {
            warps: (self.warps != 0).then_some(self.warps),
            stages: self.stages,
            occupancy: self.occupancy,
        }
    }

    /// The tile size, or the kernel's choice.
    pub(crate) fn block_or(&self, otherwise: usize) -> usize {
        chosen(self.block, otherwise)
    }

    /// The second extent, or the kernel's choice.
    pub(crate) fn width_or(&self, otherwise: usize) -> usize {
        chosen(self.width, otherwise)
    }
}

fn chosen(given: usize, otherwise: usize) -> usize {
    match given {
        0 => otherwise,
        given => given,
    }
}

/// Whether a buffer of `len` elements is exactly an array of this shape.
pub(crate) fn check_shape(len: usize, shape: &[usize]) -> Result<()> {
    let elements = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e));
    if elements == Some(len) {
        return Ok(());
    }
    Err(Error::ShapeMismatch {
        found: vec![len],
        expected: shape.to_vec(),
    })
}

/// An extent as the kernels take it.
pub(crate) fn extent(extent: usize) -> Result<i32> {
    i32::try_from(extent)
        .map_err(|_| Error::Invalid(format!("extent {extent} is over {}", i32::MAX)))
}

/// An error unless the condition holds.
pub(crate) fn ensure(condition: bool, message: impl FnOnce() -> String) -> Result<()> {
    if condition {
        return Ok(());
    }
    Err(Error::Invalid(message()))
}
