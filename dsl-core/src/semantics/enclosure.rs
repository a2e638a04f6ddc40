//! What an elementwise op may give where a device's approximate functions are only known to be near the exact ones.

use std::cell::Cell;
use std::cmp::Ordering;

use super::elementwise;
use crate::ir::op::Elementwise;
use crate::ir::{Approximate, BinaryOp, CompareOp, DType, Literal, Op, UnaryOp, Value, op};

/// How far a device's own 2^x may be off, of the value: two units in the last place from the nearest number (PTX ISA,
/// "ex2"), so two and a half of 2^-23.
const EXP2_ERROR: f64 = 5.0 / (1u64 << 24) as f64;

/// What an oracle in `f64` may be off, generously.
const ORACLE_ERROR: f64 = 1.0 / (1u64 << 45) as f64;

/// All numbers of a type from one to another, -0 below +0; of NaN the one alone.
#[derive(Clone, Copy, Debug)]
pub struct Enclosure {
    low: Literal,
    high: Literal,
}

impl Enclosure {
    /// One number.
    pub const fn of(number: Literal) -> Self {
        Self {
            low: number,
            high: number,
        }
    }

    /// The number, if there is no other.
    pub fn number(self) -> Option<Literal> {
        (self.low == self.high).then_some(self.low)
    }
}

/// What holds every result of `op`, of type `to`, where `at` holds the operands; `None` where nothing is known.
pub fn enclosure(op: &Op, to: DType, at: &dyn Fn(Value) -> Option<Enclosure>) -> Option<Enclosure> {
    let elementwise_op = op.elementwise()?;
    if let Elementwise::Approximate(op::Approximate { op, x }) = elementwise_op {
        return approximated(*op, at(*x)?);
    }
    if let Elementwise::Select(op) = elementwise_op {
        let condition = at(op.condition)?.number()?;
        return at(match condition.bits != 0 {
            true => op.on_true,
            false => op.on_false,
        });
    }
    // Of operands that are one number each, the result is one.
    let (unknown, wide) = (Cell::new(false), Cell::new(false));
    let first = elementwise(elementwise_op, to, &|value| match at(value) {
        Some(held) => {
            wide.set(wide.get() || held.number().is_none());
            held.low
        }
        None => {
            unknown.set(true);
            Literal::from_bits(DType::F32, 0)
        }
    });
    match (unknown.get(), wide.get()) {
        (true, _) => None,
        (false, false) => Some(Enclosure::of(Literal::from_bits(to, first))),
        (false, true) => hull(op, to, at),
    }
}

/// Of an op that is monotone in each operand, what the ends of its operands give.
fn hull(op: &Op, to: DType, at: &dyn Fn(Value) -> Option<Enclosure>) -> Option<Enclosure> {
    let elementwise_op = op.elementwise()?;
    let wide = |value: &Value| at(*value).is_some_and(|held| held.number().is_none());
    let operands: Vec<Value> = op.operands().into_iter().filter(wide).collect();
    let is_repeated = (1..operands.len()).any(|i| operands[..i].contains(&operands[i]));
    if is_repeated || !is_monotone(elementwise_op, to, at) {
        return None;
    }
    let mut found: Option<Enclosure> = None;
    for ends in 0..1usize << operands.len() {
        let bits = elementwise(elementwise_op, to, &|value| {
            let held = at(value).unwrap_or(Enclosure::of(Literal::from_bits(to, 0)));
            let place = operands.iter().position(|&operand| operand == value);
            match place.is_some_and(|place| ends >> place & 1 == 1) {
                true => held.high,
                false => held.low,
            }
        });
        let end = Literal::from_bits(to, bits);
        let joined = found.get_or_insert(Enclosure::of(end));
        match (order(end, joined.low)?, order(end, joined.high)?) {
            (Ordering::Less, _) => joined.low = end,
            (_, Ordering::Greater) => joined.high = end,
            _ => {}
        }
    }
    found
}

/// The order of two numbers, -0 below +0; `None` of NaN, and of different numbers that are no floats.
fn order(a: Literal, b: Literal) -> Option<Ordering> {
    match (a.float(), b.float()) {
        (Some(a), Some(b)) if !a.is_nan() && !b.is_nan() => Some(a.total_cmp(&b)),
        (None, None) if a == b => Some(Ordering::Equal),
        _ => None,
    }
}

fn is_monotone(op: Elementwise<'_>, to: DType, at: &dyn Fn(Value) -> Option<Enclosure>) -> bool {
    // Zero times infinity is NaN, also where it is no end.
    let meets = |value: Value, property: &dyn Fn(f64, f64) -> bool| {
        let ends = at(value).and_then(|held| held.low.float().zip(held.high.float()));
        ends.is_none_or(|(low, high)| property(low, high))
    };
    let zero = |value| meets(value, &|low, high| low <= 0.0 && high >= 0.0);
    let infinity = |value| meets(value, &|low, high| low.is_infinite() || high.is_infinite());
    let is_product = |a: Value, b: Value| !(zero(a) && infinity(b) || zero(b) && infinity(a));
    match op {
        Elementwise::Unary(op) => op.op == UnaryOp::Neg,
        Elementwise::Binary(op) => match op.op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Minimum | BinaryOp::Maximum => true,
            BinaryOp::Mul => is_product(op.lhs, op.rhs),
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Minnum
            | BinaryOp::Maxnum
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => false,
        },
        Elementwise::Ternary(op) => is_product(op.a, op.b),
        Elementwise::Compare(op) => !matches!(op.op, CompareOp::Eq | CompareOp::Ne),
        // Whether a number is zero is no step from one side to the other.
        Elementwise::Cast(op) => {
            to != DType::Bool && at(op.x).is_some_and(|held| held.low.float().is_some())
        }
        Elementwise::Approximate(_)
        | Elementwise::Bitcast(_)
        | Elementwise::Select(_)
        | Elementwise::InlinePtx(_) => false,
    }
}

/// What a device's own function may give.
fn approximated(op: Approximate, x: Enclosure) -> Option<Enclosure> {
    let (low, high) = (x.low.float()?, x.high.float()?);
    if low.is_nan() {
        return Some(x);
    }
    let (low, high) = if op == Approximate::NormalExp2 {
        let error = EXP2_ERROR + ORACLE_ERROR;
        let low = low.exp2() * (1.0 - error);
        (downward(low), upward(high.exp2() * (1.0 + error)))
    } else if op == Approximate::NormalReciprocal && low >= f64::from(f32::MIN_POSITIVE) {
        let ends = [high, low].map(|x| (1.0 / x) as f32);
        let unit = ends[0].next_up() - ends[0];
        ((ends[0] - unit).max(0.0), ends[1].next_up())
    } else {
        return None;
    };
    let is_normal = low >= f32::MIN_POSITIVE;
    let literal = |x: f32| Literal::from_bits(DType::F32, u64::from(x.to_bits()));
    Some(Enclosure {
        low: literal(if is_normal { low } else { 0.0 }),
        high: literal(high),
    })
}

/// The greatest `f32` that is not above.
fn downward(x: f64) -> f32 {
    let near = x as f32;
    match f64::from(near) > x {
        true => near.next_down(),
        false => near,
    }
}

/// The least `f32` that is not below.
fn upward(x: f64) -> f32 {
    -downward(-x)
}

#[cfg(test)]
mod tests {
    use super::{Enclosure, enclosure};
    use crate::entity::Entity;
    use crate::ir::{Approximate, BinaryOp, DType, Literal, Op, Value, op};

    fn number(x: f32) -> Literal {
        Literal::from_bits(DType::F32, u64::from(x.to_bits()))
    }

    /// What holds the results of an op on two operands, each between two numbers.
    fn held(op: &Op, operands: [(f32, f32); 2]) -> Option<(f32, f32)> {
        let ends = operands.map(|(low, high)| Enclosure {
            low: number(low),
            high: number(high),
        });
        let found = enclosure(op, DType::F32, &|value| ends.get(value.index()).copied())?;
        let bits = [found.low.bits, found.high.bits];
        let [low, high] = bits.map(|bits| f32::from_bits(bits as u32));
        Some((low, high))
    }

    fn binary(op: BinaryOp, same: bool) -> Op {
        let rhs = Value::new(usize::from(!same));
        let lhs = Value::new(0);
        Op::Binary(op::Binary { op, lhs, rhs })
    }

    #[test]
    fn ends_of_results_follow_from_ends_of_operands() {
        let ends = [(-1.0, 2.0), (-3.0, 4.0)];
        let of = |op| held(&binary(op, false), ends);
        assert_eq!(of(BinaryOp::Add), Some((-4.0, 6.0)));
        assert_eq!(of(BinaryOp::Sub), Some((-5.0, 5.0)));
        assert_eq!(of(BinaryOp::Mul), Some((-6.0, 8.0)));
        assert_eq!(of(BinaryOp::Div), None);
        // A square is no monotone product, and nothing tells of zero times infinity.
        assert_eq!(held(&binary(BinaryOp::Mul, true), ends), None);
        let unbounded = [(-1.0, 2.0), (1.0, f32::INFINITY)];
        assert_eq!(held(&binary(BinaryOp::Mul, false), unbounded), None);
        let signs = [(-0.0, 0.0), (1.0, 1.0)];
        let product = held(&binary(BinaryOp::Mul, false), signs);
        let signs = product.map(|(low, high)| (low.is_sign_negative(), high.is_sign_negative()));
        assert_eq!(signs, Some((true, false)));
    }

    #[test]
    fn whether_a_number_is_zero_is_open_between_two_others() {
        let cast = Op::Cast(op::Cast { x: Value::new(0) });
        for (low, is_known) in [(-1.0, false), (2.0, true)] {
            let range = Enclosure {
                low: number(low),
                high: number(2.0),
            };
            let found = enclosure(&cast, DType::Bool, &|_| Some(range));
            assert_eq!(found.is_some(), is_known, "{low}");
        }
    }

    #[test]
    fn approximate_functions_are_somewhere_within_their_bounds() {
        let of = |op, x| {
            let x = (x, x);
            held(
                &Op::Approximate(op::Approximate {
                    op,
                    x: Value::new(0),
                }),
                [x, x],
            )
        };
        let (low, high) = of(Approximate::NormalExp2, 3.0).expect("is held");
        let error = 8.0 * super::EXP2_ERROR as f32;
        assert!(low < 8.0 - error && high > 8.0 + error && high - low < 3.0 * error);
        assert_eq!(
            of(Approximate::NormalExp2, -126.0).map(|it| it.0),
            Some(0.0)
        );
        let inverse = of(Approximate::NormalReciprocal, 2.0);
        assert_eq!(inverse, Some((0.5 - 2f32.powi(-24), 0.5f32.next_up())));
        assert_eq!(of(Approximate::NormalReciprocal, -2.0), None);
        assert_eq!(of(Approximate::Exp2, 3.0), None);
    }
}
