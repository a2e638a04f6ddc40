//! Reductions: the steps of the tree, whatever holds the bits of the index.

use super::level::{Combiner, Partial};
use super::registers::Registers;
use super::{Lowering, Result};
use crate::ir::{AtomicOp, BinaryOp, DType, Inst, Order, op};
use crate::layout::reduction::{Division, ReductionStep, ReductionSteps};
use crate::semantics::reduction::{evaluation_order, only_op};
use crate::target::LANE_BITS;

/// Steps that many registers take in groups, each group all of them before the next one begins: what a lane reduces is often
/// needed again, and few partial results are alive beside it then.
const STEPS_OF_GROUP: usize = 3;

/// The fewest registers that take steps in groups: a lane that has fewer has room for all their partial results.
const FEWEST_PARTIALS: u32 = 64;

impl Lowering<'_> {
    pub(super) fn reduce(&mut self, inst: Inst, op: &op::Reduce) -> Result<()> {
        let (sources, axis, region) = (&op.sources, op.axis.index(), op.combine);
        let mut dtypes = Vec::new();
        for &source in sources {
            dtypes.push(self.dtype(source)?);
        }
        let order = evaluation_order(self.block, op.order, region, dtypes[0]);
        let only = only_op(self.block, region);
        let combiner = Combiner {
            region,
            commutative: order == Order::Any || only.is_some_and(BinaryOp::is_commutative),
            dtypes,
        };
        let layout = self.layout(sources[0]);
        let plan = ReductionSteps::plan(&layout, axis, order, Division::Paying);
        let plan = plan.map_err(|error| self.layout_error(&error))?;
        let plan = plan.expect("broken invariant: a placed reduction has steps");
        let all: Vec<u32> = (0..layout.registers()).collect();
        let mut values = Vec::new();
        for &source in sources {
            let registers = self.get(source);
            values.push(self.pick(&registers, &all));
        }
        let bits = (0..layout.registers().ilog2()).collect();
        let mut partial = Partial {
            values,
            bits,
            is_combined: false,
        };
        let later = self.by_groups(&mut partial, &plan.steps, &combiner)?;
        let is_own = |step: &&ReductionStep| matches!(step, ReductionStep::Registers(_));
        let (own, later) = later.split_at(later.iter().take_while(is_own).count());
        self.reduction_steps(&mut partial, own, &combiner)?;
        if self.hold(inst, &partial, later, &combiner) {
            return Ok(());
        }
        self.reduction_steps(&mut partial, later, &combiner)?;
        let places: Vec<u32> = (0..1 << partial.bits.len()).collect();
        let results = &self.block.inst(inst).results;
        for (&result, &value) in results.iter().zip(&partial.values) {
            self.bind(result, Registers::new(value, &places[..]));
        }
        Ok(())
    }

    /// Takes the first steps of many registers in groups; gives the other steps.
    fn by_groups<'s>(
        &mut self,
        partial: &mut Partial,
        steps: &'s [ReductionStep],
        combiner: &Combiner,
    ) -> Result<&'s [ReductionStep]> {
        let (own, later) = steps.split_at(STEPS_OF_GROUP.min(steps.len()));
        let gone: u32 = own.iter().map(ReductionStep::register).sum();
        let count = 1_u32 << partial.bits.len();
        if gone.count_ones() as usize != STEPS_OF_GROUP || count < FEWEST_PARTIALS {
            return Ok(steps);
        }
        let of_group: Vec<u32> = (0..count).filter(|at| at & !gone == 0).collect();
        let mut columns = vec![Vec::new(); partial.values.len()];
        for first in (0..count).filter(|at| at & gone == 0) {
            let chosen: Vec<u32> = of_group.iter().map(|at| first | at).collect();
            let values = partial.values.iter();
            let mut group = Partial {
                values: values.map(|&value| self.elements(value, &chosen)).collect(),
                bits: (0..count.ilog2())
                    .filter(|bit| gone >> bit & 1 == 1)
                    .collect(),
                is_combined: false,
            };
            self.reduction_steps(&mut group, own, combiner)?;
            for (column, value) in columns.iter_mut().zip(group.values) {
                column.push(value);
            }
        }
        partial.values = columns.iter().map(|parts| self.vector(parts)).collect();
        partial.bits.retain(|bit| gone >> bit & 1 == 0);
        partial.is_combined = true;
        Ok(later)
    }

    pub(super) fn reduction_steps(
        &mut self,
        partial: &mut Partial,
        mut steps: &[ReductionStep],
        combiner: &Combiner,
    ) -> Result<()> {
        let dtype = combiner.dtypes[0];
        let only = only_op(self.block, combiner.region);
        let warp_op = only.and_then(|only| warp_op(only, dtype));
        while let Some((step, rest)) = steps.split_first() {
            if let (Some(op), Some(later)) = (warp_op, after_warp(steps)) {
                self.across_warp(partial, op, dtype);
                steps = later;
                continue;
            }
            steps = rest;
            match step {
                ReductionStep::Registers(bit) => self.across_registers(partial, *bit, combiner)?,
                ReductionStep::Lanes { lane, divided } => {
                    self.across_lanes(partial, (*lane, *divided), combiner)?;
                }
                ReductionStep::Warps { bits, equal } => {
                    self.across_warps(partial, (bits, *equal), combiner)?;
                }
            }
        }
        Ok(())
    }
}

/// The op by which one instruction combines what the lanes of a warp hold, if there is one.
fn warp_op(only: BinaryOp, dtype: DType) -> Option<AtomicOp> {
    let in_word = !dtype.is_float() && dtype.bits() <= 32;
    let mut ops = AtomicOp::ALL.iter().copied();
    ops.find(|op| in_word && op.binary(dtype) == Some(only))
}

/// What is left after the first steps, if these combine whole warps.
fn after_warp(steps: &[ReductionStep]) -> Option<&[ReductionStep]> {
    let (first, later) = steps.split_at_checked(LANE_BITS as usize)?;
    let is_undivided = |step| matches!(step, &ReductionStep::Lanes { divided: None, .. });
    first.iter().all(is_undivided).then_some(later)
}
