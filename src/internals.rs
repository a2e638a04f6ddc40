//! What the harness of this repository needs and a user does not: recorded launches, what compiling
//! has cost, and the GPU behind a device. It may change at any time.

use std::panic::Location;
use std::sync::Arc;

pub use exactile_core::schedule::cost::Cost;
use exactile_core::verify::BlockFunc;
pub use exactile_store::{Entry, FOLDER as CACHE_FOLDER, Limits, SWITCH as CACHE_SWITCH, Store};

pub use crate::ahead::{Job, compile_all, estimated, in_turn, threads};
pub use crate::buffer::POISON;
pub use crate::cache::Costs;
pub use crate::cuda::{BareLaunch, Clock as GpuClock, Gpu};
#[cfg(feature = "cuda")]
pub use crate::cuda::{GpuCode, GpuMemory};
use crate::device::Device;
use crate::error::Result;
pub use crate::files::{Contents, write as write_file, write_all as write_files};
use crate::graph::Graph;
use crate::inspection::Inspection;
use crate::kernel::Kernel;
pub use crate::made::listing as gpu_listing;
pub use crate::memory::HostMemory;
#[cfg(feature = "nvptx")]
pub use exactile_nvptx::Assembler as GpuAssembler;

/// What the launches of `work` by this thread on `device` would compile. They do nothing else.
pub fn record(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Vec<Job>> {
    device.record(work)
}

/// What compiling for `device` has cost so far.
pub fn costs(device: &Device) -> Costs {
    device.cache().costs()
}

/// How many launches on `device` are kept, for later ones that are like them to find nothing out again.
pub fn kept_launches(device: &Device) -> usize {
    device.cache().kept_launches()
}

/// Drops the compiled code of `device`; what still uses it keeps it.
pub fn forget_code(device: &Device) {
    device.cache().forget_code();
}

/// The programs that make code for GPUs, by versions; nothing in a build without them.
pub fn maker() -> Option<String> {
    crate::made::maker()
}

/// The GPU that `device` is, if it is one.
pub fn gpu(device: &Device) -> Option<&Arc<Gpu>> {
    device.gpu()
}

/// The trace of a kernel for launches that leave out each optional parameter of which this says so, in their order.
pub fn trace_without<P>(kernel: &Kernel<P>, left_out: &[bool]) -> Result<BlockFunc> {
    kernel.trace_with(left_out)
}

/// The launches that `work` puts into the default stream, in place of a stream of its own.
#[track_caller]
pub fn capture(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Graph> {
    let queue = (device, device.default_stream());
    Graph::of(queue, Location::caller(), work)
}

/// The launch of an inspection as one call of the driver, with nothing around it; nothing where the device is no GPU.
pub fn bare_launch<'a>(
    device: &Device,
    inspection: &'a Inspection,
) -> Result<Option<BareLaunch<'a>>> {
    let launch = device.gpu().zip(inspection.gpu_launch());
    launch
        .map(|(gpu, (code, launch))| gpu.bare_launch(code, &launch))
        .transpose()
}
