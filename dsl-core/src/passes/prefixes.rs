//! Arguments that say how much of a tile holds elements, such as the columns of a row: code that knows them by a
//! sixteenth of the tile leaves out what no lane has elements of.

use super::indices::Indices;
use crate::entity::EntityMap;
use crate::facts::Within;
use crate::ir::{CompareOp, Func, Inst, Op, Order, Value, op};
use crate::launch::Launch;
use crate::target::{Determinism, Distribution, Target};

/// The parts of a tile that code is made for.
const PARTS: i64 = 16;

/// The fewest elements of a tile whose parts are told apart: one for each lane of a warp.
const FEWEST: i64 = 32 * PARTS;

/// The bounds of a function that are parameters, each of a comparison with the numbers of a tile from 0.
#[derive(Clone, Debug, Default)]
pub struct Prefixes(Vec<Prefix>);

#[derive(Clone, Copy, Debug)]
struct Prefix {
    parameter: usize,
    /// Of the tile.
    elements: i64,
}

impl Prefixes {
    /// Those of a function that is ready to be lowered for `target`. A worker of a CPU has whole tiles, and none; nor has a
    /// function whose order of additions follows the layout, and with it the bound, where the level promises more.
    #[must_use]
    pub fn of(func: &Func, target: &Target, level: Determinism) -> Self {
        let promises = level != Determinism::NotGuaranteed
            && func.all_insts().iter().any(|&inst| {
                matches!(
                    func.op(inst),
                    Op::Reduce(op::Reduce {
                        order: Order::Any,
                        ..
                    }) | Op::Scan(op::Scan {
                        order: Order::Any,
                        ..
                    })
                )
            });
        if promises || target.distribution == Distribution::Sequential {
            return Self::default();
        }
        let mut found: Vec<Prefix> = Vec::new();
        let (definitions, indices) = (func.definitions(), Indices::of(func));
        for inst in func.all_insts() {
            let Op::Compare(op::Compare { op, lhs, rhs }) = *func.op(inst) else {
                continue;
            };
            let (numbers, bound) = match op {
                CompareOp::Lt => (lhs, rhs),
                CompareOp::Gt => (rhs, lhs),
                CompareOp::Le | CompareOp::Ge | CompareOp::Eq | CompareOp::Ne => continue,
            };
            let elements = counted(&indices, numbers).filter(|&elements| elements >= FEWEST);
            let parameter = parameter(func, &definitions, bound);
            let Some((elements, parameter)) = elements.zip(parameter) else {
                continue;
            };
            match found.iter_mut().find(|it| it.parameter == parameter) {
                Some(known) => known.elements = known.elements.max(elements),
                None => found.push(Prefix {
                    parameter,
                    elements,
                }),
            }
        }
        Self(found)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What code for this launch may know: of bounds that leave out a part of their tile at least the part that they lie
    /// in, or the bound itself where it ends one.
    pub fn known<'a>(&'a self, launch: &'a Launch<'_>) -> impl Iterator<Item = Within> + 'a {
        self.0.iter().filter_map(|prefix| {
            let bound = launch.integer(prefix.parameter)?;
            let part = prefix.elements / PARTS;
            let bound = i64::try_from(bound).ok()?;
            let leaves_out = (1..=prefix.elements - part).contains(&bound);
            let most = bound.checked_add(part - 1)? / part * part;
            leaves_out.then_some(Within {
                parameter: prefix.parameter,
                least: if bound == most { most } else { most - part + 1 },
                most,
            })
        })
    }
}

/// How many numbers from 0 on a tile has along the one axis that they differ along.
pub(crate) fn counted(indices: &Indices, tile: Value) -> Option<i64> {
    let span = indices.fact(tile).span()?;
    let from_zero = indices.origin(tile)?.constant()? == 0 && span.low == 0;
    let elements = span.high.checked_add(1)?;
    (from_zero && span.scalars.is_empty() && elements.count_ones() == 1).then_some(elements)
}

/// The parameter that all elements of a tile are equal to.
fn parameter(
    func: &Func,
    definitions: &EntityMap<Value, Option<Inst>>,
    mut value: Value,
) -> Option<usize> {
    while let Some(inst) = definitions[value] {
        let op = func.op(inst);
        let copies = matches!(op, Op::Splat(_) | Op::Cast(_) | Op::View(_));
        let mut operands = op.operands().into_iter();
        value = operands.next().filter(|&x| copies && is_integer(func, x))?;
    }
    func.parameter_index(value)
}

fn is_integer(func: &Func, value: Value) -> bool {
    func.ty(value).dtype().is_some_and(|it| it.is_integer())
}
