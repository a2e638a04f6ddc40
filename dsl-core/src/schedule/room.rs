//! How much shared memory what is placed takes, known before there is lane IR: its buffers, and what its ops exchange through.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::rc::Rc;

use super::PlacedFunc;
use crate::facts::Facts;
use crate::ir::op::Control;
use crate::ir::operand::is_multiplied_in_fragments;
use crate::ir::{DType, Func, Inst, Op, Region, Value, op};
use crate::layout::reduction::{Division, ReductionStep, ReductionSteps};
use crate::layout::scan::scan_steps;
use crate::layout::sorting::{SortStep, sort_steps};
use crate::layout::{Conversion, ConversionLimits, LayoutError, LinearLayout, Point};
use crate::passes::allocate::{Exchanges, buffer_bytes, least_bytes};
use crate::passes::apart::{self, Apart};
use crate::passes::indices::Indices;
use crate::semantics::reduction::evaluation_order;
use crate::target::{LANE_BITS, Target, WARP_LANES};

/// Bytes of a counter of a histogram.
pub(crate) const COUNTER: i64 = 4;

/// Elements of a tile for each counter that is cleared and added up with it.
const ELEMENTS_PER_COUNTER: i64 = 8;

/// The most slots of a table in which equal offsets of a store meet.
const MOST_SLOTS: i64 = 2048;

/// The most slots of a buffer, from `least` to `most`, with which a thread block has room for a function; nothing where it
/// has none. `apart` are the stores that write no element twice.
pub(crate) fn deepest_fit(
    func: &PlacedFunc,
    target: &Target,
    apart: &BTreeSet<Inst>,
    (least, most): (i64, i64),
) -> Option<i64> {
    let indices = Indices::of(func);
    let limit = i64::from(target.gpu.shared_bytes);
    let fits = |&most: &i64| taken_bytes(func, target, (apart, &indices), most) <= limit;
    (least..=most).rev().find(fits)
}

/// Whether so many bytes of shared memory are enough for a function as it stands.
pub(crate) fn fits(func: &PlacedFunc, target: &Target, apart: &BTreeSet<Inst>, bytes: u32) -> bool {
    let indices = Indices::of(func);
    taken_bytes(func, target, (apart, &indices), i64::MAX) <= bytes.into()
}

/// Bytes of shared memory of a function with at most so many slots in a buffer. A lookup counts as one through shared memory.
fn taken_bytes(
    func: &PlacedFunc,
    target: &Target,
    (apart, indices): (&BTreeSet<Inst>, &Indices),
    most: i64,
) -> i64 {
    let mut reader = Reader {
        func,
        target,
        apart,
        indices,
        most,
        loops: 0,
        ring_bytes: 0,
        found: Exchanges::new(),
    };
    reader.region(func.body());
    least_bytes(func, target, &reader.found, most)
}

struct Reader<'a> {
    func: &'a Func,
    target: &'a Target,
    apart: &'a BTreeSet<Inst>,
    indices: &'a Indices,
    /// The most slots of a buffer.
    most: i64,
    loops: u32,
    /// The bytes of the largest buffer with slots so far.
    ring_bytes: i64,
    found: Exchanges,
}

impl Reader<'_> {
    fn region(&mut self, region: Region) {
        for &inst in &self.func.region(region).insts {
            let op = self.func.op(inst);
            if let &Op::Buffer(op::Buffer { behind }) = op {
                let parts = [Some(self.func.inst(inst).results[0]), behind];
                let parts = parts.into_iter().flatten();
                let bytes = parts.map(|part| buffer_bytes(self.func, part, self.most));
                self.ring_bytes = self.ring_bytes.max(bytes.sum());
            }
            // What has no layout is refused where it is lowered.
            let exchanges = self.exchanges(inst).unwrap_or_default();
            if !exchanges.is_empty() {
                self.found.insert(inst, exchanges);
            }
            let repeats = matches!(op.control(), Some(Control::For(_) | Control::While(_)));
            self.loops += u32::from(repeats);
            for inner in op.regions() {
                self.region(inner);
            }
            self.loops -= u32::from(repeats);
        }
    }

    fn layout(&self, value: Value) -> Option<&LinearLayout> {
        self.func
            .layout(value)
            .map(|layout| self.func.linear(layout))
    }

    fn dtype(&self, value: Value) -> DType {
        self.func.ty(value).dtype().unwrap_or(DType::I64)
    }

    fn tile_bytes(&self, tile: Value, dtype: DType) -> i64 {
        self.func.ty(tile).shape.elements() as i64 * i64::from(dtype.bytes())
    }

    /// Bytes that an op takes in shared memory at once, time after time.
    fn exchanges(&self, inst: Inst) -> Result<Vec<Vec<i64>>, LayoutError> {
        let func = self.func;
        let op = func.op(inst);
        if let Op::Convert(op) = op {
            let result = func.inst(inst).results[0];
            let (Some(from), Some(to)) = (self.layout(op.x), self.layout(result)) else {
                return Ok(Vec::new());
            };
            let taken = self.conversion(from, to, self.dtype(op.x).bytes())?;
            return Ok(taken.into_iter().map(|bytes| vec![bytes]).collect());
        }
        if let Op::Sort(op) = op {
            return self.sort(op);
        }
        if let Op::Reduce(op) = op {
            return self.reduce(op);
        }
        if let Op::Scan(op) = op {
            return self.scan(op);
        }
        Ok(if let Op::Gather(op) = op {
            vec![vec![self.tile_bytes(op.x, self.dtype(op.x))]]
        } else if let Op::Histogram(op) = op {
            let elements = func.ty(op.x).shape.elements() as i64;
            let copies = Copies::of_tile(op.bins, elements, self.target);
            vec![vec![copies.counters(self.target) * COUNTER]]
        } else if let Op::Dot(op) = op
            && !is_multiplied_in_fragments(func, op)
        {
            let dtype = self.dtype(op.accumulator);
            vec![[op.a, op.b].map(|it| self.tile_bytes(it, dtype)).to_vec()]
        } else if let Op::Store(op) = op
            && repeated_axes(func, self.indices, op).is_none_or(|_| !self.apart.contains(&inst))
            && let slots @ 2.. = table_slots(func.ty(op.offsets).shape.elements() as i64)
        {
            vec![vec![slots * 8, (slots + 1) * 4]]
        } else {
            Vec::new()
        })
    }

    /// Bytes of a conversion through shared memory.
    fn conversion(
        &self,
        from: &LinearLayout,
        to: &LinearLayout,
        element_bytes: u32,
    ) -> Result<Option<i64>, LayoutError> {
        let outside = (self.loops == 0).then_some(self.ring_bytes);
        let limits = conversion_limits(element_bytes, outside, self.target);
        Ok(match Conversion::plan(from, to, &limits)? {
            Conversion::Shared(plan) => Some(i64::from(element_bytes) << plan.scratch_bits),
            Conversion::Registers(_) | Conversion::Shuffle(_) => None,
        })
    }

    fn sort(&self, op: &op::Sort) -> Result<Vec<Vec<i64>>, LayoutError> {
        let Some(layout) = self.layout(op.sources[0]) else {
            return Ok(Vec::new());
        };
        let (_, plan) = sort_steps(
            &Rc::new(layout.clone()),
            op.axis.index(),
            op.count.trailing_zeros(),
        )?;
        let mut taken = Vec::new();
        for step in &plan.steps {
            if let SortStep::Move(from, to) = step {
                for &source in &op.sources {
                    // Keys are compared in words.
                    let bytes = self.dtype(source).bytes();
                    for bytes in [bytes, bytes.max(DType::I32.bytes())] {
                        let moved = self.conversion(from, to, bytes)?;
                        taken.extend(moved.map(|bytes| vec![bytes]));
                    }
                }
            }
        }
        Ok(taken)
    }

    fn reduce(&self, op: &op::Reduce) -> Result<Vec<Vec<i64>>, LayoutError> {
        let Some(layout) = self.layout(op.sources[0]) else {
            return Ok(Vec::new());
        };
        let dtype = self.dtype(op.sources[0]);
        let order = evaluation_order(self.func, op.order, op.combine, dtype);
        let plan = ReductionSteps::plan(layout, op.axis.index(), order, Division::Paying)?;
        let mut register_bits = layout.registers().ilog2();
        let mut taken = Vec::new();
        for step in plan.into_iter().flat_map(|plan| plan.steps) {
            match step {
                ReductionStep::Registers(_) => register_bits -= 1,
                ReductionStep::Lanes { divided, .. } => {
                    register_bits -= u32::from(divided.is_some());
                }
                ReductionStep::Warps { equal, .. } => {
                    let slots = 1 << free_threads(equal, self.func.warps.trailing_zeros());
                    taken.extend(self.lines((slots, 1 << register_bits), &op.sources));
                }
            }
        }
        Ok(taken)
    }

    fn scan(&self, op: &op::Scan) -> Result<Vec<Vec<i64>>, LayoutError> {
        let Some(layout) = self.layout(op.sources[0]) else {
            return Ok(Vec::new());
        };
        let steps = scan_steps(layout, op.axis.index())?.unwrap_or_default();
        let mut taken = Vec::new();
        for step in steps.iter().filter(|step| step.passes_warps()) {
            let warp_bits = self.func.warps.trailing_zeros();
            let slots = 1 << free_threads(step.fixed(layout), warp_bits);
            let registers = 0..layout.registers();
            let lines = registers.filter_map(|it| step.register(it, op.direction));
            let lines: BTreeSet<u32> = lines.collect();
            taken.extend(self.lines((slots, lines.len() as u32), &op.sources));
        }
        Ok(taken)
    }

    /// Lines of so many slots for each source.
    fn lines(&self, (slots, count): (u32, u32), sources: &[Value]) -> Vec<Vec<i64>> {
        let dtypes = sources.iter().map(|&source| self.dtype(source));
        let dtypes: Vec<DType> = dtypes.collect();
        let size = lines_at_once((slots, count), &dtypes, self.target);
        let bytes = dtypes.iter().map(|it| i64::from(slots * size * it.bytes()));
        let bytes: Vec<i64> = bytes.collect();
        vec![bytes; count.div_ceil(size) as usize]
    }
}

/// The limits of a conversion; `ring_bytes` of one outside of loops are those of pipelines, which hold nothing any more.
pub(crate) fn conversion_limits(
    element_bytes: u32,
    ring_bytes: Option<i64>,
    target: &Target,
) -> ConversionLimits {
    let mut limits = ConversionLimits::new(element_bytes, target);
    let most = i64::from(target.gpu.shared_bytes);
    let spare = ring_bytes.map_or(0, |bytes| bytes.min(most) as u32);
    limits.scratch_bytes = limits.scratch_bytes.max(spare);
    limits
}

/// Log2 of the lanes and warps that differ.
fn free_threads(equal: Point, warp_bits: u32) -> u32 {
    let free = |bits: u32, equal: u32| (0..bits).filter(|bit| equal >> bit & 1 == 0).count();
    (free(LANE_BITS, equal.lane) + free(warp_bits, equal.warp)) as u32
}

/// How many of `count` lines of `slots` elements of each type shared memory holds at a time, a power of two.
pub(crate) fn lines_at_once((slots, count): (u32, u32), dtypes: &[DType], target: &Target) -> u32 {
    let bytes = slots * dtypes.iter().map(|dtype| dtype.bytes()).sum::<u32>();
    let most = (target.gpu.shared_bytes / bytes).max(1);
    count.min(1 << most.ilog2())
}

/// Counters of bins, which have copies that lanes take in turns, and spare ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    pub(crate) bins: i64,
    /// Log2 of the copies.
    pub(crate) bits: u32,
}

impl Copies {
    /// For the elements of one tile.
    pub(crate) fn of_tile(bins: i64, elements: i64, target: &Target) -> Self {
        Self::new(bins, elements / ELEMENTS_PER_COUNTER, target)
    }

    /// Up to one for each lane, of which there are at most `counters`.
    pub(crate) fn new(bins: i64, counters: i64, target: &Target) -> Self {
        let most = counters.min(i64::from(target.gpu.exchange_bytes) / COUNTER) / bins;
        let bits = (most.max(1) as u64).ilog2().min(WARP_LANES.ilog2());
        Self { bins, bits }
    }

    /// How many counters, in whole vectors.
    pub(crate) fn counters(self, target: &Target) -> i64 {
        let together = i64::from(target.vector_bytes) / COUNTER;
        let counters = (self.bins + 1) << self.bits;
        (counters as u64).next_multiple_of(together as u64) as i64
    }
}

/// The axes along which offsets of a store are the same, where its mask is so too.
pub(crate) fn repeated_axes(func: &Func, indices: &Indices, op: &op::Store) -> Option<Vec<usize>> {
    let shape = func.ty(op.offsets).shape;
    let still = |value: Value, axis: usize| indices.fact(value).axis(axis).is_still();
    let repeated =
        (0..shape.rank()).filter(|&axis| shape.extent(axis) > 1 && still(op.offsets, axis));
    let repeated: Vec<usize> = repeated.collect();
    let mut masked = op
        .mask
        .iter()
        .flat_map(|&mask| repeated.iter().map(move |&axis| (mask, axis)));
    let settled = masked.all(|(mask, axis)| still(mask, axis));
    settled.then_some(repeated)
}

/// The slots of a table in which equal offsets of so many elements meet.
pub(crate) fn table_slots(elements: i64) -> i64 {
    elements.min(MOST_SLOTS)
}

/// The stores that write no element twice.
pub(crate) fn stores_apart(func: &Func, facts: &Facts) -> BTreeSet<Inst> {
    let stores = apart::stores(func).into_iter();
    let known = stores.filter(|(_, apart)| match apart {
        Apart::Always => true,
        Apart::Where(_) => facts.apart,
    });
    known.map(|(inst, _)| inst).collect()
}
