//! Whose numbers an op gives.

use super::op::ShapeOp;
use super::{Literal, Op, Shape, Value, op};

impl ShapeOp<'_> {
    /// What holds along each axis of the result, where `of` holds along those of the operand, of shape
    /// `from`: `new` along an axis that the op inserts or repeats. `None` for a reshape.
    pub fn along<T: Clone>(self, from: &Shape, mut of: Vec<T>, new: T) -> Option<Vec<T>> {
        match self {
            Self::Broadcast(_) => {
                for (axis, of) in of.iter_mut().enumerate() {
                    if from.extent(axis) == 1 {
                        *of = new.clone();
                    }
                }
                Some(of)
            }
            Self::ExpandDims(op) => {
                of.insert(op.axis.index(), new);
                Some(of)
            }
            Self::Transpose(op) => {
                let axes = op.permutation.iter();
                Some(axes.map(|&axis| of[axis as usize].clone()).collect())
            }
            Self::Reshape(_) => None,
        }
    }
}

impl Op {
    /// The value whose elements a splat or a shape op gives, at other places or repeated.
    pub fn rearranged(&self) -> Option<Value> {
        if let Op::Splat(op::Splat { x }) = self {
            return Some(*x);
        }
        self.shape().map(ShapeOp::x)
    }

    /// The values of one of which each element of the result is an element; none where something is
    /// computed, or known otherwise.
    pub fn picked_from(&self) -> Vec<Value> {
        if let Op::Select(op) = self {
            vec![op.on_true, op.on_false]
        } else if let Op::Vector(op) = self {
            op.elements.clone()
        } else if let Op::ShuffleVector(op) = self {
            vec![op.a, op.b]
        } else if let Op::ShuffleXor(op::ShuffleXor { x, .. })
        | Op::ShuffleIndex(op::ShuffleIndex { x, .. })
        | Op::Extract(op::Extract { vector: x, .. }) = self
        {
            vec![*x]
        } else {
            self.rearranged().into_iter().collect()
        }
    }
}

/// The literal that fills a value, given what defines values.
pub fn filling<'a>(
    mut value: Value,
    definition: impl Fn(Value) -> Option<&'a Op>,
) -> Option<Literal> {
    loop {
        let op = definition(value)?;
        if let Op::Constant(op::Constant { value }) = op {
            return Some(*value);
        }
        value = op.rearranged()?;
    }
}
