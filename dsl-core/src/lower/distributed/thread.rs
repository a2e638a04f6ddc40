//! Functions of the lane and the warp, as lane code.

use std::collections::BTreeMap;

use super::Lowering;
use super::registers::{Registers, grouped};
use crate::ir::{CompareOp, DType, Op, Value, op};
use crate::layout::{LinearLayout, Point, ThreadMap};

/// Which number a shift reads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Lane,
    Warp,
}

impl Lowering<'_> {
    pub(super) fn lane_id(&mut self) -> Value {
        match self.lane {
            Some(lane) => lane,
            None => *self
                .lane
                .insert(self.builder.value(Op::LaneId(op::LaneId {}))),
        }
    }

    fn warp_id(&mut self) -> Value {
        match self.warp {
            Some(warp) => warp,
            None => *self
                .warp
                .insert(self.builder.value(Op::WarpId(op::WarpId {}))),
        }
    }

    /// Emits the lane and warp numbers where everything can use them.
    pub(super) fn emit_thread(&mut self) {
        self.lane_id();
        self.warp_id();
    }

    /// The value (`i32`) of a function of the lane and the warp.
    pub(super) fn thread_value(&mut self, map: &ThreadMap) -> Value {
        if let Some(known) = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.maps.get(map))
        {
            return *known;
        }
        // Bits that move by the same distance move together.
        let mut moves: BTreeMap<(Source, i32), u32> = BTreeMap::new();
        for (source, columns) in [(Source::Lane, &map.lane), (Source::Warp, &map.warp)] {
            for (bit, &column) in columns.iter().enumerate() {
                for target in (0..32).filter(|target| column >> target & 1 == 1) {
                    *moves.entry((source, target - bit as i32)).or_default() |= 1 << bit;
                }
            }
        }
        let mut sum = None;
        for ((source, distance), mask) in moves {
            let (number, bits) = match source {
                Source::Lane => (self.lane_id(), map.lane.len()),
                Source::Warp => (self.warp_id(), map.warp.len()),
            };
            let term = self.moved(number, mask, mask == (1 << bits) - 1, distance);
            sum = Some(match sum {
                Some(sum) => self.builder.xor(sum, term),
                None => term,
            });
        }
        let value = sum.unwrap_or_else(|| self.builder.int32(0));
        let scope = self
            .scopes
            .last_mut()
            .expect("broken invariant: a region is open");
        scope.maps.insert(map.clone(), value);
        value
    }

    fn moved(&mut self, number: Value, mask: u32, whole: bool, distance: i32) -> Value {
        let mut value = number;
        if !whole {
            let mask = self.builder.int32(mask as i32);
            value = self.builder.and(value, mask);
        }
        let amount = self.builder.int32(distance.abs());
        match distance.signum() {
            1 => self.builder.shl(value, amount),
            -1 => self.builder.shr(value, amount),
            _ => value,
        }
    }

    /// `thread_value(map)` with `constant` added by exclusive or.
    pub(super) fn thread_value_with(&mut self, map: &ThreadMap, constant: u32) -> Value {
        let value = self.thread_value(map);
        if constant == 0 {
            return value;
        }
        let literal = self.builder.int32(constant as i32);
        self.builder.xor(value, literal)
    }

    /// `thread_value(map)` with `constant` added by exclusive or, as an index. Bits that the map never
    /// sets are added to the widened number, so that they fold into addresses.
    pub(super) fn thread_offset(&mut self, map: &ThreadMap, constant: u32) -> Value {
        if map.is_zero() {
            return self.builder.index(i64::from(constant));
        }
        let (mixed, apart) = (constant & map.support(), constant & !map.support());
        let key = (map.clone(), mixed);
        let known = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.offsets.get(&key).copied());
        let offset = known.unwrap_or_else(|| {
            let value = self.thread_value_with(map, mixed);
            self.builder.cast(value, DType::I64)
        });
        let scope = self
            .scopes
            .last_mut()
            .expect("broken invariant: a region is open");
        scope.offsets.insert(key, offset);
        if apart == 0 {
            return offset;
        }
        let literal = self.builder.index(i64::from(apart));
        self.builder.add(offset, literal)
    }

    /// Whether bit `bit` of the value of `map` is set.
    pub(super) fn thread_bit(&mut self, map: &ThreadMap, bit: u32) -> Value {
        let one = |columns: &[u32]| columns.iter().map(|column| column >> bit & 1).collect();
        let parity = ThreadMap {
            lane: one(&map.lane),
            warp: one(&map.warp),
        };
        let value = self.thread_value(&parity);
        let zero = self.builder.int32(0);
        self.builder.compare(CompareOp::Ne, value, zero)
    }

    /// Whether these lane and warp bits are all zero; `None` when there are none.
    pub(super) fn all_zero(&mut self, bits: Point) -> Option<Value> {
        let zero = Point {
            register: 0,
            lane: 0,
            warp: 0,
        };
        self.thread_is(bits, zero)
    }

    /// Whether these lane and warp bits have these values; `None` when there are none.
    pub(super) fn thread_is(&mut self, bits: Point, value: Point) -> Option<Value> {
        let mut condition = None;
        let lanes = (bits.lane, value.lane, true);
        let warps = (bits.warp, value.warp, false);
        for (mask, value, lanes) in [lanes, warps] {
            if mask == 0 {
                continue;
            }
            let number = if lanes {
                self.lane_id()
            } else {
                self.warp_id()
            };
            let mask = self.builder.int32(mask as i32);
            let masked = self.builder.and(number, mask);
            let value = self.builder.int32(value as i32);
            let holds = self.builder.compare(CompareOp::Eq, masked, value);
            condition = Some(self.both(condition, holds));
        }
        condition
    }

    /// A condition and another one, if there is one.
    pub(super) fn both(&mut self, first: Option<Value>, second: Value) -> Value {
        match first {
            Some(first) => self.builder.and(first, second),
            None => second,
        }
    }

    /// `thread_value(map)` with each of some constants added by exclusive or, as indices.
    pub(super) fn thread_offsets(&mut self, map: &ThreadMap, constants: &[u32]) -> Value {
        if let &[constant] = constants {
            return self.thread_offset(map, constant);
        }
        if map.is_zero() {
            return self.literals(DType::I64, constants);
        }
        let bits = map.support();
        let mixed = constants[0] & bits;
        if constants.iter().any(|constant| constant & bits != mixed) {
            let value = self.thread_value(map);
            return self.mixed_offsets(value, bits, constants);
        }
        let base = self.thread_offset(map, mixed);
        let base = self.repeated(base, constants.len());
        self.add_masked(base, constants, !bits)
    }

    /// `value`, of which no bits but `bits` are set, with each of some constants added by exclusive or, as indices.
    /// Other bits are added to the widened numbers, so that they fold into addresses.
    pub(super) fn mixed_offsets(&mut self, value: Value, bits: u32, constants: &[u32]) -> Value {
        let mixed: Vec<u32> = constants.iter().map(|constant| constant & bits).collect();
        let value = self.repeated(value, constants.len());
        let mixed = self.literals(DType::I32, &mixed);
        let mixed = self.builder.xor(value, mixed);
        let base = self.builder.cast(mixed, DType::I64);
        self.add_masked(base, constants, !bits)
    }

    /// `base` plus the bits of each constant under `mask`.
    fn add_masked(&mut self, base: Value, constants: &[u32], mask: u32) -> Value {
        let apart: Vec<u32> = constants.iter().map(|constant| constant & mask).collect();
        if apart.iter().all(|&constant| constant == 0) {
            return base;
        }
        let apart = self.literals(DType::I64, &apart);
        self.builder.add(base, apart)
    }

    /// The index bits under `mask`, moved down to bit 0, of each register of a layout (`i64`).
    pub(super) fn indices(&mut self, layout: &LinearLayout, mask: u64) -> Registers {
        let shift = mask.trailing_zeros().min(63);
        self.images(layout, &|flat| (flat & mask) >> shift)
    }

    /// A linear function of the index of each register of a layout (`i64`).
    pub(super) fn images(&mut self, layout: &LinearLayout, of: &dyn Fn(u64) -> u64) -> Registers {
        let images =
            |columns: &[u64]| -> Vec<u32> { columns.iter().map(|&flat| of(flat) as u32).collect() };
        let map = ThreadMap {
            lane: images(layout.lane_columns()),
            warp: images(layout.warp_columns()),
        };
        let constant = |register| {
            let flat = layout.apply(Point {
                register,
                lane: 0,
                warp: 0,
            });
            of(flat) as u32
        };
        let constants: Vec<u32> = (0..layout.registers()).map(constant).collect();
        let (firsts, places) = grouped(constants.iter().copied());
        let distinct: Vec<u32> = firsts.iter().map(|&at| constants[at as usize]).collect();
        Registers::new(self.thread_offsets(&map, &distinct), places)
    }
}
