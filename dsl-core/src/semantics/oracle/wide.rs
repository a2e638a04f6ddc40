//! The math functions in sums of two `f64` (T. J. Dekker, 1971), about 100 bits, by their series.

/// The unevaluated sum of two numbers; `low` is at most half a unit in the last place of `high`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wide {
    /// The nearest `f64`.
    pub high: f64,
    /// What `high` lacks.
    pub low: f64,
}

const LN_2: Wide = Wide {
    high: std::f64::consts::LN_2,
    low: 2.319_046_813_846_299_6e-17,
};

pub(in crate::semantics) const LN_10: Wide = Wide {
    high: std::f64::consts::LN_10,
    low: -2.170_756_223_382_249_4e-16,
};

const TWO_OVER_SQRT_PI: Wide = Wide {
    high: std::f64::consts::FRAC_2_SQRT_PI,
    low: 1.533545961316588e-17,
};

impl Wide {
    pub(in crate::semantics) const fn new(high: f64) -> Self {
        Self { high, low: 0.0 }
    }

    /// `a + b` exactly, where the magnitude of `a` is not below that of `b`.
    fn fast(a: f64, b: f64) -> Self {
        let high = a + b;
        Self {
            high,
            low: b - (high - a),
        }
    }

    /// `a + b` exactly.
    pub(in crate::semantics) fn sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let part = high - a;
        let low = (a - (high - part)) + (b - part);
        Self { high, low }
    }

    pub(in crate::semantics) fn add(self, other: Self) -> Self {
        let high = Self::sum(self.high, other.high);
        let low = Self::sum(self.low, other.low);
        let once = Self::fast(high.high, high.low + low.high);
        Self::fast(once.high, once.low + low.low)
    }

    pub(in crate::semantics) fn negated(self) -> Self {
        Self {
            high: -self.high,
            low: -self.low,
        }
    }

    pub(in crate::semantics) fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        let cross = self.high.mul_add(other.low, self.low * other.high);
        Self::fast(high, low + cross)
    }

    pub(in crate::semantics) fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self.add(other.mul(Self::new(first)).negated());
        let second = rest.high / other.high;
        let rest = rest.add(other.mul(Self::new(second)).negated());
        let third = rest.high / other.high;
        Self::fast(first, second).add(Self::new(third))
    }

    /// Times a power of two, in two steps so that the power may lie out of range.
    pub(in crate::semantics) fn scaled(self, exponent: i32) -> Self {
        let half = exponent / 2;
        let (a, b) = (
            super::power_of_two(half),
            super::power_of_two(exponent - half),
        );
        Self {
            high: self.high * a * b,
            low: self.low * a * b,
        }
    }
}

/// `1 / sqrt(x)`.
pub(in crate::semantics) fn rsqrt(x: f64) -> Wide {
    Wide::new(1.0).div(sqrt(Wide::new(x)))
}

/// `1 / x`.
pub(in crate::semantics) fn reciprocal(x: f64) -> Wide {
    Wide::new(1.0).div(Wide::new(x))
}

/// `e^x`.
pub(in crate::semantics) fn exp(x: f64) -> Wide {
    power(Wide::new(x))
}

/// `2^x`.
pub(in crate::semantics) fn exp2(x: f64) -> Wide {
    let whole = x.round();
    let rest = power(LN_2.mul(Wide::new(x - whole)));
    rest.scaled(whole as i32)
}

/// `1 / (1 + e^-x)`.
pub(in crate::semantics) fn sigmoid(x: f64) -> Wide {
    let power = exp(-x.abs().min(740.0));
    let sum = power.add(Wide::new(1.0));
    let numerator = if x < 0.0 { power } else { Wide::new(1.0) };
    numerator.div(sum)
}

/// Hyperbolic tangent.
pub(in crate::semantics) fn tanh(x: f64) -> Wide {
    let less_one = expm1(Wide::new(x.abs().min(400.0) * -2.0));
    let value = less_one.div(less_one.add(Wide::new(2.0)));
    if x < 0.0 { value } else { value.negated() }
}

/// Cube root, by a step of Newton's iteration.
pub(in crate::semantics) fn cbrt(x: f64) -> Wide {
    // The low parts of cubes of little numbers are none.
    if x.abs() < 1e-200 {
        return cbrt(x * super::power_of_two(600)).scaled(-200);
    }
    let root = Wide::new(x.cbrt());
    let square = root.mul(root);
    let rest = Wide::new(x).add(square.mul(root).negated());
    let step = rest.div(square.mul(Wide::new(3.0)));
    root.add(step)
}

/// Logarithm to base 10.
pub(in crate::semantics) fn log10(x: f64) -> Wide {
    log(x).div(LN_10)
}

/// Logarithm to base 2.
pub(in crate::semantics) fn log2(x: f64) -> Wide {
    log(x).div(LN_2)
}

pub(in crate::semantics) fn sqrt(x: Wide) -> Wide {
    // The low part of the square of a root would be subnormal.
    if x.high > 0.0 && x.high < 2f64.powi(-900) {
        return sqrt(x.scaled(200)).scaled(-100);
    }
    let root = Wide::new(x.high.sqrt());
    let rest = x.add(root.mul(root).negated());
    let step = Wide::new(rest.high / (2.0 * root.high));
    root.add(step)
}

/// `e^x`.
pub(in crate::semantics) fn power(x: Wide) -> Wide {
    let whole = (x.high / LN_2.high).round();
    let rest = x.add(LN_2.mul(Wide::new(whole)).negated());
    let power = expm1_series(rest).add(Wide::new(1.0));
    power.scaled(whole as i32)
}

/// `e^x - 1`.
pub(in crate::semantics) fn expm1(x: Wide) -> Wide {
    if x.high.abs() < 0.5 {
        expm1_series(x)
    } else {
        power(x).add(Wide::new(-1.0))
    }
}

/// `x + x^2 / 2! + ...` for `|x| <= 0.5`.
fn expm1_series(x: Wide) -> Wide {
    let mut term = x;
    let mut sum = x;
    for n in 2..32 {
        term = term.mul(x).div(Wide::new(f64::from(n)));
        sum = sum.add(term);
    }
    sum
}

/// Error function, by the series of [`super::erf`].
pub(in crate::semantics) fn erf(x: f64) -> Wide {
    if x.abs() > 8.0 {
        return Wide::new(x.signum());
    }
    let x = Wide::new(x);
    let square = x.mul(x);
    let step = square.add(square);
    let one = Wide::new(1.0);
    let (mut term, mut sum, mut odd) = (one, one, 3.0);
    while term.high > sum.high * 1e-33 {
        term = term.mul(step).div(Wide::new(odd));
        sum = sum.add(term);
        odd += 2.0;
    }
    let scale = x.mul(power(square.negated())).mul(TWO_OVER_SQRT_PI);
    scale.mul(sum)
}

/// Natural logarithm: `k ln 2 + 2 atanh(f / (2 + f))`.
pub(in crate::semantics) fn log(x: f64) -> Wide {
    let (x, raised) = if x < f64::MIN_POSITIVE {
        (x * super::power_of_two(54), 54)
    } else {
        (x, 0)
    };
    let mut exponent = (x.to_bits() >> 52) as i32 - 1023;
    let mut significand = f64::from_bits(x.to_bits() & ((1 << 52) - 1) | 1023 << 52);
    if significand > std::f64::consts::SQRT_2 {
        significand /= 2.0;
        exponent += 1;
    }
    let fraction = significand - 1.0;
    let s = Wide::new(fraction).div(Wide::sum(2.0, fraction));
    let square = s.mul(s);
    let mut power = s.add(s);
    let mut sum = power;
    for n in 1..26 {
        power = power.mul(square);
        sum = sum.add(power.div(Wide::new(f64::from(2 * n + 1))));
    }
    sum.add(LN_2.mul(Wide::new(f64::from(exponent - raised))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Function;
    use crate::semantics::oracle::reference_wide;

    /// Function, argument, and the value by mpmath, split into two `f64`.
    const MPMATH: &[(Function, f64, f64, f64)] = &[
        (
            Function::Exp,
            0.1,
            1.1051709180756477,
            -8.149523913327619e-17,
        ),
        (
            Function::Exp,
            -5.3,
            0.004991593906910217,
            1.3751301980752005e-19,
        ),
        (
            Function::Exp,
            700.25,
            1.3022997366991783e+304,
            7.154767958193286e+287,
        ),
        (Function::Exp, 1e-09, 1.000000001, -8.224037093664211e-17),
        (
            Function::Exp2,
            0.3,
            1.2311444133449163,
            -3.572339831433251e-17,
        ),
        (
            Function::Exp2,
            -700.7,
            1.1702591305506744e-211,
            2.380374801332172e-228,
        ),
        (
            Function::Log,
            1.0000001,
            9.999999505838704e-08,
            1.5249709528441489e-24,
        ),
        (
            Function::Log,
            3.7,
            1.308332819650179,
            -8.256475934401426e-17,
        ),
        (
            Function::Log,
            1e-300,
            -690.7755278982137,
            -2.3670096176709832e-14,
        ),
        (
            Function::Log,
            0.7,
            -0.35667494393873245,
            4.82556379937662e-18,
        ),
        (
            Function::Log2,
            0.9999,
            -0.00014427671804501932,
            4.184500412756758e-21,
        ),
        (
            Function::Log2,
            10000000000.0,
            33.219280948873624,
            -1.0029177421267835e-15,
        ),
        (
            Function::Rsqrt,
            3.0,
            0.5773502691896257,
            3.3450280739356345e-17,
        ),
        (
            Function::Sigmoid,
            -30.5,
            5.6756852326324e-14,
            7.790731367469167e-31,
        ),
        (
            Function::Sigmoid,
            0.01,
            0.5024999791668749,
            5.412943542276899e-17,
        ),
        (
            Function::Sigmoid,
            5.0,
            0.9933071490757152,
            -1.2264619394086437e-17,
        ),
        (
            Function::Tanh,
            1e-05,
            9.999999999666668e-06,
            -4.5758701526937e-22,
        ),
        (
            Function::Tanh,
            0.2,
            0.197375320224904,
            6.334792292201447e-18,
        ),
        (
            Function::Tanh,
            -0.7,
            -0.6043677771171635,
            2.7916180015425346e-17,
        ),
        (
            Function::Tanh,
            9.0,
            0.999999969540041,
            -2.5991562562660026e-17,
        ),
        (
            Function::Erf,
            1e-05,
            1.1283791670579e-05,
            -3.369136869444807e-23,
        ),
        (
            Function::Erf,
            0.3,
            0.3286267594591274,
            2.2908254446982777e-17,
        ),
        (
            Function::Erf,
            -1.7,
            -0.9837904585907745,
            -4.16538078253101e-17,
        ),
        (
            Function::Erf,
            4.5,
            0.9999999998033839,
            1.2614727975054947e-17,
        ),
    ];

    fn check(what: &str, x: f64, found: Wide, (high, low): (f64, f64)) {
        assert_eq!(found.high, high, "{what} {x}");
        let apart = (found.low - low).abs() / high.abs();
        assert!(apart < 1e-29, "{what} {x} {apart:e}");
    }

    #[test]
    fn agrees_with_mpmath() {
        let root = (std::f64::consts::SQRT_2, -9.667293313452913e-17);
        check("sqrt", 2.0, sqrt(Wide::new(2.0)), root);
        for &(op, x, high, low) in MPMATH {
            let found = reference_wide(op, x).expect("has a value");
            check(op.mnemonic(), x, found, (high, low));
        }
    }
}
