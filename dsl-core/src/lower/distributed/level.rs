//! One step of a reduction: across registers, lanes or warps.

use std::collections::BTreeMap;

use super::{Lowering, Result};
use crate::ir::{AtomicOp, Class, DType, Op, Region, Type, Value, op};
use crate::layout::{Point, ThreadMap};
use crate::target::LANE_BITS;

/// A reduction under way: the values of every source, for each register number whose bits that are
/// gone are zero.
pub(super) type Partial = BTreeMap<u32, Vec<Value>>;

/// What a reduction combines with.
pub(super) struct Combiner {
    pub(super) region: Region,
    /// Whether swapped operands give the same result.
    pub(super) commutative: bool,
    pub(super) dtypes: Vec<DType>,
}

impl Combiner {
    /// Bytes of one element of every source.
    fn bytes(&self) -> i64 {
        self.dtypes
            .iter()
            .map(|dtype| i64::from(dtype.bytes()))
            .sum()
    }
}

impl Lowering<'_> {
    pub(super) fn combine(
        &mut self,
        combiner: &Combiner,
        lower: &[Value],
        upper: &[Value],
    ) -> Result<Vec<Value>> {
        self.inline(combiner.region, &[lower, upper].concat())
    }

    /// The pairs of registers that differ in one bit; afterwards that bit is gone.
    fn halves(partial: &mut Partial, bit: u32) -> Vec<(u32, Vec<Value>, Vec<Value>)> {
        let mut registers = std::mem::take(partial);
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
            partial.insert(register, combined);
        }
        Ok(())
    }

    pub(super) fn across_lanes(
        &mut self,
        partial: &mut Partial,
        (bit, divided): (u32, Option<u32>),
        combiner: &Combiner,
    ) -> Result<()> {
        let lane = (0..LANE_BITS)
            .map(|position| u32::from(position == bit))
            .collect();
        let is_upper = ThreadMap {
            lane,
            warp: Vec::new(),
        };
        // What each lane keeps and what it sends: one half each, or everything twice.
        let shares: Vec<(u32, Vec<Value>, Vec<Value>)> = match divided {
            Some(register) => {
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
                let registers = std::mem::take(partial);
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
                .map(|&x| {
                    self.builder
                        .value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask }))
                })
                .collect();
            let combined = if combiner.commutative {
                self.combine(combiner, &keep, &other)?
            } else {
                let condition = self.thread_bit(&is_upper, 0);
                let lower = self.choose(condition, &other, &keep);
                let upper = self.choose(condition, &keep, &other);
                self.combine(combiner, &lower, &upper)?
            };
            partial.insert(register, combined);
        }
        Ok(())
    }

    /// Combines what all lanes of each warp hold of one source of integers, in words.
    pub(super) fn across_warp(&mut self, partial: &mut Partial, op: AtomicOp, dtype: DType) {
        let is_signed = dtype.class() == Class::Signed;
        let word = if is_signed { DType::I32 } else { DType::U32 };
        for value in partial.values_mut().flatten() {
            let x = self.builder.cast(*value, word);
            let combined = self.builder.value(Op::WarpReduce(op::WarpReduce { x, op }));
            *value = self.builder.cast(combined, dtype);
        }
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
        (bits, equal): (&[u32], Point),
        combiner: &Combiner,
    ) -> Result<()> {
        let warp_bits = self.assignment.warp_bits;
        let kept: Vec<u32> = (0..LANE_BITS)
            .filter(|bit| equal.lane >> bit & 1 == 0)
            .collect();
        let warps_kept: Vec<u32> = (0..warp_bits)
            .filter(|bit| equal.warp >> bit & 1 == 0)
            .collect();
        // Slot: lanes that differ, then warps that differ, then registers.
        let position = |list: &[u32], bit: u32, base: usize| {
            list.iter()
                .position(|&kept| kept == bit)
                .map_or(0, |place| 1 << (base + place))
        };
        let lane: Vec<u32> = (0..LANE_BITS).map(|bit| position(&kept, bit, 0)).collect();
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
        let owner = self.all_zero(equal);
        let registers: Vec<(u32, Vec<Value>)> = std::mem::take(partial).into_iter().collect();
        for registers in registers.chunks(self.together(slots, combiner)) {
            let count = slots * registers.len() as i64;
            let (buffers, start, bytes) = self.buffers(count, combiner)?;
            for (index, (_, values)) in registers.iter().enumerate() {
                let offset = self.thread_offset(&store, index as u32 * slots as u32);
                self.store_slot(&buffers, offset, values, owner);
            }
            self.publish_shared(start, bytes);
            for (index, &(register, _)) in registers.iter().enumerate() {
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
                partial.insert(register, self.combine_tree(combiner, tree)?);
            }
        }
        Ok(())
    }

    /// How many registers of `slots` elements each shared memory holds at a time, at least one.
    pub(super) fn together(&self, slots: i64, combiner: &Combiner) -> usize {
        let space = i64::from(self.target.gpu.shared_bytes);
        (space / (slots * combiner.bytes())).max(1) as usize
    }

    /// Combines neighbours until one is left.
    pub(super) fn combine_tree(
        &mut self,
        combiner: &Combiner,
        mut tree: Vec<Vec<Value>>,
    ) -> Result<Vec<Value>> {
        while tree.len() > 1 {
            let pairs = tree.chunks(2);
            let next = pairs.map(|pair| self.combine(combiner, &pair[0], &pair[1]));
            tree = next.collect::<Result<_>>()?;
        }
        Ok(tree.swap_remove(0))
    }

    /// Stores one value to each buffer.
    pub(super) fn store_slot(
        &mut self,
        buffers: &[(Value, DType)],
        offset: Value,
        values: &[Value],
        mask: Option<Value>,
    ) {
        for (&(base, dtype), &value) in buffers.iter().zip(values) {
            let op = Op::LaneStore(op::LaneStore {
                base,
                offset,
                value,
                mask,
                align: i64::from(dtype.bytes()),
            });
            self.builder.emit(op, &[]);
        }
    }

    fn load_slot(&mut self, buffers: &[(Value, DType)], offset: Value) -> Vec<Value> {
        buffers
            .iter()
            .map(|&(base, dtype)| {
                let align = i64::from(dtype.bytes());
                let op = Op::LaneLoad(op::LaneLoad {
                    base,
                    offset,
                    mask: None,
                    other: None,
                    align,
                });
                self.builder.declared(op, Type::scalar(dtype))
            })
            .collect()
    }

    /// A buffer of `count` elements for each source, widest first so that all are aligned, and the
    /// bytes that they take: first and number.
    pub(super) fn buffers(
        &mut self,
        count: i64,
        combiner: &Combiner,
    ) -> Result<(Vec<(Value, DType)>, i64, i64)> {
        let bytes = count * combiner.bytes();
        if bytes > i64::from(self.target.gpu.shared_bytes) {
            let message = format!(
                "a reduction or scan takes {bytes} bytes of shared memory, expected at most {}",
                self.target.gpu.shared_bytes
            );
            return Err(self.error(message).note("use a smaller tile"));
        }
        let mut order: Vec<usize> = (0..combiner.dtypes.len()).collect();
        order.sort_by_key(|&source| std::cmp::Reverse(combiner.dtypes[source].bytes()));
        let start = self.begin_shared(bytes);
        let mut placed = vec![None; order.len()];
        let mut offset = start;
        for source in order {
            let dtype = combiner.dtypes[source];
            placed[source] = Some((self.shared(dtype, offset, count), dtype));
            offset += count * i64::from(dtype.bytes());
        }
        Ok((placed.into_iter().flatten().collect(), start, bytes))
    }
}
