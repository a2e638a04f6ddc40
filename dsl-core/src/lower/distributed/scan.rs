//! Scans: at each level the elements of an upper half take the last prefix of the half below.
//!
//! A level is a bit of the index. Where it is a register bit that prefix is in another register, and
//! in another lane or warp if levels below are lanes or warps; it is fetched once for all elements
//! that take it. Where a level is a lane or warp bit, the threads of lower halves combine with
//! something that changes nothing.

use super::level::Combiner;
use super::registers::{Registers, grouped};
use super::{Lowering, Result};
use crate::ir::{BinaryOp, DType, Direction, Literal, Op, Type, Value, op};
use crate::layout::scan::{ScanLevels, ScanStep, last, scan_steps};
use crate::layout::{LinearLayout, Point, ThreadMap};
use crate::lower::combine::Combines;
use crate::schedule::room::lines_at_once;
use crate::semantics::reduction::{identity, only_op};
use crate::target::LANE_BITS;

/// What a scan combines with, and which way.
struct Scan {
    combiner: Combiner,
    /// A left operand that changes nothing.
    neutral: Option<Literal>,
    direction: Direction,
}

impl Scan {
    /// `bits` of a number at the values that come last.
    fn last(&self, bits: u32) -> u32 {
        last(bits, self.direction)
    }

    /// `bits` of a number at the values that come first.
    fn first(&self, bits: u32) -> u32 {
        bits & !self.last(bits)
    }
}

/// A last prefix of a lower half, and the thread bit that tells who takes it.
struct Carry {
    lower: Vec<Value>,
    taken_by: Option<ThreadMap>,
}

/// Which threads store to which slots, and from which others load.
struct Meeting {
    /// Lane and warp bits that do not vary among the threads that store, and their values.
    fixed: Point,
    value: Point,
    lane: Vec<u32>,
    warp: Vec<u32>,
    slots: u32,
}

impl Lowering<'_> {
    pub(super) fn scan(&mut self, results: &[Value], op: &op::Scan) -> Result<()> {
        let (sources, axis, region) = (&op.sources, op.axis.index(), op.combine);
        let mut dtypes = Vec::new();
        for &source in sources {
            dtypes.push(self.dtype(source)?);
        }
        let only = only_op(self.block, region);
        let scan = Scan {
            neutral: only.and_then(|op| identity(op, dtypes[0])),
            combiner: Combiner {
                region,
                commutative: only.is_some_and(BinaryOp::is_commutative),
                dtypes,
            },
            direction: op.direction,
        };
        let layout = self.layout(results[0]);
        let steps = scan_steps(&layout, axis).map_err(|error| self.layout_error(&error))?;
        let steps = steps.expect("broken invariant: a placed scan has steps");
        let all: Vec<u32> = (0..layout.registers()).collect();
        let mut prefixes = Vec::new();
        for &source in sources {
            let registers = self.get(source);
            prefixes.push(self.pick(&registers, &all));
        }
        for step in &steps {
            self.scan_step(&scan, &layout, step, &mut prefixes)?;
        }
        for (&result, value) in results.iter().zip(prefixes) {
            self.bind(result, Registers::new(value, &all[..]));
        }
        Ok(())
    }

    fn scan_step(
        &mut self,
        scan: &Scan,
        layout: &LinearLayout,
        step: &ScanStep,
        prefixes: &mut [Value],
    ) -> Result<()> {
        let registers = 0..layout.registers();
        let source = |register| Some((register, step.register(register, scan.direction)?));
        let (takers, sources): (Vec<u32>, Vec<u32>) = registers.filter_map(source).unzip();
        let (firsts, places) = grouped(sources.iter().copied());
        let lines: Vec<u32> = firsts.iter().map(|&at| sources[at as usize]).collect();
        let last: Vec<Value> = prefixes.iter().map(|&x| self.elements(x, &lines)).collect();
        let carries = if step.passes_warps() {
            self.carries_by_memory(scan, layout, step, (&last, lines.len() as u32))?
        } else {
            vec![self.carry_by_shuffle(scan, step, last)]
        };
        for carry in carries {
            self.take(scan, carry, (&takers, &places), prefixes)?;
        }
        Ok(())
    }

    /// Some registers take what their lines carry as their left operands, in the threads that are in an
    /// upper half.
    fn take(
        &mut self,
        scan: &Scan,
        carry: Carry,
        (takers, places): (&[u32], &[u32]),
        prefixes: &mut [Value],
    ) -> Result<()> {
        let condition = carry.taken_by.map(|map| self.thread_bit(&map, 0));
        let choose = |this: &mut Self, taken: Value, left: Value| {
            let Some(set) = condition else { return taken };
            let set = this.builder.splat(set, this.builder.ty(taken).shape);
            match scan.direction {
                Direction::Forward => this.builder.select(set, taken, left),
                Direction::Reverse => this.builder.select(set, left, taken),
            }
        };
        let mut lower = carry.lower;
        if let Some(neutral) = scan.neutral {
            let neutral = self
                .builder
                .filled(neutral, self.builder.ty(lower[0]).shape);
            let lower = lower.iter_mut();
            lower.for_each(|value| *value = choose(self, *value, neutral));
        }
        let lower: Vec<Value> = lower.iter().map(|&x| self.elements(x, places)).collect();
        let own: Vec<Value> = prefixes.iter().map(|&x| self.elements(x, takers)).collect();
        let combined = self.combine(scan.combiner.region, &lower, &own)?;
        for ((prefix, taken), own) in prefixes.iter_mut().zip(combined).zip(own) {
            let taken = match scan.neutral {
                Some(_) => taken,
                None => choose(self, taken, own),
            };
            *prefix = self.replaced(*prefix, takers, taken);
        }
        Ok(())
    }

    /// A vector with these of its elements replaced: all of them or half.
    fn replaced(&mut self, vector: Value, places: &[u32], by: Value) -> Value {
        let count = self.builder.ty(vector).shape.elements();
        if places.len() == count {
            return by;
        }
        let others: Vec<u32> = (0..count as u32)
            .filter(|it| !places.contains(it))
            .collect();
        let kept = self.elements(vector, &others);
        self.arranged([(kept, &others), (by, places)])
    }

    /// The carries of all lines from other lanes of the warp.
    fn carry_by_shuffle(&mut self, scan: &Scan, step: &ScanStep, last: Vec<Value>) -> Carry {
        let level = match step.levels {
            ScanLevels::Lane(bit) => 1 << bit,
            ScanLevels::Register(_) | ScanLevels::Warps(_) => 0,
        };
        let taken_by = (level != 0).then(|| ThreadMap {
            lane: (0..LANE_BITS).map(|bit| level >> bit & 1).collect(),
            warp: Vec::new(),
        });
        let set = step.passed.lane | level;
        let map = ThreadMap {
            lane: (0..LANE_BITS).map(|bit| 1 << bit & !set).collect(),
            warp: Vec::new(),
        };
        let constant = scan.last(step.passed.lane) | scan.first(level);
        let fetch = |this: &mut Self, x: Value| {
            if set == 0 {
                return x;
            }
            let source_lane = this.thread_value_with(&map, constant);
            this.builder
                .value(Op::ShuffleIndex(op::ShuffleIndex { x, source_lane }))
        };
        let lower = last.into_iter().map(|x| fetch(self, x)).collect();
        Carry { lower, taken_by }
    }

    /// Where the last prefixes lie in shared memory: lanes that differ, then the warps of the step,
    /// then other warps.
    fn meeting(&self, scan: &Scan, layout: &LinearLayout, step: &ScanStep) -> Meeting {
        let passed = step.passed;
        let (level, run) = match &step.levels {
            ScanLevels::Register(_) => (0, Vec::new()),
            ScanLevels::Lane(bit) => (1 << bit, Vec::new()),
            ScanLevels::Warps(bits) => (0, bits.clone()),
        };
        let fixed = step.fixed(layout);
        let value = Point {
            register: 0,
            lane: scan.last(passed.lane) | scan.first(level),
            warp: scan.last(passed.warp),
        };
        let mut slots = 1;
        let mut next = || {
            slots *= 2;
            slots / 2
        };
        let lane = (0..LANE_BITS)
            .map(|bit| match fixed.lane >> bit & 1 {
                0 => next(),
                _ => 0,
            })
            .collect();
        let mut warp = vec![0; self.warp_bits as usize];
        for &bit in &run {
            warp[bit as usize] = next();
        }
        for (bit, slot) in warp.iter_mut().enumerate() {
            if fixed.warp >> bit & 1 == 0 && !run.contains(&(bit as u32)) {
                *slot = next();
            }
        }
        Meeting {
            fixed,
            value,
            lane,
            warp,
            slots,
        }
    }

    /// The carries of all lines through shared memory, one for each level of the step.
    fn carries_by_memory(
        &mut self,
        scan: &Scan,
        layout: &LinearLayout,
        step: &ScanStep,
        (last, count): (&[Value], u32),
    ) -> Result<Vec<Carry>> {
        let meeting = self.meeting(scan, layout, step);
        let owner = self.thread_is(meeting.fixed, meeting.value);
        let store = ThreadMap {
            lane: meeting.lane.clone(),
            warp: meeting.warp.clone(),
        };
        let size = lines_at_once((meeting.slots, count), &scan.combiner.dtypes, self.target);
        let mut parts = Vec::new();
        for first in (0..count).step_by(size as usize) {
            let own: Vec<u32> = (first..first + size).collect();
            let values: Vec<Value> = last.iter().map(|&x| self.elements(x, &own)).collect();
            let slots = i64::from(meeting.slots * size);
            let buffers = self.buffers(slots, &scan.combiner);
            let lines: Vec<u32> = (0..size).map(|line| line * meeting.slots).collect();
            let offset = self.thread_offsets(&store, &lines);
            let mask = self.owned_mask(None, owner, lines.len());
            self.store_slots(&buffers, offset, &values, mask);
            self.barrier();
            parts.push(self.carries_of_lines(scan, &meeting, &step.levels, (&buffers, &lines))?);
        }
        let mut carries = parts.remove(0);
        for (level, carry) in carries.iter_mut().enumerate() {
            for (source, lower) in carry.lower.iter_mut().enumerate() {
                let others = parts.iter().map(|part| part[level].lower[source]);
                let all: Vec<Value> = std::iter::once(*lower).chain(others).collect();
                *lower = self.joined(&all);
            }
        }
        Ok(carries)
    }

    /// The carries of lines that begin at these slots.
    fn carries_of_lines(
        &mut self,
        scan: &Scan,
        meeting: &Meeting,
        levels: &ScanLevels,
        (buffers, lines): (&[(Value, DType)], &[u32]),
    ) -> Result<Vec<Carry>> {
        let taken_by = match levels {
            ScanLevels::Warps(bits) => {
                return self.carries_of_warps(scan, meeting, bits, (buffers, lines));
            }
            ScanLevels::Register(_) => None,
            ScanLevels::Lane(level) => {
                let lane = (0..LANE_BITS).map(|bit| u32::from(bit == *level)).collect();
                let warp = Vec::new();
                Some(ThreadMap { lane, warp })
            }
        };
        let map = ThreadMap {
            lane: meeting.lane.clone(),
            warp: meeting.warp.clone(),
        };
        let offset = self.thread_offsets(&map, lines);
        let lower = self.load_slots(buffers, offset);
        Ok(vec![Carry { lower, taken_by }])
    }

    /// For each level the tree over what the warps of the lower half have stored.
    fn carries_of_warps(
        &mut self,
        scan: &Scan,
        meeting: &Meeting,
        bits: &[u32],
        (buffers, lines): (&[(Value, DType)], &[u32]),
    ) -> Result<Vec<Carry>> {
        let mut map = ThreadMap {
            lane: meeting.lane.clone(),
            warp: meeting.warp.clone(),
        };
        let unit = meeting.warp[bits[0] as usize];
        let mut carries = Vec::new();
        for (level, &bit) in bits.iter().enumerate() {
            map.warp[bit as usize] = 0;
            let lower = scan.first(unit << level);
            let mut leaves = self.load_leaves(buffers, (&map, lines), (lower, unit), 1 << level);
            if scan.direction == Direction::Reverse {
                leaves.reverse();
            }
            let warp = (0..self.warp_bits)
                .map(|other| u32::from(other == bit))
                .collect();
            carries.push(Carry {
                lower: self.combine_tree(&scan.combiner, leaves.len(), |_, leaf| {
                    std::mem::take(&mut leaves[leaf])
                })?,
                taken_by: Some(ThreadMap {
                    lane: Vec::new(),
                    warp,
                }),
            });
        }
        Ok(carries)
    }

    /// `count` slots of every line and source, `unit` apart, in loads as wide as there are.
    fn load_leaves(
        &mut self,
        buffers: &[(Value, DType)],
        (map, lines): (&ThreadMap, &[u32]),
        (lower, unit): (u32, u32),
        count: usize,
    ) -> Vec<Vec<Value>> {
        let mut leaves = vec![Vec::new(); count];
        for &(base, dtype) in buffers {
            let most = (self.target.vector_bytes / dtype.bytes()) as usize;
            let width = if unit == 1 { count.min(most) } else { 1 };
            for start in (0..count).step_by(width) {
                let first = lower + start as u32 * unit;
                let firsts: Vec<u32> = lines.iter().map(|line| line + first).collect();
                let op = Op::LaneLoad(op::LaneLoad {
                    base,
                    offset: self.thread_offsets(map, &firsts),
                    mask: None,
                    other: None,
                    align: width as i64 * i64::from(dtype.bytes()),
                    cache: None,
                });
                let ty = Type::vector(dtype, lines.len() * width);
                let loaded = self.builder.declared(op, ty);
                for at in 0..width {
                    let places = (0..lines.len()).map(|line| (line * width + at) as u32);
                    let places: Vec<u32> = places.collect();
                    leaves[start + at].push(self.elements(loaded, &places));
                }
            }
        }
        leaves
    }
}
