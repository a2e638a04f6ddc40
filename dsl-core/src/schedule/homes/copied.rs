//! Buffers for operands, and the copies of boxes that fill them.

use crate::ir::index_map::dim_bits;
use crate::ir::{Element, Func, Op, Type, Value, op};
use crate::launch::inner_axis;
use crate::layout::group::{Multiplied, operand_slot};
use crate::layout::{Holder, LinearLayout};

/// Copies a box to a slot.
pub(super) fn copy_of(boxed: &op::LoadBox, buffer: Value, slot: Value) -> Op {
    let boxed = boxed.clone();
    Op::CopyBox(op::CopyBox {
        base: boxed.base,
        origin: boxed.origin,
        extents: boxed.extents,
        strides: boxed.strides,
        along: boxed.along,
        buffer,
        slot,
        released: None,
    })
}

/// A buffer for an operand: what registers hold side by side is so there too, where it may be.
pub(super) fn buffer_of(func: &Func, value: Value, of: Multiplied) -> (Type, LinearLayout) {
    let ty = func.ty(value);
    let bits = dim_bits(&ty.shape);
    let held = func.layout(value).map(|layout| func.linear(layout));
    let is_first = |layout: &LinearLayout| layout.holder(bits[1]) == Holder::Register(0);
    let boxed = func.definitions()[value].and_then(|inst| {
        let Op::LoadBox(op) = func.op(inst) else {
            return None;
        };
        inner_axis(func, &op.strides)
    });
    let inner = boxed.unwrap_or_else(|| usize::from(!held.is_some_and(is_first)));
    let ty = Type {
        element: Element::Buffer(of.dtype, 1),
        shape: ty.shape,
    };
    let layout = operand_slot(&bits, inner, of).or_else(|| operand_slot(&bits, 1 - inner, of));
    let layout = layout.expect("broken invariant: operands of groups of warps fill chunks");
    (ty, layout)
}
