//! Bessel functions of any order: the recurrence from orders 0 and 1 upward, or from far above downward where that would
//! lose all digits. Floats of at most 32 bits, computed in `f64`.

use super::carry::{Carry, Slot};
use super::control::{IntoLoop, Loop, range};
use super::element::SingleFloat;
use super::floats::{is_infinite, sign_bit};
use super::math::{abs, cbrt, maximum, select};
use super::operators::{Compare, Comparison};
use super::tile::{DeviceValue, IntoTile, Scalar, Tile, full, map};
use crate::builder::Builder;
use crate::ir::Value;
use crate::semantics::derived::bessel::{first_kind, second_kind};

/// The greatest order: what is above takes too many steps.
const GREATEST: i64 = 32_767;

/// From here on numbers of a downward recurrence are made smaller.
const GREAT: f64 = 1e100;

/// Numbers and orders, in one shape.
struct Given {
    x: Tile<f64>,
    n: Tile<i64>,
    /// Whether an order is one.
    valid: Tile<bool>,
}

impl Given {
    #[track_caller]
    fn new<V: DeviceValue>(name: &str, orders: impl IntoTile<i32>, x: V) -> Self {
        let n: Tile<i32> = map(x, |context, x| {
            let n = orders.into_value(context);
            let shape = context.ty(x).shape;
            context.broadcast(name, n, shape)
        });
        let n = n.to::<i64>();
        let valid =
            n.compare(0, Comparison::GreaterEqual) & n.compare(GREATEST, Comparison::LessEqual);
        Self {
            x: x.as_tile().to(),
            n: select(valid, n, 0),
            valid,
        }
    }

    /// NaN where an order is none.
    #[track_caller]
    fn result<V: DeviceValue<Element: SingleFloat>>(&self, value: Tile<f64>) -> V {
        V::of_tile(select(self.valid, value, f64::NAN).to())
    }
}

/// The greatest of all numbers.
#[track_caller]
fn greatest(x: Tile<i64>) -> Scalar<i64> {
    x.ravel().max(0).scalar()
}

/// The functions of orders 0 and 1.
#[track_caller]
fn begin(x: Tile<f64>, define: fn(&mut Builder, Value) -> [Value; 2]) -> [Tile<f64>; 2] {
    let one = |at: usize| map(x, move |context, x| define(&mut context.builder, x)[at]);
    [one(0), one(1)]
}

/// Calls `step` with the indices of a range, while the trace carries `state`.
#[track_caller]
fn steps<C: Carry>(
    [from, to]: [Scalar<i64>; 2],
    by: i64,
    state: &mut C,
    step: impl Fn(&mut C, Scalar<i64>),
) {
    let mut steps = range(from, to).step(by).into_loop();
    while let Some(at) = steps.next(&mut [Slot::Carried {
        name: "recurrence",
        value: state,
    }]) {
        step(state, at);
    }
}

/// `f(k + 1) = 2 k / x f(k) - f(k - 1)` from orders 0 and 1 up to `n`; what is beyond all `f32` stays as it is.
#[track_caller]
fn upward(given: &Given, [zero, one]: [Tile<f64>; 2]) -> Tile<f64> {
    let mut state = [zero, one];
    let one = super::tile::scalar::<i64>(1);
    steps([one, greatest(given.n)], 1, &mut state, |state, k| {
        let [before, current] = *state;
        let next = (k * 2).to::<f64>() / given.x * current - before;
        let is_more = given.n.compare(k, Comparison::Greater);
        let goes_on = is_more & !abs(current).compare(1e290, Comparison::Greater);
        *state = [
            select(goes_on, current, before),
            select(goes_on, next, current),
        ];
    });
    select(given.n.compare(0, Comparison::Equal), zero, state[1])
}

/// J of orders above a positive `x`: J. C. P. Miller's recurrence from an order on where J is nothing beside that of `n`,
/// made small enough by `J0 + 2 J2 + 2 J4 + .. = 1`. Where it begins follows from each order alone.
#[track_caller]
fn downward(given: &Given, x: Tile<f64>) -> Tile<f64> {
    let n = given.n;
    let start = n + 16 + (cbrt(n.to::<f64>()) * 12.0).to::<i64>();
    let nothing: Tile<f64> = full([0; 0], 0.0).broadcast_to(x.shape());
    // The orders above and at hand, what they add up to, and that of `n`.
    let mut state = [nothing, nothing + 1.0, nothing, nothing];
    let zero = super::tile::scalar::<i64>(0);
    steps([greatest(start), zero], -1, &mut state, |state, k| {
        let [above, current, sum, found] = *state;
        let next = (k * 2).to::<f64>() / x * current - above;
        let is_even = (k & 1).compare(0, Comparison::Equal);
        let added = select(is_even, current * 2.0, nothing);
        let found = select(n.compare(k, Comparison::Equal), current, found);
        let is_great = abs(next).compare(GREAT, Comparison::Greater);
        let scale = select(is_great, 1.0 / GREAT, nothing + 1.0);
        let begun = start.compare(k, Comparison::GreaterEqual);
        let numbers = [current, next, sum + added, found].map(|it| it * scale);
        *state = std::array::from_fn(|at| select(begun, numbers[at], state[at]));
    });
    let [_, zero, sum, found] = state;
    let found = select(n.compare(0, Comparison::Equal), zero, found);
    found / (sum + zero)
}

/// The Bessel function of the first kind of orders `n` from 0 to 32767, repeated to the shape of `x`; of other orders NaN.
/// At most 1 ulp off but next to zeros, computed in `f64` in as many steps as the greatest order has.
#[track_caller]
pub fn bessel_jn<V: DeviceValue<Element: SingleFloat>>(n: impl IntoTile<i32>, x: V) -> V {
    let given = Given::new("bessel_jn", n, x);
    let magnitude = abs(given.x);
    let size = Given {
        x: magnitude,
        ..given
    };
    let up = upward(&size, begin(magnitude, first_kind));
    let order = given.n.to::<f64>();
    // Any number where the recurrence goes up.
    let below = maximum(magnitude, 1e-60);
    let down = downward(&size, below);
    let value = select(magnitude.compare(order, Comparison::Less), down, up);
    let is_odd = (given.n & 1).compare(1, Comparison::Equal);
    let value = select(is_odd & sign_bit(given.x), -value, value);
    given.result(select(is_infinite(given.x), 0.0, value))
}

/// The Bessel function of the second kind of orders `n` from 0 to 32767, repeated to the shape of `x`; of zero -inf, of
/// negative numbers and of other orders NaN. At most 1 ulp off but next to zeros, computed in `f64` in as many steps as the
/// greatest order has.
#[track_caller]
pub fn bessel_yn<V: DeviceValue<Element: SingleFloat>>(n: impl IntoTile<i32>, x: V) -> V {
    let given = Given::new("bessel_yn", n, x);
    let value = upward(&given, begin(given.x, second_kind));
    given.result(value)
}
