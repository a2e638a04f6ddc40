//! Kernels on a device.

use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use exactile_core::target::Target;

use crate::driver::Context;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::ptx::Ptx;

/// A kernel on a device.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) entry: Entry,
}

impl Kernel {
    /// What it was loaded from.
    pub fn ptx(&self) -> &Arc<Ptx> {
        &self.entry.ptx
    }

    /// Registers of a thread.
    pub fn registers(&self) -> Result<u32> {
        self.entry
            .attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of local memory of a thread: spilled registers and stack.
    pub fn local_bytes(&self) -> Result<u32> {
        self.entry
            .attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// Bytes of shared memory of a thread block.
    pub fn shared_bytes(&self) -> Result<u32> {
        let fixed = self
            .entry
            .attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(fixed + self.entry.ptx.shared_bytes())
    }

    /// How many threads a multiprocessor runs at once, of whatever kernels.
    pub fn threads_per_multiprocessor(&self) -> Result<u32> {
        self.entry.device_attribute(
            CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        )
    }

    /// How many thread blocks fit a multiprocessor at once.
    pub fn blocks_per_multiprocessor(&self) -> Result<u32> {
        self.entry.blocks_per_multiprocessor()
    }
}

impl Context {
    /// The machine that code for this device is made for, with what assembles it.
    pub fn target(&self) -> Result<Target> {
        let (major, minor) = self.compute_capability()?;
        let target = Target::of_capability((major, minor));
        #[cfg(feature = "llvm")]
        let target = target.map(|it| {
            let keeps = it.gpu.mma.is_empty() || crate::keeps_operands(false);
            it.holding(keeps)
        });
        target.map_or_else(
            || {
                Err(Error::NoDevice(format!(
                    "`{}` has compute capability {major}.{minor}, for which no code is made; known are {}",
                    self.name()?,
                    Target::GPUS.iter().map(|gpu| gpu.name).collect::<Vec<_>>().join(", ")
                )))
            },
            Ok,
        )
    }

    /// Has the driver load machine code, or compile PTX.
    pub fn load(&self, ptx: Arc<Ptx>) -> Result<Kernel> {
        Ok(Kernel {
            entry: self.load_entry(ptx)?,
        })
    }

    /// The number of multiprocessors.
    pub fn multiprocessors(&self) -> Result<u32> {
        self.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Major and minor compute capability.
    pub fn compute_capability(&self) -> Result<(u32, u32)> {
        let major = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        Ok((self.attribute(major)?, self.attribute(minor)?))
    }
}
