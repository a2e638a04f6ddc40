//! Loads, stores and atomics: vectors of registers, one owner for replicated elements.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::order::Touch;
use super::tile::{Registers, Tile};
use super::{Lowering, Result};
use crate::ir::numbers::filling;
use crate::ir::{DType, Effect, Func, Inst, Literal, MemoryAccess, Op, Type, Value, op};
use crate::layout::contiguity::Contiguity;
use crate::layout::{Holder, LinearLayout};
use crate::target::Target;

/// One load or store of a tile, ready to be made vector by vector.
#[derive(Clone)]
pub(super) struct Access {
    argument: usize,
    base: Value,
    dtype: DType,
    offsets: Registers,
    masks: Option<Registers>,
    /// Registers of each vector, in memory order.
    vectors: Vec<Vec<u32>>,
    /// Whether a vector may hold elements that its mask lets through and, behind them, others.
    ragged: bool,
}

impl Lowering<'_> {
    pub(super) fn load(&mut self, inst: Inst, op: &op::Load) -> Result<()> {
        let result = self.block.inst(inst).results[0];
        let layout = self.assigned(result);
        let (mask, other) = (op.mask, op.other);
        if let Some(staged) = self.staged(inst) {
            let filled = match (mask, other) {
                (Some(mask), Some(other)) if !self.is_zero(other) => {
                    Some((self.get(mask, &layout)?, self.get(other, &layout)?))
                }
                _ => None,
            };
            return self.load_staged(inst, staged, &layout, filled);
        }
        let other = other.map(|other| self.get(other, &layout)).transpose()?;
        let access = self.access(&op.access(), &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(op.offsets, &layout),
                effect: Effect::Reads,
            },
        );
        let registers = self.loaded(&access, other.as_ref()).into();
        self.bind(result, Tile { layout, registers });
        Ok(())
    }

    /// The registers of a load.
    fn loaded(&mut self, access: &Access, other: Option<&Registers>) -> Vec<Value> {
        let mut registers: Vec<Option<Value>> = vec![None; access.offsets.len()];
        // Registers with one offset and one mask read once.
        let mut known: BTreeMap<Vec<Value>, Vec<Value>> = BTreeMap::new();
        for vector in &access.vectors {
            let first = vector[0] as usize;
            let mut key = vec![access.offsets[first]];
            key.extend(access.whole(vector));
            if access.ragged {
                key.extend(access.masks_of(vector));
            }
            if let Some(other) = other {
                key.extend(vector.iter().map(|&register| other[register as usize]));
            }
            let elements = match known.get(&key) {
                Some(elements) => elements.clone(),
                None => {
                    let mask = access.whole(vector);
                    let other = other.filter(|_| mask.is_some());
                    let other = other.map(|other| self.gather(other, vector));
                    self.load_vector(access, first, vector.len(), (mask, other))
                }
            };
            for (&register, &element) in vector.iter().zip(&elements) {
                registers[register as usize] = Some(element);
            }
            known.insert(key, elements);
        }
        let registers: Option<Vec<Value>> = registers.into_iter().collect();
        let registers = registers.expect("broken invariant: vectors cover all registers");
        if access.ragged {
            return self.load_rests(access, registers);
        }
        registers
    }

    /// Replaces the elements that vectors with a part behind the mask have not loaded.
    fn load_rests(&mut self, access: &Access, registers: Vec<Value>) -> Vec<Value> {
        let types = vec![Type::scalar(access.dtype); registers.len()];
        self.where_ragged(access, &types, &mut |lowering, rests| {
            let mut registers = registers.clone();
            for &(register, mask) in rests {
                let op = Op::LaneLoad(op::LaneLoad {
                    base: access.base,
                    offset: access.offsets[register],
                    mask: Some(mask),
                    other: Some(registers[register]),
                    align: i64::from(access.dtype.bytes()),
                });
                registers[register] = lowering.builder.declared(op, Type::scalar(access.dtype));
            }
            registers
        })
    }

    /// Emits `emit` where a lane has a vector that its mask divides, with the elements of such vectors
    /// and their masks, and without any elsewhere. Lanes part there.
    fn where_ragged(
        &mut self,
        access: &Access,
        types: &[Type],
        emit: &mut dyn FnMut(&mut Self, &[(usize, Value)]) -> Vec<Value>,
    ) -> Vec<Value> {
        let mut any = self.builder.boolean(false);
        for vector in &access.vectors {
            let masks = access.masks_of(vector);
            if let (Some(&first), Some(&last)) = (masks.first(), masks.last()) {
                let ends = self.builder.not(last);
                let divided = self.builder.and(first, ends);
                any = self.builder.or(any, divided);
            }
        }
        let regions = [true, false].map(|divided| {
            let region = self.builder.new_region(&[]);
            let outer = self.builder.enter(region);
            let mut rests = Vec::new();
            for vector in access.vectors.iter().filter(|_| divided) {
                let masks = access.masks_of(vector);
                let Some((&last, others)) = masks.split_last() else {
                    continue;
                };
                let ends = self.builder.not(last);
                for (&register, &mask) in vector.iter().zip(others) {
                    let mask = self.builder.and(mask, ends);
                    rests.push((register as usize, mask));
                }
            }
            let values = emit(self, &rests);
            self.builder.emit(Op::Yield(op::Yield { values }), &[]);
            self.builder.enter(outer);
            region
        });
        let [on_true, on_false] = regions;
        let op = Op::If(op::If {
            condition: any,
            on_true,
            on_false,
        });
        let inst = self.builder.emit_unchecked(op, types);
        self.builder.results(inst).to_vec()
    }

    /// Whether a tile is filled with zero bits.
    fn is_zero(&self, value: Value) -> bool {
        let definition = |value: Value| self.definitions[value].map(|inst| self.block.op(inst));
        filling(value, definition).is_some_and(Literal::is_positive_zero)
    }

    fn load_vector(
        &mut self,
        access: &Access,
        register: usize,
        lanes: usize,
        (mask, other): (Option<Value>, Option<Value>),
    ) -> Vec<Value> {
        let op = Op::LaneLoad(op::LaneLoad {
            base: access.base,
            offset: access.offsets[register],
            mask,
            other,
            align: i64::from(access.dtype.bytes()) * lanes as i64,
        });
        let loaded = self.builder.declared(op, Type::vector(access.dtype, lanes));
        self.scatter(loaded, lanes)
    }

    pub(super) fn store(&mut self, inst: Inst, op: &op::Store) -> Result<()> {
        let op::Store {
            offsets,
            value,
            mask,
            ..
        } = *op;
        let layout = self.stored_layout(inst, value)?;
        let values = self.get(value, &layout)?;
        let mut access = self.access(&op.access(), &layout)?;
        self.keep_highest(&mut access, (inst, offsets, mask), &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, &layout),
                effect: Effect::Writes,
            },
        );
        let owner = self.all_zero(layout.free_bits());
        for vector in &access.vectors {
            let op = Op::LaneStore(op::LaneStore {
                base: access.base,
                offset: access.offsets[vector[0] as usize],
                value: self.gather(&values, vector),
                mask: self.owned_mask(access.whole(vector), owner),
                align: i64::from(access.dtype.bytes()) * vector.len() as i64,
            });
            self.builder.emit(op, &[]);
        }
        if access.ragged {
            self.where_ragged(&access, &[], &mut |lowering, rests| {
                for &(register, mask) in rests {
                    let op = Op::LaneStore(op::LaneStore {
                        base: access.base,
                        offset: access.offsets[register],
                        value: values[register],
                        mask: lowering.owned_mask(Some(mask), owner),
                        align: i64::from(access.dtype.bytes()),
                    });
                    lowering.builder.emit(op, &[]);
                }
                Vec::new()
            });
        }
        Ok(())
    }

    /// A mask and the owner's condition.
    pub(super) fn owned_mask(
        &mut self,
        mask: Option<Value>,
        owner: Option<Value>,
    ) -> Option<Value> {
        match owner {
            Some(owner) => Some(self.both(mask, owner)),
            None => mask,
        }
    }

    /// The layout in which an op writes a value to memory.
    pub(super) fn stored_layout(&self, inst: Inst, value: Value) -> Result<Rc<LinearLayout>> {
        match self.assignment.store_layout(inst) {
            Some(layout) => Ok(Rc::clone(layout)),
            None => self.natural(value),
        }
    }

    /// Combines every element once: the owner's copy of one that several lanes or registers hold.
    pub(super) fn atomic_reduce(&mut self, inst: Inst, op: &op::AtomicReduce) -> Result<()> {
        let op::AtomicReduce { offsets, value, .. } = *op;
        let layout = self.stored_layout(inst, value)?;
        let values = self.get(value, &layout)?;
        let mut access = self.access(&op.access(), &layout)?;
        access.split();
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, &layout),
                effect: Effect::Combines(op.op),
            },
        );
        let free = layout.free_bits();
        let owner = self.all_zero(free);
        for vector in &access.vectors {
            let register = vector[0];
            if register & free.register != 0 {
                continue;
            }
            let mask = self.owned_mask(access.whole(vector), owner);
            let atomic = Op::LaneAtomic(op::LaneAtomic {
                base: access.base,
                offset: access.offsets[register as usize],
                value: values[register as usize],
                mask,
                op: op.op,
            });
            self.builder.emit(atomic, &[]);
        }
        Ok(())
    }

    /// Prepares an access of a tile in `layout`.
    pub(super) fn access(
        &mut self,
        tile: &MemoryAccess,
        layout: &Rc<LinearLayout>,
    ) -> Result<Access> {
        let argument = self.block.parameter_index(tile.base);
        let argument = argument.ok_or_else(|| self.error("the base is not an argument"))?;
        let pointee = self.block.ty(tile.base).pointee();
        let (dtype, _) = pointee.ok_or_else(|| self.error("the base is not a pointer"))?;
        Ok(Access {
            argument,
            base: self.bound(tile.base).registers[0],
            dtype,
            offsets: self.get(tile.offsets, layout)?,
            masks: tile.mask.map(|mask| self.get(mask, layout)).transpose()?,
            ragged: self.copied_vectors(tile, layout).len() > self.vectors(tile, layout).len(),
            vectors: self.vectors(tile, layout),
        })
    }

    /// The registers of each access: as many neighbours along the contiguous axis as registers hold
    /// and one instruction may move.
    fn vectors(&self, tile: &MemoryAccess, layout: &LinearLayout) -> Vec<Vec<u32>> {
        self.vectors_of(tile, layout, MemoryAccess::vector_bits)
    }

    /// The same for copies, of which each has one mask.
    pub(super) fn copied_vectors(
        &self,
        tile: &MemoryAccess,
        layout: &LinearLayout,
    ) -> Vec<Vec<u32>> {
        self.vectors_of(tile, layout, MemoryAccess::whole_bits)
    }

    fn vectors_of(
        &self,
        tile: &MemoryAccess,
        layout: &LinearLayout,
        most: fn(&MemoryAccess, &Func, &Contiguity, usize, &Target) -> u32,
    ) -> Vec<Vec<u32>> {
        let contiguity = &self.assignment.contiguity;
        let mut bits = Vec::new();
        if let Some(&axis) = tile.order(self.block, contiguity).first() {
            let most = most(tile, self.block, contiguity, axis, self.target);
            let lowest = layout.dim_mask(axis).map_or(0, u64::trailing_zeros);
            for bit in lowest..lowest + most {
                let Holder::Register(register) = layout.holder(bit) else {
                    break;
                };
                bits.push(1 << register);
            }
        }
        let taken: u32 = bits.iter().sum();
        let member = |element: u32| {
            let chosen = bits
                .iter()
                .enumerate()
                .filter(|(bit, _)| element >> bit & 1 == 1);
            chosen.map(|(_, register)| register).sum::<u32>()
        };
        (0..layout.registers())
            .filter(|register| register & taken == 0)
            .map(|first| {
                (0..1 << bits.len())
                    .map(|element| first + member(element))
                    .collect()
            })
            .collect()
    }

    /// A scalar or vector of some registers.
    pub(super) fn gather(&mut self, registers: &[Value], chosen: &[u32]) -> Value {
        match chosen {
            &[register] => registers[register as usize],
            chosen => {
                let elements = chosen.iter().map(|&register| registers[register as usize]);
                let op = Op::Vector(op::Vector {
                    elements: elements.collect(),
                });
                self.builder.value(op)
            }
        }
    }

    /// The elements of a scalar or vector.
    pub(super) fn scatter(&mut self, vector: Value, lanes: usize) -> Vec<Value> {
        if lanes == 1 {
            return vec![vector];
        }
        let extract = |index| Op::Extract(op::Extract { vector, index });
        (0..lanes as i64)
            .map(|index| self.builder.value(extract(index)))
            .collect()
    }

    /// The offsets and layout of an access, if they give every address to one lane.
    fn owned(
        &self,
        offsets: Value,
        layout: &Rc<LinearLayout>,
    ) -> Option<(Value, Rc<LinearLayout>)> {
        let facts = self.assignment.contiguity.of(offsets);
        let distinct = layout.dim_bits().len() == 1
            && facts.axis(0).contiguous == layout.tile_bits()
            && !layout.is_replicated();
        distinct.then(|| (offsets, Rc::clone(layout)))
    }
}

impl Access {
    /// The masks.
    pub(super) fn masks(&self) -> Option<&Registers> {
        self.masks.as_ref()
    }

    /// The masks of a vector's registers.
    fn masks_of(&self, vector: &[u32]) -> Vec<Value> {
        let masks = self.masks.iter();
        masks
            .flat_map(|masks| vector.iter().map(|&register| masks[register as usize]))
            .collect()
    }

    /// Whether the mask lets all elements of a vector through: they share it, or it ends somewhere.
    fn whole(&self, vector: &[u32]) -> Option<Value> {
        let masks = self.masks_of(vector);
        if self.ragged {
            masks.last()
        } else {
            masks.first()
        }
        .copied()
    }

    /// The masks, to change.
    pub(super) fn masks_mut(&mut self) -> &mut Option<Registers> {
        &mut self.masks
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
