//! Type rules of ops that look elements up: counts and gathers.

use super::expect::{check_mask, number};
use crate::ir::{Axis, Class, DType, Func, Op, Shape, Type, Value};

/// The most bins: several copies of their counters still make a tile.
const MAX_BINS: i64 = 1 << 20;

fn integer(op: &Op, what: &str, ty: Type) -> Result<DType, String> {
    let dtype = number(op, ty)?;
    if matches!(dtype.class(), Class::Signed | Class::Unsigned) {
        return Ok(dtype);
    }
    Err(format!(
        "{what} of `{}` are `{ty}`, expected integers",
        op.mnemonic()
    ))
}

/// The counts of `0..bins`.
pub(super) fn infer_histogram(
    func: &Func,
    op: &Op,
    (x, mask): (Value, Option<Value>),
    bins: i64,
) -> Result<Type, String> {
    let ty = func.ty(x);
    integer(op, "elements", ty)?;
    check_mask(op, ty, mask.map(|mask| func.ty(mask)))?;
    if bins > MAX_BINS {
        return Err(format!(
            "`histogram` with {bins} bins, expected at most {MAX_BINS}: count parts of them"
        ));
    }
    let extent = usize::try_from(bins).unwrap_or(0);
    let shape = Shape::new(&[extent]);
    let shape = shape.map_err(|reason| format!("`histogram` with {bins} bins: {reason}"))?;
    Ok(Type::tile(DType::I32, shape))
}

/// The number type of `x` in the shape of the indices.
pub(super) fn infer_gather(
    func: &Func,
    op: &Op,
    (x, indices): (Value, Value),
    axis: Axis,
) -> Result<Type, String> {
    let (x, indices) = (func.ty(x), func.ty(indices));
    number(op, x)?;
    integer(op, "indices", indices)?;
    if axis.index() >= x.shape.rank() {
        return Err(format!("axis {} is out of range for `{x}`", axis.0));
    }
    let fits = x.shape.rank() == indices.shape.rank()
        && x.shape.without(axis.index()) == indices.shape.without(axis.index());
    if !fits {
        return Err(format!(
            "indices of `gather` are `{indices}`, expected the shape of `{x}` but for axis {}",
            axis.0
        ));
    }
    Ok(x.with_shape(indices.shape))
}
