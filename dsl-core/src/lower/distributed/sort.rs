//! Sorts: the steps of the network, on registers and by shuffles.

use std::rc::Rc;

use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{DType, Op, Value, op};
use crate::layout::sorting::{Meeting, SortStep, sort_steps};
use crate::layout::{Holder, LinearLayout, ThreadMap};
use crate::lower::ordered::{less, lesser, ordered, pick};
use crate::target::LANE_BITS;

/// The type that numbers narrower than a register are compared in.
const WORD: DType = DType::I32;

/// The elements of a sort: for each register the keys and what moves along.
struct Lines {
    registers: Vec<Vec<Value>>,
    dtypes: Vec<DType>,
    keys: usize,
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
        let natural = self.natural(sources[0])?;
        let (layout, plan) = sort_steps(&natural, axis.index(), count.trailing_zeros())
            .map_err(|error| self.layout_error(&error))?;
        let mut lines = self.lines(sources, *keys as usize, &layout)?;
        for step in &plan.steps {
            match step {
                SortStep::Exchange(meeting) => self.exchange(&mut lines, meeting),
                SortStep::Halve(meeting, gone) => self.halve(&mut lines, meeting, *gone),
                SortStep::Move(from, to) => self.move_lines(&mut lines, from, to)?,
            }
        }
        let layout = Rc::new(plan.result);
        for (position, &result) in results.iter().enumerate() {
            let dtype = self.dtype(result)?;
            let own = lines.registers.iter().map(|element| element[position]);
            let own: Vec<Value> = own.collect();
            let own = self.join(&own);
            let registers = self.map(&[&own], |builder, x| builder.cast(x[0], dtype));
            let layout = Rc::clone(&layout);
            self.bind(result, Tile { layout, registers });
        }
        Ok(())
    }

    /// The sources in one layout, keys narrower than a register widened.
    fn lines(
        &mut self,
        sources: &[Value],
        keys: usize,
        layout: &Rc<LinearLayout>,
    ) -> Result<Lines> {
        let mut registers = vec![Vec::new(); layout.registers() as usize];
        let mut dtypes = Vec::new();
        for (position, &source) in sources.iter().enumerate() {
            let own = self.dtype(source)?;
            let narrow = position < keys && own.bits() < WORD.bits();
            let dtype = if narrow { WORD } else { own };
            let values = self.get(source, layout)?;
            let values = self.map(&[&values], |builder, x| builder.cast(x[0], dtype));
            for (element, value) in registers.iter_mut().zip(self.split(&values)) {
                element.push(value);
            }
            dtypes.push(dtype);
        }
        Ok(Lines {
            registers,
            dtypes,
            keys,
        })
    }

    /// The element that each of these registers meets.
    fn other(&mut self, lines: &Lines, register: usize, meeting: &Meeting) -> Vec<Value> {
        let other = &lines.registers[register ^ meeting.registers as usize];
        if meeting.lanes == 0 {
            return other.clone();
        }
        let lane_mask = i64::from(meeting.lanes);
        let shuffled = other.iter().map(|&x| {
            self.builder
                .value(Op::ShuffleXor(op::ShuffleXor { x, lane_mask }))
        });
        shuffled.collect()
    }

    fn exchange(&mut self, lines: &mut Lines, meeting: &Meeting) {
        let mut sorted = lines.registers.clone();
        for (register, own) in lines.registers.iter().enumerate() {
            let place = |bit: u32| register >> bit & 1 == 0;
            match meeting.holder {
                Holder::Register(bit) if meeting.lanes == 0 => {
                    if place(bit) {
                        let other = register ^ meeting.registers as usize;
                        let (lesser, greater) =
                            ordered(&mut self.builder, lines.keys, own, &lines.registers[other]);
                        (sorted[register], sorted[other]) = (lesser, greater);
                    }
                }
                Holder::Register(bit) => {
                    let other = self.other(lines, register, meeting);
                    let (lesser, greater) = ordered(&mut self.builder, lines.keys, own, &other);
                    sorted[register] = if place(bit) { lesser } else { greater };
                }
                Holder::Lane(_) | Holder::Warp(_) | Holder::Mixed => {
                    let other = self.other(lines, register, meeting);
                    let upper = self.is_upper(meeting.holder);
                    let less = less(&mut self.builder, lines.keys, own, &other);
                    let keep = self.builder.xor(less, upper);
                    sorted[register] = pick(&mut self.builder, keep, own, &other);
                }
            }
        }
        lines.registers = sorted;
    }

    /// Whether this lane gets the greater elements.
    fn is_upper(&mut self, holder: Holder) -> Value {
        let bit = |own: u32, position: u32| u32::from(own == position);
        let (lane, warp) = match holder {
            Holder::Lane(own) => ((0..LANE_BITS).map(|it| bit(own, it)).collect(), Vec::new()),
            Holder::Warp(own) => {
                let bits = self.assignment.warp_bits;
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
        let kept = (0..lines.registers.len())
            .filter(|register| gone.is_none_or(|bit| register >> bit & 1 == 0));
        let mut registers = Vec::new();
        for register in kept {
            let other = self.other(lines, register, meeting);
            let own = &lines.registers[register];
            registers.push(lesser(&mut self.builder, lines.keys, own, &other));
        }
        lines.registers = registers;
    }

    fn move_lines(
        &mut self,
        lines: &mut Lines,
        from: &LinearLayout,
        to: &LinearLayout,
    ) -> Result<()> {
        let (from, to) = (Rc::new(from.clone()), Rc::new(to.clone()));
        let mut moved = vec![Vec::new(); lines.registers.len()];
        for (position, &dtype) in lines.dtypes.iter().enumerate() {
            let registers = lines.registers.iter().map(|element| element[position]);
            let registers: Vec<Value> = registers.collect();
            let tile = Tile {
                layout: Rc::clone(&from),
                registers: self.join(&registers),
            };
            let values = self.convert(&tile, dtype, &to)?;
            for (element, value) in moved.iter_mut().zip(self.split(&values)) {
                element.push(value);
            }
        }
        lines.registers = moved;
        Ok(())
    }
}
