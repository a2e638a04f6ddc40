//! Makes one op of all shape ops: where each element of the result is in the operand.

use super::rewrite::rewrite;
use crate::ir::{Func, IndexMap, Op, Value, op};

/// Replaces each shape op by a `view`, and views of views by one.
pub fn views(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        let func = rewriter.builder.func();
        let (mut x, mut map) = func.view(inst)?;
        let ty = func.ty(func.inst(inst).results[0]);
        if let Some((operand, before)) =
            rewriter.definition_inst(x).and_then(|inst| func.view(inst))
        {
            (x, map) = (operand, map.then(&before));
        }
        Some(vec![rewriter.builder.declared(view(x, &map), ty)])
    });
}

fn view(x: Value, map: &IndexMap) -> Op {
    let bit = |column: &u64| (*column != 0).then_some(column.trailing_zeros() as u8);
    Op::View(op::View {
        x,
        bits: map.columns().iter().map(bit).collect(),
        offset: map.offset().cast_signed(),
    })
}
