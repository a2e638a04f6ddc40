//! What `print` does to its record, in other ops: lowerings know none.

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::prints::{COUNTERS, HEADER};
use crate::ir::{AtomicOp, Axis, BinaryOp, DType, Func, Literal, Op, Order, Shape, Value, op};

/// Replaces each `print`.
pub fn expand_prints(func: &mut Func) {
    let insts = func.all_insts();
    if !insts
        .iter()
        .any(|&inst| matches!(func.op(inst), Op::Print(_)))
    {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let Op::Print(print) = rewriter.builder.func().op(inst).clone() else {
            return None;
        };
        expand(rewriter, &print);
        Some(Vec::new())
    });
}

fn expand(rewriter: &mut Rewriter, print: &op::Print) {
    let builder = &mut rewriter.builder;
    let Some(mask) = print.mask else {
        return taken(builder, print, None);
    };
    let mut any = flat(builder, mask);
    if !builder.ty(any).is_scalar() {
        any = builder.reduce(&[any], 0, Order::Tree, |builder, lower, higher| {
            vec![builder.binary(BinaryOp::Or, lower[0], higher[0])]
        })[0];
    }
    builder.if_else(
        any,
        |builder| {
            taken(builder, print, Some(mask));
            Vec::new()
        },
        |_| Vec::new(),
    );
}

/// The elements in one axis; a scalar stays one.
fn flat(builder: &mut Builder, x: Value) -> Value {
    let ty = builder.ty(x);
    if ty.shape.rank() <= 1 {
        return x;
    }
    let row = Shape::new(&[ty.shape.elements()]).expect("broken invariant: as many as in a tile");
    builder.declared(Op::Reshape(op::Reshape { x }), ty.with_shape(row))
}

/// Takes words of the record, and writes them if they are there.
fn taken(builder: &mut Builder, print: &op::Print, mask: Option<Value>) {
    let elements = builder.ty(print.x).shape.elements() as i64;
    let words = print.words_taken(elements);
    let word = |builder: &mut Builder, number: i64| {
        let literal = Literal::from_bits(DType::U64, number.cast_unsigned());
        builder.filled(literal, Shape::SCALAR)
    };
    let first = builder.index(0);
    let count = word(builder, words);
    let at = builder.value(Op::AtomicFetch(op::AtomicFetch {
        base: print.record,
        offsets: first,
        value: count,
        mask: None,
        expected: None,
        op: AtomicOp::Add,
        order: None,
        scope: None,
    }));
    // What does not fit at all is beyond any place.
    let last = word(builder, print.words - COUNTERS - words);
    let fits = match words <= print.words - COUNTERS {
        true => builder.le(at, last),
        false => builder.boolean(false),
    };
    builder.if_else(
        fits,
        |builder| {
            let at = builder.cast(at, DType::I64);
            written(builder, print, mask, at);
            Vec::new()
        },
        |builder| {
            let base = print.record;
            let offsets = builder.index(1);
            let value = word(builder, 1);
            let (mask, op) = (None, AtomicOp::Add);
            let dropped = op::AtomicReduce {
                base,
                offsets,
                value,
                mask,
                op,
                order: None,
                scope: None,
            };
            builder.emit(Op::AtomicReduce(dropped), &[]);
            Vec::new()
        },
    );
}

/// The number of the print, that of the program, the elements, and which of them are meant.
fn written(builder: &mut Builder, print: &op::Print, mask: Option<Value>, at: Value) {
    let number = Literal::from_bits(DType::U64, print.number.cast_unsigned() + 1);
    let number = builder.filled(number, Shape::SCALAR);
    let program = program(builder);
    let places = [number, program, print.x].into_iter().chain(mask);
    let mut place = COUNTERS;
    for x in places {
        let x = flat(builder, x);
        let value = bits(builder, x);
        let shape = builder.ty(value).shape;
        let start = builder.index(place);
        let start = builder.add(at, start);
        let offsets = match shape.is_scalar() {
            true => start,
            false => {
                let start = builder.splat(start, shape);
                let index = builder.index_along(0, shape);
                builder.add(start, index)
            }
        };
        let store = op::Store {
            base: print.record,
            offsets,
            value,
            mask: None,
            cache: None,
        };
        builder.emit(Op::Store(store), &[]);
        place += shape.elements() as i64;
    }
    debug_assert!(place >= COUNTERS + HEADER);
}

/// The bits of numbers as `u64`.
fn bits(builder: &mut Builder, x: Value) -> Value {
    let dtype = builder.ty(x).dtype().unwrap_or(DType::U64);
    let x = match dtype == DType::Bool {
        true => x,
        false => builder.bitcast(x, dtype.unsigned()),
    };
    builder.cast(x, DType::U64)
}

/// The number of the program in its grid, the first axis fastest.
fn program(builder: &mut Builder) -> Value {
    let axis = |builder: &mut Builder, axis: u8| {
        let axis = Axis(axis);
        let id = builder.value(Op::ProgramId(op::ProgramId { axis }));
        let count = builder.value(Op::NumPrograms(op::NumPrograms { axis }));
        [id, count]
    };
    let [[x, width], [y, height], [z, _]] = [0, 1, 2].map(|number| axis(builder, number));
    let rows = builder.mul(z, height);
    let row = builder.add(rows, y);
    let before = builder.mul(row, width);
    builder.add(before, x)
}
