//! What integers can be: a range for each value.
//!
//! Indices are 64-bit integers, and a GPU takes two instructions for most of what it does with one.
//! Comparisons of numbers that fit 32 bits are made at 32 bits: the numbers compared are the same.

use super::rewrite::{Rewriter, rewrite};
use crate::ir::dataflow::{Analysis, Facts, solve};
use crate::ir::{BinaryOp, Class, DType, Func, Inst, Literal, Op, Value, op};

/// The integers `low..=high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The least.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

/// What 32-bit signed integers hold.
const NARROW: Range = Range {
    low: i32::MIN as i128,
    high: i32::MAX as i128,
};

/// The most masks that a number is narrowed through.
const MOST_MASKS: usize = 16;

impl Range {
    fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// All values of an integer type.
    pub(super) fn of(dtype: DType) -> Option<Self> {
        let bits = dtype.bits();
        match dtype.class() {
            Class::Bool => Some(Self::new(0, 1)),
            Class::Unsigned => Some(Self::new(0, (1 << bits) - 1)),
            Class::Signed => Some(Self::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Class::Float => None,
        }
    }

    /// Whether all its integers are in `other`.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    /// Whether 32-bit signed integers hold all of it.
    #[must_use]
    pub fn is_narrow(self) -> bool {
        self.is_within(NARROW)
    }

    fn overlap(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then(|| Self::new(low, high))
    }

    fn union(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The hull of a function that has its extremes at the ends, such as a product.
    fn corners(self, other: Self, function: impl Fn(i128, i128) -> i128) -> Self {
        let ends = [self.low, self.high].map(|x| [function(x, other.low), function(x, other.high)]);
        let ends = ends.as_flattened();
        let least = ends.iter().copied().min().unwrap_or(self.low);
        let greatest = ends.iter().copied().max().unwrap_or(self.high);
        Self::new(least, greatest)
    }

    fn exact(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// The mathematical result; nothing where this analysis has no rule.
    fn combine(self, op: BinaryOp, other: Self, bits: u32) -> Option<Self> {
        let natural = self.low >= 0 && other.low >= 0;
        let amount = other
            .exact()
            .and_then(|amount| u32::try_from(amount).ok())
            .filter(|&amount| amount < bits);
        match op {
            BinaryOp::Add => Some(Self::new(self.low + other.low, self.high + other.high)),
            BinaryOp::Sub => Some(Self::new(self.low - other.high, self.high - other.low)),
            BinaryOp::Mul => Some(self.corners(other, i128::saturating_mul)),
            BinaryOp::Minimum => Some(Self::new(
                self.low.min(other.low),
                self.high.min(other.high),
            )),
            BinaryOp::Maximum => Some(Self::new(
                self.low.max(other.low),
                self.high.max(other.high),
            )),
            BinaryOp::And if natural => Some(Self::new(0, self.high.min(other.high))),
            BinaryOp::And if self.low >= 0 => Some(Self::new(0, self.high)),
            BinaryOp::And if other.low >= 0 => Some(Self::new(0, other.high)),
            BinaryOp::Or | BinaryOp::Xor if natural => {
                let width = 128 - (self.high | other.high).leading_zeros();
                Some(Self::new(0, (1 << width) - 1))
            }
            BinaryOp::Shl => {
                amount.map(|amount| Self::new(self.low << amount, self.high << amount))
            }
            BinaryOp::Shr => {
                amount.map(|amount| Self::new(self.low >> amount, self.high >> amount))
            }
            BinaryOp::Div if self.low >= 0 && other.low > 0 => {
                Some(Self::new(self.low / other.high, self.high / other.low))
            }
            BinaryOp::Rem if self.low >= 0 && other.low > 0 => {
                Some(Self::new(0, self.high.min(other.high - 1)))
            }
            BinaryOp::Or | BinaryOp::Xor | BinaryOp::And | BinaryOp::Div | BinaryOp::Rem => None,
            BinaryOp::Minnum | BinaryOp::Maxnum => None,
        }
    }
}

/// The range of each value that is an integer or a `bool`.
#[must_use]
pub fn ranges(func: &Func) -> Facts<Option<Range>> {
    ranges_where(func, None)
}

/// The same where the integers among the arguments are known to be in `arguments`.
#[must_use]
pub fn ranges_where(func: &Func, arguments: Option<Range>) -> Facts<Option<Range>> {
    solve(func, &Integers { func, arguments })
}

struct Integers<'a> {
    func: &'a Func,
    arguments: Option<Range>,
}

impl Analysis for Integers<'_> {
    type Fact = Option<Range>;

    fn unknown(&self, value: Value) -> Option<Range> {
        self.func.ty(value).dtype().and_then(Range::of)
    }

    fn join(&self, _: Value, a: &Option<Range>, b: &Option<Range>) -> Option<Range> {
        a.zip(*b).map(|(a, b)| a.union(b))
    }

    fn argument(&self, _: usize, value: Value) -> Option<Range> {
        let whole = self.unknown(value)?;
        let known = self.arguments.and_then(|known| whole.overlap(known));
        Some(known.unwrap_or(whole))
    }

    fn result(&self, facts: &Facts<Option<Range>>, inst: Inst, result: Value) -> Option<Range> {
        self.fitting(result, self.range(facts, self.func.op(inst), result))
    }

    /// An index that runs is below the upper bound.
    fn index(&self, facts: &Facts<Option<Range>>, of: &op::For, index: Value) -> Option<Range> {
        let bounds = facts[of.lower].zip(facts[of.upper]);
        let range =
            bounds.map(|(lower, upper)| Range::new(lower.low, lower.low.max(upper.high - 1)));
        self.fitting(index, range)
    }
}

impl Integers<'_> {
    /// Takes a range only if it holds no number that the type has not: then nothing wrapped.
    fn fitting(&self, value: Value, range: Option<Range>) -> Option<Range> {
        let whole = self.unknown(value)?;
        Some(
            range
                .filter(|range| range.is_within(whole))
                .unwrap_or(whole),
        )
    }

    fn range(&self, facts: &Facts<Option<Range>>, op: &Op, result: Value) -> Option<Range> {
        if let Op::Constant(op::Constant { value }) = op {
            return value.integer().map(|value| Range::new(value, value));
        }
        if let Op::Binary(op::Binary { op, lhs, rhs }) = op {
            let bits = self.func.ty(result).dtype()?.bits();
            return facts[*lhs]?.combine(*op, facts[*rhs]?, bits);
        }
        if let Op::Cast(op::Cast { x }) = op {
            return facts[*x];
        }
        if let Op::Arange(op::Arange { start, end }) = op {
            return Some(Range::new((*start).into(), i128::from(*end) - 1));
        }
        if let Op::Places(op::Places { values }) = op {
            let ends = values.iter().min().zip(values.iter().max());
            return ends.map(|(&low, &high)| Range::new(low.into(), high.into()));
        }
        if let Op::LaneId(_) = op {
            return Some(Range::new(0, 31));
        }
        if let Op::WarpId(_) = op {
            return Some(Range::new(0, i128::from(self.func.warps.max(1)) - 1));
        }
        // The extents of a grid are 32-bit numbers.
        if let Op::ProgramId(_) | Op::NumPrograms(_) = op {
            return Some(Range::new(0, u32::MAX.into()));
        }
        let mut picked = op.picked_from().into_iter().map(|from| facts[from]);
        let first = picked.next()??;
        picked.try_fold(first, |all, range| Some(all.union(range?)))
    }
}

/// Compares at 32 bits where all numbers that are compared fit.
pub fn narrow_comparisons(func: &mut Func) {
    let ranges = ranges(func);
    rewrite(func, &mut |rewriter, inst| {
        let Op::Compare(op::Compare { op, lhs, rhs }) = *rewriter.builder.func().op(inst) else {
            return None;
        };
        let wide = |value: Value| {
            let dtype = rewriter.builder.ty(value).dtype();
            dtype == Some(DType::I64) || dtype == Some(DType::U64)
        };
        let fits = |value: Value| {
            ranges
                .get(value)
                .is_some_and(|range| range.is_some_and(Range::is_narrow))
        };
        if !wide(lhs) || !fits(lhs) || !fits(rhs) {
            return None;
        }
        if let Some([distance, room]) = apart(rewriter, &ranges, lhs, rhs) {
            return Some(vec![rewriter.builder.compare(op, distance, room)]);
        }
        let [lhs, rhs] = [lhs, rhs].map(|value| narrowed(rewriter, value, 0));
        Some(vec![rewriter.builder.compare(op, lhs, rhs)])
    });
}

/// For `base + distance` and `bound` the two numbers `distance` and `bound - base`, which compare alike.
///
/// Sums of one base and many constants become as many constants, compared with one number: they take no
/// registers while masks wait for a loop.
fn apart(
    rewriter: &mut Rewriter,
    ranges: &Facts<Option<Range>>,
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
    let range = |value| ranges.get(value).copied().flatten();
    let [from, to, whole] = [range(base)?, range(bound)?, range(sum)?];
    // A bound below every sum compares like any other such bound.
    let least = NARROW.low + from.high;
    let fits = from.low >= 0 && from.is_narrow() && range(distance)?.is_narrow();
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
    use crate::passes::tidy;
    use crate::semantics::binary;
    use crate::text::parse;
    use crate::verify;

    /// Every range of 8-bit numbers from these ends, every pair of numbers in them, every operator.
    #[test]
    fn ranges_hold_every_result() {
        let numbers = |dtype: DType, range: Range| {
            let literal = move |value| Literal::from_integer(dtype, value);
            (range.low..=range.high).filter_map(literal)
        };
        let signed = [-128, -127, -3, -1, 0, 1, 4, 7, 126, 127];
        let unsigned = [0, 1, 2, 3, 7, 8, 100, 128, 254, 255];
        for (dtype, ends) in [(DType::I8, signed), (DType::U8, unsigned)] {
            let whole = Range::of(dtype).expect("is an integer");
            let ranges = ends.iter().enumerate().flat_map(|(at, &low)| {
                let highs = ends[at..]
                    .iter()
                    .filter(move |&&high| high - low <= 8 || high - low == 255);
                highs.map(move |&high| Range::new(low, high))
            });
            let ranges: Vec<Range> = ranges.collect();
            for (op, left, right) in pairs(&ranges) {
                let Some(found) = left.combine(op, right, 8).filter(|it| it.is_within(whole))
                else {
                    continue;
                };
                for (x, y) in
                    numbers(dtype, left).flat_map(|x| numbers(dtype, right).map(move |y| (x, y)))
                {
                    let bits = binary(op, dtype, x.bits, y.bits);
                    let value = Literal::from_bits(dtype, bits).integer().expect("is one");
                    assert!(
                        Range::new(value, value).is_within(found),
                        "{op:?} of {left:?} and {right:?}: {value} is not in {found:?}"
                    );
                }
            }
        }
    }

    fn pairs(ranges: &[Range]) -> impl Iterator<Item = (BinaryOp, Range, Range)> {
        const OPERATORS: [BinaryOp; 11] = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Minimum,
            BinaryOp::Maximum,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::Rem,
        ];
        let operators = OPERATORS.into_iter().chain([BinaryOp::Div]);
        operators.flat_map(move |op| {
            let left = ranges.iter();
            left.flat_map(move |&left| ranges.iter().map(move |&right| (op, left, right)))
        })
    }

    /// What a loop carries is what its iterations keep it to, and anything where they may not end.
    #[test]
    fn loops_are_gone_through_until_nothing_weakens() {
        let stored = |next: &str| {
            let source = format!(
                "func @f block (%y: ptr<i64> write, %n: i64) {{
                   %zero = constant value=i64(0) : i64
                   %seven = constant value=i64(7) : i64
                   %d = for %zero, %n, [%zero], step=1, stages=1 (%i: i64, %p: i64) {{
                     %e = for %zero, %n, [%p], step=1, stages=1 (%j: i64, %q: i64) {{
                       %t = {next} : i64
                       yield [%t]
                     }} : i64
                     yield [%e]
                   }} : i64
                   store %y, %zero, %d
                 }}"
            );
            let func = parse(&source, "test.bir").expect("parses");
            let found = super::ranges(&func);
            let insts = func.all_insts();
            let stored = insts.iter().find_map(|&inst| func.op(inst).access()?.value);
            found[stored.expect("stores")].expect("is an integer")
        };
        assert_eq!(stored("and %j, %seven"), Range::new(0, 7));
        assert_eq!(stored("maximum %q, %seven"), Range::new(0, 7));
        let whole = Range::of(DType::I64).expect("is an integer");
        assert_eq!(stored("add %q, %seven"), whole);
    }

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
