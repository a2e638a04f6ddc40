//! Counts and gathers: single elements at positions that are known when the kernel runs.

use super::index::{Coordinate, Cover, Index, Scalar};
use super::lowerer::{Binding, Lowerer};
use super::pull::Pulled;
use crate::ir::{BinaryOp, Class, CompareOp, DType, Inst, Literal, Op, Shape, Type, Value, op};
use crate::target::Bounds;

/// Counters of one bin, which neighbouring elements take in turns: an increment waits for the one
/// before of the same counter.
const COPIES: usize = 4;

impl Lowerer<'_> {
    fn increment(&mut self, base: Value, offset: Value, one: Value) {
        let op = Op::LaneLoad(op::LaneLoad {
            base,
            offset,
            mask: None,
            other: None,
            align: 4,
            cache: None,
        });
        let count = self.builder.declared(op, Type::scalar(DType::I32));
        let value = self.builder.add(count, one);
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset,
            value,
            mask: None,
            align: 4,
            cache: None,
        });
        self.builder.emit(op, &[]);
    }

    /// Increments counters in scratch memory, a spare one for elements that do not count, and adds
    /// the copies up.
    pub(super) fn histogram(&mut self, inst: Inst, op: &op::Histogram) {
        let op::Histogram { x, mask, bins } = *op;
        let result = self.source.inst(inst).results[0];
        let from = self.shape(x);
        // The bin after the last is the spare one.
        let rows = 2 * bins as usize;
        let shape =
            Shape::new(&[COPIES, rows]).expect("broken invariant: a product of powers of two");
        let counters = self.allocate(DType::I32, shape);
        let zero = self.constant(Literal::from_bits(DType::I32, 0));
        self.fill(&counters, &[], &mut |_, _| {
            Pulled::Uniform(Scalar::Emitted(zero))
        });
        let one = self.constant(Literal::from_bits(DType::I32, 1));
        let lanes = self.target.nest_lanes.min(from.elements());
        let cover = Cover::new(from, lanes);
        let operands = self.source.op(inst).operands();
        self.in_versions((&operands, None), &mut |this, _| {
            this.nest(&cover, &mut |this, bases| {
                let index = cover.index(bases, 0, lanes);
                let chosen = this.bins(x, mask, bins, &index);
                for lane in 0..lanes {
                    let bin = this.lane(&chosen, lane);
                    let bin = this.value(bin);
                    let bin = this.builder.cast(bin, DType::I64);
                    let first = ((lane % COPIES) * rows) as i64;
                    let offset = this.add(Scalar::Emitted(bin), Scalar::Known(first));
                    let offset = this.value(offset);
                    this.increment(counters.pointer, offset, one);
                }
            });
            Vec::new()
        });
        let sums = self.allocate(DType::I32, self.shape(result));
        self.fill(&sums, &[], &mut |this, index| {
            let parts: Vec<Value> = (0..COPIES as i64)
                .map(|copy| {
                    let mut place = index.clone();
                    let row = Coordinate {
                        base: Scalar::Known(copy),
                        lanes: vec![0; index.lanes],
                    };
                    place.coordinates.insert(0, row);
                    let part = this.load_buffer(&counters, &place);
                    this.vector(&part, DType::I32, index.lanes)
                })
                .collect();
            let sum = parts.into_iter().reduce(|a, b| this.builder.add(a, b));
            Pulled::Vector(sum.expect("broken invariant: there are copies"))
        });
        self.bindings.insert(result, Binding::Buffer(sums));
    }

    /// The bin of each element, `bins` for those that do not count: unsigned, so that one minimum
    /// finds negative numbers too.
    fn bins(&mut self, x: Value, mask: Option<Value>, bins: i64, index: &Index) -> Pulled {
        let (dtype, lanes) = (self.dtype(x), index.lanes);
        let pulled = self.pull(x, index);
        let x = self.vector(&pulled, dtype, lanes);
        let (signed, unsigned) = match dtype.bits() {
            64 => (DType::I64, DType::U64),
            _ => (DType::I32, DType::U32),
        };
        let x = self.builder.cast(x, signed);
        let mut bin = self.builder.bitcast(x, unsigned);
        let shape = Type::vector(unsigned, lanes).shape;
        let spare = self.constant(Literal::from_bits(unsigned, bins as u64));
        let spare = self.builder.splat(spare, shape);
        let always = dtype.class() == Class::Unsigned && u128::from(dtype.mask()) < bins as u128;
        if !always {
            bin = self.builder.binary(BinaryOp::Minimum, bin, spare);
        }
        if let Some(mask) = mask.filter(|&mask| !self.holds_always(mask)) {
            let pulled = self.pull(mask, index);
            let mask = self.vector(&pulled, DType::Bool, lanes);
            bin = self.builder.select(mask, bin, spare);
        }
        match lanes {
            1 => Pulled::Uniform(Scalar::Emitted(bin)),
            _ => Pulled::Vector(bin),
        }
    }

    /// The elements of a `gather`: vectors of indices that are all inside need no other care.
    pub(super) fn gather(&mut self, inst: Inst, op: &op::Gather, index: &Index) -> Pulled {
        let op::Gather { x, indices, axis } = *op;
        let extent = self.shape(x).extent(axis.index()) as i64;
        let pulled = self.pull(indices, index);
        if matches!(pulled, Pulled::Uniform(_)) {
            return self.gather_each(inst, op, index, &pulled);
        }
        let wanted = self.vector(&pulled, self.dtype(indices), index.lanes);
        let Some(inside) = self.all_below(wanted, extent) else {
            return self.gather_inside(op, index, &pulled);
        };
        let pulled = Pulled::Vector(wanted);
        let gathered = self.branch(
            inside,
            &mut |this| {
                let gathered = this.gather_inside(op, index, &pulled);
                vec![this.vector(&gathered, this.dtype(x), index.lanes)]
            },
            &mut |this| {
                let gathered = this.gather_each(inst, op, index, &pulled);
                vec![this.vector(&gathered, this.dtype(x), index.lanes)]
            },
        );
        Pulled::Vector(gathered[0])
    }

    /// Whether all lanes are at least zero and below a power of two; `None` if no number of their
    /// type is not.
    fn all_below(&mut self, vector: Value, extent: i64) -> Option<Value> {
        let ty = self.builder.ty(vector);
        let dtype = ty.dtype().expect("broken invariant: indices are numbers");
        let sign = u64::from(dtype.is_signed()) << (dtype.bits() - 1);
        let outside = (!(extent as u64 - 1) | sign) & dtype.mask();
        if outside == 0 {
            return None;
        }
        let (mut union, mut lanes) = (vector, ty.shape.elements());
        while lanes > 1 {
            lanes /= 2;
            let (low, high) = (self.slice(union, 0, lanes), self.slice(union, lanes, lanes));
            union = self.builder.or(low, high);
        }
        let outside = self.constant(Literal::from_bits(dtype, outside));
        let found = self.builder.and(union, outside);
        let zero = self.constant(Literal::from_bits(dtype, 0));
        Some(self.builder.compare(CompareOp::Eq, found, zero))
    }

    /// Elements by indices that are inside.
    fn gather_inside(&mut self, op: &op::Gather, index: &Index, indices: &Pulled) -> Pulled {
        let mut parts = Vec::new();
        for lane in 0..index.lanes {
            let wanted = self.wanted(indices, lane);
            let wanted = self.builder.cast(wanted, DType::I64);
            parts.push(self.gathered(op, index, lane, wanted));
        }
        self.joined(parts)
    }

    /// Elements by any indices, which are checked and clamped.
    fn gather_each(
        &mut self,
        inst: Inst,
        op: &op::Gather,
        index: &Index,
        indices: &Pulled,
    ) -> Pulled {
        let op::Gather {
            x,
            indices: tile,
            axis,
        } = *op;
        let extent = self.shape(x).extent(axis.index()) as i64;
        let (first, elements) = self.flat(index, self.shape(tile));
        let mut parts = Vec::new();
        for (lane, &element) in elements.iter().enumerate() {
            let wanted = self.wanted(indices, lane);
            let wanted = self.builder.nearest_index(wanted);
            if self.bounds == Bounds::Checked {
                let element = self.add(first, Scalar::Known(element));
                let check = Op::CheckIndex(op::CheckIndex {
                    index: wanted,
                    element: self.value(element),
                    axis,
                    extent,
                    site: self.sites[&inst].into(),
                });
                self.builder.emit(check, &[]);
            }
            let (least, greatest) = (
                self.value(Scalar::Known(0)),
                self.value(Scalar::Known(extent - 1)),
            );
            let wanted = self.builder.binary(BinaryOp::Minimum, wanted, greatest);
            let wanted = self.builder.binary(BinaryOp::Maximum, wanted, least);
            parts.push(self.gathered(op, index, lane, wanted));
        }
        self.joined(parts)
    }

    /// The index of one lane.
    fn wanted(&mut self, indices: &Pulled, lane: usize) -> Value {
        let wanted = self.lane(indices, lane);
        self.value(wanted)
    }

    /// The element of one lane.
    fn gathered(&mut self, op: &op::Gather, index: &Index, lane: usize, wanted: Value) -> Value {
        let mut place = index.lane(lane);
        place.coordinates[op.axis.index()] = Coordinate {
            base: Scalar::Emitted(wanted),
            lanes: vec![0],
        };
        let part = self.pull_scalar(op.x, &place);
        self.value(part)
    }

    fn joined(&mut self, parts: Vec<Value>) -> Pulled {
        match parts[..] {
            [part] => Pulled::Uniform(Scalar::Emitted(part)),
            _ => Pulled::Vector(
                self.builder
                    .value(Op::Vector(op::Vector { elements: parts })),
            ),
        }
    }
}
