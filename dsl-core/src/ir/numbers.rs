//! Whose numbers an op gives, and where they are there.

use super::index_map::{IndexMap, dim_bits, dim_offset};
use super::op::ShapeOp;
use super::{Func, Inst, Literal, Op, Shape, Value, op};

impl ShapeOp<'_> {
    /// The tile whose elements the op gives.
    pub fn x(self) -> Value {
        match self {
            Self::Broadcast(op) => op.x,
            Self::ExpandDims(op) => op.x,
            Self::Reshape(op) => op.x,
            Self::Transpose(op) => op.x,
            Self::Flip(op) => op.x,
            Self::Slice(op) => op.x,
            Self::Split(op) => op.x,
            Self::View(op) => op.x,
            Self::Convert(op) => op.x,
        }
    }

    /// Where the elements of the result, of shape `to`, are in the operand, of shape `from`.
    pub fn map(self, from: &Shape, to: &Shape) -> IndexMap {
        let (from, to) = (dim_bits(from), dim_bits(to));
        match self {
            Self::Broadcast(_) => IndexMap::broadcast(from, to),
            Self::ExpandDims(_) | Self::Reshape(_) | Self::Convert(_) => {
                IndexMap::reshape(to, from)
            }
            Self::Transpose(op) => IndexMap::transpose(from, &op.permutation),
            Self::Flip(op) => {
                let axis = op.axis.index();
                let turned = ((1 << from[axis]) - 1) << dim_offset(&from, axis);
                IndexMap::reshape(to, from).turned(turned)
            }
            Self::Slice(op) => {
                let start = op.start.cast_unsigned() << dim_offset(&from, op.axis.index());
                let axes: Vec<Option<usize>> = (0..from.len()).map(Some).collect();
                IndexMap::by_dimension(to, from, &axes).turned(start)
            }
            Self::Split(op) => {
                let columns = (1..from.iter().sum()).map(|bit| 1 << bit).collect();
                IndexMap::new(to, from, columns, op.part.cast_unsigned())
            }
            Self::View(op) => {
                let bits = op.bits.iter();
                let columns = bits.map(|bit| bit.map_or(0, |bit| 1 << bit)).collect();
                IndexMap::new(to, from, columns, op.offset.cast_unsigned())
            }
        }
    }
}

impl Func {
    /// The operand of a shape op, and where the elements of the result are in it.
    pub fn view(&self, inst: Inst) -> Option<(Value, IndexMap)> {
        let data = self.inst(inst);
        let (op, result) = (data.op.shape()?, *data.results.first()?);
        let map = op.map(&self.ty(op.x()).shape, &self.ty(result).shape);
        Some((op.x(), map))
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
