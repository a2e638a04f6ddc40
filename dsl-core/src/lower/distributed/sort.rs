//! Sorts: the steps of the network, on the vectors of the registers and by shuffles.

use std::rc::Rc;

use super::registers::Registers;
use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{DType, Op, Value, op};
use crate::layout::sorting::{Meeting, SortStep, sort_steps};
use crate::layout::{Holder, LinearLayout, ThreadMap};
use crate::lower::ordered::{less, lesser, ordered, pick};
use crate::target::LANE_BITS;

/// The type that numbers narrower than a register are compared in.
const WORD: DType = DType::I32;

/// The elements of a sort: the registers of the keys and of what moves along.
struct Lines {
    values: Vec<Value>,
    registers: u32,
    dtypes: Vec<DType>,
    keys: usize,
}

impl Lines {
    /// One source.
    fn source(&self, position: usize) -> Registers {
        let places: Vec<u32> = (0..self.registers).collect();
        Registers::new(self.values[position], places)
    }
}

impl Lowering<'_> {
    pub(super) fn sort(&mut self, results: &[Value], op: &op::Sort) -> Result<()> {
        let op::Sort {
            sources,
            keys,
            axis,
            count,
            ..
        } = op;
        let layout = self.layout(sources[0]);
        let (_, plan) = sort_steps(&layout, axis.index(), count.trailing_zeros())
            .map_err(|error| self.layout_error(&error))?;
        let mut lines = self.lines(sources, *keys as usize, &layout)?;
        for step in &plan.steps {
            match step {
                SortStep::Exchange(meeting) => self.exchange(&mut lines, meeting),
                SortStep::Halve(meeting, gone) => self.halve(&mut lines, meeting, *gone),
                SortStep::Move(from, to) => self.move_lines(&mut lines, from, to)?,
            }
        }
        for (position, &result) in results.iter().enumerate() {
            let dtype = self.dtype(result)?;
            let own = lines.source(position);
            let registers = self.map(&[&own], |builder, x| builder.cast(x[0], dtype));
            self.bind(result, registers);
        }
        Ok(())
    }

    /// The sources in one layout, keys narrower than a register widened.
    fn lines(&mut self, sources: &[Value], keys: usize, layout: &LinearLayout) -> Result<Lines> {
        let all: Vec<u32> = (0..layout.registers()).collect();
        let mut values = Vec::new();
        let mut dtypes = Vec::new();
        for (position, &source) in sources.iter().enumerate() {
            let own = self.dtype(source)?;
            let narrow = position < keys && own.bits() < WORD.bits();
            let dtype = if narrow { WORD } else { own };
            let registers = self.get(source);
            let registers = self.map(&[&registers], |builder, x| builder.cast(x[0], dtype));
            values.push(self.pick(&registers, &all));
            dtypes.push(dtype);
        }
        Ok(Lines {
            values,
            registers: layout.registers(),
            dtypes,
            keys,
        })
    }

    /// Some registers of each source, and what they meet.
    fn met(&mut self, lines: &Lines, chosen: &[u32], meeting: &Meeting) -> [Vec<Value>; 2] {
        let others: Vec<u32> = chosen.iter().map(|it| it ^ meeting.registers).collect();
        let mut own = Vec::new();
        let mut other = Vec::new();
        for &value in &lines.values {
            own.push(self.elements(value, chosen));
            let x = self.elements(value, &others);
            let lane_mask = i64::from(meeting.lanes);
            other.push(match lane_mask {
                0 => x,
                _ => self
                    .builder
                    .value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask })),
            });
        }
        [own, other]
    }

    fn exchange(&mut self, lines: &mut Lines, meeting: &Meeting) {
        let keys = lines.keys;
        let all = 0..lines.registers;
        let Holder::Register(bit) = meeting.holder else {
            let all: Vec<u32> = all.collect();
            let [own, other] = self.met(lines, &all, meeting);
            let less = less(&mut self.builder, keys, &own, &other);
            let upper = self.is_upper(meeting.holder);
            let upper = self.builder.splat(upper, self.builder.ty(less).shape);
            let keep = self.builder.xor(less, upper);
            lines.values = pick(&mut self.builder, keep, &own, &other);
            return;
        };
        let (lower, upper): (Vec<u32>, Vec<u32>) = all.partition(|it| it >> bit & 1 == 0);
        let [own, other] = self.met(lines, &lower, meeting);
        let (lesser, mut greater) = ordered(&mut self.builder, keys, &own, &other);
        // The registers in which the greater elements are.
        let mut greatest: Vec<u32> = lower.iter().map(|it| it ^ meeting.registers).collect();
        if meeting.lanes != 0 {
            let [own, other] = self.met(lines, &upper, meeting);
            greater = ordered(&mut self.builder, keys, &own, &other).1;
            greatest = upper;
        }
        let pairs = lesser.iter().zip(&greater);
        let halves = pairs.map(|(&a, &b)| self.arranged([(a, &lower), (b, &greatest)]));
        lines.values = halves.collect();
    }

    /// Whether this lane gets the greater elements.
    fn is_upper(&mut self, holder: Holder) -> Value {
        let bit = |own: u32, position: u32| u32::from(own == position);
        let (lane, warp) = match holder {
            Holder::Lane(own) => ((0..LANE_BITS).map(|it| bit(own, it)).collect(), Vec::new()),
            Holder::Warp(own) => {
                let bits = self.warp_bits;
                (
                    vec![0; LANE_BITS as usize],
                    (0..bits).map(|it| bit(own, it)).collect(),
                )
            }
            Holder::Register(_) | Holder::Mixed => (Vec::new(), Vec::new()),
        };
        self.thread_bit(&ThreadMap { lane, warp }, 0)
    }

    fn halve(&mut self, lines: &mut Lines, meeting: &Meeting, gone: Option<u32>) {
        let all = 0..lines.registers;
        let kept: Vec<u32> = all
            .filter(|register| gone.is_none_or(|bit| register >> bit & 1 == 0))
            .collect();
        let [own, other] = self.met(lines, &kept, meeting);
        lines.values = lesser(&mut self.builder, lines.keys, &own, &other);
        lines.registers = kept.len() as u32;
    }

    fn move_lines(
        &mut self,
        lines: &mut Lines,
        from: &LinearLayout,
        to: &LinearLayout,
    ) -> Result<()> {
        let (from, to) = (Rc::new(from.clone()), Rc::new(to.clone()));
        let all: Vec<u32> = (0..to.registers()).collect();
        for (position, &dtype) in lines.dtypes.clone().iter().enumerate() {
            let tile = Tile {
                layout: Rc::clone(&from),
                registers: lines.source(position),
            };
            let moved = self.convert(&tile, dtype, &to)?;
            lines.values[position] = self.pick(&moved, &all);
        }
        Ok(())
    }
}
