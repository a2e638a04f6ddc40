//! Any combine over the tiles of a loop, in the order of one tree over all of them.

use std::marker::PhantomData;
use std::panic::Location;

use super::{DEFAULT_TILES, Extent, empty};
use crate::ir::{DType, Literal, Op, Region, Type, Value, op};
use crate::lang::carry::{Carry, Part};
use crate::lang::context::{self, Handle};
use crate::lang::reduce::{Open, Reducible, reduce, reduce_valid, where_valid};
use crate::lang::scan::{scan, scan_valid};
use crate::lang::tile::{Tile, axis_of};

/// What the tiles of a loop combine to: one tile, or a tuple of tiles of one shape.
///
/// With tiles of a power of two along the axis the result has the same bits for every tile size, masked
/// elements or not, as long as no more than the stated number of tiles is added; beyond that the tiles are
/// combined one after the other, and the bits depend on the tile size.
#[derive(Clone)]
pub struct Accumulator<S: Reducible, F> {
    /// One for each tile of `S`, then whether there was an element at all, where that is kept.
    states: Vec<Handle>,
    combine: F,
    nothing: Nothing,
    extent: Extent,
    parts: PhantomData<fn() -> S>,
}

/// What tells a combine that there is no element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nothing {
    /// A flag, which the combine is not asked about.
    Flag,
    /// Zero bits, which leave any other operand as it is.
    Zero,
}

impl Nothing {
    /// The types of the states of `S`.
    fn dtypes<S: Reducible>(self) -> impl Iterator<Item = DType> {
        let flag = (self == Self::Flag).then_some(DType::Bool);
        S::dtypes().into_iter().chain(flag)
    }
}

impl<S: Reducible, F> Carry for Accumulator<S, F> {
    fn visit(&mut self, visitor: &mut dyn FnMut(Part<'_>)) {
        for state in &mut self.states {
            visitor(Part::Value(state));
        }
    }
}

/// An empty accumulator of tiles whose reduction has `shape`: `[]` for a scalar result. `combine` takes what
/// a lower and a higher range of the axis combine to and is associative up to rounding.
///
/// `accumulator::<(Tile<f32>, Tile<i64>)>([ROWS], |a, b| ..)` combines two tiles together.
#[cfg_attr(not(doctest), doc = include_str!("../examples/accumulator.md"))]
#[track_caller]
pub fn accumulator<S: Reducible>(
    shape: impl AsRef<[usize]>,
    combine: impl Fn(S::Element, S::Element) -> S::Element + Clone,
) -> Accumulator<S, impl Fn(S::Element, S::Element) -> S::Element + Clone> {
    let name = ("accumulator", Location::caller());
    named(name, shape.as_ref(), Nothing::Flag, combine)
}

/// An empty accumulator with what errors call it.
pub(super) fn named<S: Reducible, F>(
    (name, location): (&'static str, &'static Location<'static>),
    shape: &[usize],
    nothing: Nothing,
    combine: F,
) -> Accumulator<S, F> {
    let states = nothing.dtypes::<S>().map(|dtype| {
        context::emit(location, |context| match context.shape(name, shape) {
            Some(shape) => empty(context, dtype, shape, DEFAULT_TILES),
            None => context.builder.poison(),
        })
    });
    Accumulator {
        states: states.collect(),
        combine,
        nothing,
        extent: Extent::default(),
        parts: PhantomData,
    }
}

impl<S: Reducible, F: Fn(S::Element, S::Element) -> S::Element> Accumulator<S, F> {
    /// Says that at most `tiles` tiles are added, so that fewer levels are kept. Only before the
    /// first tile.
    #[must_use]
    #[track_caller]
    pub fn at_most(mut self, tiles: usize) -> Self {
        let location = Location::caller();
        for state in &mut self.states {
            *state = context::emit(location, |context| {
                let value = context.value(*state);
                let ty = context.ty(value);
                match ty.accumulator() {
                    Some((dtype, _)) => empty(context, dtype, ty.shape, tiles),
                    None => value,
                }
            });
        }
        self
    }

    /// Adds all elements of the tiles along `axis`. All tiles have one extent along it.
    #[track_caller]
    pub fn add(&mut self, source: S, axis: usize) {
        let location = Location::caller();
        if !self.admits(location, &source, axis) {
            return;
        }
        let subtrees = reduce(source, axis, |a, b| (self.combine)(a, b));
        self.add_subtrees(location, subtrees);
    }

    /// Adds what tiles of one extent combine to.
    pub(super) fn add_subtrees(&mut self, location: &'static Location<'static>, subtrees: S) {
        let mut subtrees = subtrees.handles();
        if self.nothing == Nothing::Flag {
            subtrees.push(holds(location, subtrees[0]));
        }
        self.accumulate(location, &subtrees);
    }

    /// Adds the elements of the tiles along `axis` where the mask holds. All tiles have one extent along it.
    #[track_caller]
    pub fn add_masked(&mut self, source: S, mask: Tile<bool>, axis: usize) {
        let location = Location::caller();
        if !self.admits(location, &source, axis) {
            return;
        }
        let combine = |a, b| (self.combine)(a, b);
        if let Some(subtrees) = reduce_valid(location, source, mask, axis, combine) {
            self.accumulate(location, &subtrees);
        }
    }

    /// What all prefixes that end in the tiles combine to, along `axis`: every tile added before, and the
    /// elements of this one up to each. Then adds the tiles as [`add`](Self::add) does.
    ///
    /// The bits are those of [`scan`](crate::lang::scan) of all tiles as one, for every tile size. Each level
    /// that is kept takes a combine for each element: say how many tiles come with `.at_most(n)`.
    #[track_caller]
    pub fn scan(&mut self, source: S, axis: usize) -> S {
        let location = Location::caller();
        let before = self.states.clone();
        self.add(source, axis);
        // `add` has named what does not fit.
        if before[0].is(self.states[0]) {
            return source;
        }
        let prefixes = scan(source, axis, |a, b| (self.combine)(a, b));
        let valid = holds(location, prefixes.handles()[0]);
        let sources = [prefixes.handles(), vec![valid]].concat();
        let results = self.prefixes(location, &before, &sources, axis);
        S::from_handles(&results[..before.len() - 1])
    }

    /// The same of the elements where the mask holds: what those up to each position combine to, which is zero where there
    /// is none. Then adds the tiles as [`add_masked`](Self::add_masked) does.
    #[track_caller]
    pub fn scan_masked(&mut self, source: S, mask: Tile<bool>, axis: usize) -> S {
        let location = Location::caller();
        let before = self.states.clone();
        self.add_masked(source, mask, axis);
        // `add_masked` has named what does not fit.
        if before[0].is(self.states[0]) {
            return source;
        }
        let combine = |a, b| (self.combine)(a, b);
        let Some(sources) = scan_valid(location, source, mask, axis, combine) else {
            return source;
        };
        shown(location, self.prefixes(location, &before, &sources, axis))
    }

    /// What all tiles combine to: what is left is combined, lower index on the left. Zero where there was
    /// no element.
    #[track_caller]
    pub fn finish(&self) -> S {
        self.finish_by(Location::caller(), |a, b| (self.combine)(a, b))
    }

    /// As [`finish`](Self::finish), by a combine that gives the same of what is no zero.
    pub(super) fn finish_by(
        &self,
        location: &'static Location<'static>,
        combine: impl Fn(S::Element, S::Element) -> S::Element,
    ) -> S {
        let total = |accumulators, _, combine| {
            Op::Total(op::Total {
                accumulators,
                combine,
            })
        };
        let total = self.emit(location, &self.states, total, &[], combine);
        match self.nothing {
            Nothing::Flag => shown(location, total),
            Nothing::Zero => S::from_handles(&total),
        }
    }

    /// What the prefixes of a tile combine to behind all tiles before it.
    fn prefixes(
        &self,
        location: &'static Location<'static>,
        before: &[Handle],
        sources: &[Handle],
        axis: usize,
    ) -> Vec<Handle> {
        let prefixes = |accumulators, sources, combine| {
            Op::Prefixes(op::Prefixes {
                accumulators,
                sources,
                axis: axis_of(axis),
                combine,
            })
        };
        self.emit(location, before, prefixes, sources, |a, b| {
            (self.combine)(a, b)
        })
    }

    fn admits(&mut self, location: &'static Location<'static>, source: &S, axis: usize) -> bool {
        let admitted = context::with(location, |context| {
            let tiles: Vec<Value> = source
                .handles()
                .iter()
                .map(|&it| context.value(it))
                .collect();
            let poisoned = tiles.iter().any(|&it| context.ty(it).is_poison());
            !poisoned && self.extent.admits(context, tiles[0], axis)
        });
        admitted == Some(true)
    }

    fn accumulate(&mut self, location: &'static Location<'static>, subtrees: &[Handle]) {
        let accumulate = |accumulators, subtrees, combine| {
            Op::Accumulate(op::Accumulate {
                accumulators,
                subtrees,
                combine,
            })
        };
        self.states = self.emit(location, &self.states, accumulate, subtrees, |a, b| {
            (self.combine)(a, b)
        });
    }

    /// An op on the accumulators, and what else it takes, with the combine of what is valid.
    fn emit(
        &self,
        location: &'static Location<'static>,
        states: &[Handle],
        make: impl FnOnce(Vec<Value>, Vec<Value>, Region) -> Op,
        more: &[Handle],
        combine: impl Fn(S::Element, S::Element) -> S::Element,
    ) -> Vec<Handle> {
        let elements: Vec<Type> = self.nothing.dtypes::<S>().map(Type::scalar).collect();
        let Some(open) = Open::of_elements(location, states, &elements) else {
            return states.to_vec();
        };
        let chosen = match self.nothing {
            Nothing::Flag => where_valid::<S>(location, &open, combine),
            Nothing::Zero => open.combined::<S>(location, combine),
        };
        open.close(location, &chosen, |context, accumulators, combine| {
            let more = more.iter().map(|&it| context.value(it));
            make(accumulators, more.collect(), combine)
        })
    }
}

/// Results, of which the last says where there was an element: zero elsewhere.
fn shown<S: Reducible>(location: &'static Location<'static>, mut results: Vec<Handle>) -> S {
    let valid = results.pop();
    for result in &mut results {
        *result = context::emit(location, |context| {
            let value = context.value(*result);
            match valid.map(|valid| context.value(valid)) {
                Some(valid) if !context.ty(value).is_poison() => {
                    let zero = context.builder.constant_like(value, 0.0);
                    context.builder.select(valid, value, zero)
                }
                Some(_) | None => value,
            }
        });
    }
    S::from_handles(&results)
}

/// A tile of `true` in the shape of another value.
fn holds(location: &'static Location<'static>, like: Handle) -> Handle {
    context::emit(location, |context| {
        let like = context.value(like);
        let ty = context.ty(like);
        match ty.is_poison() {
            true => like,
            false => (context.builder).filled(Literal::from_bits(DType::Bool, 1), ty.shape),
        }
    })
}
