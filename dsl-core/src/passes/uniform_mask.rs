//! Gives whole tiles a path without masks: where scalars prove that a bounds comparison such as
//! `offsets < n` holds for every element, one branch per program skips the mask altogether.
//!
//! A comparison is looked at when both sides are a sum of scalars plus a constant range. The branch tests
//! the ends of the ranges, and that they do not wrap, so it is exact about machine integers. What ranges
//! alone decide becomes a constant.

mod parts;
mod split;
#[cfg(test)]
mod tests;
mod weight;

use std::collections::{BTreeMap, BTreeSet};

use super::indices::Indices;
use super::linear::Linear;
use super::ranges::Range;
use super::rewrite::rewrite;
use crate::builder::Builder;
use crate::entity::EntityMap;
use crate::ir::op::Control;
use crate::ir::{
    BinaryOp, CompareOp, DType, Func, Inst, InstData, Literal, Op, Region, Shape, Type, Value, op,
};
use split::{Around, split};

/// What is known of the values of a function as it was before any split; those of a split are new.
struct Known {
    definitions: EntityMap<Value, Option<Inst>>,
    indices: Indices,
}

impl Known {
    fn of(func: &Func) -> Self {
        Self {
            definitions: func.definitions(),
            indices: Indices::of(func),
        }
    }

    fn op<'f>(&self, func: &'f Func, value: Value) -> Option<&'f Op> {
        let defined = self.definitions.get(value).copied().flatten();
        Some(func.op(defined?))
    }
}

/// The numbers of one side of a comparison: `base + r` for `r` in `low..=high`, wrapping.
struct Side {
    base: Linear,
    low: i64,
    high: i64,
}

/// Prepares masks that scalars prove: `lanes` that run the function together get two versions of what is masked.
pub fn uniform_masks(func: &mut Func, lanes: Option<usize>) {
    match lanes {
        Some(_) => split_uniform_masks(func, lanes),
        None => state_uniform_masks(func),
    }
}

/// Splits each region whose accesses are masked by provable comparisons into two versions. `lanes` run the function
/// together, each with code for its part of all tiles; nothing says that loops go through tiles.
pub fn split_uniform_masks(func: &mut Func, lanes: Option<usize>) {
    func.keep_sites();
    let known = Known::of(func);
    decide(func, &known.indices);
    region(func, func.body(), &known, &Around::default(), lanes);
}

/// Writes each comparison that masks accesses as `or(splat(c), comparison)`, where the scalar `c` is true only if the
/// comparison holds for every element: the same bits. A lowering makes two versions of as little as it likes.
fn state_uniform_masks(func: &mut Func) {
    func.keep_sites();
    let known = Known::of(func);
    decide(func, &known.indices);
    let leaves = mask_leaves(func, &func.region(func.body()).insts, &known).into_iter();
    let proofs: BTreeMap<Value, [Side; 2]> = leaves
        .filter_map(|leaf| Some((leaf, sides(func, &known, leaf)?)))
        .collect();
    if proofs.is_empty() {
        return;
    }
    rewrite(func, &mut |rewriter, inst| {
        let builder = &mut rewriter.builder;
        let InstData { op, results, .. } = builder.func().inst(inst).clone();
        let sides = proofs.get(results.first()?)?;
        let holds = holds(builder, &known, results[0], sides);
        let comparison = builder.value(op);
        let shape = builder.ty(comparison).shape;
        let holds = builder.splat(holds, shape);
        Some(vec![builder.or(holds, comparison)])
    });
}

/// Makes constants of comparisons of tiles that ranges decide.
fn decide(func: &mut Func, indices: &Indices) {
    for inst in func.all_insts() {
        if let Op::Compare(op::Compare { lhs, .. }) = *func.op(inst)
            && !func.ty(lhs).is_scalar()
            && let Some(holds) = indices.fact(func.inst(inst).results[0]).number()
        {
            let value = Literal::from_bits(DType::Bool, holds as u64);
            func.inst_mut(inst).op = Op::Constant(op::Constant { value });
        }
    }
}

/// Splits the region, then those inside it; after a split only those of the version without masks,
/// since the other is for the few programs at an edge and code costs time to compile.
fn region(func: &mut Func, of: Region, known: &Known, around: &Around, lanes: Option<usize>) {
    let split = split(func, of, known, around, lanes);
    let before = split.before.iter().map(|&inst| (inst, around));
    let rest = split.rest.iter().map(|&inst| (inst, &split.around));
    for (inst, around) in before.chain(rest) {
        let inner = match func.op(inst).control() {
            Some(Control::For(op)) => vec![op.body],
            Some(Control::While(op)) => vec![op.body],
            Some(Control::If(op)) => vec![op.on_true, op.on_false],
            None => Vec::new(),
        };
        for inner in inner {
            region(func, inner, known, around, lanes);
        }
    }
}

/// What the sides of a comparison hold, where scalars tell.
fn sides(func: &Func, known: &Known, comparison: Value) -> Option<[Side; 2]> {
    let Some(&Op::Compare(op::Compare { op, lhs, rhs })) = known.op(func, comparison) else {
        return None;
    };
    let ordered = !matches!(op, CompareOp::Eq | CompareOp::Ne);
    let tile = ordered && !func.ty(lhs).is_scalar();
    let sides = tile.then(|| [lhs, rhs].map(|value| side(func, known, value)))?;
    let [left, right] = sides;
    let sides = [left?, right?];
    (!never_holds(known, op, [lhs, rhs], &sides)).then_some(sides)
}

/// Whether some element of a comparison is false whatever the scalars are.
fn never_holds(known: &Known, op: CompareOp, values: [Value; 2], sides: &[Side; 2]) -> bool {
    let upward = matches!(op, CompareOp::Lt | CompareOp::Le);
    let (op, lesser, greater) = match (upward, op) {
        (true, op) => (op, &sides[0], values[1]),
        (false, CompareOp::Gt) => (CompareOp::Lt, &sides[1], values[0]),
        (false, _) => (CompareOp::Le, &sides[1], values[0]),
    };
    let greatest = i128::from(lesser.high);
    let range = known
        .indices
        .range(greater)
        .filter(|_| lesser.base.is_zero());
    range.is_some_and(|range| Range::new(greatest, greatest).compare(op, range) == Some(false))
}

fn side(func: &Func, known: &Known, value: Value) -> Option<Side> {
    let ty = func.ty(value);
    let dtype = ty.dtype().filter(|dtype| dtype.is_integer())?;
    let fact = known.indices.get(value)?;
    let scalar = |value: &Value| func.ty(*value) == Type::scalar(dtype);
    let origin = known.indices.origin(value);
    let origin = origin.filter(|sum| sum.terms().all(|(factors, _)| factors.iter().all(scalar)));
    let span = fact.span().filter(|span| span.scalars.is_empty());
    let linear = origin
        .zip(span)
        .map(|(origin, span)| (origin.without_constant(), span));
    if let Some(((base, constant), span)) = &linear
        && !base.is_zero()
    {
        let [low, high] = [span.low, span.high].map(|end| constant.checked_add(end));
        let side = Side {
            base: base.clone(),
            low: low?,
            high: high?,
        };
        // Ends in order show that none wraps, unless one goes all the way round.
        let reach = i128::from(side.high) - i128::from(side.low);
        return (reach < 1 << dtype.bits()).then_some(side);
    }
    // Other numbers are all in a range, which is of use if it is short.
    let Range { low, high } = fact.range?;
    let tight = linear.is_some() || high - low < ty.shape.elements() as i128;
    let side = Side {
        base: Linear::default(),
        low: i64::try_from(low).ok()?,
        high: i64::try_from(high).ok()?,
    };
    tight.then_some(side)
}

/// A scalar that is true only if the comparison holds for every element.
fn holds(builder: &mut Builder, known: &Known, comparison: Value, sides: &[Side; 2]) -> Value {
    let Some(&Op::Compare(op::Compare { op, lhs, .. })) = known.op(builder.func(), comparison)
    else {
        unreachable!("broken invariant: a comparison has sides");
    };
    let dtype = builder.ty(lhs).dtype().unwrap_or(DType::I64);
    let ends = sides.each_ref().map(|side| side.ends(builder, dtype));
    let [[left_low, left_high], [right_low, right_high]] = ends;
    let upward = matches!(op, CompareOp::Lt | CompareOp::Le);
    let mut holds = if upward {
        builder.compare(op, left_high, right_low)
    } else {
        builder.compare(op, left_low, right_high)
    };
    for (side, [low, high]) in sides.iter().zip(ends) {
        if !side.base.is_zero() && side.low != side.high {
            let ordered = builder.le(low, high);
            holds = builder.and(holds, ordered);
        }
    }
    holds
}

impl Side {
    /// The least and the greatest number, if none wraps.
    fn ends(&self, builder: &mut Builder, dtype: DType) -> [Value; 2] {
        let number = |builder: &mut Builder, number: i64| {
            let bits = number.cast_unsigned() & dtype.mask();
            builder.filled(Literal::from_bits(dtype, bits), Shape::SCALAR)
        };
        let mut base = None;
        for (factors, times) in self.base.terms() {
            let product = factors
                .iter()
                .copied()
                .reduce(|all, it| builder.mul(all, it));
            let mut product = product.expect("broken invariant: the constant is apart");
            if times != 1 {
                let times = number(builder, times);
                product = builder.mul(product, times);
            }
            base = Some(match base {
                Some(sum) => builder.add(sum, product),
                None => product,
            });
        }
        [self.low, self.high].map(|end| match base {
            Some(base) if end == 0 => base,
            Some(base) => {
                let end = number(builder, end);
                builder.add(base, end)
            }
            None => number(builder, end),
        })
    }
}

/// The values whose conjunction is a mask of an access that `insts` reach.
fn mask_leaves(func: &Func, insts: &[Inst], known: &Known) -> BTreeSet<Value> {
    let mut pending = Vec::new();
    let mut visit = |inst: Inst| {
        pending.extend(func.op(inst).access().and_then(|access| access.mask));
    };
    for &inst in insts {
        visit(inst);
        for nested in func.op(inst).regions() {
            func.walk(nested, &mut visit);
        }
    }
    leaves(func, pending, known)
}

/// The comparisons whose conjunctions `pending` are, or tiles of them.
fn leaves(func: &Func, mut pending: Vec<Value>, known: &Known) -> BTreeSet<Value> {
    let (mut leaves, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some(value) = pending.pop() {
        if !seen.insert(value) {
            continue;
        }
        let Some(op) = known.op(func, value) else {
            continue;
        };
        if let Some(shape) = op.shape() {
            pending.push(shape.x());
        } else if let Op::Binary(op::Binary {
            op: BinaryOp::And,
            lhs,
            rhs,
        }) = op
        {
            pending.extend([*lhs, *rhs]);
        } else if matches!(op, Op::Compare(_)) {
            leaves.insert(value);
        }
    }
    leaves
}
