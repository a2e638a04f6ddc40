//! Stores of boxes: results of products, which lie in registers as tensor cores leave them. Lanes would bring them through
//! shared memory to be stored side by side; a bulk copy takes them from there.

use std::collections::BTreeSet;

use super::{Array, Known, Share, shared_by_groups};
use crate::entity::EntityMap;
use crate::ir::index_map::dim_bits;
use crate::ir::op::Control;
use crate::ir::operand::{PIECE_ROW_BITS, chunk_bits};
use crate::ir::{Cache, DType, Func, Inst, Op, Region, Shape, Trait, Value, op};
use crate::launch::inner_axis;

/// Bytes of shared memory that are left for barriers beside a result.
const BESIDE: u64 = 1024;

/// A result in a loop takes at most one part of so many of shared memory, which it shares with the operands of the next one.
const PARTS_BESIDE_OPERANDS: u64 = 3;

/// The stores of what follows from the sums of a product by groups of so many warps, element by element.
pub(super) fn results(func: &Func, share: Share) -> Vec<Inst> {
    let warp_bits = share.warps.trailing_zeros();
    let shared = |op: &op::Dot| shared_by_groups(func, op, warp_bits, share.shared_bytes);
    let mut insts = func.all_insts().into_iter();
    // What a program hands to others it must have written for them all.
    if insts.any(|inst| func.op(inst).memory_order().is_some()) {
        return Vec::new();
    }
    let sums = Sums {
        func,
        definitions: func.definitions(),
        is_product: &|inst| matches!(func.op(inst), Op::Dot(op) if shared(op).is_some()),
    };
    let insts = func.all_insts().into_iter();
    let stores =
        insts.filter(|&inst| matches!(func.op(inst), Op::Store(op) if sums.lead_to(op.value)));
    stores.collect()
}

/// Whether a bulk copy takes a box that is stored here. In a loop it is under way while the next iteration runs, beside which the
/// program may not end.
pub(super) fn is_taken(
    func: &Func,
    op: &op::StoreBox,
    share: Share,
    may_end: &dyn Fn(&Op) -> bool,
) -> bool {
    let ty = func.ty(op.value);
    let inner = inner_axis(func, &op.strides);
    let slot = inner.zip(ty.dtype());
    let loops = loops_that_touch(func, op.base);
    let in_loop = !loops.is_empty();
    let mut ends = false;
    for region in loops.into_iter().flatten() {
        func.walk(region, &mut |inst| ends |= may_end(func.op(inst)));
    }
    slot.is_some_and(|(inner, dtype)| fits((ty.shape, inner, dtype), in_loop, share))
        && is_alone(func, op.base)
        && !ends
}

/// The regions of each loop that touches what is at a pointer.
fn loops_that_touch(func: &Func, base: Value) -> Vec<Vec<Region>> {
    let loops = func.all_insts().into_iter().filter_map(|inst| {
        let op = func.op(inst);
        let loops = matches!(op.control(), Some(Control::For(_) | Control::While(_)));
        loops.then(|| op.regions())
    });
    let touches = |regions: &Vec<Region>| {
        let mut found = false;
        for &region in regions {
            func.walk(region, &mut |inner| {
                found |= func.op(inner).operands().contains(&base);
            });
        }
        found
    };
    loops.filter(touches).collect()
}

/// Whether shared memory holds a tile as bulk copies take it: all of it, or in a loop, beside operands, two parts if its rows can
/// be cut.
fn fits((shape, inner, dtype): (Shape, usize, DType), in_loop: bool, share: Share) -> bool {
    let bits = dim_bits(&shape);
    if bits.len() != 2 || bits[inner] < chunk_bits(dtype) || bits[1 - inner] < PIECE_ROW_BITS {
        return false;
    }
    let cut = in_loop && inner == 1;
    let columns = match cut {
        true => bits[inner].min(chunk_bits(dtype) + 1),
        false => bits[inner],
    };
    let bytes = u64::from(dtype.bytes()) << (bits[1 - inner] + columns);
    let parts = if in_loop { PARTS_BESIDE_OPERANDS } else { 1 };
    bytes * parts + BESIDE <= u64::from(share.shared_bytes)
}

/// Whether a program touches what is at a pointer by one op at most: a bulk copy comes in no order with others, but with those
/// of its own op in the iterations before. Of the branches of an `if` in a loop each may come in turn.
fn is_alone(func: &Func, base: Value) -> bool {
    if loops_that_touch(func, base).is_empty() {
        return touches(func, func.body(), base) <= 1;
    }
    let insts = func.all_insts().into_iter();
    let touching = insts.filter(|&inst| func.op(inst).operands().contains(&base));
    touching.count() <= 1
}

/// By how many ops a run of a region touches what is at a pointer, at most.
fn touches(func: &Func, region: Region, base: Value) -> usize {
    let of = |region: Region| touches(func, region, base);
    let insts = func.region(region).insts.iter();
    let each = insts.map(|&inst| {
        let own = func.op(inst).operands().contains(&base);
        let inner = match func.op(inst).control() {
            Some(Control::If(op)) => of(op.on_true).max(of(op.on_false)),
            Some(Control::For(_) | Control::While(_)) | None => {
                func.op(inst).regions().into_iter().map(of).sum()
            }
        };
        usize::from(own) + inner
    });
    each.sum()
}

struct Sums<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    is_product: &'a dyn Fn(Inst) -> bool,
}

impl Sums<'_> {
    /// Whether a value follows from the sums of a product, element by element.
    fn lead_to(&self, value: Value) -> bool {
        let func = self.func;
        let elements = func.ty(value).shape.elements();
        let mut seen = BTreeSet::new();
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            if !seen.insert(value) {
                continue;
            }
            let Some(inst) = self.definitions[value] else {
                continue;
            };
            let op = func.op(inst);
            // A part of the sums, or a sum for many elements, may lie anyhow.
            if (self.is_product)(inst) && func.ty(value).shape.elements() == elements {
                return true;
            }
            if op.is(Trait::pointwise) {
                pending.extend(op.operands());
            } else if !matches!(op, Op::While(_)) {
                let carried = func.carried(inst).into_iter();
                let handed = carried.filter(|carried| carried.result == value);
                pending.extend(handed.flat_map(|carried| carried.yielded));
            }
        }
        false
    }
}

impl Known<'_> {
    /// The array that a store writes a box of.
    pub(super) fn stored(&self, store: Inst, share: Share) -> Option<Array> {
        let Op::Store(op) = self.func.op(store) else {
            return None;
        };
        if op.cache == Some(Cache::Volatile) || !is_alone(self.func, op.base) {
            return None;
        }
        let array = self.in_box(op.offsets, op.mask?)?;
        let ty = self.func.ty(op.value);
        let in_loop = !loops_that_touch(self.func, op.base).is_empty();
        if in_loop && !array.ends.is_empty() {
            return None;
        }
        fits((ty.shape, array.inner()?, ty.dtype()?), in_loop, share).then_some(array)
    }
}
