//! sin, cos and tan of any `f64` to about 100 bits: the angle reduced by integers, then the series.

use super::wide::Wide;

/// 2/pi in words of 32 bits, the highest first.
const TWO_OVER_PI: [u32; 40] = [
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
    0xfc7b_6bab,
    0xf0cf_bc20,
    0x9af4_361d,
];

const HALF_PI: Wide = Wide {
    high: std::f64::consts::FRAC_PI_2,
    low: 6.123_233_995_736_766e-17,
};

/// Words of 2/pi that are multiplied at once.
const WORDS: usize = 9;

/// The number of the nearest quarter turn, modulo 4, and the rest in radians.
fn reduced(x: f64) -> (u32, Wide) {
    let bits = x.abs().to_bits();
    let exponent = (bits >> 52) as i32 - 1075;
    if x.abs() < 0.75 {
        return (0, Wide::new(x.abs()));
    }
    let significand = bits & ((1 << 52) - 1) | 1 << 52;
    // Bits of 2/pi before this one make whole turns.
    let skipped = (exponent - 2).max(0) as usize;
    let word = |at: usize| u64::from(TWO_OVER_PI[at]);
    let (first, places) = (skipped / 32, skipped % 32);
    let window = (0..WORDS).map(|at| {
        let both = word(first + at) << 32 | word(first + at + 1);
        u128::from((both << places >> 32) as u32)
    });
    // The product, its lowest word first, below two more words for what is whole.
    let mut product = [0_u32; WORDS + 2];
    for (at, word) in window.enumerate() {
        let mut carry = word * u128::from(significand);
        for place in &mut product[WORDS - 1 - at..] {
            let sum = u128::from(*place) + (carry & 0xffff_ffff);
            *place = sum as u32;
            carry = (carry >> 32) + (sum >> 32);
        }
    }
    // The product counts in units of 2^(exponent - skipped - 32 WORDS).
    let point = 32 * WORDS as i32 - (exponent - skipped as i32);
    let bit = |at: i32| product[at as usize / 32] >> (at % 32) & 1;
    let quarter = (bit(point + 1) << 1 | bit(point)) + bit(point - 1);
    let below = bit(point - 1) == 1;
    let mut rest = Wide::new(0.0);
    for at in 0..160 {
        let digit = u32::from(below) ^ bit(point - 1 - at);
        let unit = 2f64.powi(-1 - at);
        rest = rest.add(Wide::new(f64::from(digit) * unit));
    }
    let rest = if below { rest.negated() } else { rest };
    (quarter & 3, rest.mul(HALF_PI))
}

/// Sine and cosine of an angle of at most pi/4.
fn series(x: Wide) -> (Wide, Wide) {
    let square = x.mul(x).negated();
    let (mut sine, mut cosine) = (x, Wide::new(1.0));
    let (mut odd, mut even) = (x, Wide::new(1.0));
    for n in 1..18 {
        let n = f64::from(2 * n);
        even = even.mul(square).div(Wide::new(n * (n - 1.0)));
        odd = odd.mul(square).div(Wide::new(n * (n + 1.0)));
        cosine = cosine.add(even);
        sine = sine.add(odd);
    }
    (sine, cosine)
}

/// Sine and cosine of the magnitude.
fn both(x: f64) -> (Wide, Wide) {
    let (quarter, rest) = reduced(x);
    let (sine, cosine) = series(rest);
    match quarter {
        0 => (sine, cosine),
        1 => (cosine, sine.negated()),
        2 => (sine.negated(), cosine.negated()),
        _ => (cosine.negated(), sine),
    }
}

/// Sine.
pub(in crate::semantics) fn sin(x: f64) -> Wide {
    let (sine, _) = both(x);
    if x < 0.0 { sine.negated() } else { sine }
}

/// Cosine.
pub(in crate::semantics) fn cos(x: f64) -> Wide {
    both(x).1
}

/// Tangent.
pub(in crate::semantics) fn tan(x: f64) -> Wide {
    let (sine, cosine) = both(x);
    let tangent = sine.div(cosine);
    if x < 0.0 { tangent.negated() } else { tangent }
}
