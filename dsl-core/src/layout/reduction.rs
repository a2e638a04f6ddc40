//! The steps of a reduction across registers, lanes and warps, and the layout of its result.
//!
//! Each level of the tree is one bit of the index. Across lanes, where a lane still has several
//! values, each of two lanes takes over one half of them: it sends the other half and combines its
//! own. That takes half the shuffles, and half the combines, of combining everything in both lanes;
//! a register bit becomes a lane bit by it. What is left of other axes goes back to all lanes mostly,
//! which costs as many shuffles again as two divided steps save. A worker of a CPU has the lanes of its vectors.

use super::LayoutError;
use super::linear::{Holder, LinearLayout, Point};
use crate::ir::{IndexMap, Order};
use crate::semantics::reduction::{Freedom, ReductionPlan};

/// The fewest lane steps of a reduction within warps with which dividing what registers hold of other axes pays.
const FEWEST_DIVIDED: usize = 3;

/// What lanes divide that still have several values of other axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Division {
    /// All of them, so that results end in lanes side by side.
    All,
    /// Those where it takes less, if the results go back to all lanes.
    Paying,
}

/// One step: what is combined with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReductionStep {
    /// Registers whose numbers differ in this bit; the bit is gone afterwards.
    Registers(u32),
    /// Lanes whose numbers differ in `lane`.
    Lanes {
        /// The bit of the lane number.
        lane: u32,
        /// The bit of the register number that says which lane takes over a value; gone afterwards.
        /// `None`: both lanes combine everything.
        divided: Option<u32>,
    },
    /// Warps whose numbers differ in these bits, the first bit first.
    Warps {
        /// The bits of the warp number.
        bits: Vec<u32>,
        /// Lane and warp bits that tell no values apart before the step.
        equal: Point,
    },
}

impl ReductionStep {
    /// The bit of the register number that is gone afterwards, set; 0 if there is none.
    pub fn register(&self) -> u32 {
        match self {
            Self::Registers(bit)
            | Self::Lanes {
                divided: Some(bit), ..
            } => 1 << bit,
            Self::Lanes { divided: None, .. } | Self::Warps { .. } => 0,
        }
    }
}

/// A reduction of a tile in one layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReductionSteps {
    /// The steps in order.
    pub steps: Vec<ReductionStep>,
    /// The layout of the result. Its registers are those left over, in ascending order.
    pub result: LinearLayout,
}

impl ReductionSteps {
    /// The steps of a reduction along `axis`: the levels in ascending order of their bits, or, if
    /// the order is free, the cheap ones first. `None` when a bit of the axis has no single holder.
    ///
    /// # Errors
    /// When the axis is out of range.
    pub fn plan(
        layout: &LinearLayout,
        axis: usize,
        order: Order,
        division: Division,
    ) -> Result<Option<ReductionSteps>, LayoutError> {
        let mask = layout.dim_mask(axis)?;
        let map = IndexMap::reduce(layout.dim_bits().to_vec(), axis);
        let mut columns = Columns::of(layout, mask);
        let ReductionPlan { bits, freedom } =
            ReductionPlan::new(order, 1 << layout.dim_bits()[axis]);
        let mut rest: Vec<u32> = bits.iter().map(|bit| bit + mask.trailing_zeros()).collect();
        columns.shares = division == Division::All || columns.shares_pay(&rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let next = match freedom {
                Freedom::None => 0,
                Freedom::AnyOrder => columns.cheapest(&rest),
            };
            let step = match columns.holder(rest.remove(next)) {
                Holder::Register(bit) => ReductionStep::Registers(bit),
                Holder::Lane(lane) => ReductionStep::Lanes {
                    lane,
                    divided: columns.divisible(),
                },
                Holder::Warp(warp) => {
                    let mut bits = vec![warp];
                    while let Some(Holder::Warp(warp)) =
                        rest.first().map(|&bit| columns.holder(bit))
                    {
                        bits.push(warp);
                        rest.remove(0);
                    }
                    let equal = Point {
                        register: 0,
                        lane: zeros(&columns.lane),
                        warp: zeros(&columns.warp),
                    };
                    ReductionStep::Warps { bits, equal }
                }
                Holder::Mixed => return Ok(None),
            };
            columns.take(&step);
            steps.push(step);
        }
        let result = columns.layout(&map)?;
        Ok(Some(ReductionSteps { steps, result }))
    }
}

/// The flat index that each bit still adds.
struct Columns {
    /// `None` for bits that are gone.
    register: Vec<Option<u64>>,
    /// Zero where lanes that differ in the bit hold the same values.
    lane: Vec<u64>,
    /// The same for warps.
    warp: Vec<u64>,
    /// The index bits of the axis.
    axis: u64,
    /// Whether lanes divide what registers hold of other axes.
    shares: bool,
}

impl Columns {
    fn of(layout: &LinearLayout, axis: u64) -> Columns {
        Columns {
            register: layout
                .register_columns()
                .iter()
                .copied()
                .map(Some)
                .collect(),
            lane: layout.lane_columns().to_vec(),
            warp: layout.warp_columns().to_vec(),
            axis,
            shares: true,
        }
    }

    /// What holds an index bit: the one column that reaches it.
    fn holder(&self, bit: u32) -> Holder {
        let column = 1 << bit;
        let all = self
            .register
            .iter()
            .flatten()
            .chain(&self.lane)
            .chain(&self.warp);
        if all.filter(|&&found| found & column != 0).count() != 1 {
            return Holder::Mixed;
        }
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
    fn cheapest(&self, bits: &[u32]) -> usize {
        let cost = |bit: u32| match self.holder(bit) {
            Holder::Register(_) => 0,
            Holder::Lane(_) => 1,
            Holder::Warp(_) | Holder::Mixed => 2,
        };
        (0..bits.len())
            .min_by_key(|&position| cost(bits[position]))
            .unwrap_or(0)
    }

    /// Whether fewer shuffles are left if lanes divide what registers hold of other axes, or less to exchange with other warps.
    fn shares_pay(&self, bits: &[u32]) -> bool {
        let count = |is: fn(&Holder) -> bool| {
            let holders = bits.iter().map(|&bit| self.holder(bit));
            holders.filter(is).count()
        };
        count(|it| matches!(it, Holder::Warp(_))) > 0
            || count(|it| matches!(it, Holder::Lane(_))) >= FEWEST_DIVIDED
    }

    /// A register bit that still tells values apart and may be divided, one of the axis if there is one.
    fn divisible(&self) -> Option<u32> {
        let alive = |wanted: &dyn Fn(u64) -> bool| {
            self.register
                .iter()
                .position(|column| column.is_some_and(wanted))
        };
        let on_axis = alive(&|column| column & self.axis != 0);
        let other = || alive(&|_| true).filter(|_| self.shares);
        on_axis.or_else(other).map(|bit| bit as u32)
    }

    fn take(&mut self, step: &ReductionStep) {
        match step {
            ReductionStep::Registers(bit) => self.register[*bit as usize] = None,
            ReductionStep::Lanes { lane, divided } => {
                let moved = divided.and_then(|bit| self.register[bit as usize].take());
                self.lane[*lane as usize] = moved.unwrap_or(0);
            }
            ReductionStep::Warps { bits, .. } => {
                for &bit in bits {
                    self.warp[bit as usize] = 0;
                }
            }
        }
    }

    /// What is left, without the axis.
    fn layout(&self, map: &IndexMap) -> Result<LinearLayout, LayoutError> {
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
