//! A combine of scalars, applied to all elements of tiles.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::ir::{Axis, Func, Literal, Op, Order, Region, Shape, Trait, Type, Value, op};
use crate::passes::duplicate::duplicate_region;
use crate::semantics::reduction::{identity, only_op};

/// The combine of an op, for tiles of one shape.
pub(super) struct Combine {
    region: Region,
    shape: Shape,
}

impl Combine {
    pub(super) fn new(region: Region, shape: Shape) -> Self {
        Self { region, shape }
    }

    /// What changes nothing as the left operand, if that is known.
    pub(super) fn identity(&self, func: &Func, operands: &[Value]) -> Option<Literal> {
        let &[operand] = operands else {
            return None;
        };
        identity(only_op(func, self.region)?, func.ty(operand).dtype()?)
    }

    /// Every element of the lower tiles with that of the higher ones.
    pub(super) fn of(
        &self,
        builder: &mut Builder,
        lower: &[Value],
        higher: &[Value],
    ) -> Vec<Value> {
        let func = builder.func();
        let insts = func.region(self.region).insts.iter();
        let straight = insts
            .map(|&inst| func.op(inst))
            .all(|op| op.is(Trait::elementwise) || matches!(op, Op::Constant(_) | Op::Yield(_)));
        match straight {
            true => self.element_by_element(builder, &[lower, higher].concat()),
            false => self.pair_by_pair(builder, lower, higher),
        }
    }

    /// The instructions of the combine on tiles.
    fn element_by_element(&self, builder: &mut Builder, operands: &[Value]) -> Vec<Value> {
        let loc = builder.loc().clone();
        let parameters = builder.parameters(self.region).into_iter();
        let mut known: BTreeMap<Value, Value> = parameters.zip(operands.iter().copied()).collect();
        let yielded = builder.func().yielded(self.region).to_vec();
        for inst in builder.func().region(self.region).insts.clone() {
            let mut data = builder.func().inst(inst).clone();
            if data.op.is(Trait::terminator) {
                continue;
            }
            for operand in data.op.operands() {
                self.spread(builder, &mut known, operand);
            }
            data.op.map_operands(&mut |operand| known[&operand]);
            let types = data.results.iter().map(|&result| builder.ty(result));
            let types: Vec<Type> = types.map(|ty| ty.with_shape(self.shape)).collect();
            builder.set_loc(data.loc);
            let copied = builder.emit_unchecked(data.op, &types);
            let results = builder.results(copied).to_vec();
            known.extend(data.results.into_iter().zip(results));
        }
        builder.set_loc(loc);
        for &value in &yielded {
            self.spread(builder, &mut known, value);
        }
        yielded.iter().map(|value| known[value]).collect()
    }

    /// Makes a tile of a scalar from outside.
    fn spread(&self, builder: &mut Builder, known: &mut BTreeMap<Value, Value>, value: Value) {
        let spread = || builder.splat(value, self.shape);
        known.entry(value).or_insert_with(spread);
    }

    /// The reduction of pairs.
    fn pair_by_pair(&self, builder: &mut Builder, lower: &[Value], higher: &[Value]) -> Vec<Value> {
        let count = self.shape.elements();
        let flat =
            Shape::new(&[count]).expect("broken invariant: a tile has a power of two elements");
        let mut sources = Vec::new();
        for (&a, &b) in lower.iter().zip(higher) {
            let [a, b] = [a, b].map(|x| reshaped(builder, x, flat));
            sources.push(builder.value(Op::Join(op::Join { a, b })));
        }
        let combine = duplicate_region(builder.func_mut(), self.region);
        let reduce = Op::Reduce(op::Reduce {
            sources,
            axis: Axis(1),
            order: Order::Tree,
            combine,
        });
        let inst = builder.emit(reduce, &[]);
        let results = builder.results(inst).to_vec().into_iter();
        results.map(|x| reshaped(builder, x, self.shape)).collect()
    }
}

fn reshaped(builder: &mut Builder, x: Value, shape: Shape) -> Value {
    let ty = builder.ty(x);
    match ty.shape == shape {
        true => x,
        false => builder.declared(Op::Reshape(op::Reshape { x }), ty.with_shape(shape)),
    }
}
