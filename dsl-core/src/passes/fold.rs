//! Computes elementwise ops on constants, by the one meaning that they have.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::{Func, Inst, Literal, Op, Value, op};
use crate::semantics::{binary, bitcast, canonical, cast, compare, function, ternary, unary};

/// Replaces each elementwise op whose operands are constants by its result. Approximate ops stay:
/// their result is the device's.
pub fn fold(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        let [result] = rewriter.builder.func().inst(inst).results[..] else {
            return None;
        };
        let ty = rewriter.builder.ty(result);
        let dtype = ty.dtype()?;
        // The sign of a NaN is that of the machine that compiles: it must not show in the text.
        let bits = canonical(dtype, value(rewriter, inst)?);
        let literal = Literal::from_bits(dtype, bits);
        Some(vec![rewriter.builder.filled(literal, ty.shape)])
    });
}

/// The bits of every element of the result, if they are known.
fn value(rewriter: &Rewriter, inst: Inst) -> Option<u64> {
    let known = |value: &Value| rewriter.constant(*value);
    let data = rewriter.builder.func().inst(inst);
    let to = || rewriter.builder.ty(data.results[0]).dtype();
    match &data.op {
        Op::Unary(op::Unary { op, x }) => {
            let x = known(x)?;
            Some(unary(*op, x.dtype, x.bits))
        }
        Op::Function(op::Function { op, x }) => {
            let x = known(x)?;
            Some(function(*op, x.dtype, x.bits))
        }
        Op::Binary(op::Binary { op, lhs, rhs }) => {
            let (lhs, rhs) = (known(lhs)?, known(rhs)?);
            Some(binary(*op, lhs.dtype, lhs.bits, rhs.bits))
        }
        Op::Ternary(op::Ternary { op, a, b, c }) => {
            let (a, b, c) = (known(a)?, known(b)?, known(c)?);
            Some(ternary(*op, a.dtype, a.bits, b.bits, c.bits))
        }
        Op::Compare(op::Compare { op, lhs, rhs }) => {
            let (lhs, rhs) = (known(lhs)?, known(rhs)?);
            Some(u64::from(compare(*op, lhs.dtype, lhs.bits, rhs.bits)))
        }
        Op::Cast(op::Cast { x }) => {
            let x = known(x)?;
            Some(cast(x.dtype, to()?, x.bits))
        }
        Op::Bitcast(op::Bitcast { x }) => {
            let x = known(x)?;
            Some(bitcast(x.dtype, to()?, x.bits))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::text::parse;
    use crate::verify;

    #[test]
    fn constants_fold_to_the_bits_of_the_semantics() {
        let func = parse(
            "func @f block (%y: ptr<f32> write) {
      %a = constant value=i32(2147483647) : tile<4xi32>
      %b = add %a, %a : tile<4xi32>
      %c = cast %b : tile<4xf32>
      %d = exp %c : tile<4xf32>
      %i = arange start=0, end=4 : tile<4xi64>
      store %y, %i, %d
    }",
            "test.bir",
        );
        let mut func = verify::block(func.expect("parses"))
            .expect("is valid")
            .into_inner();
        super::fold(&mut func);
        let text = func.to_string();
        assert!(
            !text.contains(" add ") && !text.contains(" cast ") && !text.contains(" exp "),
            "{text}"
        );
        // e^-2 is 0x1.152aaa3b..p-3.
        assert!(text.contains("value=f32(0x1.152aaap-3)"), "{text}");
    }
}
