//! What stands for a compiler of GPU code in a build without the feature `nvptx`.

use exactile_core::ir::Grid;
use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;

use crate::cuda::{GridMapping, Ptx};
use crate::error::{Error, Result};
use crate::listing::Listing;

fn absent<T>() -> Result<T> {
    let message = "GPU code needs a build with the feature `nvptx`";
    Err(Error::Device(message.to_string()))
}

/// Says what is missing.
pub(crate) fn shipped(_target: &Target) -> Result<(String, Target)> {
    absent()
}

/// There is nothing that works.
pub(crate) fn prepare() -> Result<()> {
    Ok(())
}

/// Says what is missing.
pub(crate) fn ptx(
    _func: &LaneFunc,
    _target: &Target,
    _grid: GridMapping,
    _shown: (bool, bool),
) -> Result<Ptx> {
    absent()
}

/// Says what is missing.
pub(crate) fn assemble(_ptx: &mut Ptx) -> Result<bool> {
    absent()
}

/// Nothing makes code.
pub(crate) fn maker() -> Option<String> {
    None
}

/// Says what is missing.
pub fn listing(_func: &LaneFunc, _target: &Target, _grid: Grid) -> Result<Listing> {
    absent()
}
