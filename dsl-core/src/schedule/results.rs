//! Puts tiles that are stored as boxes of arrays into slots of shared memory, from which bulk copies take them.

use super::PlacedFunc;
use crate::diagnostic::Diagnostics;
use crate::ir::index_map::dim_bits;
use crate::ir::{DType, Element, Func, Inst, Literal, Op, Region, Type, Value, op};
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
                let mut leaving = Leaving {
                    func: &mut func,
                    region,
                    inst,
                };
                leaving.whole(op);
            } else {
                func.region_mut(region).insts.push(inst);
            }
        }
    }
    PlacedFunc::new(func)
}

/// What brings a tile to memory, as it is appended to a region.
struct Leaving<'a> {
    func: &'a mut Func,
    region: Region,
    /// The store.
    inst: Inst,
}

impl Leaving<'_> {
    fn append(&mut self, op: Op, types: &[Type]) -> Option<Value> {
        let loc = self.func.inst(self.inst).loc.clone();
        let made = self.func.add_inst(op, types, loc);
        self.func.region_mut(self.region).insts.push(made);
        self.func.inst(made).results.first().copied()
    }

    fn value(&mut self, op: Op, ty: Type) -> Value {
        let made = self.append(op, &[ty]);
        made.expect("broken invariant: the op has a result")
    }

    fn whole(&mut self, op: op::StoreBox) {
        let ty = self.func.ty(op.value);
        let dtype = ty.dtype().unwrap_or(DType::F32);
        let number = Literal::from_bits(DType::I32, 0);
        let slot = self.value(
            Op::Constant(op::Constant { value: number }),
            Type::scalar(DType::I32),
        );
        let of_buffer = Type {
            element: Element::Buffer(dtype, 1),
            shape: ty.shape,
        };
        let buffer = self.value(Op::Buffer(op::Buffer { behind: None }), of_buffer);
        let inner = inner_axis(self.func, &op.strides);
        let layout = inner.and_then(|inner| result_slot(&dim_bits(&ty.shape), inner, dtype));
        let layout = layout.expect("broken invariant: a box that is stored fills chunks");
        let layout = self.func.intern(layout);
        self.func.set_layout(buffer, Some(layout));
        let value = op.value;
        self.append(
            Op::SlotStore(op::SlotStore {
                value,
                buffer,
                slot,
            }),
            &[],
        );
        self.append(Op::ProxyFence(op::ProxyFence {}), &[]);
        self.append(Op::Barrier(op::Barrier {}), &[]);
        let copy = op::CopySlot {
            buffer,
            slot,
            base: op.base,
            origin: op.origin,
            extents: op.extents,
            strides: op.strides,
        };
        self.append(Op::CopySlot(copy), &[]);
        self.append(Op::WaitSlots(op::WaitSlots { pending: 0 }), &[]);
    }
}
