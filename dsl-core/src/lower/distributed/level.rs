//! One step of a reduction: across registers, lanes or warps.

use super::{Lowering, Result};
use crate::builder::Builder;
use crate::diagnostic::Diagnostic;
use crate::ir::{AtomicOp, Class, DType, Func, Op, Region, Value, op};
use crate::layout::{Point, ThreadMap};
use crate::lower::combine::Combines;
use crate::schedule::room::lines_at_once;
use crate::target::LANE_BITS;

/// A reduction under way: a vector of each source, and the bits of the register number that are left.
#[derive(Clone)]
pub(super) struct Partial {
    pub(super) values: Vec<Value>,
    pub(super) bits: Vec<u32>,
    /// Whether each value is a combination of several.
    pub(super) is_combined: bool,
}

/// What a reduction combines with.
#[derive(Clone)]
pub(super) struct Combiner {
    pub(super) region: Region,
    /// Whether swapped operands give the same result.
    pub(super) commutative: bool,
    pub(super) dtypes: Vec<DType>,
}

impl<'a> Combines<'a> for Lowering<'a> {
    type Failure = Diagnostic;

    fn source(&self) -> &'a Func {
        self.block
    }

    fn builder(&mut self) -> &mut Builder {
        &mut self.builder
    }

    fn outer(&mut self, value: Value) -> Result<Value> {
        Ok(self.scalar(value))
    }

    fn combine_scalars(&mut self, region: Region, arguments: &[Value]) -> Result<Vec<Value>> {
        self.inline(region, arguments)
    }
}

impl Lowering<'_> {
    /// The elements of which a register bit is clear, and those of which it is set; it is gone then.
    fn halves(&mut self, partial: &mut Partial, bit: u32) -> [Vec<Value>; 2] {
        let at = partial.bits.iter().position(|&other| other == bit);
        let at = at.expect("broken invariant: a register bit is reduced once");
        let count = 1_u32 << partial.bits.len();
        partial.bits.remove(at);
        [0, 1].map(|set| {
            let chosen: Vec<u32> = (0..count).filter(|it| it >> at & 1 == set).collect();
            let values = partial.values.iter();
            values.map(|&value| self.elements(value, &chosen)).collect()
        })
    }

    pub(super) fn across_registers(
        &mut self,
        partial: &mut Partial,
        bit: u32,
        combiner: &Combiner,
    ) -> Result<()> {
        let [lower, upper] = self.halves(partial, bit);
        partial.values = self.combine(combiner.region, &lower, &upper)?;
        partial.is_combined = true;
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
        let [keep, send] = match divided {
            Some(register) => {
                let condition = self.thread_bit(&is_upper, 0);
                let [low, high] = self.halves(partial, register);
                [
                    self.choose(condition, &high, &low),
                    self.choose(condition, &low, &high),
                ]
            }
            None => [partial.values.clone(), partial.values.clone()],
        };
        let lane_mask = 1 << bit;
        let other: Vec<Value> = send
            .iter()
            .map(|&x| {
                self.builder
                    .value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask }))
            })
            .collect();
        partial.values = if combiner.commutative {
            self.combine(combiner.region, &keep, &other)?
        } else {
            let condition = self.thread_bit(&is_upper, 0);
            let lower = self.choose(condition, &other, &keep);
            let upper = self.choose(condition, &keep, &other);
            self.combine(combiner.region, &lower, &upper)?
        };
        Ok(())
    }

    /// Combines what all lanes of each warp hold of one source of integers, in words, or of flags.
    pub(super) fn across_warp(&mut self, partial: &mut Partial, op: AtomicOp, dtype: DType) {
        let word = if dtype == DType::Bool && op.votes() {
            DType::Bool
        } else if dtype.class() == Class::Signed {
            DType::I32
        } else {
            DType::U32
        };
        for value in &mut partial.values {
            let x = self.builder.cast(*value, word);
            let combined = self.builder.value(Op::WarpReduce(op::WarpReduce { x, op }));
            *value = self.builder.cast(combined, dtype);
        }
    }

    fn choose(&mut self, condition: Value, on_true: &[Value], on_false: &[Value]) -> Vec<Value> {
        let shape = self.builder.ty(on_true[0]).shape;
        let condition = self.builder.splat(condition, shape);
        let pairs = on_true.iter().zip(on_false);
        pairs
            .map(|(&a, &b)| self.builder.select(condition, a, b))
            .collect()
    }

    /// The slot of each lane and warp among those that differ, lanes first, and how many there are.
    fn slots(&self, equal: Point) -> (ThreadMap, u32) {
        let mut slots = 1;
        let mut columns = |bits: u32, equal: u32| -> Vec<u32> {
            let column = |bit: u32| {
                if equal >> bit & 1 == 1 {
                    return 0;
                }
                slots *= 2;
                slots / 2
            };
            (0..bits).map(column).collect()
        };
        let lane = columns(LANE_BITS, equal.lane);
        let warp = columns(self.warp_bits, equal.warp);
        (ThreadMap { lane, warp }, slots)
    }

    /// All warps store their partial results, and every warp combines those of the warps that differ
    /// from it in `bits`, the first bit first.
    pub(super) fn across_warps(
        &mut self,
        partial: &mut Partial,
        (bits, equal): (&[u32], Point),
        combiner: &Combiner,
    ) -> Result<()> {
        let (store, slots) = self.slots(equal);
        let mut load = store.clone();
        for &bit in bits {
            load.warp[bit as usize] = 0;
        }
        let owner = self.all_zero(equal);
        let count = 1_u32 << partial.bits.len();
        let size = lines_at_once((slots, count), &combiner.dtypes, self.target);
        let mut columns = vec![Vec::new(); partial.values.len()];
        for first in (0..count).step_by(size as usize) {
            let own: Vec<u32> = (first..first + size).collect();
            let values = partial.values.iter();
            let values: Vec<Value> = values.map(|&value| self.elements(value, &own)).collect();
            let buffers = self.buffers(i64::from(slots * size), combiner);
            let places =
                |from: u32| -> Vec<u32> { (0..size).map(|at| at * slots + from).collect() };
            let mask = self.owned_mask(None, owner, own.len());
            let offset = self.thread_offsets(&store, &places(0));
            self.store_slots(&buffers, offset, &values, mask);
            self.barrier();
            let combined = self.combine_tree(combiner, 1 << bits.len(), |this, leaf| {
                let from = bits
                    .iter()
                    .enumerate()
                    .filter(|(level, _)| leaf >> level & 1 == 1)
                    .fold(0, |sum, (_, &bit)| sum | store.warp[bit as usize]);
                let offset = this.thread_offsets(&load, &places(from));
                this.load_slots(&buffers, offset)
            })?;
            for (column, value) in columns.iter_mut().zip(combined) {
                column.push(value);
            }
        }
        partial.values = columns.iter().map(|parts| self.joined(parts)).collect();
        Ok(())
    }

    /// Combines neighbours of so many leaves, a power of two, until one is left: each two as soon as both are there, so that
    /// as few as can be are alive at once.
    pub(super) fn combine_tree(
        &mut self,
        combiner: &Combiner,
        leaves: usize,
        mut leaf: impl FnMut(&mut Self, usize) -> Vec<Value>,
    ) -> Result<Vec<Value>> {
        let mut left: Vec<Vec<Value>> = Vec::new();
        for number in 0..leaves {
            let mut value = leaf(self, number);
            for _ in 0..number.trailing_ones() {
                let lower = left.pop();
                let lower = lower.expect("broken invariant: a right neighbour has a left one");
                value = self.combine(combiner.region, &lower, &value)?;
            }
            left.push(value);
        }
        Ok(left.swap_remove(0))
    }

    /// Stores the values of each source to its buffer.
    pub(super) fn store_slots(
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
                cache: None,
            });
            self.builder.emit(op, &[]);
        }
    }

    pub(super) fn load_slots(&mut self, buffers: &[(Value, DType)], offset: Value) -> Vec<Value> {
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
                    cache: None,
                });
                let ty = self.builder.ty(offset).with_dtype(dtype);
                self.builder.declared(op, ty)
            })
            .collect()
    }

    /// A buffer of `count` elements for each source.
    pub(super) fn buffers(&mut self, count: i64, combiner: &Combiner) -> Vec<(Value, DType)> {
        let dtypes = combiner.dtypes.iter();
        dtypes
            .map(|&dtype| (self.shared(dtype, count), dtype))
            .collect()
    }
}
