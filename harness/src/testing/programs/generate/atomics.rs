//! Atomics of memory that programs share, or that one has alone.

use exactile_core::ir::{AtomicOp, DType, MemoryOrder, Op, Scope, Shape, UnaryOp, Value, op};

use super::super::values::{Fill, LEAST_ADDEND};
use super::Generator;
use super::tensors::OwnTile;

impl Generator {
    /// Combines `value` into memory that every program combines by this op, and nothing else
    /// touches, or into a tile. What sums of floats give depends on their order, so each has its place.
    pub(super) fn atomic(&mut self, op: AtomicOp, value: Value) {
        let ty = self.builder.ty(value);
        let Some(dtype) = ty.dtype() else {
            return;
        };
        if ty.shape.rank() > 0 && self.random.one_in(3) {
            return self.tile_atomic(op, value, dtype);
        }
        if op.rounds(dtype) {
            let segment = self.segment(dtype, Self::width(ty.shape));
            let value = self.addend(op, segment.base, value);
            let offsets = self.distinct_places(ty.shape, segment.start);
            return self.combine(op, segment.base, offsets, value, Scope::ALL);
        }
        let (offsets, length) = self.scattered(ty.shape, 1);
        let known = self
            .outputs
            .iter()
            .rposition(|output| output.dtype == dtype);
        let index = known.unwrap_or_else(|| self.new_output(dtype));
        let output = self.outputs[index];
        self.outputs[index].length += length;
        let start = self.integers(output.length as i64, ty.shape);
        let offsets = self.builder.add(offsets, start);
        let scopes = match self.programs() {
            1 => Scope::ALL,
            _ => &[Scope::System],
        };
        self.combine(op, output.value, offsets, value, scopes);
    }

    /// `value` without what a GPU takes for zero when it adds to memory, of which the same goes.
    fn addend(&mut self, op: AtomicOp, base: Value, value: Value) -> Value {
        if op != AtomicOp::Add || self.builder.ty(value).dtype() != Some(DType::F32) {
            return value;
        }
        for output in self
            .outputs
            .iter_mut()
            .filter(|output| output.value == base)
        {
            output.fill = Fill::Addends;
        }
        let size = self.builder.unary(UnaryOp::Abs, value);
        let [least, zero] = [LEAST_ADDEND, 0.0].map(|it| self.builder.constant_like(value, it));
        let is_small = self.builder.lt(size, least);
        self.builder.select(is_small, zero, value)
    }

    pub(super) fn combine(
        &mut self,
        op: AtomicOp,
        base: Value,
        offsets: Value,
        value: Value,
        scopes: &[Scope],
    ) {
        let shape = self.builder.ty(offsets).shape;
        let masked = self.random.one_in(3);
        let mask = masked.then(|| self.mask(shape, 1));
        let (order, scope) = self.order_and_scope(|order| !order.acquires(), scopes);
        let atomic = Op::AtomicReduce(op::AtomicReduce {
            base,
            offsets,
            value,
            mask,
            op,
            order,
            scope,
        });
        self.builder.emit(atomic, &[]);
    }

    /// Combines `value` into a tile of its own; where no order shows, sometimes all programs into one tile.
    fn tile_atomic(&mut self, op: AtomicOp, value: Value, dtype: DType) {
        let shape = self.builder.ty(value).shape;
        let OwnTile {
            base,
            tensor,
            mut origin,
        } = self.own_tile(dtype, shape);
        let value = self.addend(op, base, value);
        let mut scopes = Scope::ALL;
        if !op.rounds(dtype) && self.random.one_in(2) {
            origin[0] = self.builder.index(0);
            if self.programs() > 1 {
                scopes = &[Scope::System];
            }
        }
        let masked = self.random.one_in(3);
        let mask = masked.then(|| self.mask(shape, 1));
        let (order, scope) = self.order_and_scope(|order| !order.acquires(), scopes);
        let atomic = op::TileAtomic {
            tensor,
            origin,
            value,
            mask,
            op,
            order,
            scope,
        };
        self.builder.emit(Op::TileAtomic(atomic), &[]);
    }

    /// What the tile of a tensor held that this program has alone.
    fn tile_fetch(&mut self, op: AtomicOp, value: Value, dtype: DType) -> Value {
        let shape = self.builder.ty(value).shape;
        let OwnTile {
            base,
            tensor,
            origin,
        } = self.own_tile(dtype, shape);
        let value = self.addend(op, base, value);
        let compares = op == AtomicOp::Exchange && self.random.one_in(2);
        let expected = compares.then(|| self.make(dtype, shape, 1));
        let masked = self.random.one_in(3);
        let mask = masked.then(|| self.mask(shape, 1));
        let admits = |order: MemoryOrder| op != AtomicOp::Load || !order.releases();
        let (order, scope) = self.order_and_scope(admits, Scope::ALL);
        self.builder.value(Op::TileFetch(op::TileFetch {
            tensor,
            origin,
            value,
            mask,
            expected,
            op,
            order,
            scope,
        }))
    }

    /// Each sometimes, among those that an atomic may have.
    fn order_and_scope(
        &mut self,
        admits: impl Fn(MemoryOrder) -> bool,
        scopes: &[Scope],
    ) -> (Option<MemoryOrder>, Option<Scope>) {
        let orders = MemoryOrder::ALL.iter().copied();
        let orders: Vec<MemoryOrder> = orders.filter(|&order| admits(order)).collect();
        let ordered = self.random.one_in(4);
        let order = ordered.then(|| self.random.pick(&orders));
        let scoped = self.random.one_in(4);
        (order, scoped.then(|| self.random.pick(scopes)))
    }

    /// What memory held that this program has alone, each element at a place of its own.
    pub(super) fn fetch(&mut self, op: AtomicOp, dtype: DType, shape: Shape, depth: u32) -> Value {
        let value = self.make(dtype, shape, depth);
        if shape.rank() > 0 && self.random.one_in(3) {
            return self.tile_fetch(op, value, dtype);
        }
        let segment = self.segment(dtype, Self::width(shape));
        let value = self.addend(op, segment.base, value);
        let offsets = self.distinct_places(shape, segment.start);
        let compares = op == AtomicOp::Exchange && self.random.one_in(2);
        let expected = compares.then(|| match self.random.one_in(2) {
            true => self.loaded(segment.base, offsets, None, None),
            false => self.make(dtype, shape, 1),
        });
        let masked = self.random.one_in(3);
        let mask = masked.then(|| self.mask(shape, 1));
        let admits = |order: MemoryOrder| op != AtomicOp::Load || !order.releases();
        let (order, scope) = self.order_and_scope(admits, Scope::ALL);
        self.builder.value(Op::AtomicFetch(op::AtomicFetch {
            base: segment.base,
            offsets,
            value,
            mask,
            expected,
            op,
            order,
            scope,
        }))
    }
}
