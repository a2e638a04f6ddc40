//! Reductions: each level of the tree is one bit of the index, lowest first.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::tile::Tile;
use super::{Lowering, Result, SHARED_BYTES};
use crate::ir::{BinaryOp, DType, Op, Order, Region, Type, Value};
use crate::layout::{Holder, IndexMap, LinearLayout, ThreadMap};

/// A reduction under way: for each register still alive, the value of every source.
struct Partial {
    registers: BTreeMap<u32, Vec<Value>>,
    /// Lane bits that are reduced or free: lanes that differ in them hold the same values.
    equal_lanes: u32,
    /// The same for warps.
    equal_warps: u32,
}

/// What a reduction combines with.
struct Combiner {
    region: Region,
    /// Whether swapped operands give the same result.
    commutative: bool,
    dtypes: Vec<DType>,
}

impl Lowering<'_> {
    pub(super) fn reduce(
        &mut self,
        results: &[Value],
        sources: &[Value],
        axis: usize,
        (order, region): (Order, Region),
    ) -> Result<()> {
        let layout = self.reduction_layout(sources, axis)?;
        let mut columns = Vec::new();
        for &source in sources {
            columns.push(self.get(source, &layout)?);
        }
        let mut dtypes = Vec::new();
        for &source in sources {
            dtypes.push(self.dtype(source)?);
        }
        let only = self.only_op(region);
        let order = match only {
            Some(op) if is_associative(op, dtypes[0]) => Order::Any,
            Some(_) | None => order,
        };
        let combiner = Combiner {
            region,
            commutative: order == Order::Any || only.is_some_and(BinaryOp::is_commutative),
            dtypes,
        };
        let registers = (0..layout.registers()).map(|register| {
            (
                register,
                columns.iter().map(|c| c[register as usize]).collect(),
            )
        });
        let free = layout.free_bits();
        let mut partial = Partial {
            registers: registers.collect(),
            equal_lanes: free.lane,
            equal_warps: free.warp,
        };
        let levels = self.levels(&layout, axis, order)?;
        let mut rest = levels.as_slice();
        while let Some((&level, after)) = rest.split_first() {
            rest = after;
            match level {
                Holder::Register(bit) => self.across_registers(&mut partial, bit, &combiner)?,
                Holder::Lane(bit) => self.across_lanes(&mut partial, bit, &combiner)?,
                Holder::Warp(bit) => {
                    let mut bits = vec![bit];
                    while let Some((&Holder::Warp(next), after)) = rest.split_first() {
                        bits.push(next);
                        rest = after;
                    }
                    self.across_warps(&mut partial, &bits, &combiner)?;
                }
                Holder::Mixed => return Err(self.error("a reduction over mixed index bits")),
            }
        }
        self.bind_results(results, &layout, axis, &partial)
    }

    fn bind_results(
        &mut self,
        results: &[Value],
        layout: &LinearLayout,
        axis: usize,
        partial: &Partial,
    ) -> Result<()> {
        let map = IndexMap::reduce(layout.dim_bits(), axis);
        let pushed = map.and_then(|map| map.push(layout));
        let (reduced, merged) = pushed.map_err(|error| self.layout_error(&error))?;
        let reduced = Rc::new(reduced);
        for (position, &result) in results.iter().enumerate() {
            let mut registers: Vec<Option<Value>> = vec![None; reduced.registers() as usize];
            for (&register, values) in &partial.registers {
                registers[merged[register as usize] as usize] = Some(values[position]);
            }
            let registers: Option<Vec<Value>> = registers.into_iter().collect();
            let registers = registers.expect("broken invariant: a reduction fills its result");
            self.bind(
                result,
                Tile {
                    layout: Rc::clone(&reduced),
                    registers: registers.into(),
                },
            );
        }
        Ok(())
    }

    /// The layout of the first source, if each bit along the axis has one holder.
    fn reduction_layout(&mut self, sources: &[Value], axis: usize) -> Result<Rc<LinearLayout>> {
        let layout = self.natural(sources[0])?;
        let mask = layout
            .dim_mask(axis)
            .map_err(|error| self.layout_error(&error))?;
        let mut bits = (0..layout.tile_bits()).filter(|bit| mask >> bit & 1 == 1);
        if bits.all(|bit| layout.holder(bit) != Holder::Mixed) {
            return Ok(layout);
        }
        Ok(self.plain(layout.dim_bits()))
    }

    /// What holds each bit along the axis, in the order in which the bits are combined.
    fn levels(&self, layout: &LinearLayout, axis: usize, order: Order) -> Result<Vec<Holder>> {
        let mask = layout
            .dim_mask(axis)
            .map_err(|error| self.layout_error(&error))?;
        let bits = (0..layout.tile_bits()).filter(|bit| mask >> bit & 1 == 1);
        let mut levels: Vec<Holder> = bits.map(|bit| layout.holder(bit)).collect();
        match order {
            Order::Tree => {}
            Order::Any => levels.sort_by_key(|holder| match holder {
                Holder::Register(_) => 0,
                Holder::Lane(_) => 1,
                Holder::Warp(_) | Holder::Mixed => 2,
            }),
        }
        Ok(levels)
    }

    /// The one op of a combine of one source that is no more than that op on its two operands.
    fn only_op(&self, region: Region) -> Option<BinaryOp> {
        let data = self.block.region(region);
        let [first, second] = data.parameters.as_slice() else {
            return None;
        };
        let [inst, _] = data.insts.as_slice() else {
            return None;
        };
        let inst = self.block.inst(*inst);
        match &inst.op {
            Op::Binary { op, lhs, rhs }
                if (lhs, rhs) == (first, second)
                    && self.block.yielded(region) == inst.results.as_slice() =>
            {
                Some(*op)
            }
            _ => None,
        }
    }

    fn combine(
        &mut self,
        combiner: &Combiner,
        lower: &[Value],
        upper: &[Value],
    ) -> Result<Vec<Value>> {
        self.inline(combiner.region, &[lower, upper].concat())
    }

    fn across_registers(
        &mut self,
        partial: &mut Partial,
        bit: u32,
        combiner: &Combiner,
    ) -> Result<()> {
        let registers = std::mem::take(&mut partial.registers);
        for (&register, lower) in registers
            .iter()
            .filter(|(register, _)| *register >> bit & 1 == 0)
        {
            let upper = registers.get(&(register | 1 << bit));
            let upper = upper.expect("broken invariant: both halves of a level are alive");
            partial
                .registers
                .insert(register, self.combine(combiner, lower, upper)?);
        }
        Ok(())
    }

    fn across_lanes(&mut self, partial: &mut Partial, bit: u32, combiner: &Combiner) -> Result<()> {
        let is_upper = (!combiner.commutative).then(|| {
            let lane = (0..5).map(|position| u32::from(position == bit)).collect();
            self.thread_bit(
                &ThreadMap {
                    lane,
                    warp: Vec::new(),
                },
                0,
            )
        });
        let registers = std::mem::take(&mut partial.registers);
        for (register, own) in registers {
            let lane_mask = 1 << bit;
            let other: Vec<Value> = own
                .iter()
                .map(|&x| self.builder.value(Op::ShuffleXor { x, lane_mask }))
                .collect();
            let (mut lower, mut upper) = (own.clone(), other.clone());
            if let Some(is_upper) = is_upper {
                for (source, (&own, &other)) in own.iter().zip(&other).enumerate() {
                    lower[source] = self.builder.select(is_upper, other, own);
                    upper[source] = self.builder.select(is_upper, own, other);
                }
            }
            partial
                .registers
                .insert(register, self.combine(combiner, &lower, &upper)?);
        }
        partial.equal_lanes |= 1 << bit;
        Ok(())
    }

    /// All warps store their partial results, and every warp combines those of the warps that differ
    /// from it in `bits`, the first bit first.
    fn across_warps(
        &mut self,
        partial: &mut Partial,
        bits: &[u32],
        combiner: &Combiner,
    ) -> Result<()> {
        let warp_bits = self.assignment.warp_bits;
        let kept: Vec<u32> = (0..5)
            .filter(|bit| partial.equal_lanes >> bit & 1 == 0)
            .collect();
        let warps_kept: Vec<u32> = (0..warp_bits)
            .filter(|bit| partial.equal_warps >> bit & 1 == 0)
            .collect();
        // Slot: lanes that differ, then warps that differ, then registers.
        let position = |list: &[u32], bit: u32, base: usize| {
            list.iter()
                .position(|&kept| kept == bit)
                .map_or(0, |place| 1 << (base + place))
        };
        let lane: Vec<u32> = (0..5).map(|bit| position(&kept, bit, 0)).collect();
        let warp: Vec<u32> = (0..warp_bits)
            .map(|bit| position(&warps_kept, bit, kept.len()))
            .collect();
        let store = ThreadMap {
            lane: lane.clone(),
            warp: warp.clone(),
        };
        let mut others = warp.clone();
        for &bit in bits {
            others[bit as usize] = 0;
        }
        let load = ThreadMap { lane, warp: others };
        let slots = 1_i64 << (kept.len() + warps_kept.len());
        let buffers = self.buffers(slots * partial.registers.len() as i64, combiner)?;
        let owner = self.all_zero(crate::layout::Point {
            register: 0,
            lane: partial.equal_lanes,
            warp: partial.equal_warps,
        });
        self.begin_shared();
        let registers = std::mem::take(&mut partial.registers);
        for (index, values) in registers.values().enumerate() {
            let offset = self.thread_value_with(&store, index as u32 * slots as u32);
            for (&(base, dtype), &value) in buffers.iter().zip(values) {
                let align = i64::from(dtype.bytes());
                let op = Op::LaneStore {
                    base,
                    offset,
                    value,
                    mask: owner,
                    align,
                };
                self.builder.emit(op, &[]);
            }
        }
        self.publish_shared();
        for (index, &register) in registers.keys().enumerate() {
            let mut tree: Vec<Vec<Value>> = Vec::new();
            for leaf in 0..1_u32 << bits.len() {
                let from = bits
                    .iter()
                    .enumerate()
                    .filter(|(level, _)| leaf >> level & 1 == 1)
                    .fold(0, |sum, (_, &bit)| sum | warp[bit as usize]);
                let offset = self.thread_value_with(&load, index as u32 * slots as u32 + from);
                tree.push(self.load_slot(&buffers, offset));
            }
            while tree.len() > 1 {
                let mut next = Vec::new();
                for pair in tree.chunks(2) {
                    next.push(self.combine(combiner, &pair[0], &pair[1])?);
                }
                tree = next;
            }
            partial.registers.insert(register, tree.swap_remove(0));
        }
        partial.equal_warps |= bits.iter().fold(0, |mask, bit| mask | 1 << bit);
        Ok(())
    }

    fn load_slot(&mut self, buffers: &[(Value, DType)], offset: Value) -> Vec<Value> {
        buffers
            .iter()
            .map(|&(base, dtype)| {
                let align = i64::from(dtype.bytes());
                let op = Op::LaneLoad {
                    base,
                    offset,
                    mask: None,
                    other: None,
                    align,
                };
                self.builder.declared(op, Type::scalar(dtype))
            })
            .collect()
    }

    /// A buffer of `count` elements for each source, widest first so that all are aligned.
    fn buffers(&mut self, count: i64, combiner: &Combiner) -> Result<Vec<(Value, DType)>> {
        let mut order: Vec<usize> = (0..combiner.dtypes.len()).collect();
        order.sort_by_key(|&source| std::cmp::Reverse(combiner.dtypes[source].bytes()));
        let mut placed = vec![None; order.len()];
        let mut offset = 0;
        for source in order {
            let dtype = combiner.dtypes[source];
            placed[source] = Some((self.scratch(dtype, offset, count), dtype));
            offset += count * i64::from(dtype.bytes());
        }
        if offset > i64::from(SHARED_BYTES) {
            let message = format!(
                "a reduction takes {offset} bytes of shared memory, expected at most {SHARED_BYTES}"
            );
            return Err(self.error(message).note("use a smaller tile"));
        }
        Ok(placed.into_iter().flatten().collect())
    }
}

/// Whether any order of combining with `op` gives the same bits, NaN payloads aside.
fn is_associative(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Add | BinaryOp::Mul => !dtype.is_float(),
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => true,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
        BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => false,
    }
}
