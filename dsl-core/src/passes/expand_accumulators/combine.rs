//! A combine of scalars, applied to all elements of tiles.

use crate::builder::Builder;
use crate::ir::{Axis, Func, Literal, Op, Order, Region, Shape, Value, op};
use crate::passes::duplicate::duplicate_region;
use crate::passes::straight::{is_straight, on_tiles};
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
        match is_straight(builder.func(), self.region) {
            true => on_tiles(builder, self.region, self.shape, &[lower, higher].concat()),
            false => self.pair_by_pair(builder, lower, higher),
        }
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
