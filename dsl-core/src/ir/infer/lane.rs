//! Type rules of the lane stage's own ops.

use super::expect::{at_least, expect, number, pointer, scalar_index};
use super::memory::check_outside;
use crate::ir::{DType, Func, Op, Shape, Type, Value, op};

/// The type of the one result of a lane op.
pub(super) fn infer_lane(func: &Func, op: &Op) -> Result<Type, String> {
    let ty = |value: &Value| func.ty(*value);
    match op {
        Op::LaneId(op::LaneId {}) | Op::WarpId(op::WarpId {}) => Ok(Type::scalar(DType::I32)),
        Op::CheckBounds(op::CheckBounds {
            base,
            offset,
            element,
            mask,
            count,
            site,
        }) => {
            check_outside(func, op, [*base, *offset, *element], *mask)?;
            at_least(op, "count", *count, 1)?;
            at_least(op, "site", *site, 0)?;
            Ok(Type::BOOL)
        }
        Op::InBounds(op::InBounds {
            base,
            offset,
            count,
        }) => {
            pointer(op, ty(base))?;
            at_least(op, "count", *count, 1)?;
            scalar_index(op, "offset", ty(offset))?;
            Ok(Type::BOOL)
        }
        Op::ShuffleIndex(op::ShuffleIndex { x, source_lane }) => {
            expect(op, "source lane", ty(source_lane), Type::scalar(DType::I32))?;
            Ok(ty(x))
        }
        Op::Extract(op::Extract { vector, index }) => {
            let shape = ty(vector).shape;
            if shape.rank() != 1 || !(0..shape.elements() as i64).contains(index) {
                return Err(format!(
                    "`extract` cannot take element {index} of {}",
                    ty(vector)
                ));
            }
            Ok(ty(vector).with_shape(Shape::SCALAR))
        }
        Op::Vector(op::Vector { elements }) => {
            let Some(first) = elements.first().map(ty) else {
                return Err("`vector` needs elements".to_string());
            };
            number(op, first)?;
            for element in elements {
                expect(op, "an element", ty(element), first)?;
            }
            Ok(first.with_shape(Shape::new(&[elements.len()])?))
        }
        Op::ShuffleVector(op::ShuffleVector { a, b, indices }) => {
            expect(op, "the second vector", ty(b), ty(a))?;
            let lanes = 2 * ty(a).shape.elements() as u32;
            match indices.iter().find(|&&index| index >= lanes) {
                Some(index) => Err(format!(
                    "`shuffle_vector` index {index} is not below {lanes}"
                )),
                None => Ok(ty(a).with_shape(Shape::new(&[indices.len()])?)),
            }
        }
        Op::WarpReduce(op::WarpReduce { x, .. }) => match number(op, ty(x))? {
            DType::I32 | DType::U32 => Ok(ty(x)),
            dtype => Err(format!(
                "`warp_reduce` takes `i32` or `u32`, found `{dtype}`"
            )),
        },
        Op::ShuffleXor(op::ShuffleXor { x, lane_mask }) => {
            if (1..32).contains(lane_mask) {
                Ok(ty(x))
            } else {
                Err(format!(
                    "`shuffle_xor` lane mask `{lane_mask}` is not in 1..32"
                ))
            }
        }
        _ => Err(format!("`{}` has no inferred type", op.mnemonic())),
    }
}
