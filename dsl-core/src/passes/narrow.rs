//! Comparisons of numbers that fit 32 bits are made at 32 bits: the numbers compared are the same.
//!
//! Indices are 64-bit integers, and a GPU takes two instructions for most of what it does with one.

mod decided;

pub use decided::decide_elements;

use super::indices::Indices;
use super::ranges::Range;
use super::rewrite::{Rewriter, rewrite};
use crate::ir::{BinaryOp, DType, Func, Literal, Op, Value, op};

/// What 32-bit signed integers hold.
const NARROW: Range = Range::new(i32::MIN as i128, i32::MAX as i128);

/// The most masks that a number is narrowed through.
const MOST_MASKS: usize = 16;

/// Compares at 32 bits where all numbers that are compared fit.
pub fn narrow_comparisons(func: &mut Func) {
    let indices = Indices::of(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Compare(op::Compare { op, lhs, rhs }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let wide = |value: Value| {
            let dtype = rewriter.builder.ty(value).dtype();
            dtype == Some(DType::I64) || dtype == Some(DType::U64)
        };
        let fits = |value: Value| indices.range(value).is_some_and(is_narrow);
        if !wide(lhs) || !fits(lhs) || !fits(rhs) {
            return None;
        }
        if let Some([distance, room]) = apart(rewriter, &indices, lhs, rhs) {
            return Some(vec![rewriter.builder.compare(op, distance, room)]);
        }
        let [lhs, rhs] = [lhs, rhs].map(|value| narrowed(rewriter, value, 0));
        Some(vec![rewriter.builder.compare(op, lhs, rhs)])
    });
}

fn is_narrow(range: Range) -> bool {
    range.is_within(NARROW)
}

/// For `base + distance` and `bound` the two numbers `distance` and `bound - base`, which compare alike.
///
/// Sums of one base and many constants become as many constants, compared with one number: they take no
/// registers while masks wait for a loop.
fn apart(
    rewriter: &mut Rewriter,
    indices: &Indices,
    sum: Value,
    bound: Value,
) -> Option<[Value; 2]> {
    let Some(&Op::Binary(op::Binary {
        op: BinaryOp::Add,
        lhs: base,
        rhs: distance,
    })) = rewriter.definition(sum)
    else {
        return None;
    };
    if !is_known(rewriter, distance) {
        return None;
    }
    let range = |value| indices.range(value);
    let [from, to, whole] = [range(base)?, range(bound)?, range(sum)?];
    // A bound below every sum compares like any other such bound.
    let least = NARROW.low + from.high;
    let fits = from.low >= 0 && is_narrow(from) && is_narrow(range(distance)?);
    if !fits || whole.low <= least {
        return None;
    }
    let [base, distance, mut bound] =
        [base, distance, bound].map(|value| narrowed(rewriter, value, 0));
    if to.low < least {
        let shape = rewriter.builder.ty(bound).shape;
        let least = Literal::from_integer(DType::I32, least)?;
        let least = rewriter.builder.filled(least, shape);
        bound = rewriter.builder.maximum(bound, least);
    }
    Some([distance, rewriter.builder.sub(bound, base)])
}

/// Whether the numbers of a value are constants.
fn is_known(rewriter: &Rewriter, value: Value) -> bool {
    let places = |op| matches!(op, &Op::Places(_));
    rewriter.constant(value).is_some() || rewriter.definition(value).is_some_and(places)
}

/// The low 32 bits of a value, computed at 32 bits where that takes nothing new: from a narrow
/// integer, or through some masks, of which low bits depend on low bits alone.
fn narrowed(rewriter: &mut Rewriter, value: Value, masks: usize) -> Value {
    let ty = rewriter.builder.ty(value);
    if let Some(literal) = rewriter.constant(value) {
        let low = Literal::from_bits(DType::I32, literal.bits & u64::from(u32::MAX));
        return rewriter.builder.filled(low, ty.shape);
    }
    match rewriter.definition(value).cloned() {
        Some(op @ Op::Places(_)) => rewriter.builder.declared(op, ty.with_dtype(DType::I32)),
        Some(Op::Splat(op::Splat { x })) => {
            let x = narrowed(rewriter, x, masks);
            rewriter.builder.splat(x, ty.shape)
        }
        Some(Op::Binary(op::Binary {
            op: BinaryOp::And,
            lhs,
            rhs,
        })) if rewriter.constant(rhs).is_some() && masks < MOST_MASKS => {
            let [lhs, rhs] = [lhs, rhs].map(|value| narrowed(rewriter, value, masks + 1));
            rewriter.builder.and(lhs, rhs)
        }
        Some(Op::Cast(op::Cast { x })) if rewriter.builder.ty(x).dtype() == Some(DType::I32) => x,
        _ => rewriter.builder.cast(value, DType::I32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Inst;
    use crate::passes::tidy;
    use crate::text::parse;
    use crate::verify;

    /// The comparisons that are left at 64 bits.
    fn wide_comparisons(body: &str) -> usize {
        let source = format!(
            "func @f lane warps=4 (%x: ptr<i32>, %y: ptr<bool> write, %n: i64, %m: i32) {{
               %lane = lane_id : i32
               %warp = warp_id : i32
               %a = cast %lane : i64
               %b = cast %warp : i64
               %zero = constant value=i64(0) : i64
               %one = constant value=i64(1) : i64
               %seven = constant value=i64(7) : i64
               %l = cast %m : i64
               {body}
               lane_store %y, %a, %c, align=1
             }}"
        );
        let mut func = parse(&source, "test.bir").expect("parses");
        verify::lane(func.clone()).expect("is valid before");
        narrow_comparisons(&mut func);
        tidy(&mut func);
        let func = verify::lane(func).expect("is valid after");
        let is_wide = |value: Value| func.ty(value).dtype() == Some(DType::I64);
        let wide = |inst: &Inst| matches!(*func.op(*inst), Op::Compare(op::Compare { lhs, .. }) if is_wide(lhs));
        func.all_insts().iter().filter(|inst| wide(inst)).count()
    }

    #[test]
    fn comparisons_of_numbers_that_fit_are_narrow() {
        let narrow = [
            "%c = lt %a, %l : bool",
            "%s = add %a, %seven : i64\n %c = ge %l, %s : bool",
            "%k = and %n, %seven : i64\n %c = eq %k, %one : bool",
            "%k = rem %a, %seven : i64\n %p = mul %k, %b : i64\n %c = eq %p, %l : bool",
            "%d = for %zero, %seven, [%one], step=1, stages=1 (%i: i64, %p: i64) {
               %t = lt %i, %l : bool
               %q = cast %t : i64
               yield [%q]
             } : i64
             %c = cast %d : bool",
        ];
        for body in narrow {
            assert_eq!(wide_comparisons(body), 0, "{body}");
        }
    }

    #[test]
    fn comparisons_of_numbers_that_may_not_fit_stay() {
        let wide = [
            "%c = lt %a, %n : bool",
            "%s = add %l, %one : i64\n %c = lt %s, %a : bool",
            "%p = program_id axis=0 : i64\n %c = lt %p, %a : bool",
            "%k = and %n, %l : i64\n %c = lt %k, %a : bool",
            "%u = bitcast %m : u32\n %v = cast %u : i64\n %c = lt %v, %a : bool",
            "%d = for %a, %n, [%one], step=1, stages=1 (%i: i64, %p: i64) {
               %t = lt %i, %l : bool
               %q = cast %t : i64
               yield [%q]
             } : i64
             %c = cast %d : bool",
            "%d = for %zero, %seven, [%one], step=1, stages=1 (%i: i64, %p: i64) {
               %q = add %p, %p : i64
               yield [%q]
             } : i64
             %c = lt %d, %a : bool",
        ];
        for body in wide {
            assert_eq!(wide_comparisons(body), 1, "{body}");
        }
    }
}
