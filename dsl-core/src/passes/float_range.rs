//! What floats can be: a range for each value.
//!
//! A backend asks before it reads the bits of a float: a value that is never NaN needs no
//! canonicalising. The definitions of `exp` and its kin are written so that the answer is yes. And the
//! argument of `exp(x - max(x))` is never positive, which saves its upward scaling.

mod identities;

use crate::entity::EntityMap;
use crate::ir::dataflow::{Analysis, Facts, solve};
use crate::ir::index_map::dim_bits;
use crate::ir::numbers::filling;
use crate::ir::{
    BinaryOp, Class, CompareOp, DType, Func, IndexMap, Inst, Literal, Op, TernaryOp, UnaryOp,
    Value, op,
};
use crate::semantics::derived::{Domain, values};
use crate::semantics::reduction::only_op;

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

/// Bounds beyond this are infinite: what they bound may overflow. It is far below the range of every
/// type but of those with a small exponent, such as `f16`, which are left out.
const LIMIT: f64 = 1e30;

/// What becomes of a bound that was computed in `f64`.
#[derive(Clone, Copy)]
enum Rounding {
    /// Nothing: it is exact.
    Exact,
    /// It is rounded to `f32`, which keeps the order of numbers.
    Single,
    /// It is widened by more than the roundings of one op: in any type, a number below the least normal `f32`
    /// may round to zero or away from it.
    Coarse,
}

impl Rounding {
    fn of(dtype: DType) -> Self {
        match dtype == DType::F32 {
            true => Self::Single,
            false => Self::Coarse,
        }
    }

    /// Of the exact product of a fused multiply-add: `f64` holds that of two `f32`.
    fn of_factors(dtype: DType) -> Self {
        match dtype == DType::F32 {
            true => Self::Exact,
            false => Self::Coarse,
        }
    }

    /// A lower bound for a negative sign, else an upper one.
    fn round(self, bound: f64, sign: f64) -> f64 {
        match self {
            Self::Exact => bound,
            Self::Single => f64::from((bound + sign * 4.0 * f64::EPSILON * bound.abs()) as f32),
            Self::Coarse => bound + sign * (0.01 * bound.abs() + f64::from(f32::MIN_POSITIVE)),
        }
    }
}

/// How many values are searched for the greatest one of a row.
const NEAREST: usize = 64;

impl Range {
    fn new((low, high): (f64, f64), nan: bool) -> Self {
        Self { low, high, nan }
    }

    /// The hull of these bounds, rounded.
    fn hull(bounds: &[f64], nan: bool, rounding: Rounding) -> Self {
        let low = bounds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = bounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let rounded = |bound: f64, sign: f64| {
            let outer = rounding.round(bound, sign);
            match outer * sign > LIMIT {
                true => sign * f64::INFINITY,
                false => outer,
            }
        };
        Self::new((rounded(low, -1.0), rounded(high, 1.0)), nan)
    }

    fn sum(self, other: Self, rounding: Rounding) -> Self {
        let opposite = |a: Self, b: Self| a.high == f64::INFINITY && b.low == f64::NEG_INFINITY;
        let nan = self.nan || other.nan || opposite(self, other) || opposite(other, self);
        let or = |sum: f64, otherwise: f64| if sum.is_nan() { otherwise } else { sum };
        let low = or(self.low + other.low, f64::NEG_INFINITY);
        let high = or(self.high + other.high, f64::INFINITY);
        Self::hull(&[low, high], nan, rounding)
    }

    fn product(self, other: Self, rounding: Rounding) -> Self {
        let meets_zero = |range: Self| range.low <= 0.0 && range.high >= 0.0;
        let unbounded = |range: Self| range.low.is_infinite() || range.high.is_infinite();
        let indefinite = |a: Self, b: Self| meets_zero(a) && unbounded(b);
        let nan = self.nan || other.nan || indefinite(self, other) || indefinite(other, self);
        let times = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
        let ends = |x: f64| [times(x, other.low), times(x, other.high)];
        Self::hull(&[ends(self.low), ends(self.high)].concat(), nan, rounding)
    }

    fn square(self, rounding: Rounding) -> Self {
        let magnitude = self.magnitude();
        let least = match self.low <= 0.0 && self.high >= 0.0 {
            true => 0.0,
            false => self.low.abs().min(self.high.abs()),
        };
        let bounds = [least * least, magnitude.high * magnitude.high];
        Self::hull(&bounds, self.nan, rounding)
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

    /// The greater of the two, of which a NaN is ignored.
    fn greater_number(self, other: Self) -> Self {
        let low = match (self.nan, other.nan) {
            (false, false) => self.low.max(other.low),
            (true, false) => other.low,
            (false, true) => self.low,
            (true, true) => self.low.min(other.low),
        };
        Self::new((low, self.high.max(other.high)), self.nan && other.nan)
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

/// The ranges of the values of a function.
pub(super) struct Ranges(Facts<Range>);

/// What the floats of a function may be.
pub(super) fn ranges(func: &Func) -> Ranges {
    Ranges(value_ranges(func, None))
}

/// The same and more: where integers are the bits of a float and `hidden` holds of them, what is made of them
/// meets only NaN if the float is NaN. The range of what they become leaves NaN out, and is no promise for
/// anything else.
pub(super) fn ranges_but_of_hidden(func: &Func, hidden: &EntityMap<Value, bool>) -> Ranges {
    Ranges(value_ranges(func, Some(hidden)))
}

impl Ranges {
    /// Whether every number that `value` may be lies in `low..=high`.
    pub(super) fn lies_in(&self, value: Value, (low, high): (f64, f64)) -> bool {
        let range = self.0[value];
        low <= range.low && range.high <= high
    }

    pub(super) fn may_be_nan(&self, value: Value) -> bool {
        self.0[value].nan
    }

    /// Whether an operation on numbers may be NaN.
    pub(super) fn makes_nan(&self, op: &Op) -> bool {
        let number = |value: &Value| Range {
            nan: false,
            ..self.0[*value]
        };
        let result = arithmetic(op, DType::F64, number);
        !matches!(op, Op::Unary(_)) && result.is_none_or(|result| result.nan)
    }
}

/// For each value what a function of it may know.
pub fn domains(func: &Func) -> EntityMap<Value, Domain> {
    let mut found = EntityMap::filled(func.value_count(), Domain::ANYTHING);
    for (value, range) in value_ranges(func, None).iter() {
        found[value] = Domain {
            least: range.low,
            greatest: range.high,
        };
    }
    found
}

fn value_ranges(func: &Func, hidden: Option<&EntityMap<Value, bool>>) -> Facts<Range> {
    let definitions = func.definitions();
    let floats = Floats {
        func,
        definitions,
        hidden,
    };
    solve(func, &floats)
}

struct Floats<'a> {
    func: &'a Func,
    definitions: EntityMap<Value, Option<Inst>>,
    hidden: Option<&'a EntityMap<Value, bool>>,
}

impl Floats<'_> {
    fn definition(&self, value: Value) -> Option<&Op> {
        self.definitions[value].map(|inst| self.func.op(inst))
    }

    /// The number that fills a value.
    fn constant(&self, value: Value) -> Option<Literal> {
        filling(value, |value| self.definition(value))
    }
}

impl Analysis for Floats<'_> {
    type Fact = Range;

    fn unknown(&self, _: Value) -> Range {
        ANYTHING
    }

    fn join(&self, _: Value, a: &Range, b: &Range) -> Range {
        a.union(*b)
    }

    fn result(&self, facts: &Facts<Range>, inst: Inst, result: Value) -> Range {
        let single = self.func.inst(inst).results.len() == 1;
        let dtype = self.func.ty(result).dtype();
        if single && let Some(dtype) = dtype.filter(|&dtype| !is_small(dtype)) {
            self.range(facts, inst, dtype)
        } else {
            ANYTHING
        }
    }
}

/// Whether numbers of a float may overflow below [`LIMIT`].
fn is_small(dtype: DType) -> bool {
    dtype.format().is_some_and(|format| format.exponent < 8)
}

/// Whether every element of `upper` is at least that of `x` at its place, wherever both are numbers:
/// the greatest along an axis, repeated along it, and what is greater still. The nearest values are
/// looked at first, and not all of many.
fn bounds_from_above(
    func: &Func,
    definitions: &EntityMap<Value, Option<Inst>>,
    upper: Value,
    x: Value,
) -> bool {
    let greater = |op: BinaryOp| matches!(op, BinaryOp::Maxnum | BinaryOp::Maximum);
    // Each with where the elements of `upper` are in it.
    let bits = dim_bits(&func.ty(upper).shape);
    let mut found = vec![(upper, IndexMap::reshape(bits.clone(), bits.clone()))];
    let mut next = 0;
    while let Some((value, map)) = found.get(next).cloned()
        && next < NEAREST
    {
        next += 1;
        let Some(inst) = definitions[value] else {
            continue;
        };
        let mut follow = |value: Value, map: IndexMap| {
            if !found.contains(&(value, map.clone())) {
                found.push((value, map));
            }
        };
        let op = func.op(inst);
        if let Some((x, before)) = func.view(inst) {
            follow(x, map.then(&before));
        } else if let Op::Splat(op::Splat { x }) = op {
            let columns = vec![0; map.columns().len()];
            follow(*x, IndexMap::new(bits.clone(), Vec::new(), columns, 0));
        } else if let Op::Binary(op::Binary { op, lhs, rhs }) = op
            && greater(*op)
        {
            follow(*lhs, map.clone());
            follow(*rhs, map);
        } else if let Op::Reduce(op::Reduce {
            sources,
            axis,
            combine,
            ..
        }) = op
            && sources[..] == [x]
            && map == IndexMap::reduce(bits.clone(), axis.index())
            && only_op(func, *combine).is_some_and(greater)
        {
            return true;
        }
    }
    false
}

impl Floats<'_> {
    fn range(&self, ranges: &Facts<Range>, inst: Inst, dtype: DType) -> Range {
        let op = self.func.op(inst);
        if let Op::Constant(op::Constant { value }) = op {
            return constant(*value);
        }
        if let Some(x) = op.rearranged() {
            return ranges[x];
        }
        if let Op::Cast(op::Cast { x }) = op
            && !dtype.is_narrow_float()
            && let Some(range) = self.func.ty(*x).dtype().and_then(integers)
        {
            return range;
        }
        if let Op::Select(op) = op {
            let condition = self.definition(op.condition);
            return chosen(condition, ranges, op.on_true, op.on_false);
        }
        if let Op::Binary(op::Binary {
            op: BinaryOp::Sub,
            lhs,
            rhs,
        }) = op
            && bounds_from_above(self.func, &self.definitions, *rhs, *lhs)
        {
            return Range {
                high: 0.0,
                ..ANYTHING
            };
        }
        let identity = match dtype == DType::F32 {
            true => self.identity(ranges, op),
            false => None,
        };
        identity
            .or_else(|| arithmetic(op, dtype, |x| ranges[*x]))
            .unwrap_or(ANYTHING)
    }
}

/// What arithmetic makes of operands in these ranges; nothing where this analysis has no rule.
fn arithmetic(op: &Op, dtype: DType, of: impl Fn(&Value) -> Range) -> Option<Range> {
    let rounding = Rounding::of(dtype);
    if let Op::Function(op::Function { op, x }) = op {
        let x = of(x);
        return values(*op, x.high).map(|bounds| Range::new(bounds, x.nan));
    }
    if let Op::Unary(op::Unary { op, x }) = op {
        return match op {
            UnaryOp::Neg => Some(of(x).negated()),
            UnaryOp::Abs => Some(of(x).magnitude()),
            UnaryOp::Not
            | UnaryOp::Sqrt
            | UnaryOp::Floor
            | UnaryOp::Ceil
            | UnaryOp::Trunc
            | UnaryOp::Round => None,
        };
    }
    if let Op::Binary(op::Binary { op, lhs, rhs }) = op {
        return match op {
            BinaryOp::Add => Some(of(lhs).sum(of(rhs), rounding)),
            BinaryOp::Sub => Some(of(lhs).sum(of(rhs).negated(), rounding)),
            BinaryOp::Mul if lhs == rhs => Some(of(lhs).square(rounding)),
            BinaryOp::Mul => Some(of(lhs).product(of(rhs), rounding)),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => None,
            BinaryOp::Maxnum => Some(of(lhs).greater_number(of(rhs))),
            BinaryOp::Minnum => {
                let greater = of(lhs).negated().greater_number(of(rhs).negated());
                Some(greater.negated())
            }
            BinaryOp::Minimum | BinaryOp::Maximum => None,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
        };
    }
    let Op::Ternary(op::Ternary { op, a, b, c }) = op else {
        return None;
    };
    match op {
        TernaryOp::Fma => {
            let product = of(a).product(of(b), Rounding::of_factors(dtype));
            Some(product.sum(of(c), rounding))
        }
    }
}

/// All numbers of an integer type, as floats: the bounds are powers of two.
fn integers(dtype: DType) -> Option<Range> {
    let bits = dtype.bits() as i32;
    let bounds = match dtype.class() {
        Class::Signed => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
        Class::Unsigned | Class::Bool => (0.0, 2f64.powi(bits)),
        Class::Float => return None,
    };
    Some(Range::new(bounds, false))
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
fn chosen(condition: Option<&Op>, ranges: &Facts<Range>, on_true: Value, on_false: Value) -> Range {
    let (x, y) = (ranges[on_true], ranges[on_false]);
    let (lesser, greater) = match condition {
        Some(Op::Compare(op::Compare {
            op: CompareOp::Lt,
            lhs,
            rhs,
        })) => (*lhs, *rhs),
        Some(Op::Compare(op::Compare {
            op: CompareOp::Gt,
            lhs,
            rhs,
        })) => (*rhs, *lhs),
        _ => return x.union(y),
    };
    if (lesser, greater) == (on_true, on_false) {
        // The lesser; `y` where either is NaN.
        return Range {
            low: x.low.min(y.low),
            high: if x.nan { y.high } else { x.high.min(y.high) },
            nan: y.nan,
        };
    }
    if (lesser, greater) == (on_false, on_true) {
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
    use crate::semantics::derived::Domain;
    use crate::text::parse;

    const LESS_MAXIMUM: &str = "func @f block (%x: ptr<f32>, %y: ptr<f32> write) {
       %i = arange start=0, end=4 : tile<4xi64>
       %u = expand_dims %i, axis=0 : tile<1x4xi64>
       %v = broadcast %u : tile<4x4xi64>
       %a = load %x, %v : tile<4x4xf32>
       %m = reduce [%a], axis=REDUCED, order=tree (%l: f32, %r: f32) {
         %t = maxnum %l, %r : f32
         yield [%t]
       } : tile<4xf32>
       %e = expand_dims %m, axis=1 : tile<4x1xf32>
       %b = broadcast %e : tile<4x4xf32>
       %d = sub %a, %b : tile<4x4xf32>
       store %y, %v, %d
     }";

    /// Whether what is stored is never positive.
    fn stores_not_positive(source: &str) -> bool {
        let func = parse(source, "test.bir").expect("parses");
        let found = super::domains(&func);
        let insts = func.all_insts();
        let stored = insts.iter().find_map(|&inst| func.op(inst).access()?.value);
        Domain::NOT_POSITIVE.holds(found[stored.expect("stores")])
    }

    #[test]
    fn nothing_exceeds_the_maximum_of_its_row() {
        assert!(stores_not_positive(&LESS_MAXIMUM.replace("REDUCED", "1")));
        // The maximum of a column says nothing of a row.
        assert!(!stores_not_positive(&LESS_MAXIMUM.replace("REDUCED", "0")));
    }
}
