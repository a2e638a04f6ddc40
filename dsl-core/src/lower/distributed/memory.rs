//! Loads, stores and atomics: vectors of registers, one owner for replicated elements.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::order::{Effect, Touch};
use super::tile::{Registers, Tile};
use super::{Lowering, Result};
use crate::ir::{DType, Inst, Op, Type, Value};
use crate::layout::access::TileAccess;
use crate::layout::{Holder, LinearLayout};

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
}

impl Lowering<'_> {
    pub(super) fn load(
        &mut self,
        inst: Inst,
        base: Value,
        offsets: Value,
        (mask, other): (Option<Value>, Option<Value>),
    ) -> Result<()> {
        let result = self.block.inst(inst).results[0];
        let layout = self.assigned(result);
        let access = TileAccess {
            base,
            offsets,
            mask,
        };
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
        let access = self.access(&access, &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, &layout),
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
            key.extend(access.masks.as_ref().map(|masks| masks[first]));
            if let Some(other) = other {
                key.extend(vector.iter().map(|&register| other[register as usize]));
            }
            let elements = match known.get(&key) {
                Some(elements) => elements.clone(),
                None => {
                    let mask = access.masks.as_ref().map(|masks| masks[first]);
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
        registers.expect("broken invariant: vectors cover all registers")
    }

    /// Whether a tile is filled with zero bits.
    fn is_zero(&self, value: Value) -> bool {
        let op = self.definitions[value].map(|inst| self.block.op(inst));
        match op {
            Some(Op::Constant { value }) => value.bits == 0,
            Some(Op::Splat { x } | Op::Broadcast { x }) => self.is_zero(*x),
            _ => false,
        }
    }

    fn load_vector(
        &mut self,
        access: &Access,
        register: usize,
        lanes: usize,
        (mask, other): (Option<Value>, Option<Value>),
    ) -> Vec<Value> {
        let op = Op::LaneLoad {
            base: access.base,
            offset: access.offsets[register],
            mask,
            other,
            align: i64::from(access.dtype.bytes()) * lanes as i64,
        };
        let loaded = self.builder.declared(op, Type::vector(access.dtype, lanes));
        self.scatter(loaded, lanes)
    }

    pub(super) fn store(
        &mut self,
        inst: Inst,
        base: Value,
        offsets: Value,
        (value, mask): (Value, Option<Value>),
    ) -> Result<()> {
        let layout = self.stored_layout(inst, value)?;
        let tile = TileAccess {
            base,
            offsets,
            mask,
        };
        let values = self.get(value, &layout)?;
        let mut access = self.access(&tile, &layout)?;
        self.keep_highest(&mut access, offsets, mask, &layout)?;
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(offsets, &layout),
                effect: Effect::Writes,
            },
        );
        let owner = self.all_zero(layout.free_bits());
        for vector in &access.vectors {
            let op = Op::LaneStore {
                base: access.base,
                offset: access.offsets[vector[0] as usize],
                value: self.gather(&values, vector),
                mask: self.owned_mask(&access, vector[0], owner),
                align: i64::from(access.dtype.bytes()) * vector.len() as i64,
            };
            self.builder.emit(op, &[]);
        }
        Ok(())
    }

    /// The mask of a register and the owner's condition.
    fn owned_mask(
        &mut self,
        access: &Access,
        register: u32,
        owner: Option<Value>,
    ) -> Option<Value> {
        let mask = access.masks.as_ref().map(|masks| masks[register as usize]);
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
    pub(super) fn atomic_reduce(&mut self, inst: Inst) -> Result<()> {
        let block = self.block;
        let (Some(tile), Op::AtomicReduce { value, op, .. }) =
            (TileAccess::of(block, inst), block.op(inst))
        else {
            return Ok(());
        };
        let (value, op) = (*value, *op);
        let layout = self.stored_layout(inst, value)?;
        let values = self.get(value, &layout)?;
        let mut access = self.access(&tile, &layout)?;
        access.split();
        self.order_access(
            access.argument,
            Touch {
                owned: self.owned(tile.offsets, &layout),
                effect: Effect::Combines(op),
            },
        );
        let free = layout.free_bits();
        let owner = self.all_zero(free);
        for vector in &access.vectors {
            let register = vector[0];
            if register & free.register != 0 {
                continue;
            }
            let mask = self.owned_mask(&access, register, owner);
            let atomic = Op::LaneAtomic {
                base: access.base,
                offset: access.offsets[register as usize],
                value: values[register as usize],
                mask,
                op,
            };
            self.builder.emit(atomic, &[]);
        }
        Ok(())
    }

    /// Prepares an access of a tile in `layout`.
    pub(super) fn access(
        &mut self,
        tile: &TileAccess,
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
            vectors: self.vectors(tile, layout),
        })
    }

    /// The registers of each access: as many neighbours along the contiguous axis as registers hold
    /// and one instruction may move.
    pub(super) fn vectors(&self, tile: &TileAccess, layout: &LinearLayout) -> Vec<Vec<u32>> {
        let contiguity = &self.assignment.contiguity;
        let mut bits = Vec::new();
        if let Some(&axis) = tile.order(self.block, contiguity).first() {
            let most = tile.vector_bits(self.block, contiguity, axis);
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
                let op = Op::Vector {
                    elements: elements.collect(),
                };
                self.builder.value(op)
            }
        }
    }

    /// The elements of a scalar or vector.
    pub(super) fn scatter(&mut self, vector: Value, lanes: usize) -> Vec<Value> {
        if lanes == 1 {
            return vec![vector];
        }
        let extract = |index| Op::Extract { vector, index };
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

    /// Accesses each register alone.
    pub(super) fn split(&mut self) {
        let registers: Vec<u32> = self.vectors.concat();
        self.vectors = registers
            .into_iter()
            .map(|register| vec![register])
            .collect();
    }
}
