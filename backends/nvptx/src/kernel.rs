//! Kernels on a device, compiled when they are first needed.

use std::sync::OnceLock;

use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;

use crate::codegen::{EmitOptions, GridMapping, emit, emit_with};
use crate::driver::{Context, Entry};
use crate::error::{Error, Result};
use crate::ptx::Ptx;

/// A kernel on a device. The variant for grids that must be linearised is compiled when one comes.
#[derive(Debug)]
pub struct Kernel {
    func: LaneFunc,
    pub(crate) direct: Entry,
    linear: OnceLock<Entry>,
}

impl Kernel {
    /// The PTX.
    pub fn ptx(&self) -> &Ptx {
        &self.direct.ptx
    }

    /// Registers of a thread.
    pub fn registers(&self) -> Result<u32> {
        self.direct
            .attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
    }

    /// Bytes of local memory of a thread: spilled registers and stack.
    pub fn local_bytes(&self) -> Result<u32> {
        self.direct
            .attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    }

    /// The variant for linearised grids.
    pub(crate) fn linear(&self) -> Result<&Entry> {
        if let Some(entry) = self.linear.get() {
            return Ok(entry);
        }
        let options = EmitOptions {
            grid: GridMapping::Linear,
            ..EmitOptions::new(self.direct.ptx.target)
        };
        let ptx = emit_with(&self.func, self.direct.ptx.name(), options)?;
        let entry = self.direct.module.context.load_entry(ptx)?;
        Ok(self.linear.get_or_init(|| entry))
    }
}

impl Context {
    /// Compiles a kernel for this device.
    pub fn compile(&self, func: &LaneFunc, name: &str) -> Result<Kernel> {
        self.load(func, emit(func, &self.target()?, name)?)
    }

    /// The machine that code for this device is made for.
    pub fn target(&self) -> Result<Target> {
        let (major, minor) = self.compute_capability()?;
        Target::of_capability((major, minor)).map_or_else(
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

    /// Has the driver compile what [`emit`] made of `func`.
    pub fn load(&self, func: &LaneFunc, ptx: Ptx) -> Result<Kernel> {
        Ok(Kernel {
            func: func.clone(),
            direct: self.load_entry(ptx)?,
            linear: OnceLock::new(),
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
