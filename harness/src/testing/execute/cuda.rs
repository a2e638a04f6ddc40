//! Runs lane functions on the first GPU.

#![expect(
    unsafe_code,
    reason = "launches run without checks where the interpreter found no fault"
)]

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use exactile_core::ir::{Access, Grid};
use exactile_core::launch::{Argument, Passed, check_arguments, parameters};
use exactile_core::target::{BoundsError, Target};
use exactile_core::verify::LaneFunc;

use super::Outcome;
use exactile::internals::{Gpu, GpuCode, GpuMemory};
use exactile::{Error, Result};
use exactile_nvptx::Records;

/// The GPU, opened once, or why there is none.
fn gpu() -> std::result::Result<&'static Arc<Gpu>, String> {
    static GPU: OnceLock<std::result::Result<Arc<Gpu>, String>> = OnceLock::new();
    let opened = GPU.get_or_init(|| Gpu::open(0).map_err(|error| error.to_string()));
    opened.as_ref().map_err(Clone::clone)
}

/// Whether there is a GPU.
pub(super) fn available() -> std::result::Result<(), String> {
    gpu().map(drop)
}

/// The machine of the GPU; that of an H100 where there is none.
pub(super) fn target() -> Target {
    gpu().map_or(Target::SM_90A, |gpu| gpu.target())
}

/// Runs `func` on copies of the arguments in the memory of the GPU and copies results back.
///
/// # Safety
/// As for [`super::execute`].
pub(super) unsafe fn run(func: &LaneFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Outcome {
    let gpu = match gpu() {
        Ok(gpu) => gpu,
        Err(reason) => return Outcome::Unavailable(format!("no GPU: {reason}")),
    };
    let passed: Vec<Passed> = arguments.iter().map(Argument::passed).collect();
    if let Err(error) = check_arguments(&func.name, parameters(func), &passed) {
        return Outcome::Failed(error.to_string());
    }
    // SAFETY: handed on to the caller.
    unsafe { launch(gpu, func, grid, arguments) }
        .unwrap_or_else(|error| Outcome::Failed(error.to_string()))
}

/// # Safety
/// As for [`run`].
unsafe fn launch(
    gpu: &Arc<Gpu>,
    func: &LaneFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Result<Outcome> {
    let code = gpu.compile(func, grid)?;
    let mut memories = Vec::new();
    for argument in &*arguments {
        let bytes: &[u8] = match argument {
            Argument::Read(bytes) => bytes,
            Argument::ReadWrite(bytes) => bytes,
            Argument::Scalar(_) => &[],
        };
        let memory = GpuMemory::zeroed(gpu, bytes.len())?;
        memory.write(0, bytes)?;
        memories.push(memory);
    }
    let list: Vec<Passed> = arguments
        .iter()
        .zip(&memories)
        .map(|(argument, memory)| match argument {
            Argument::Scalar(literal) => Passed::Scalar(*literal),
            Argument::Read(_) => memory.buffer.passed(Access::Read),
            Argument::ReadWrite(_) => memory.buffer.passed(Access::ReadWrite),
        })
        .collect();
    // SAFETY: handed on to the caller; the memory is that of `memories`.
    let error = match unsafe { run_code(gpu, &code, grid, &list)? } {
        Ok(error) => error,
        Err(message) => return Ok(Outcome::Failed(message)),
    };
    for (argument, memory) in arguments.iter_mut().zip(&memories) {
        if let Argument::ReadWrite(bytes) = argument {
            bytes.copy_from_slice(&memory.read(0, bytes.len())?);
        }
    }
    Ok(error.map_or(Outcome::Done, Outcome::OutOfBounds))
}

/// Runs code to its end in the default stream, which orders it with the copies. Gives the least access out of bounds,
/// or why there was no launch.
///
/// # Safety
/// As for [`run`]; the memory of the arguments is that of the GPU.
unsafe fn run_code(
    gpu: &Arc<Gpu>,
    code: &GpuCode,
    grid: Grid,
    list: &[Passed],
) -> Result<std::result::Result<Option<BoundsError>, String>> {
    static RECORDS: OnceLock<Result<Mutex<Records<()>>>> = OnceLock::new();
    let (kernel, stream) = (&code.kernel, &*gpu.stream);
    let device = |error: exactile_nvptx::Error| Error::Device(error.to_string());
    if !kernel.ptx().has_bounds_checks() {
        // SAFETY: handed on to the caller.
        let launched = unsafe { kernel.launch(stream, grid, list) };
        if let Err(error) = launched {
            return Ok(Err(error.to_string()));
        }
        stream.synchronize().map_err(device)?;
        return Ok(Ok(None));
    }
    let records = RECORDS.get_or_init(|| gpu.records().map(Mutex::new));
    let records = records
        .as_ref()
        .map_err(|error| Error::Device(error.to_string()))?;
    let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: handed on to the caller.
    if let Err(error) = unsafe { records.launch(stream, kernel, grid, list) } {
        return Ok(Err(error.to_string()));
    }
    records.end(stream, ()).map_err(device)?;
    let ended = records.take_first(stream, true).map_err(device)?;
    Ok(Ok(ended.and_then(|((), error)| error)))
}
