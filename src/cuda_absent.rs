//! What stands for GPUs in a build without the feature `nvptx`: types without values, so that the
//! rest of the crate is the same in both builds.

use std::sync::Arc;

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::Passed;
use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;

use crate::error::{Error, Result};

fn absent<T>(what: &str) -> Result<T> {
    Err(Error::Device(format!(
        "{what} needs a build with the feature `nvptx`"
    )))
}

/// No GPU.
#[derive(Debug)]
pub enum Gpu {}

impl Gpu {
    pub(crate) fn open(ordinal: usize) -> Result<Arc<Self>> {
        absent(&format!("device `cuda:{ordinal}`"))
    }

    /// The machine that its code is made for.
    pub fn target(&self) -> Target {
        match *self {}
    }

    pub(crate) fn name(&self) -> &str {
        match *self {}
    }

    pub(crate) fn multiprocessors(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn load(&self, ptx: Ptx) -> Result<GpuCode> {
        match ptx {}
    }
}

/// No PTX.
#[derive(Debug)]
pub(crate) enum Ptx {}

impl Ptx {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match *self {}
    }

    pub(crate) fn from_bytes(_bytes: &[u8]) -> Option<Self> {
        None
    }
}

/// Nothing splits a grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GridMapping {
    Direct,
}

impl GridMapping {
    pub(crate) fn of(_grid: Grid) -> Self {
        Self::Direct
    }

    pub(crate) fn name(self) -> &'static str {
        "direct"
    }
}

/// Says what is missing.
pub(crate) fn ptx(_func: &LaneFunc, _target: &Target, _grid: GridMapping) -> Result<Ptx> {
    absent("GPU code")
}

/// There is no PTX to assemble.
pub(crate) fn assemble(ptx: &mut Ptx) -> Result<bool> {
    match *ptx {}
}

/// Nothing makes code of a GPU.
pub(crate) fn compiler() -> Option<String> {
    None
}

/// No clock.
#[derive(Debug)]
pub enum Clock {}

impl Clock {
    /// There is no GPU to time.
    pub fn new(gpu: &Arc<Gpu>, _flush: usize) -> Result<Self> {
        match **gpu {}
    }

    /// There is no clock to ask.
    pub fn time(&mut self, _launch: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
        match *self {}
    }
}

/// No code.
#[derive(Debug)]
pub(crate) enum GpuCode {}

impl GpuCode {
    pub(crate) fn ptx(&self) -> &Ptx {
        match *self {}
    }
}

/// No memory.
#[derive(Debug)]
pub(crate) enum GpuMemory {}

impl GpuMemory {
    pub(crate) fn zeroed(gpu: &Arc<Gpu>, _len: usize) -> Result<Self> {
        match **gpu {}
    }

    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn passed(&self, _access: Access) -> Passed {
        match *self {}
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _bytes: &[u8]) -> Result<()> {
        match *self {}
    }

    pub(crate) fn fill(&mut self, _byte: u8) -> Result<()> {
        match *self {}
    }
}

/// No listing.
pub struct Listing {
    pub llvm_ir: String,
    pub optimized_llvm_ir: String,
    pub ptx: String,
}

/// Says what is missing.
pub fn listing(_func: &LaneFunc, _target: &Target) -> Result<Listing> {
    absent("GPU code")
}
