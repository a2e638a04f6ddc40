//! Combiners of reductions and scans, on scalars or on vectors element by element; steps of products.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::builder::Builder;
use crate::ir::{DType, Func, Op, Region, Trait, Value, op};

/// One step of a product of matrices, `a * b + sum`: a fused one of floats.
pub(super) fn multiply_add(builder: &mut Builder, a: Value, b: Value, sum: Value) -> Value {
    if builder.ty(sum).dtype().is_some_and(DType::is_float) {
        return builder.fma(a, b, sum);
    }
    let product = builder.mul(a, b);
    builder.add(product, sum)
}

/// A lowering, and how it has what a combiner needs beside its parameters.
pub(super) trait Combines<'a> {
    /// What a lowering fails with.
    type Failure;

    /// The function with the combiners.
    fn source(&self) -> &'a Func;

    /// Where ops are emitted.
    fn builder(&mut self) -> &mut Builder;

    /// A scalar from outside of the combiner.
    fn outer(&mut self, value: Value) -> Result<Value, Self::Failure>;

    /// What a region that may branch and repeat yields for scalars as its parameters.
    fn combine_scalars(
        &mut self,
        region: Region,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Self::Failure>;

    /// Combines the elements of each source, lower operands first.
    fn combine(
        &mut self,
        region: Region,
        lower: &[Value],
        higher: &[Value],
    ) -> Result<Vec<Value>, Self::Failure> {
        let arguments = [lower, higher].concat();
        let is_straight = self.source().region(region).insts.iter().all(|&inst| {
            let op = self.source().op(inst);
            let alone = op.is(Trait::elementwise) || matches!(op, Op::Constant(_));
            alone || op.is(Trait::terminator)
        });
        if is_straight {
            return self.combine_whole(region, &arguments);
        }
        let ty = self.builder().ty(arguments[0]);
        if ty.is_scalar() {
            return self.combine_scalars(region, &arguments);
        }
        let mut columns = vec![Vec::new(); lower.len()];
        for index in 0..ty.shape.elements() as i64 {
            let element = |&vector| Op::Extract(op::Extract { vector, index });
            let own: Vec<Op> = arguments.iter().map(element).collect();
            let own: Vec<Value> = own.into_iter().map(|op| self.builder().value(op)).collect();
            for (column, value) in columns.iter_mut().zip(self.combine_scalars(region, &own)?) {
                column.push(value);
            }
        }
        let vector = |elements| self.builder().value(Op::Vector(op::Vector { elements }));
        Ok(columns.into_iter().map(vector).collect())
    }

    /// The values of a region of elementwise ops on scalars, for vectors as its parameters.
    fn combine_whole(
        &mut self,
        region: Region,
        arguments: &[Value],
    ) -> Result<Vec<Value>, Self::Failure> {
        let source = self.source();
        let shape = self.builder().ty(arguments[0]).shape;
        let loc = self.builder().loc().clone();
        let parameters = source.region(region).parameters.iter().copied();
        let mut known: BTreeMap<Value, Value> = parameters.zip(arguments.iter().copied()).collect();
        for &inst in &source.region(region).insts {
            self.builder().set_loc(source.inst(inst).loc.clone());
            let mut op = source.op(inst).clone();
            for operand in op.operands() {
                if let Entry::Vacant(unknown) = known.entry(operand) {
                    let x = self.outer(operand)?;
                    unknown.insert(self.builder().splat(x, shape));
                }
            }
            op.map_operands(&mut |operand| known[&operand]);
            for &result in &source.inst(inst).results {
                let ty = source.ty(result).with_shape(shape);
                let emitted = self.builder().emit_unchecked(op.clone(), &[ty]);
                known.insert(result, self.builder().results(emitted)[0]);
            }
        }
        self.builder().set_loc(loc);
        let yielded = source.yielded(region).iter();
        Ok(yielded.map(|value| known[value]).collect())
    }
}
