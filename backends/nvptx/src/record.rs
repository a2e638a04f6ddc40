//! The records in which checked launches keep their least out-of-bounds access, and a ring of them for a stream.
#![expect(unsafe_code, reason = "the driver is a C interface")]

use std::collections::VecDeque;

use cudarc::driver::sys;
use exactile_core::ir::Grid;
use exactile_core::launch::Passed;
use exactile_core::target::BoundsError;

use crate::buffer::DeviceBuffer;
use crate::driver::{Context, call};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::stream::{Event, Pinned, Stream};

/// Nonzero while a lane reads or writes the record; only its low half is used. The record is an
/// array of 64-bit words.
#[cfg(feature = "llvm")]
pub(crate) const LOCK: usize = 0;

/// Nonzero once there is an error.
pub(crate) const PRESENT: usize = 1;

/// The fields of the least error: program, site, element, offset.
pub(crate) const FIELDS: usize = 2;

/// Words of the record.
pub(crate) const WORDS: usize = 6;

/// So many checked launches of a stream may be under way; one more waits for the first.
const MOST: usize = 64;

/// The checked launches of one stream whose ends nobody has seen yet, with what the caller keeps of each.
#[derive(Debug)]
pub struct Records<P> {
    /// Where the kernels write, a record each; the one of a launch is zero when it starts.
    on_device: DeviceBuffer,
    /// The same, copied after each launch.
    on_host: Pinned,
    /// The ends of the copies.
    ends: Vec<Event>,
    pending: VecDeque<Pending<P>>,
    /// The record of the first pending launch.
    first: usize,
}

/// A launch whose end nobody has seen.
#[derive(Debug)]
struct Pending<P> {
    payload: P,
    /// Whether the copy of its record was put into the stream, with the event behind it.
    is_copied: bool,
}

impl Context {
    /// Records for the checked launches of one stream.
    pub fn records<P>(&self) -> Result<Records<P>> {
        let ends = (0..MOST).map(|_| self.mark());
        Ok(Records {
            on_device: self.allocate(MOST * WORDS * 8)?,
            on_host: self.pinned(MOST * WORDS * 8)?,
            ends: ends.collect::<Result<_>>()?,
            pending: VecDeque::new(),
            first: 0,
        })
    }
}

impl<P> Records<P> {
    /// Whether one more launch needs the end of the first.
    pub fn are_full(&self) -> bool {
        self.pending.len() == MOST
    }

    /// Puts a launch of code that checks bounds into `stream`, which is always the same one. There must be room, and
    /// [`Records::end`] follows.
    ///
    /// # Safety
    /// As for [`Kernel::launch`].
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        grid: Grid,
        arguments: &[Passed],
    ) -> Result<()> {
        let (_, address) = self.next();
        // SAFETY: handed on to the caller; the launches under way have other records.
        unsafe { kernel.queue(stream, grid, arguments, Some(address)) }
    }

    /// Ends what [`Records::launch`] began. After an error here the launch is pending like others.
    pub fn end(&mut self, stream: &Stream, payload: P) -> Result<()> {
        let (index, _) = self.next();
        let copied = self.copy(index, stream);
        self.pending.push_back(Pending {
            payload,
            is_copied: copied.is_ok(),
        });
        copied
    }

    fn copy(&self, index: usize, stream: &Stream) -> Result<()> {
        stream.make_current()?;
        call!(cuMemcpyDtoHAsync_v2(
            self.on_host.word_address(index * WORDS),
            self.address(index),
            WORDS * 8,
            stream.stream
        ))?;
        self.ends[index].record(stream)
    }

    /// What is kept of the first launch whose end nobody has seen.
    pub fn first(&self) -> Option<&P> {
        self.pending.front().map(|it| &it.payload)
    }

    /// The record of the next launch, and its address on the device.
    fn next(&self) -> (usize, u64) {
        let index = (self.first + self.pending.len()) % MOST;
        (index, self.address(index))
    }

    fn address(&self, index: usize) -> u64 {
        self.on_device.address() + (index * WORDS * 8) as u64
    }

    /// The first pending launch with its least error: where it has ended, or after waiting for it.
    pub fn take_first(
        &mut self,
        stream: &Stream,
        waits: bool,
    ) -> Result<Option<(P, Option<BoundsError>)>> {
        let index = self.first;
        let Some(Pending { is_copied, .. }) = self.pending.front() else {
            return Ok(None);
        };
        if !is_copied {
            self.copy(index, stream)?;
            self.pending[0].is_copied = true;
        }
        let end = &self.ends[index];
        if !(waits || end.has_ended()?) {
            return Ok(None);
        }
        end.synchronize()?;
        // SAFETY: the copy of this record has ended.
        let error = unsafe { error_in(&self.on_host, index) };
        if error.is_some() {
            let address = self.address(index);
            call!(cuMemsetD8Async(address, 0, WORDS * 8, stream.stream))?;
        }
        self.first = (index + 1) % MOST;
        Ok(self.pending.pop_front().map(|it| (it.payload, error)))
    }
}

/// The error in the record of this number, if there is one.
///
/// # Safety
/// The memory has as many records, and no copy to this one is under way.
pub(crate) unsafe fn error_in(records: &Pinned, index: usize) -> Option<BoundsError> {
    // SAFETY: handed on to the caller.
    let word = |field: usize| unsafe { records.word(index * WORDS + field) };
    let field = |index: usize| word(FIELDS + index);
    (word(PRESENT) != 0).then(|| BoundsError {
        program: field(0),
        site: field(1),
        element: field(2),
        offset: field(3) as i64,
    })
}
