//! Stores with equal offsets: the highest element index wins, whatever lane holds it.
//!
//! Where offsets are known to be distinct ([`crate::passes::apart`]), lanes store in any order, and along
//! axes where offsets stay the same only the last element stores. Elsewhere, as with offsets from memory,
//! elements find out which of them store by a table in shared memory.

use std::rc::Rc;

use super::memory::Access;
use super::registers::Registers;
use super::tile::Scope;
use super::{Lowering, Result};
use crate::ir::{AtomicOp, CompareOp, DType, Inst, Op, Type, Value, op};
use crate::layout::{LinearLayout, ThreadMap};
use crate::schedule::room::{repeated_axes, table_slots};
use crate::target::{LANE_BITS, WARP_LANES};

/// An odd number whose multiples spread over 64 bits: 2^64 by the golden ratio.
const GOLDEN: i64 = 0x9E37_79B9_7F4A_7C15_u64.cast_signed();

/// Where elements with equal offsets meet, in shared memory.
struct Table {
    /// In each slot, the offset of the element that has it.
    shown: Value,
    /// In each slot one more than the highest index, or 0; then the last round that left something open.
    highest: Value,
    slots: i64,
    /// Whether a lane acts for its elements, where others have them too.
    owner: Option<Value>,
}

impl Lowering<'_> {
    /// Masks off every element of a store that a higher element with its offset overwrites.
    pub(super) fn keep_highest(
        &mut self,
        access: &mut Access,
        (inst, op): (Inst, &op::Store),
        layout: &Rc<LinearLayout>,
    ) -> Result<()> {
        let repeated = repeated_axes(self.block, &self.indices, op);
        let Some(repeated) = repeated.filter(|_| self.apart.contains(&inst)) else {
            self.find_highest(access, layout);
            return Ok(());
        };
        let shape = self.block.ty(op.offsets).shape;
        for axis in repeated {
            let mask = layout
                .dim_mask(axis)
                .map_err(|error| self.layout_error(&error))?;
            let indices = self.indices(layout, mask);
            let last = shape.extent(axis) as u64 - 1;
            let owned = self.map(&[&indices], |builder, index| {
                let last = builder.bits_like(index[0], DType::I64, last);
                builder.compare(CompareOp::Eq, index[0], last)
            });
            let masks = access.masks().cloned();
            let restricted = match &masks {
                Some(masks) => self.map(&[masks, &owned], |builder, both| {
                    builder.and(both[0], both[1])
                }),
                None => owned,
            };
            access.restrict(restricted);
        }
        Ok(())
    }

    /// Masks off every element that a higher one with its offset overwrites, whatever the offsets are.
    ///
    /// Rounds decide. In each, an element whose fate is open enters its index into the slot of a table
    /// that its offset hashes to, and the highest index stays. The element that it belongs to shows its
    /// offset in the slot and stores; all others with that offset are overwritten. Those with another
    /// offset try again with another hash. Every slot in use decides one offset, so rounds come to an end.
    fn find_highest(&mut self, access: &mut Access, layout: &Rc<LinearLayout>) {
        let count = 1_i64 << layout.tile_bits();
        if count == 1 {
            return;
        }
        let slots = table_slots(count);
        let table = Table {
            shown: self.shared(DType::I64, slots),
            highest: self.shared(DType::I32, slots + 1),
            slots,
            owner: self.all_zero(layout.free_bits()),
        };
        let elements = self.indices(layout, (1_u64 << layout.tile_bits()) - 1);
        let elements = self.distinct(&elements, layout);
        let elements = self.builder.cast(elements, DType::I32);
        let one = self.builder.bits_like(elements, DType::I32, 1);
        let keys = self.builder.add(elements, one);
        let offsets = self.distinct(access.offsets(), layout);
        self.clear_table(&table);
        self.barrier();
        let always = self.builder.bits_like(keys, DType::Bool, 1);
        let never = self.builder.bits_like(keys, DType::Bool, 0);
        let masks = access.masks().cloned();
        let open = masks.map_or(always, |masks| self.distinct(&masks, layout));
        let init = vec![open, never, self.builder.int32(1)];
        let types: Vec<Type> = init.iter().map(|&value| self.builder.ty(value)).collect();
        let before = self.builder.new_region(&types);
        let outer = self.builder.enter(before);
        self.scopes.push(Scope::default());
        let parameters = self.builder.parameters(before);
        let state = [parameters[0], parameters[1], parameters[2]];
        let values = self.decide_round(&table, (offsets, keys), state);
        self.builder.emit(Op::Yield(op::Yield { values }), &[]);
        self.scopes.pop();
        self.builder.enter(outer);
        let body = self
            .builder
            .region_with(&types, |_, values| values.to_vec());
        let rounds = self
            .builder
            .emit(Op::While(op::While { init, before, body }), &[]);
        let stores = self.builder.results(rounds)[1];
        access.restrict(Registers::of(stores, layout));
    }

    /// One round. The state and what follows the condition in the result are which elements' fates are
    /// open, which elements store, and the number of the round.
    fn decide_round(
        &mut self,
        table: &Table,
        (offsets, keys): (Value, Value),
        [open, stores, round]: [Value; 3],
    ) -> Vec<Value> {
        let count = self.builder.ty(keys).shape.elements();
        let places = self.hashes(offsets, round, table.slots);
        let mask = self.owned_mask(Some(open), table.owner, count);
        self.raise(table, places, keys, mask);
        self.barrier();
        let zero = self.builder.bits_like(keys, DType::I32, 0);
        let highest = self.load_entry(table.highest, places, Some((open, zero)));
        let own = self.builder.compare(CompareOp::Eq, highest, keys);
        let wins = self.builder.and(open, own);
        let mask = self.owned_mask(Some(wins), table.owner, count);
        self.store_entry(table.shown, places, offsets, mask);
        self.barrier();
        let shown = self.load_entry(table.shown, places, Some((open, offsets)));
        let other = self.builder.compare(CompareOp::Ne, shown, offsets);
        let left = self.builder.and(open, other);
        self.store_entry(table.highest, places, zero, mask);
        let any = self.any(left);
        let flag = self.builder.index(table.slots);
        self.raise(table, flag, round, Some(any));
        self.barrier();
        let last = self.load_entry(table.highest, flag, None);
        let more = self.builder.compare(CompareOp::Eq, last, round);
        let stores = self.builder.or(stores, wins);
        let one = self.builder.int32(1);
        vec![more, left, stores, self.builder.add(round, one)]
    }

    /// The slots of offsets in a round: the high bits of products with an odd number of its own.
    fn hashes(&mut self, offsets: Value, round: Value, slots: i64) -> Value {
        let round = self.builder.cast(round, DType::I64);
        let two = self.builder.index(2);
        let twice = self.builder.mul(round, two);
        let one = self.builder.index(1);
        let odd = self.builder.add(twice, one);
        let golden = self.builder.index(GOLDEN);
        let factor = self.builder.mul(odd, golden);
        let factor = self.repeated(factor, self.builder.ty(offsets).shape.elements());
        let product = self.builder.mul(offsets, factor);
        let product = self.builder.bitcast(product, DType::U64);
        let amount = 64 - u64::from(slots.trailing_zeros());
        let amount = self.builder.bits_like(product, DType::U64, amount);
        let high = self.builder.shr(product, amount);
        self.builder.cast(high, DType::I64)
    }

    /// Empties the table, the lanes of the block taking slots in turns.
    fn clear_table(&mut self, table: &Table) {
        let warp_bits = self.warp_bits;
        let thread = ThreadMap {
            lane: (0..LANE_BITS).map(|bit| 1 << bit).collect(),
            warp: (0..warp_bits).map(|bit| WARP_LANES << bit).collect(),
        };
        let zero = self.builder.int32(0);
        let step = i64::from(WARP_LANES << warp_bits);
        for first in (0..=table.slots).step_by(step as usize) {
            let place = self.thread_offset(&thread, first as u32);
            let mask = (first + step > table.slots + 1).then(|| {
                let last = self.builder.index(table.slots);
                self.builder.compare(CompareOp::Le, place, last)
            });
            self.store_entry(table.highest, place, zero, mask);
        }
    }

    /// Raises an entry of the table of the highest to `key`.
    fn raise(&mut self, table: &Table, place: Value, key: Value, mask: Option<Value>) {
        let op = Op::LaneAtomic(op::LaneAtomic {
            base: table.highest,
            offset: place,
            value: key,
            mask,
            op: AtomicOp::Max,
            order: None,
            scope: None,
        });
        self.builder.emit(op, &[]);
    }

    fn load_entry(&mut self, base: Value, offset: Value, masked: Option<(Value, Value)>) -> Value {
        let dtype = match self.builder.ty(base).pointee() {
            Some((dtype, _)) => dtype,
            None => unreachable!("broken invariant: a table is memory"),
        };
        let op = Op::LaneLoad(op::LaneLoad {
            base,
            offset,
            mask: masked.map(|(mask, _)| mask),
            other: masked.map(|(_, other)| other),
            align: i64::from(dtype.bytes()),
            cache: None,
        });
        let ty = self.builder.ty(offset).with_dtype(dtype);
        self.builder.declared(op, ty)
    }

    fn store_entry(&mut self, base: Value, offset: Value, value: Value, mask: Option<Value>) {
        let dtype = self.builder.ty(value).dtype();
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset,
            value,
            mask,
            align: dtype.map_or(1, |dtype| i64::from(dtype.bytes())),
            cache: None,
        });
        self.builder.emit(op, &[]);
    }
}
