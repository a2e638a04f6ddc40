//! Sums and prefix sums over the tiles of a loop with the bits of one tile over all of them.
//!
//! A binary counter: level `k` holds the sum of `2^k` tiles, and occupied levels are the bits of
//! the count. Adding a tile merges equal levels upwards, as a counter carries, so every addition is
//! a node of the balanced tree over the whole axis.
//!
//! The lowest levels are updated by selects, the rest behind one branch that is seldom taken: code
//! in proportion to the levels, and a few operations a tile.

use std::marker::PhantomData;
use std::panic::Location;

use super::carry::{Carry, Part};
use super::context::{self, Context, Handle};
use super::element::Numeric;
use super::tile::{DeviceValue, Scalar, Tile, axis_of};
use crate::builder::Builder;
use crate::ir::{CompareOp, DType, Direction, Literal, Op, Value, op};

/// Levels that are updated by selects: seven of eight tiles reach no higher one.
const SELECTED: usize = 3;

/// More tiles than any loop has trips.
const MAX_LEVELS: usize = 62;

/// Tiles that an accumulator takes unless `.at_most(n)` says otherwise.
const DEFAULT_TILES: usize = 1 << 16;

/// A sum over the tiles of a loop. `f16` and `bf16` accumulate in `f32` and round once at the end.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, as
/// long as masked elements are zero and no more than the stated number of tiles is added; beyond
/// that the result is still a sum, but its bits depend on the tile size.
#[derive(Clone)]
pub struct SumAccumulator<T: Numeric> {
    count: Scalar<i64>,
    levels: Vec<Level>,
    extent: Option<usize>,
    element: PhantomData<T>,
}

/// The sum of a power of two of tiles, in the type that arithmetic is done in.
#[derive(Clone, Copy)]
struct Level(Handle);

impl Carry for Level {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        visitor(Part::Value(&mut self.0));
    }
}

impl<T: Numeric> Carry for SumAccumulator<T> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        self.count.visit(visitor);
        self.levels.visit(visitor);
    }
}

/// An empty sum of tiles whose reduction has `shape`: `[]` for a scalar result.
#[track_caller]
pub fn sum_accumulator<T: Numeric>(shape: impl AsRef<[usize]>) -> SumAccumulator<T> {
    let location = Location::caller();
    let level = context::emit(location, |context| {
        match context.shape("sum_accumulator", shape.as_ref()) {
            Some(shape) => {
                let zero = Literal::from_bits(compute::<T>(), 0);
                context.builder.filled(zero, shape)
            }
            None => context.builder.poison(),
        }
    });
    let count = context::emit(location, |context| context.builder.index(0));
    let accumulator = SumAccumulator {
        count: Scalar::from_handle(count),
        levels: vec![Level(level)],
        extent: None,
        element: PhantomData,
    };
    accumulator.at_most(DEFAULT_TILES)
}

fn compute<T: Numeric>() -> DType {
    T::DTYPE.compute()
}

impl<T: Numeric> SumAccumulator<T> {
    /// Says that at most `tiles` tiles are added, so that fewer levels are kept. Only before the
    /// first tile.
    #[must_use]
    pub fn at_most(mut self, tiles: usize) -> Self {
        let levels = (tiles.max(1).ilog2() as usize + 1).min(MAX_LEVELS);
        self.levels = vec![self.levels[0]; levels];
        self
    }

    /// Adds the sum of `tile` along `axis`. All tiles have one extent along it; elements that do
    /// not belong to the sum are zero.
    #[track_caller]
    pub fn add<U: Numeric>(&mut self, tile: Tile<U>, axis: usize) {
        let location = Location::caller();
        let partial = context::emit(location, |context| {
            let x = context.value(tile.handle());
            let ty = context.ty(x);
            if ty.is_poison() {
                return x;
            }
            let extent = ty.shape.dims().get(axis).copied();
            let first = *self.extent.get_or_insert(extent.unwrap_or(0));
            if extent.is_some_and(|extent| extent != first) {
                context.builder.error(format!(
                    "`add`: the tile has extent `{}` along axis {axis}, expected `{first}` as before",
                    extent.unwrap_or(0)
                ));
                return context.builder.poison();
            }
            if U::DTYPE.compute() != compute::<T>() {
                context.builder.error(format!(
                    "`add`: an accumulator of `{}` does not take a tile of `{}`",
                    T::DTYPE,
                    U::DTYPE
                ));
                return context.builder.poison();
            }
            let sum = context.partial_sum(x, axis, U::DTYPE);
            let level = context.value(self.levels[0].0);
            let (found, expected) = (context.ty(sum), context.ty(level));
            if found != expected && !found.is_poison() && !expected.is_poison() {
                context.builder.error(format!(
                    "`add`: the sum of the tile is `{found}`, expected `{expected}`"
                ));
                return context.builder.poison();
            }
            sum
        });
        let levels = context::with(location, |context| {
            let partial = context.value(partial);
            if context.ty(partial).is_poison() {
                return None;
            }
            let count = context.value(self.count.handle());
            let levels = self.levels.iter().map(|level| context.value(level.0));
            let levels: Vec<Value> = levels.collect();
            let levels = insert(&mut context.builder, count, &levels, partial);
            let handles = levels.into_iter().map(|level| context.handle(level));
            Some(handles.map(Level).collect())
        });
        if let Some(levels) = levels.flatten() {
            self.levels = levels;
        }
        self.count = Scalar::from_handle(context::emit(location, |context| {
            let (count, one) = (context.value(self.count.handle()), context.builder.index(1));
            context.builder.add(count, one)
        }));
    }

    /// The sums of all prefixes that end in `tile`, along `axis`: of every tile added before and of
    /// the elements of this one up to each. Then adds the tile as [`add`](SumAccumulator::add) does.
    ///
    /// The bits are those of [`Tile::cumsum`] of all tiles as one, for every tile size. Each level
    /// that is kept takes an addition for each element: say how many tiles come with `.at_most(n)`.
    #[track_caller]
    pub fn cumsum<U: Numeric>(&mut self, tile: Tile<U>, axis: usize) -> Tile<T> {
        let location = Location::caller();
        let before = self.clone();
        self.add(tile, axis);
        let occupied: Vec<Scalar<bool>> = (0..before.levels.len())
            .map(|at| before.bit(location, at))
            .collect();
        Tile::from_handle(context::emit(location, |context| {
            let x = context.value(tile.handle());
            let (ty, level) = (context.ty(x), context.value(before.levels[0].0));
            let kept = context.ty(level);
            // `add` has named what does not fit.
            let fits = !ty.is_poison()
                && !kept.is_poison()
                && axis < ty.shape.rank()
                && ty.shape.without(axis) == kept.shape
                && U::DTYPE.compute() == compute::<T>();
            if !fits {
                return context.builder.poison();
            }
            let sums = context.partial_sums(x, axis, U::DTYPE, Direction::Forward);
            let subtrees = before.subtrees(context, &occupied, axis);
            let (low, high) = subtrees.split_at(subtrees.len().min(SELECTED));
            let count = context.value(before.count.handle());
            let mut sums = add_all(&mut context.builder, low, sums);
            if !high.is_empty() {
                let builder = &mut context.builder;
                let most = builder.index((1 << SELECTED) - 1);
                let reached = builder.compare(CompareOp::Gt, count, most);
                let added = builder.if_else(
                    reached,
                    |builder| vec![add_all(builder, high, sums)],
                    |_| vec![sums],
                );
                sums = added[0];
            }
            let sums = context.positive_zero(sums);
            context.cast(sums, T::DTYPE)
        }))
    }

    /// The subtrees on all levels with an extent of 1 along `axis`; where there is none, what
    /// changes nothing.
    fn subtrees(
        &self,
        context: &mut Context,
        occupied: &[Scalar<bool>],
        axis: usize,
    ) -> Vec<Value> {
        let last = self.levels.len() - 1;
        let mut subtrees = Vec::new();
        for (at, (level, occupied)) in self.levels.iter().zip(occupied).enumerate() {
            let mut subtree = context.value(level.0);
            // The last level also holds what went beyond it, and is zero when empty.
            if at != last {
                let shape = context.ty(subtree).shape;
                let nothing = Literal::from_f64(compute::<T>(), -0.0);
                let nothing = context.builder.filled(nothing, shape);
                let occupied = context.value(occupied.handle());
                let occupied = context.broadcast("cumsum", occupied, shape);
                subtree = context.builder.select(occupied, subtree, nothing);
            }
            let axis = axis_of(axis);
            subtrees.push(
                context
                    .builder
                    .value(Op::ExpandDims(op::ExpandDims { x: subtree, axis })),
            );
        }
        subtrees
    }

    /// Whether level `at` is occupied.
    fn bit(&self, location: &'static Location<'static>, at: usize) -> Scalar<bool> {
        Scalar::from_handle(context::emit(location, |context| {
            let count = context.value(self.count.handle());
            let bit = context.builder.index(1 << at);
            let zero = context.builder.index(0);
            let masked = context.builder.and(count, bit);
            context.builder.ne(masked, zero)
        }))
    }

    /// The sum of all tiles: what is left is merged, lower index on the left. +0 when there were
    /// none, and for a zero float result.
    #[track_caller]
    pub fn finish(self) -> Tile<T> {
        let location = Location::caller();
        let bits: Vec<Scalar<bool>> = (0..self.levels.len())
            .map(|at| self.bit(location, at))
            .collect();
        Tile::from_handle(context::emit(location, |context| {
            let mut total = context.value(self.levels[0].0);
            let ty = context.ty(total);
            if ty.is_poison() {
                return total;
            }
            total = context
                .builder
                .filled(Literal::from_bits(compute::<T>(), 0), ty.shape);
            let last = self.levels.len() - 1;
            for (at, (level, occupied)) in self.levels.iter().zip(bits).enumerate() {
                let level = context.value(level.0);
                let merged = context.builder.add(level, total);
                // The last level also holds what went beyond it, and is zero when empty.
                total = if at == last {
                    merged
                } else {
                    let occupied = context.value(occupied.handle());
                    let occupied = context.broadcast("finish", occupied, ty.shape);
                    context.builder.select(occupied, merged, total)
                };
            }
            context.cast(total, T::DTYPE)
        }))
    }
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
