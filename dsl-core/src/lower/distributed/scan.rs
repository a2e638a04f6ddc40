//! Scans: at each level the elements of an upper half take the last prefix of the half below.
//!
//! A level is a bit of the index. Where it is a register bit that prefix is in another register, and
//! in another lane or warp if levels below are lanes or warps; it is fetched once for all elements
//! that take it. Where a level is a lane or warp bit, the threads of lower halves combine with
//! something that changes nothing.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::level::Combiner;
use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{BinaryOp, DType, Direction, Literal, Op, Type, Value, op};
use crate::layout::scan::{ScanLevels, ScanStep, last, scan_steps};
use crate::layout::{LinearLayout, Point, ThreadMap};
use crate::lower::combine::Combines;
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
        let (layout, steps) = self.scan_layout(results[0], axis)?;
        let mut columns = Vec::new();
        for &source in sources {
            let registers = self.get(source, &layout)?;
            columns.push(self.split(&registers));
        }
        let mut prefixes: Vec<Vec<Value>> = (0..layout.registers() as usize)
            .map(|register| columns.iter().map(|column| column[register]).collect())
            .collect();
        for step in &steps {
            self.scan_step(&scan, &layout, step, &mut prefixes)?;
        }
        for (position, &result) in results.iter().enumerate() {
            let own: Vec<Value> = prefixes.iter().map(|values| values[position]).collect();
            let registers = self.join(&own);
            let layout = Rc::clone(&layout);
            self.bind(result, Tile { layout, registers });
        }
        Ok(())
    }

    /// The layout of the result if each bit along the axis has one holder there, else a plain one.
    fn scan_layout(&self, result: Value, axis: usize) -> Result<(Rc<LinearLayout>, Vec<ScanStep>)> {
        let assigned = self.assigned(result);
        let plain = self.plain(assigned.dim_bits());
        for layout in [assigned, plain] {
            let steps = scan_steps(&layout, axis);
            if let Some(steps) = steps.map_err(|error| self.layout_error(&error))? {
                return Ok((layout, steps));
            }
        }
        Err(self.error("a scan over mixed index bits"))
    }

    fn scan_step(
        &mut self,
        scan: &Scan,
        layout: &LinearLayout,
        step: &ScanStep,
        prefixes: &mut [Vec<Value>],
    ) -> Result<()> {
        let mut lines: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for register in 0..prefixes.len() as u32 {
            if let Some(source) = step.register(register, scan.direction) {
                lines.entry(source).or_default().push(register);
            }
        }
        let last: Vec<Vec<Value>> = lines
            .keys()
            .map(|&source| prefixes[source as usize].clone())
            .collect();
        let across_warps = step.passed.warp != 0 || matches!(step.levels, ScanLevels::Warps(_));
        let carries = if across_warps {
            self.carries_by_memory(scan, layout, step, &last)?
        } else {
            self.carries_by_shuffle(scan, step, last)
        };
        for (carries, registers) in carries.into_iter().zip(lines.values()) {
            for carry in carries {
                self.take(scan, carry, registers, prefixes)?;
            }
        }
        Ok(())
    }

    /// Every register takes a carry as its left operand, in the threads that are in an upper half.
    fn take(
        &mut self,
        scan: &Scan,
        carry: Carry,
        registers: &[u32],
        prefixes: &mut [Vec<Value>],
    ) -> Result<()> {
        let condition = carry.taken_by.map(|map| self.thread_bit(&map, 0));
        let choose = |this: &mut Self, taken: Value, left: Value| match condition {
            None => taken,
            Some(set) => match scan.direction {
                Direction::Forward => this.builder.select(set, taken, left),
                Direction::Reverse => this.builder.select(set, left, taken),
            },
        };
        let mut lower = carry.lower;
        if let Some(neutral) = scan.neutral {
            let neutral = self.builder.filled(neutral, crate::ir::Shape::SCALAR);
            lower = lower
                .into_iter()
                .map(|value| choose(self, value, neutral))
                .collect();
        }
        for &register in registers {
            let own = prefixes[register as usize].clone();
            let mut combined = self.combine(scan.combiner.region, &lower, &own)?;
            if scan.neutral.is_none() {
                let pairs = combined.into_iter().zip(own);
                combined = pairs
                    .map(|(taken, left)| choose(self, taken, left))
                    .collect();
            }
            prefixes[register as usize] = combined;
        }
        Ok(())
    }

    /// The carries of each line from other lanes of the warp.
    fn carries_by_shuffle(
        &mut self,
        scan: &Scan,
        step: &ScanStep,
        last: Vec<Vec<Value>>,
    ) -> Vec<Vec<Carry>> {
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
        last.into_iter()
            .map(|line| {
                let lower = line.into_iter().map(|x| fetch(self, x)).collect();
                let taken_by = taken_by.clone();
                vec![Carry { lower, taken_by }]
            })
            .collect()
    }

    /// Where the last prefixes lie in shared memory: lanes that differ, then the warps of the step,
    /// then other warps.
    fn meeting(&self, scan: &Scan, layout: &LinearLayout, step: &ScanStep) -> Meeting {
        let zeros = |columns: &[u64]| {
            let bits = columns.iter().enumerate();
            bits.fold(0, |mask, (bit, &column)| {
                mask | u32::from(column == 0) << bit
            })
        };
        let passed = step.passed;
        let (level, run) = match &step.levels {
            ScanLevels::Register(_) => (0, Vec::new()),
            ScanLevels::Lane(bit) => (1 << bit, Vec::new()),
            ScanLevels::Warps(bits) => (0, bits.clone()),
        };
        let fixed = Point {
            register: 0,
            lane: passed.lane | level | zeros(layout.lane_columns()),
            warp: passed.warp | zeros(layout.warp_columns()),
        };
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
        let mut warp = vec![0; self.assignment.warp_bits as usize];
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

    /// The carries of each line through shared memory, one for each level of the step.
    fn carries_by_memory(
        &mut self,
        scan: &Scan,
        layout: &LinearLayout,
        step: &ScanStep,
        last: &[Vec<Value>],
    ) -> Result<Vec<Vec<Carry>>> {
        let meeting = self.meeting(scan, layout, step);
        let mask = self.thread_is(meeting.fixed, meeting.value);
        let store = ThreadMap {
            lane: meeting.lane.clone(),
            warp: meeting.warp.clone(),
        };
        let slots = i64::from(meeting.slots);
        let mut carries = Vec::new();
        for lines in last.chunks(self.together(slots, &scan.combiner)) {
            let count = slots * lines.len() as i64;
            let buffers = self.buffers(count, &scan.combiner);
            for (line, values) in lines.iter().enumerate() {
                let offset = self.thread_offset(&store, line as u32 * meeting.slots);
                self.store_slots(&buffers, offset, values, mask);
            }
            self.barrier();
            for line in 0..lines.len() as u32 {
                let first = line * meeting.slots;
                let from = (&buffers[..], first);
                carries.push(self.carries_of_line(scan, &meeting, &step.levels, from)?);
            }
        }
        Ok(carries)
    }

    /// The carries of one line, from slot `first` on.
    fn carries_of_line(
        &mut self,
        scan: &Scan,
        meeting: &Meeting,
        levels: &ScanLevels,
        (buffers, first): (&[(Value, DType)], u32),
    ) -> Result<Vec<Carry>> {
        let taken_by = match levels {
            ScanLevels::Warps(bits) => {
                return self.carries_of_warps(scan, meeting, bits, (buffers, first));
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
        let lower = self.load_run(buffers, (&map, first), 1).swap_remove(0);
        Ok(vec![Carry { lower, taken_by }])
    }

    /// For each level the tree over what the warps of the lower half have stored.
    fn carries_of_warps(
        &mut self,
        scan: &Scan,
        meeting: &Meeting,
        bits: &[u32],
        (buffers, first): (&[(Value, DType)], u32),
    ) -> Result<Vec<Carry>> {
        let mut map = ThreadMap {
            lane: meeting.lane.clone(),
            warp: meeting.warp.clone(),
        };
        let unit = meeting.warp[bits[0] as usize];
        let mut carries = Vec::new();
        for (level, &bit) in bits.iter().enumerate() {
            map.warp[bit as usize] = 0;
            let lower = first + scan.first(unit << level);
            let count = 1 << level;
            let mut tree = match unit {
                1 => self.load_run(buffers, (&map, lower), count),
                _ => (0..count as u32)
                    .flat_map(|leaf| self.load_run(buffers, (&map, lower + leaf * unit), 1))
                    .collect(),
            };
            if scan.direction == Direction::Reverse {
                tree.reverse();
            }
            let warp = (0..self.assignment.warp_bits)
                .map(|other| u32::from(other == bit))
                .collect();
            carries.push(Carry {
                lower: self.combine_tree(&scan.combiner, tree)?,
                taken_by: Some(ThreadMap {
                    lane: Vec::new(),
                    warp,
                }),
            });
        }
        Ok(carries)
    }

    /// `count` consecutive slots of every source, in loads as wide as there are.
    fn load_run(
        &mut self,
        buffers: &[(Value, DType)],
        (map, first): (&ThreadMap, u32),
        count: usize,
    ) -> Vec<Vec<Value>> {
        let mut loaded = vec![Vec::new(); count];
        for &(base, dtype) in buffers {
            let width = count.min((self.target.vector_bytes / dtype.bytes()) as usize);
            for start in (0..count).step_by(width) {
                let offset = self.thread_offset(map, first + start as u32);
                let op = Op::LaneLoad(op::LaneLoad {
                    base,
                    offset,
                    mask: None,
                    other: None,
                    align: width as i64 * i64::from(dtype.bytes()),
                });
                let vector = self.builder.declared(op, Type::vector(dtype, width));
                for (at, value) in self.scalars(vector).into_iter().enumerate() {
                    loaded[start + at].push(value);
                }
            }
        }
        loaded
    }
}
