//! What integers can be: a range for each value.

use crate::ir::{BinaryOp, Class, CompareOp, DType, Func, Op, Parameter, Value, op};

/// The integers `low..=high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The least.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

impl Range {
    /// The integers `low..=high`.
    #[must_use]
    pub const fn new(low: i128, high: i128) -> Self {
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

    /// What a parameter can be whose type holds these integers: what is written at it, and `all` that arguments are in.
    pub(super) fn told(self, parameter: &Parameter, all: Option<Self>) -> Self {
        let within = parameter.within;
        let within = within.map(|[least, most]| Self::new(least.into(), most.into()));
        let known = all.into_iter().chain(within);
        known.fold(self, |range, known| range.overlap(known).unwrap_or(range))
    }

    /// Whether all its integers are in `other`.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    pub(super) fn overlap(self, other: Self) -> Option<Self> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        (low <= high).then(|| Self::new(low, high))
    }

    pub(super) fn union(self, other: Self) -> Self {
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

    pub(super) fn exact(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    /// Whether a comparison holds for all pairs, if it does for all or none.
    pub(in crate::passes) fn compare(self, op: CompareOp, other: Self) -> Option<bool> {
        let (below, above) = (self.high < other.low, self.low > other.high);
        let equal = self.exact().is_some_and(|it| other.exact() == Some(it));
        let apart = below || above;
        let (holds, fails) = match op {
            CompareOp::Lt => (below, self.low >= other.high),
            CompareOp::Le => (self.high <= other.low, above),
            CompareOp::Gt => (above, self.high <= other.low),
            CompareOp::Ge => (self.low >= other.high, below),
            CompareOp::Eq => (equal, apart),
            CompareOp::Ne => (apart, equal),
        };
        (holds || fails).then_some(holds)
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
            // Bits of a natural number set in the other one add at most that number.
            BinaryOp::Or if other.low >= 0 => Some(Self::new(self.low, self.high + other.high)),
            BinaryOp::Or if self.low >= 0 => Some(Self::new(other.low, self.high + other.high)),
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

/// The range of a value, where what is computed is known to be in `range`: it is taken only if it
/// holds no number that the type has not, because then nothing wrapped.
pub(super) fn fitting(func: &Func, value: Value, range: Option<Range>) -> Option<Range> {
    let whole = func.ty(value).dtype().and_then(Range::of)?;
    Some(range.filter(|it| it.is_within(whole)).unwrap_or(whole))
}

/// The range of what an op computes, where `of` gives those of operands.
pub(super) fn computed(
    func: &Func,
    op: &Op,
    dtype: DType,
    of: impl Fn(Value) -> Option<Range>,
) -> Option<Range> {
    if let Op::Constant(op::Constant { value }) = op {
        return value.integer().map(|value| Range::new(value, value));
    }
    if let Op::Binary(op::Binary { op, lhs, rhs }) = op {
        return of(*lhs)?.combine(*op, of(*rhs)?, dtype.bits());
    }
    if let Op::Compare(op::Compare { op, lhs, rhs }) = op {
        let holds = of(*lhs)?.compare(*op, of(*rhs)?)?;
        return Some(Range::new(holds.into(), holds.into()));
    }
    if let Op::Cast(op::Cast { x }) = op {
        return of(*x);
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
        return Some(Range::new(0, i128::from(func.warps.max(1)) - 1));
    }
    // The extents of a grid are 32-bit numbers.
    if let Op::ProgramId(_) | Op::NumPrograms(_) = op {
        return Some(Range::new(0, u32::MAX.into()));
    }
    let mut picked = op.picked_from().into_iter().map(of);
    let first = picked.next()??;
    picked.try_fold(first, |all, range| Some(all.union(range?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Literal;
    use crate::passes::indices::Indices;
    use crate::semantics::binary;
    use crate::text::parse;

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
            let found = Indices::of(&func);
            let insts = func.all_insts();
            let stored = insts.iter().find_map(|&inst| func.op(inst).access()?.value);
            found.range(stored.expect("stores")).expect("is an integer")
        };
        assert_eq!(stored("and %j, %seven"), Range::new(0, 7));
        assert_eq!(stored("maximum %q, %seven"), Range::new(0, 7));
        let whole = Range::of(DType::I64).expect("is an integer");
        assert_eq!(stored("add %q, %seven"), whole);
    }
}
