//! Computes elementwise ops on constants, by the one meaning that they have.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::op::Elementwise;
use crate::ir::{Func, Inst, Literal, Op, op};
use crate::semantics::{canonical, elementwise, function};

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
    let data = rewriter.builder.func().inst(inst);
    if let Op::Function(op::Function { op, x }) = &data.op {
        let x = rewriter.constant(*x)?;
        return Some(function(*op, x.dtype, x.bits));
    }
    let op = data.op.elementwise()?;
    // A selection hands on the bits of a NaN, which are not its own to choose. Inline PTX is run by who has it.
    if matches!(
        op,
        Elementwise::Approximate(_) | Elementwise::Select(_) | Elementwise::InlinePtx(_)
    ) {
        return None;
    }
    let mut known = true;
    data.op
        .visit_operands(&mut |operand| known = known && rewriter.constant(operand).is_some());
    let to = rewriter.builder.ty(data.results[0]).dtype()?;
    let literal = |operand| rewriter.constant(operand).expect("is known");
    known.then(|| elementwise(op, to, &literal))
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
