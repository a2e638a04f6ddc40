//! Decides elements of masks by what arguments are known to lie in: a lane has a constant for each of its registers, so
//! that parts of a tile that hold no element of a row, or nothing else, are known before the code is made.

use crate::ir::{DType, Func, Op, Type, Value, op};
use crate::passes::indices::Indices;
use crate::passes::ranges::Range;
use crate::passes::rewrite::{Rewriter, rewrite};

/// The most elements of a comparison that are left apart: each is an instruction.
const MOST_LEFT: usize = 32;

/// Makes constants of the elements of comparisons that ranges decide, where some parameter has a range.
pub fn decide_elements(func: &mut Func) {
    if func.parameters.iter().all(|it| it.within.is_none()) {
        return;
    }
    let indices = Indices::of(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Compare(op::Compare { op, lhs, rhs }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let ty = rewriter.builder.ty(lhs);
        let count = ty.shape.elements();
        if ty.is_scalar() || !ty.dtype().is_some_and(|dtype| dtype.is_integer()) {
            return None;
        }
        let decided = |at: usize| {
            let [left, right] = [lhs, rhs].map(|side| number(rewriter, &indices, side, at));
            left?.compare(op, right?)
        };
        let decided: Vec<Option<bool>> = (0..count).map(decided).collect();
        let left = decided.iter().filter(|it| it.is_none()).count();
        if left == count || left > MOST_LEFT {
            return None;
        }
        let element = |(at, decided): (usize, Option<bool>)| match decided {
            Some(holds) => rewriter.builder.boolean(holds),
            None => {
                let builder = &mut rewriter.builder;
                let index = at as i64;
                let [lhs, rhs] = [lhs, rhs]
                    .map(|vector| builder.value(Op::Extract(op::Extract { vector, index })));
                builder.compare(op, lhs, rhs)
            }
        };
        let elements: Vec<Value> = decided.into_iter().enumerate().map(element).collect();
        let vector = Op::Vector(op::Vector { elements });
        let ty = Type::vector(DType::Bool, count);
        Some(vec![rewriter.builder.declared(vector, ty)])
    });
}

/// What an element of a vector can be.
fn number(rewriter: &Rewriter, indices: &Indices, vector: Value, at: usize) -> Option<Range> {
    match rewriter.definition(vector) {
        Some(Op::Places(op::Places { values })) => {
            let number = i128::from(*values.get(at)?);
            Some(Range::new(number, number))
        }
        _ => indices.range(vector),
    }
}
