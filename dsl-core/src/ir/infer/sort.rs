//! The type rule of `sort`.

use super::expect::{expect, number};
use crate::ir::{Func, Op, Shape, Type, op};

pub(super) fn infer_sort(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::Sort(op::Sort {
        sources,
        keys,
        axis,
        count,
        ..
    }) = op
    else {
        return Ok(Vec::new());
    };
    let Some(first) = sources.first().map(|&source| func.ty(source)) else {
        return Err("`sort` needs a source".to_string());
    };
    if *keys < 1 || *keys > sources.len() as i64 {
        let found = sources.len();
        return Err(format!(
            "`sort` by {keys} keys, expected 1 to {found}, the number of sources"
        ));
    }
    if axis.index() >= first.shape.rank() {
        return Err(format!("axis {} is out of range for `{first}`", axis.0));
    }
    let mut dims = first.shape.dims();
    let extent = dims[axis.index()];
    let kept = usize::try_from(*count).unwrap_or(0);
    if !kept.is_power_of_two() || kept > extent {
        return Err(format!(
            "`sort` keeps {count} of {extent} elements, expected a power of two up to {extent}"
        ));
    }
    dims[axis.index()] = kept;
    let shape = Shape::new(&dims)?;
    let mut results = Vec::new();
    for &source in sources {
        let ty = func.ty(source);
        number(op, ty)?;
        expect(op, "a source", ty, ty.with_shape(first.shape))?;
        results.push(ty.with_shape(shape));
    }
    Ok(results)
}
