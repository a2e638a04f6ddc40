//! Type rules of ops that own regions, and of `dot`.

use super::expect::{expect, number, region_types};
use crate::ir::{Axis, DType, Func, Op, Precision, Region, Type, Value, op};

pub(super) fn infer_reduce(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::Reduce(op::Reduce {
        sources,
        axis,
        combine,
        ..
    }) = op
    else {
        return Ok(Vec::new());
    };
    check_combined(func, op, (sources, *axis), *combine)?;
    let reduced = sources.iter().map(|&source| {
        let ty = func.ty(source);
        ty.with_shape(ty.shape.without(axis.index()))
    });
    Ok(reduced.collect())
}

pub(super) fn infer_scan(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::Scan(op::Scan {
        sources,
        axis,
        combine,
        ..
    }) = op
    else {
        return Ok(Vec::new());
    };
    check_combined(func, op, (sources, *axis), *combine)?;
    Ok(region_types(func, sources))
}

/// What `reduce` and `scan` ask of their sources, axis and combiner.
fn check_combined(
    func: &Func,
    op: &Op,
    (sources, axis): (&[Value], Axis),
    combine: Region,
) -> Result<(), String> {
    let name = op.mnemonic();
    let Some(first) = sources.first().map(|&source| func.ty(source)) else {
        return Err(format!("`{name}` needs a source"));
    };
    if axis.index() >= first.shape.rank() {
        return Err(format!("axis {} is out of range for `{first}`", axis.0));
    }
    let mut elements = Vec::new();
    for &source in sources {
        let ty = func.ty(source);
        expect(op, "a source", ty, ty.with_shape(first.shape))?;
        elements.push(Type::scalar(number(op, ty)?));
    }
    let parameters = region_types(func, &func.region(combine).parameters);
    let expected = [elements.clone(), elements.clone()].concat();
    if parameters != expected {
        return Err(format!(
            "combiner of `{name}` takes {parameters:?}, expected {expected:?}"
        ));
    }
    check_yield(func, op, combine, &elements)
}

fn check_yield(func: &Func, op: &Op, region: Region, expected: &[Type]) -> Result<(), String> {
    let found = region_types(func, func.yielded(region));
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(a, b)| a == b || a.is_poison() || b.is_poison());
    if same {
        return Ok(());
    }
    Err(format!(
        "a region of `{}` yields {found:?}, expected {expected:?}",
        op.mnemonic()
    ))
}

pub(super) fn check_loop(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    match op {
        Op::For(op::For {
            lower,
            upper,
            init,
            step,
            body,
            ..
        }) => {
            expect(op, "lower bound", func.ty(*lower), Type::INDEX)?;
            expect(op, "upper bound", func.ty(*upper), Type::INDEX)?;
            if *step < 1 {
                return Err(format!("step `{step}` of `for` is not positive"));
            }
            let carried = region_types(func, init);
            let parameters = region_types(func, &func.region(*body).parameters);
            let expected = [vec![Type::INDEX], carried.clone()].concat();
            if parameters != expected {
                return Err(format!(
                    "body of `for` takes {parameters:?}, expected {expected:?}"
                ));
            }
            check_yield(func, op, *body, &carried)?;
            Ok(carried)
        }
        Op::While(op::While { init, before, body }) => {
            let carried = region_types(func, init);
            for region in [before, body] {
                let parameters = region_types(func, &func.region(*region).parameters);
                if parameters != carried {
                    return Err(format!(
                        "a region of `while` takes {parameters:?}, expected {carried:?}"
                    ));
                }
            }
            check_yield(
                func,
                op,
                *before,
                &[vec![Type::BOOL], carried.clone()].concat(),
            )?;
            check_yield(func, op, *body, &carried)?;
            Ok(carried)
        }
        _ => Ok(Vec::new()),
    }
}

pub(super) fn check_if(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::If(op::If {
        condition,
        on_true,
        on_false,
    }) = op
    else {
        return Ok(Vec::new());
    };
    expect(op, "condition", func.ty(*condition), Type::BOOL)?;
    for region in [on_true, on_false] {
        if !func.region(*region).parameters.is_empty() {
            return Err("a region of `if` takes no parameters".to_string());
        }
    }
    let types = region_types(func, func.yielded(*on_true));
    check_yield(func, op, *on_false, &types)?;
    Ok(types)
}

pub(super) fn infer_dot(op: &Op, types: [Type; 3], precision: Precision) -> Result<Type, String> {
    let [a, b, accumulator] = types;
    let Precision::Ieee = precision;
    let dtype = number(op, a)?;
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(format!(
            "`dot` with precision `ieee` takes f32 or f64, found `{a}`"
        ));
    }
    let shapes = [a.shape.dims(), b.shape.dims(), accumulator.shape.dims()];
    let [[m, k], [k2, n], [m2, n2]] = [&shapes[0][..], &shapes[1][..], &shapes[2][..]] else {
        return Err(format!(
            "`dot` takes matrices, found `{a}`, `{b}` and `{accumulator}`"
        ));
    };
    if k != k2 || m != m2 || n != n2 {
        return Err(format!("`dot` cannot add `{a}` x `{b}` to `{accumulator}`"));
    }
    if b.dtype() != Some(dtype) || accumulator.dtype() != Some(dtype) {
        return Err(format!(
            "operands of `dot` differ: `{a}`, `{b}` and `{accumulator}`"
        ));
    }
    Ok(accumulator)
}
