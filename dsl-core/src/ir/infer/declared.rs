//! Checks of types that are stated where the op is made.

use super::expect::{expect, number};
use super::memory::check_lane_access;
use crate::ir::{Func, Op, Space, Type, Value, op};

/// The most bytes of shared memory: more than any machine has.
const MAX_SHARED: i64 = 1 << 24;

/// The most bytes of a worker's scratch memory.
const MAX_SCRATCH: i64 = 1 << 30;

pub(super) fn check_declared(func: &Func, op: &Op, declared: Type) -> Result<(), String> {
    let ty = |value: &Value| func.ty(*value);
    let shape_error = |x: Type| {
        Err(format!(
            "`{}` cannot make `{declared}` from `{x}`",
            op.mnemonic()
        ))
    };
    match op {
        Op::Constant(op::Constant { value }) => {
            expect(op, "result", declared, declared.with_dtype(value.dtype))
        }
        Op::Cast(op::Cast { x }) => {
            number(op, ty(x))?;
            number(op, declared)?;
            expect(op, "result", declared, declared.with_shape(ty(x).shape))
        }
        Op::RawCast(op::RawCast { x }) => {
            let (from, to) = (number(op, ty(x))?, number(op, declared)?);
            let is_float = from.is_float() && !from.is_narrow_float();
            let is_integer = to.is_integer() && to.bits() >= 32;
            if !is_float || !is_integer || ty(x).shape != declared.shape {
                return shape_error(ty(x));
            }
            Ok(())
        }
        Op::Bitcast(op::Bitcast { x }) => {
            let (from, to) = (number(op, ty(x))?, number(op, declared)?);
            if from.bits() != to.bits() || ty(x).shape != declared.shape {
                return shape_error(ty(x));
            }
            Ok(())
        }
        Op::Splat(op::Splat { x }) => {
            if !ty(x).is_scalar() || number(op, ty(x))? != number(op, declared)? {
                return shape_error(ty(x));
            }
            Ok(())
        }
        Op::Broadcast(op::Broadcast { x }) => {
            let (from, to) = (ty(x).shape, declared.shape);
            let fits = from.rank() == to.rank()
                && from
                    .extents()
                    .iter()
                    .zip(to.extents())
                    .all(|(&a, &b)| a == b || a == 1);
            if fits && ty(x).element == declared.element {
                Ok(())
            } else {
                shape_error(ty(x))
            }
        }
        Op::Reshape(op::Reshape { x }) => {
            let fits = ty(x).shape.elements() == declared.shape.elements();
            if fits && ty(x).element == declared.element {
                Ok(())
            } else {
                shape_error(ty(x))
            }
        }
        Op::LaneLoad(op::LaneLoad {
            base,
            offset,
            mask,
            other,
            align,
        }) => {
            check_lane_access(func, op, *base, *offset, declared, *mask, *align)?;
            other.map_or(Ok(()), |other| expect(op, "`other`", ty(&other), declared))
        }
        Op::Alloc(op::Alloc { offset, count }) => check_alloc(declared, *offset, *count),
        _ => Err(format!("`{}` has no declared type", op.mnemonic())),
    }
}

fn check_alloc(declared: Type, offset: i64, count: i64) -> Result<(), String> {
    let (dtype, most) = match declared.pointee() {
        Some((dtype, Space::Shared)) => (dtype, MAX_SHARED),
        Some((dtype, Space::Scratch)) => (dtype, MAX_SCRATCH),
        Some((_, Space::Global)) | None => {
            return Err(format!(
                "`alloc` makes a shared or scratch pointer, found `{declared}`"
            ));
        }
    };
    let bytes = i64::from(dtype.bytes());
    let size = count.checked_mul(bytes);
    let end = size.and_then(|size| size.checked_add(offset));
    let placed = count >= 1 && offset >= 0 && offset % bytes == 0;
    if placed && end.is_some_and(|end| end <= most) {
        return Ok(());
    }
    Err(format!(
        "`alloc` of {count} `{dtype}` at byte {offset} is misplaced: there are {most} bytes"
    ))
}
