//! pow, atan2 and hypot of `f64` to about 100 bits.

use super::wide::{self, Wide};
use super::{angle, power_of_two};

/// `x^y` of a positive finite `x` whose result is a normal number of moderate magnitude.
pub fn pow(x: f64, y: f64) -> Wide {
    wide::power(wide::log(x).mul(Wide::new(y)))
}

/// The angle of a point whose coordinates are of moderate magnitude, by a step of Newton's iteration.
pub fn atan2(y: f64, x: f64) -> Wide {
    let near = y.atan2(x);
    let (sine, cosine) = (angle::sin(near), angle::cos(near));
    let across = cosine.mul(Wide::new(y)).add(sine.mul(Wide::new(-x)));
    let along = cosine.mul(Wide::new(x)).add(sine.mul(Wide::new(y)));
    Wide::new(near).add(across.div(along))
}

/// `sqrt(x^2 + y^2)` of finite numbers.
pub fn hypot(x: f64, y: f64) -> Wide {
    let greater = x.abs().max(y.abs());
    let exponent = match greater {
        _ if greater > 1e150 => -600,
        _ if greater < 1e-150 => 600,
        _ => 0,
    };
    let [x, y] = [x, y].map(|it| Wide::new(it * power_of_two(exponent)));
    let sum = x.mul(x).add(y.mul(y));
    wide::sqrt(sum).scaled(-exponent)
}
