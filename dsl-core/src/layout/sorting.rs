//! The steps of a sort across registers and lanes, and the layout of its result.
//!
//! A bitonic network (K. E. Batcher, Sorting networks and their applications, 1968) in which every
//! comparison puts the lesser element at the lower index: each merge first compares an element with
//! its mirror image in the block, then with those whose index differs in one bit, from the highest
//! bit down. Bit `b` of `n` is compared `n - b` times, so the low bits belong in registers, the next
//! ones in lanes, and only the rest in warps.
//!
//! Where an element stands before the first comparison is of no account, so the network starts in
//! any layout that keeps lines apart: only the names of the index bits change. Bits that warps hold
//! trade places with others, through shared memory, for as long as they are compared.
//!
//! Of a few first elements only runs of that length are sorted; then the lesser half of two runs,
//! one of them mirrored, is what goes on.

use std::rc::Rc;

use super::LayoutError;
use super::access::{Highest, access_layout};
use super::linear::{Holder, LinearLayout, check_axis};
use crate::ir::IndexMap;
use crate::ir::index_map::dim_offset;

/// Which elements meet, and where the lesser one goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The register bits in which the two differ.
    pub registers: u32,
    /// The lane bits in which the two differ.
    pub lanes: u32,
    /// The bit that is zero where the lesser one goes.
    pub holder: Holder,
}

/// One step of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortStep {
    /// The lesser of two elements goes to one place, the greater to the other.
    Exchange(Meeting),
    /// Only the lesser of two elements goes on. Where a register bit is named, only registers in
    /// which it is zero are kept, and the bit is gone afterwards.
    Halve(Meeting, Option<u32>),
    /// Everything moves from one layout to another; both are of a matrix of lines.
    Move(LinearLayout, LinearLayout),
}

/// What two lanes go on with that both have the lesser elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// Each with one half of the registers.
    Divided,
    /// Both with all: lanes of a vector are computed together.
    Doubled,
}

/// A sort of a tile in one layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortSteps {
    /// The steps in order.
    pub steps: Vec<SortStep>,
    /// The layout of the result.
    pub result: LinearLayout,
}

impl SortSteps {
    /// The steps that sort along `axis` and keep the first `2^kept` elements. `None` when a column
    /// of the layout mixes the axis with others.
    ///
    /// # Errors
    /// When the axis is out of range.
    pub fn plan(
        layout: &LinearLayout,
        axis: usize,
        kept: u32,
        halving: Halving,
    ) -> Result<Option<SortSteps>, LayoutError> {
        let Some(mut network) = Network::start(layout, axis)? else {
            return Ok(None);
        };
        for top in 0..kept {
            network.merge(top, Some(top))?;
        }
        while network.axis_bits > kept {
            let mirrored = network.halve(kept, halving)?;
            if let Some(top) = kept.checked_sub(1) {
                network.merge(top, mirrored)?;
            }
        }
        let result = network.result(layout.dim_bits(), axis)?;
        Ok(Some(SortSteps {
            steps: network.steps,
            result,
        }))
    }
}

/// The layout in which a sort of a tile starts, and its steps: the tile's own layout, or a plain one
/// where a column of that mixes the axis with others.
///
/// # Errors
/// When the axis is out of range.
pub fn sort_steps(
    layout: &Rc<LinearLayout>,
    axis: usize,
    kept: u32,
) -> Result<(Rc<LinearLayout>, SortSteps), LayoutError> {
    if let Some(plan) = SortSteps::plan(layout, axis, kept, Halving::Divided)? {
        return Ok((Rc::clone(layout), plan));
    }
    let order: Vec<usize> = (0..layout.dim_bits().len()).rev().collect();
    let plain = access_layout(
        layout.dim_bits(),
        &order,
        0,
        layout.warp_bits(),
        Highest::Warps,
    );
    let plan = SortSteps::plan(&plain, axis, kept, Halving::Divided)?;
    let plan = plan.expect("broken invariant: a plain layout mixes no bits");
    Ok((Rc::new(plain), plan))
}

/// What one bit of a place adds: to the number of the line, or to the index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    line: u64,
    index: u64,
}

/// Where the lines are while the network runs.
#[derive(Clone)]
struct Network {
    /// Columns of registers, lanes and warps. Each index bit has one.
    columns: [Vec<Column>; 3],
    line_bits: u32,
    axis_bits: u32,
    steps: Vec<SortStep>,
}

const REGISTERS: usize = 0;
const LANES: usize = 1;
const WARPS: usize = 2;

impl Network {
    /// The columns of a layout with the index bits renamed: registers get the lowest ones.
    fn start(layout: &LinearLayout, axis: usize) -> Result<Option<Network>, LayoutError> {
        check_axis(axis, layout.dim_bits().len())?;
        let lines = IndexMap::reduce(layout.dim_bits().to_vec(), axis);
        let mask = layout.dim_mask(axis)?;
        let axis_bits = layout.dim_bits()[axis];
        let mut named = 0;
        let mut pure = true;
        let mut rename = |columns: &[u64]| -> Vec<Column> {
            let column = |&column: &u64| {
                let line = lines.apply(column);
                let along = column & mask != 0;
                pure &= !along || line == 0;
                named += u32::from(along);
                let index = if along { 1 << (named - 1) } else { 0 };
                Column { line, index }
            };
            columns.iter().map(column).collect()
        };
        let columns = [
            rename(layout.register_columns()),
            rename(layout.lane_columns()),
            rename(layout.warp_columns()),
        ];
        let network = Network {
            columns,
            line_bits: layout.tile_bits() - axis_bits,
            axis_bits,
            steps: Vec::new(),
        };
        Ok((pure && named == axis_bits).then_some(network))
    }

    /// The place bit that holds an index bit.
    fn place(&self, bit: u32) -> (usize, usize) {
        let found = self.columns.iter().enumerate().find_map(|(kind, columns)| {
            let position = columns.iter().position(|column| column.index == 1 << bit);
            position.map(|position| (kind, position))
        });
        found.expect("broken invariant: each index bit has a place")
    }

    /// The meeting of elements whose indices differ in `mask`, ordered by index bit `bit`.
    fn meeting(&self, mask: u64, bit: u32) -> Meeting {
        let differ = |kind: usize| {
            let columns = self.columns[kind].iter().enumerate();
            columns.fold(0, |sum, (position, column)| {
                sum | u32::from(column.index & mask != 0) << position
            })
        };
        let (kind, position) = self.place(bit);
        Meeting {
            registers: differ(REGISTERS),
            lanes: differ(LANES),
            holder: match kind {
                REGISTERS => Holder::Register(position as u32),
                LANES => Holder::Lane(position as u32),
                _ => Holder::Warp(position as u32),
            },
        }
    }

    /// The layout of the lines. With `mirror`, the elements whose index has that bit are named in
    /// reverse order.
    fn layout(&self, mirror: Option<u32>) -> Result<LinearLayout, LayoutError> {
        let flat = |column: &Column| {
            let below = mirror.map_or(0, |bit| match column.index >> bit & 1 {
                0 => 0,
                _ => (1 << bit) - 1,
            });
            column.line << self.axis_bits | (column.index ^ below)
        };
        let [register, lane, warp] = self
            .columns
            .each_ref()
            .map(|it| it.iter().map(flat).collect());
        LinearLayout::new(vec![self.line_bits, self.axis_bits], register, lane, warp)
    }

    /// The lowest of these index bits that a warp holds.
    fn lowest_in_warps(&self, bits: u32) -> Option<u32> {
        (0..bits).find(|&bit| self.place(bit).0 == WARPS)
    }

    /// Sorts blocks of `2^(top + 1)` elements whose comparisons below are done. At the bit
    /// `mirrored`, elements meet their mirror image.
    fn merge(&mut self, top: u32, mirrored: Option<u32>) -> Result<(), LayoutError> {
        let mut rest = top + 1;
        if let Some(low) = self.lowest_in_warps(rest) {
            let from = self.layout(mirrored)?;
            let home = self.columns.clone();
            for bit in low..=top {
                self.leave_warps(bit, low..=top);
            }
            let away = self.layout(None)?;
            self.steps.push(SortStep::Move(from, away.clone()));
            for bit in (low..=top).rev() {
                let meeting = self.meeting(1 << bit, bit);
                self.steps.push(SortStep::Exchange(meeting));
            }
            self.columns = home;
            let back = self.layout(None)?;
            self.steps.push(SortStep::Move(away, back));
            rest = low;
        }
        for bit in (0..rest).rev() {
            let below = if mirrored == Some(bit) {
                (1 << bit) - 1
            } else {
                0
            };
            let meeting = self.meeting(1 << bit | below, bit);
            self.steps.push(SortStep::Exchange(meeting));
        }
        Ok(())
    }

    /// Lets an index bit that a warp holds trade places with a register, or else a lane, that holds
    /// none of `busy`; of those that hold index bits, the one with the highest.
    fn leave_warps(&mut self, bit: u32, busy: std::ops::RangeInclusive<u32>) {
        let (kind, warp) = self.place(bit);
        if kind != WARPS {
            return;
        }
        let is_busy =
            |column: &Column| column.index != 0 && busy.contains(&column.index.trailing_zeros());
        let mut free: Vec<(u64, usize, usize)> = Vec::new();
        for kind in [REGISTERS, LANES] {
            for (position, column) in self.columns[kind].iter().enumerate() {
                if !is_busy(column) {
                    free.push((u64::MAX - column.index, kind, position));
                }
            }
        }
        // A place that holds no index bit comes first.
        let rank = |&(rest, kind, position): &(u64, usize, usize)| {
            (rest != u64::MAX, rest, kind, position)
        };
        let best = free.into_iter().min_by_key(rank);
        let (_, kind, position) =
            best.expect("broken invariant: lanes hold as many bits as warps do");
        let other = self.columns[kind][position];
        self.columns[kind][position] = self.columns[WARPS][warp];
        self.columns[WARPS][warp] = other;
    }

    /// Keeps the lesser half of two neighbouring runs of `2^kept`. Returns the index bit below which
    /// half of the places now hold their run in reverse order, if any do.
    fn halve(&mut self, kept: u32, halving: Halving) -> Result<Option<u32>, LayoutError> {
        let plain = self.lowest_in_warps(kept + 1).is_some();
        if plain {
            let from = self.layout(Some(kept))?;
            self.leave_warps(kept, kept..=kept);
            let to = self.layout(None)?;
            self.steps.push(SortStep::Move(from, to));
        }
        let below = if plain { 0 } else { (1 << kept) - 1 };
        let meeting = self.meeting(1 << kept | below, kept);
        let (kind, position) = self.place(kept);
        let mut mirrored = None;
        if kind == REGISTERS {
            self.steps
                .push(SortStep::Halve(meeting, Some(position as u32)));
            self.columns[REGISTERS].remove(position);
        } else {
            // Each of two lanes takes over one half of the places: those in which this bit is zero
            // there, which in the mirrored run are those in which it is one.
            let divides = !plain && halving == Halving::Divided;
            let divided = (0..kept).rev().filter(|_| divides).find_map(|bit| {
                let (kind, register) = self.place(bit);
                (kind == REGISTERS).then_some((bit, register))
            });
            let taken = divided.map(|(_, register)| register as u32);
            self.steps.push(SortStep::Halve(meeting, taken));
            match divided {
                Some((bit, register)) => {
                    let taken = self.columns[REGISTERS].remove(register);
                    self.columns[LANES][position] = taken;
                    mirrored = Some(bit);
                }
                None => self.columns[LANES][position].index = 0,
            }
        }
        for column in self.columns.iter_mut().flatten() {
            let low = column.index & ((1 << kept) - 1);
            column.index = low | (column.index >> (kept + 1) << kept);
        }
        self.axis_bits -= 1;
        Ok(mirrored)
    }

    /// The layout of the lines in the tile, whose axis may be shorter than it was.
    fn result(&self, dim_bits: &[u32], axis: usize) -> Result<LinearLayout, LayoutError> {
        let offset = dim_offset(dim_bits, axis);
        let mut dim_bits = dim_bits.to_vec();
        dim_bits[axis] = self.axis_bits;
        let flat = |column: &Column| {
            let (outer, inner) = (column.line >> offset, column.line & ((1 << offset) - 1));
            outer << (offset + self.axis_bits) | column.index << offset | inner
        };
        let [register, lane, warp] = self
            .columns
            .each_ref()
            .map(|it| it.iter().map(flat).collect());
        LinearLayout::new(dim_bits, register, lane, warp)
    }
}
