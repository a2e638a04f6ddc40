//! Memory of a thread block and of its lanes: initialisation, races, copies under way, words that are barriers.

use std::collections::BTreeSet;
use std::ops::Range;

use super::FaultKind;
use super::fault::TransferFault;
use super::lane_memory::{Accessor, bulk_race, race, under_way};
use super::memory::{Update, read_number, write_number};
use super::race::{Bulk, Shadow};
use crate::ir::{DType, Space};

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

    /// Where it lies.
    fn bytes(&self) -> Range<usize> {
        let bytes = self.count * i64::from(self.dtype.bytes());
        self.offset as usize..(self.offset + bytes) as usize
    }

    /// The bytes of an element that starts at a byte.
    fn element(&self, byte: usize) -> Range<usize> {
        byte..byte + self.dtype.bytes() as usize
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

/// An error while a lane is copying to a cell.
fn settled(
    copying: &[u32],
    allocation: Allocation,
    who: Accessor<'_>,
    (at, how): (usize, &'static str),
) -> Result<(), FaultKind> {
    match copying[at] {
        0 => Ok(()),
        lane => Err(under_way(allocation.name(), at as i64, who, lane - 1, how)),
    }
}

/// Bytes of a word that is a barrier.
const WORD: usize = 8;

/// Shared memory of a thread block, or scratch memory of each of its lanes.
///
/// It is divided into cells: the longest pieces such that each element of each buffer consists of whole ones. All bytes of
/// a cell are touched together, so that what is known of the first is known of all.
pub(super) struct Arena {
    bytes: Vec<u8>,
    /// Where a cell starts, its length; the same for each lane.
    cells: Vec<u8>,
    /// The program that wrote each cell, plus one.
    written: Vec<u64>,
    /// The lane that is copying to each cell, plus one.
    copying: Vec<u32>,
    /// The first bytes of words that are barriers.
    words: BTreeSet<usize>,
    shadow: Shadow,
    /// Bytes of one lane's part; 0 when all lanes share the memory.
    part: usize,
}

/// The first bytes of the cells of an element.
fn cells(lengths: &[u8], bytes: Range<usize>) -> impl Iterator<Item = usize> {
    let mut next = bytes.start;
    std::iter::from_fn(move || {
        let cell = next;
        next += usize::from(*lengths.get(cell)?);
        (cell < bytes.end).then_some(cell)
    })
}

/// The lengths of the cells that elements of these buffers consist of.
fn lengths(allocations: &[Allocation], size: usize) -> Vec<u8> {
    let mut starts = vec![false; size];
    for allocation in allocations {
        let bytes = allocation.dtype.bytes() as usize;
        let elements = allocation.bytes().step_by(bytes);
        elements.for_each(|start| starts[start] = true);
    }
    let mut length = 0u8;
    let mut lengths: Vec<u8> = starts
        .into_iter()
        .rev()
        .map(|starts| {
            length = length.saturating_add(1);
            if starts {
                std::mem::take(&mut length)
            } else {
                0
            }
        })
        .collect();
    lengths.reverse();
    lengths
}

impl Arena {
    /// Memory of these buffers for all lanes together.
    pub(super) fn shared(allocations: &[Allocation]) -> Self {
        Self::new(allocations, None)
    }

    /// Memory of these buffers for each lane.
    pub(super) fn private(allocations: &[Allocation], lanes: usize) -> Self {
        Self::new(allocations, Some(lanes))
    }

    fn new(allocations: &[Allocation], lanes: Option<usize>) -> Self {
        let ends = allocations.iter().map(|allocation| allocation.bytes().end);
        let part = ends.max().unwrap_or(0);
        let size = part * lanes.unwrap_or(1);
        Self {
            bytes: vec![0; size],
            cells: lengths(allocations, part),
            written: vec![0; size],
            copying: vec![0; size],
            words: BTreeSet::new(),
            shadow: Shadow::default(),
            part: lanes.map_or(0, |_| part),
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
        for at in cells(&self.cells, allocation.element(byte)) {
            let how = if writes { "writes" } else { "reads" };
            settled(&self.copying, allocation, who, (at, how))?;
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

    /// An element of shared memory is written from now on, and by this lane.
    pub(super) fn start_copy(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<(), FaultKind> {
        let byte = allocation.byte(index, who.lane)?;
        for at in cells(&self.cells, allocation.element(byte)) {
            settled(&self.copying, allocation, who, (at, "writes"))?;
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
            self.copying[allocation.element(byte)].fill(0);
        }
    }

    pub(super) fn load(
        &mut self,
        allocation: Allocation,
        who: Accessor<'_>,
        index: i64,
    ) -> Result<u64, FaultKind> {
        let byte = allocation.byte(index, who.lane)?;
        self.initialised(allocation, who, byte)?;
        if self.part == 0 && !who.alone {
            for at in cells(&self.cells, allocation.element(byte)) {
                let conflict = self.shadow.read(at, who.toucher());
                race(allocation.name(), at as i64, who.lane, "reads", conflict)?;
            }
        }
        let byte = byte + self.part * who.lane;
        Ok(read_number(allocation.dtype, &self.bytes[byte..]))
    }

    /// An error unless all bytes of the element at `byte` of a part were written and are there.
    fn initialised(
        &self,
        allocation: Allocation,
        who: Accessor<'_>,
        byte: usize,
    ) -> Result<(), FaultKind> {
        let element = allocation.element(byte);
        let part = self.part * who.lane;
        self.no_word(who, part + byte, element.len())?;
        for at in cells(&self.cells, element.clone()) {
            settled(&self.copying, allocation, who, (part + at, "reads"))?;
        }
        let mut cells = cells(&self.cells, element);
        match cells.find(|&at| self.written[part + at] != who.program + 1) {
            None => Ok(()),
            Some(at) => Err(FaultKind::Uninitialised {
                space: allocation.name(),
                byte: at as u64,
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
        if !who.alone {
            for at in cells(&self.cells, allocation.element(byte)) {
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
        let (byte, part) = (allocation.byte(index, who.lane)?, self.part * who.lane);
        let element = allocation.element(byte);
        self.no_word(who, part + byte, element.len())?;
        for at in cells(&self.cells, element) {
            settled(&self.copying, allocation, who, (part + at, "writes"))?;
            self.written[part + at] = who.program + 1;
            if self.part == 0 && !who.alone {
                let conflict = self.shadow.write(at, who.toucher());
                race(allocation.name(), at as i64, who.lane, "writes", conflict)?;
            }
        }
        Ok(part + byte)
    }
}
