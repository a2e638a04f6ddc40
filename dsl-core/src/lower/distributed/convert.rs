//! Walks conversion plans.

use std::rc::Rc;

use super::tile::{Registers, Tile};
use super::{Lowering, Result};
use crate::ir::{CompareOp, DType, Op, Type, Value, op};
use crate::layout::{
    Conversion, ConversionLimits, LaneSource, LinearLayout, SharedAccess, SharedPlan, SharedSide,
    ShufflePlan, ThreadMap,
};

/// One side of a conversion and the type that it moves.
struct Side<'a> {
    side: &'a SharedSide,
    dtype: DType,
}

impl Lowering<'_> {
    /// The registers of a tile in another layout.
    pub(super) fn convert(
        &mut self,
        tile: &Tile,
        dtype: DType,
        layout: &Rc<LinearLayout>,
    ) -> Result<Registers> {
        let limits = ConversionLimits::new(dtype.bytes(), self.target);
        let plan = Conversion::plan(&tile.layout, layout, &limits)
            .map_err(|error| self.layout_error(&error))?;
        let source = &tile.registers;
        let registers = match plan {
            Conversion::Registers(sources) => sources
                .iter()
                .map(|&register| source[register as usize])
                .collect(),
            Conversion::Shuffle(plan) => self.shuffle(&plan, source),
            Conversion::Shared(plan) => self.through_shared(&plan, dtype, source, layout),
        };
        Ok(Rc::from(registers))
    }

    fn shuffle(&mut self, plan: &ShufflePlan, source: &[Value]) -> Vec<Value> {
        let sent = self.permuted(source, &plan.source_select);
        let mut received = Vec::new();
        for round in &plan.rounds {
            let x = sent[round.sent as usize];
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
        let filled: Vec<Value> = plan
            .received
            .iter()
            .map(|&round| received[round as usize])
            .collect();
        self.permuted(&filled, &plan.destination_select)
    }

    /// Registers chosen by the lane and the warp: register `r` of the result is
    /// `registers[r ^ map]`.
    fn permuted(&mut self, registers: &[Value], map: &ThreadMap) -> Vec<Value> {
        let mut current = registers.to_vec();
        for bit in (0..32).filter(|bit| map.support() >> bit & 1 == 1) {
            let condition = self.thread_bit(map, bit);
            current = (0..current.len())
                .map(|register| {
                    let (own, other) = (current[register], current[register ^ (1 << bit)]);
                    if own == other {
                        return own;
                    }
                    self.builder.select(condition, other, own)
                })
                .collect();
        }
        current
    }

    fn through_shared(
        &mut self,
        plan: &SharedPlan,
        dtype: DType,
        source: &[Value],
        layout: &LinearLayout,
    ) -> Vec<Value> {
        let count = 1_i64 << plan.scratch_bits;
        let bytes = count * i64::from(dtype.bytes());
        let start = self.begin_shared(bytes);
        let base = self.shared(dtype, start, count);
        let owner = self.all_zero(plan.owner);
        let (store, load) = (
            Side {
                side: &plan.store,
                dtype,
            },
            Side {
                side: &plan.load,
                dtype,
            },
        );
        let mut loaded: Vec<Option<Value>> = vec![None; layout.registers() as usize];
        for round in 0..plan.rounds() {
            if round > 0 {
                self.barrier();
            }
            for access in plan.stores(round) {
                self.store_access(base, (&store, &access), source, owner);
            }
            self.publish_shared(start, bytes);
            for access in plan.loads(round) {
                let mask = self.active(&load, &access);
                let (offset, align) = self.place(&load, &access);
                let lanes = access.registers.len();
                let op = Op::LaneLoad(op::LaneLoad {
                    base,
                    offset,
                    mask,
                    other: None,
                    align,
                });
                let vector = self.builder.declared(op, Type::vector(dtype, lanes));
                let elements = self.scatter(vector, lanes);
                for (&register, element) in access.registers.iter().zip(elements) {
                    let slot = register as usize;
                    loaded[slot] = Some(match (mask, loaded[slot]) {
                        (Some(mask), Some(before)) => self.builder.select(mask, element, before),
                        (Some(_), None) | (None, _) => element,
                    });
                }
            }
        }
        plan.loaded
            .iter()
            .map(|&register| {
                loaded[register as usize]
                    .expect("broken invariant: the rounds of a conversion load every register")
            })
            .collect()
    }

    fn store_access(
        &mut self,
        base: Value,
        (side, access): (&Side<'_>, &SharedAccess),
        source: &[Value],
        owner: Option<Value>,
    ) {
        let when = self.active(side, access);
        let mask = match (when, owner) {
            (Some(when), owner) => Some(self.both(owner, when)),
            (None, owner) => owner,
        };
        let value = self.gather(source, &access.registers);
        let (offset, align) = self.place(side, access);
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset,
            value,
            mask,
            align,
        });
        self.builder.emit(op, &[]);
    }

    /// The condition under which an access happens; `None` when it always does.
    fn active(&mut self, side: &Side<'_>, access: &SharedAccess) -> Option<Value> {
        let wanted = access.only_when?;
        let round = self.thread_value(&side.side.thread_round);
        let wanted = self.builder.int32(wanted as i32);
        Some(self.builder.compare(CompareOp::Eq, round, wanted))
    }

    /// The offset of an access and its alignment in bytes.
    fn place(&mut self, side: &Side<'_>, access: &SharedAccess) -> (Value, i64) {
        let offset = self.thread_offset(&side.side.thread, access.offset);
        (
            offset,
            i64::from(side.dtype.bytes()) * access.registers.len() as i64,
        )
    }
}
