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

/// Nonzero while a lane reads or writes the record; only its low half is used. A record is an
/// array of 64-bit words.
#[cfg(feature = "llvm")]
pub(crate) const LOCK: usize = 0;

/// The turn in which an error was found: there is none if this is not the turn of the record. On the host, zero
/// where there is none.
pub(crate) const PRESENT: usize = 1;

/// The fields of the least error: program, site, element, offset.
pub(crate) const FIELDS: usize = 2;

/// The address of the two words that say whose turn it is. Of records on the device alone, as the next one.
pub(crate) const TURNS: usize = 6;

/// How many bytes from the host's list on the same record is there.
pub(crate) const PLACE: usize = 7;

/// Words of a record.
pub(crate) const WORDS: usize = 8;

/// Of the words of a turn: the address of the host's list as the device sees it.
pub(crate) const HOST: usize = 0;

/// Of the words of a turn: its number, which is never zero.
pub(crate) const TURN: usize = 1;

/// The words of a turn.
pub(crate) const TURN_WORDS: usize = 2;

/// Lanes read and write two words of these at once, which are 16 bytes that are aligned.
const _: () = assert!(
    TURNS.is_multiple_of(2)
        && PLACE == TURNS + 1
        && HOST.is_multiple_of(2)
        && TURN == HOST + 1
        && FIELDS.is_multiple_of(2)
        && WORDS.is_multiple_of(2)
        && TURN_WORDS.is_multiple_of(2)
);

/// So many checked launches of a stream may be under way; one more waits for the first.
const MOST: usize = 64;

/// Records on a device, whose least errors the lanes that find them write to a list of the host as well.
///
/// A lane does so while it holds the lock of the record on the device, with plain stores, since PCIe promises no atomic ones;
/// fences of the whole system stand between the lock and what it guards, so that the stores of one lane come before those of
/// the next, and all of them before the end of the kernel. The host looks after that end alone.
#[derive(Debug)]
pub(crate) struct List {
    memory: DeviceBuffer,
    count: usize,
}

impl List {
    /// So many records without an error. Each has a turn of its own, and this is where the words of the first one's are, or all share
    /// one, whose words are behind them and zero.
    pub(crate) fn new(context: &Context, count: usize, turns: Option<u64>) -> Result<Self> {
        let bytes = (count * WORDS + TURN_WORDS) * 8;
        let memory = context.driver_memory(bytes)?;
        let list = Self { memory, count };
        let mut words = vec![0u64; count * WORDS + TURN_WORDS];
        for (index, record) in words.chunks_exact_mut(WORDS).take(count).enumerate() {
            record[TURNS] = match turns {
                Some(first) => first + (index * TURN_WORDS * 8) as u64,
                None => list.shared_turn(),
            };
            record[PLACE] = (index * WORDS * 8) as u64;
        }
        call!(cuMemcpyHtoD_v2(
            list.memory.address(),
            words.as_ptr().cast(),
            bytes
        ))?;
        // The copy is in no stream.
        call!(cuCtxSynchronize())?;
        Ok(list)
    }

    /// The address of a record.
    pub(crate) fn address(&self, index: usize) -> u64 {
        self.memory.address() + (index * WORDS * 8) as u64
    }

    /// The address of the turn that all records share, where they do.
    pub(crate) fn shared_turn(&self) -> u64 {
        self.address(self.count)
    }
}

/// The list of the host for so many records, and its address as the device sees it.
pub(crate) fn host_list(context: &Context, count: usize, more: usize) -> Result<(Pinned, u64)> {
    let memory = context.pinned((count * WORDS + more) * 8)?;
    let address = memory.device_address()?;
    Ok((memory, address))
}

/// The checked launches of one stream whose ends nobody has seen yet, with what the caller keeps of each.
#[derive(Debug)]
pub struct Records<P> {
    /// A record for each; that of a launch has no error when it starts.
    on_device: List,
    /// The records of the host, behind them the turns of all, which lanes read where they find an error.
    on_host: Pinned,
    /// The ends of the launches.
    ends: Vec<Event>,
    pending: VecDeque<Pending<P>>,
    /// The record of the first pending launch.
    first: usize,
}

/// A launch whose end nobody has seen.
#[derive(Debug)]
struct Pending<P> {
    payload: P,
    /// Whether the event behind it was put into the stream.
    is_marked: bool,
}

impl Context {
    /// Records for the checked launches of one stream.
    pub fn records<P>(&self) -> Result<Records<P>> {
        let ends = (0..MOST).map(|_| self.mark());
        let ends = ends.collect::<Result<_>>()?;
        let (on_host, address) = host_list(self, MOST, MOST * TURN_WORDS)?;
        for index in 0..MOST {
            // SAFETY: there are so many words, and no launch knows of them yet.
            unsafe {
                on_host.set_word(turn_of(index) + HOST, address);
                on_host.set_word(turn_of(index) + TURN, 1);
            }
        }
        let turns = address + (turn_of(0) * 8) as u64;
        Ok(Records {
            on_device: List::new(self, MOST, Some(turns))?,
            on_host,
            ends,
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
        let marked = self.ends[index].record(stream);
        self.pending.push_back(Pending {
            payload,
            is_marked: marked.is_ok(),
        });
        marked
    }

    /// What is kept of the first launch whose end nobody has seen.
    pub fn first(&self) -> Option<&P> {
        self.pending.front().map(|it| &it.payload)
    }

    /// The record of the next launch, and its address on the device.
    fn next(&self) -> (usize, u64) {
        let index = (self.first + self.pending.len()) % MOST;
        (index, self.on_device.address(index))
    }

    /// The first pending launch with its least error: where it has ended, or after waiting for it.
    pub fn take_first(
        &mut self,
        stream: &Stream,
        waits: bool,
    ) -> Result<Option<(P, Option<BoundsError>)>> {
        let index = self.first;
        let Some(Pending { is_marked, .. }) = self.pending.front() else {
            return Ok(None);
        };
        if !is_marked {
            self.ends[index].record(stream)?;
            self.pending[0].is_marked = true;
        }
        let end = &self.ends[index];
        if !(waits || end.has_ended()?) {
            return Ok(None);
        }
        end.synchronize()?;
        // SAFETY: the launch that has this record has ended.
        let error = unsafe { error_in(&self.on_host, index) };
        if error.is_some() {
            let turn = turn_of(index) + TURN;
            // SAFETY: as above. The next launch that has the record finds the error of another turn there, which is none.
            unsafe {
                clear(&self.on_host, index);
                self.on_host.set_word(turn, self.on_host.word(turn) + 1);
            }
        }
        self.first = (index + 1) % MOST;
        Ok(self.pending.pop_front().map(|it| (it.payload, error)))
    }
}

/// The first word of the turn of a stream's record, in the host's list.
fn turn_of(index: usize) -> usize {
    MOST * WORDS + index * TURN_WORDS
}

/// The error in the record of this number, if there is one.
///
/// # Safety
/// The memory has as many records, and no launch that has this one is under way.
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

/// Takes the error out of the record of this number.
///
/// # Safety
/// As for [`error_in`].
pub(crate) unsafe fn clear(records: &Pinned, index: usize) {
    // SAFETY: handed on to the caller.
    unsafe { records.set_word(index * WORDS + PRESENT, 0) };
}
