//! Type rules of ops on sums that are under way.

use super::expect::Rules;
use crate::ir::op::SumOp;
use crate::ir::{Axis, DType, MAX_LEVELS, Type, Value, op};

impl Rules<'_> {
    pub(super) fn of_sum(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        let op = self.op.sum();
        let ty = match op.expect("broken invariant: the op is of sums") {
            SumOp::Accumulator(_) => return self.stated(declared, &|to| self.accumulator(to)),
            SumOp::Accumulate(op) => self.accumulate(op),
            SumOp::Total(op) => self.total(op),
            SumOp::PrefixSums(op) => self.prefix_sums(op),
        };
        ty.map(|ty| vec![ty])
    }

    /// That a sum of nothing can have this type.
    fn accumulator(self, to: Type) -> Result<(), String> {
        match to.sum() {
            Some((DType::Bool, _)) => Err("`accumulator` adds numbers, found `bool`".to_string()),
            Some((dtype, 1..=MAX_LEVELS)) if dtype == dtype.compute() => Ok(()),
            Some((dtype, 1..=MAX_LEVELS)) => Err(format!(
                "`accumulator` adds in `{}`, found `{dtype}`",
                dtype.compute()
            )),
            Some((_, levels)) => Err(format!(
                "`accumulator` has 1 to {MAX_LEVELS} levels, found {levels}"
            )),
            None => Err(format!("`accumulator` cannot make `{to}`")),
        }
    }

    /// The sum with one tile more.
    fn accumulate(self, op: &op::Accumulate) -> Result<Type, String> {
        self.added(op.state, op.x, op.axis)?;
        Ok(self.ty(op.state))
    }

    /// The numbers of a sum.
    fn total(self, op: &op::Total) -> Result<Type, String> {
        let dtype = self.sum(op.state)?;
        Ok(self.ty(op.state).with_dtype(dtype))
    }

    /// The tile in the type of the sum.
    fn prefix_sums(self, op: &op::PrefixSums) -> Result<Type, String> {
        let dtype = self.added(op.state, op.x, op.axis)?;
        Ok(self.ty(op.x).with_dtype(dtype))
    }

    fn sum(self, state: Value) -> Result<DType, String> {
        let ty = self.ty(state);
        let (dtype, _) = ty
            .sum()
            .ok_or_else(|| format!("`{}` takes a sum, found `{ty}`", self.name()))?;
        Ok(dtype)
    }

    /// The type of a sum to which the sums of `x` along an axis can be added.
    fn added(self, state: Value, x: Value, axis: Axis) -> Result<DType, String> {
        let dtype = self.sum(state)?;
        let (state, x) = (self.ty(state), self.ty(x));
        let number = self.number(x)?;
        if axis.index() >= x.shape.rank() {
            return Err(format!("axis {} is out of range for `{x}`", axis.0));
        }
        if number.compute() != dtype {
            return Err(format!("a sum of `{dtype}` does not take `{x}`"));
        }
        let sum = x.shape.without(axis.index());
        if sum != state.shape {
            return Err(format!(
                "the sum of `{x}` along axis {} does not fit `{state}`",
                axis.0
            ));
        }
        Ok(dtype)
    }
}
