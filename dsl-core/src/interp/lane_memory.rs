//! Memory as the lanes of a thread block see it: alignment, races, initialisation, traffic.

use std::collections::BTreeSet;

use super::FaultKind;
use super::clock::Clock;
use super::fault::TransferFault;
use super::memory::{Buffer, Update, read_number, write_number};
use super::race::{Bulk, Conflict, Shadow, Toucher};
use crate::ir::{DType, Space};

/// Who accesses: the program, the lane of its thread block, and what its warp knows.
#[derive(Clone, Copy)]
pub(super) struct Accessor<'c> {
    pub(super) program: u64,
    pub(super) lane: usize,
    pub(super) clock: &'c Clock,
    /// Whether the lane is the only one of its block, so that nothing races.
    pub(super) alone: bool,
}

impl<'c> Accessor<'c> {
    fn toucher(self) -> Toucher<'c> {
        Toucher {
            lane: self.lane as u32,
            clock: self.clock,
            bulk: None,
        }
    }
}

/// An error where a bulk copy conflicts; it may be that a fence is all that is missing.
fn bulk_race(
    buffer: &str,
    index: i64,
    who: Accessor<'_>,
    how: &'static str,
    (conflict, unfenced): (Conflict, bool),
) -> Result<(), FaultKind> {
    match conflict {
        Some((other, before)) if unfenced => Err(TransferFault::Unfenced {
            buffer: buffer.to_string(),
            index,
            lane: who.lane as u64,
            other: u64::from(other),
            before,
        }
        .into()),
        _ => race(buffer, index, who.lane, how, conflict),
    }
}

/// Notes that a bulk copy reads or writes an element of an argument.
pub(super) fn bulk_global(
    buffer: &mut Buffer<'_>,
    (who, bulk): (Accessor<'_>, Bulk),
    index: i64,
    writes: bool,
) -> Result<(), FaultKind> {
    buffer.position(index, who.lane as u64)?;
    if !buffer.is_writable() {
        return Ok(());
    }
    let found = buffer
        .lanes
        .bulk(index as usize, (who.toucher(), bulk), writes);
    let how = if writes { "copies to" } else { "copies from" };
    bulk_race(&buffer.name, index, who, how, found)
}

fn race(
    buffer: &str,
    index: i64,
    lane: usize,
    how: &'static str,
    conflict: Conflict,
) -> Result<(), FaultKind> {
    conflict.map_or(Ok(()), |(other, before)| {
        Err(FaultKind::Race {
            buffer: buffer.to_string(),
            index,
            lane: lane as u64,
            other: u64::from(other),
            how,
            before,
        })
    })
}

/// Reads an element of an argument.
pub(super) fn load_global(
    buffer: &mut Buffer<'_>,
    who: Accessor<'_>,
    index: i64,
) -> Result<u64, FaultKind> {
    let bits = buffer.load(who.program, index, who.lane as u64)?;
    if !who.alone && buffer.is_writable() {
        let conflict = buffer.lanes.read(index as usize, who.toucher());
        race(&buffer.name, index, who.lane, "reads", conflict)?;
    }
    Ok(bits)
}

/// Writes an element of an argument.
pub(super) fn store_global(
    buffer: &mut Buffer<'_>,
    who: Accessor<'_>,
    index: i64,
    bits: u64,
) -> Result<(), FaultKind> {
    buffer.store(who.program, index, who.lane as u64, bits)?;
    if who.alone {
        return Ok(());
    }
    not_copied(buffer, who, index)?;
    let conflict = buffer.lanes.write(index as usize, who.toucher());
    race(&buffer.name, index, who.lane, "writes", conflict)
}

/// Combines a number into an element of an argument.
pub(super) fn combine_global(
    buffer: &mut Buffer<'_>,
    who: Accessor<'_>,
    index: i64,
    update: &Update,
) -> Result<u64, FaultKind> {
    let old = buffer.combine((who.program, who.lane as u64), index, update)?;
    if who.alone {
        return Ok(old);
    }
    not_copied(buffer, who, index)?;
    let lanes = &mut buffer.lanes;
    let conflict = lanes.combine(index as usize, who.toucher(), update.kind());
    race(&buffer.name, index, who.lane, "combines", conflict).map(|()| old)
}

/// Notes that a copy reads an element of an argument from now on.
pub(super) fn start_reading(
    buffer: &mut Buffer<'_>,
    who: Accessor<'_>,
    index: i64,
) -> Result<(), FaultKind> {
    load_global(buffer, who, index)?;
    if buffer.is_writable() {
        *buffer.copied.entry((index, who.lane as u32)).or_default() += 1;
    }
    Ok(())
}

/// Notes that it has read it, at some time up to now.
pub(super) fn finish_reading(
    buffer: &mut Buffer<'_>,
    who: Accessor<'_>,
    index: i64,
) -> Result<(), FaultKind> {
    stop_reading(buffer, who.lane, index);
    load_global(buffer, who, index)?;
    Ok(())
}

/// Notes that it does not read it any more.
pub(super) fn stop_reading(buffer: &mut Buffer<'_>, lane: usize, index: i64) {
    let key = (index, lane as u32);
    if let Some(count) = buffer.copied.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            buffer.copied.remove(&key);
        }
    }
}

/// An error while a copy under way reads an element.
fn not_copied(buffer: &Buffer<'_>, who: Accessor<'_>, index: i64) -> Result<(), FaultKind> {
    let mut copies = buffer.copied.range((index, 0)..=(index, u32::MAX));
    copies.next().map_or(Ok(()), |(&(_, other), _)| {
        Err(under_way(&buffer.name, index, who, other, "writes"))
    })
}

fn under_way(
    buffer: &str,
    index: i64,
    who: Accessor<'_>,
    other: u32,
    how: &'static str,
) -> FaultKind {
    FaultKind::UnderWay {
        buffer: buffer.to_string(),
        index,
        lane: who.lane as u64,
        other: u64::from(other),
        how,
    }
}

/// A buffer that `alloc` makes.
#[derive(Clone, Copy)]
pub(super) struct Allocation {
    pub(super) dtype: DType,
    pub(super) space: Space,
    pub(super) offset: i64,
    pub(super) count: i64,
}

impl Allocation {
    /// How errors name the space.
    pub(super) fn name(&self) -> &'static str {
        space_name(self.space)
    }

    fn byte(&self, index: i64, lane: usize) -> Result<usize, FaultKind> {
        if !(0..self.count).contains(&index) {
            return Err(FaultKind::OutOfBounds {
                buffer: self.name().to_string(),
                element: lane as u64,
                index,
                length: self.count.cast_unsigned(),
            });
        }
        Ok((self.offset + index * i64::from(self.dtype.bytes())) as usize)
    }
}

fn space_name(space: Space) -> &'static str {
    match space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Scratch => "scratch",
    }
}

/// Bytes of a word that is a barrier.
const WORD: usize = 8;

/// Shared memory of a thread block, or scratch memory of each of its lanes.
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// The program that wrote each byte, plus one.
    written: Vec<u64>,
    /// The lane that is copying to each byte, plus one.
    copying: Vec<u32>,
    /// The first bytes of words that are barriers.
    words: BTreeSet<usize>,
    shadow: Shadow,
    /// Bytes of one lane's part; 0 when all lanes share the memory.
    part: usize,
}

impl Arena {
    /// `size` bytes for all lanes together.
    pub(super) fn shared(size: usize) -> Self {
        Self::new(size, 0)
    }

    /// `size` bytes for each lane.
    pub(super) fn private(size: usize, lanes: usize) -> Self {
        Self::new(size * lanes, size)
    }

    fn new(size: usize, part: usize) -> Self {
        Self {
            bytes: vec![0; size],
            written: vec![0; size],
            copying: vec![0; size],
            words: BTreeSet::new(),
            shadow: Shadow::default(),
            part,
        }
    }

    /// The byte of a word that is made a barrier, for a lane that does it, or is one.
    pub(super) fn word(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        (index, makes): (i64, bool),
    ) -> Result<usize, FaultKind> {
        let byte = allocation.byte(index, who.lane)?;
        if !makes && !self.words.contains(&byte) {
            return Err(TransferFault::NoBarrier { byte: byte as u64 }.into());
        }
        let (how, conflict) = match makes {
            true => ("writes", self.shadow.write(byte, who.toucher())),
            false => ("reads", self.shadow.read(byte, who.toucher())),
        };
        race(allocation.name(), byte as i64, who.lane, how, conflict)?;
        self.words.insert(byte);
        Ok(byte)
    }

    /// No word is a barrier any more.
    pub(super) fn forget_words(&mut self) {
        self.words.clear();
    }

    /// Notes that a bulk copy reads or writes an element.
    pub(super) fn bulk(
        &mut self,
        allocation: Allocation,
        (who, bulk): (Accessor<'_>, Bulk),
        index: i64,
        writes: bool,
    ) -> Result<(), FaultKind> {
        let byte = allocation.byte(index, who.lane)?;
        self.no_word(who, byte, allocation.dtype.bytes() as usize)?;
        for at in byte..byte + allocation.dtype.bytes() as usize {
            self.settled(allocation, who, at, if writes { "writes" } else { "reads" })?;
            let how = if writes { "copies to" } else { "copies from" };
            let found = self.shadow.bulk(at, (who.toucher(), bulk), writes);
            bulk_race(allocation.name(), at as i64, who, how, found)?;
            if writes {
                self.written[at] = who.program + 1;
            }
        }
        if writes {
            return Ok(());
        }
        self.initialised(allocation, who, byte)
    }

    /// The bits of an element.
    pub(super) fn peek(&self, allocation: Allocation, index: i64) -> u64 {
        let byte = allocation.byte(index, 0).unwrap_or(0);
        read_number(allocation.dtype, &self.bytes[byte..])
    }

    /// An error where some of these bytes belong to a barrier.
    fn no_word(&self, who: Accessor<'_>, byte: usize, size: usize) -> Result<(), FaultKind> {
        if self.words.is_empty() {
            return Ok(());
        }
        let first = (byte + 1).saturating_sub(WORD);
        let mut words = self.words.range(first..byte + size);
        words.next().map_or(Ok(()), |&word| {
            let (byte, lane) = (word as u64, who.lane as u64);
            Err(TransferFault::BarrierWord { byte, lane }.into())
        })
    }

    /// An error while a lane is copying to a byte.
    fn settled(
        &self,
        allocation: Allocation,
        who: Accessor<'_>,
        at: usize,
        how: &'static str,
    ) -> Result<(), FaultKind> {
        match self.copying[at] {
            0 => Ok(()),
            lane => Err(under_way(allocation.name(), at as i64, who, lane - 1, how)),
        }
    }

    /// An element of shared memory is written from now on, and by this lane.
    pub(super) fn start_copy(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<(), FaultKind> {
        let byte = allocation.byte(index, who.lane)?;
        for at in byte..byte + allocation.dtype.bytes() as usize {
            self.settled(allocation, who, at, "writes")?;
            let conflict = self.shadow.write(at, who.toucher());
            race(allocation.name(), at as i64, who.lane, "writes", conflict)?;
            self.copying[at] = who.lane as u32 + 1;
        }
        Ok(())
    }

    /// The bits of the element go over.
    pub(super) fn put(&mut self, allocation: Allocation, index: i64, bits: u64) {
        if let Ok(byte) = allocation.byte(index, 0) {
            write_number(allocation.dtype, &mut self.bytes[byte..], bits);
        }
    }

    /// The element is there, since some time up to now.
    pub(super) fn finish_copy(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<(), FaultKind> {
        self.abandon_copy(allocation, index);
        self.begin_store(allocation, who, index)?;
        Ok(())
    }

    /// The element is copied to no more.
    pub(super) fn abandon_copy(&mut self, allocation: Allocation, index: i64) {
        if let Ok(byte) = allocation.byte(index, 0) {
            self.copying[byte..byte + allocation.dtype.bytes() as usize].fill(0);
        }
    }

    pub(super) fn load(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<u64, FaultKind> {
        let byte = allocation.byte(index, who.lane)? + self.part * who.lane;
        let size = allocation.dtype.bytes() as usize;
        self.initialised(allocation, who, byte)?;
        for at in byte..byte + size {
            if self.part == 0 && !who.alone {
                let conflict = self.shadow.read(at, who.toucher());
                race(allocation.name(), at as i64, who.lane, "reads", conflict)?;
            }
        }
        Ok(read_number(allocation.dtype, &self.bytes[byte..]))
    }

    /// An error unless all bytes of the element at `byte` were written and are there.
    fn initialised(
        &self,
        allocation: Allocation,
        who: Accessor<'_>,
        byte: usize,
    ) -> Result<(), FaultKind> {
        let mut bytes = byte..byte + allocation.dtype.bytes() as usize;
        self.no_word(who, byte, bytes.len())?;
        for at in bytes.clone() {
            self.settled(allocation, who, at, "reads")?;
        }
        match bytes.find(|&at| self.written[at] != who.program + 1) {
            None => Ok(()),
            Some(at) => Err(FaultKind::Uninitialised {
                space: allocation.name(),
                byte: (at - self.part * who.lane) as u64,
                lane: who.lane as u64,
            }),
        }
    }

    /// Combines a number into an element of shared memory.
    pub(super) fn combine(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
        update: &Update,
    ) -> Result<u64, FaultKind> {
        let (dtype, byte) = (allocation.dtype, allocation.byte(index, who.lane)?);
        self.initialised(allocation, who, byte)?;
        for at in byte..byte + dtype.bytes() as usize {
            if !who.alone {
                let conflict = self.shadow.combine(at, who.toucher(), update.kind());
                race(allocation.name(), at as i64, who.lane, "combines", conflict)?;
            }
        }
        let old = read_number(dtype, &self.bytes[byte..]);
        write_number(dtype, &mut self.bytes[byte..], update.of(dtype, old));
        Ok(old)
    }

    pub(super) fn store(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
        bits: u64,
    ) -> Result<(), FaultKind> {
        let byte = self.begin_store(allocation, who, index)?;
        write_number(allocation.dtype, &mut self.bytes[byte..], bits);
        Ok(())
    }

    /// Notes that an element is written; its first byte.
    fn begin_store(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<usize, FaultKind> {
        let byte = allocation.byte(index, who.lane)? + self.part * who.lane;
        self.no_word(who, byte, allocation.dtype.bytes() as usize)?;
        for at in byte..byte + allocation.dtype.bytes() as usize {
            self.settled(allocation, who, at, "writes")?;
            self.written[at] = who.program + 1;
            if self.part == 0 && !who.alone {
                let conflict = self.shadow.write(at, who.toucher());
                race(allocation.name(), at as i64, who.lane, "writes", conflict)?;
            }
        }
        Ok(byte)
    }
}
