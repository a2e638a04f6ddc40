//! Puts tiles that are stored as boxes of arrays into slots of shared memory, from which bulk copies take them.

use super::PlacedFunc;
use std::collections::BTreeMap;

use super::append::Appender;
use super::nest::loops_around;
use super::read_back::{insert_after, insert_before};
use crate::diagnostic::Diagnostics;
use crate::ir::index_map::dim_bits;
use crate::ir::operand::chunk_bits;
use crate::ir::{Bits, DType, Element, Func, Inst, Op, Shape, Type, Value, op};
use crate::launch::inner_axis;
use crate::layout::group::result_slot;
use crate::layout::{Holder, LinearLayout};

/// Makes a `copy_slot` of each `store_box`, behind what brings the tile there, and waits for it.
///
/// # Errors
/// None that the function did not have before.
pub fn results(func: PlacedFunc) -> Result<PlacedFunc, Diagnostics> {
    let stored = |&inst: &Inst| matches!(func.op(inst), Op::StoreBox(_));
    let around = func.all_insts().into_iter().filter(stored);
    let around = around.map(|inst| (inst, loops_around(&func, inst)));
    let around: BTreeMap<Inst, Vec<Inst>> = around.collect();
    if around.is_empty() {
        return Ok(func);
    }
    let mut func = func.into_inner();
    for region in func.all_regions() {
        for inst in std::mem::take(&mut func.region_mut(region).insts) {
            if let Op::StoreBox(op) = func.op(inst).clone() {
                let at = Appender {
                    func: &mut func,
                    region,
                    inst,
                };
                copied(at, &op, &around[&inst]);
            } else {
                func.region_mut(region).insts.push(inst);
            }
        }
    }
    PlacedFunc::new(func)
}

/// Appends what brings a tile to memory, in one copy, or in a loop in parts by two slots in turns: memory is short there, where
/// operands of the next iteration come beside the results of this one.
fn copied(mut at: Appender<'_>, op: &op::StoreBox, around: &[Inst]) {
    let inner = inner_axis(at.func, &op.strides);
    let inner = inner.expect("broken invariant: a box that is stored has an inner axis");
    let parts = match around.is_empty() {
        true => None,
        false => Parts::of(at.func, op.value, inner),
    };
    let parts = parts.unwrap_or_else(|| Parts::whole(at.func, op.value));
    let first = at.int32(0);
    let buffer = parts.buffer(&mut at, inner);
    if let Some(&outermost) = around.first() {
        let made = at.func.region_mut(at.region).insts.pop();
        insert_before(at.func, outermost, made.into_iter().collect());
        // What the iteration before has written comes first.
        at.append(Op::WaitWritten(op::WaitWritten {}), &[]);
        at.append(Op::Barrier(op::Barrier {}), &[]);
    }
    let held = parts.held(&mut at, op.value);
    for part in 0..parts.count {
        if part >= 2 {
            at.append(Op::WaitSlots(op::WaitSlots { pending: 1 }), &[]);
            at.append(Op::Barrier(op::Barrier {}), &[]);
        }
        let slot = match part % 2 {
            0 => first,
            _ => at.int32(1),
        };
        let value = parts.value(&mut at, held, part);
        let store = op::SlotStore {
            value,
            buffer,
            slot,
        };
        at.append(Op::SlotStore(store), &[]);
        at.append(Op::ProxyFence(op::ProxyFence {}), &[]);
        at.append(Op::Barrier(op::Barrier {}), &[]);
        let mut origin = op.origin.clone();
        if part > 0 {
            let step = at.index(part as i64 * parts.shape.extent(inner) as i64);
            origin[inner] = at.sum(origin[inner], step);
        }
        let copy = op::CopySlot {
            buffer,
            slot,
            base: op.base,
            origin,
            extents: op.extents.clone(),
            strides: op.strides.clone(),
        };
        at.append(Op::CopySlot(copy), &[]);
    }
    let read = Op::WaitSlots(op::WaitSlots { pending: 0 });
    if let Some(&outermost) = around.first() {
        let loc = at.func.inst(at.inst).loc.clone();
        let wait = at.func.add_inst(read, &[], loc);
        insert_after(at.func, outermost, wait);
    } else {
        at.append(read, &[]);
    }
}

/// How a tile is cut to be copied.
struct Parts {
    dtype: DType,
    shape: Shape,
    count: usize,
    shown: Option<Shown>,
}

/// What a part shows of a tile.
struct Shown {
    /// Which bits of an index of the tile those of an index of a part are.
    bits: Bits,
    /// Where the elements of a part lie.
    layout: LinearLayout,
    /// Where those of the tile lie: in the same registers, those of a part next to each other.
    whole: LinearLayout,
}

impl Parts {
    /// All of it.
    fn whole(func: &Func, value: Value) -> Self {
        let ty = func.ty(value);
        Self {
            dtype: ty.dtype().unwrap_or(DType::F32),
            shape: ty.shape,
            count: 1,
            shown: None,
        }
    }

    /// A chunk of each row, where each lane has elements of all parts: then a part is some of its registers.
    fn of(func: &Func, value: Value, inner: usize) -> Option<Self> {
        let ty = func.ty(value);
        let dtype = ty.dtype()?;
        let layout = func.linear(func.layout(value)?);
        let &[rows, columns] = &dim_bits(&ty.shape)[..] else {
            return None;
        };
        let chunk = chunk_bits(dtype);
        let cut = chunk..columns;
        let is_held = |bit: u32| matches!(layout.holder(bit), Holder::Register(_));
        if inner != 1 || cut.is_empty() || !cut.clone().all(is_held) {
            return None;
        }
        let is_cut = |column: &u64| cut.clone().any(|bit| *column == 1 << bit);
        let others = |all: &[u64]| -> Vec<u64> {
            let low = (1 << chunk) - 1;
            let kept = all.iter().filter(|column| !is_cut(column));
            kept.map(|column| column & low | column >> columns << chunk)
                .collect()
        };
        let registers = layout.register_columns().iter().copied();
        let kept = registers.filter(|column| !is_cut(column));
        let whole = LinearLayout::new(
            vec![rows, columns],
            kept.chain(cut.clone().map(|bit| 1 << bit)).collect(),
            layout.lane_columns().to_vec(),
            layout.warp_columns().to_vec(),
        );
        let layout = LinearLayout::new(
            vec![rows, chunk],
            others(layout.register_columns()),
            others(layout.lane_columns()),
            others(layout.warp_columns()),
        );
        let bits = (0..chunk).chain(columns..columns + rows);
        let bits = bits.map(|bit| Some(bit as u8)).collect();
        Some(Self {
            dtype,
            shape: Shape::new(&[1 << rows, 1 << chunk]).ok()?,
            count: 1 << (columns - chunk),
            shown: Some(Shown {
                bits,
                layout: layout.ok()?,
                whole: whole.ok()?,
            }),
        })
    }

    /// Slots for parts, two at most.
    fn buffer(&self, at: &mut Appender<'_>, inner: usize) -> Value {
        let ty = Type {
            element: Element::Buffer(self.dtype, self.count.min(2) as u8),
            shape: self.shape,
        };
        let buffer = at.value(Op::Buffer(op::Buffer { behind: None }), ty);
        let layout = result_slot(&dim_bits(&self.shape), inner, self.dtype);
        let layout = layout.expect("broken invariant: a box that is stored fills chunks");
        let layout = at.func.intern(layout);
        at.func.set_layout(buffer, Some(layout));
        buffer
    }

    /// A tile with the registers of a part next to each other: other names for what a lane holds.
    fn held(&self, at: &mut Appender<'_>, x: Value) -> Value {
        let Some(Shown { whole, .. }) = &self.shown else {
            return x;
        };
        let whole = at.func.intern(whole.clone());
        if at.func.layout(x) == Some(whole) {
            return x;
        }
        let ty = at.func.ty(x);
        let value = at.value(Op::Convert(op::Convert { x }), ty);
        at.func.set_layout(value, Some(whole));
        value
    }

    /// A part of a tile.
    fn value(&self, at: &mut Appender<'_>, x: Value, part: usize) -> Value {
        let Some(Shown { bits, layout, .. }) = &self.shown else {
            return x;
        };
        let view = op::View {
            x,
            bits: bits.clone(),
            offset: (part as i64) << chunk_bits(self.dtype),
        };
        let ty = at.func.ty(x).with_shape(self.shape);
        let value = at.value(Op::View(view), ty);
        let layout = at.func.intern(layout.clone());
        at.func.set_layout(value, Some(layout));
        value
    }
}
