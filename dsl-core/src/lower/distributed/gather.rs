//! Gathers: elements looked up along an axis, by indices that only the running kernel knows.
//!
//! Where a warp holds all of the axis in a few registers of its lanes, each of these is shuffled and
//! the index chooses among them. Otherwise the tile goes through shared memory.

use std::collections::BTreeMap;

use super::registers::{Registers, owners};
use super::{Lowering, Result};
use crate::ir::index_map::dim_bits;
use crate::ir::{Axis, BinaryOp, CompareOp, DType, Inst, Op, Value, op};
use crate::layout::{Holder, LinearLayout, Point, ThreadMap};
use crate::target::Bounds;

/// Log2 of the registers that are shuffled for one result at most.
const SHUFFLED_BITS: usize = 2;

/// Log2 of the registers among which an index chooses at most, where nothing is shuffled.
const CHOSEN_BITS: usize = 3;

/// Which bits of the indices of two tiles are the same: those of every axis but one.
struct Correspondence {
    result: Vec<u32>,
    source: Vec<u32>,
    axis: usize,
}

impl Correspondence {
    fn first(dims: &[u32], axis: usize) -> u32 {
        dims[axis + 1..].iter().sum()
    }

    /// The index in the source of the result's element, with coordinate 0 along the axis.
    fn to_source(&self, flat: u64) -> u64 {
        let low = Self::first(&self.result, self.axis);
        let high = low + self.result[self.axis];
        let below = flat & ((1 << low) - 1);
        below | flat >> high << (low + self.source[self.axis])
    }

    /// The bit of the index along the axis that a bit of the source's index is.
    fn along(&self, bit: u32) -> Option<u32> {
        let low = Self::first(&self.source, self.axis);
        bit.checked_sub(low)
            .filter(|&bit| bit < self.source[self.axis])
    }
}

/// How a warp holds the source.
struct Shuffled {
    /// Bits of the register number that are bits of the index along the axis: both.
    registers: Vec<(u32, u32)>,
    /// Bits of the lane number that are: both.
    lanes: Vec<(u32, u32)>,
    /// Bits of the lane number that are other bits of the source's index.
    others: Vec<(u32, u32)>,
    /// Whether the element is in the lane that asks for it.
    own: bool,
}

impl Lowering<'_> {
    pub(super) fn gather_along(&mut self, inst: Inst, op: &op::Gather) -> Result<()> {
        let (x, indices, axis) = (op.x, op.indices, op.axis.index());
        let result = self.block.inst(inst).results[0];
        let layout = self.layout(result);
        let map = Correspondence {
            result: dim_bits(&self.block.ty(result).shape),
            source: dim_bits(&self.block.ty(x).shape),
            axis,
        };
        let extent = 1_i64 << map.source[axis];
        let wanted = self.get(indices);
        let wanted = self.in_range(inst, &wanted, &layout, (axis, extent));
        let from = self.layout(x);
        let registers = match Shuffled::plan(&from, &layout, &map) {
            Some(plan) => {
                let source = self.get(x);
                let source = self.split(&source);
                let wanted = self.split(&wanted);
                let found = self.shuffle_gather(&plan, (&source, &from), (&wanted, &layout), &map);
                self.join(&found)
            }
            None => self.shared_gather(x, &from, (&wanted, &layout), &map)?,
        };
        self.bind(result, registers);
        Ok(())
    }

    /// Checks indices where launches do, and takes them to the nearest in range (`i64`).
    fn in_range(
        &mut self,
        inst: Inst,
        wanted: &Registers,
        layout: &LinearLayout,
        (axis, extent): (usize, i64),
    ) -> Registers {
        let wide = self.map(&[wanted], |builder, index| builder.nearest_index(index[0]));
        if self.bounds == Bounds::Checked {
            self.check_indices(inst, &wide, layout, (axis, extent));
        }
        self.map(&[&wide], |builder, index| {
            let least = builder.bits_like(index[0], DType::I64, 0);
            let greatest = builder.bits_like(index[0], DType::I64, extent as u64 - 1);
            let index = builder.binary(BinaryOp::Minimum, index[0], greatest);
            builder.binary(BinaryOp::Maximum, index, least)
        })
    }

    /// Ends the program where an index is out of range.
    fn check_indices(
        &mut self,
        inst: Inst,
        indices: &Registers,
        layout: &LinearLayout,
        (axis, extent): (usize, i64),
    ) {
        self.wait_to_end();
        let site = self.sites.get(&inst).copied().unwrap_or_default().into();
        let registers = owners(layout);
        let own = self.pick(indices, &registers);
        let unsigned = self.builder.bitcast(own, DType::U64);
        let limit = self.builder.bits_like(own, DType::U64, extent as u64);
        let outside = self.builder.compare(CompareOp::Ge, unsigned, limit);
        let wrong = self.least_wrong(indices, layout, (&registers, outside));
        let stop = Op::StopIndex(op::StopIndex {
            index: wrong.offset,
            element: wrong.element,
            mask: Some(wrong.any),
            axis: Axis(axis as u8),
            extent,
            site,
        });
        self.builder.emit(stop, &[]);
    }

    fn shuffle_gather(
        &mut self,
        plan: &Shuffled,
        (source, from): (&[Value], &LinearLayout),
        (wanted, layout): (&[Value], &LinearLayout),
        map: &Correspondence,
    ) -> Vec<Value> {
        let mut results = Vec::new();
        for (register, &index) in wanted.iter().enumerate() {
            let flat = layout.apply(Point {
                register: register as u32,
                ..Point::default()
            });
            let index = self.builder.cast(index, DType::I32);
            let fixed = plan.fixed_register(from, map.to_source(flat));
            let lane = (!plan.own).then(|| self.source_lane(plan, index, (layout, flat), map));
            let count = plan.registers.len();
            let mut choices: Vec<Value> = (0..1_u32 << count)
                .map(|choice| {
                    let bits = plan.registers.iter().enumerate();
                    let chosen = bits
                        .filter(|(at, _)| choice >> at & 1 == 1)
                        .fold(fixed, |sum, (_, (register, _))| sum | 1 << register);
                    let x = source[chosen as usize];
                    match lane {
                        Some(source_lane) => self
                            .builder
                            .value(Op::ShuffleIndex(op::ShuffleIndex { x, source_lane })),
                        None => x,
                    }
                })
                .collect();
            for &(_, bit) in &plan.registers {
                let mask = self.builder.int32(1 << bit);
                let masked = self.builder.and(index, mask);
                let zero = self.builder.int32(0);
                let high = self.builder.compare(CompareOp::Ne, masked, zero);
                choices = choices
                    .chunks(2)
                    .map(|pair| self.builder.select(high, pair[1], pair[0]))
                    .collect();
            }
            results.push(choices[0]);
        }
        results
    }

    /// The lane that holds the element at an index along the axis.
    fn source_lane(
        &mut self,
        plan: &Shuffled,
        index: Value,
        (layout, constant): (&LinearLayout, u64),
        map: &Correspondence,
    ) -> Value {
        let place = |flat: &u64| {
            let source = map.to_source(*flat);
            let bits = plan.others.iter();
            bits.fold(0, |sum, &(lane, bit)| {
                sum | ((source >> bit & 1) as u32) << lane
            })
        };
        let threads = ThreadMap {
            lane: layout.lane_columns().iter().map(place).collect(),
            warp: layout.warp_columns().iter().map(place).collect(),
        };
        let mut lane = self.thread_value_with(&threads, place(&constant));
        let mut moves: BTreeMap<i64, i32> = BTreeMap::new();
        for &(to, bit) in &plan.lanes {
            *moves.entry(i64::from(to) - i64::from(bit)).or_default() |= 1 << bit;
        }
        for (distance, mask) in moves {
            let mask = self.builder.int32(mask);
            let bits = self.builder.and(index, mask);
            let amount = self.builder.int32(distance.unsigned_abs() as i32);
            let bits = match distance.signum() {
                1 => self.builder.shl(bits, amount),
                -1 => self.builder.shr(bits, amount),
                _ => bits,
            };
            lane = self.builder.or(lane, bits);
        }
        lane
    }

    fn shared_gather(
        &mut self,
        x: Value,
        from: &LinearLayout,
        (wanted, layout): (&Registers, &LinearLayout),
        map: &Correspondence,
    ) -> Result<Registers> {
        let dtype = self.dtype(x)?;
        let (count, size) = (1_i64 << from.tile_bits(), i64::from(dtype.bytes()));
        let source = self.get(x);
        let base = self.shared(dtype, count);
        self.store_tile(base, &source, from)?;
        self.barrier();
        let firsts = self.images(layout, &|flat| map.to_source(flat));
        let amount = u64::from(Correspondence::first(&map.source, map.axis));
        Ok(self.map(&[wanted, &firsts], |builder, values| {
            let amount = builder.bits_like(values[0], DType::I64, amount);
            let along = builder.shl(values[0], amount);
            let offset = builder.add(values[1], along);
            let ty = builder.ty(offset).with_dtype(dtype);
            let op = Op::LaneLoad(op::LaneLoad {
                base,
                offset,
                mask: None,
                other: None,
                align: size,
                cache: None,
            });
            builder.declared(op, ty)
        }))
    }

    /// Stores a tile to shared memory in row-major order, each element by its owner.
    fn store_tile(&mut self, base: Value, values: &Registers, layout: &LinearLayout) -> Result<()> {
        let dtype = self
            .builder
            .ty(base)
            .pointee()
            .map_or(DType::I64, |(dtype, _)| dtype);
        let last = layout.dim_bits().len().saturating_sub(1);
        let run = layout
            .contiguous_register_bits(last)
            .map_err(|error| self.layout_error(&error))?;
        let run = run.min((16 / dtype.bytes()).ilog2());
        let offsets = self.indices(layout, (1 << layout.tile_bits()) - 1);
        let owner = self.all_zero(layout.free_bits());
        let own = owners(layout);
        let starts: Vec<u32> = own.iter().copied().step_by(1 << run).collect();
        let op = Op::LaneStore(op::LaneStore {
            base,
            offset: self.pick(&offsets, &starts),
            value: self.pick(values, &own),
            mask: self.owned_mask(None, owner, starts.len()),
            align: i64::from(dtype.bytes()) << run,
            cache: None,
        });
        self.builder.emit(op, &[]);
        Ok(())
    }
}

impl Shuffled {
    /// The plan, if every warp holds what its lanes may ask for and it is cheap.
    fn plan(from: &LinearLayout, to: &LinearLayout, map: &Correspondence) -> Option<Self> {
        let unit = |column: u64| (column.count_ones() == 1).then(|| column.trailing_zeros());
        let holders: Vec<Holder> = (0..from.tile_bits()).map(|bit| from.holder(bit)).collect();
        if holders.contains(&Holder::Mixed) {
            return None;
        }
        let image = |column: u64| map.to_source(column);
        let mut plan = Self {
            registers: Vec::new(),
            lanes: Vec::new(),
            others: Vec::new(),
            own: true,
        };
        if !has_its_own(from, to, map) {
            return None;
        }
        for (register, &column) in from.register_columns().iter().enumerate() {
            let bit = unit(column)?;
            match map.along(bit) {
                Some(index) => plan.registers.push((register as u32, index)),
                None => {
                    // Every lane asks the same register of the others.
                    let columns = to.lane_columns().iter().chain(to.warp_columns());
                    if columns
                        .into_iter()
                        .any(|&asked| image(asked) >> bit & 1 == 1)
                    {
                        return None;
                    }
                }
            }
        }
        for (lane, (&column, &asked)) in from
            .lane_columns()
            .iter()
            .zip(to.lane_columns())
            .enumerate()
        {
            if column == 0 {
                continue;
            }
            let bit = unit(column)?;
            plan.own &= map.along(bit).is_none() && image(asked) == column;
            match map.along(bit) {
                Some(index) => plan.lanes.push((lane as u32, index)),
                None => plan.others.push((lane as u32, bit)),
            }
        }
        let most = if plan.own { CHOSEN_BITS } else { SHUFFLED_BITS };
        (plan.registers.len() <= most).then_some(plan)
    }

    /// The register that holds an element of the source whose coordinate along the axis is 0.
    fn fixed_register(&self, from: &LinearLayout, flat: u64) -> u32 {
        let columns = from.register_columns().iter().enumerate();
        let held = columns.filter(|(_, column)| flat & **column != 0);
        held.fold(0, |sum, (register, _)| sum | 1 << register)
    }
}

/// Whether no warp asks for what only another one has, whatever its lanes and registers ask for.
fn has_its_own(from: &LinearLayout, to: &LinearLayout, map: &Correspondence) -> bool {
    let dealt = from.warp_columns().iter().fold(0, |all, it| all | it);
    let of_warps = |asked: u64| map.to_source(asked) & dealt;
    let mut inside = to.register_columns().iter().chain(to.lane_columns());
    let along = |column: u64| (0..64).any(|bit| column >> bit & 1 == 1 && map.along(bit).is_some());
    let mut warps = from.warp_columns().iter().zip(to.warp_columns());
    inside.all(|&asked| of_warps(asked) == 0)
        && warps.all(|(&column, &asked)| {
            let same = column == 0 || map.to_source(asked) == column;
            same && of_warps(asked) == column && !along(column)
        })
}
