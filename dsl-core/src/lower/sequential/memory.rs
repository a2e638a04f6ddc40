//! Loads and stores: vectors where offsets run, single elements elsewhere, masks and checks.

use super::cut::Row;
use super::index::{Index, Scalar};
use super::lowerer::{Binding, Buffer, Lowerer};
use super::pull::{Pulled, scalar_index};
use crate::ir::{DType, Inst, Op, Type, Value, op};

/// What the elements of one access have in common.
pub(super) struct Access {
    base: Value,
    dtype: DType,
    /// For checked accesses: the site, and which element of the tile each lane is.
    check: Option<(i64, Scalar, Vec<i64>)>,
}

/// The greatest power of two of lanes that start at a multiple of it and run upwards by one.
fn run_length(lanes: &[i64]) -> usize {
    let mut run = lanes.len();
    while run > 1 {
        let runs = lanes.chunks(run).all(|chunk| {
            chunk
                .windows(2)
                .all(|pair| pair[1] == pair[0].wrapping_add(1))
        });
        if runs {
            return run;
        }
        run /= 2;
    }
    1
}

impl Access {
    /// How many lanes one access may take at once. A bounds check counts elements up with offsets,
    /// so both must run.
    fn run_length(&self, offsets: &[i64]) -> usize {
        let elements = match &self.check {
            Some((_, _, elements)) => run_length(elements),
            None => usize::MAX,
        };
        run_length(offsets).min(elements)
    }
}

impl Lowerer<'_> {
    pub(super) fn access(
        &mut self,
        inst: Inst,
        base: Value,
        offsets: Value,
        index: &Index,
    ) -> Access {
        let dtype = self
            .source
            .ty(base)
            .pointee()
            .map(|(dtype, _)| dtype)
            .expect("broken invariant: a verified base is a pointer");
        let check = match self.is_checked(base) && !self.unchecked.contains(&inst) {
            true => {
                let (element, lanes) = self.flat(index, self.shape(offsets));
                Some((i64::from(self.sites[&inst]), element, lanes))
            }
            false => None,
        };
        Access {
            base: self.pointers[&base],
            dtype,
            check,
        }
    }

    /// The mask of lanes `first ..` of an access, with its bounds check.
    fn guard(
        &mut self,
        access: &Access,
        offset: Value,
        (first, count): (usize, usize),
        mask: Option<Value>,
    ) -> Option<Value> {
        let Some((site, element, lanes)) = &access.check else {
            return mask;
        };
        let element = self.add(*element, Scalar::Known(lanes[first]));
        let element = self.value(element);
        let op = Op::CheckBounds(op::CheckBounds {
            base: access.base,
            offset,
            element,
            mask,
            count: count as i64,
            site: *site,
        });
        Some(self.builder.value(op))
    }

    pub(super) fn load_run(
        &mut self,
        access: &Access,
        offset: Scalar,
        lanes: (usize, usize),
        mask: Option<Value>,
        other: Option<Value>,
    ) -> Value {
        let offset = self.value(offset);
        let mask = self.guard(access, offset, lanes, mask);
        let op = Op::LaneLoad(op::LaneLoad {
            base: access.base,
            offset,
            mask,
            other: other.filter(|_| mask.is_some()),
            align: i64::from(access.dtype.bytes()),
            cache: None,
        });
        let ty = Type::vector(access.dtype, lanes.1);
        self.builder.declared(op, ty)
    }

    pub(super) fn store_run(
        &mut self,
        access: &Access,
        offset: Scalar,
        lanes: (usize, usize),
        value: Value,
        mask: Option<Value>,
    ) {
        let offset = self.value(offset);
        let mask = self.guard(access, offset, lanes, mask);
        let op = Op::LaneStore(op::LaneStore {
            base: access.base,
            offset,
            value,
            mask,
            align: i64::from(access.dtype.bytes()),
            cache: None,
        });
        self.builder.emit(op, &[]);
    }

    /// Joins the parts of a vector.
    fn concatenate(&mut self, mut parts: Vec<Value>) -> Value {
        if self.builder.ty(parts[0]).is_scalar() && parts.len() > 1 {
            return self
                .builder
                .value(Op::Vector(op::Vector { elements: parts }));
        }
        while parts.len() > 1 {
            let lanes = self.builder.ty(parts[0]).shape.elements() as u32;
            let join = |pair: &[Value]| {
                self.builder.value(Op::ShuffleVector(op::ShuffleVector {
                    a: pair[0],
                    b: pair[1],
                    indices: (0..2 * lanes).collect(),
                }))
            };
            parts = parts.chunks(2).map(join).collect();
        }
        parts[0]
    }

    /// Lanes `first .. first + count` of a vector.
    pub(super) fn slice(&mut self, vector: Value, first: usize, count: usize) -> Value {
        if self.builder.ty(vector).shape.elements() == count {
            return vector;
        }
        if count == 1 {
            let index = first as i64;
            return self
                .builder
                .value(Op::Extract(op::Extract { vector, index }));
        }
        self.builder.value(Op::ShuffleVector(op::ShuffleVector {
            a: vector,
            b: vector,
            indices: (first as u32..(first + count) as u32).collect(),
        }))
    }

    /// Reads all lanes, or none of them where `mask` is false.
    fn load_all(
        &mut self,
        access: &Access,
        offsets: &Pulled,
        mask: Option<Value>,
        other: Option<&Pulled>,
        lanes: usize,
    ) -> Pulled {
        let spread = |pulled: Option<&Pulled>| matches!(pulled, None | Some(Pulled::Uniform(_)));
        let run = match offsets {
            Pulled::Uniform(offset) if spread(other) => {
                let other = other.map(|other| self.vector(other, access.dtype, 1));
                let value = self.load_run(access, *offset, (0, 1), mask, other);
                return Pulled::Uniform(Scalar::Emitted(value));
            }
            Pulled::Affine(_, own) => access.run_length(own),
            Pulled::Uniform(_) | Pulled::Vector(_) => 1,
        };
        let other = other.map(|other| self.vector(other, access.dtype, lanes));
        let mut parts = Vec::new();
        for first in (0..lanes).step_by(run) {
            let offset = self.lane(offsets, first);
            let other = other.map(|other| self.slice(other, first, run));
            parts.push(self.load_run(access, offset, (first, run), mask, other));
        }
        Pulled::Vector(self.concatenate(parts))
    }

    /// Reads each lane where its own mask holds.
    fn load_each(
        &mut self,
        access: &Access,
        offsets: &Pulled,
        mask: &Pulled,
        other: Option<&Pulled>,
        lanes: usize,
    ) -> Pulled {
        let mut parts = Vec::new();
        for lane in 0..lanes {
            let offset = self.lane(offsets, lane);
            let mask = self.lane(mask, lane);
            let mask = self.value(mask);
            let other = other.map(|other| self.lane(other, lane));
            let other = other.map(|other| self.value(other));
            parts.push(self.load_run(access, offset, (lane, 1), Some(mask), other));
        }
        Pulled::Vector(self.concatenate(parts))
    }

    /// The elements of a `load`.
    pub(super) fn load(&mut self, inst: Inst, op: &op::Load, index: &Index) -> Pulled {
        let op::Load {
            base,
            offsets,
            mask,
            other,
            ..
        } = *op;
        let access = self.access(inst, base, offsets, index);
        let lanes = index.lanes;
        let offsets = self.pull(offsets, index);
        let Some(mask_value) = mask.filter(|&mask| !self.holds_always(mask)) else {
            return self.load_all(&access, &offsets, None, None, lanes);
        };
        let other = other.map(|other| self.pull(other, index));
        let mask = self.pull(mask_value, index);
        if let Pulled::Uniform(mask) = mask {
            let mask = self.value(mask);
            return self.load_all(&access, &offsets, Some(mask), other.as_ref(), lanes);
        }
        let Some(all) = self.all_true(mask_value, index) else {
            return self.load_each(&access, &offsets, &mask, other.as_ref(), lanes);
        };
        let dtype = access.dtype;
        let spread = match &other {
            None => Some(None),
            Some(Pulled::Uniform(other)) => Some(Some(*other)),
            Some(Pulled::Affine(..) | Pulled::Vector(_)) => None,
        };
        let row = Row::of(index).filter(|_| !matches!(offsets, Pulled::Vector(_)));
        let loaded = self.branch(
            all,
            &mut |this| {
                let loaded = this.load_all(&access, &offsets, None, None, lanes);
                vec![this.vector(&loaded, dtype, lanes)]
            },
            &mut |this| {
                let loaded = match row.as_ref().zip(spread) {
                    Some((row, other)) => this.load_cut((inst, op), row, mask_value, other),
                    None => this.load_each(&access, &offsets, &mask, other.as_ref(), lanes),
                };
                vec![this.vector(&loaded, dtype, lanes)]
            },
        );
        Pulled::Vector(loaded[0])
    }

    /// Writes all lanes, lowest first, or none of them where `mask` is false.
    fn store_all(&mut self, access: &Access, offsets: &Pulled, value: Value, mask: Option<Value>) {
        let lanes = self.builder.ty(value).shape.elements();
        let run = match offsets {
            Pulled::Affine(_, own) => access.run_length(own),
            Pulled::Uniform(_) | Pulled::Vector(_) => 1,
        };
        for first in (0..lanes).step_by(run) {
            let offset = self.lane(offsets, first);
            let part = self.slice(value, first, run);
            self.store_run(access, offset, (first, run), part, mask);
        }
    }

    fn store_each(&mut self, access: &Access, offsets: &Pulled, value: Value, mask: &Pulled) {
        let lanes = self.builder.ty(value).shape.elements();
        for lane in 0..lanes {
            let offset = self.lane(offsets, lane);
            let mask = self.lane(mask, lane);
            let mask = self.value(mask);
            let part = self.slice(value, lane, 1);
            self.store_run(access, offset, (lane, 1), part, Some(mask));
        }
    }

    /// Writes the elements of a `store` at an index.
    pub(super) fn store(&mut self, inst: Inst, op: &op::Store, index: &Index) {
        let op::Store {
            base,
            offsets,
            value,
            mask,
            ..
        } = *op;
        let access = self.access(inst, base, offsets, index);
        let offsets = self.pull(offsets, index);
        let pulled = self.pull(value, index);
        let value = self.vector(&pulled, access.dtype, index.lanes);
        let Some(mask_value) = mask.filter(|&mask| !self.holds_always(mask)) else {
            return self.store_all(&access, &offsets, value, None);
        };
        let mask = self.pull(mask_value, index);
        if let Pulled::Uniform(mask) = mask {
            let mask = self.value(mask);
            return self.store_all(&access, &offsets, value, Some(mask));
        }
        let Some(all) = self.all_true(mask_value, index) else {
            return self.store_each(&access, &offsets, value, &mask);
        };
        let row = Row::of(index).filter(|_| !matches!(offsets, Pulled::Vector(_)));
        self.branch(
            all,
            &mut |this| {
                this.store_all(&access, &offsets, value, None);
                Vec::new()
            },
            &mut |this| {
                match &row {
                    Some(row) => this.store_cut((inst, op), row, mask_value, value),
                    None => this.store_each(&access, &offsets, value, &mask),
                }
                Vec::new()
            },
        );
    }

    /// Combines the elements of an `atomic_reduce` at an index into memory, one by one.
    pub(super) fn atomic_reduce(&mut self, inst: Inst, op: &op::AtomicReduce, index: &Index) {
        let op::AtomicReduce {
            base,
            offsets,
            value,
            mask,
            op,
            order,
            scope,
        } = *op;
        let access = self.access(inst, base, offsets, index);
        let offsets = self.pull(offsets, index);
        let value = self.pull(value, index);
        let mask = mask.filter(|&mask| !self.holds_always(mask));
        let mask = mask.map(|mask| self.pull(mask, index));
        for lane in 0..index.lanes {
            let offset = self.lane(&offsets, lane);
            let offset = self.value(offset);
            let value = self.lane(&value, lane);
            let value = self.value(value);
            let mask = mask.as_ref().map(|mask| self.lane(mask, lane));
            let mask = mask.map(|mask| self.value(mask));
            let mask = self.guard(&access, offset, (lane, 1), mask);
            let atomic = Op::LaneAtomic(op::LaneAtomic {
                base: access.base,
                offset,
                value,
                mask,
                op,
                order,
                scope,
            });
            self.builder.emit(atomic, &[]);
        }
    }

    /// Combines the elements of an `atomic_fetch` at once, and keeps what was there.
    pub(super) fn atomic_fetch(&mut self, inst: Inst, op: &op::AtomicFetch) {
        let result = self.source.inst(inst).results[0];
        if self.shape(result).is_scalar() {
            let fetched = self.fetched(inst, op, &scalar_index());
            self.bindings
                .insert(result, Binding::Scalar(Scalar::Emitted(fetched[0])));
            return;
        }
        let buffer = self.allocate(self.dtype(result), self.shape(result));
        self.fill(&buffer, &[], &mut |this, index| {
            let fetched = this.fetched(inst, op, index);
            match fetched[..] {
                [one] => Pulled::Uniform(Scalar::Emitted(one)),
                _ => Pulled::Vector(
                    this.builder
                        .value(Op::Vector(op::Vector { elements: fetched })),
                ),
            }
        });
        self.bindings.insert(result, Binding::Buffer(buffer));
    }

    /// What memory held at the elements of an index, one by one.
    fn fetched(&mut self, inst: Inst, op: &op::AtomicFetch, index: &Index) -> Vec<Value> {
        let access = self.access(inst, op.base, op.offsets, index);
        let [offsets, values] = [op.offsets, op.value].map(|it| self.pull(it, index));
        let [masks, expected] = [op.mask, op.expected].map(|it| Some(self.pull(it?, index)));
        let mut fetched = Vec::new();
        for lane in 0..index.lanes {
            let mut single = |pulled: &Pulled| {
                let scalar = self.lane(pulled, lane);
                self.value(scalar)
            };
            let (offset, value) = (single(&offsets), single(&values));
            let [mask, expected] = [&masks, &expected].map(|it| it.as_ref().map(&mut single));
            let mask = self.guard(&access, offset, (lane, 1), mask);
            fetched.push(self.builder.value(Op::LaneFetch(op::LaneFetch {
                base: access.base,
                offset,
                value,
                mask,
                expected,
                op: op.op,
                order: op.order,
                scope: op.scope,
            })));
        }
        fetched
    }

    fn buffer_access(&mut self, buffer: &Buffer, index: &Index) -> (Access, Pulled) {
        let (base, lanes) = self.flat(index, buffer.shape);
        let access = Access {
            base: buffer.pointer,
            dtype: buffer.dtype,
            check: None,
        };
        (access, Pulled::Affine(base, lanes))
    }

    /// The elements of a tile in scratch memory.
    pub(super) fn load_buffer(&mut self, buffer: &Buffer, index: &Index) -> Pulled {
        let (access, offsets) = self.buffer_access(buffer, index);
        let loaded = self.load_all(&access, &offsets, None, None, index.lanes);
        match (loaded, index.lanes) {
            (Pulled::Vector(value), 1) => Pulled::Uniform(Scalar::Emitted(value)),
            (loaded, _) => loaded,
        }
    }

    /// Writes elements of a tile in scratch memory.
    pub(super) fn store_buffer(&mut self, buffer: &Buffer, index: &Index, value: Value) {
        let (access, offsets) = self.buffer_access(buffer, index);
        self.store_all(&access, &offsets, value, None);
    }
}
