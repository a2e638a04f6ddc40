//! Writes accumulators over the tiles of loops out: a binary counter over numbers that loops carry.
//!
//! Level `k` holds what `2^k` subtrees combine to, and occupied levels are the bits of the count. One more
//! merges equal levels upwards, as a counter carries, so every combination is a node of the balanced tree
//! over the whole axis.
//!
//! The lowest levels are updated by selects, the rest behind one branch that is seldom taken: code
//! in proportion to the levels, and a few operations a tile.

mod combine;

use std::collections::BTreeMap;

use combine::Combine;

use super::rewrite::{Rewriter, rewrite};
use crate::builder::Builder;
use crate::ir::op::{AccumulatorOp, Control};
use crate::ir::{
    Axis, CompareOp, Func, Inst, InstData, Literal, Op, Region, Shape, Type, Value, op,
};

/// Levels that are updated by selects: seven of eight tiles reach no higher one.
const SELECTED: usize = 3;

/// Replaces each accumulator by the number of its subtrees and its levels, and the ops on it by
/// arithmetic.
pub fn expand_accumulators(func: &mut Func) {
    let held = func.values().any(|value| parts(func.ty(value)).is_some());
    if !held {
        return;
    }
    let mut expansion = Expansion::default();
    expansion.split_parameters(func);
    rewrite(func, &mut |rewriter, inst| expansion.expand(rewriter, inst));
}

/// The types of the numbers that make up an accumulator; `None` for other types.
fn parts(ty: Type) -> Option<Vec<Type>> {
    let (dtype, levels) = ty.accumulator()?;
    let level = Type::tile(dtype, ty.shape);
    let levels = std::iter::repeat_n(level, usize::from(levels));
    Some(std::iter::once(Type::INDEX).chain(levels).collect())
}

/// What each accumulator has become: the count, then the levels.
#[derive(Default)]
struct Expansion {
    parts: BTreeMap<Value, Vec<Value>>,
}

/// Accumulators that are combined together. Each level has a number of each; the first one counts.
struct Held {
    count: Value,
    levels: Vec<Vec<Value>>,
}

impl Expansion {
    /// Gives each region the parts of the accumulators that it takes.
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
        if let Some(op) = op.accumulator() {
            return Some(self.computed(builder, op, &results));
        }
        if let Op::Yield(op::Yield { values }) = op {
            if !self.any(&values) {
                return None;
            }
            let values = self.split(&values);
            builder.emit(Op::Yield(op::Yield { values }), &[]);
            return Some(Vec::new());
        }
        let holds = |result: &Value| builder.ty(*result).accumulator().is_some();
        let control = op.control().filter(|_| results.iter().any(holds))?;
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

    /// What stands for the results of an op on accumulators: themselves, where they are some.
    fn computed(
        &mut self,
        builder: &mut Builder,
        op: AccumulatorOp<'_>,
        results: &[Value],
    ) -> Vec<Value> {
        match op {
            AccumulatorOp::Accumulator(op::Accumulator {}) => {
                let parts = empty(builder, builder.ty(results[0]));
                self.parts.insert(results[0], parts);
            }
            AccumulatorOp::Accumulate(op) => {
                let held = self.held(&op.accumulators);
                let held = insert(builder, op.combine, &held, &op.subtrees);
                for (index, &result) in results.iter().enumerate() {
                    let levels = held.levels.iter().map(|level| level[index]);
                    let parts = std::iter::once(held.count).chain(levels);
                    self.parts.insert(result, parts.collect());
                }
            }
            AccumulatorOp::Total(op) => {
                return total(builder, op.combine, &self.held(&op.accumulators));
            }
            AccumulatorOp::Prefixes(op) => {
                return prefixes(builder, &self.held(&op.accumulators), op);
            }
        }
        results.to_vec()
    }

    fn held(&self, accumulators: &[Value]) -> Held {
        let parts: Vec<&Vec<Value>> = accumulators.iter().map(|it| &self.parts[it]).collect();
        let levels = (1..parts[0].len()).map(|at| parts.iter().map(|parts| parts[at]).collect());
        Held {
            count: parts[0][0],
            levels: levels.collect(),
        }
    }

    fn any(&self, values: &[Value]) -> bool {
        values.iter().any(|value| self.parts.contains_key(value))
    }

    /// The values with each accumulator in parts.
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

/// The parts of an accumulator of nothing.
fn empty(builder: &mut Builder, ty: Type) -> Vec<Value> {
    let Some((dtype, levels)) = ty.accumulator() else {
        return Vec::new();
    };
    let level = builder.filled(Literal::from_bits(dtype, 0), ty.shape);
    let mut parts = vec![level; usize::from(levels) + 1];
    parts[0] = builder.index(0);
    parts
}

/// The accumulators after one subtree more.
fn insert(builder: &mut Builder, region: Region, held: &Held, subtree: &[Value]) -> Held {
    let climber = Climber {
        combine: Combine::new(region, shape(builder, subtree)),
        count: held.count,
        total: held.levels.len(),
    };
    let (low, high) = held.levels.split_at(held.levels.len().min(SELECTED));
    let (mut levels, carry) = climber.climb(builder, 0, low, subtree.to_vec());
    if !high.is_empty() {
        let reached = low_bits(builder, held.count, SELECTED, SELECTED);
        let next = builder.if_else(
            reached,
            |builder| climber.climb(builder, SELECTED, high, carry).0.concat(),
            |_| high.concat(),
        );
        levels.extend(next.chunks(subtree.len()).map(<[Value]>::to_vec));
    }
    let one = builder.index(1);
    Held {
        count: builder.add(held.count, one),
        levels,
    }
}

fn shape(builder: &Builder, values: &[Value]) -> Shape {
    builder.ty(values[0]).shape
}

/// What carries through the levels of accumulators that hold `count` subtrees.
struct Climber {
    combine: Combine,
    count: Value,
    total: usize,
}

impl Climber {
    /// The levels `first..` after `carry` climbs through them, and what leaves them. It stays in the
    /// lowest free one; the last of all is never free but goes on combining.
    fn climb(
        &self,
        builder: &mut Builder,
        first: usize,
        levels: &[Vec<Value>],
        mut carry: Vec<Value>,
    ) -> (Vec<Vec<Value>>, Vec<Value>) {
        let mut next = Vec::with_capacity(levels.len());
        for (at, level) in levels.iter().enumerate() {
            let at = first + at;
            let merged = self.combine.of(builder, level, &carry);
            let last = at + 1 == self.total;
            let stays = low_bits(builder, self.count, if last { at } else { at + 1 }, at);
            let taken = if last { &merged } else { &carry };
            next.push(selected(builder, stays, taken, level));
            carry = merged;
        }
        (next, carry)
    }
}

/// The first values where a scalar holds, else the others.
fn selected(
    builder: &mut Builder,
    condition: Value,
    on_true: &[Value],
    on_false: &[Value],
) -> Vec<Value> {
    let shape = shape(builder, on_true);
    let condition = builder.splat(condition, shape);
    let pairs = on_true.iter().zip(on_false);
    pairs
        .map(|(&on_true, &on_false)| builder.select(condition, on_true, on_false))
        .collect()
}

/// Whether of the lowest `width` bits of `count` exactly the lowest `ones` are set.
fn low_bits(builder: &mut Builder, count: Value, width: usize, ones: usize) -> Value {
    let mask = builder.index((1 << width) - 1);
    let want = builder.index((1 << ones) - 1);
    let found = builder.and(count, mask);
    builder.eq(found, want)
}

/// Whether each level but the last is occupied. The last also holds what went beyond it, and has zero bits
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

/// What is left is combined, lower index on the left.
fn total(builder: &mut Builder, region: Region, held: &Held) -> Vec<Value> {
    let combine = Combine::new(region, shape(builder, &held.levels[0]));
    let occupied = occupied(builder, held.count, held.levels.len());
    let zeros = held.levels[0].iter();
    let mut total: Vec<Value> = zeros
        .map(|&like| builder.constant_like(like, 0.0))
        .collect();
    for (at, level) in held.levels.iter().enumerate() {
        let merged = combine.of(builder, level, &total);
        total = match occupied.get(at) {
            Some(&occupied) => selected(builder, occupied, &merged, &total),
            None => merged,
        };
    }
    total
}

/// What stands before a tile on one level.
struct Subtree {
    /// With an extent of 1 along the axis.
    values: Vec<Value>,
    /// Where it is no more than this that says whether the level holds something.
    occupied: Option<Value>,
}

/// The prefixes of a tile after what was accumulated before.
fn prefixes(builder: &mut Builder, held: &Held, op: &op::Prefixes) -> Vec<Value> {
    let combine = Combine::new(op.combine, shape(builder, &op.sources));
    let subtrees = subtrees(builder, held, &combine, op.axis);
    let (low, high) = subtrees.split_at(subtrees.len().min(SELECTED));
    let mut prefixes = follow(builder, &combine, low, op.sources.clone());
    if !high.is_empty() {
        let most = builder.index((1 << SELECTED) - 1);
        let reached = builder.compare(CompareOp::Gt, held.count, most);
        prefixes = builder.if_else(
            reached,
            |builder| follow(builder, &combine, high, prefixes.clone()),
            |_| prefixes.clone(),
        );
    }
    prefixes
}

/// The subtrees on all levels. Where there is none, what changes nothing, if the combine has that.
fn subtrees(builder: &mut Builder, held: &Held, combine: &Combine, axis: Axis) -> Vec<Subtree> {
    let mut occupied = occupied(builder, held.count, held.levels.len());
    let least = builder.index(1 << (held.levels.len() - 1));
    occupied.push(builder.compare(CompareOp::Ge, held.count, least));
    let mut subtrees = Vec::new();
    for (level, occupied) in held.levels.iter().zip(occupied) {
        let mut subtree = Subtree {
            values: level.clone(),
            occupied: Some(occupied),
        };
        if let Some(nothing) = combine.identity(builder.func(), level) {
            let shape = shape(builder, level);
            let nothing = builder.filled(nothing, shape);
            subtree.values = selected(builder, occupied, level, &[nothing]);
            subtree.occupied = None;
        }
        let values = subtree.values.into_iter();
        subtree.values = values
            .map(|x| builder.value(Op::ExpandDims(op::ExpandDims { x, axis })))
            .collect();
        subtrees.push(subtree);
    }
    subtrees
}

/// Every element takes the subtrees as left operands, one after the other.
fn follow(
    builder: &mut Builder,
    combine: &Combine,
    subtrees: &[Subtree],
    mut prefixes: Vec<Value>,
) -> Vec<Value> {
    for subtree in subtrees {
        let pairs = subtree.values.iter().zip(&prefixes);
        let lower = pairs.map(|(&x, &prefix)| {
            let ty = builder.ty(prefix);
            match builder.ty(x).shape == ty.shape {
                true => x,
                false => builder.declared(Op::Broadcast(op::Broadcast { x }), ty),
            }
        });
        let lower: Vec<Value> = lower.collect();
        let merged = combine.of(builder, &lower, &prefixes);
        prefixes = match subtree.occupied {
            Some(occupied) => selected(builder, occupied, &merged, &prefixes),
            None => merged,
        };
    }
    prefixes
}
