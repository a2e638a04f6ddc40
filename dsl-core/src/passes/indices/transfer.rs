//! What an instruction makes of facts.

use std::collections::BTreeSet;

use super::{Along, ENDLESS, Fact, origin};
use crate::ir::dataflow::{Analysis, Facts};
use crate::ir::index_map::dim_offset;
use crate::ir::op::{Control, Elementwise};
use crate::ir::{BinaryOp, CompareOp, DType, Func, IndexMap, Inst, Op, Value, op};
use crate::passes::linear::Linear;
use crate::passes::ranges::{Range, computed, fitting};

/// The analysis of a function.
pub(super) struct Numbers<'a> {
    func: &'a Func,
    /// What holds the integers among the arguments.
    arguments: Option<Range>,
    /// What a `while` hands on, which may be of scalars that only its first region knows.
    tested: BTreeSet<Value>,
}

/// Runs of this length with this step.
type Run = (u32, Linear);

fn still(run: u32) -> Run {
    (run, Linear::default())
}

impl Analysis for Numbers<'_> {
    type Fact = Fact;

    fn unknown(&self, value: Value) -> Fact {
        Fact {
            range: fitting(self.func, value, None),
            divisor: 0,
            origin: None,
            axes: self.bits(value).map(Along::unknown).collect(),
        }
    }

    fn join(&self, _: Value, a: &Fact, b: &Fact) -> Fact {
        Fact {
            range: a.range.zip(b.range).map(|(a, b)| a.union(b)),
            ..joined(a, b)
        }
    }

    fn handed(&self, value: Value, fact: &Fact) -> Fact {
        let mut fact = fact.clone();
        if self.tested.contains(&value) {
            fact.origin = None;
            fact.axes = fact.axes.into_iter().map(Along::constant).collect();
        }
        fact
    }

    /// Ranges grow without end; all else weakens a few times.
    fn give_up(&self, value: Value, fact: Fact) -> Fact {
        let range = fitting(self.func, value, None);
        Fact { range, ..fact }
    }

    fn argument(&self, position: usize, value: Value) -> Fact {
        let mut fact = self.unknown(value);
        let parameter = &self.func.parameters[position];
        fact.range = fact.range.map(|it| it.told(parameter, self.arguments));
        fact.divisor = parameter.divisor.trailing_zeros();
        fact
    }

    fn result(&self, facts: &Facts<Fact>, inst: Inst, result: Value) -> Fact {
        let op = self.func.op(inst);
        let mut fact = self.computed(facts, inst, result);
        let dtype = self.func.ty(result).dtype();
        let range = dtype.and_then(|to| computed(self.func, op, to, |value| facts[value].range));
        fact.range = fitting(self.func, result, range);
        let divisors = fact.axes.iter().map(|along| along.divisor_of_runs(0));
        fact.divisor = divisors.fold(fact.divisor.min(ENDLESS), u32::max);
        fact
    }

    fn index(&self, facts: &Facts<Fact>, of: &op::For, index: Value) -> Fact {
        let (lower, upper) = (&facts[of.lower], &facts[of.upper]);
        let bounds = lower.range.zip(upper.range);
        // An index that runs is below the upper bound.
        let range = bounds.map(|(lower, upper)| (lower.low, lower.low.max(upper.high - 1)));
        Fact {
            range: fitting(
                self.func,
                index,
                range.map(|(low, high)| Range::new(low, high)),
            ),
            divisor: lower.divisor.min(of.step.trailing_zeros()),
            ..self.unknown(index)
        }
    }
}

fn joined(a: &Fact, b: &Fact) -> Fact {
    let axes = a.axes.iter().zip(&b.axes);
    Fact {
        range: None,
        divisor: a.divisor.min(b.divisor),
        origin: a.origin.clone().filter(|_| a.origin == b.origin),
        axes: axes.map(|(a, b)| a.join(b)).collect(),
    }
}

impl<'a> Numbers<'a> {
    pub(super) fn new(func: &'a Func, arguments: Option<Range>) -> Self {
        let mut tested = BTreeSet::new();
        for inst in func.all_insts() {
            if let Some(Control::While(_)) = func.op(inst).control() {
                let flows = func.carried(inst).into_iter();
                let flows = flows.flat_map(|carried| carried.flows());
                tested.extend(flows.map(|(value, _)| value));
            }
        }
        Self {
            func,
            arguments,
            tested,
        }
    }

    /// Log2 of the extent of each axis.
    fn bits(&self, value: Value) -> impl Iterator<Item = u32> + Clone + use<> {
        let shape = self.func.ty(value).shape;
        (0..shape.rank()).map(move |axis| shape.extents()[axis].trailing_zeros())
    }

    /// All but the range.
    fn computed(&self, facts: &Facts<Fact>, inst: Inst, result: Value) -> Fact {
        let op = self.func.op(inst);
        let bits = self.bits(result);
        let filled = |divisor, origin| Fact {
            divisor,
            origin,
            axes: bits
                .clone()
                .map(|bits| Along::still(bits, divisor))
                .collect(),
            range: None,
        };
        if let Some((x, map)) = self.func.view(inst) {
            return viewed(&facts[x], &map);
        }
        if let Op::Constant(op::Constant { value }) = op {
            let divisor = value.integer().map_or(0, i128::trailing_zeros);
            return filled(divisor.min(ENDLESS), None);
        }
        if let Op::Splat(op::Splat { x }) = op {
            return filled(facts[*x].divisor, origin(facts, *x));
        }
        if let Op::Arange(op::Arange { start, .. }) = op {
            let run = |bits| (bits, Linear::known(1));
            let along = |bits| Along::new(bits, run(bits), start.trailing_zeros());
            return Fact {
                origin: Some(Linear::known(*start)),
                ..of_axes(bits.map(along))
            };
        }
        match op.elementwise() {
            Some(Elementwise::Binary(op)) => self.binary(facts, op),
            Some(Elementwise::Compare(op)) => self.compare(facts, op),
            Some(Elementwise::Select(op)) => select(facts, op),
            Some(Elementwise::Cast(op)) => self.cast(facts, op.x, result),
            Some(
                Elementwise::Unary(_)
                | Elementwise::Ternary(_)
                | Elementwise::Approximate(_)
                | Elementwise::Bitcast(_),
            ) => {
                // Equal operands give equal results.
                let operands = op.operands();
                let equal = |axis: usize| {
                    let runs = operands.iter().map(|&x| facts[x].axes[axis].equal());
                    still(runs.min().unwrap_or(0))
                };
                let axes = bits.enumerate();
                let axes = axes.map(|(axis, bits)| Along::new(bits, equal(axis), 0));
                of_axes(axes)
            }
            Some(Elementwise::InlinePtx(_)) | None => of_axes(bits.map(Along::unknown)),
        }
    }

    fn binary(&self, facts: &Facts<Fact>, op: &op::Binary) -> Fact {
        let (a, b) = (&facts[op.lhs], &facts[op.rhs]);
        if let Some(same) = picked(op.op, a, b) {
            return same.clone();
        }
        let dtype = self.func.ty(op.lhs).dtype();
        let width = dtype
            .filter(|dtype| dtype.is_integer())
            .map_or(0, DType::bits);
        let operands = [op.lhs, op.rhs];
        let pair = Pair {
            op: op.op,
            width,
            facts: [a, b],
            origins: operands.map(|value| origin(facts, value)),
        };
        Fact {
            range: None,
            divisor: pair.divisor(a.divisor, b.divisor),
            origin: pair.origin(),
            axes: (0..a.axes.len()).map(|axis| pair.along(axis)).collect(),
        }
    }

    /// A comparison is equal along a run where both sides are, or where one side counts up and the
    /// bound, a multiple of the run, cannot fall inside it. Where it may, what is below it comes first:
    /// a run that starts at zero does not wrap.
    fn compare(&self, facts: &Facts<Fact>, op: &op::Compare) -> Fact {
        let (a, b) = (&facts[op.lhs], &facts[op.rhs]);
        let dtype = self.func.ty(op.lhs).dtype();
        let most = dtype.map_or(0, DType::bits).saturating_sub(1);
        let below = |counting: &Along, bound: &Along| {
            counting.within(bound.equal(), bound.divisor_of_runs(0).min(most))
        };
        // From zero: other tiles are cut in few programs, for which code is not worth its registers.
        let first_below = |counting: &Along, bound: &Along| {
            let run = counting.counting().min(bound.equal()).min(most);
            u32::from(counting.divisor_of_runs(counting.run()) == ENDLESS) * run
        };
        let along = |(a, b): (&Along, &Along)| {
            let (crossing, falling) = match op.op {
                CompareOp::Lt => (below(a, b), first_below(a, b)),
                CompareOp::Le => (below(b, a), first_below(a, b)),
                CompareOp::Gt => (below(b, a), first_below(b, a)),
                CompareOp::Ge => (below(a, b), first_below(b, a)),
                CompareOp::Eq | CompareOp::Ne => (0, 0),
            };
            let equal = a.equal().min(b.equal()).max(crossing);
            Along::new(a.bits(), still(equal), 0).falls(falling)
        };
        of_axes(a.axes.iter().zip(&b.axes).map(along))
    }

    /// A conversion to a type with fewer numbers keeps what holds modulo these. One to a type with more
    /// keeps runs that do not wrap.
    fn cast(&self, facts: &Facts<Fact>, x: Value, result: Value) -> Fact {
        let fact = &facts[x];
        let types = [x, result].map(|value| self.func.ty(value).dtype());
        let [Some(from), Some(to)] = types.map(|ty| ty.filter(|dtype| dtype.is_integer())) else {
            let equal = |along: &Along| Along::new(along.bits(), still(along.equal()), 0);
            return of_axes(fact.axes.iter().map(equal));
        };
        if to.bits() <= from.bits() {
            return fact.clone();
        }
        let along = |along: &Along| {
            let exact = fact
                .range
                .is_some_and(|range| along.is_exact(range, from.bits()));
            let run = match exact {
                true => along.run(),
                false => along.within(along.run(), from.bits() - 1),
            };
            let divisor = along.divisor_of_runs(run);
            Along::new(along.bits(), (run, along.step().clone()), divisor)
        };
        Fact {
            divisor: fact.divisor,
            ..of_axes(fact.axes.iter().map(along))
        }
    }
}

/// A fact that says nothing but what these axes do.
fn of_axes(axes: impl Iterator<Item = Along>) -> Fact {
    Fact {
        range: None,
        divisor: 0,
        origin: None,
        axes: axes.collect(),
    }
}

/// The operand that a remainder or an extremum is, where ranges tell.
fn picked<'f>(op: BinaryOp, a: &'f Fact, b: &'f Fact) -> Option<&'f Fact> {
    let (left, right) = a.range.zip(b.range)?;
    let (below, above) = (left.high <= right.low, right.high <= left.low);
    let [first, second] = if matches!(op, BinaryOp::Rem) {
        [left.low >= 0 && left.high < right.low, false]
    } else if matches!(op, BinaryOp::Minimum | BinaryOp::Minnum) {
        [below, above]
    } else if matches!(op, BinaryOp::Maximum | BinaryOp::Maxnum) {
        [above, below]
    } else {
        [false, false]
    };
    first.then_some(a).or_else(|| second.then_some(b))
}

fn select(facts: &Facts<Fact>, op: &op::Select) -> Fact {
    let [condition, a, b] = [op.condition, op.on_true, op.on_false].map(|value| &facts[value]);
    if let Some(holds) = condition.number() {
        return if holds != 0 { a.clone() } else { b.clone() };
    }
    let mut fact = joined(a, b);
    for (along, condition) in fact.axes.iter_mut().zip(&condition.axes) {
        let run = along.run().min(condition.equal());
        let divisor = along.divisor_of_runs(run);
        *along = Along::new(along.bits(), (run, along.step().clone()), divisor);
    }
    fact.origin = None;
    fact
}

/// Each index bit of the result that is one of the operand's adds what that bit does there. Bits that are
/// turned round take it away.
fn viewed(fact: &Fact, map: &IndexMap) -> Fact {
    let along = |column: u64| {
        let (axis, bit) = map.place(column);
        let straight = map.offset() & column == 0;
        (&fact.axes[axis], bit, straight)
    };
    let added = |column: u64| {
        if column == 0 {
            return Some(Linear::default());
        }
        let (along, bit, straight) = along(column);
        let sign = if straight { 1 } else { -1 };
        (bit < along.run()).then(|| along.step().scaled(sign << bit))
    };
    let axes = (0..map.from_bits().len()).map(|axis| {
        let columns = map.along(axis);
        let step = columns.first().and_then(|&column| added(column));
        let step = step.unwrap_or_default();
        let fits = |&(bit, &column): &(usize, &u64)| added(column) == Some(step.scaled(1 << bit));
        let run = columns.iter().enumerate().take_while(fits).count();
        // What is zero in the index of the first number of a run.
        let is_zero = |column: u64| {
            map.offset() & column == 0
                && (columns[..run].contains(&column) || !map.columns().contains(&column))
        };
        let sources = fact.axes.iter().enumerate();
        let divisors = sources.map(|(source, along)| {
            let first = dim_offset(map.to_bits(), source);
            let zeros = (0..along.run()).take_while(|bit| is_zero(1 << (first + bit)));
            along.divisor_of_runs(zeros.count() as u32)
        });
        let divisor = divisors.fold(fact.divisor, u32::max);
        let falling = columns
            .first()
            .filter(|&&column| column != 0)
            .map_or(0, |&first| {
                let (along, bit, _) = along(first);
                let kept = |&(at, &column): &(usize, &u64)| {
                    bit == 0 && column == first << at && map.offset() & column == 0
                };
                let kept = columns.iter().enumerate().take_while(kept).count();
                along.falling().min(kept as u32)
            });
        Along::new(columns.len() as u32, (run as u32, step), divisor).falls(falling)
    });
    Fact {
        range: None,
        divisor: fact.divisor,
        origin: fact.origin.clone().filter(|_| map.offset() == 0),
        axes: axes.collect(),
    }
}

/// The operands of a binary op.
struct Pair<'a> {
    op: BinaryOp,
    /// The bits of an integer; 0 of other types.
    width: u32,
    facts: [&'a Fact; 2],
    origins: [Option<Linear>; 2],
}

impl Pair<'_> {
    /// The number that all those on the right are, if it is an amount to shift by.
    fn amount(&self) -> Option<u32> {
        let amount = u32::try_from(self.facts[1].number()?).ok()?;
        (amount < self.width).then_some(amount)
    }

    /// What a division divides by, all that it divides being such that it rounds down.
    fn by(&self) -> Option<i128> {
        if self.op == BinaryOp::Shr {
            return self.amount().map(|amount| 1 << amount);
        }
        let natural = self.facts[0].range?.low >= 0;
        self.facts[1].number().filter(|&by| by > 0 && natural)
    }

    fn power(&self) -> Option<u32> {
        let by = self.by()?.cast_unsigned();
        by.is_power_of_two().then(|| by.trailing_zeros())
    }

    fn origin(&self) -> Option<Linear> {
        let [Some(a), b] = &self.origins else {
            return None;
        };
        match self.op {
            BinaryOp::Add => a.plus(b.as_ref()?),
            BinaryOp::Sub => a.plus(&b.as_ref()?.scaled(-1)),
            BinaryOp::Mul => a.times(b.as_ref()?),
            BinaryOp::Shl => Some(a.scaled(1 << self.amount()?)),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shr => None,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => None,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => None,
        }
    }

    /// What divides the result, given what divides the operands.
    fn divisor(&self, a: u32, b: u32) -> u32 {
        match self.op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor => a.min(b),
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => a.min(b),
            BinaryOp::And => a.max(b),
            BinaryOp::Mul => a + b,
            BinaryOp::Shl => self.amount().map_or(0, |amount| a + amount),
            BinaryOp::Div | BinaryOp::Shr => self.power().map_or(0, |bits| a.saturating_sub(bits)),
            BinaryOp::Rem if self.power().is_some_and(|bits| a >= bits) => ENDLESS,
            BinaryOp::Rem => a.min(b),
        }
    }

    fn along(&self, axis: usize) -> Along {
        let [a, b] = self.facts.map(|fact| &fact.axes[axis]);
        let equal = a.equal().min(b.equal());
        let mut best = still(equal);
        if self.width > 0 {
            let runs = [
                self.sum(a, b),
                self.moved(axis, [0, 1]),
                self.moved(axis, [1, 0]),
            ];
            for run in runs.into_iter().flatten() {
                if run.0 > best.0 {
                    best = run;
                }
            }
        }
        let divisor = self.divisor(a.divisor_of_runs(best.0), b.divisor_of_runs(best.0));
        let joins = matches!(self.op, BinaryOp::And | BinaryOp::Or);
        let falling = u32::from(joins) * a.falling().min(b.falling());
        Along::new(a.bits(), best, divisor).falls(falling)
    }

    fn sum(&self, a: &Along, b: &Along) -> Option<Run> {
        let run = a.run().min(b.run());
        if self.op == BinaryOp::Add {
            return Some((run, a.step().plus(b.step())?));
        }
        let difference = || a.step().plus(&b.step().scaled(-1));
        (self.op == BinaryOp::Sub).then(|| Some((run, difference()?)))?
    }

    /// What an operand that moves along an axis gives with one that does not; `order` says which is
    /// which.
    fn moved(&self, axis: usize, order: [usize; 2]) -> Option<Run> {
        let [moving, fixed] = order.map(|at| &self.facts[at].axes[axis]);
        let most = moving.run().min(fixed.equal());
        let step = moving.step();
        let number = self.facts[order[1]].number();
        let zeros = fixed.divisor_of_runs(most);
        let ones = number.map_or(0, |number| number.trailing_ones());
        let kept = |bits: u32, by| (moving.within(most, bits.min(self.width)), step.scaled(by));
        let longer = |a: Run, b: Run| if b.0 > a.0 { b } else { a };
        match self.op {
            BinaryOp::Mul => {
                let factor = self.origins[order[1]].as_ref();
                let factor = factor.filter(|_| self.facts[order[1]].is_uniform())?;
                return Some((most, step.times(factor)?));
            }
            BinaryOp::And => return Some(longer(kept(ones, 1), kept(zeros, 0))),
            BinaryOp::Or => return Some(longer(kept(zeros, 1), kept(ones, 0))),
            BinaryOp::Xor => return Some(longer(kept(zeros, 1), kept(ones, -1))),
            BinaryOp::Shl | BinaryOp::Rem | BinaryOp::Div | BinaryOp::Shr if order == [0, 1] => {}
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem => return None,
            BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Minnum | BinaryOp::Maxnum => {
                return None;
            }
            BinaryOp::Shl | BinaryOp::Shr => return None,
        }
        if self.op == BinaryOp::Shl {
            return Some((most, step.scaled(1 << self.amount()?)));
        }
        let by = self.by()?;
        let keeps = i64::from(self.op == BinaryOp::Rem);
        let aligned = kept(self.power().unwrap_or(0), keeps);
        let constant = step.constant().map(i128::from);
        let exact = moving.is_exact(self.facts[0].range?, self.width);
        let Some(step) = constant.filter(|step| exact && step % by == 0) else {
            return Some(aligned);
        };
        let step = if keeps == 1 { 0 } else { step / by };
        Some(longer(aligned, (most, Linear::known(step as i64))))
    }
}
