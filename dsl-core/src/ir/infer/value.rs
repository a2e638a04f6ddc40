//! Type rules of ops whose one result follows from the operands.

use super::control::infer_dot;
use super::expect::{expect, number};
use super::lane::infer_lane;
use super::lookup::{infer_gather, infer_histogram};
use super::memory::infer_load;
use crate::ir::{Accepts, DType, Func, MAX_RANK, Op, Shape, Type, Value, op};

/// The type of the one result.
pub(super) fn infer_one(func: &Func, op: &Op) -> Result<Type, String> {
    let ty = |value: &Value| func.ty(*value);
    match op {
        Op::ProgramId(op::ProgramId { axis }) | Op::NumPrograms(op::NumPrograms { axis }) => {
            if axis.0 > 2 {
                return Err(format!("grid axis `{}` is not 0, 1 or 2", axis.0));
            }
            Ok(Type::INDEX)
        }
        Op::Compare(op::Compare { lhs, .. }) => Ok(ty(lhs).with_dtype(DType::Bool)),
        Op::Select(op::Select {
            condition,
            on_true,
            on_false,
        }) => {
            let result = ty(on_true);
            expect(op, "the second alternative", ty(on_false), result)?;
            expect(
                op,
                "the condition",
                ty(condition),
                result.with_dtype(DType::Bool),
            )?;
            number(op, result).map(|_| result)
        }
        Op::Arange(_) | Op::ExpandDims(_) | Op::Transpose(_) => infer_shape(func, op),
        Op::Load(_) => infer_load(func, op),
        Op::Dot(op::Dot {
            a,
            b,
            accumulator,
            precision,
        }) => infer_dot(op, [ty(a), ty(b), ty(accumulator)], *precision),
        Op::Histogram(op::Histogram { x, mask, bins }) => {
            infer_histogram(func, op, (*x, *mask), *bins)
        }
        Op::Gather(op::Gather { x, indices, axis }) => {
            infer_gather(func, op, (*x, *indices), *axis)
        }
        Op::Unary(op::Unary { x, .. })
        | Op::Binary(op::Binary { lhs: x, .. })
        | Op::Ternary(op::Ternary { a: x, .. }) => Ok(ty(x)),
        Op::Function(op::Function { x, .. })
        | Op::Approximate(op::Approximate { x, .. })
        | Op::Raw(op::Raw { lhs: x, .. }) => Ok(ty(x)),
        _ => infer_lane(func, op),
    }
}

fn infer_shape(func: &Func, op: &Op) -> Result<Type, String> {
    let ty = |value: &Value| func.ty(*value);
    match op {
        Op::Arange(op::Arange { start, end }) => {
            let count = end
                .checked_sub(*start)
                .and_then(|count| usize::try_from(count).ok());
            let shape = Shape::new(&[count.unwrap_or(0)])
                .map_err(|reason| format!("`arange` from {start} to {end}: {reason}"))?;
            Ok(Type::tile(DType::I64, shape))
        }
        Op::ExpandDims(op::ExpandDims { x, axis }) => {
            let mut dims = ty(x).shape.dims();
            if axis.index() > dims.len() || dims.len() == MAX_RANK {
                return Err(format!(
                    "`expand_dims` cannot insert axis {} into {}",
                    axis.0,
                    ty(x)
                ));
            }
            dims.insert(axis.index(), 1);
            Ok(ty(x).with_shape(Shape::new(&dims)?))
        }
        Op::Transpose(op::Transpose { x, permutation }) => {
            let dims = ty(x).shape.dims();
            let mut sorted = permutation.clone();
            sorted.sort_unstable();
            if !sorted.iter().copied().eq(0..dims.len() as u32) {
                return Err(format!(
                    "{permutation:?} does not permute the axes of {}",
                    ty(x)
                ));
            }
            let permuted: Vec<usize> = permutation
                .iter()
                .map(|&axis| dims[axis as usize])
                .collect();
            Ok(ty(x).with_shape(Shape::new(&permuted)?))
        }
        _ => Err(format!("`{}` has no inferred type", op.mnemonic())),
    }
}

pub(super) fn check_elementwise(func: &Func, op: &Op) -> Result<(), String> {
    let (mnemonic, accepts): (&str, Accepts) = match op {
        Op::Unary(op::Unary { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Binary(op::Binary { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Ternary(op::Ternary { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Compare(op::Compare { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Raw(op::Raw { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Function(op::Function { op, .. }) => (op.mnemonic(), op.accepts()),
        Op::Approximate(op::Approximate { op, .. }) => (op.mnemonic(), op.accepts()),
        _ => return Ok(()),
    };
    let operands = op.operands();
    let first = func.ty(operands[0]);
    if !first.dtype().is_some_and(|dtype| accepts.admits(dtype)) {
        return Err(format!(
            "`{mnemonic}` takes {}, found `{first}`",
            accepts.words()
        ));
    }
    match operands
        .iter()
        .map(|&value| func.ty(value))
        .find(|&ty| ty != first)
    {
        Some(other) => Err(format!(
            "operands of `{mnemonic}` differ: `{first}` and `{other}`"
        )),
        None => Ok(()),
    }
}
