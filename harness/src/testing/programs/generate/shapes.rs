//! Shapes and index tiles.

use exactile_core::builder::Builder;
use exactile_core::ir::{Axis, DType, Grid, Literal, Op, Shape, Type, Value, op};

use super::super::target::{Combine, Structure, Target};
use super::Generator;
use super::moves::Move;

/// The most dimensions of a generated tile.
pub(super) const RANK: usize = 3;

/// The linear index of the program: axis 0 is fastest.
pub(super) fn linear_program(builder: &mut Builder, grid: Grid) -> Value {
    let axes = [0, 1, 2].map(Axis);
    let mut linear = builder.value(Op::ProgramId(op::ProgramId { axis: axes[0] }));
    let mut stride = i64::from(grid[0]);
    for (axis, extent) in axes.into_iter().zip(grid).skip(1) {
        if extent > 1 {
            let position = builder.value(Op::ProgramId(op::ProgramId { axis }));
            let factor = builder.index(stride);
            let term = builder.mul(position, factor);
            linear = builder.add(linear, term);
        }
        stride *= i64::from(extent);
    }
    linear
}

pub(super) fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).expect("broken invariant: generated extents are powers of two")
}

impl Generator {
    pub(super) fn programs(&self) -> usize {
        self.grid.iter().map(|&extent| extent as usize).product()
    }

    pub(super) fn grid_axis(&mut self) -> Axis {
        Axis(self.random.pick(&[0, 0, 1, 2]))
    }

    /// A shape of up to three dimensions; small ones are likelier.
    pub(super) fn random_shape(&mut self) -> Shape {
        let largest = self.limits.elements.ilog2() as usize;
        let mut bits = self.random.below(largest + 1);
        if self.random.one_in(2) {
            bits = bits.min(self.random.below(largest + 1));
        }
        let rank = self.random.pick(&[0, 1, 1, 1, 2, 2, 3]);
        let mut dims = vec![1; rank];
        for _ in 0..bits {
            if rank > 0 {
                dims[self.random.below(rank)] *= 2;
            }
        }
        shape(&dims)
    }

    /// A shape in which `target` can be made, if one is found.
    pub(super) fn shape_for(&mut self, target: Target) -> Option<Shape> {
        for attempt in 0..64 {
            let shape = if attempt < 4 {
                let palette = self.palette.clone();
                self.random.pick(&palette)
            } else {
                self.random_shape()
            };
            if self.fits(target, shape) {
                return Some(shape);
            }
        }
        None
    }

    /// Whether `target` can give a tile of this shape here.
    pub(super) fn fits(&self, target: Target, shape: Shape) -> bool {
        let Target::Structure(structure, _) = target else {
            return true;
        };
        if self.combiner.is_some() {
            return matches!(structure, Structure::Constant | Structure::Select);
        }
        let room = self.limits.elements;
        match structure {
            Structure::Constant
            | Structure::Select
            | Structure::Load
            | Structure::LoadMasked
            | Structure::LoadOther
            | Structure::Store
            | Structure::StoreMasked
            | Structure::Assert
            | Structure::Print
            | Structure::Fetch(_)
            | Structure::Atomic(_) => true,
            Structure::Splat => shape.rank() > 0,
            Structure::Move(name) => (Move::named(name).fits)(self, shape),
            Structure::ForScalar => shape.is_scalar() && self.nesting < 2,
            Structure::ForTile => !shape.is_scalar() && self.nesting < 2,
            Structure::While | Structure::If => self.nesting < 2,
            Structure::Reduce(Combine::Op(_) | Combine::Closure | Combine::Several) => {
                shape.rank() < RANK && shape.elements() * 2 <= room.max(2)
            }
            Structure::TileLoad | Structure::TileStore => shape.rank() > 0,
            Structure::Accumulate => shape.rank() < RANK && shape.elements() * 2 <= room.max(2),
            Structure::Scan(_) | Structure::Prefixes => shape.rank() > 0,
            Structure::Sort => shape.rank() > 0,
            Structure::Histogram => shape.rank() == 1,
            Structure::Gather => shape.rank() > 0,
            Structure::Dot => matches!(shape.rank(), 2 | 3) && shape.elements() <= 128,
            Structure::Arange => shape.rank() == 1,
            Structure::ProgramId | Structure::NumPrograms => shape.is_scalar(),
        }
    }

    /// A scalar, repeated.
    pub(super) fn splat(&mut self, dtype: DType, wanted: Shape, depth: u32) -> Value {
        let x = self.make(dtype, Shape::SCALAR, depth);
        let ty = Type::tile(dtype, wanted);
        self.builder.declared(Op::Splat(op::Splat { x }), ty)
    }

    /// A random shape of as many elements as a tile may have.
    pub(super) fn largest_shape(&mut self) -> Shape {
        self.same_elements(shape(&[self.limits.elements]))
    }

    /// A random shape with as many elements.
    pub(super) fn same_elements(&mut self, wanted: Shape) -> Shape {
        let bits = wanted.elements().ilog2();
        let least = usize::from(bits > 0);
        let mut dims = vec![1; least + self.random.below(RANK + 1 - least)];
        for _ in 0..bits {
            let axis = self.random.below(dims.len());
            dims[axis] *= 2;
        }
        shape(&dims)
    }

    /// The shape of as many matrices as the batch has.
    pub(super) fn matrices(&self, batch: &[usize], rows: usize, columns: usize) -> Shape {
        shape(&[batch, &[rows, columns]].concat())
    }

    /// `wanted` with one more axis.
    pub(super) fn with_axis(&self, wanted: Shape, axis: usize, extent: usize) -> Shape {
        let mut dims = wanted.dims();
        dims.insert(axis, extent);
        shape(&dims)
    }

    /// An `i64` tile filled with `value`.
    pub(super) fn integers(&mut self, value: i64, shape: Shape) -> Value {
        let literal = Literal::from_bits(DType::I64, value as u64);
        self.builder.filled(literal, shape)
    }

    /// The row-major index of each element.
    pub(super) fn index_tile(&mut self, wanted: Shape) -> Value {
        if !wanted.is_scalar() && self.random.one_in(3) {
            let end = wanted.elements() as i64;
            let flat = self.builder.value(Op::Arange(op::Arange { start: 0, end }));
            let ty = Type::tile(DType::I64, wanted);
            return self
                .builder
                .declared(Op::Reshape(op::Reshape { x: flat }), ty);
        }
        let strides: Vec<i64> = wanted
            .strides()
            .iter()
            .map(|&stride| stride as i64)
            .collect();
        let start = self.builder.index(0);
        self.strided_tile(wanted, &strides, start)
    }

    /// `start` plus the coordinates times the strides.
    pub(super) fn strided_tile(&mut self, wanted: Shape, strides: &[i64], start: Value) -> Value {
        let mut sum = self.builder.splat(start, wanted);
        for (axis, &stride) in strides.iter().enumerate() {
            let along = self.along_axis(wanted, axis, stride);
            sum = self.builder.add(sum, along);
        }
        sum
    }

    /// The same with strides of which some are scalars that only the launch knows.
    pub(super) fn scalar_strided_tile(
        &mut self,
        wanted: Shape,
        strides: &[i64],
        start: Value,
    ) -> Value {
        let mut sum = self.builder.splat(start, wanted);
        for (axis, &stride) in strides.iter().enumerate() {
            let along = if self.random.one_in(4) {
                self.along_axis(wanted, axis, stride)
            } else {
                let stride = self.stride_parameter(stride);
                self.along_axis_by(wanted, axis, Some(stride))
            };
            sum = self.builder.add(sum, along);
        }
        sum
    }

    /// A scalar that holds a stride, sometimes with what divides it.
    fn stride_parameter(&mut self, stride: i64) -> Value {
        let value = self.scalar_parameter(Literal::from_bits(DType::I64, stride as u64));
        if self.random.one_in(2) {
            let divisor = 1 << stride.trailing_zeros().min(4);
            let func = self.builder.func_mut();
            if let Some(parameter) = func.parameters.last_mut() {
                parameter.divisor = divisor;
            }
        }
        value
    }

    /// The coordinate along `axis` times `stride`, in the wanted shape.
    pub(super) fn along_axis(&mut self, wanted: Shape, axis: usize, stride: i64) -> Value {
        let stride = (stride != 1).then(|| self.builder.index(stride));
        self.along_axis_by(wanted, axis, stride)
    }

    fn along_axis_by(&mut self, wanted: Shape, axis: usize, stride: Option<Value>) -> Value {
        let end = wanted.extent(axis) as i64;
        let mut along = self.builder.value(Op::Arange(op::Arange { start: 0, end }));
        if let Some(stride) = stride {
            let line = self.builder.ty(along).shape;
            let factor = self.builder.splat(stride, line);
            along = self.builder.mul(along, factor);
        }
        for position in 0..wanted.rank() {
            if position != axis {
                let axis = Axis(position as u8);
                along = self
                    .builder
                    .value(Op::ExpandDims(op::ExpandDims { x: along, axis }));
            }
        }
        if self.builder.ty(along).shape == wanted {
            return along;
        }
        let ty = Type::tile(DType::I64, wanted);
        self.builder
            .declared(Op::Broadcast(op::Broadcast { x: along }), ty)
    }
}
