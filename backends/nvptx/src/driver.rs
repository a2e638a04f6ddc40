//! The CUDA driver, opened at run time: devices and kernels.
//!
//! Every object keeps its context alive and makes it current before it calls, so objects may be
//! used from any thread.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction_attribute, CUjit_option, CUresult};
use exactile_core::ir::Grid;
use exactile_core::launch::{Launch, Passed};
use smallvec::SmallVec;

use crate::buffer::pool_of;
use crate::error::{Error, Result};
use crate::inlined::with_place;
use crate::kernel::Kernel;
use crate::launch::{FEW, marshal};
use crate::library::words;
use crate::ptx::Ptx;
use crate::stream::{Module, Stream};

/// The oldest driver interface that takes the PTX of this crate, as `cuDriverGetVersion` counts.
pub const LEAST_DRIVER: i32 = 12080;

/// Calls a driver function and gives its code.
///
/// Sound because handles come from the driver and live as long as their owner, and pointers are to locals or to slices
/// that outlive the call or the stream's work on them. It is an error where the library or the function is missing.
macro_rules! ask {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        static KNOWN: std::sync::OnceLock<()> = std::sync::OnceLock::new();
        match $crate::library::find(&KNOWN, stringify!($function)) {
            // SAFETY: see the macro's documentation.
            Ok(()) => Ok(unsafe { sys::$function($($argument),*) }),
            Err(missing) => Err(missing),
        }
    }};
}
pub(crate) use ask;

/// [`ask`], with the code turned into an error.
macro_rules! call {
    ($function:ident($($argument:expr),* $(,)?)) => {
        match $crate::driver::ask!($function($($argument),*)) {
            Ok(code) => $crate::driver::check(stringify!($function), code),
            Err(missing) => Err(missing),
        }
    };
}
pub(crate) use call;

mod maps;

use maps::Maps;

/// What the driver says of code that it can never load; all else may be mended, such as a lack of memory.
const BAD_IMAGE: [CUresult; 7] = [
    CUresult::CUDA_ERROR_INVALID_IMAGE,
    CUresult::CUDA_ERROR_INVALID_SOURCE,
    CUresult::CUDA_ERROR_INVALID_PTX,
    CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU,
    CUresult::CUDA_ERROR_NOT_FOUND,
    CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
];

pub(crate) fn check(call: &'static str, code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text: *const c_char = std::ptr::null();
    // A code without a text leaves none.
    let _ = ask!(cuGetErrorString(code, &mut text));
    // SAFETY: the driver sets the pointer to a static string or to null.
    let reason = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let reason = reason.map(std::borrow::Cow::into_owned);
    let reason = reason.unwrap_or_else(|| "unknown error".to_string());
    let reason = format!("{reason} ({code:?})");
    match BAD_IMAGE.contains(&code) {
        true => Err(Error::BadImage(format!("`{call}` failed: {reason}"))),
        false => Err(Error::Driver { call, reason }),
    }
}

/// The driver library.
#[derive(Debug)]
pub struct Driver;

impl Driver {
    /// Opens the library once; an error says what is missing.
    fn open() -> Result<()> {
        static OPENED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
        let opened = OPENED.get_or_init(|| Self::initialize().map_err(|error| error.to_string()));
        opened.clone().map_err(Error::NoDevice)
    }

    fn initialize() -> Result<()> {
        call!(cuInit(0))?;
        let mut version = 0;
        call!(cuDriverGetVersion(&mut version))?;
        if version < LEAST_DRIVER {
            let [found, least] = [version, LEAST_DRIVER].map(words);
            return Err(Error::Tool(format!(
                "the driver is for CUDA {found}, expected {least}"
            )));
        }
        Ok(())
    }

    /// The newest CUDA that the driver is for, as 1000 times the major and 10 times the minor version; nothing where
    /// there is no driver. Needs no device.
    pub fn version() -> Option<i32> {
        let mut version = 0;
        call!(cuDriverGetVersion(&mut version)).ok()?;
        Some(version)
    }

    /// The number of devices.
    pub fn device_count() -> Result<usize> {
        Self::open()?;
        let mut count = 0;
        call!(cuDeviceGetCount(&mut count))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

/// The primary context of a device. Clones share it.
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<ContextInner>,
}

#[derive(Debug)]
struct ContextInner {
    device: sys::CUdevice,
    context: sys::CUcontext,
    /// Where memory comes from, unless the device has no pools.
    pool: Option<sys::CUmemoryPool>,
}

// SAFETY: contexts may be made current on any thread.
unsafe impl Send for ContextInner {}
// SAFETY: the driver's functions may be called from several threads at once.
unsafe impl Sync for ContextInner {}

impl Drop for ContextInner {
    fn drop(&mut self) {
        // An error here has nobody to go to; the process is ending or the device is lost.
        if let Some(pool) = self.pool {
            let _ = call!(cuMemPoolDestroy(pool));
        }
        let _ = call!(cuDevicePrimaryCtxRelease_v2(self.device));
    }
}

impl Context {
    /// The device with this index. An error names what is missing: library, driver, device.
    pub fn new(index: usize) -> Result<Self> {
        let count = Driver::device_count()?;
        if index >= count {
            return Err(Error::NoDevice(format!("device {index} of {count}")));
        }
        let mut device = 0;
        call!(cuDeviceGet(&mut device, index as i32))?;
        let mut context = null_mut();
        call!(cuDevicePrimaryCtxRetain(&mut context, device))?;
        // From here on it is released whatever fails.
        let mut inner = ContextInner {
            device,
            context,
            pool: None,
        };
        call!(cuCtxSetCurrent(context))?;
        inner.pool = pool_of(device)?;
        let inner = Arc::new(inner);
        Ok(Self { inner })
    }

    pub(crate) fn raw(&self) -> sys::CUcontext {
        self.inner.context
    }

    pub(crate) fn device(&self) -> sys::CUdevice {
        self.inner.device
    }

    pub(crate) fn pool(&self) -> Option<sys::CUmemoryPool> {
        self.inner.pool
    }

    pub(crate) fn make_current(&self) -> Result<()> {
        call!(cuCtxSetCurrent(self.inner.context))
    }

    /// The name of the device.
    pub fn name(&self) -> Result<String> {
        let mut name = [0u8; 256];
        call!(cuDeviceGetName(
            name.as_mut_ptr().cast(),
            name.len() as i32,
            self.inner.device
        ))?;
        Ok(text_of(&name))
    }

    /// An attribute of the device.
    pub(crate) fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        device_attribute(self.inner.device, attribute)
    }

    /// Has the driver load machine code, or compile PTX.
    pub(crate) fn load_entry(&self, ptx: Arc<Ptx>) -> Result<Entry> {
        self.make_current()?;
        let module = self.load_module(&ptx)?;
        let name = CString::new(ptx.name()).map_err(|error| Error::BadImage(error.to_string()))?;
        let mut function = null_mut();
        call!(cuModuleGetFunction(
            &mut function,
            module.module,
            name.as_ptr()
        ))?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        call!(cuFuncSetAttribute(
            function,
            attribute,
            ptx.shared_bytes() as i32
        ))?;
        Ok(Entry {
            module,
            function,
            ptx,
            multiprocessors: self.multiprocessors()?,
            maps: Maps::default(),
        })
    }

    fn load_module(&self, ptx: &Ptx) -> Result<Module> {
        let text = CString::new(ptx.text()).map_err(|error| Error::BadImage(error.to_string()))?;
        let source: *const c_void = match &ptx.machine_code {
            Some(code) => code.as_ptr().cast(),
            None => text.as_ptr().cast(),
        };
        let mut log = [0u8; 8192];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
        let mut module = null_mut();
        let loaded = call!(cuModuleLoadDataEx(
            &mut module,
            source,
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        ));
        if let Err(Error::BadImage(reason)) = loaded {
            let refusal = format!("{reason}\n{}", text_of(&log));
            return Err(Error::BadImage(with_place(ptx.text(), refusal)));
        }
        loaded?;
        Ok(Module {
            context: self.clone(),
            module,
        })
    }
}

/// An attribute of a device.
pub(crate) fn device_attribute(
    device: sys::CUdevice,
    attribute: CUdevice_attribute,
) -> Result<u32> {
    let mut value = 0;
    call!(cuDeviceGetAttribute(&mut value, attribute, device))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// What stands before the first zero.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// A loaded entry point.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) module: Module,
    function: sys::CUfunction,
    pub(crate) ptx: Arc<Ptx>,
    multiprocessors: u32,
    maps: Maps,
}

// SAFETY: a function handle is a part of its module.
unsafe impl Send for Entry {}
// SAFETY: as for the module.
unsafe impl Sync for Entry {}

impl Entry {
    /// An attribute of the function.
    pub(crate) fn attribute(&self, attribute: CUfunction_attribute) -> Result<u32> {
        self.module.context.make_current()?;
        let mut value = 0;
        call!(cuFuncGetAttribute(&mut value, attribute, self.function))?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// An attribute of the device that it is loaded on.
    pub(crate) fn device_attribute(&self, attribute: CUdevice_attribute) -> Result<u32> {
        self.module.context.attribute(attribute)
    }

    /// How many thread blocks fit a multiprocessor at once.
    pub(crate) fn blocks_per_multiprocessor(&self) -> Result<u32> {
        self.module.context.make_current()?;
        let (mut count, threads) = (0, self.ptx.threads() as i32);
        let shared = self.ptx.shared_bytes() as usize;
        call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut count,
            self.function,
            threads,
            shared
        ))?;
        Ok(u32::try_from(count).unwrap_or(0))
    }
}

impl Kernel {
    /// Puts a launch into `stream`. Arguments are checked against the parameters. Code that checks bounds is
    /// launched by [`Records::launch`](crate::Records::launch).
    ///
    /// # Safety
    /// All memory of the arguments is that of [`DeviceBuffer`]s of this device. Accesses that the kernel does
    /// not check must be in bounds of their buffers. No other work that is not ordered by `stream` may write
    /// what the kernel reads.
    pub unsafe fn launch(&self, stream: &Stream, grid: Grid, arguments: &[Passed]) -> Result<()> {
        // SAFETY: handed on to the caller.
        unsafe { self.queue(stream, grid, arguments, None) }
    }

    /// Puts a launch into `stream`, with the address of its record where the kernel checks bounds.
    ///
    /// # Safety
    /// As for [`Kernel::launch`]; a record is one of this device.
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &[Passed],
        error_record: Option<u64>,
    ) -> Result<()> {
        let entry = &self.entry;
        let launch = Launch {
            grid,
            arguments,
            error_record,
        };
        let mut launch = marshal(&entry.ptx, &launch, entry.multiprocessors)?;
        let mut pointers: SmallVec<[*mut c_void; FEW]> = launch
            .words
            .iter_mut()
            .map(|word| std::ptr::from_mut(word).cast())
            .collect();
        let mut maps = entry.maps.of(&entry.ptx, &launch.arrays)?;
        pointers.extend(maps.iter_mut().map(|map| std::ptr::from_mut(map).cast()));
        entry.module.context.make_current()?;
        let [x, y, z] = launch.grid;
        call!(cuLaunchKernel(
            entry.function,
            x,
            y,
            z,
            entry.ptx.threads,
            launch.programs,
            1,
            entry.ptx.shared_bytes * launch.programs,
            stream.stream,
            pointers.as_mut_ptr(),
            null_mut(),
        ))
    }
}
