//! Local rewrites that keep every bit of every result. `x + 0.0` stays: it turns -0 into +0.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::{BinaryOp, DType, Func, Inst, Literal, Op, Shape, Type, Value, op};

/// Applies the rules below once to each instruction, operands first.
pub fn simplify(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        access(rewriter, inst).or_else(|| rule(rewriter, inst).map(|value| vec![value]))
    });
}

/// An access whose mask is the same everywhere.
fn access(rewriter: &mut Rewriter, inst: Inst) -> Option<Vec<Value>> {
    let data = rewriter.builder.func().inst(inst);
    let mask = data.op.access()?.mask?;
    let holds = rewriter.constant(mask)?.bits != 0;
    let mut data = data.clone();
    let (Op::Load(op::Load { mask, .. })
    | Op::Store(op::Store { mask, .. })
    | Op::AtomicReduce(op::AtomicReduce { mask, .. })
    | Op::AtomicFetch(op::AtomicFetch { mask, .. })) = &mut data.op
    else {
        return None;
    };
    *mask = None;
    let other = if let Op::Load(op) = &mut data.op {
        op.other.take()
    } else {
        None
    };
    if holds {
        let inst = rewriter.builder.emit(data.op, &[]);
        return Some(rewriter.builder.results(inst).to_vec());
    }
    let Some(&result) = data.results.first() else {
        return Some(Vec::new());
    };
    let ty = rewriter.builder.ty(result);
    let zero = Literal::from_bits(ty.dtype()?, 0);
    let other = other.unwrap_or_else(|| rewriter.builder.filled(zero, ty.shape));
    Some(vec![other])
}

fn rule(rewriter: &mut Rewriter, inst: Inst) -> Option<Value> {
    let data = rewriter.builder.func().inst(inst);
    let &[result] = &data.results[..] else {
        return None;
    };
    let ty = rewriter.builder.ty(result);
    if let Some(x) = data.op.rearranged() {
        let view = rewriter.builder.func().view(inst);
        let stays = view.is_none_or(|(_, map)| map.is_identity());
        return repeat(rewriter, x, ty, stays);
    }
    if let Op::Extract(op::Extract { vector, index }) = data.op {
        return extracted(rewriter, vector, index as usize);
    }
    if let Op::Cast(op::Cast { x }) = data.op {
        let stays = rewriter.builder.ty(x) == ty;
        return stays.then_some(x).or_else(|| narrowed(rewriter, x, ty));
    }
    if let Op::Bitcast(op::Bitcast { x }) = data.op {
        return (rewriter.builder.ty(x) == ty && !is_float(ty)).then_some(x);
    }
    if let Op::Binary(op::Binary { op, lhs, rhs }) = data.op {
        return binary(rewriter, op, lhs, rhs);
    }
    let Op::Select(op::Select {
        condition,
        on_true,
        on_false,
    }) = data.op
    else {
        return None;
    };
    if on_true == on_false {
        return Some(on_true);
    }
    let holds = rewriter.constant(condition)?.bits != 0;
    Some(if holds { on_true } else { on_false })
}

/// What a float of this type was before it became a wider one.
fn narrowed(rewriter: &mut Rewriter, wide: Value, ty: Type) -> Option<Value> {
    let Op::Cast(op::Cast { x }) = *rewriter.definition(wide)? else {
        return None;
    };
    let held = rewriter.builder.ty(wide);
    let bits = held.dtype()?.bits();
    let holds = is_float(ty) && is_float(held) && bits >= 32 && bits > ty.dtype()?.bits();
    (holds && rewriter.builder.ty(x) == ty).then_some(x)
}

fn is_float(ty: Type) -> bool {
    ty.dtype().is_some_and(DType::is_float)
}

/// A value with the same element everywhere, or one whose elements stay.
fn repeat(rewriter: &mut Rewriter, x: Value, ty: Type, stays: bool) -> Option<Value> {
    if rewriter.builder.ty(x) == ty && stays {
        return Some(x);
    }
    let repeated = rewriter.definition(x)?;
    if let Op::Constant(op::Constant { value }) = *repeated {
        return Some(rewriter.builder.filled(value, ty.shape));
    }
    let Op::Splat(op::Splat { x }) = *repeated else {
        return None;
    };
    Some(rewriter.builder.splat(x, ty.shape))
}

/// An element of a vector that is made of scalars.
fn extracted(rewriter: &mut Rewriter, vector: Value, index: usize) -> Option<Value> {
    if let Some(literal) = rewriter.constant(vector) {
        return Some(rewriter.builder.filled(literal, Shape::SCALAR));
    }
    if let Op::Vector(op::Vector { elements }) = rewriter.definition(vector)? {
        return elements.get(index).copied();
    }
    let Op::Splat(op::Splat { x }) = *rewriter.definition(vector)? else {
        return None;
    };
    Some(x)
}

/// Laws of integers and `bool`, and `x * 1`, which is exact for floats too.
fn binary(rewriter: &mut Rewriter, op: BinaryOp, lhs: Value, rhs: Value) -> Option<Value> {
    let (left, right) = (rewriter.constant(lhs), rewriter.constant(rhs));
    let dtype = rewriter.builder.ty(lhs).dtype()?;
    let one = |literal: Option<Literal>| {
        literal.is_some_and(|literal| literal == Literal::from_f64(dtype, 1.0))
    };
    if op == BinaryOp::Mul {
        if one(right) {
            return Some(lhs);
        }
        if one(left) {
            return Some(rhs);
        }
    }
    if dtype.is_float() {
        return None;
    }
    let zero = |literal: Option<Literal>| literal.is_some_and(|literal| literal.bits == 0);
    let ones =
        |literal: Option<Literal>| literal.is_some_and(|literal| literal.bits == dtype.mask());
    match op {
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor if zero(right) => Some(lhs),
        BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor if zero(left) => Some(rhs),
        BinaryOp::Sub | BinaryOp::Shl | BinaryOp::Shr if zero(right) => Some(lhs),
        BinaryOp::Mul | BinaryOp::And if zero(right) => Some(rhs),
        BinaryOp::Mul | BinaryOp::And if zero(left) => Some(lhs),
        BinaryOp::And if ones(right) || lhs == rhs => Some(lhs),
        BinaryOp::And if ones(left) => Some(rhs),
        BinaryOp::Or if ones(right) || lhs == rhs => Some(rhs),
        BinaryOp::Or if ones(left) => Some(lhs),
        BinaryOp::Div if one(right) => Some(lhs),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => None,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => None,
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// How many casts are used once `x` has become a `wide` number and a `bf16` again.
    fn casts(wide: &str) -> usize {
        let source = format!(
            "func @f block (%x: ptr<bf16>, %y: ptr<bf16> write) {{
               %z = constant value=i64(0) : i64
               %a = load %x, %z : bf16
               %b = cast %a : {wide}
               %c = cast %b : bf16
               store %y, %z, %c
             }}"
        );
        let mut func = parse(&source, "test.bir").expect("parses");
        simplify(&mut func);
        crate::passes::dce::dce(&mut func);
        func.to_string().matches(" cast ").count()
    }

    #[test]
    fn only_wider_floats_give_back_what_they_were_made_of() {
        assert_eq!(casts("f32"), 0);
        assert_eq!(casts("f64"), 0);
        assert_eq!(casts("i32"), 2);
        assert_eq!(casts("f16"), 2);
    }
}
