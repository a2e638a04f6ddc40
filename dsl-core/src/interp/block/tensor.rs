//! Tensors: the pointer, the extents, the strides; and their tiles.

use super::{Fault, Machine};
use crate::interp::elements::Elements;
use crate::interp::memory::Buffer;
use crate::ir::op::TensorOp;
use crate::ir::{Inst, Shape, Value, op, unflatten};

impl Machine<'_> {
    pub(super) fn tensor(&mut self, inst: Inst, op: TensorOp<'_>) -> Result<Vec<Elements>, Fault> {
        match op {
            TensorOp::Tensor(op) => {
                let scalars = op.extents.iter().chain(&op.strides);
                let scalars = std::iter::once(&op.base).chain(scalars);
                let bits = scalars.map(|&value| self.values[value].scalar());
                let offset = op.offset.map_or(0, |offset| self.values[offset].scalar());
                Ok(vec![Elements::new(bits.chain([offset]).collect())])
            }
            TensorOp::TileLoad(op) => {
                let shape = self.shape(self.func.inst(inst).results[0]);
                let inside = self.inside(op.tensor, &op.origin, shape);
                let mask = self.read_or(op.mask, 1);
                let other = self.read_or(op.other, 0);
                let place = |element: usize| inside[element].filter(|_| mask.get(element) != 0);
                let count = shape.elements();
                let loaded = self.gathered(inst, op.tensor, count, &place, &other)?;
                Ok(vec![loaded])
            }
            TensorOp::TileStore(op::TileStore {
                tensor,
                origin,
                value,
                mask,
                ..
            }) => {
                let program = self.program;
                let inside = self.inside(*tensor, origin, self.shape(*value));
                let mask = self.read_or(*mask, 1);
                let place = |element: usize| inside[element].filter(|_| mask.get(element) != 0);
                let write = |buffer: &mut Buffer<'_>, index, element, bits| {
                    buffer.store(program, index, element, bits)
                };
                self.scatter(inst, *tensor, *value, &place, &write)?;
                Ok(Vec::new())
            }
        }
    }

    /// What a box of an array holds.
    pub(super) fn in_box(
        &mut self,
        inst: Inst,
        base: Value,
        [origin, extents, strides]: [&[Value]; 3],
        shape: Shape,
    ) -> Result<Elements, Fault> {
        let axis = |at: usize| (self.index(extents[at]), self.index(strides[at]));
        let inside = self.places(&axis, origin, shape);
        let place = |element: usize| inside[element];
        self.gathered(inst, base, shape.elements(), &place, &Elements::uniform(0))
    }

    /// The offset of each element of a tile; `None` outside of the tensor.
    fn inside(&self, tensor: Value, origin: &[Value], shape: Shape) -> Vec<Option<i64>> {
        let tensor = &self.values[tensor];
        let number = |at: usize| tensor.get(at).cast_signed();
        let rank = shape.rank();
        let axis = |at: usize| (number(1 + at), number(1 + rank + at));
        let start = number(1 + 2 * rank);
        let places = self.places(&axis, origin, shape).into_iter();
        places
            .map(|place| Some(place?.wrapping_add(start)))
            .collect()
    }

    /// The offset of each element of a tile; `None` outside of an array with these extents and strides.
    fn places(
        &self,
        axis: &dyn Fn(usize) -> (i64, i64),
        origin: &[Value],
        shape: Shape,
    ) -> Vec<Option<i64>> {
        let offset = |element: usize| {
            let steps = unflatten(&shape, element);
            let mut offset = 0_i64;
            for (at, step) in steps.into_iter().enumerate() {
                let index = self.index(origin[at]).wrapping_add(step as i64);
                let (extent, stride) = axis(at);
                if !(0..extent).contains(&index) {
                    return None;
                }
                offset = offset.wrapping_add(index.wrapping_mul(stride));
            }
            Some(offset)
        };
        (0..shape.elements()).map(offset).collect()
    }
}
