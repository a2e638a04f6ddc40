//! Sums over the tiles of loops.

use exactile_core::ir::{Axis, DType, Element, Op, Shape, Type, Value, op};

use super::Generator;

impl Generator {
    /// The sum of tiles of this type, with this shape without the axis.
    pub(super) fn total(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let axis = self.random.below(shape.rank() + 1);
        let room = (self.limits.elements / shape.elements()).max(2).ilog2() as usize;
        let extent = 1 << self.random.below(room.min(4) + 1);
        let tiles = Type::tile(dtype, self.with_axis(shape, axis, extent));
        let state = self.summed(tiles, axis, depth);
        self.builder.value(Op::Total(op::Total { state }))
    }

    /// The prefix sums of a tile of this type after others.
    pub(super) fn prefix_sums(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let axis = self.random.below(shape.rank());
        let state = self.summed(Type::tile(dtype, shape), axis, depth);
        let (x, axis) = (self.make(dtype, shape, depth), Axis(axis as u8));
        let sums = self
            .builder
            .value(Op::PrefixSums(op::PrefixSums { state, x, axis }));
        if self.random.one_in(2) {
            let after = Op::Accumulate(op::Accumulate { state, x, axis });
            let state = self.builder.value(after);
            let total = self.builder.value(Op::Total(op::Total { state }));
            self.store(total, false);
        }
        sums
    }

    /// A sum of tiles of this type, most of them those of a loop.
    fn summed(&mut self, tiles: Type, axis: usize, depth: u32) -> Value {
        let dtype = tiles.dtype().map_or(DType::F32, DType::compute);
        let ty = Type {
            element: Element::Sum(dtype, self.random.between(1, 6) as u8),
            shape: tiles.shape.without(axis),
        };
        let mut state = self
            .builder
            .declared(Op::Accumulator(op::Accumulator {}), ty);
        if self.random.one_in(3) {
            state = self.with_tile(state, tiles, axis, depth);
        }
        if self.nesting == 2 {
            return state;
        }
        let (lower, upper, step, _) = self.bounds();
        let branches = self.random.one_in(3);
        self.nesting += 1;
        let body = self.region(&[Type::INDEX, ty], |generator, parameters| {
            let sum = parameters[1];
            vec![match branches {
                true => generator.with_tile_in_branch(sum, tiles, axis),
                false => generator.with_tile(sum, tiles, axis, 1),
            }]
        });
        self.nesting -= 1;
        let op = Op::For(op::For {
            lower,
            upper,
            init: vec![state],
            step,
            stages: 1,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst)[0]
    }

    fn with_tile(&mut self, state: Value, tiles: Type, axis: usize, depth: u32) -> Value {
        let dtype = tiles.dtype().unwrap_or(DType::F32);
        let (x, axis) = (self.make(dtype, tiles.shape, depth), Axis(axis as u8));
        let sum = Op::Accumulate(op::Accumulate { state, x, axis });
        self.builder.value(sum)
    }

    /// `state` with a tile added in one branch.
    fn with_tile_in_branch(&mut self, state: Value, tiles: Type, axis: usize) -> Value {
        let condition = self.condition();
        let on_true = self.region(&[], |generator, _| {
            vec![generator.with_tile(state, tiles, axis, 0)]
        });
        let on_false = self.region(&[], |_, _| vec![state]);
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let ty = self.builder.ty(state);
        let inst = self.builder.emit(op, &[ty]);
        self.builder.results(inst)[0]
    }
}
