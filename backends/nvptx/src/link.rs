//! Machine code by the linker of the driver, for those who want to keep it.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use cudarc::driver::sys::{self, CUjit_option, CUjitInputType};

use crate::driver::{Context, call, text_of};
use crate::error::{Error, Result};
use crate::ptx::{Ptx, names_lines};

/// A linking under way, with the room that the driver may write its complaints to until the end.
struct Linking {
    state: sys::CUlinkState,
    log: Vec<u8>,
    /// The driver looks at them until the end, too.
    _values: Box<[*mut c_void; 3]>,
}

impl Drop for Linking {
    fn drop(&mut self) {
        let _ = call!(cuLinkDestroy(self.state));
    }
}

impl Linking {
    /// With a table of lines in the code, or without one.
    fn new(lines: bool) -> Result<Self> {
        let mut log = vec![0u8; 8192];
        let mut options = [
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
            CUjit_option::CU_JIT_GENERATE_LINE_INFO,
        ];
        let room: *mut c_void = log.as_mut_ptr().cast();
        let lines = usize::from(lines) as *mut c_void;
        let mut values = Box::new([room, log.len() as *mut c_void, lines]);
        let mut state = null_mut();
        call!(cuLinkCreate_v2(
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
            &mut state,
        ))?;
        Ok(Self {
            state,
            log,
            _values: values,
        })
    }

    /// The machine code of a text for the device of the current context.
    fn link(&mut self, text: &str, name: &str) -> Result<Vec<u8>> {
        let none = |error: std::ffi::NulError| Error::BadImage(error.to_string());
        let (text, name) = (
            CString::new(text).map_err(none)?,
            CString::new(name).map_err(none)?,
        );
        let bytes = text.as_bytes_with_nul();
        call!(cuLinkAddData_v2(
            self.state,
            CUjitInputType::CU_JIT_INPUT_PTX,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len(),
            name.as_ptr(),
            0,
            null_mut(),
            null_mut(),
        ))?;
        let (mut code, mut size) = (null_mut(), 0);
        call!(cuLinkComplete(self.state, &mut code, &mut size))?;
        if code.is_null() {
            return Err(Error::BadImage("the linker made nothing".to_string()));
        }
        // SAFETY: the driver says where the code is and how long; it stays until the end of the linking.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec())
    }
}

impl Context {
    /// Has the driver make machine code of a text, so that it can be kept; whether there was a text.
    ///
    /// # Errors
    /// When the linker of the driver refuses the text, or there is none.
    pub fn link(&self, ptx: &mut Ptx) -> Result<bool> {
        if ptx.machine_code.is_some() {
            return Ok(false);
        }
        self.make_current()?;
        let mut linking = Linking::new(names_lines(&ptx.text))?;
        let code = linking.link(&ptx.text, &ptx.name).map_err(|error| {
            let log = text_of(&linking.log);
            Error::BadImage(format!("{error}\n{log}"))
        })?;
        ptx.machine_code = Some(code);
        Ok(true)
    }
}
