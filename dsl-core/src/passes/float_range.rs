//! Which floats are certainly finite: a range for each value, in program order.
//!
//! A backend asks before it reads the bits of a float: a value that is never NaN needs no
//! canonicalising. The definitions of `exp` and its kin are written so that the answer is yes.

use crate::entity::EntityMap;
use crate::ir::{BinaryOp, CompareOp, DType, Func, Inst, Literal, Op, TernaryOp, UnaryOp, Value};

/// What a float may be: a number in `low..=high`, and NaN if `nan`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Range {
    low: f64,
    high: f64,
    nan: bool,
}

const ANYTHING: Range = Range {
    low: f64::NEG_INFINITY,
    high: f64::INFINITY,
    nan: true,
};

/// Ranges stay far below the range of every type but `f16`, which is left out, so that no rounding
/// reaches infinity.
const LIMIT: f64 = 1e30;

impl Range {
    fn is_finite(self) -> bool {
        !self.nan && self.low >= -LIMIT && self.high <= LIMIT
    }

    /// The hull of these bounds, widened by more than the roundings of one op; anything if it is
    /// not finite.
    fn hull(bounds: &[f64]) -> Self {
        let low = bounds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let slack = 0.01 * low.abs().max(high.abs()) + f64::MIN_POSITIVE;
        let range = Self {
            low: low - slack,
            high: high + slack,
            nan: false,
        };
        if range.is_finite() { range } else { ANYTHING }
    }

    fn sum(self, other: Self) -> Self {
        if !self.is_finite() || !other.is_finite() {
            return ANYTHING;
        }
        Self::hull(&[self.low + other.low, self.high + other.high])
    }

    fn product(self, other: Self) -> Self {
        if !self.is_finite() || !other.is_finite() {
            return ANYTHING;
        }
        let ends = |x: f64| [x * other.low, x * other.high];
        Self::hull(&[ends(self.low), ends(self.high)].concat())
    }

    fn negated(self) -> Self {
        Self {
            low: -self.high,
            high: -self.low,
            nan: self.nan,
        }
    }

    fn magnitude(self) -> Self {
        Self {
            low: 0.0,
            high: self.low.abs().max(self.high.abs()),
            nan: self.nan,
        }
    }

    /// Either of the two.
    fn union(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            nan: self.nan || other.nan,
        }
    }
}

/// For each value whether it is a float that is never NaN.
pub fn never_nan(func: &Func) -> EntityMap<Value, bool> {
    let mut ranges = EntityMap::filled(func.value_count(), ANYTHING);
    let definitions = func.definitions();
    for inst in func.all_insts() {
        if let [result] = func.inst(inst).results[..]
            && func.ty(result).dtype() != Some(DType::F16)
        {
            ranges[result] = range(func, &definitions, &ranges, inst);
        }
    }
    let mut never = EntityMap::filled(func.value_count(), false);
    for (value, range) in ranges.iter() {
        never[value] = !range.nan;
    }
    never
}

fn range(
    func: &Func,
    definitions: &EntityMap<Value, Option<Inst>>,
    ranges: &EntityMap<Value, Range>,
    inst: Inst,
) -> Range {
    match func.op(inst) {
        Op::Constant { value } => constant(*value),
        Op::Splat { x } | Op::Broadcast { x } | Op::Reshape { x } => ranges[*x],
        Op::Unary { op, x } => match op {
            UnaryOp::Neg => ranges[*x].negated(),
            UnaryOp::Abs => ranges[*x].magnitude(),
            _ => ANYTHING,
        },
        Op::Binary { op, lhs, rhs } => match op {
            BinaryOp::Add => ranges[*lhs].sum(ranges[*rhs]),
            BinaryOp::Sub => ranges[*lhs].sum(ranges[*rhs].negated()),
            BinaryOp::Mul => ranges[*lhs].product(ranges[*rhs]),
            _ => ANYTHING,
        },
        Op::Ternary {
            op: TernaryOp::Fma,
            a,
            b,
            c,
        } => ranges[*a].product(ranges[*b]).sum(ranges[*c]),
        Op::Select {
            condition,
            on_true,
            on_false,
        } => {
            let condition = definitions[*condition].map(|inst| func.op(inst));
            chosen(condition, ranges, *on_true, *on_false)
        }
        _ => ANYTHING,
    }
}

fn constant(literal: Literal) -> Range {
    literal.float().map_or(ANYTHING, |value| Range {
        low: if value.is_nan() { f64::INFINITY } else { value },
        high: if value.is_nan() {
            f64::NEG_INFINITY
        } else {
            value
        },
        nan: value.is_nan(),
    })
}

/// The range of a selection, sharper where it limits a value by a comparison with the limit.
fn chosen(
    condition: Option<&Op>,
    ranges: &EntityMap<Value, Range>,
    on_true: Value,
    on_false: Value,
) -> Range {
    let (x, y) = (ranges[on_true], ranges[on_false]);
    let Some(Op::Compare {
        op: CompareOp::Lt,
        lhs,
        rhs,
    }) = condition
    else {
        return x.union(y);
    };
    if (*lhs, *rhs) == (on_true, on_false) {
        // The lesser; `y` where either is NaN.
        return Range {
            low: x.low.min(y.low),
            high: y.high,
            nan: y.nan,
        };
    }
    if (*lhs, *rhs) == (on_false, on_true) {
        // The greater; `y` where either is NaN.
        return Range {
            low: if x.nan { y.low } else { x.low.max(y.low) },
            high: x.high.max(y.high),
            nan: y.nan,
        };
    }
    x.union(y)
}

#[cfg(test)]
mod tests {
    use super::never_nan;
    use crate::builder::Builder;
    use crate::ir::{DType, Func, Op, Stage, UnaryOp};
    use crate::passes::tidy;
    use crate::semantics::derived::define;
    use crate::text::parse;

    /// How many reads of float bits there are, and how many of those can meet NaN.
    fn reads(func: &Func) -> (usize, usize) {
        let never = never_nan(func);
        let reads = func.all_insts().into_iter().filter_map(|inst| {
            let Op::Bitcast { x } = *func.op(inst) else {
                return None;
            };
            let float = func.ty(x).dtype().is_some_and(DType::is_float);
            float.then_some(never[x])
        });
        let reads: Vec<bool> = reads.collect();
        (reads.len(), reads.iter().filter(|never| !*never).count())
    }

    #[test]
    fn exponentials_read_the_bits_of_no_nan() {
        for dtype in [DType::F32, DType::F64] {
            for op in [
                UnaryOp::Exp,
                UnaryOp::Exp2,
                UnaryOp::Sigmoid,
                UnaryOp::Tanh,
                UnaryOp::Erf,
            ] {
                let mut builder = Builder::new("f", Stage::Block);
                let x = builder.scalar_parameter("x", dtype);
                define(&mut builder, op, x);
                let func = builder.finish().expect("is well typed");
                assert_eq!(reads(&func), (1, 0), "{op:?} {dtype}");
            }
        }
    }

    #[test]
    fn infinities_and_half_floats_are_not_trusted() {
        let mut func = parse(
            "func @f block (%x: f32, %h: f16) {
               %limit = constant value=f32(inf) : f32
               %below = lt %x, %limit : bool
               %a = select %below, %x, %limit : f32
               %b = sub %a, %a : f32
               %i = bitcast %b : u32
               %one = constant value=f16(1.0) : f16
               %less = lt %h, %one : bool
               %c = select %less, %h, %one : f16
               %j = bitcast %c : u16
             }",
            "test.bir",
        )
        .expect("parses");
        assert_eq!(reads(&func), (2, 2));
        tidy(&mut func);
        assert_eq!(reads(&func), (0, 0));
    }
}
