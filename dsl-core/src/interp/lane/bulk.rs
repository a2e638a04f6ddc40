//! Bulk copies between a box of an array and shared memory.

use super::runner::Runner;
use super::schedule::Wait;
use super::transfer::Transfer;
use super::{Machine, Moment, allocation};
use crate::entity::Entity;
use crate::interp::arena::Allocation;
use crate::interp::clock::Clock;
use crate::interp::lane_memory;
use crate::interp::memory::Slot;
use crate::interp::race::Bulk;
use crate::interp::{Fault, FaultKind};
use crate::ir::operand::{PATTERN, PIECE};
use crate::ir::{Access, Func, Inst, Op, Value, op};

/// The alignment of a box in shared memory in bytes.
const BOX_ALIGN: i64 = 128;

/// What the strides of an array are multiples of in bytes, but the last.
const ROW_ALIGN: i64 = 16;

/// The argument, the buffer, and the elements of both: of the argument none where a box is outside of the array.
type Moved = (usize, Allocation, Vec<(Option<i64>, i64)>);

/// A copy under way.
#[derive(Clone)]
pub(super) struct Flight {
    inst: Inst,
    /// The first lane of the warp that started it.
    lane: u64,
    /// The number of the argument.
    argument: usize,
    /// The element of the argument, where the box is inside of the array, and that of the buffer.
    elements: Vec<(Option<i64>, i64)>,
    local: Allocation,
    end: End,
    /// What a copy out has read, once somebody has waited for that.
    read: Option<Vec<u64>>,
}

#[derive(Clone)]
enum End {
    /// Bytes of an mbarrier: the byte of its word, and the phase and knowledge with which they began.
    Phase {
        word: usize,
        bytes: i64,
        began: (i64, Clock),
    },
    /// The copy out of this number, of this warp.
    Out { warp: usize, number: u64 },
}

impl Transfer {
    /// The instruction and lane of a bulk copy that moves data of shared memory, as an error.
    pub(super) fn nothing_flies(&self) -> Result<(), (Inst, u64)> {
        match self.flights.iter().find(|it| it.read.is_none()) {
            Some(flight) => Err((flight.inst, flight.lane)),
            None => Ok(()),
        }
    }
}

impl Flight {
    /// Whether this is a copy out of a warp, up to this number.
    pub(super) fn is_out_of(&self, index: usize, last: u64) -> bool {
        matches!(self.end, End::Out { warp, number } if warp == index && number <= last)
    }
}

impl Runner<'_, '_> {
    pub(super) fn copy_in(&mut self, inst: Inst, op: &op::CopyIn) -> Result<(), FaultKind> {
        let moved = self.transferred(inst, (op.map, &op.origin), (op.target, op.offset))?;
        let word = self.word(inst, (op.word, op.at), false)?;
        self.fill(inst, moved, word)
    }

    /// Elements that lie side by side. Their bytes are expected at once.
    pub(super) fn copy_span(&mut self, inst: Inst, op: &op::CopySpan) -> Result<(), FaultKind> {
        let word = self.word(inst, (op.word, op.at), false)?;
        let count = self.uniform(inst, op.count)?;
        if count <= 0 {
            return Ok(());
        }
        let local = self.aligned(inst, (op.target, op.offset), PIECE.into())?;
        let [from, to] = [op.source_offset, op.offset].map(|it| self.uniform(inst, it));
        let (from, to, size) = (from?, to?, i64::from(local.dtype.bytes()));
        let bytes = count.wrapping_mul(size);
        let piece = i64::from(PIECE);
        if let Some(index) = [(from, from.wrapping_mul(size)), (count, bytes)]
            .into_iter()
            .find_map(|(index, bytes)| (bytes % piece != 0).then_some(index))
        {
            return Err(FaultKind::Unaligned {
                buffer: "array".to_string(),
                index,
                align: piece,
                lane: self.warp.lane(0) as u64,
            });
        }
        let mbarriers = &mut self.machine.transfer.mbarriers;
        let mbarrier = mbarriers.get_mut(&word);
        mbarrier
            .expect("broken invariant: the word is a barrier")
            .expect(bytes);
        let argument = self.warp.values[op.source].scalar() as usize;
        // One element beyond the buffer is as wrong as all that follow it.
        let numbers = 0..count.min(local.count + 1);
        let elements = numbers.map(|at| (Some(from.wrapping_add(at)), to.wrapping_add(at)));
        self.fill(inst, (argument, local, elements.collect()), word)
    }

    /// Starts a copy of elements of an argument to those of a buffer, whose bytes count for the phase of a word.
    fn fill(
        &mut self,
        inst: Inst,
        (argument, local, elements): Moved,
        word: usize,
    ) -> Result<(), FaultKind> {
        let lane = self.warp.lane(0) as u64;
        let mbarriers = &mut self.machine.transfer.mbarriers;
        let mbarrier = mbarriers.get_mut(&word);
        let mbarrier = mbarrier.expect("broken invariant: the word is a barrier");
        mbarrier.filled = Some((mbarrier.current, inst, lane));
        let bulk = Bulk {
            entry: mbarrier.entry,
            time: mbarrier.time(),
            fenced: true,
        };
        let end = End::Phase {
            word,
            bytes: elements.len() as i64 * i64::from(local.dtype.bytes()),
            began: (mbarrier.current, self.warp.clock.clone()),
        };
        let flight = Flight {
            inst,
            lane,
            argument,
            elements,
            local,
            end,
            read: None,
        };
        self.take_off(flight, [bulk; 2], true)
    }

    pub(super) fn copy_out(&mut self, inst: Inst, op: &op::CopyOut) -> Result<(), FaultKind> {
        let (argument, local, elements) =
            self.transferred(inst, (op.map, &op.origin), (op.source, op.offset))?;
        let warp = self.warp.index;
        let bulk = [&mut self.warp.out, &mut self.warp.read].map(|it| it.start(inst));
        let number = bulk[0].time;
        let flight = Flight {
            inst,
            lane: self.warp.lane(0) as u64,
            argument,
            elements,
            local,
            end: End::Out { warp, number },
            read: None,
        };
        self.take_off(flight, bulk, false)
    }

    /// What a tensor core reads of shared memory from offsets on, until somebody waits for the product. To write
    /// there before is an error, so it may as well be read at once.
    pub(super) fn read_operands<'a>(
        &mut self,
        inst: Inst,
        operands: impl Iterator<Item = ((Value, Value), &'a [i64])>,
    ) -> Result<Vec<Vec<u64>>, FaultKind> {
        let bulk = self.warp.products.start(inst);
        let mut all = Vec::new();
        for ((base, offset), places) in operands {
            let mut read = Vec::new();
            let local = self.aligned(inst, (base, offset), PATTERN)?;
            let first = self.uniform(inst, offset)?;
            let who = self.warp.accessor(self.machine.program, 0);
            let shared = &mut self.machine.shared;
            for &place in places {
                let at = first.wrapping_add(place);
                shared.bulk(local, (who, bulk), at, false)?;
                read.push(shared.peek(local, at));
            }
            all.push(read);
        }
        Ok(all)
    }

    /// The buffer of a base, from an offset on that must be a multiple of so many bytes.
    fn aligned(
        &self,
        inst: Inst,
        (base, offset): (Value, Value),
        align: i64,
    ) -> Result<Allocation, FaultKind> {
        let alloc = Inst::new(self.warp.values[base].scalar() as usize);
        let local = allocation(self.machine.func, alloc);
        let local = local.expect("broken invariant: a verified buffer is an allocation");
        let (index, size) = (self.uniform(inst, offset)?, i64::from(local.dtype.bytes()));
        let start = index.wrapping_mul(size).wrapping_add(local.offset);
        if start % align == 0 {
            return Ok(local);
        }
        Err(FaultKind::Unaligned {
            buffer: local.name().to_string(),
            index,
            align,
            lane: self.warp.lane(0) as u64,
        })
    }

    pub(super) fn wait_copies_out(&mut self, inst: Inst, op: &op::WaitCopiesOut) {
        let number = self.warp.out.all_but(op.pending);
        self.warp.wait = Some((inst, Wait::Out(number)));
    }

    /// What the copies have read is theirs from here on.
    pub(super) fn wait_copies_read(&mut self, op: &op::WaitCopiesRead) {
        let number = self.warp.read.all_but(op.pending);
        let machine = &mut *self.machine;
        for flight in &mut machine.transfer.flights {
            if flight.read.is_none() && flight.is_out_of(self.warp.index, number) {
                let places = flight.elements.iter();
                let read = places.map(|&(_, at)| machine.shared.peek(flight.local, at));
                flight.read = Some(read.collect());
            }
        }
        self.warp.read.finish(number, &mut self.warp.clock);
    }

    /// Notes what a copy will touch, in memory and in shared memory, and lets it go.
    fn take_off(
        &mut self,
        flight: Flight,
        [global_bulk, local_bulk]: [Bulk; 2],
        inwards: bool,
    ) -> Result<(), FaultKind> {
        let who = self.warp.accessor(self.machine.program, 0);
        let machine = &mut *self.machine;
        for &(global, local) in &flight.elements {
            if let (Some(index), Slot::Buffer(buffer)) =
                (global, &mut machine.slots[flight.argument])
            {
                lane_memory::bulk_global(buffer, (who, global_bulk), index, !inwards)?;
            }
            let shared = &mut machine.shared;
            shared.bulk(flight.local, (who, local_bulk), local, inwards)?;
        }
        match machine.copies {
            Moment::Earliest => machine.land(flight).map_err(|fault| fault.kind),
            Moment::Latest | Moment::Random(_) => {
                machine.transfer.flights.push(flight);
                Ok(())
            }
        }
    }

    /// What a box has.
    fn transferred(
        &self,
        inst: Inst,
        (map, origin): (Value, &[Value]),
        (base, offset): (Value, Value),
    ) -> Result<Moved, FaultKind> {
        let func = self.machine.func;
        let map = map_of(func, Inst::new(self.warp.values[map].scalar() as usize));
        let numbers = |values: &[Value]| -> Result<Vec<i64>, FaultKind> {
            values.iter().map(|&it| self.uniform(inst, it)).collect()
        };
        let (origin, extents) = (numbers(origin)?, numbers(&map.extents)?);
        let strides = [numbers(&map.strides)?, vec![1]].concat();
        let local = self.aligned(inst, (base, offset), BOX_ALIGN)?;
        let (first, size) = (self.uniform(inst, offset)?, i64::from(local.dtype.bytes()));
        let argument = self.warp.values[map.base].scalar() as usize;
        // In place of an array that is only read, launches hand over a copy with other strides.
        let is_written = func.parameters[argument].access == Access::ReadWrite;
        let mut outer = strides.iter().take(strides.len() - 1).copied();
        let unaligned = outer.find(|it| it.wrapping_mul(size) % ROW_ALIGN != 0);
        if let Some(index) = unaligned.filter(|_| is_written) {
            return Err(FaultKind::Unaligned {
                buffer: "array".to_string(),
                index,
                align: ROW_ALIGN,
                lane: self.warp.lane(0) as u64,
            });
        }
        let start = first.wrapping_mul(size).wrapping_add(local.offset);
        let mut elements = Vec::new();
        for place in 0..map.shape.iter().map(|&it| i64::from(it)).product() {
            let (mut rest, mut index, mut inside) = (place, 0i64, true);
            for axis in (0..map.shape.len()).rev() {
                let extent = i64::from(map.shape[axis]);
                let at = origin[axis].wrapping_add(rest % extent);
                rest /= extent;
                inside &= (0..extents[axis]).contains(&at);
                index = index.wrapping_add(at.wrapping_mul(strides[axis]));
            }
            let byte = swizzled(start.wrapping_add(place * size), map.swizzle);
            let local = (byte - local.offset) / size;
            elements.push((inside.then_some(index), local));
        }
        Ok((argument, local, elements))
    }
}

fn map_of(func: &Func, inst: Inst) -> &op::TensorMap {
    if let Op::TensorMap(map) = func.op(inst) {
        return map;
    }
    unreachable!("broken invariant: a verified map is made by `tensor_map`")
}

/// Where a byte of a box goes: pieces of 16 bytes are exchanged as the bits from 7 up say.
fn swizzled(byte: i64, swizzle: i64) -> i64 {
    let pieces = (swizzle / 16).max(1) - 1;
    byte ^ (byte >> 7 & pieces) << 4
}

impl Machine<'_> {
    /// Ends the copy under way of this number, oldest first.
    pub(super) fn land_one(&mut self, number: usize) -> Result<(), Fault> {
        let flight = self.transfer.flights.remove(number);
        self.land(flight)
    }

    /// The bits of a copy go over, and who waits for it hears of it.
    fn land(&mut self, flight: Flight) -> Result<(), Fault> {
        for (number, &(global, local)) in flight.elements.iter().enumerate() {
            let outwards = matches!(flight.end, End::Out { .. });
            let moved = match (global, &mut self.slots[flight.argument]) {
                (Some(at), Slot::Buffer(buffer)) if outwards => {
                    let read = flight.read.as_ref().map(|read| read[number]);
                    let bits = read.unwrap_or_else(|| self.shared.peek(flight.local, local));
                    buffer.store(self.program, at, flight.lane, bits)
                }
                (Some(at), Slot::Buffer(buffer)) => {
                    let loaded = buffer.load(self.program, at, flight.lane);
                    loaded.map(|bits| self.shared.put(flight.local, local, bits))
                }
                (Some(_), Slot::Scalar(_)) => Ok(()),
                (None, _) if outwards => Ok(()),
                (None, _) => {
                    self.shared.put(flight.local, local, 0);
                    Ok(())
                }
            };
            moved.map_err(|kind| self.fault(flight.inst, kind))?;
        }
        if let End::Phase { word, bytes, began } = flight.end
            && let Some(mbarrier) = self.transfer.mbarriers.get_mut(&word)
        {
            let received = mbarrier.receive(bytes, (began.0, &began.1));
            received.map_err(|kind| self.fault(flight.inst, kind.into()))?;
        }
        Ok(())
    }
}
