//! Arguments as the lanes of a thread block see them: races, and copies that read.

use super::FaultKind;
use super::clock::Clock;
use super::fault::TransferFault;
use super::memory::{Buffer, Update};
use super::race::{Bulk, Conflict, Toucher};

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
    pub(super) fn toucher(self) -> Toucher<'c> {
        Toucher {
            lane: self.lane as u32,
            clock: self.clock,
            bulk: None,
        }
    }
}

/// An error where a bulk copy conflicts; it may be that a fence is all that is missing.
pub(super) fn bulk_race(
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

pub(super) fn race(
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

pub(super) fn under_way(
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
