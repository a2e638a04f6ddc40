//! Angles as quarter turns and a rest of up to pi/4.

use super::formula::{Format, Formula};
use super::trigonometric::{MODERATE, Reduced, bit};
use crate::ir::{CompareOp, DType, Value};

/// pi/2 in three numbers; the first is below it, so that an exact zero keeps to be one.
const fn half_pi(format: Format) -> [f64; 3] {
    match format {
        Format::Single => [
            1.570796251296997,
            7.549790126404332e-08,
            -1.7151245100058819e-15,
        ],
        Format::Double => [
            std::f64::consts::FRAC_PI_2,
            6.123233995736766e-17,
            -1.4973849048591698e-33,
        ],
    }
}

/// 2/pi in 32-bit words, the highest first, after 25 zero bits: the bits that decide the quarter of a number
/// with exponent `e` and the fraction within it begin at bit `e`.
const TWO_OVER_PI: [u32; 7] = [
    0x51,
    0x7cc1_b727,
    0x220a_94fe,
    0x13ab_e8fa,
    0x9a6e_e06d,
    0xb14a_cc9e,
    0x21c8_20ff,
];

/// 2/pi in 64-bit words, the highest first, after 35 zero bits: the bits that decide the quarter of an `f64`
/// whose field of the exponent is `e` and the fraction within it begin at bit `e - 1042`.
const TWO_OVER_PI_LONG: [u64; 19] = [
    0x0000_0000_145f_306d,
    0xc9c8_82a5_3f84_eafa,
    0x3ea6_9bb8_1b6c_52b3,
    0x2788_7208_3fca_2c75,
    0x7bd7_78ac_36e4_8dc7,
    0x4849_ba5c_00c9_25dd,
    0x413a_3243_9fc3_bd63,
    0x9625_34e7_dd10_46be,
    0xa5d7_6890_9d33_8e04,
    0xd68b_efc8_2732_3ac7,
    0x306a_673e_9390_8bf1,
    0x77bf_2507_63ff_12ff,
    0xfbc0_b301_fde5_e231,
    0x6b41_4da3_eda6_cfd9,
    0xe4f9_6136_e9e8_c7ec,
    0xd3cb_fd45_aea4_f758,
    0xfd7c_be2f_67a0_e73e,
    0xf14a_525d_4d7f_6bf6,
    0x23f1_aba1_0ac0_6608,
];

/// Reduces a magnitude within [`MODERATE`], or NaN.
pub(super) fn reduce_moderate(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let number = formula.number_at_most(x, MODERATE.greatest);
    let two_over_pi = formula.number(std::f64::consts::FRAC_2_PI);
    let magic = formula.number(formula.format.magic(0));
    let sum = formula.fma(number, two_over_pi, magic);
    let whole = formula.sub(sum, magic);
    let quarter = formula.bits_of(sum);
    let [first, second, third] = half_pi(formula.format).map(|part| formula.number(-part));
    // Exact: the product and x agree in their leading bits.
    let rest = formula.fma(whole, first, x);
    let product = formula.mul(whole, second);
    let negated = formula.neg(product);
    let product_low = formula.fma(whole, second, negated);
    // What the sum loses is found exactly even where the product is greater than the rest, since the rest
    // is a multiple of the product's last place.
    let high = formula.add(rest, product);
    let taken = formula.sub(high, rest);
    let lost = formula.sub(product, taken);
    let low = formula.fma(whole, third, product_low);
    let low = formula.add(lost, low);
    Reduced { quarter, high, low }
}

/// Reduces any magnitude.
pub(super) fn reduce(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let moderate = reduce_moderate(formula, x);
    let great = match formula.format {
        Format::Single => reduce_great(formula, x),
        Format::Double => reduce_great_double(formula, x),
    };
    let is_great = formula.compare(CompareOp::Gt, x, MODERATE.greatest);
    Reduced {
        quarter: formula.select(is_great, great.quarter, moderate.quarter),
        high: formula.select(is_great, great.high, moderate.high),
        low: formula.select(is_great, great.low, moderate.low),
    }
}

/// Reduces an `f32` magnitude from 1 on: the significand times 96 bits of 2/pi, modulo 4, is a quarter and
/// a fraction of 62 bits.
fn reduce_great(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let number = formula.number_at_most(x, f64::from(f32::MAX));
    let bits = formula.bits_of(number);
    let words = window(formula, bits);
    let fraction_mask = formula.integer(0x007f_ffff);
    let leading = formula.integer(0x0080_0000);
    let significand = formula.and(bits, fraction_mask);
    let significand = formula.or(significand, leading);
    let thirty_two = formula.double_integer(32);
    let top = formula.mul(significand, words[0]);
    let top = formula.to(top, DType::U64);
    let top = formula.shift_left(top, thirty_two);
    let wide = formula.to(significand, DType::U64);
    let [_, middle, last] = words.map(|word| formula.to(word, DType::U64));
    let middle = formula.mul(wide, middle);
    let last = formula.mul(wide, last);
    let last = formula.shift_right(last, thirty_two);
    let turn = formula.add(top, middle);
    let turn = formula.add(turn, last);

    let upper = formula.shift_right(turn, thirty_two);
    let upper = formula.to(upper, DType::U32);
    let quarter = formula.shr(upper, 29);
    let one = formula.integer(1);
    let quarter = formula.add(quarter, one);
    let quarter = formula.shr(quarter, 1);
    // Without the quarter, and signed, it is the distance to the nearest one.
    let two = formula.double_integer(2);
    let fraction = formula.shift_left(turn, two);
    // inf - inf is NaN.
    let nothing = formula.sub(x, x);
    let (high, low) = radians(formula, fraction, nothing);
    Reduced { quarter, high, low }
}

/// Three words of 2/pi that begin at the bit which is the exponent.
fn window(formula: &mut Formula<'_>, bits: Value) -> [Value; 3] {
    let one = formula.integer(0x0080_0000);
    let raised = formula.add(bits, one);
    // The field of the exponent, one higher, is the exponent modulo 128.
    let by_two = bit(formula, raised, 1 << 29);
    let by_one = bit(formula, raised, 1 << 28);
    let words = TWO_OVER_PI.map(|word| formula.integer(u64::from(word)));
    let words: [Value; 5] =
        std::array::from_fn(|at| formula.select(by_two, words[at + 2], words[at]));
    let words: [Value; 4] =
        std::array::from_fn(|at| formula.select(by_one, words[at + 1], words[at]));
    let places = formula.shr(raised, 23);
    let mask = formula.integer(31);
    let places = formula.and(places, mask);
    let places = formula.to(places, DType::U64);
    let thirty_two = formula.double_integer(32);
    let words = words.map(|word| formula.to(word, DType::U64));
    std::array::from_fn(|at| {
        let upper = formula.shift_left(words[at], thirty_two);
        let both = formula.or(upper, words[at + 1]);
        let shifted = formula.shift_left(both, places);
        let word = formula.shift_right(shifted, thirty_two);
        formula.to(word, DType::U32)
    })
}

/// `fraction / 2^64` quarter turns, signed, in radians, as a sum of two `f32`. `nothing` is 0 or NaN.
fn radians(formula: &mut Formula<'_>, fraction: Value, nothing: Value) -> (Value, Value) {
    let upper = piece(formula, fraction, 32, 0xffff_ff00);
    let middle = piece(formula, fraction, 16, 0x00ff_ffff);
    let lower = piece(formula, fraction, 0, 0xffff);
    let half_pi = std::f64::consts::FRAC_PI_2;
    let low = half_pi - f64::from(half_pi as f32);
    let units = [half_pi, low].map(|part| part * 2f64.powi(-32));
    turned(formula, [upper, middle, lower], [-16, -32], units, nothing)
}

/// The sum of three pieces, of which the later two count in these powers of two, times a sum of two units.
fn turned(
    formula: &mut Formula<'_>,
    [upper, middle, lower]: [Value; 3],
    powers: [i32; 2],
    units: [f64; 2],
    nothing: Value,
) -> (Value, Value) {
    let [middle_unit, lower_unit] = powers.map(|power| formula.number(2f64.powi(power)));
    let high = formula.fma(middle, middle_unit, upper);
    let taken = formula.sub(upper, high);
    let low = formula.fma(middle, middle_unit, taken);
    let low = formula.fma(lower, lower_unit, low);
    let [unit, unit_low] = units.map(|unit| formula.number(unit));
    let angle = formula.fma(high, unit, nothing);
    let negated = formula.neg(angle);
    let lost = formula.fma(high, unit, negated);
    let lost = formula.fma(high, unit_low, lost);
    let lost = formula.fma(low, unit, lost);
    (angle, lost)
}

/// The bits of `fraction` from `from` on that are in the mask, as a float: exact, and signed.
fn piece(formula: &mut Formula<'_>, fraction: Value, from: u64, mask: u64) -> Value {
    let from = formula.double_integer(from);
    let shifted = formula.shift_right(fraction, from);
    let word = formula.to(shifted, DType::U32);
    let mask = formula.integer(mask);
    let masked = formula.and(word, mask);
    let signed = formula.to(masked, DType::I32);
    formula.to(signed, DType::F32)
}

/// Reduces an `f64` magnitude from 2^19 on: the significand times 192 bits of 2/pi, modulo 4, is a quarter and
/// a fraction of 126 bits.
fn reduce_great_double(formula: &mut Formula<'_>, x: Value) -> Reduced {
    let number = formula.number_at_most(x, f64::MAX);
    let bits = formula.bits_of(number);
    let words = window_double(formula, bits);
    let fraction_mask = formula.integer((1 << 52) - 1);
    let leading = formula.integer(1 << 52);
    let significand = formula.and(bits, fraction_mask);
    let significand = formula.or(significand, leading);
    let top = formula.mul(significand, words[0]);
    let (middle_high, middle) = long_product(formula, significand, words[1]);
    let (last_high, _) = long_product(formula, significand, words[2]);
    let lower = formula.add(middle, last_high);
    let top = formula.add(top, middle_high);
    let carries = formula.compare_values(CompareOp::Lt, lower, middle);
    let one = formula.integer(1);
    let carried = formula.add(top, one);
    let upper = formula.select(carries, carried, top);

    let quarter = formula.shr(upper, 61);
    let quarter = formula.add(quarter, one);
    let quarter = formula.shr(quarter, 1);
    // Without the quarter, and signed, it is the distance to the nearest one.
    let upper = formula.shl(upper, 2);
    let from_lower = formula.shr(lower, 62);
    let upper = formula.or(upper, from_lower);
    let lower = formula.shl(lower, 2);
    // inf - inf is NaN.
    let nothing = formula.sub(x, x);
    let (high, low) = radians_double(formula, (upper, lower), nothing);
    Reduced { quarter, high, low }
}

/// Three words of 2/pi that begin at the bit which the exponent says.
fn window_double(formula: &mut Formula<'_>, bits: Value) -> [Value; 3] {
    let start = formula.integer(1042);
    let field = formula.shr(bits, 52);
    let place = formula.sub(field, start);
    let by = [512, 256, 128, 64].map(|places| bit(formula, place, places));
    let words = TWO_OVER_PI_LONG.map(|word| formula.integer(word));
    let words: [Value; 11] =
        std::array::from_fn(|at| formula.select(by[0], words[at + 8], words[at]));
    let words: [Value; 7] =
        std::array::from_fn(|at| formula.select(by[1], words[at + 4], words[at]));
    let words: [Value; 5] =
        std::array::from_fn(|at| formula.select(by[2], words[at + 2], words[at]));
    let words: [Value; 4] =
        std::array::from_fn(|at| formula.select(by[3], words[at + 1], words[at]));
    let mask = formula.integer(63);
    let width = formula.integer(64);
    let places = formula.and(place, mask);
    let others = formula.sub(width, places);
    std::array::from_fn(|at| {
        let upper = formula.shift_left(words[at], places);
        let lower = formula.shift_right(words[at + 1], others);
        formula.or(upper, lower)
    })
}

/// The product of two integers of 64 bits, of which the first has at most 53: its upper and its lower word.
fn long_product(formula: &mut Formula<'_>, x: Value, y: Value) -> (Value, Value) {
    let mask = formula.integer(0xffff_ffff);
    let (x_high, x_low) = (formula.shr(x, 32), formula.and(x, mask));
    let (y_high, y_low) = (formula.shr(y, 32), formula.and(y, mask));
    let low = formula.mul(x_low, y_low);
    let carry = formula.shr(low, 32);
    let first = formula.mul(x_high, y_low);
    // Below 2^53 and 2^32.
    let first = formula.add(first, carry);
    let second = formula.mul(x_low, y_high);
    let first_low = formula.and(first, mask);
    // At most (2^32 - 1)^2 and 2^32 - 1.
    let second = formula.add(second, first_low);
    let high = formula.mul(x_high, y_high);
    let first = formula.shr(first, 32);
    let high = formula.add(high, first);
    let second = formula.shr(second, 32);
    (formula.add(high, second), formula.mul(x, y))
}

/// `fraction / 2^128` quarter turns, signed, in radians, as a sum of two `f64`. `nothing` is 0 or NaN.
fn radians_double(
    formula: &mut Formula<'_>,
    (upper, lower): (Value, Value),
    nothing: Value,
) -> (Value, Value) {
    let mask = formula.integer(0x7ff);
    let rest = formula.and(upper, mask);
    let first = formula.xor(upper, rest);
    let first = formula.to(first, DType::I64);
    let rest = formula.shl(rest, 42);
    let next = formula.shr(lower, 22);
    let second = formula.or(rest, next);
    let mask = formula.integer((1 << 22) - 1);
    let third = formula.and(lower, mask);
    // Each has at most 53 bits.
    let pieces = [first, second, third].map(|piece| formula.to(piece, DType::F64));
    let units = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];
    let units = units.map(|part| part * 2f64.powi(-64));
    turned(formula, pieces, [-42, -64], units, nothing)
}
