//! Whether the results of a candidate are right.

use exactile_core::target::Determinism;

use super::Workload;
use crate::apart::own_default;
use crate::array::Array;
use crate::capture::refuse;
use crate::compare::{Tolerance, compare_within};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::failure::Own;
use crate::panics;

/// Runs a candidate once and says how its results differ from the golden run, if they do; `earlier`: the results of the
/// one before it, whose memory is used again.
pub(super) fn check<C>(
    device: &Device,
    level: Determinism,
    config: &C,
    (golden, earlier): (&[Array], &mut Vec<Array>),
    workload: &mut impl Workload<C>,
) -> Result<Option<String>> {
    waited(device, || {
        workload.spoil()?;
        workload.launch(config)
    })?;
    *earlier = guarded(|| workload.outputs_again(std::mem::take(earlier)))?;
    let outputs = &*earlier;
    if outputs.len() != golden.len() {
        return Err(Error::Invalid(format!(
            "the workload has {} outputs, the golden run {}",
            outputs.len(),
            golden.len()
        )));
    }
    for (got, want) in outputs.iter().zip(golden) {
        let comparison = compare_within(got, want, Tolerance::standard(want.dtype()))?;
        // An infinity or a NaN of one side alone is outside of every tolerance.
        let right = match level {
            Determinism::NotGuaranteed => comparison.within_tolerance(),
            Determinism::BatchInvariant | Determinism::ScheduleInvariant | Determinism::Exact => {
                comparison.bits_equal()
            }
        };
        if !right {
            return Ok(Some(comparison.to_string()));
        }
    }
    Ok(None)
}

/// Does what launches, and waits for the end of all that is on the device. Told are the errors of launches by this thread,
/// and of the device: those of others stay for who waits for them.
pub(super) fn waited<T>(device: &Device, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let own = Own::begin();
    let done = guarded(work);
    finish(device)?;
    let told = own.tell();
    done.and_then(|done| told.map(|()| done))
}

/// Waits for the end of all that is on the device, or in the stream that is apart, and tells nothing of it: an error is one of the device.
pub(super) fn finish(device: &Device) -> Result<()> {
    refuse("a wait for the device")?;
    match own_default(device.owner_of_streams()) {
        Some(own) => device.finish(own),
        None => device.gpu().map_or(Ok(()), |gpu| gpu.wait_for_all()),
    }
}

/// A panic as an error. What it leaves half done is the workload's: its outputs, which are spoilt before they count.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panics::guarded(|| "it".to_string(), work)
}
