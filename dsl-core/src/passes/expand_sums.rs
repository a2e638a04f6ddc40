//! Writes the sums over the tiles of loops out: a binary counter over numbers that loops carry.
//!
//! Level `k` holds the sum of `2^k` tiles, and occupied levels are the bits of the count. Adding a tile
//! merges equal levels upwards, as a counter carries, so every addition is a node of the balanced tree
//! over the whole axis.
//!
//! The lowest levels are updated by selects, the rest behind one branch that is seldom taken: code
//! in proportion to the levels, and a few operations a tile.

use std::collections::BTreeMap;

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::op::{Control, SumOp};
use crate::ir::{
    Axis, CompareOp, DType, Direction, Func, Inst, InstData, Literal, Op, Order, Type, Value, op,
};

/// Levels that are updated by selects: seven of eight tiles reach no higher one.
const SELECTED: usize = 3;

/// Replaces each sum that is under way by the number of its tiles and its levels, and the ops on it by
/// arithmetic.
pub fn expand_sums(func: &mut Func) {
    let states = func.values().any(|value| parts(func.ty(value)).is_some());
    if !states {
        return;
    }
    let mut sums = Sums::default();
    sums.split_parameters(func);
    rewrite(func, &mut |rewriter, inst| sums.expand(rewriter, inst));
}

/// The types of the numbers that make up a sum which is under way; `None` for other types.
fn parts(ty: Type) -> Option<Vec<Type>> {
    let (dtype, levels) = ty.sum()?;
    let level = Type::tile(dtype, ty.shape);
    let levels = std::iter::repeat_n(level, usize::from(levels));
    Some(std::iter::once(Type::INDEX).chain(levels).collect())
}

/// What each sum that is under way has become: the count, then the levels.
#[derive(Default)]
struct Sums {
    parts: BTreeMap<Value, Vec<Value>>,
}

impl Sums {
    /// Gives each region the parts of the sums that it takes.
    fn split_parameters(&mut self, func: &mut Func) {
        for inst in func.all_insts() {
            for region in func.op(inst).regions() {
                let taken = std::mem::take(&mut func.region_mut(region).parameters);
                for parameter in taken {
                    let Some(types) = parts(func.ty(parameter)) else {
                        func.region_mut(region).parameters.push(parameter);
                        continue;
                    };
                    let values = types.into_iter();
                    let values = values.map(|ty| func.add_region_parameter(region, ty));
                    self.parts.insert(parameter, values.collect());
                }
            }
        }
    }

    fn expand(&mut self, rewriter: &mut Rewriter, inst: Inst) -> Option<Vec<Value>> {
        let builder = &mut rewriter.builder;
        let InstData { op, results, .. } = builder.func().inst(inst).clone();
        if let Some(op) = op.sum() {
            return Some(self.computed(builder, op, results[0]));
        }
        if let Op::Yield(op::Yield { values }) = op {
            if !self.any(&values) {
                return None;
            }
            let values = self.split(&values);
            builder.emit(Op::Yield(op::Yield { values }), &[]);
            return Some(Vec::new());
        }
        let sums = |result: &Value| builder.ty(*result).sum().is_some();
        let control = op.control().filter(|_| results.iter().any(sums))?;
        let control = match control {
            Control::For(op) => Op::For(op::For {
                init: self.split(&op.init),
                ..op.clone()
            }),
            Control::While(op) => Op::While(op::While {
                init: self.split(&op.init),
                ..op.clone()
            }),
            Control::If(op) => Op::If(op.clone()),
        };
        Some(self.handed_on(builder, control, &results))
    }

    /// What stands for the result of an op on a sum: itself, where it is one.
    fn computed(&mut self, builder: &mut Builder, op: SumOp<'_>, result: Value) -> Vec<Value> {
        let parts = match op {
            SumOp::Accumulator(op::Accumulator {}) => empty(builder, builder.ty(result)),
            SumOp::Accumulate(op) => add_tile(builder, &self.parts[&op.state], op.x, op.axis),
            SumOp::Total(op) => return vec![total(builder, &self.parts[&op.state])],
            SumOp::PrefixSums(op) => {
                return vec![prefix_sums(builder, &self.parts[&op.state], op.x, op.axis)];
            }
        };
        self.parts.insert(result, parts);
        vec![result]
    }

    fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|value| self.parts.contains_key(value))
    }

    /// The values with each sum in parts.
    fn split(&self, values: &[Value]) -> Vec<Value> {
        let mut all = Vec::new();
        for value in values {
            match self.parts.get(value) {
                Some(parts) => all.extend(parts),
                None => all.push(*value),
            }
        }
        all
    }

    /// Control flow that hands on the parts, and what stands for each of the `results` it had.
    fn handed_on(&mut self, builder: &mut Builder, op: Op, results: &[Value]) -> Vec<Value> {
        let inst = builder.emit(op, &[]);
        let mut made = builder.results(inst).to_vec().into_iter();
        let mut replaced = Vec::new();
        for &result in results {
            match parts(builder.ty(result)) {
                Some(types) => {
                    self.parts
                        .insert(result, made.by_ref().take(types.len()).collect());
                    replaced.push(result);
                }
                None => replaced.extend(made.next()),
            }
        }
        replaced
    }
}

/// The parts of a sum of nothing.
fn empty(builder: &mut Builder, ty: Type) -> Vec<Value> {
    let Some((dtype, levels)) = ty.sum() else {
        return Vec::new();
    };
    let level = builder.filled(Literal::from_bits(dtype, 0), ty.shape);
    let mut parts = vec![level; usize::from(levels) + 1];
    parts[0] = builder.index(0);
    parts
}

/// The parts after the sum of `x` along `axis` is added.
fn add_tile(builder: &mut Builder, parts: &[Value], x: Value, axis: Axis) -> Vec<Value> {
    let (count, levels) = (parts[0], &parts[1..]);
    let x = builder.cast(x, dtype(builder, levels));
    let sums = builder.reduce(&[x], axis.index(), Order::Tree, |builder, a, b| {
        vec![builder.add(a[0], b[0])]
    });
    let levels = insert(builder, count, levels, sums[0]);
    let one = builder.index(1);
    let count = builder.add(count, one);
    std::iter::once(count).chain(levels).collect()
}

fn dtype(builder: &Builder, levels: &[Value]) -> DType {
    let dtype = builder.ty(levels[0]).dtype();
    dtype.expect("broken invariant: a level is a number")
}

/// The levels after `sum` is added to `count` earlier ones.
fn insert(builder: &mut Builder, count: Value, levels: &[Value], sum: Value) -> Vec<Value> {
    let (low, high) = levels.split_at(levels.len().min(SELECTED));
    let (mut next, carry) = climb(builder, count, levels.len(), 0, low, sum);
    if !high.is_empty() {
        let reached = low_bits(builder, count, SELECTED, SELECTED);
        next.extend(builder.if_else(
            reached,
            |builder| climb(builder, count, levels.len(), SELECTED, high, carry).0,
            |_| high.to_vec(),
        ));
    }
    next
}

/// The levels `first..` after `carry` climbs through them, and what leaves them. It stays in the
/// lowest free one; the last of all `total` levels is never free but adds up.
fn climb(
    builder: &mut Builder,
    count: Value,
    total: usize,
    first: usize,
    levels: &[Value],
    mut carry: Value,
) -> (Vec<Value>, Value) {
    let mut next = Vec::with_capacity(levels.len());
    for (at, &level) in levels.iter().enumerate() {
        let at = first + at;
        let merged = builder.add(level, carry);
        let last = at + 1 == total;
        let stays = low_bits(builder, count, if last { at } else { at + 1 }, at);
        let shape = builder.ty(level).shape;
        let stays = builder.splat(stays, shape);
        next.push(builder.select(stays, if last { merged } else { carry }, level));
        carry = merged;
    }
    (next, carry)
}

/// Whether of the lowest `width` bits of `count` exactly the lowest `ones` are set.
fn low_bits(builder: &mut Builder, count: Value, width: usize, ones: usize) -> Value {
    let mask = builder.index((1 << width) - 1);
    let want = builder.index((1 << ones) - 1);
    let found = builder.and(count, mask);
    builder.eq(found, want)
}

/// Whether each level but the last is occupied. The last also holds what went beyond it, and is zero
/// when empty.
fn occupied(builder: &mut Builder, count: Value, levels: usize) -> Vec<Value> {
    let bits = (0..levels - 1).map(|at| {
        let bit = builder.index(1 << at);
        let zero = builder.index(0);
        let masked = builder.and(count, bit);
        builder.ne(masked, zero)
    });
    bits.collect()
}

/// What is left is merged, lower index on the left.
fn total(builder: &mut Builder, parts: &[Value]) -> Value {
    let (count, levels) = (parts[0], &parts[1..]);
    let occupied = occupied(builder, count, levels.len());
    let mut total = builder.constant_like(levels[0], 0.0);
    for (at, &level) in levels.iter().enumerate() {
        let merged = builder.add(level, total);
        total = match occupied.get(at) {
            Some(&occupied) => {
                let occupied = builder.splat(occupied, builder.ty(level).shape);
                builder.select(occupied, merged, total)
            }
            None => merged,
        };
    }
    total
}

/// The prefix sums of `x` after what was added before.
fn prefix_sums(builder: &mut Builder, parts: &[Value], x: Value, axis: Axis) -> Value {
    let (count, levels) = (parts[0], &parts[1..]);
    let occupied = occupied(builder, count, levels.len());
    let x = builder.cast(x, dtype(builder, levels));
    let way = (Order::Tree, Direction::Forward);
    let sums = builder.scan(&[x], axis.index(), way, |builder, a, b| {
        vec![builder.add(a[0], b[0])]
    });
    let subtrees = subtrees(builder, levels, &occupied, axis);
    let (low, high) = subtrees.split_at(subtrees.len().min(SELECTED));
    let mut sums = add_all(builder, low, sums[0]);
    if !high.is_empty() {
        let most = builder.index((1 << SELECTED) - 1);
        let reached = builder.compare(CompareOp::Gt, count, most);
        let added = builder.if_else(
            reached,
            |builder| vec![add_all(builder, high, sums)],
            |_| vec![sums],
        );
        sums = added[0];
    }
    builder.positive_zero(sums)
}

/// The subtrees on all levels with an extent of 1 along `axis`; where there is none, what changes
/// nothing.
fn subtrees(builder: &mut Builder, levels: &[Value], occupied: &[Value], axis: Axis) -> Vec<Value> {
    let mut subtrees = Vec::new();
    for (at, &level) in levels.iter().enumerate() {
        let mut x = level;
        if let Some(&occupied) = occupied.get(at) {
            let nothing = builder.constant_like(level, -0.0);
            let occupied = builder.splat(occupied, builder.ty(level).shape);
            x = builder.select(occupied, level, nothing);
        }
        subtrees.push(builder.value(Op::ExpandDims(op::ExpandDims { x, axis })));
    }
    subtrees
}

/// Every element takes the subtrees as left operands, one after the other.
fn add_all(builder: &mut Builder, subtrees: &[Value], mut sums: Value) -> Value {
    let ty = builder.ty(sums);
    for &x in subtrees {
        let subtree = match builder.ty(x).shape == ty.shape {
            true => x,
            false => builder.declared(Op::Broadcast(op::Broadcast { x }), ty),
        };
        sums = builder.add(subtree, sums);
    }
    sums
}
