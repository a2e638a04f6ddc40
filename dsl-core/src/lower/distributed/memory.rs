//! Loads, stores and atomics: one instruction for all vectors of registers, one owner for replicated
//! elements.

use std::rc::Rc;

use super::order::Touch;
use super::registers::{Registers, grouped, owners};
use super::{Lowering, Result};
use crate::ir::{Cache, DType, Effect, Inst, MemoryAccess, MemoryOrder, Op, Type, Value, op};
use crate::layout::LinearLayout;

/// One load or store of a tile, ready to be made vector by vector.
#[derive(Clone)]
pub(super) struct Access {
    argument: usize,
    base: Value,
    dtype: DType,
    offsets: Registers,
    masks: Option<Registers>,
    /// Registers of each vector, in memory order; all vectors are equally long.
    vectors: Vec<Vec<u32>>,
    /// A hint for caches.
    cache: Option<Cache>,
    /// Whether a vector may hold elements that its mask lets through and, behind them, others.
    ragged: bool,
}

impl Lowering<'_> {
    pub(super) fn load(&mut self, inst: Inst, op: &op::Load) -> Result<()> {
        let result = self.block.inst(inst).results[0];
        let layout = self.layout(result);
        let other = op.other;
        let other = other.map(|other| self.get(other));
        let access = Access {
            cache: op.cache,
            ..self.access(&op.access(), &layout)?
        };
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(op.offsets, Effect::Reads),
                effect: Effect::Reads,
            },
        );
        let registers = self.loaded(&access, other.as_ref());
        self.bind(result, registers);
        Ok(())
    }

    /// The registers of a load. Vectors of one offset and one mask are read once, but where each is
    /// read as it stands.
    fn loaded(&mut self, access: &Access, other: Option<&Registers>) -> Registers {
        let other = other.filter(|_| access.masks.is_some());
        let keys = access
            .vectors
            .iter()
            .map(|vector| access.key(vector, other));
        let (firsts, groups) = grouped(keys);
        let read: Vec<&[u32]> = firsts
            .iter()
            .map(|&at| &access.vectors[at as usize][..])
            .collect();
        let all = read.concat();
        let op = Op::LaneLoad(op::LaneLoad {
            base: access.base,
            offset: self.pick(&access.offsets, &starts(&read)),
            mask: self.whole(access, &read),
            other: other.map(|other| self.pick(other, &all)),
            align: i64::from(access.dtype.bytes()) * read[0].len() as i64,
            cache: access.cache,
        });
        let loaded = self
            .builder
            .declared(op, Type::vector(access.dtype, all.len()));
        let mut places = vec![0; access.offsets.count()];
        for (vector, group) in access.vectors.iter().zip(groups) {
            for (&register, at) in vector.iter().zip(group * vector.len() as u32..) {
                places[register as usize] = at;
            }
        }
        let registers = Registers::new(loaded, places);
        if access.ragged {
            return self.load_rests(access, &registers);
        }
        registers
    }

    /// Whether masks let all elements of some vectors through.
    fn whole(&mut self, access: &Access, vectors: &[&[u32]]) -> Option<Value> {
        let masks = access.masks.as_ref()?;
        let deciding: Vec<u32> = vectors
            .iter()
            .map(|vector| access.deciding(vector))
            .collect();
        Some(self.pick(masks, &deciding))
    }

    /// Replaces the elements that vectors with a part behind the mask have not loaded.
    fn load_rests(&mut self, access: &Access, registers: &Registers) -> Registers {
        let parts = access.by_position();
        let ty = Type::vector(access.dtype, registers.count());
        let results = self.where_ragged(access, &[ty], &mut |lowering, masks| {
            let mut loaded = Vec::new();
            for (at, part) in parts.iter().enumerate() {
                let own = lowering.pick(registers, part);
                loaded.push(match masks.get(at) {
                    Some(&mask) => {
                        let op = Op::LaneLoad(op::LaneLoad {
                            base: access.base,
                            offset: lowering.pick(&access.offsets, part),
                            mask: Some(mask),
                            other: Some(own),
                            align: i64::from(access.dtype.bytes()),
                            cache: access.cache,
                        });
                        lowering
                            .builder
                            .declared(op, Type::vector(access.dtype, part.len()))
                    }
                    None => own,
                });
            }
            vec![lowering.joined(&loaded)]
        });
        let mut places = vec![0; registers.count()];
        for (&register, at) in parts.concat().iter().zip(0..) {
            places[register as usize] = at;
        }
        Registers::new(results[0], places)
    }

    /// Emits `emit` where a lane has a vector that its mask divides, with the masks of such vectors'
    /// elements, position by position but the last, and without any elsewhere. Lanes part there.
    fn where_ragged(
        &mut self,
        access: &Access,
        types: &[Type],
        emit: &mut dyn FnMut(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Vec<Value> {
        let masks = access.masks.clone();
        let masks = masks.expect("broken invariant: a mask divides vectors");
        let parts = access.by_position();
        let [first, last] = [0, parts.len() - 1].map(|at| self.pick(&masks, &parts[at]));
        let ends = self.builder.not(last);
        let divided = self.builder.and(first, ends);
        let condition = self.any(divided);
        let regions = [parts.len() - 1, 0].map(|divided| {
            let region = self.builder.new_region(&[]);
            let outer = self.builder.enter(region);
            let mut rests = Vec::new();
            for part in &parts[..divided] {
                let mask = self.pick(&masks, part);
                rests.push(self.builder.and(mask, ends));
            }
            let values = emit(self, &rests);
            self.builder.emit(Op::Yield(op::Yield { values }), &[]);
            self.builder.enter(outer);
            region
        });
        let [on_true, on_false] = regions;
        let op = Op::If(op::If {
            condition,
            on_true,
            on_false,
        });
        let inst = self.builder.emit_unchecked(op, types);
        self.builder.results(inst).to_vec()
    }

    pub(super) fn store(&mut self, inst: Inst, op: &op::Store) -> Result<()> {
        let op::Store {
            offsets,
            value,
            cache,
            ..
        } = *op;
        let (layout, values) = (self.layout(value), self.get(value));
        let mut access = self.access(&op.access(), &layout)?;
        self.keep_highest(&mut access, (inst, op), &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, Effect::Writes),
                effect: Effect::Writes,
            },
        );
        let owner = self.all_zero(layout.free_bits());
        let vectors: Vec<&[u32]> = access.vectors.iter().map(|vector| &vector[..]).collect();
        let mask = self.whole(&access, &vectors);
        let op = Op::LaneStore(op::LaneStore {
            base: access.base,
            offset: self.pick(&access.offsets, &starts(&vectors)),
            value: self.pick(&values, &vectors.concat()),
            mask: self.owned_mask(mask, owner, vectors.len()),
            align: i64::from(access.dtype.bytes()) * vectors[0].len() as i64,
            cache,
        });
        self.builder.emit(op, &[]);
        if access.ragged {
            let parts = access.by_position();
            self.where_ragged(&access, &[], &mut |lowering, masks| {
                for (part, &mask) in parts.iter().zip(masks) {
                    let op = Op::LaneStore(op::LaneStore {
                        base: access.base,
                        offset: lowering.pick(&access.offsets, part),
                        value: lowering.pick(&values, part),
                        mask: lowering.owned_mask(Some(mask), owner, part.len()),
                        align: i64::from(access.dtype.bytes()),
                        cache,
                    });
                    lowering.builder.emit(op, &[]);
                }
                Vec::new()
            });
        }
        Ok(())
    }

    /// Masks of `count` accesses and the owner's condition.
    pub(super) fn owned_mask(
        &mut self,
        mask: Option<Value>,
        owner: Option<Value>,
        count: usize,
    ) -> Option<Value> {
        match owner {
            Some(owner) => {
                let owner = self.repeated(owner, count);
                Some(self.both(mask, owner))
            }
            None => mask,
        }
    }

    /// Combines every element once: the owner's copy of one that several lanes or registers hold.
    pub(super) fn atomic_reduce(&mut self, op: &op::AtomicReduce) -> Result<()> {
        let op::AtomicReduce { offsets, value, .. } = *op;
        self.release(op.order);
        let (layout, values) = (self.layout(value), self.get(value));
        let access = self.access(&op.access(), &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, Effect::Combines(op.op)),
                effect: Effect::Combines(op.op),
            },
        );
        let owner = self.all_zero(layout.free_bits());
        let registers = owners(&layout);
        let masks = access.masks.as_ref();
        let mask = masks.map(|masks| self.pick(masks, &registers));
        let atomic = Op::LaneAtomic(op::LaneAtomic {
            base: access.base,
            offset: self.pick(&access.offsets, &registers),
            value: self.pick(&values, &registers),
            mask: self.owned_mask(mask, owner, registers.len()),
            op: op.op,
            order: op.order,
            scope: op.scope,
        });
        self.builder.emit(atomic, &[]);
        Ok(())
    }

    /// Combines every element and keeps what was there: each element is in one lane.
    pub(super) fn atomic_fetch(&mut self, result: Value, op: &op::AtomicFetch) -> Result<()> {
        let layout = self.layout(result);
        self.release(op.order);
        let access = self.access(&op.access(), &layout)?;
        let effect = op.access().effect;
        let owned = self.owned(op.offsets, effect);
        self.order_access(access.argument, Touch { owned, effect });
        let registers = owners(&layout);
        let value = self.get(op.value);
        let expected = op.expected.map(|expected| self.get(expected));
        let masks = access.masks.as_ref();
        let fetch = op::LaneFetch {
            base: access.base,
            offset: self.pick(&access.offsets, &registers),
            value: self.pick(&value, &registers),
            mask: masks.map(|masks| self.pick(masks, &registers)),
            expected: expected.map(|expected| self.pick(&expected, &registers)),
            op: op.op,
            order: op.order,
            scope: op.scope,
        };
        let old = self.builder.value(Op::LaneFetch(fetch));
        if op.order.is_some_and(MemoryOrder::acquires) {
            self.barrier();
        }
        self.bind(result, Registers::of(old, &layout));
        Ok(())
    }

    /// Prepares an access of a tile in `layout`.
    pub(super) fn access(
        &mut self,
        tile: &MemoryAccess,
        layout: &Rc<LinearLayout>,
    ) -> Result<Access> {
        let argument = self.block.parameter_index(tile.base);
        let argument = argument.expect("broken invariant: a verified base is an argument");
        let pointee = self.block.ty(tile.base).pointee();
        let (dtype, _) = pointee.expect("broken invariant: a verified base is a pointer");
        let (block, indices) = (self.block, &self.indices);
        let vectors = tile.vectors(block, indices, layout, self.target);
        let (copied, _) = tile.copied_vectors(block, indices, layout, self.target);
        Ok(Access {
            argument,
            base: self.scalar(tile.base),
            dtype,
            offsets: self.get(tile.offsets),
            masks: tile.mask.map(|mask| self.get(mask)),
            cache: None,
            ragged: copied.len() > vectors.len(),
            vectors,
        })
    }
}

impl Access {
    /// The masks.
    pub(super) fn masks(&self) -> Option<&Registers> {
        self.masks.as_ref()
    }

    /// What tells vectors apart that read something else.
    fn key(&self, vector: &[u32], other: Option<&Registers>) -> Vec<u32> {
        let places = |registers: &Registers, of: &[u32]| -> Vec<u32> {
            let places = of
                .iter()
                .map(|&register| registers.places()[register as usize]);
            places.collect()
        };
        if self.cache == Some(Cache::Volatile) {
            return vector.to_vec();
        }
        let masked = if self.ragged { vector } else { &vector[..1] };
        let mut key = places(&self.offsets, &vector[..1]);
        key.extend(self.masks.iter().flat_map(|masks| places(masks, masked)));
        key.extend(other.iter().flat_map(|other| places(other, vector)));
        key
    }

    /// The register whose mask lets all elements of a vector through: they share it, or it ends
    /// somewhere.
    fn deciding(&self, vector: &[u32]) -> u32 {
        let at = if self.ragged { vector.len() - 1 } else { 0 };
        vector[at]
    }

    /// The registers at each position of the vectors.
    fn by_position(&self) -> Vec<Vec<u32>> {
        (0..self.vectors[0].len())
            .map(|at| self.vectors.iter().map(|vector| vector[at]).collect())
            .collect()
    }

    /// The first register of each vector.
    pub(super) fn starts(&self) -> Vec<u32> {
        self.vectors.iter().map(|vector| vector[0]).collect()
    }

    /// Accesses each register alone, by these masks.
    pub(super) fn restrict(&mut self, masks: Registers) {
        self.masks = Some(masks);
        self.split();
    }

    /// The number of the argument.
    pub(super) fn argument(&self) -> usize {
        self.argument
    }

    /// The argument.
    pub(super) fn base(&self) -> Value {
        self.base
    }

    /// Registers of each vector, in memory order.
    pub(super) fn vectors(&self) -> &[Vec<u32>] {
        &self.vectors
    }

    /// The element offsets.
    pub(super) fn offsets(&self) -> &Registers {
        &self.offsets
    }

    /// Accesses each register alone where masks divide vectors.
    pub(super) fn divide_ragged(&mut self) {
        if self.ragged {
            self.split();
        }
    }

    /// Accesses each register alone.
    pub(super) fn split(&mut self) {
        self.ragged = false;
        let registers: Vec<u32> = self.vectors.concat();
        self.vectors = registers
            .into_iter()
            .map(|register| vec![register])
            .collect();
    }
}

/// The first register of each vector.
fn starts(vectors: &[&[u32]]) -> Vec<u32> {
    vectors.iter().map(|vector| vector[0]).collect()
}
