//! Makes views of all ops that give the elements of tiles at other places.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::index_map::dim_bits;
use crate::ir::{CompareOp, DType, Func, IndexMap, Inst, Literal, Op, Type, Value, op};

/// Replaces each shape op by a `view`, views of views by one, and each `join` by two of which an index
/// bit chooses.
pub fn views(func: &mut Func) {
    rewrite(func, &mut |rewriter, inst| {
        let func = rewriter.builder.func();
        let ty = func.ty(*func.inst(inst).results.first()?);
        if let Op::Join(op) = func.op(inst).clone() {
            return Some(vec![joined(rewriter, &op, ty)]);
        }
        let (x, map) = func.view(inst)?;
        Some(vec![viewed(rewriter, x, map, ty)])
    });
}

fn joined(rewriter: &mut Rewriter, op: &op::Join, ty: Type) -> Value {
    let bits = dim_bits(&ty.shape);
    let last = bits.len() - 1;
    let part = IndexMap::reduce(bits.clone(), last);
    let [a, b] = [op.a, op.b].map(|x| viewed(rewriter, x, part.clone(), ty));
    let builder = &mut rewriter.builder;
    let index = builder.value(Op::Arange(op::Arange { start: 0, end: 2 }));
    let zero = builder.filled(Literal::from_bits(DType::I64, 0), builder.ty(index).shape);
    let first = builder.compare(CompareOp::Eq, index, zero);
    let mut targets = vec![None; last];
    targets.push(Some(0));
    let along = IndexMap::by_dimension(bits, vec![1], &targets);
    let first = viewed(rewriter, first, along, ty.with_dtype(DType::Bool));
    rewriter.builder.select(first, a, b)
}

fn viewed(rewriter: &mut Rewriter, mut x: Value, mut map: IndexMap, ty: Type) -> Value {
    let before = |inst: Inst| rewriter.builder.func().view(inst);
    if let Some((operand, before)) = rewriter.definition_inst(x).and_then(before) {
        (x, map) = (operand, map.then(&before));
    }
    let bit = |column: &u64| (*column != 0).then_some(column.trailing_zeros() as u8);
    let op = Op::View(op::View {
        x,
        bits: map.columns().iter().map(bit).collect(),
        offset: map.offset().cast_signed(),
    });
    rewriter.builder.declared(op, ty)
}
