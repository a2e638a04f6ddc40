//! Type rules of tensors and of accesses to their tiles.

use super::expect::Rules;
use crate::ir::op::TensorOp;
use crate::ir::{Axis, Element, MAX_RANK, Shape, Space, Type, Value, op};

impl Rules<'_> {
    /// The results of an op of tensors.
    pub(super) fn of_tensor(self, declared: &[Type]) -> Result<Vec<Type>, String> {
        let op = self.op.tensor();
        match op.expect("broken invariant: the op is of tensors") {
            TensorOp::Tensor(op) => self.tensor(op).map(|ty| vec![ty]),
            TensorOp::TileLoad(op) => self.stated(declared, &|to| self.tile_load(op, to)),
            TensorOp::TileStore(op) => self.tile_store(op).map(|()| Vec::new()),
            TensorOp::TileAtomic(op) => self.tile_atomic(op).map(|()| Vec::new()),
            TensorOp::TileFetch(op) => self.tile_fetch(op).map(|ty| vec![ty]),
        }
    }

    /// The array with as many axes as extents.
    fn tensor(self, op: &op::Tensor) -> Result<Type, String> {
        let (dtype, space) = self.pointer(op.base)?;
        if space != Space::Global {
            return Err("`tensor` is of global memory".to_string());
        }
        let rank = op.extents.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(format!("`tensor` has 1 to {MAX_RANK} axes, found {rank}"));
        }
        self.indices("an extent", &op.extents, rank)?;
        self.indices("a stride", &op.strides, rank)?;
        if let Some(offset) = op.offset {
            self.expect("`offset`", self.ty(offset), Type::INDEX)?;
        }
        Ok(Type {
            element: Element::Tensor(dtype, rank as u8),
            shape: Shape::SCALAR,
        })
    }

    /// That `values` are an index for each axis.
    fn indices(self, what: &str, values: &[Value], rank: usize) -> Result<(), String> {
        if values.len() != rank {
            return Err(format!(
                "`{}` takes {what} for each of {rank} axes, found {}",
                self.name(),
                values.len()
            ));
        }
        let mut types = self.types(values).into_iter();
        types.try_for_each(|ty| self.expect(what, ty, Type::INDEX))
    }

    /// That a tensor has tiles of type `moved`, and that the origin is one of them.
    fn tile(self, tensor: Value, origin: &[Value], moved: Type) -> Result<(), String> {
        let ty = self.ty(tensor);
        let Some((dtype, rank)) = ty.tensor() else {
            return Err(format!("`{}` takes a tensor, found `{ty}`", self.name()));
        };
        if moved.dtype() != Some(dtype) || moved.shape.rank() != usize::from(rank) {
            return Err(format!("`{moved}` is no tile of a `{ty}`"));
        }
        self.indices("an origin", origin, usize::from(rank))
    }

    /// That a tile is a box of an array in global memory, with an origin, an extent and a stride for each axis; along one there may be
    /// several parts, each with an origin.
    pub(super) fn array_box(
        self,
        base: Value,
        [origin, extents, strides]: [&[Value]; 3],
        along: Option<Axis>,
        moved: Type,
    ) -> Result<(), String> {
        let (dtype, space) = self.pointer(base)?;
        if space != Space::Global {
            return Err(format!("`{}` is of global memory", self.name()));
        }
        let rank = moved.shape.rank();
        if moved.dtype() != Some(dtype) || rank == 0 {
            return Err(format!("`{moved}` is no box of `{dtype}`"));
        }
        match along {
            None => self.indices("an origin", origin, rank)?,
            Some(axis) => {
                let parts = origin.len() / rank;
                let extent = moved.shape.dims().get(axis.index()).copied();
                if !extent.is_some_and(|extent| parts.is_power_of_two() && parts <= extent) {
                    return Err(format!(
                        "`{moved}` has no {parts} parts along axis {}: their number is a power of two, at most the extent",
                        axis.0
                    ));
                }
                for origin in origin.chunks(rank) {
                    self.indices("an origin", origin, rank)?;
                }
            }
        }
        self.indices("an extent", extents, rank)?;
        self.indices("a stride", strides, rank)
    }

    pub(super) fn load_box(self, op: &op::LoadBox, to: Type) -> Result<(), String> {
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        self.loads(op.cache)?;
        self.array_box(op.base, numbers, op.along, to)
    }

    pub(super) fn store_box(self, op: &op::StoreBox) -> Result<(), String> {
        let numbers = [&op.origin[..], &op.extents, &op.strides];
        self.stores(op.cache)?;
        self.array_box(op.base, numbers, None, self.ty(op.value))
    }

    fn tile_load(self, op: &op::TileLoad, to: Type) -> Result<(), String> {
        self.tile(op.tensor, &op.origin, to)?;
        self.loads(op.cache)?;
        self.mask(to, op.mask)?;
        op.other
            .map_or(Ok(()), |other| self.expect("`other`", self.ty(other), to))
    }

    fn tile_store(self, op: &op::TileStore) -> Result<(), String> {
        let moved = self.ty(op.value);
        self.tile(op.tensor, &op.origin, moved)?;
        self.stores(op.cache)?;
        self.mask(moved, op.mask)
    }

    fn tile_atomic(self, op: &op::TileAtomic) -> Result<(), String> {
        let moved = self.ty(op.value);
        self.tile(op.tensor, &op.origin, moved)?;
        self.reduces(op.op)?;
        self.number(moved)
            .and_then(|dtype| self.atomic(op.op, dtype))?;
        self.releases(op.order)?;
        self.mask(moved, op.mask)
    }

    fn tile_fetch(self, op: &op::TileFetch) -> Result<Type, String> {
        let moved = self.ty(op.value);
        self.tile(op.tensor, &op.origin, moved)?;
        self.number(moved)
            .and_then(|dtype| self.atomic(op.op, dtype))?;
        self.ordered(op.op, op.order)?;
        self.expected(op.op, op.expected, moved)?;
        self.mask(moved, op.mask).map(|()| moved)
    }
}
