//! Ops that give the elements of tiles at other places.

use exactile_core::ir::{Axis, DType, Op, Shape, Type, Value, op};

use super::Generator;
use super::shapes::{RANK, shape};

/// An op and how a program gets it.
pub(super) struct Move {
    name: &'static str,
    /// Whether it can give a tile of this shape.
    pub(super) fits: fn(&Generator, Shape) -> bool,
    /// Makes it, its operands and what leads to them.
    pub(super) make: fn(&mut Generator, DType, Shape, u32) -> Value,
}

const MOVES: &[Move] = &[
    Move {
        name: "broadcast",
        fits: |_, shape| shape.elements() > 1,
        make: Generator::broadcast,
    },
    Move {
        name: "expand_dims",
        fits: |_, shape| shape.extents().contains(&1),
        make: Generator::expand_dims,
    },
    Move {
        name: "reshape",
        fits: |_, _| true,
        make: Generator::reshape,
    },
    Move {
        name: "transpose",
        fits: |_, shape| shape.rank() > 0,
        make: Generator::transpose,
    },
    Move {
        name: "join",
        fits: |_, shape| shape.extents().last() == Some(&2),
        make: Generator::join,
    },
    Move {
        name: "map",
        fits: |_, _| true,
        make: Generator::map,
    },
    Move {
        name: "split",
        fits: |generator, shape| {
            shape.rank() < RANK && 2 * shape.elements() <= generator.limits.elements.max(2)
        },
        make: Generator::split,
    },
    Move {
        name: "flip",
        fits: |_, shape| shape.rank() > 0,
        make: Generator::flip,
    },
    Move {
        name: "slice",
        fits: |generator, shape| {
            shape.rank() > 0 && 2 * shape.elements() <= generator.limits.elements
        },
        make: Generator::slice,
    },
    Move {
        name: "view",
        fits: |_, _| true,
        make: Generator::view,
    },
];

impl Move {
    /// The op of this name.
    pub(super) fn named(name: &str) -> &'static Self {
        let found = MOVES.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("random programs have no `{name}`: add it to the moves"))
    }
}

impl Generator {
    /// A tile of fewer elements, repeated along some axes.
    fn broadcast(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let mut dims = wanted.dims();
        let wide: Vec<usize> = (0..dims.len()).filter(|&axis| dims[axis] > 1).collect();
        let forced = self.random.pick(&wide);
        for axis in wide {
            if axis == forced || self.random.one_in(2) {
                dims[axis] = 1;
            }
        }
        let x = self.make(dtype, shape(&dims), depth);
        let ty = Type::tile(dtype, wanted);
        self.builder
            .declared(Op::Broadcast(op::Broadcast { x }), ty)
    }

    /// A tile with one more axis.
    fn expand_dims(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let unit = wanted.extents().iter().enumerate();
        let unit: Vec<usize> = unit.filter(|it| *it.1 == 1).map(|it| it.0).collect();
        let axis = self.random.pick(&unit);
        let x = self.make(dtype, wanted.without(axis), depth);
        let axis = Axis(axis as u8);
        self.builder
            .value(Op::ExpandDims(op::ExpandDims { x, axis }))
    }

    /// A tile with permuted axes.
    fn transpose(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let mut permutation: Vec<u32> = (0..wanted.rank() as u32).collect();
        self.random.shuffle(&mut permutation);
        let mut dims = vec![0; wanted.rank()];
        for (axis, &from) in permutation.iter().enumerate() {
            dims[from as usize] = wanted.extent(axis);
        }
        let x = self.make(dtype, shape(&dims), depth);
        self.builder
            .value(Op::Transpose(op::Transpose { x, permutation }))
    }

    /// The elements of a tile of another shape.
    fn reshape(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let from = self.same_elements(wanted);
        let x = self.make(dtype, from, depth);
        let ty = Type::tile(dtype, wanted);
        self.builder.declared(Op::Reshape(op::Reshape { x }), ty)
    }

    /// Two tiles side by side.
    fn join(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let part = wanted.without(wanted.rank() - 1);
        let [a, b] = [0; 2].map(|_| self.make(dtype, part, depth));
        self.builder.value(Op::Join(op::Join { a, b }))
    }

    /// One of two tiles that lie side by side.
    fn split(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let whole = self.with_axis(wanted, wanted.rank(), 2);
        let x = self.make(dtype, whole, depth);
        let part = self.random.below(2) as i64;
        self.builder.value(Op::Split(op::Split { x, part }))
    }

    /// A tile turned round along one axis.
    fn flip(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let x = self.make(dtype, wanted, depth);
        let axis = Axis(self.random.below(wanted.rank()) as u8);
        self.builder.value(Op::Flip(op::Flip { x, axis }))
    }

    /// A part of a tile that is larger along one axis.
    fn slice(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let axis = self.random.below(wanted.rank());
        let most = (self.limits.elements / wanted.elements()).ilog2() as usize;
        let parts = 1 << self.random.below(most + 1);
        let mut dims = wanted.dims();
        dims[axis] *= parts;
        let x = self.make(dtype, shape(&dims), depth);
        let count = wanted.extent(axis) as i64;
        let op = op::Slice {
            x,
            axis: Axis(axis as u8),
            start: self.random.below(parts) as i64 * count,
            count,
        };
        self.builder.value(Op::Slice(op))
    }

    /// The elements of another tile by the bits of their indices, some of them turned round.
    fn view(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let most = self.limits.elements.ilog2() as usize;
        let (from, to) = (
            self.random.below(most + 1),
            wanted.elements().ilog2() as usize,
        );
        let of = self.same_elements(shape(&[1 << from]));
        let x = self.make(dtype, of, depth);
        let mut bits: Vec<Option<u8>> = (0..from as u8).map(Some).collect();
        bits.resize(from.max(to), None);
        if self.random.one_in(2) {
            self.random.shuffle(&mut bits);
        } else {
            let turn = self.random.below(bits.len().max(1));
            bits.rotate_left(turn);
        }
        bits.truncate(to);
        let offset = match self.random.one_in(2) {
            true => self.random.below(of.elements()) as i64,
            false => 0,
        };
        let op = Op::View(op::View { x, bits, offset });
        self.builder.declared(op, Type::tile(dtype, wanted))
    }
}
