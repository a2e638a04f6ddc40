//! The types that an op's results have, and what is wrong when they have none.
//!
//! The builder and the verifier both call [`infer`]; there is no second statement of these rules.

use super::{
    Accepts, Axis, DType, Func, MAX_RANK, Op, Precision, Region, Rule, Shape, Space, Type, Value,
};

/// The result types of `op`. `declared` are the types stated where the op is made; rules that infer
/// ignore them. An error is a message without location. Poisoned operands give a poisoned result.
pub fn infer(func: &Func, op: &Op, declared: &[Type]) -> Result<Vec<Type>, String> {
    let mut poisoned = false;
    op.visit_operands(&mut |value| poisoned |= func.ty(value).is_poison());
    if poisoned {
        return Ok(vec![Type::POISON; result_count(op, declared)]);
    }
    check_elementwise(func, op)?;
    match op.rule() {
        Rule::none => check_effect(func, op).map(|()| Vec::new()),
        Rule::declared => {
            let [ty] = declared else {
                return Err(format!(
                    "`{}` has one result, found {}",
                    op.mnemonic(),
                    declared.len()
                ));
            };
            check_declared(func, op, *ty).map(|()| vec![*ty])
        }
        Rule::store => check_store(func, op).map(|()| Vec::new()),
        Rule::carried => check_loop(func, op),
        Rule::yielded => check_if(func, op),
        Rule::reduce => infer_reduce(func, op),
        Rule::index
        | Rule::index32
        | Rule::condition
        | Rule::like_first
        | Rule::compare
        | Rule::arange
        | Rule::select
        | Rule::expand_dims
        | Rule::transpose
        | Rule::load
        | Rule::dot
        | Rule::extract
        | Rule::vector
        | Rule::shuffle_vector => infer_one(func, op).map(|ty| vec![ty]),
    }
}

/// The number of results of `op`, whatever their types.
pub fn result_count(op: &Op, declared: &[Type]) -> usize {
    match op {
        Op::Reduce { sources, .. } => sources.len(),
        Op::For { init, .. } | Op::While { init, .. } => init.len(),
        Op::If { .. } => declared.len(),
        Op::Store { .. } | Op::LaneStore { .. } | Op::Barrier {} | Op::Yield { .. } => 0,
        _ => 1,
    }
}

fn infer_one(func: &Func, op: &Op) -> Result<Type, String> {
    let ty = |value: &Value| func.ty(*value);
    match op {
        Op::ProgramId { axis } | Op::NumPrograms { axis } => {
            if axis.0 > 2 {
                return Err(format!("grid axis `{}` is not 0, 1 or 2", axis.0));
            }
            Ok(Type::INDEX)
        }
        Op::LaneId {} | Op::WarpId {} => Ok(Type::scalar(DType::I32)),
        Op::CheckBounds {
            base,
            offset,
            element,
            mask,
            ..
        } => {
            pointer(op, ty(base))?;
            scalar_index(op, "offset", ty(offset))?;
            scalar_index(op, "element", ty(element))?;
            mask.map_or(Ok(()), |mask| expect(op, "mask", ty(&mask), Type::BOOL))?;
            Ok(Type::BOOL)
        }
        Op::ShuffleIndex { x, source_lane } => {
            expect(op, "source lane", ty(source_lane), Type::scalar(DType::I32))?;
            Ok(ty(x))
        }
        Op::Compare { lhs, .. } => Ok(ty(lhs).with_dtype(DType::Bool)),
        Op::Arange { start, end } => {
            let count = end
                .checked_sub(*start)
                .and_then(|count| usize::try_from(count).ok());
            let shape = Shape::new(&[count.unwrap_or(0)])
                .map_err(|reason| format!("`arange` from {start} to {end}: {reason}"))?;
            Ok(Type::tile(DType::I64, shape))
        }
        Op::Select {
            condition,
            on_true,
            on_false,
        } => {
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
        Op::ExpandDims { x, axis } => {
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
        Op::Transpose { x, permutation } => {
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
        Op::Load {
            base,
            offsets,
            mask,
            other,
        } => {
            let (dtype, _) = pointer(op, ty(base))?;
            let result = access_type(op, ty(offsets), dtype)?;
            check_mask(op, result, mask.map(|mask| ty(&mask)))?;
            match other {
                Some(_) if mask.is_none() => Err("`load` has `other` but no mask".to_string()),
                Some(other) => expect(op, "`other`", ty(other), result).map(|()| result),
                None => Ok(result),
            }
        }
        Op::Dot {
            a,
            b,
            accumulator,
            precision,
        } => infer_dot(op, [ty(a), ty(b), ty(accumulator)], *precision),
        Op::Extract { vector, index } => {
            let shape = ty(vector).shape;
            if shape.rank() != 1 || !(0..shape.elements() as i64).contains(index) {
                return Err(format!(
                    "`extract` cannot take element {index} of {}",
                    ty(vector)
                ));
            }
            Ok(ty(vector).with_shape(Shape::SCALAR))
        }
        Op::Vector { elements } => {
            let Some(first) = elements.first().map(ty) else {
                return Err("`vector` needs elements".to_string());
            };
            number(op, first)?;
            for element in elements {
                expect(op, "an element", ty(element), first)?;
            }
            Ok(first.with_shape(Shape::new(&[elements.len()])?))
        }
        Op::ShuffleVector { a, b, indices } => {
            expect(op, "the second vector", ty(b), ty(a))?;
            let lanes = 2 * ty(a).shape.elements() as u32;
            match indices.iter().find(|&&index| index >= lanes) {
                Some(index) => Err(format!(
                    "`shuffle_vector` index {index} is not below {lanes}"
                )),
                None => Ok(ty(a).with_shape(Shape::new(&[indices.len()])?)),
            }
        }
        Op::Unary { x, .. } | Op::Binary { lhs: x, .. } | Op::Ternary { a: x, .. } => Ok(ty(x)),
        Op::ShuffleXor { x, lane_mask } => {
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

fn check_elementwise(func: &Func, op: &Op) -> Result<(), String> {
    let (mnemonic, accepts): (&str, Accepts) = match op {
        Op::Unary { op, .. } => (op.mnemonic(), op.accepts()),
        Op::Binary { op, .. } => (op.mnemonic(), op.accepts()),
        Op::Ternary { op, .. } => (op.mnemonic(), op.accepts()),
        Op::Compare { op, .. } => (op.mnemonic(), op.accepts()),
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

fn expect(op: &Op, what: &str, found: Type, expected: Type) -> Result<(), String> {
    if found == expected || found.is_poison() || expected.is_poison() {
        return Ok(());
    }
    Err(format!(
        "{what} of `{}` is `{found}`, expected `{expected}`",
        op.mnemonic()
    ))
}

fn number(op: &Op, ty: Type) -> Result<DType, String> {
    ty.dtype()
        .ok_or_else(|| format!("`{}` takes numbers, found `{ty}`", op.mnemonic()))
}

fn pointer(op: &Op, ty: Type) -> Result<(DType, Space), String> {
    ty.pointee()
        .ok_or_else(|| format!("base of `{}` is `{ty}`, expected a pointer", op.mnemonic()))
}

fn scalar_index(op: &Op, what: &str, ty: Type) -> Result<(), String> {
    if ty.is_scalar() && matches!(ty.dtype(), Some(DType::I64 | DType::I32)) {
        return Ok(());
    }
    Err(format!(
        "{what} of `{}` is `{ty}`, expected `i64` or `i32`",
        op.mnemonic()
    ))
}

fn access_type(op: &Op, offsets: Type, dtype: DType) -> Result<Type, String> {
    if offsets.dtype() != Some(DType::I64) {
        return Err(format!(
            "offsets of `{}` are `{offsets}`, expected i64",
            op.mnemonic()
        ));
    }
    Ok(offsets.with_dtype(dtype))
}

fn check_mask(op: &Op, like: Type, mask: Option<Type>) -> Result<(), String> {
    mask.map_or(Ok(()), |mask| {
        expect(op, "mask", mask, like.with_dtype(DType::Bool))
    })
}

fn check_store(func: &Func, op: &Op) -> Result<(), String> {
    let Op::Store {
        base,
        offsets,
        value,
        mask,
    } = op
    else {
        return Ok(());
    };
    let (dtype, _) = pointer(op, func.ty(*base))?;
    let expected = access_type(op, func.ty(*offsets), dtype)?;
    expect(op, "value", func.ty(*value), expected)?;
    check_mask(op, expected, mask.map(|mask| func.ty(mask)))
}

fn check_effect(func: &Func, op: &Op) -> Result<(), String> {
    let Op::LaneStore {
        base,
        offset,
        value,
        mask,
        align,
    } = op
    else {
        return Ok(());
    };
    check_lane_access(func, op, *base, *offset, func.ty(*value), *mask, *align)
}

fn check_lane_access(
    func: &Func,
    op: &Op,
    base: Value,
    offset: Value,
    value: Type,
    mask: Option<Value>,
    align: i64,
) -> Result<(), String> {
    let (dtype, _) = pointer(op, func.ty(base))?;
    scalar_index(op, "offset", func.ty(offset))?;
    expect(op, "value", value, value.with_dtype(dtype))?;
    mask.map_or(Ok(()), |mask| expect(op, "mask", func.ty(mask), Type::BOOL))?;
    if align < i64::from(dtype.bytes()) || !(align as u64).is_power_of_two() {
        return Err(format!("`{align}` is no alignment for `{dtype}`"));
    }
    Ok(())
}

fn check_declared(func: &Func, op: &Op, declared: Type) -> Result<(), String> {
    let ty = |value: &Value| func.ty(*value);
    let shape_error = |x: Type| {
        Err(format!(
            "`{}` cannot make `{declared}` from `{x}`",
            op.mnemonic()
        ))
    };
    match op {
        Op::Constant { value } => expect(op, "result", declared, declared.with_dtype(value.dtype)),
        Op::Cast { x } => {
            number(op, ty(x))?;
            number(op, declared)?;
            expect(op, "result", declared, declared.with_shape(ty(x).shape))
        }
        Op::Bitcast { x } => {
            let (from, to) = (number(op, ty(x))?, number(op, declared)?);
            if from.bits() != to.bits() || ty(x).shape != declared.shape {
                return shape_error(ty(x));
            }
            Ok(())
        }
        Op::Splat { x } => {
            if !ty(x).is_scalar() || number(op, ty(x))? != number(op, declared)? {
                return shape_error(ty(x));
            }
            Ok(())
        }
        Op::Broadcast { x } => {
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
        Op::Reshape { x } => {
            let fits = ty(x).shape.elements() == declared.shape.elements();
            if fits && ty(x).element == declared.element {
                Ok(())
            } else {
                shape_error(ty(x))
            }
        }
        Op::LaneLoad {
            base,
            offset,
            mask,
            other,
            align,
        } => {
            check_lane_access(func, op, *base, *offset, declared, *mask, *align)?;
            other.map_or(Ok(()), |other| expect(op, "`other`", ty(&other), declared))
        }
        Op::Alloc { offset, count } => match declared.pointee() {
            Some((dtype, Space::Shared | Space::Scratch)) => {
                if *count < 1 || *offset < 0 || offset % i64::from(dtype.bytes()) != 0 {
                    return Err(format!(
                        "`alloc` of {count} `{dtype}` at byte {offset} is misplaced"
                    ));
                }
                Ok(())
            }
            _ => Err(format!(
                "`alloc` makes a shared or scratch pointer, found `{declared}`"
            )),
        },
        _ => Err(format!("`{}` has no declared type", op.mnemonic())),
    }
}

fn infer_reduce(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::Reduce {
        sources,
        axis,
        combine,
        ..
    } = op
    else {
        return Ok(Vec::new());
    };
    let Some(first) = sources.first().map(|&source| func.ty(source)) else {
        return Err("`reduce` needs a source".to_string());
    };
    let Axis(axis) = *axis;
    if usize::from(axis) >= first.shape.rank() {
        return Err(format!("axis {axis} is out of range for `{first}`"));
    }
    let mut elements = Vec::new();
    for &source in sources {
        let ty = func.ty(source);
        expect(op, "a source", ty, ty.with_shape(first.shape))?;
        elements.push(Type::scalar(number(op, ty)?));
    }
    let parameters = region_types(func, &func.region(*combine).parameters);
    let expected = [elements.clone(), elements.clone()].concat();
    if parameters != expected {
        return Err(format!(
            "combiner of `reduce` takes {parameters:?}, expected {expected:?}"
        ));
    }
    check_yield(func, op, *combine, &elements)?;
    let reduced = sources.iter().map(|&source| {
        let ty = func.ty(source);
        ty.with_shape(ty.shape.without(usize::from(axis)))
    });
    Ok(reduced.collect())
}

fn region_types(func: &Func, values: &[Value]) -> Vec<Type> {
    values.iter().map(|&value| func.ty(value)).collect()
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

fn check_loop(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    match op {
        Op::For {
            lower,
            upper,
            init,
            step,
            body,
            ..
        } => {
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
        Op::While { init, before, body } => {
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

fn check_if(func: &Func, op: &Op) -> Result<Vec<Type>, String> {
    let Op::If {
        condition,
        on_true,
        on_false,
    } = op
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

fn infer_dot(op: &Op, types: [Type; 3], precision: Precision) -> Result<Type, String> {
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
