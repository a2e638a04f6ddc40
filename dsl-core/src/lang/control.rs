//! `for` loops, and what their bounds can be.

use std::ops;
use std::panic::Location;

pub use super::branch::{Branches, Condition, If};
pub use super::carry::{CarriedKind, Carry, HostKind, Kind, OpaqueKind, Part, Slot};
pub use super::exit::{Exit, Forever};
pub use super::for_loop::DeviceLoop;
pub use super::given::Given;
pub use super::outcome::Outcome;
pub use super::while_loop::While;

use super::context::{self, Context};
use super::element::{HostNumber, Int, LiteralOf};
use super::exit::is_left;
use super::math::minimum;
use super::tile::{DeviceValue, ONE_OF, Scalar, Tile};
use crate::builder::Builder;
use crate::ir::{BinaryOp, CompareOp, DType, UnaryOp, Value};

/// A scalar, a tile of rank 0 or a host integer as an index.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no index",
    note = "an index is a scalar, a tile of rank 0 or a host integer"
)]
pub trait IntoIndex {
    /// The index.
    fn into_index(self) -> Scalar<i64>;
    /// The index as a bound of a loop.
    #[doc(hidden)]
    #[track_caller]
    fn into_bound(self) -> Bound
    where
        Self: Sized;
}

/// A bound of a loop.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Bound {
    /// Its bits.
    index: Scalar<i64>,
    /// Whether they are those of a `u64`.
    unsigned: bool,
    /// Whether there may be no index after it.
    may_be_last: bool,
}

impl Bound {
    fn of<T: Int>(index: Scalar<i64>) -> Self {
        Self {
            index,
            unsigned: T::DTYPE == DType::U64,
            may_be_last: matches!(T::DTYPE, DType::I64 | DType::U64),
        }
    }
}

impl<T: Int> IntoIndex for Scalar<T> {
    #[track_caller]
    fn into_index(self) -> Scalar<i64> {
        self.to::<i64>()
    }
    #[track_caller]
    fn into_bound(self) -> Bound {
        Bound::of::<T>(self.into_index())
    }
}

impl<T: Int> IntoIndex for Tile<T> {
    #[track_caller]
    fn into_index(self) -> Scalar<i64> {
        self.single("an index or a bound of a loop", ONE_OF)
            .to::<i64>()
    }
    #[track_caller]
    fn into_bound(self) -> Bound {
        Bound::of::<T>(self.into_index())
    }
}

impl<L: HostNumber + LiteralOf<i64>> IntoIndex for L {
    #[track_caller]
    fn into_index(self) -> Scalar<i64> {
        Scalar::from_handle(context::emit(Location::caller(), |context| {
            context.literal(self.literal())
        }))
    }
    #[track_caller]
    fn into_bound(self) -> Bound {
        let integer = self.integer().unwrap_or_default();
        let unsigned = integer > i128::from(i64::MAX);
        Bound {
            index: match unsigned {
                true => (integer as i64).into_index(),
                false => self.into_index(),
            },
            unsigned,
            may_be_last: integer >= i128::from(i64::MAX),
        }
    }
}

/// The indices of a loop that runs on the device.
#[derive(Clone, Copy)]
#[must_use = "a range does nothing until a `for` runs over it"]
pub struct DeviceRange {
    pub(super) start: Scalar<i64>,
    pub(super) end: Scalar<i64>,
    pub(super) ends: Ends,
    pub(super) step: Step,
    pub(super) stages: i64,
}

/// What the bits of the ends of a range mean.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    /// Of the start and of the end whether they are a `u64`.
    unsigned: [bool; 2],
    /// Whether the end is an index too.
    inclusive: bool,
}

/// The distance of the indices of a loop.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub enum Step {
    /// A host number.
    Host(i64),
    /// A number of the device.
    Device(Scalar<i64>),
    /// A number of the host below zero, where trips are counted.
    Down(Scalar<i64>),
}

/// What the distance of the indices of a loop can be: a scalar, a tile of rank 0 or a host integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no step",
    note = "a step is a scalar, a tile of rank 0 or a host integer"
)]
pub trait IntoStep {
    /// The step.
    #[doc(hidden)]
    fn into_step(self) -> Step;
}

impl<T: Int> IntoStep for Scalar<T> {
    #[track_caller]
    fn into_step(self) -> Step {
        Step::Device(self.to::<i64>())
    }
}

impl<T: Int> IntoStep for Tile<T> {
    #[track_caller]
    fn into_step(self) -> Step {
        Step::Device(self.single("the step of a loop", ONE_OF).to::<i64>())
    }
}

impl<L: HostNumber + LiteralOf<i64>> IntoStep for L {
    fn into_step(self) -> Step {
        let literal = self.literal().ok();
        let integer = literal.and_then(|literal| i64::try_from(literal.integer()?).ok());
        Step::Host(integer.unwrap_or(0))
    }
}

/// The indices `start..end` of a loop that runs on the device, whatever the bounds are.
///
/// `a..b` unrolls when both bounds are host values; this never does.
#[cfg_attr(not(doctest), doc = include_str!("examples/range.md"))]
#[track_caller]
pub fn range(start: impl IntoIndex, end: impl IntoIndex) -> DeviceRange {
    between(start.into_bound(), end.into_bound(), false)
}

fn between(start: Bound, end: Bound, inclusive: bool) -> DeviceRange {
    DeviceRange {
        start: start.index,
        end: end.index,
        ends: Ends {
            unsigned: [start.unsigned, end.unsigned],
            inclusive,
        },
        step: Step::Host(1),
        stages: 1,
    }
}

impl DeviceRange {
    /// Only each `step`-th index. A host number below zero counts downwards, from `start` to the last index above
    /// `end`, and zero is an error; with a scalar that is not positive the loop has no iteration.
    ///
    /// `range(program_id(0), rows).step(num_programs(0))` deals the rows to the programs of any grid.
    #[cfg_attr(not(doctest), doc = include_str!("examples/step.md"))]
    #[track_caller]
    pub fn step(self, step: impl IntoStep) -> Self {
        Self {
            step: step.into_step(),
            ..self
        }
    }

    /// How many iterations a software pipeline overlaps: a hint that never changes results, for
    /// GPUs alone. Below 2 there is none; more than 8 count as 8. The stages of a kernel's `Config`,
    /// if not 0, replace those of all its loops, except of loops with 0 stages.
    ///
    /// While an iteration runs, loads of the next `stages - 1` are copied to shared memory. These are
    /// the loads of tiles whose offsets and masks, and the conditions of `if`s around them, follow
    /// from the index, from what the loop does not change, from carried values that only such
    /// numbers advance, and from single numbers that are loaded by such offsets and need no check, as
    /// elements of a tensor. Other loads stay where they are, as do those of arguments that the loop
    /// writes, those that every iteration repeats, and those in an inner loop, which has stages of
    /// its own. So do loads of which a lane accesses fewer than 4 bytes at once.
    ///
    /// Each stage costs shared memory of the size of the tiles loaded, more where lanes hold copies;
    /// a thread block has 99 to 227 KiB, which [`Target`](crate::target::Target) tells of each GPU.
    /// Where they do not fit, pipelines become shallower.
    #[cfg_attr(not(doctest), doc = include_str!("examples/stages.md"))]
    pub fn stages(self, stages: usize) -> Self {
        Self {
            stages: i64::try_from(stages).unwrap_or(i64::MAX),
            ..self
        }
    }
}

/// Loops whose step is a number of the device, whose ends a signed number may not reach, and those that a statement leaves, count
/// their trips.
impl DeviceRange {
    /// Has the loop count its trips.
    pub(super) fn count(&mut self, context: &mut Context) {
        let Step::Host(step) = self.step else { return };
        if step == 0 {
            context.builder.error("step `0` of `for` is zero");
        }
        let constant = context.builder.index(step);
        let constant = Scalar::from_handle(context.handle(constant));
        self.step = match step < 0 {
            true => Step::Down(constant),
            false => Step::Device(constant),
        };
    }

    /// Whether it counts downwards or to a number that may have none after it, which no loop does by itself.
    pub(super) fn must_count(self) -> bool {
        let Ends {
            unsigned,
            inclusive,
        } = self.ends;
        inclusive || unsigned != [false; 2] || matches!(self.step, Step::Host(step) if step < 0)
    }

    /// The number of trips: `(end - 1 - start) / step + 1` for positive steps and distances, and downwards that of
    /// the loop from the end to the start.
    pub(super) fn trips(self, context: &mut Context) -> Option<Value> {
        let mut ends = self.ends;
        let (bounds, step) = match self.step {
            Step::Host(_) => return None,
            Step::Device(step) => ([self.start, self.end], step),
            Step::Down(step) => {
                ends.unsigned.reverse();
                ([self.end, self.start], step)
            }
        };
        let [start, end, mut step] = [bounds[0], bounds[1], step].map(|scalar| {
            let value = context.value(scalar.handle());
            context.cast(value, DType::I64)
        });
        if let Step::Down(_) = self.step {
            step = context.builder.unary(UnaryOp::Neg, step);
            // Of the least number, which has no other sign, the bits are those of its distance.
            return Some(upward(context, ([start, end], ends), step, false));
        }
        Some(upward(context, ([start, end], ends), step, true))
    }

    /// The index of a trip, or the index that the loop itself gives.
    pub(super) fn index(self, context: &mut Context, trip: Value) -> Value {
        let (Step::Device(step) | Step::Down(step)) = self.step else {
            return trip;
        };
        let [start, step] = [self.start, step].map(|scalar| context.value(scalar.handle()));
        let distance = context.builder.mul(trip, step);
        context.builder.add(start, distance)
    }
}

/// The trips of a loop whose step is the bits of `step` without a sign; none where `signed` and it is not positive.
fn upward(
    context: &mut Context,
    ([start, end], ends): ([Value; 2], Ends),
    step: Value,
    signed: bool,
) -> Value {
    let builder = &mut context.builder;
    let (zero, one) = (builder.index(0), builder.index(1));
    // The distance may exceed the signed numbers.
    let distance = builder.sub(end, start);
    let mut last = match ends.inclusive {
        true => distance,
        false => builder.sub(distance, one),
    };
    if ends.unsigned == [false, true] {
        // From below zero it may exceed the unsigned ones too.
        let below = builder.lt(start, zero);
        let [sum, whole] = [distance, end].map(|x| builder.bitcast(x, DType::U64));
        let exceeds = builder.lt(sum, whole);
        let exceeds = builder.and(below, exceeds);
        let most = builder.index(-1);
        last = builder.select(exceeds, most, last);
    }
    let [last, unsigned_step] = [last, step].map(|x| builder.bitcast(x, DType::U64));
    let steps = builder.div(last, unsigned_step);
    // No loop ends that makes more trips than a signed number counts.
    let most = builder.index(i64::MAX - 1);
    let most = builder.bitcast(most, DType::U64);
    let steps = builder.binary(BinaryOp::Minimum, steps, most);
    let steps = builder.bitcast(steps, DType::I64);
    let trips = builder.add(steps, one);
    let forward = signed.then(|| builder.gt(step, zero));
    let some = runs(builder, [start, end], zero, ends);
    let runs = forward.map_or(some, |forward| builder.and(forward, some));
    builder.select(runs, trips, zero)
}

/// Whether there is an index between the ends.
fn runs(builder: &mut Builder, [start, end]: [Value; 2], zero: Value, ends: Ends) -> Value {
    let compare = |builder: &mut Builder, [start, end]: [Value; 2]| match ends.inclusive {
        true => builder.compare(CompareOp::Le, start, end),
        false => builder.lt(start, end),
    };
    if ends.unsigned == [false; 2] {
        return compare(builder, [start, end]);
    }
    let bits = [start, end].map(|x| builder.bitcast(x, DType::U64));
    let some = compare(builder, bits);
    match ends.unsigned {
        [false, _] => {
            let below = builder.lt(start, zero);
            builder.or(below, some)
        }
        [true, false] => {
            let below = builder.lt(end, zero);
            let reached = builder.not(below);
            builder.and(reached, some)
        }
        [true, true] => some,
    }
}

/// `start..end` in the header of a `for`: made by the macros.
pub struct Span;

impl Span {
    /// A host range when both bounds are host integers of one type, else a device range.
    #[track_caller]
    pub fn over<A: Bounds<B>, B>(start: A, end: B) -> A::Range {
        start.range(end)
    }

    /// [`over`](Self::over) for `start..=end`.
    #[track_caller]
    pub fn through<A: Bounds<B>, B>(start: A, last: B) -> A::Through {
        start.through(last)
    }
}

/// Bounds of a `for`.
#[diagnostic::on_unimplemented(
    message = "a loop cannot run from `{Self}` to `{R}`",
    note = "bounds are scalars, tiles of rank 0 and host integers"
)]
pub trait Bounds<R> {
    /// What the loop runs over.
    type Range;
    /// What the loop runs over if it reaches the second bound too.
    type Through;
    /// The range.
    fn range(self, end: R) -> Self::Range;
    /// The range with its end.
    fn through(self, last: R) -> Self::Through;
}

/// The indices `start..=last`.
#[track_caller]
fn through(start: impl IntoIndex, last: impl IntoIndex) -> DeviceRange {
    let mut end = last.into_bound();
    if !end.may_be_last {
        end.index = minimum(end.index, i64::MAX - 1) + 1;
    }
    between(start.into_bound(), end, end.may_be_last)
}

macro_rules! host_bounds {
    ($($Host:ty)*) => { $(
        impl Bounds<$Host> for $Host {
            type Range = ops::Range<$Host>;
            type Through = ops::RangeInclusive<$Host>;
            fn range(self, end: $Host) -> ops::Range<$Host> {
                self..end
            }
            fn through(self, last: $Host) -> ops::RangeInclusive<$Host> {
                self..=last
            }
        }
    )* };
}
host_bounds!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! device_bounds {
    ($($Start:ident $End:ident;)*) => { $(
        impl<T: Int, U: Int> Bounds<$End<U>> for $Start<T> {
            type Range = DeviceRange;
            type Through = DeviceRange;
            #[track_caller]
            fn range(self, end: $End<U>) -> DeviceRange {
                range(self, end)
            }
            #[track_caller]
            fn through(self, last: $End<U>) -> DeviceRange {
                through(self, last)
            }
        }
    )* };
}
device_bounds! {
    Scalar Scalar;
    Scalar Tile;
    Tile Scalar;
    Tile Tile;
}

macro_rules! bounds_beside_the_host {
    ($($Kind:ident)*) => { $(
        impl<T: Int, L: HostNumber + LiteralOf<i64>> Bounds<L> for $Kind<T> {
            type Range = DeviceRange;
            type Through = DeviceRange;
            #[track_caller]
            fn range(self, end: L) -> DeviceRange {
                range(self, end)
            }
            #[track_caller]
            fn through(self, last: L) -> DeviceRange {
                through(self, last)
            }
        }
        impl<T: Int, L: HostNumber + LiteralOf<i64>> Bounds<$Kind<T>> for L {
            type Range = DeviceRange;
            type Through = DeviceRange;
            #[track_caller]
            fn range(self, end: $Kind<T>) -> DeviceRange {
                range(self, end)
            }
            #[track_caller]
            fn through(self, last: $Kind<T>) -> DeviceRange {
                through(self, last)
            }
        }
    )* };
}
bounds_beside_the_host!(Tile Scalar);

/// What a `for` can run over: host iterators unroll, device ranges become loops.
pub trait IntoLoop {
    /// The loop while it is traced.
    type Loop: Loop;
    /// Starts it.
    fn into_loop(self) -> Self::Loop;
}

/// A `for` while it is traced.
pub trait Loop {
    /// What the pattern binds.
    type Item;
    /// The item of the next pass over the body, or the end of the loop.
    fn next(&mut self, slots: &mut [Slot<'_>]) -> Option<Self::Item>;
}

/// A loop that runs while tracing.
pub struct HostLoop<I>(I);

impl<I: IntoIterator> IntoLoop for I {
    type Loop = HostLoop<I::IntoIter>;
    fn into_loop(self) -> HostLoop<I::IntoIter> {
        HostLoop(self.into_iter())
    }
}

impl<I: Iterator> Loop for HostLoop<I> {
    type Item = I::Item;
    fn next(&mut self, slots: &mut [Slot<'_>]) -> Option<I::Item> {
        match is_left(slots) {
            true => None,
            false => self.0.next(),
        }
    }
}
