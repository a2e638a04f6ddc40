//! The CUDA driver, opened at run time: devices and kernels.
//!
//! Every object keeps its context alive and makes it current before it calls, so objects may be
//! used from any thread.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ffi::{CStr, c_char};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use crate::buffer::pool_of;
use crate::error::{Error, Result};
use crate::library::words;
use crate::padded::Copiers;

/// The oldest driver interface that takes the PTX of this crate, as `cuDriverGetVersion` counts.
pub const LEAST_DRIVER: i32 = 12080;

/// Calls a driver function and gives its code.
///
/// Sound because handles come from the driver and live as long as their owner, and pointers are to locals or to slices
/// that outlive the call or the stream's work on them. It is an error where the library or the function is missing.
macro_rules! ask {
    ($function:ident($($argument:expr),* $(,)?)) => {{
        static KNOWN: std::sync::OnceLock<()> = std::sync::OnceLock::new();
        let found = match KNOWN.get() {
            Some(()) => Ok(()),
            None => $crate::library::find(&KNOWN, stringify!($function)),
        };
        match found {
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

#[inline]
pub(crate) fn check(call: &'static str, code: CUresult) -> Result<()> {
    match code == CUresult::CUDA_SUCCESS {
        true => Ok(()),
        false => Err(error_of(call, code)),
    }
}

#[cold]
fn error_of(call: &'static str, code: CUresult) -> Error {
    let mut text: *const c_char = std::ptr::null();
    // A code without a text leaves none.
    let _ = ask!(cuGetErrorString(code, &mut text));
    // SAFETY: the driver sets the pointer to a static string or to null.
    let reason = (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
    let reason = reason.map(std::borrow::Cow::into_owned);
    let reason = reason.unwrap_or_else(|| "unknown error".to_string());
    let reason = format!("{reason} ({code:?})");
    match BAD_IMAGE.contains(&code) {
        true => Error::BadImage(format!("`{call}` failed: {reason}")),
        false => Error::Driver { call, reason },
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
    copiers: Mutex<Copiers>,
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
            copiers: Mutex::default(),
        };
        call!(cuCtxSetCurrent(context))?;
        inner.pool = pool_of(device);
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

    /// The kernels that copy rows, as far as somebody has them.
    pub(crate) fn copiers(&self) -> MutexGuard<'_, Copiers> {
        // Each change is one assignment.
        let copiers = self.inner.copiers.lock();
        copiers.unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks first, which costs less than to set what is set.
    pub(crate) fn make_current(&self) -> Result<()> {
        let mut current = null_mut();
        call!(cuCtxGetCurrent(&mut current))?;
        match current == self.inner.context {
            true => Ok(()),
            false => call!(cuCtxSetCurrent(self.inner.context)),
        }
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
