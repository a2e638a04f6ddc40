//! Puts tiles that are stored as boxes of arrays into slots of shared memory, from which bulk copies take them.

use super::PlacedFunc;
use super::append::Appender;
use crate::diagnostic::Diagnostics;
use crate::ir::index_map::dim_bits;
use crate::ir::{DType, Element, Func, Inst, Op, Type, op};
use crate::launch::inner_axis;
use crate::layout::group::result_slot;

/// Makes a `copy_slot` of each `store_box`, behind what brings the tile there, and waits for it.
///
/// # Errors
/// None that the function did not have before.
pub fn results(func: PlacedFunc) -> Result<PlacedFunc, Diagnostics> {
    let is_stored = |func: &Func, inst: Inst| matches!(func.op(inst), Op::StoreBox(_));
    if !func.all_insts().iter().any(|&inst| is_stored(&func, inst)) {
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
                copied(at, op);
            } else {
                func.region_mut(region).insts.push(inst);
            }
        }
    }
    PlacedFunc::new(func)
}

/// Appends what brings a tile to memory.
fn copied(mut at: Appender<'_>, op: op::StoreBox) {
    let ty = at.func.ty(op.value);
    let dtype = ty.dtype().unwrap_or(DType::F32);
    let slot = at.int32(0);
    let of_buffer = Type {
        element: Element::Buffer(dtype, 1),
        shape: ty.shape,
    };
    let buffer = at.value(Op::Buffer(op::Buffer { behind: None }), of_buffer);
    let inner = inner_axis(at.func, &op.strides);
    let layout = inner.and_then(|inner| result_slot(&dim_bits(&ty.shape), inner, dtype));
    let layout = layout.expect("broken invariant: a box that is stored fills chunks");
    let layout = at.func.intern(layout);
    at.func.set_layout(buffer, Some(layout));
    let value = op.value;
    at.append(
        Op::SlotStore(op::SlotStore {
            value,
            buffer,
            slot,
        }),
        &[],
    );
    at.append(Op::ProxyFence(op::ProxyFence {}), &[]);
    at.append(Op::Barrier(op::Barrier {}), &[]);
    let copy = op::CopySlot {
        buffer,
        slot,
        base: op.base,
        origin: op.origin,
        extents: op.extents,
        strides: op.strides,
    };
    at.append(Op::CopySlot(copy), &[]);
    at.append(Op::WaitSlots(op::WaitSlots { pending: 0 }), &[]);
}
