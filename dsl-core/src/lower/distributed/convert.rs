//! Walks conversion plans.

use std::rc::Rc;

use super::registers::Registers;
use super::tile::Tile;
use super::{Lowering, Result};
use crate::ir::{CompareOp, DType, Op, Type, Value, op};
use crate::layout::{
    Conversion, LaneSource, LinearLayout, SharedAccess, SharedPlan, SharedSide, ShufflePlan,
    ThreadMap,
};
use crate::schedule::room::conversion_limits;

impl Lowering<'_> {
    /// The registers of a tile in another layout.
    pub(super) fn convert(
        &mut self,
        tile: &Tile,
        dtype: DType,
        layout: &Rc<LinearLayout>,
    ) -> Result<Registers> {
        let ring_bytes = (self.loops == 0).then_some(self.ring_bytes);
        let limits = conversion_limits(dtype.bytes(), ring_bytes, self.target);
        let plan = Conversion::plan(&tile.layout, layout, &limits)
            .map_err(|error| self.layout_error(&error))?;
        let source = &tile.registers;
        Ok(match plan {
            Conversion::Registers(sources) => source.renamed(&sources),
            Conversion::Shuffle(plan) => self.shuffle(&plan, source),
            Conversion::Shared(plan) => self.through_shared(&plan, dtype, source, layout),
        })
    }

    fn shuffle(&mut self, plan: &ShufflePlan, source: &Registers) -> Registers {
        let sent = self.permuted(source, &plan.source_select);
        let mut received = Vec::new();
        for round in &plan.rounds {
            let x = self.register(&sent, round.sent);
            received.push(match &round.from {
                LaneSource::Same => x,
                LaneSource::Xor(flipped) => self.builder.value(Op::ShuffleXor(op::ShuffleXor {
                    x,
                    lane_mask: i64::from(*flipped),
                })),
                LaneSource::Index { map, constant } => {
                    let source_lane = self.thread_value_with(map, *constant);
                    self.builder
                        .value(Op::ShuffleIndex(op::ShuffleIndex { x, source_lane }))
                }
            });
        }
        let filled = plan.received.iter().map(|&round| received[round as usize]);
        let filled: Vec<Value> = filled.collect();
        let filled = self.join(&filled);
        self.permuted(&filled, &plan.destination_select)
    }

    /// Registers chosen by the lane and the warp: register `r` of the result is
    /// `registers[r ^ map]`.
    fn permuted(&mut self, registers: &Registers, map: &ThreadMap) -> Registers {
        let mut current = registers.clone();
        for bit in (0..32).filter(|bit| map.support() >> bit & 1 == 1) {
            let condition = self.thread_bit(map, bit);
            let flipped: Vec<u32> = (0..current.count() as u32)
                .map(|it| it ^ 1 << bit)
                .collect();
            let other = current.renamed(&flipped);
            current = self.map(&[&other, &current], |builder, values| {
                let shape = builder.ty(values[0]).shape;
                let condition = builder.splat(condition, shape);
                builder.select(condition, values[0], values[1])
            });
        }
        current
    }

    fn through_shared(
        &mut self,
        plan: &SharedPlan,
        dtype: DType,
        source: &Registers,
        layout: &LinearLayout,
    ) -> Registers {
        let count = 1_i64 << plan.scratch_bits;
        let base = self.shared(dtype, count);
        let owner = self.all_zero(plan.owner);
        let align = i64::from(dtype.bytes()) << plan.vector_bits;
        let mut loaded: Vec<Option<Value>> = vec![None; layout.registers() as usize];
        for round in 0..plan.rounds() {
            if round > 0 {
                self.barrier();
            }
            let stores = plan.stores(round);
            for accesses in in_powers(&stores) {
                let when = self.active(&plan.store, accesses);
                let op = Op::LaneStore(op::LaneStore {
                    base,
                    offset: self.offsets_of(&plan.store, accesses),
                    value: self.pick(source, &registers_of(accesses)),
                    mask: self.owned_mask(when, owner, accesses.len()),
                    align,
                    cache: None,
                });
                self.builder.emit(op, &[]);
            }
            self.barrier();
            let loads = plan.loads(round);
            for accesses in in_powers(&loads) {
                let mask = self.active(&plan.load, accesses);
                let registers = registers_of(accesses);
                let op = Op::LaneLoad(op::LaneLoad {
                    base,
                    offset: self.offsets_of(&plan.load, accesses),
                    mask,
                    other: None,
                    align,
                    cache: None,
                });
                let ty = Type::vector(dtype, registers.len());
                let vector = self.builder.declared(op, ty);
                let elements = self.scalars(vector);
                let masks = mask.map(|mask| self.scalars(mask));
                for (at, (&register, &element)) in registers.iter().zip(&elements).enumerate() {
                    let slot = register as usize;
                    let mask = masks.as_ref().map(|masks| masks[at >> plan.vector_bits]);
                    loaded[slot] = Some(match (mask, loaded[slot]) {
                        (Some(mask), Some(before)) => self.builder.select(mask, element, before),
                        (Some(_), None) | (None, _) => element,
                    });
                }
            }
        }
        let filled = plan.loaded.iter().map(|&register| {
            loaded[register as usize]
                .expect("broken invariant: the rounds of a conversion load every register")
        });
        let filled: Vec<Value> = filled.collect();
        self.join(&filled)
    }

    /// The conditions under which accesses happen; `None` when they always do.
    fn active(&mut self, side: &SharedSide, accesses: &[SharedAccess]) -> Option<Value> {
        let wanted = accesses.iter().map(|access| access.only_when);
        let wanted: Vec<u32> = wanted.collect::<Option<_>>()?;
        let round = self.thread_value(&side.thread_round);
        let round = self.repeated(round, wanted.len());
        let wanted = self.literals(DType::I32, &wanted);
        Some(self.builder.compare(CompareOp::Eq, round, wanted))
    }

    fn offsets_of(&mut self, side: &SharedSide, accesses: &[SharedAccess]) -> Value {
        let offsets: Vec<u32> = accesses.iter().map(|access| access.offset).collect();
        self.thread_offsets(&side.thread, &offsets)
    }
}

fn registers_of(accesses: &[SharedAccess]) -> Vec<u32> {
    let registers = accesses.iter().flat_map(|access| &access.registers);
    registers.copied().collect()
}

/// A list in pieces of which each has as many items as a vector may have elements.
fn in_powers<T>(mut list: &[T]) -> Vec<&[T]> {
    let mut pieces = Vec::new();
    while let Some(bits) = list.len().checked_ilog2() {
        let (piece, rest) = list.split_at(1 << bits);
        pieces.push(piece);
        list = rest;
    }
    pieces
}
