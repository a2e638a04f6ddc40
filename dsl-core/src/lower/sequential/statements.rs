//! Statements in program order: what is stored, kept in scratch memory, branched and repeated.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Cover, Index, Scalar};
use super::lowerer::Buffer;
use super::lowerer::{Binding, Inline, Lowerer};
use super::pull::{Pulled, scalar_index};
use crate::ir::op::BlockOp;
use crate::ir::{Inst, Op, Region, Shape, Type, Value, op};
use crate::target::Bounds;

/// Instructions of an element beside which a test for its vector is cheap.
const LONG: u64 = 8;

/// What [`Lowerer::buffers_read`] has found.
#[derive(Default)]
struct Reads {
    seen: BTreeSet<(Value, bool)>,
    buffers: BTreeMap<Value, bool>,
}

impl<'a> Lowerer<'a> {
    /// Lowers the instructions of a region.
    pub(super) fn region(&mut self, region: Region) {
        for &inst in &self.source.region(region).insts {
            self.builder.set_loc(self.source.inst(inst).loc.clone());
            self.memo.push(BTreeMap::new());
            self.statement(inst);
            self.memo.pop();
        }
    }

    fn statement(&mut self, inst: Inst) {
        let source = self.source;
        let inline = match source.block_op(inst) {
            BlockOp::Constant(op) => Inline::Constant(op.value),
            BlockOp::Arange(op) => Inline::Arange(op),
            BlockOp::Splat(op) => Inline::Splat(op.x),
            BlockOp::ShapeOp(op) => Inline::Shape(op),
            BlockOp::Load(op) => Inline::Load(op),
            BlockOp::Gather(op) => Inline::Gather(op),
            // No derived op is left, or the verifier finds it among the ops of the lane.
            BlockOp::Elementwise(_)
            | BlockOp::Derived(_)
            | BlockOp::LoadBox(_)
            | BlockOp::ProgramId(_)
            | BlockOp::NumPrograms(_) => Inline::Computed,
            // The verifier finds it, too.
            BlockOp::StoreBox(_) => {
                let op = source.op(inst).clone();
                self.builder.emit_unchecked(op, &[]);
                return;
            }
            BlockOp::Store(op) => {
                return self.store_elements(inst, op);
            }
            BlockOp::AtomicReduce(op) => {
                let operands = source.op(inst).operands();
                return self.each_element((&operands, None), op.offsets, &mut |this, index| {
                    this.atomic_reduce(inst, op, index);
                });
            }
            BlockOp::AtomicFetch(op) => return self.atomic_fetch(inst, op),
            BlockOp::Assert(op) => return self.assert(inst, op),
            BlockOp::Reduce(op) => return self.reduce(inst, op),
            BlockOp::Scan(op) => return self.scan(inst, op),
            BlockOp::Sort(op) => return self.sort(inst, op),
            BlockOp::Dot(op) => return self.dot(inst, op),
            BlockOp::Histogram(op) => return self.histogram(inst, op),
            BlockOp::For(op) => return self.for_loop(inst, op),
            BlockOp::If(op) => return self.if_else(inst, op),
            BlockOp::While(op) => return self.while_loop(inst, op),
            BlockOp::Yield(_) => return,
        };
        self.bind_elements(inst, inline);
    }

    /// Checks each element, in checked launches.
    fn assert(&mut self, inst: Inst, op: &op::Assert) {
        if self.bounds != Bounds::Checked {
            return;
        }
        self.each_element((&[op.condition], None), op.condition, &mut |this, index| {
            let holds = this.pull(op.condition, index);
            let (first, elements) = this.flat(index, this.shape(op.condition));
            for (lane, &element) in elements.iter().enumerate() {
                let holds = this.lane(&holds, lane);
                let holds = this.value(holds);
                let element = this.add(first, Scalar::Known(element));
                let check = Op::CheckAssertion(op::CheckAssertion {
                    failed: this.builder.not(holds),
                    element: this.value(element),
                    message: op.message.clone(),
                    site: this.sites[&inst].into(),
                });
                this.builder.emit(check, &[]);
            }
        });
    }

    /// What takes long to compute, and what masks have no part in, has one version: a test for each vector is cheap
    /// beside it.
    fn store_elements(&mut self, inst: Inst, op: &op::Store) {
        let is_long = self.plan.cost(op.value) > LONG && !self.are_masked(&[op.value]);
        let versions = match is_long {
            true => Vec::new(),
            false => self.source.op(inst).operands(),
        };
        self.each_element((&versions, Some(inst)), op.offsets, &mut |this, index| {
            this.store(inst, op, index);
        });
    }

    /// Visits each vector of a tile, in versions for the masks of `operands`.
    fn each_element(
        &mut self,
        operands: (&[Value], Option<Inst>),
        tile: Value,
        visit: &mut dyn FnMut(&mut Self, &Index),
    ) {
        let (cover, lanes) = self.cover(self.shape(tile));
        self.in_versions(operands, &mut |this, _| {
            this.nest(&cover, &mut |this, bases| {
                visit(this, &cover.index(bases, 0, lanes));
            });
            Vec::new()
        });
    }

    /// Binds the result of an op that is computed element by element: numbers now, tiles where
    /// they are used, unless the plan keeps them.
    fn bind_elements(&mut self, inst: Inst, inline: Inline<'a>) {
        let result = self.source.inst(inst).results[0];
        if self.source.ty(result).is_scalar() {
            let pulled = self.pull_inst(inst, inline, &scalar_index());
            let scalar = self.lane(&pulled, 0);
            self.bindings.insert(result, Binding::Scalar(scalar));
            return;
        }
        self.bindings.insert(result, Binding::Inline(inst, inline));
        if self.plan.is_kept(result) {
            let buffer = self.keep(result);
            self.bindings.insert(result, Binding::Buffer(buffer));
        } else if let Some(scalar) = self.holds_with(inst) {
            self.masks.insert(result, scalar);
        }
    }

    /// A new buffer with the elements of a tile.
    pub(super) fn keep(&mut self, tile: Value) -> Buffer {
        let buffer = self.allocate(self.dtype(tile), self.shape(tile));
        self.fill(&buffer, &[tile], &mut |this, index| this.pull(tile, index));
        buffer
    }

    fn cover(&self, shape: Shape) -> (Cover, usize) {
        let lanes = self.target.nest_lanes.min(shape.elements());
        (Cover::new(shape, lanes), lanes)
    }

    /// Writes every element of a buffer; `of` are the tiles that they are computed from.
    pub(super) fn fill(
        &mut self,
        buffer: &Buffer,
        of: &[Value],
        elements: &mut dyn FnMut(&mut Self, &Index) -> Pulled,
    ) {
        self.fill_together(&[*buffer], of, &mut |this, index| {
            vec![elements(this, index)]
        });
    }

    /// Writes buffers of one shape in one loop nest. At each position all are computed before one is
    /// written, so they may be computed from each other's old elements at that position.
    pub(super) fn fill_together(
        &mut self,
        buffers: &[Buffer],
        of: &[Value],
        elements: &mut dyn FnMut(&mut Self, &Index) -> Vec<Pulled>,
    ) {
        let Some(first) = buffers.first() else { return };
        let (cover, lanes) = self.cover(first.shape);
        self.in_versions((of, None), &mut |this, _| {
            this.nest(&cover, &mut |this, bases| {
                let index = cover.index(bases, 0, lanes);
                let pulled = elements(this, &index);
                let pairs = buffers.iter().zip(&pulled);
                let values: Vec<Value> = pairs
                    .map(|(buffer, pulled)| this.vector(pulled, buffer.dtype, lanes))
                    .collect();
                for (buffer, value) in buffers.iter().zip(values) {
                    this.store_buffer(buffer, &index, value);
                }
            });
            Vec::new()
        });
    }

    /// A buffer for each value that is a tile.
    fn slots(&mut self, values: &[Value]) -> Vec<Option<Buffer>> {
        values
            .iter()
            .map(|&value| {
                (!self.source.ty(value).is_scalar())
                    .then(|| self.allocate(self.dtype(value), self.shape(value)))
            })
            .collect()
    }

    /// A buffer for each result of an `if` that is a tile: the one of the carried tile that it
    /// replaces, or a new one.
    fn result_slots(&mut self, values: &[Value]) -> Vec<Option<Buffer>> {
        let slot = |&value: &Value| {
            let replaced = self.plan.replaced(value);
            match replaced.and_then(|carried| self.bindings.get(&carried)) {
                Some(Binding::Buffer(buffer)) => Some(*buffer),
                Some(Binding::Scalar(_) | Binding::Inline(..)) | None => self.slots(&[value])[0],
            }
        };
        values.iter().map(slot).collect()
    }

    /// Binds values to their slots, or to the next of `scalars`.
    fn bind_slots(&mut self, values: &[Value], slots: &[Option<Buffer>], scalars: &[Value]) {
        let mut scalars = scalars.iter();
        for (&value, slot) in values.iter().zip(slots) {
            let binding = match slot {
                Some(buffer) => Binding::Buffer(*buffer),
                None => {
                    let scalar = scalars.next().copied();
                    Binding::Scalar(Scalar::Emitted(
                        scalar
                            .expect("broken invariant: as many scalars as slots without a buffer"),
                    ))
                }
            };
            self.bindings.insert(value, binding);
        }
    }

    /// Which buffers an element of `value` is computed from, and whether each is read at that
    /// element's own position only.
    fn buffers_read(&self, value: Value, same_place: bool, read: &mut Reads) {
        if !read.seen.insert((value, same_place)) {
            return;
        }
        match self.bindings.get(&value) {
            Some(Binding::Buffer(buffer)) => {
                *read.buffers.entry(buffer.pointer).or_insert(true) &= same_place;
            }
            Some(Binding::Inline(inst, _)) => {
                let op = self.source.op(*inst);
                let same_place = same_place && op.is(crate::ir::Trait::elementwise);
                for operand in op.operands() {
                    self.buffers_read(operand, same_place, read);
                }
            }
            Some(Binding::Scalar(_)) | None => {}
        }
    }

    /// Moves yielded tiles into their slots, all at once in meaning; returns the scalars. A tile
    /// that is computed from elements of slots at other positions is copied first.
    fn move_to_slots(&mut self, values: &[Value], slots: &[Option<Buffer>]) -> Vec<Value> {
        let shapes: BTreeMap<Value, Shape> = slots
            .iter()
            .flatten()
            .map(|slot| (slot.pointer, slot.shape))
            .collect();
        let mut scalars = Vec::new();
        let mut moves: BTreeMap<Shape, Vec<(Buffer, Value)>> = BTreeMap::new();
        let mut copies: Vec<(Buffer, Buffer)> = Vec::new();
        for (&value, slot) in values.iter().zip(slots) {
            let Some(slot) = slot else {
                let scalar = self.pull_scalar(value, &scalar_index());
                scalars.push(self.value(scalar));
                continue;
            };
            if matches!(self.bindings.get(&value), Some(Binding::Buffer(buffer)) if buffer == slot)
            {
                continue;
            }
            let mut read = Reads::default();
            self.buffers_read(value, true, &mut read);
            let disturbs = |(id, same_place): (&Value, &bool)| {
                shapes
                    .get(id)
                    .is_some_and(|&shape| !same_place || shape != slot.shape)
            };
            if read.buffers.iter().any(disturbs) {
                let copy = self.keep(value);
                copies.push((*slot, copy));
            } else {
                moves.entry(slot.shape).or_default().push((*slot, value));
            }
        }
        for together in moves.into_values() {
            let (slots, values): (Vec<Buffer>, Vec<Value>) = together.into_iter().unzip();
            self.fill_together(&slots, &values, &mut |this, index| {
                let pulled = values.iter();
                pulled.map(|&value| this.pull(value, index)).collect()
            });
        }
        for (slot, copy) in copies {
            self.fill(&slot, &[], &mut |this, index| {
                this.load_buffer(&copy, index)
            });
        }
        scalars
    }

    /// What a region yields, moved to the slots; `skip` values come first and are not moved.
    fn end_region(&mut self, region: Region, skip: usize, slots: &[Option<Buffer>]) -> Vec<Value> {
        self.memo.push(BTreeMap::new());
        let values = self.source.yielded(region).to_vec();
        let mut yielded = Vec::new();
        for &value in &values[..skip] {
            let scalar = self.pull_scalar(value, &scalar_index());
            yielded.push(self.value(scalar));
        }
        yielded.extend(self.move_to_slots(&values[skip..], slots));
        self.memo.pop();
        yielded
    }

    /// Slots filled with the values before a loop, and the scalars among them.
    fn start_loop(&mut self, init: &[Value]) -> (Vec<Option<Buffer>>, Vec<Value>) {
        let slots = self.slots(init);
        let scalars = self.move_to_slots(init, &slots);
        (slots, scalars)
    }

    fn scalar_types(values: &[Value], lowerer: &Self) -> Vec<Type> {
        let types = values.iter().map(|&value| lowerer.builder.ty(value));
        types.collect()
    }

    fn for_loop(&mut self, inst: Inst, op: &op::For) {
        let op::For { step, body, .. } = *op;
        let (slots, scalars) = self.start_loop(&op.init);
        let lower = self.pull_scalar(op.lower, &scalar_index());
        let upper = self.pull_scalar(op.upper, &scalar_index());
        let parameters = self.source.region(body).parameters.clone();
        let results = self.count(
            (lower, upper),
            step,
            &scalars,
            &mut |this, index, carried| {
                let index = Binding::Scalar(Scalar::Emitted(index));
                this.bindings.insert(parameters[0], index);
                this.bind_slots(&parameters[1..], &slots, carried);
                this.region(body);
                this.end_region(body, 0, &slots)
            },
        );
        let values = self.source.inst(inst).results.clone();
        self.bind_slots(&values, &slots, &results);
    }

    fn while_loop(&mut self, inst: Inst, op: &op::While) {
        let op::While { before, body, .. } = *op;
        let (slots, scalars) = self.start_loop(&op.init);
        let types = Self::scalar_types(&scalars, self);
        let mut regions = [before, body].map(|region| {
            let skip = usize::from(region == before);
            let parameters = self.source.region(region).parameters.clone();
            self.in_region(&types, &mut |this, carried| {
                this.bind_slots(&parameters, &slots, carried);
                this.region(region);
                this.end_region(region, skip, &slots)
            })
        });
        let [before, body] = &mut regions;
        let op = Op::While(op::While {
            init: scalars,
            before: *before,
            body: *body,
        });
        let emitted = self.builder.emit(op, &[]);
        let results = self.builder.results(emitted).to_vec();
        let values = self.source.inst(inst).results.clone();
        self.bind_slots(&values, &slots, &results);
    }

    fn if_else(&mut self, inst: Inst, op: &op::If) {
        let values = self.source.inst(inst).results.clone();
        let slots = self.result_slots(&values);
        let condition = self.pull_scalar(op.condition, &scalar_index());
        let condition = self.value(condition);
        let [on_true, on_false] = [op.on_true, op.on_false].map(|region| {
            self.in_region(&[], &mut |this, _| {
                this.region(region);
                this.end_region(region, 0, &slots)
            })
        });
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let emitted = self.builder.emit(op, &[]);
        let results = self.builder.results(emitted).to_vec();
        self.bind_slots(&values, &slots, &results);
    }
}
