//! Launches that print: their record is one argument more, read when they have ended.

use std::sync::Arc;

use exactile_core::ir::Number;
use exactile_core::ir::prints::WORDS;
use exactile_core::launch::{Launch, Passed};
use smallvec::SmallVec;

use super::{Told, put};
use crate::ahead::Proves;
use crate::array::read_numbers;
use crate::bound::{Bound, FEW};
use crate::buffer::Storage;
use crate::code::Code;
use crate::device::Device;
use crate::error::Result;
use crate::failure::Failure;
use crate::part::{Part, PartMut};

/// Runs code that prints, waits for its end, and prints. What its programs did wrong is an error here.
///
/// # Safety
/// As for [`put`].
pub(super) unsafe fn run_and_print(
    device: &Device,
    (stream, told): (usize, Told),
    code: &Code,
    launch: &Launch<'_>,
    arguments: &mut [Bound<'_>],
    proves: Option<Proves<'_>>,
) -> Result<Option<Arc<Failure>>> {
    let bytes = WORDS as usize * u64::DTYPE.bytes() as usize;
    let mut record = Storage::zeroed(device, bytes)?;
    let mut list: SmallVec<[Bound<'_>; FEW]> = arguments.iter_mut().map(Bound::lent).collect();
    list.push(Bound::ReadWrite(PartMut::of(device, &mut record)));
    let passed: SmallVec<[Passed; FEW]> = list.iter().map(Bound::passed).collect();
    let launch = Launch {
        arguments: &passed,
        ..*launch
    };
    // SAFETY: handed on to the caller; the record is as long as the prints of the code ask for.
    let failure = unsafe { put(device, (stream, told), code, &launch, &mut list, proves) }?;
    drop(list);
    device.finish(stream)?;
    // An error is told once: what was printed before it is read all the same.
    let record = Part::of(device, &record);
    let error = record.read().err();
    let words: Vec<u64> = read_numbers(&record.read()?)?;
    for line in code.prints.lines(launch.grid, &words) {
        device.print(&line);
    }
    error.map_or(Ok(failure), Err)
}
