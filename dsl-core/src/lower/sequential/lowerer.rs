//! The state of one lowering, the regions it is in, and index arithmetic that folds.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::index::{Cover, Index, Scalar};
use super::plan::Plan;
use super::pull::Pulled;
use crate::builder::Builder;
use crate::ir::op::ShapeOp;
use crate::ir::{BinaryOp, DType, Inst, Literal, Op, Region, Shape, Space, Type, Value, op};
use crate::passes::indices::Indices;
use crate::target::{Bounds, Target};
use crate::verify::BlockFunc;

/// A tile in scratch memory, row-major.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffer {
    /// The pointer that `alloc` gives.
    pub pointer: Value,
    /// The type of an element.
    pub dtype: DType,
    /// The extents.
    pub shape: Shape,
}

/// How a value of the block function is had in the lane function.
#[derive(Clone, Debug)]
pub(super) enum Binding<'a> {
    /// A number.
    Scalar(Scalar),
    /// Recomputed wherever an element is needed.
    Inline(Inst, Inline<'a>),
    /// Kept in scratch memory.
    Buffer(Buffer),
}

/// How the elements that an instruction makes are computed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inline<'a> {
    Constant(Literal),
    Arange(&'a op::Arange),
    Splat(Value),
    Shape(ShapeOp<'a>),
    Load(&'a op::Load),
    Gather(&'a op::Gather),
    /// The instruction's op on the elements of its operands at the same place.
    Computed,
}

pub(super) struct Lowerer<'a> {
    pub source: &'a BlockFunc,
    pub target: &'a Target,
    pub builder: Builder,
    pub plan: Plan,
    pub bounds: Bounds,
    pub sites: BTreeMap<Inst, u32>,
    pub bindings: BTreeMap<Value, Binding<'a>>,
    /// The masks of which there may be two versions, and the scalars with which they are true everywhere.
    pub masks: BTreeMap<Value, Value>,
    /// Accesses that need no check in the version that is being made.
    pub unchecked: BTreeSet<Inst>,
    /// The facts of offsets, where there are versions for the accesses that are in bounds.
    pub indices: OnceCell<Indices>,
    /// The parameters that point.
    pub pointers: BTreeMap<Value, Value>,
    /// Elements already computed, by the region they are visible in.
    pub memo: Vec<BTreeMap<(Value, Index), Pulled>>,
    constants: BTreeMap<Literal, (Value, Inst)>,
}

impl<'a> Lowerer<'a> {
    pub(super) fn new(
        source: &'a BlockFunc,
        target: &'a Target,
        builder: Builder,
        plan: Plan,
        bounds: Bounds,
    ) -> Self {
        Self {
            source,
            target,
            builder,
            plan,
            bounds,
            sites: source.access_sites(),
            bindings: BTreeMap::new(),
            masks: BTreeMap::new(),
            unchecked: BTreeSet::new(),
            indices: OnceCell::new(),
            pointers: BTreeMap::new(),
            memo: Vec::new(),
            constants: BTreeMap::new(),
        }
    }

    /// Puts constants at the start of the body.
    pub(super) fn finish(mut self) -> Builder {
        let mut insts: Vec<Inst> = self.constants.values().map(|&(_, inst)| inst).collect();
        insts.sort_unstable();
        let body = self.builder.func().body();
        let region = self.builder.func_mut().region_mut(body);
        region.insts.splice(0..0, insts);
        self.builder
    }

    /// The data type of the elements of a block value.
    pub(super) fn dtype(&self, value: Value) -> DType {
        self.source
            .ty(value)
            .dtype()
            .expect("broken invariant: a verified tile holds numbers")
    }

    /// The shape of a block value.
    pub(super) fn shape(&self, value: Value) -> Shape {
        self.source.ty(value).shape
    }

    /// A scalar constant, made once at the start of the function.
    pub(super) fn constant(&mut self, literal: Literal) -> Value {
        if let Some(&(value, _)) = self.constants.get(&literal) {
            return value;
        }
        let loc = self.builder.loc().clone();
        let ty = Type::scalar(literal.dtype);
        let func = self.builder.func_mut();
        let inst = func.add_inst(Op::Constant(op::Constant { value: literal }), &[ty], loc);
        let value = func.inst(inst).results[0];
        self.constants.insert(literal, (value, inst));
        value
    }

    /// A literal as a scalar: known when it is an index.
    pub(super) fn literal(&mut self, literal: Literal) -> Scalar {
        if literal.dtype == DType::I64 {
            return Scalar::Known(literal.bits as i64);
        }
        Scalar::Emitted(self.constant(literal))
    }

    /// A scalar as a value.
    pub(super) fn value(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::Known(known) => self.constant(Literal::from_bits(DType::I64, known as u64)),
            Scalar::Emitted(value) => value,
        }
    }

    pub(super) fn add(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Known(a), Scalar::Known(b)) => Scalar::Known(a.wrapping_add(b)),
            (Scalar::Known(0), other) | (other, Scalar::Known(0)) => other,
            _ => {
                let (a, b) = (self.value(a), self.value(b));
                Scalar::Emitted(self.builder.add(a, b))
            }
        }
    }

    pub(super) fn sub(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Known(a), Scalar::Known(b)) => Scalar::Known(a.wrapping_sub(b)),
            (other, Scalar::Known(0)) => other,
            _ => {
                let (a, b) = (self.value(a), self.value(b));
                Scalar::Emitted(self.builder.sub(a, b))
            }
        }
    }

    pub(super) fn mul(&mut self, a: Scalar, b: Scalar) -> Scalar {
        match (a, b) {
            (Scalar::Known(a), Scalar::Known(b)) => Scalar::Known(a.wrapping_mul(b)),
            (Scalar::Known(0), _) | (_, Scalar::Known(0)) => Scalar::Known(0),
            (Scalar::Known(1), other) | (other, Scalar::Known(1)) => other,
            _ => {
                let (a, b) = (self.value(a), self.value(b));
                Scalar::Emitted(self.builder.mul(a, b))
            }
        }
    }

    pub(super) fn xor(&mut self, a: Scalar, bits: i64) -> Scalar {
        match a {
            Scalar::Known(a) => Scalar::Known(a ^ bits),
            Scalar::Emitted(_) if bits == 0 => a,
            Scalar::Emitted(a) => {
                let bits = self.value(Scalar::Known(bits));
                Scalar::Emitted(self.builder.binary(BinaryOp::Xor, a, bits))
            }
        }
    }

    /// Bits `low .. low + count` of a position.
    pub(super) fn bits(&mut self, a: Scalar, low: u32, count: u32) -> Scalar {
        let mask = (1i64 << count) - 1;
        match a {
            Scalar::Known(a) => Scalar::Known((a >> low) & mask),
            Scalar::Emitted(a) => {
                let amount = self.value(Scalar::Known(i64::from(low)));
                let mask = self.value(Scalar::Known(mask));
                let shifted = self.builder.shr(a, amount);
                Scalar::Emitted(self.builder.and(shifted, mask))
            }
        }
    }

    /// The row-major number of the element that each lane names.
    pub(super) fn flat(&mut self, index: &Index, shape: Shape) -> (Scalar, Vec<i64>) {
        let mut base = Scalar::Known(0);
        let mut lanes = vec![0i64; index.lanes];
        for (coordinate, stride) in index.coordinates.iter().zip(shape.strides()) {
            let stride = stride as i64;
            let part = self.mul(coordinate.base, Scalar::Known(stride));
            base = self.add(base, part);
            for (lane, own) in lanes.iter_mut().zip(&coordinate.lanes) {
                *lane += own * stride;
            }
        }
        (base, lanes)
    }

    /// These lanes of each vector of `a` with that of `b` after it; a scalar where it is one, of `a`.
    pub(super) fn lanes(&mut self, a: &[Value], b: &[Value], indices: &[u32]) -> Vec<Value> {
        let pairs = a.iter().zip(b);
        let chosen = pairs.map(|(&a, &b)| {
            self.builder.value(match *indices {
                [index] => Op::Extract(op::Extract {
                    vector: a,
                    index: index.into(),
                }),
                _ => Op::ShuffleVector(op::ShuffleVector {
                    a,
                    b,
                    indices: indices.to_vec(),
                }),
            })
        });
        chosen.collect()
    }

    /// Vectors of so many times these scalars.
    pub(super) fn splats(&mut self, scalars: &[Value], lanes: usize) -> Vec<Value> {
        let splat = |&x| {
            let ty = self.builder.ty(x);
            let dtype = ty.dtype().expect("broken invariant: elements are numbers");
            self.builder.splat(x, Type::vector(dtype, lanes).shape)
        };
        scalars.iter().map(splat).collect()
    }

    /// Lowers into a new region, which `fill` fills and whose yielded values it returns.
    pub(super) fn in_region(
        &mut self,
        parameters: &[Type],
        fill: &mut dyn FnMut(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let region = self.builder.new_region(parameters);
        let outer = self.builder.enter(region);
        self.memo.push(BTreeMap::new());
        let values = self.builder.parameters(region);
        let yielded = fill(self, &values);
        self.builder
            .emit(Op::Yield(op::Yield { values: yielded }), &[]);
        self.memo.pop();
        self.builder.enter(outer);
        region
    }

    /// A counted loop.
    pub(super) fn count(
        &mut self,
        bounds: (Scalar, Scalar),
        step: i64,
        init: &[Value],
        body: &mut dyn FnMut(&mut Self, Value, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let carried = init.iter().map(|&value| self.builder.ty(value));
        let parameters: Vec<Type> = std::iter::once(Type::INDEX).chain(carried).collect();
        let (lower, upper) = (self.value(bounds.0), self.value(bounds.1));
        let body = self.in_region(&parameters, &mut |this, values| {
            body(this, values[0], &values[1..])
        });
        let op = Op::For(op::For {
            lower,
            upper,
            init: init.to_vec(),
            step,
            stages: 1,
            body,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst).to_vec()
    }

    /// One of two alternatives.
    pub(super) fn branch(
        &mut self,
        condition: Value,
        on_true: &mut dyn FnMut(&mut Self) -> Vec<Value>,
        on_false: &mut dyn FnMut(&mut Self) -> Vec<Value>,
    ) -> Vec<Value> {
        self.either(condition, &mut |this, holds| match holds {
            true => on_true(this),
            false => on_false(this),
        })
    }

    /// What `each` makes of both alternatives.
    pub(super) fn either(
        &mut self,
        condition: Value,
        each: &mut dyn FnMut(&mut Self, bool) -> Vec<Value>,
    ) -> Vec<Value> {
        let [on_true, on_false] =
            [true, false].map(|holds| self.in_region(&[], &mut |this, _| each(this, holds)));
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let inst = self.builder.emit(op, &[]);
        self.builder.results(inst).to_vec()
    }

    /// Runs `body` with the start of each chunk of a cover, in row-major order.
    pub(super) fn nest(&mut self, cover: &Cover, body: &mut dyn FnMut(&mut Self, &[Scalar])) {
        self.nest_from(cover, &mut Vec::new(), body);
    }

    fn nest_from(
        &mut self,
        cover: &Cover,
        bases: &mut Vec<Scalar>,
        body: &mut dyn FnMut(&mut Self, &[Scalar]),
    ) {
        let axis = bases.len();
        if axis == cover.shape.rank() {
            body(self, bases);
            return;
        }
        let extent = cover.shape.extent(axis) as i64;
        let step = cover.steps[axis];
        if extent == step {
            bases.push(Scalar::Known(0));
            self.nest_from(cover, bases, body);
            bases.pop();
            return;
        }
        let bounds = (Scalar::Known(0), Scalar::Known(extent));
        self.count(bounds, step, &[], &mut |this, position, _| {
            bases.push(Scalar::Emitted(position));
            this.nest_from(cover, bases, body);
            bases.pop();
            Vec::new()
        });
    }

    /// A new buffer in scratch memory. [`crate::passes::allocate`] gives it its bytes.
    pub(super) fn allocate(&mut self, dtype: DType, shape: Shape) -> Buffer {
        let count = shape.elements() as i64;
        let op = Op::Alloc(op::Alloc { offset: 0, count });
        let pointer = self
            .builder
            .declared(op, Type::pointer(dtype, Space::Scratch));
        Buffer {
            pointer,
            dtype,
            shape,
        }
    }
}
