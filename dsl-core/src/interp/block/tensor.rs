//! Tensors: the pointer, the extents, the strides; and their tiles.

use super::{Fault, Machine};
use crate::interp::elements::Elements;
use crate::interp::memory::{Buffer, Update};
use crate::ir::op::TensorOp;
use crate::ir::{Axis, Inst, Shape, Value, op, unflatten};

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
                let place = self.tile_places(*tensor, origin, *value, *mask);
                let value = self.read(*value);
                self.put(inst, *tensor, &place, &value)?;
                Ok(Vec::new())
            }
            TensorOp::TileAtomic(op) => {
                let place = self.tile_places(op.tensor, &op.origin, op.value, op.mask);
                let update = |_, bits| Update::reduce(op.op, bits).ordered(op.order, op.scope);
                let place = |element: usize| place[element];
                self.updated(inst, (op.tensor, op.value), &place, &update)?;
                Ok(Vec::new())
            }
            TensorOp::TileFetch(op) => {
                let place = self.tile_places(op.tensor, &op.origin, op.value, op.mask);
                let expected = op.expected.map(|expected| self.read(expected));
                let update = |element: u64, bits| {
                    let expected = expected.as_ref().map(|it| it.get(element as usize));
                    Update::fetch(op.op, bits, expected).ordered(op.order, op.scope)
                };
                let place = |element: usize| place[element];
                let old = self.updated(inst, (op.tensor, op.value), &place, &update)?;
                Ok(vec![old])
            }
        }
    }

    /// What a box of an array holds.
    pub(super) fn in_box(
        &mut self,
        inst: Inst,
        base: Value,
        numbers: [&[Value]; 3],
        (along, shape): (Option<Axis>, Shape),
    ) -> Result<Elements, Fault> {
        let inside = self.box_places(numbers, (along, shape));
        let place = |element: usize| inside[element];
        self.gathered(inst, base, shape.elements(), &place, &Elements::uniform(0))
    }

    pub(super) fn store_box(&mut self, inst: Inst, op: &op::StoreBox) -> Result<(), Fault> {
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        let places = self.box_places(numbers, (None, self.shape(op.value)));
        let value = self.read(op.value);
        self.put(inst, op.base, &places, &value)
    }

    /// The offset of each element of a box; `None` outside of its array.
    pub(super) fn box_places(
        &self,
        [origin, extents, strides]: [&[Value]; 3],
        of: (Option<Axis>, Shape),
    ) -> Vec<Option<i64>> {
        let axis = |at: usize| (self.index(extents[at]), self.index(strides[at]));
        self.places(&axis, origin, of)
    }

    /// Writes each element that has an offset.
    pub(super) fn put(
        &mut self,
        inst: Inst,
        base: Value,
        places: &[Option<i64>],
        value: &Elements,
    ) -> Result<(), Fault> {
        let program = self.program;
        let place = |element: usize| places[element];
        let write = |buffer: &mut Buffer<'_>, index, element, bits| {
            buffer.store(program, index, element, bits)
        };
        self.scatter(inst, base, (places.len(), value), &place, &write)
    }

    /// The offset of each element that is written with `value`; `None` where it is not.
    fn tile_places(
        &self,
        tensor: Value,
        origin: &[Value],
        value: Value,
        mask: Option<Value>,
    ) -> Vec<Option<i64>> {
        let mask = self.read_or(mask, 1);
        let inside = self.inside(tensor, origin, self.shape(value));
        let inside = inside.into_iter().enumerate();
        inside
            .map(|(element, place)| place.filter(|_| mask.get(element) != 0))
            .collect()
    }

    /// The offset of each element of a tile; `None` outside of the tensor.
    fn inside(&self, tensor: Value, origin: &[Value], shape: Shape) -> Vec<Option<i64>> {
        let tensor = &self.values[tensor];
        let number = |at: usize| tensor.get(at).cast_signed();
        let rank = shape.rank();
        let axis = |at: usize| (number(1 + at), number(1 + rank + at));
        let start = number(1 + 2 * rank);
        let places = self.places(&axis, origin, (None, shape)).into_iter();
        places
            .map(|place| Some(place?.wrapping_add(start)))
            .collect()
    }

    /// The offset of each element of a tile, with an origin for each of its parts along an axis; `None` outside of an array with these
    /// extents and strides.
    fn places(
        &self,
        axis: &dyn Fn(usize) -> (i64, i64),
        origin: &[Value],
        (along, shape): (Option<Axis>, Shape),
    ) -> Vec<Option<i64>> {
        let rank = shape.rank();
        let offset = |element: usize| {
            let mut steps = unflatten(&shape, element);
            let mut origin = origin;
            if let Some(along) = along.map(Axis::index) {
                let part = shape.extent(along) * rank / origin.len();
                origin = &origin[steps[along] / part * rank..];
                steps[along] %= part;
            }
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
