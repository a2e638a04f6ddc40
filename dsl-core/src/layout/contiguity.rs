//! What is known about the numbers of an integer tile along each axis: runs that count up, runs that
//! are equal, and powers of two that divide them. Decides how wide memory accesses may be.

use std::cell::OnceCell;

pub use super::runs::{AxisFacts, Facts};
use crate::ir::dataflow::{Analysis, Facts as Known, solve};
use crate::ir::op::Elementwise;
use crate::ir::{BinaryOp, CompareOp, Func, IndexMap, Inst, Literal, Op, Value, op};

/// The divisor of zero: larger than any run.
const ENDLESS: u32 = 40;

/// Facts about every value of a block function.
#[derive(Clone, Debug)]
pub struct Contiguity {
    facts: Known<Facts>,
    aligned: OnceCell<bool>,
}

impl Contiguity {
    /// Analyses a block function.
    #[must_use]
    pub fn analyse(func: &Func) -> Self {
        Self {
            facts: solve(func, &Runs { func }),
            aligned: OnceCell::new(),
        }
    }

    /// Whether all masked accesses of runs are aligned, which is asked for each and found once.
    pub(super) fn remembered(&self, aligned: impl FnOnce() -> bool) -> bool {
        *self.aligned.get_or_init(aligned)
    }

    /// What is known about a value.
    #[must_use]
    pub fn of(&self, value: Value) -> Facts {
        self.facts.get(value).cloned().unwrap_or_default()
    }
}

struct Runs<'a> {
    func: &'a Func,
}

impl Analysis for Runs<'_> {
    type Fact = Facts;

    fn unknown(&self, value: Value) -> Facts {
        Facts::unknown(self.func.ty(value).shape.rank())
    }

    fn join(&self, _: Value, a: &Facts, b: &Facts) -> Facts {
        a.join(b)
    }

    fn argument(&self, position: usize, _: Value) -> Facts {
        let divisor = self.func.parameters[position].divisor.trailing_zeros();
        filled(divisor.min(ENDLESS), 0, |_| 0)
    }

    fn result(&self, known: &Known<Facts>, inst: Inst, result: Value) -> Facts {
        let func = self.func;
        Transfer { func, known }.result(inst, result)
    }

    fn index(&self, known: &Known<Facts>, of: &op::For, _: Value) -> Facts {
        Facts {
            axes: Vec::new(),
            scalar_divisor: known[of.lower].scalar_divisor.min(of.step.trailing_zeros()),
        }
    }
}

/// What an instruction makes of what is known of its operands.
struct Transfer<'a> {
    func: &'a Func,
    known: &'a Known<Facts>,
}

impl Transfer<'_> {
    fn of(&self, value: Value) -> &Facts {
        &self.known[value]
    }

    fn result(&self, inst: Inst, result: Value) -> Facts {
        let op = self.func.op(inst);
        let shape = self.func.ty(result).shape;
        let rank = shape.rank();
        let bits = |axis: usize| shape.extent(axis).trailing_zeros();
        if let Some((x, map)) = self.func.view(inst) {
            return self.viewed(x, &map);
        }
        if let Op::Constant(op::Constant { value }) = op {
            return filled(literal_divisor(*value), rank, bits);
        }
        if let Op::Splat(op::Splat { x }) = op {
            return filled(self.of(*x).scalar_divisor, rank, bits);
        }
        if let Op::Arange(op::Arange { start, .. }) = op {
            return each_axis(rank, 0, |axis| AxisFacts {
                contiguous: bits(axis),
                divisor: start.trailing_zeros().min(ENDLESS),
                ..AxisFacts::default()
            });
        }
        match op.elementwise() {
            Some(Elementwise::Binary(op)) => self.binary(op.op, op.lhs, op.rhs),
            Some(Elementwise::Compare(op)) => self.compare(op.op, op.lhs, op.rhs),
            Some(Elementwise::Select(op)) => self.select(op, rank),
            Some(Elementwise::Cast(op)) => self.cast(op.x, result),
            Some(Elementwise::Unary(_) | Elementwise::Ternary(_) | Elementwise::Approximate(_)) => {
                // Equal operands give equal results.
                let operands = op.operands();
                let operands: Vec<&Facts> = operands.iter().map(|&x| self.of(x)).collect();
                each_axis(rank, 0, |axis| {
                    let constant = operands.iter().map(|facts| facts.axis(axis).constant);
                    AxisFacts {
                        constant: constant.min().unwrap_or(0),
                        ..AxisFacts::default()
                    }
                })
            }
            Some(Elementwise::Bitcast(_)) | None => Facts::unknown(rank),
        }
    }

    fn select(&self, op: &op::Select, rank: usize) -> Facts {
        let joined = self.of(op.on_true).join(self.of(op.on_false));
        let condition = self.of(op.condition);
        each_axis(rank, joined.scalar_divisor, |axis| {
            let (runs, same) = (joined.axis(axis), condition.axis(axis).constant);
            let contiguous = runs.contiguous.min(same);
            AxisFacts {
                contiguous,
                constant: runs.constant.min(same),
                divisor: runs.divisor_of_runs(contiguous),
                ..AxisFacts::default()
            }
        })
    }

    /// Runs along an axis of the operand are runs along the axis whose lowest bits its lowest bits are, as
    /// far as these go. Bits that are turned round end runs that count.
    fn viewed(&self, x: Value, map: &IndexMap) -> Facts {
        let known = self.of(x);
        // What divides every number divides those of each axis.
        let all = known.axes.iter().map(|facts| facts.divisor_of_runs(0));
        let every = AxisFacts {
            divisor: all.max().unwrap_or(known.scalar_divisor),
            ..AxisFacts::default()
        };
        each_axis(map.from_bits().len(), every.divisor, |axis| {
            let columns = map.along(axis);
            let length = |column: &dyn Fn(u64) -> u64| {
                let run = (0..).zip(columns);
                run.take_while(|&(bit, &found)| found == column(bit))
                    .count() as u32
            };
            let Some(&first) = columns.first().filter(|&&first| first != 0) else {
                let constant = length(&|_| 0);
                return AxisFacts { constant, ..every };
            };
            let (source, 0) = map.place(first) else {
                return every;
            };
            let limit = length(&|bit| first << bit);
            let straight = (map.offset() / first).trailing_zeros().min(limit);
            let facts = known.axis(source);
            let contiguous = facts.contiguous.min(straight);
            AxisFacts {
                contiguous,
                constant: facts.constant.min(limit),
                falling: facts.falling.min(straight),
                divisor: facts.divisor_of_runs(contiguous),
            }
        })
    }

    fn binary(&self, op: BinaryOp, lhs: Value, rhs: Value) -> Facts {
        let (a, b) = (self.of(lhs), self.of(rhs));
        let rank = a.axes.len();
        match op {
            BinaryOp::Add | BinaryOp::Sub => {
                each_axis(rank, a.scalar_divisor.min(b.scalar_divisor), |axis| {
                    let (a, b) = (a.axis(axis), b.axis(axis));
                    let left = a.contiguous.min(b.constant);
                    let right = if op == BinaryOp::Sub {
                        0
                    } else {
                        a.constant.min(b.contiguous)
                    };
                    let contiguous = left.max(right);
                    AxisFacts {
                        contiguous,
                        constant: a.constant.min(b.constant),
                        divisor: a
                            .divisor_of_runs(contiguous)
                            .min(b.divisor_of_runs(contiguous)),
                        ..AxisFacts::default()
                    }
                })
            }
            BinaryOp::Mul => {
                let scalar = (a.scalar_divisor + b.scalar_divisor).min(ENDLESS);
                each_axis(rank, scalar, |axis| {
                    let (a, b) = (a.axis(axis), b.axis(axis));
                    AxisFacts {
                        constant: a.constant.min(b.constant),
                        divisor: (a.divisor_of_runs(0) + b.divisor_of_runs(0)).min(ENDLESS),
                        ..AxisFacts::default()
                    }
                })
            }
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Minnum
            | BinaryOp::Maxnum
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => each_axis(rank, 0, |axis| {
                let (a, b) = (a.axis(axis), b.axis(axis));
                let joins = matches!(op, BinaryOp::And | BinaryOp::Or);
                let falling = u32::from(joins) * a.falling().min(b.falling());
                AxisFacts {
                    constant: a.constant.min(b.constant),
                    falling,
                    ..AxisFacts::default()
                }
            }),
        }
    }

    /// A comparison is equal along a run where both sides are, or where one side counts up and the
    /// bound, a multiple of the run, cannot fall inside it. Where it may, what is below it comes first:
    /// a run that starts at a multiple of its length does not wrap.
    fn compare(&self, op: CompareOp, lhs: Value, rhs: Value) -> Facts {
        let (a, b) = (self.of(lhs), self.of(rhs));
        let below = |counting: AxisFacts, bound: AxisFacts| {
            counting
                .contiguous
                .min(bound.constant)
                .min(counting.divisor)
                .min(bound.divisor_of_runs(0))
        };
        let first_below = |counting: AxisFacts, bound: AxisFacts| {
            // From zero: other tiles are cut in few programs, for which code is not worth its registers.
            let runs = counting.contiguous.min(bound.constant);
            if counting.divisor < ENDLESS { 0 } else { runs }
        };
        each_axis(a.axes.len(), 0, |axis| {
            let (a, b) = (a.axis(axis), b.axis(axis));
            let crossing = match op {
                CompareOp::Lt | CompareOp::Ge => below(a, b),
                CompareOp::Gt | CompareOp::Le => below(b, a),
                CompareOp::Eq | CompareOp::Ne => 0,
            };
            AxisFacts {
                constant: a.constant.min(b.constant).max(crossing),
                falling: match op {
                    CompareOp::Lt | CompareOp::Le => first_below(a, b),
                    CompareOp::Gt | CompareOp::Ge => first_below(b, a),
                    CompareOp::Eq | CompareOp::Ne => 0,
                },
                ..Default::default()
            }
        })
    }

    /// A widening integer conversion keeps runs that cannot wrap; others keep equal runs.
    fn cast(&self, x: Value, result: Value) -> Facts {
        let (from, to) = (self.func.ty(x).dtype(), self.func.ty(result).dtype());
        let widens = from.zip(to).is_some_and(|(from, to)| {
            from.is_integer() && to.is_integer() && to.bits() >= from.bits()
        });
        let facts = self.of(x);
        let kept = if widens { facts.scalar_divisor } else { 0 };
        each_axis(facts.axes.len(), kept, |axis| {
            let facts = facts.axis(axis);
            let same = AxisFacts {
                constant: facts.constant,
                ..AxisFacts::default()
            };
            if !widens {
                return same;
            }
            let contiguous = facts.contiguous.min(facts.divisor);
            AxisFacts {
                contiguous,
                divisor: facts.divisor_of_runs(contiguous),
                ..same
            }
        })
    }
}

fn filled(divisor: u32, rank: usize, bits: impl Fn(usize) -> u32) -> Facts {
    each_axis(rank, divisor, |axis| AxisFacts {
        constant: bits(axis),
        divisor,
        ..AxisFacts::default()
    })
}

fn each_axis(rank: usize, scalar_divisor: u32, facts: impl FnMut(usize) -> AxisFacts) -> Facts {
    Facts {
        axes: (0..rank).map(facts).collect(),
        scalar_divisor,
    }
}

fn literal_divisor(literal: Literal) -> u32 {
    match literal.integer() {
        Some(value) => value.trailing_zeros().min(ENDLESS),
        None => 0,
    }
}
