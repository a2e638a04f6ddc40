//! The normal distribution and the complementary error function beside it: floats of at most 32 bits, computed in
//! `f64`.

use super::element::SingleFloat;
use super::math::{erf, exp, log, minimum, select, sqrt};
use super::operators::{Compare, Comparison};
use super::tile::{DeviceValue, Tile, full};

/// Levels of the continued fraction of `e^(x^2) erfc(x)`, which from 3 on is 5e-10 off by them.
const LEVELS: u32 = 12;
const CONTINUED_FROM: f64 = 3.0;

/// `e^(x^2) erfc(x)` of numbers that are not negative, at most 5e-10 of it off.
#[track_caller]
fn scaled_complement(x: Tile<f64>) -> Tile<f64> {
    let near = exp(x * x) * (1.0 - erf(x));
    let mut divisor = x;
    for level in (1..=LEVELS).rev() {
        divisor = x + f64::from(level) / 2.0 / divisor;
    }
    // 1 / sqrt(pi).
    let far = 0.564_189_583_547_756_3 / divisor;
    select(x.compare(CONTINUED_FROM, Comparison::Less), near, far)
}

/// `e^(x^2) erfc(x)`, which falls as `1 / (sqrt(pi) x)` where `erfc` has no more bits; of -inf +inf. At most 0.51 ulp
/// off.
#[track_caller]
pub fn erfcx<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f64>();
    let right = scaled_complement(x.abs());
    let left = exp(x * x) * 2.0 - right;
    V::of_tile(select(x.compare(0.0, Comparison::Less), left, right).to())
}

/// The probability that a normally distributed number with mean 0 and variance 1 is at most `x`, without loss for very
/// negative `x`; of -inf 0, of +inf 1. At most 0.51 ulp off.
#[track_caller]
pub fn normal_cdf<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let x = x.as_tile().to::<f64>();
    let scaled = scaled_complement(x.abs() * std::f64::consts::FRAC_1_SQRT_2);
    let is_far = x.abs().compare(40.0, Comparison::Greater);
    let tail = select(is_far, 0.0, exp(x * x * -0.5) * scaled * 0.5);
    V::of_tile(select(x.compare(0.0, Comparison::Greater), 1.0 - tail, tail).to())
}

/// Of the central part, by the square of the distance from one half.
const CENTRAL: [[f64; 8]; 2] = [
    [
        2.509_080_928_730_122_7e3,
        3.343_057_558_358_813e4,
        6.726_577_092_700_87e4,
        4.592_195_393_154_987e4,
        1.373_169_376_550_946e4,
        1.971_590_950_306_551_4e3,
        1.331_416_678_917_843_8e2,
        3.387_132_872_796_366_6,
    ],
    [
        5.226_495_278_852_854e3,
        2.872_908_573_572_194_3e4,
        3.930_789_580_009_271e4,
        2.121_379_430_158_659_6e4,
        5.394_196_021_424_751e3,
        6.871_870_074_920_579e2,
        4.231_333_070_160_091e1,
        1.0,
    ],
];

/// Of the tails, by the root of minus the logarithm of the probability, less 1.6.
const TAIL: [[f64; 8]; 2] = [
    [
        7.745_450_142_783_414e-4,
        2.272_384_498_926_918_4e-2,
        2.417_807_251_774_506e-1,
        1.270_458_252_452_368_4,
        3.647_848_324_763_204_6,
        5.769_497_221_460_691,
        4.630_337_846_156_545,
        1.423_437_110_749_683_6,
    ],
    [
        1.050_750_071_644_416_9e-9,
        5.475_938_084_995_345e-4,
        1.519_866_656_361_645_7e-2,
        1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1,
        1.676_384_830_183_803_8,
        2.053_191_626_637_759,
        1.0,
    ],
];

/// Of the tails where that root is above 5, less 5.
const FAR_TAIL: [[f64; 8]; 2] = [
    [
        2.010_334_399_292_288e-7,
        2.711_555_568_743_487_6e-5,
        1.242_660_947_388_078_4e-3,
        2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1,
        1.784_826_539_917_291_3,
        5.463_784_911_164_114,
        6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15,
        1.421_511_758_316_446e-7,
        1.846_318_317_510_054_8e-5,
        7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2,
        1.369_298_809_227_358e-1,
        5.998_322_065_558_88e-1,
        1.0,
    ],
];

/// The quotient of two polynomials.
#[track_caller]
fn quotient([above, below]: [[f64; 8]; 2], r: Tile<f64>) -> Tile<f64> {
    let mut numerator: Tile<f64> = full([0; 0], above[0]);
    let mut denominator: Tile<f64> = full([0; 0], below[0]);
    for degree in 1..8 {
        numerator = numerator * r + above[degree];
        denominator = denominator * r + below[degree];
    }
    numerator / denominator
}

/// The number below which the normal distribution has this probability (M. J. Wichura, Algorithm AS 241: The Percentage
/// Points of the Normal Distribution, 1988).
#[track_caller]
fn quantile(p: Tile<f64>) -> Tile<f64> {
    let from_half = p - 0.5;
    let is_central = from_half.abs().compare(0.425, Comparison::LessEqual);
    let central = from_half * quotient(CENTRAL, 0.180_625 - from_half * from_half);
    let nearer = minimum(p, 1.0 - p);
    let root = sqrt(-log(nearer));
    let is_near = root.compare(5.0, Comparison::LessEqual);
    let tail = select(
        is_near,
        quotient(TAIL, root - 1.6),
        quotient(FAR_TAIL, root - 5.0),
    );
    let tail = select(nearer.compare(0.0, Comparison::Equal), f64::INFINITY, tail);
    let tail = select(from_half.compare(0.0, Comparison::Less), -tail, tail);
    select(is_central, central, tail)
}

/// The inverse of [`normal_cdf`]: of 0 -inf, of 1 +inf, beyond them NaN. At most 0.5001 ulp off.
#[track_caller]
pub fn normal_cdf_inverse<V: DeviceValue<Element: SingleFloat>>(p: V) -> V {
    V::of_tile(quantile(p.as_tile().to::<f64>()).to())
}

/// The inverse of `erfc`: of 0 +inf, of 1 +0, of 2 -inf, beyond 0 and 2 NaN. At most 0.5001 ulp off, also where the
/// argument is so small that `erfinv(1 - x)` has lost it.
#[track_caller]
pub fn erfc_inv<V: DeviceValue<Element: SingleFloat>>(x: V) -> V {
    let found = quantile(x.as_tile().to::<f64>() * 0.5);
    V::of_tile((found * -std::f64::consts::FRAC_1_SQRT_2 + 0.0).to())
}
