//! Tiles of tensors that fit their memory.

use exactile_core::ir::{Cache, DType, Literal, Op, Shape, Type, Value, op};

use super::Generator;

/// A tile that one program has alone.
pub(super) struct OwnTile {
    pub(super) base: Value,
    pub(super) tensor: Value,
    pub(super) origin: Vec<Value>,
}

impl Generator {
    /// A tile of a tensor, from anywhere in it or beside it.
    pub(super) fn tile_load(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let extents: Vec<i64> = shape
            .dims()
            .into_iter()
            .map(|extent| self.random.between(0, 2 * extent.min(64) as i64 + 1))
            .collect();
        let (strides, length) = self.strides(&extents);
        let offset = self.offset();
        let length = length + offset.unwrap_or_default() as usize;
        let base = self.input(dtype, length).value;
        let tensor = self.tensor((base, offset), &extents, &strides);
        let origin = extents.iter().map(|&extent| self.origin(extent, depth));
        let origin = origin.collect();
        let deeper = depth.saturating_sub(1);
        let masked = self.random.one_in(3);
        let filled = self.random.one_in(3);
        let load = Op::TileLoad(op::TileLoad {
            tensor,
            origin,
            mask: masked.then(|| self.mask(shape, deeper)),
            other: filled.then(|| self.make(dtype, shape, deeper)),
            cache: self.cache(Cache::of_loads),
        });
        self.builder.declared(load, Type::tile(dtype, shape))
    }

    /// Stores `value` in the rows of a tensor that belong to this program.
    pub(super) fn tile_store(&mut self, value: Value) {
        let ty = self.builder.ty(value);
        let Some(dtype) = ty.dtype() else {
            return;
        };
        let OwnTile { tensor, origin, .. } = self.own_tile(dtype, ty.shape);
        let masked = self.random.one_in(3);
        let mask = masked.then(|| self.mask(ty.shape, 1));
        let store = op::TileStore {
            tensor,
            origin,
            value,
            mask,
            cache: self.cache(Cache::of_stores),
        };
        self.builder.emit(Op::TileStore(store), &[]);
    }

    /// A tile of a new tensor, in the rows that belong to this program.
    pub(super) fn own_tile(&mut self, dtype: DType, shape: Shape) -> OwnTile {
        let rows = shape.extent(0) as i64;
        let dims = shape.dims().into_iter();
        let mut extents: Vec<i64> = dims
            .map(|extent| self.random.between(1, extent as i64 + 2))
            .collect();
        extents[0] = rows * self.programs() as i64;
        let rows = self.builder.index(rows);
        let mut origin = vec![self.builder.mul(self.program, rows)];
        for _ in 1..extents.len() {
            let start = self.random.between(-2, 2);
            origin.push(self.builder.index(start));
        }
        let mut strides = vec![1; extents.len()];
        for axis in (1..extents.len()).rev() {
            strides[axis - 1] = strides[axis] * (extents[axis] + self.random.between(0, 1));
        }
        let length = (strides[0] * extents[0]) as usize;
        let offset = self.offset();
        let base = self.written(dtype, length + offset.unwrap_or_default() as usize);
        let tensor = self.tensor((base, offset), &extents, &strides);
        OwnTile {
            base,
            tensor,
            origin,
        }
    }

    /// Strides of a tensor in any order of the axes, and how many elements it reaches.
    fn strides(&mut self, extents: &[i64]) -> (Vec<i64>, usize) {
        let mut axes: Vec<usize> = (0..extents.len()).collect();
        if self.random.one_in(3) {
            self.random.shuffle(&mut axes);
        }
        let mut strides = vec![0; extents.len()];
        let mut next = self.random.pick(&[1, 1, 1, 0, 2]);
        let mut last = 0;
        for &axis in axes.iter().rev() {
            strides[axis] = next;
            last += next * (extents[axis] - 1).max(0);
            next = last + self.random.pick(&[1, 1, 1, 0, 3]);
        }
        (strides, last as usize + 1)
    }

    /// A tensor that begins at `offset`, if that is stated.
    fn tensor(
        &mut self,
        (base, offset): (Value, Option<i64>),
        extents: &[i64],
        strides: &[i64],
    ) -> Value {
        let offset = offset.map(|offset| self.known_or_not(offset));
        let [extents, strides] = [extents, strides].map(|numbers| {
            let numbers = numbers.iter();
            numbers.map(|&number| self.known_or_not(number)).collect()
        });
        let tensor = op::Tensor {
            base,
            extents,
            strides,
            offset,
        };
        self.builder.value(Op::Tensor(tensor))
    }

    /// Where a tensor begins.
    fn offset(&mut self) -> Option<i64> {
        let begins_later = self.random.one_in(3);
        begins_later.then(|| self.random.between(0, 40))
    }

    /// A number as a constant or as an argument.
    fn known_or_not(&mut self, number: i64) -> Value {
        match self.random.one_in(2) {
            true => self.builder.index(number),
            false => self.scalar_parameter(Literal::from_bits(DType::I64, number as u64)),
        }
    }

    /// Where a tile starts along an axis of this extent, or anywhere.
    fn origin(&mut self, extent: i64, depth: u32) -> Value {
        if self.random.one_in(4) {
            return self.make(DType::I64, Shape::SCALAR, depth);
        }
        let start = self.random.pick(&[0, 0, 1, -1]);
        let start = start * self.random.between(0, extent);
        let start = self.builder.index(start);
        match self.random.one_in(2) {
            true => self.builder.add(self.program, start),
            false => start,
        }
    }
}
