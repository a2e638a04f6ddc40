//! Type rules of ops on accumulators.

use super::expect::Rules;
use crate::ir::op::AccumulatorOp;
use crate::ir::{MAX_LEVELS, Region, Type, Value, op};

impl Rules<'_> {
    pub(super) fn of_accumulator(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        let op = self.op.accumulator();
        match op.expect("broken invariant: the op is of accumulators") {
            AccumulatorOp::Accumulator(_) => self.stated(declared, &|to| self.accumulator(to)),
            AccumulatorOp::Accumulate(op) => self.accumulate(op),
            AccumulatorOp::Total(op) => self.held(&op.accumulators, op.combine),
            AccumulatorOp::Prefixes(op) => self.prefixes(op),
        }
    }

    /// That an accumulator of nothing can have this type.
    fn accumulator(self, to: Type) -> Result<(), String> {
        match to.accumulator() {
            Some((_, 1..=MAX_LEVELS)) => Ok(()),
            Some((_, levels)) => Err(format!(
                "`accumulator` has 1 to {MAX_LEVELS} levels, found {levels}"
            )),
            None => Err(format!("`accumulator` cannot make `{to}`")),
        }
    }

    /// The accumulators with one subtree more.
    fn accumulate(self, op: &op::Accumulate) -> Result<Vec<Type>, String> {
        let held = self.held(&op.accumulators, op.combine)?;
        self.fit(&op.subtrees, &held)?;
        Ok(self.types(&op.accumulators))
    }

    /// The tiles.
    fn prefixes(self, op: &op::Prefixes) -> Result<Vec<Type>, String> {
        let held = self.held(&op.accumulators, op.combine)?;
        let Some(&first) = op.sources.first() else {
            return Err("`prefixes` needs a source".to_string());
        };
        let first = self.ty(first);
        if op.axis.index() >= first.shape.rank() {
            return Err(format!("axis {} is out of range for `{first}`", op.axis.0));
        }
        let before = first.shape.without(op.axis.index());
        if before != held[0].shape {
            return Err(format!(
                "`{first}` without axis {} does not fit `{}`",
                op.axis.0, held[0]
            ));
        }
        let tiles: Vec<Type> = held.iter().map(|ty| ty.with_shape(first.shape)).collect();
        self.fit(&op.sources, &tiles)?;
        Ok(tiles)
    }

    /// What accumulators that go together hold, which the combiner takes.
    fn held(self, accumulators: &[Value], combine: Region) -> Result<Vec<Type>, String> {
        let name = self.name();
        let types = self.types(accumulators);
        let Some(first) = types.first() else {
            return Err(format!("`{name}` needs an accumulator"));
        };
        let mut held = Vec::new();
        for &ty in &types {
            let Some((dtype, levels)) = ty.accumulator() else {
                return Err(format!("`{name}` takes accumulators, found `{ty}`"));
            };
            let same = first
                .accumulator()
                .is_some_and(|(_, first)| first == levels);
            if !same || ty.shape != first.shape {
                return Err(format!(
                    "`{name}` takes accumulators of one shape and as many levels, found `{first}` and `{ty}`"
                ));
            }
            held.push(Type::tile(dtype, ty.shape));
        }
        let elements: Vec<Type> = held
            .iter()
            .map(|ty| ty.with_shape(crate::ir::Shape::SCALAR))
            .collect();
        self.combiner(combine, &elements)?;
        Ok(held)
    }

    fn fit(self, values: &[Value], expected: &[Type]) -> Result<(), String> {
        let found = self.types(values);
        if found == expected {
            return Ok(());
        }
        Err(format!(
            "`{}` takes {expected:?}, found {found:?}",
            self.name()
        ))
    }
}
