//! One level of a reduction: across registers, lanes or warps.
//!
//! Across lanes, where a lane still has several values, each of two lanes takes over one half of
//! them: it sends the other half and combines its own. That takes half the shuffles, and half the
//! combines, of combining everything in both lanes; a register bit becomes a lane bit by it.

use std::collections::BTreeMap;

use super::{Lowering, Result, SHARED_BYTES};
use crate::ir::{DType, Op, Region, Type, Value};
use crate::layout::{Holder, IndexMap, LayoutError, LinearLayout, Point, ThreadMap};

/// A reduction under way.
pub(super) struct Partial {
    /// The values of every source, for each register number whose reduced bits are zero.
    pub(super) registers: BTreeMap<u32, Vec<Value>>,
    /// The flat index that each register bit adds; `None` for bits that are gone.
    register: Vec<Option<u64>>,
    /// The flat index that each lane bit adds; zero when lanes that differ in it are equal.
    lane: Vec<u64>,
    /// The same for warps.
    warp: Vec<u64>,
    /// The index bits of the axis.
    axis: u64,
}

/// What a reduction combines with.
pub(super) struct Combiner {
    pub(super) region: Region,
    /// Whether swapped operands give the same result.
    pub(super) commutative: bool,
    pub(super) dtypes: Vec<DType>,
}

impl Partial {
    pub(super) fn new(
        layout: &LinearLayout,
        axis: u64,
        registers: BTreeMap<u32, Vec<Value>>,
    ) -> Partial {
        Partial {
            registers,
            register: layout
                .register_columns()
                .iter()
                .copied()
                .map(Some)
                .collect(),
            lane: layout.lane_columns().to_vec(),
            warp: layout.warp_columns().to_vec(),
            axis,
        }
    }

    /// What holds an index bit now.
    pub(super) fn holder(&self, bit: u32) -> Holder {
        let column = 1 << bit;
        let place = |columns: &[u64]| columns.iter().position(|&found| found == column);
        let register = self
            .register
            .iter()
            .position(|&found| found == Some(column));
        match (register, place(&self.lane), place(&self.warp)) {
            (Some(register), _, _) => Holder::Register(register as u32),
            (None, Some(lane), _) => Holder::Lane(lane as u32),
            (None, None, Some(warp)) => Holder::Warp(warp as u32),
            (None, None, None) => Holder::Mixed,
        }
    }

    /// The position in `bits` of the level that costs least: registers, then lanes, then warps.
    pub(super) fn cheapest(&self, bits: &[u32]) -> usize {
        let cost = |bit: u32| match self.holder(bit) {
            Holder::Register(_) => 0,
            Holder::Lane(_) => 1,
            Holder::Warp(_) | Holder::Mixed => 2,
        };
        (0..bits.len())
            .min_by_key(|&position| cost(bits[position]))
            .unwrap_or(0)
    }

    /// A register bit that still tells values apart, one of the axis if there is one.
    fn divisible(&self) -> Option<u32> {
        let alive = |wanted: &dyn Fn(u64) -> bool| {
            self.register
                .iter()
                .position(|column| column.is_some_and(wanted))
        };
        let on_axis = alive(&|column| column & self.axis != 0);
        on_axis.or_else(|| alive(&|_| true)).map(|bit| bit as u32)
    }

    /// The layout of the result: what is left of the columns, without the axis.
    pub(super) fn layout(&self, map: &IndexMap) -> std::result::Result<LinearLayout, LayoutError> {
        let image = |columns: &[u64]| columns.iter().map(|&column| map.apply(column)).collect();
        let register: Vec<u64> = self.register.iter().flatten().copied().collect();
        LinearLayout::new(
            map.to_bits().to_vec(),
            image(&register),
            image(&self.lane),
            image(&self.warp),
        )
    }
}

/// The bits whose columns are zero.
fn zeros(columns: &[u64]) -> u32 {
    let bits = columns.iter().enumerate();
    bits.fold(0, |mask, (bit, &column)| {
        mask | u32::from(column == 0) << bit
    })
}

impl Lowering<'_> {
    fn combine(
        &mut self,
        combiner: &Combiner,
        lower: &[Value],
        upper: &[Value],
    ) -> Result<Vec<Value>> {
        self.inline(combiner.region, &[lower, upper].concat())
    }

    /// The pairs of registers that differ in one bit; afterwards that bit is gone.
    fn halves(partial: &mut Partial, bit: u32) -> Vec<(u32, Vec<Value>, Vec<Value>)> {
        partial.register[bit as usize] = None;
        let mut registers = std::mem::take(&mut partial.registers);
        let upper: Vec<u32> = registers
            .keys()
            .copied()
            .filter(|register| register >> bit & 1 == 1)
            .collect();
        upper
            .into_iter()
            .filter_map(|upper| {
                let lower = upper & !(1 << bit);
                Some((lower, registers.remove(&lower)?, registers.remove(&upper)?))
            })
            .collect()
    }

    pub(super) fn across_registers(
        &mut self,
        partial: &mut Partial,
        bit: u32,
        combiner: &Combiner,
    ) -> Result<()> {
        for (register, lower, upper) in Self::halves(partial, bit) {
            let combined = self.combine(combiner, &lower, &upper)?;
            partial.registers.insert(register, combined);
        }
        Ok(())
    }

    pub(super) fn across_lanes(
        &mut self,
        partial: &mut Partial,
        bit: u32,
        combiner: &Combiner,
    ) -> Result<()> {
        let lane = (0..5).map(|position| u32::from(position == bit)).collect();
        let is_upper = ThreadMap {
            lane,
            warp: Vec::new(),
        };
        let shared = partial.divisible();
        // What each lane keeps and what it sends: one half each, or everything twice.
        let shares: Vec<(u32, Vec<Value>, Vec<Value>)> = match shared {
            Some(register) => {
                partial.lane[bit as usize] = partial.register[register as usize].unwrap_or(0);
                let condition = self.thread_bit(&is_upper, 0);
                let halves = Self::halves(partial, register);
                halves
                    .into_iter()
                    .map(|(register, low, high)| {
                        let keep = self.choose(condition, &high, &low);
                        let send = self.choose(condition, &low, &high);
                        (register, keep, send)
                    })
                    .collect()
            }
            None => {
                partial.lane[bit as usize] = 0;
                let registers = std::mem::take(&mut partial.registers);
                registers
                    .into_iter()
                    .map(|(register, own)| (register, own.clone(), own))
                    .collect()
            }
        };
        for (register, keep, send) in shares {
            let lane_mask = 1 << bit;
            let other: Vec<Value> = send
                .iter()
                .map(|&x| self.builder.value(Op::ShuffleXor { x, lane_mask }))
                .collect();
            let combined = if combiner.commutative {
                self.combine(combiner, &keep, &other)?
            } else {
                let condition = self.thread_bit(&is_upper, 0);
                let lower = self.choose(condition, &other, &keep);
                let upper = self.choose(condition, &keep, &other);
                self.combine(combiner, &lower, &upper)?
            };
            partial.registers.insert(register, combined);
        }
        Ok(())
    }

    fn choose(&mut self, condition: Value, on_true: &[Value], on_false: &[Value]) -> Vec<Value> {
        let pairs = on_true.iter().zip(on_false);
        pairs
            .map(|(&a, &b)| self.builder.select(condition, a, b))
            .collect()
    }

    /// All warps store their partial results, and every warp combines those of the warps that differ
    /// from it in `bits`, the first bit first.
    pub(super) fn across_warps(
        &mut self,
        partial: &mut Partial,
        bits: &[u32],
        combiner: &Combiner,
    ) -> Result<()> {
        let warp_bits = self.assignment.warp_bits;
        let (equal_lanes, equal_warps) = (zeros(&partial.lane), zeros(&partial.warp));
        let kept: Vec<u32> = (0..5).filter(|bit| equal_lanes >> bit & 1 == 0).collect();
        let warps_kept: Vec<u32> = (0..warp_bits)
            .filter(|bit| equal_warps >> bit & 1 == 0)
            .collect();
        // Slot: lanes that differ, then warps that differ, then registers.
        let position = |list: &[u32], bit: u32, base: usize| {
            list.iter()
                .position(|&kept| kept == bit)
                .map_or(0, |place| 1 << (base + place))
        };
        let lane: Vec<u32> = (0..5).map(|bit| position(&kept, bit, 0)).collect();
        let warp: Vec<u32> = (0..warp_bits)
            .map(|bit| position(&warps_kept, bit, kept.len()))
            .collect();
        let store = ThreadMap {
            lane: lane.clone(),
            warp: warp.clone(),
        };
        let mut others = warp.clone();
        for &bit in bits {
            others[bit as usize] = 0;
        }
        let load = ThreadMap { lane, warp: others };
        let slots = 1_i64 << (kept.len() + warps_kept.len());
        let buffers = self.buffers(slots * partial.registers.len() as i64, combiner)?;
        let owner = self.all_zero(Point {
            register: 0,
            lane: equal_lanes,
            warp: equal_warps,
        });
        self.begin_shared();
        let registers = std::mem::take(&mut partial.registers);
        for (index, values) in registers.values().enumerate() {
            let offset = self.thread_offset(&store, index as u32 * slots as u32);
            for (&(base, dtype), &value) in buffers.iter().zip(values) {
                let align = i64::from(dtype.bytes());
                let op = Op::LaneStore {
                    base,
                    offset,
                    value,
                    mask: owner,
                    align,
                };
                self.builder.emit(op, &[]);
            }
        }
        self.publish_shared();
        for (index, &register) in registers.keys().enumerate() {
            let mut tree: Vec<Vec<Value>> = Vec::new();
            for leaf in 0..1_u32 << bits.len() {
                let from = bits
                    .iter()
                    .enumerate()
                    .filter(|(level, _)| leaf >> level & 1 == 1)
                    .fold(0, |sum, (_, &bit)| sum | warp[bit as usize]);
                let offset = self.thread_offset(&load, index as u32 * slots as u32 + from);
                tree.push(self.load_slot(&buffers, offset));
            }
            while tree.len() > 1 {
                let mut next = Vec::new();
                for pair in tree.chunks(2) {
                    next.push(self.combine(combiner, &pair[0], &pair[1])?);
                }
                tree = next;
            }
            partial.registers.insert(register, tree.swap_remove(0));
        }
        for &bit in bits {
            partial.warp[bit as usize] = 0;
        }
        Ok(())
    }

    fn load_slot(&mut self, buffers: &[(Value, DType)], offset: Value) -> Vec<Value> {
        buffers
            .iter()
            .map(|&(base, dtype)| {
                let align = i64::from(dtype.bytes());
                let op = Op::LaneLoad {
                    base,
                    offset,
                    mask: None,
                    other: None,
                    align,
                };
                self.builder.declared(op, Type::scalar(dtype))
            })
            .collect()
    }

    /// A buffer of `count` elements for each source, widest first so that all are aligned.
    fn buffers(&mut self, count: i64, combiner: &Combiner) -> Result<Vec<(Value, DType)>> {
        let mut order: Vec<usize> = (0..combiner.dtypes.len()).collect();
        order.sort_by_key(|&source| std::cmp::Reverse(combiner.dtypes[source].bytes()));
        let mut placed = vec![None; order.len()];
        let mut offset = 0;
        for source in order {
            let dtype = combiner.dtypes[source];
            placed[source] = Some((self.scratch(dtype, offset, count), dtype));
            offset += count * i64::from(dtype.bytes());
        }
        if offset > i64::from(SHARED_BYTES) {
            let message = format!(
                "a reduction takes {offset} bytes of shared memory, expected at most {SHARED_BYTES}"
            );
            return Err(self.error(message).note("use a smaller tile"));
        }
        Ok(placed.into_iter().flatten().collect())
    }
}
