"""Minimax polynomials for the math functions of dsl-core/src/semantics/derived.

Method: the exchange algorithm of Remez (E. Ya. Remez, 1934; J.-M. Muller, Elementary Functions, 3rd
ed., chapter 3; E. Stiefel, 1959): solve for the polynomial whose weighted error is level on a
reference, put the point of the largest error into the reference, repeat. The coefficients are rounded to the target
format one at a time, the lowest power first, and the rest is fitted again around the rounded ones.

    pip install mpmath
    python tools/remez.py > dsl-core/src/semantics/derived/coefficients.rs && cargo fmt

Polynomials are written highest power first, as Horner's scheme takes them.
"""

import struct

import mpmath as mp

mp.mp.dps = 60


def to_f32(x):
    """The f32 nearest to `x` (mpmath's own rounding to 24 bits: no double rounding)."""
    with mp.workprec(24):
        return +mp.mpf(x)


def to_f64(x):
    """The f64 nearest to `x`."""
    with mp.workprec(53):
        return +mp.mpf(x)


ROUNDING = {"f32": to_f32, "f64": to_f64}


def remez(target, weight, powers, low, high, grid_points=400, rounds=400):
    """Coefficients of sum(c * x**p) that minimise max |weight * (target - sum)| on a fine grid.

    One point is exchanged a round, and the signs come from the linear dependence of the reference
    (Stiefel's form of the exchange): bases that are no Chebyshev system, such as x, x^2, x^3 around
    zero, are fine.
    """
    count = len(powers)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / grid_points) for i in range(grid_points + 1)]
    weights = [weight(x) for x in grid]
    floor = max(weights) * mp.mpf("1e-12")
    # A point where the whole basis vanishes, or the weight does, constrains nothing.
    reach = min(powers)
    grid, weights = zip(*[(x, w) for x, w in zip(grid, weights) if w > floor and (reach == 0 or abs(x) > mp.mpf("1e-9"))])
    values = [w * target(x) for x, w in zip(grid, weights)]
    rows = [[w * x**p for p in powers] for x, w in zip(grid, weights)]
    last = len(grid) - 1
    # Chebyshev points, kept away from a zero of the weight in the middle.
    reference = [(2 * j + 1) * last // (2 * count + 2) for j in range(count + 1)]
    for _ in range(rounds):
        # The dependence: sum(dependence[i] * rows[reference[i]]) = 0, its first entry 1.
        matrix = mp.matrix(count, count)
        for i in range(count):
            for k in range(count):
                matrix[k, i] = rows[reference[i + 1]][k]
        first = mp.matrix([-rows[reference[0]][k] for k in range(count)])
        dependence = [mp.mpf(1)] + list(mp.lu_solve(matrix, first))
        level = mp.fsum(d * values[i] for d, i in zip(dependence, reference)) / mp.fsum(map(abs, dependence))
        if level < 0:
            dependence, level = [-d for d in dependence], -level
        equations = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row in range(count):
            i = reference[row + 1]
            for k in range(count):
                equations[row, k] = rows[i][k]
            right[row] = values[i] - mp.sign(dependence[row + 1]) * level
        coefficients = list(mp.lu_solve(equations, right))
        errors = [v - mp.fdot(coefficients, r) for v, r in zip(values, rows)]
        worst = max(range(len(grid)), key=lambda i: abs(errors[i]))
        if abs(errors[worst]) <= level * mp.mpf("1.0001") or worst in reference:
            break
        # Enter `worst`: its row as a combination of the reference's, then the ratio test.
        entering = mp.matrix([rows[worst][k] for k in range(count)])
        combination = [mp.mpf(0)] + list(mp.lu_solve(matrix, entering))
        sign = mp.sign(errors[worst])
        leaving = max(range(count + 1), key=lambda i: sign * combination[i] / dependence[i])
        reference[leaving] = worst
    return coefficients, max(map(abs, errors))


def fit(kind, target, weight, powers, low, high):
    """The coefficients, highest power first, and the weighted error.

    Rounds from the lowest power up, fitting the higher ones again.
    """
    low, high = mp.mpf(low), mp.mpf(high)
    fixed, rest = [], list(powers)
    while rest:
        def remaining(x):
            return target(x) - mp.fsum(c * x**p for p, c in fixed)

        coefficients, error = remez(remaining, weight, rest, low, high)
        fixed.append((rest.pop(0), ROUNDING[kind](coefficients[0])))
    return [literal(c, kind) for _, c in reversed(fixed)], float(mp.log(error, 2))


def polynomial(name, meaning, fits):
    """Prints one polynomial in both formats; `fits` maps the format to what `fit` takes."""
    single, single_error = fit("f32", *fits["f32"])
    double, double_error = fit("f64", *fits["f64"])
    print(f"/// {meaning}; weighted error 2^{single_error:.1f} and 2^{double_error:.1f}.")
    print(f"pub(super) const {name}: Polynomial = Polynomial {{")
    print(f"    single: &[{', '.join(single)}],")
    print(f"    double: &[{', '.join(double)}],")
    print("};\n")


def literal(x, kind):
    """The shortest decimal that reads back as the same number."""
    if kind == "f64":
        return repr(float(x))
    bits = struct.pack("<f", float(x))
    for digits in range(1, 10):
        text = f"{float(x):.{digits}g}"
        if struct.pack("<f", float(text)) == bits:
            return text
    return repr(float(x))


def table(name, meaning, kind, arguments):
    """Prints one polynomial in one format."""
    coefficients, error = fit(kind, *arguments)
    print(f"/// {meaning}; weighted error 2^{error:.1f}.")
    print(f"pub(super) const {name}: &[{kind}] = &[{', '.join(coefficients)}];\n")


def split(name, meaning, value):
    """Prints `value` as the unevaluated sum of two constants."""
    high = {kind: ROUNDING[kind](value) for kind in ROUNDING}
    low = {kind: ROUNDING[kind](value - high[kind]) for kind in ROUNDING}
    for part, numbers in (("HIGH", high), ("LOW", low)):
        what = meaning if part == "HIGH" else f"What [`{name}_HIGH`] lacks"
        print(f"/// {what}.")
        print(f"pub(super) const {name}_{part}: Constant = Constant {{")
        print(f"    single: {literal(numbers['f32'], 'f32')},")
        print(f"    double: {literal(numbers['f64'], 'f64')},")
        print("};\n")


def reduced_exp(x):
    """(e^x - 1 - x) / x^2."""
    if abs(x) < mp.mpf("1e-9"):
        return mp.mpf(1) / 2 + x / 6 + x * x / 24
    return (mp.expm1(x) - x) / x**2


def reduced_exp2(x):
    """(2^x - 1) / x."""
    ln2 = mp.ln(2)
    if abs(x) < mp.mpf("1e-25"):
        return ln2 + ln2 * ln2 * x / 2
    return mp.expm1(x * ln2) / x


def reduced_log1p(x):
    """(log(1 + x) - x) / x^2."""
    if abs(x) < mp.mpf("1e-9"):
        return -mp.mpf(1) / 2 + x / 3 - x * x / 4
    return (mp.log1p(x) - x) / x**2


def reduced_atanh(z):
    """(2 atanh(s) / s - 2) / z with z = s^2."""
    if z < mp.mpf("1e-12"):
        return mp.mpf(2) / 3 + 2 * z / 5 + 2 * z * z / 7
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def reduced_atanh_twice(z):
    """(atanh(s) / s - 1 - z / 3) / z^2 with z = s^2."""
    if z < mp.mpf("1e-8"):
        return mp.mpf(1) / 5 + z / 7 + z * z / 9
    return (reduced_atanh(z) / 2 - mp.mpf(1) / 3) / z


def reduced_erf(z):
    """erf(x) / x - 1 with z = x^2."""
    if z < mp.mpf("1e-12"):
        return 2 / mp.sqrt(mp.pi) * (1 - z / 3 + z * z / 10) - 1
    x = mp.sqrt(z)
    return mp.erf(x) / x - 1


def reduced_sin(z):
    """(sin(x) / x - 1) / z with z = x^2."""
    if z < mp.mpf("1e-6"):
        return -mp.mpf(1) / 6 + z / 120 - z * z / 5040
    x = mp.sqrt(z)
    return (mp.sin(x) / x - 1) / z


def reduced_cos(z):
    """(cos(x) - 1 + z / 2) / z^2 with z = x^2."""
    if z < mp.mpf("1e-6"):
        return mp.mpf(1) / 24 - z / 720 + z * z / 40320
    return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2


def reduced_sinh(z):
    """(sinh(x) / x - 1) / z with z = x^2."""
    if z < mp.mpf("1e-6"):
        return mp.mpf(1) / 6 + z / 120 + z * z / 5040
    x = mp.sqrt(z)
    return (mp.sinh(x) / x - 1) / z


def reduced_asin(z):
    """(asin(x) / x - 1) / z with z = x^2."""
    if z < mp.mpf("1e-6"):
        return mp.mpf(1) / 6 + 3 * z / 40 + 5 * z * z / 112
    x = mp.sqrt(z)
    return (mp.asin(x) / x - 1) / z


def reduced_atan(z):
    """(atan(x) / x - 1) / z with z = x^2."""
    if z < mp.mpf("1e-6"):
        return -mp.mpf(1) / 3 + z / 5 - z * z / 7
    x = mp.sqrt(z)
    return (mp.atan(x) / x - 1) / z


def reduced_tanh(z):
    """(tanh(x) / x - 1) / z with z = x^2."""
    if z < mp.mpf("1e-6"):
        return -mp.mpf(1) / 3 + 2 * z / 15 - 17 * z * z / 315
    x = mp.sqrt(z)
    return (mp.tanh(x) / x - 1) / z


def reduced_sigmoid(z):
    """(1 / (1 + e^-x) - 1/2) / x with z = x^2."""
    return (1 + z / 4 * reduced_tanh(z / 4)) / 4


def odd(reduced):
    """What an error of `reduced` is to the function itself."""
    return lambda z: z / (1 + z * reduced(z))


def reduced_erfc(s):
    """(1 + 2 x) e^(x^2) erfc(x) with s = (x - 3) / (x + 3)."""
    x = 3 * (1 + s) / (1 - s)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def reduced_erfinv(w):
    """erfinv(x) / x with w = -log(1 - x^2)."""
    if w < mp.mpf("1e-12"):
        return mp.sqrt(mp.pi) / 2 * (1 + mp.pi / 12 * w)
    x = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(x) / x


def reduced_loggamma(x):
    """log(gamma(x)) / ((x - 1) (x - 2))."""
    if min(abs(x - 1), abs(x - 2)) < mp.mpf("1e-15"):
        x += mp.mpf("1e-25")
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def reduced_stirling(v):
    """x times what log(gamma(x)) is beyond (x - 1/2) log(x) - x + log(2 pi) / 2, with v = 1 / x^2."""
    if v < mp.mpf("1e-8"):
        return mp.mpf(1) / 12 - v / 360 + v * v / 1260 - v**3 / 1680
    x = 1 / mp.sqrt(v)
    return x * (mp.loggamma(x) - (x - mp.mpf(1) / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def reduced_half_turns(z):
    """sin(pi t) / t with z = t^2."""
    if z < mp.mpf("1e-12"):
        return mp.pi * (1 - mp.pi**2 * z / 6 + mp.pi**4 * z * z / 120)
    t = mp.sqrt(z)
    return mp.sin(mp.pi * t) / t


def log1p_weight(x):
    return mp.mpf(0) if abs(x) < mp.mpf("1e-12") else x * x / abs(mp.log1p(x))


HEADER = """//! Coefficients of the derived functions. Printed by `tools/remez.py`: do not edit.
#![expect(
    clippy::approx_constant,
    clippy::unreadable_literal,
    reason = "printed by a program, digit for digit"
)]

/// A number in both formats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constant {
    /// For `f32`.
    pub(super) single: f32,
    /// For `f64`.
    pub(super) double: f64,
}

/// Coefficients in both formats, highest power first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Polynomial {
    /// For `f32`.
    pub(super) single: &'static [f32],
    /// For `f64`.
    pub(super) double: &'static [f64],
}
"""


def main():
    ln2, log2e = mp.ln(2), 1 / mp.ln(2)
    half_ln2 = ln2 / 2 * mp.mpf("1.0005")
    third = mp.mpf(1) / 3
    largest_z = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
    print(HEADER)
    split("LN_2", "ln 2", ln2)
    split("LOG2_E", "1 / ln 2", log2e)
    exp = (lambda x: x * x * mp.exp(-x), (-half_ln2, half_ln2))
    polynomial(
        "EXP",
        "(e^x - 1 - x) / x^2 for |x| up to ln 2 / 2",
        {kind: (reduced_exp, exp[0], range(count), *exp[1]) for kind, count in (("f32", 5), ("f64", 10))},
    )
    exp2 = (lambda x: abs(x) * mp.mpf(2) ** -x, (-0.5, 0.5))
    polynomial(
        "EXP2",
        "(2^x - 1) / x for |x| up to 1/2",
        {kind: (reduced_exp2, exp2[0], range(count), *exp2[1]) for kind, count in (("f32", 6), ("f64", 11))},
    )
    log1p = (reduced_log1p, log1p_weight, range(9), -third, third)
    table("LOG_SINGLE", "(log(1 + x) - x) / x^2 for |x| up to 1/3", "f32", log1p)
    log2 = (lambda x: reduced_log1p(x) * log2e, lambda x: log1p_weight(x) * ln2, range(10), -third, third)
    table("LOG2_SINGLE", "(log2(1 + x) - x / ln 2) / x^2 for |x| up to 1/3", "f32", log2)
    log10 = (lambda x: reduced_log1p(x) / mp.ln(10), lambda x: log1p_weight(x) * mp.ln(10), range(10), -third, third)
    table("LOG10_SINGLE", "(log10(1 + x) - x / ln 10) / x^2 for |x| up to 1/3", "f32", log10)
    atanh = (reduced_atanh, lambda z: z / 2, range(7), 0, largest_z)
    table("ATANH_DOUBLE", "(2 atanh(s) / s - 2) / z with z = s^2 for |s| up to 0.1716", "f64", atanh)
    erf_weight = lambda z: 1 / (1 + reduced_erf(z))
    polynomial(
        "ERF",
        "erf(x) / x - 1 in x^2 for |x| up to 1",
        {kind: (reduced_erf, erf_weight, range(count), 0, 1) for kind, count in (("f32", 7), ("f64", 12))},
    )
    center = mp.mpf("1.25")
    erfc = lambda u: mp.erfc(u + center)
    polynomial(
        "LOG_ERFC",
        "log(erfc(1.25 + u)) for arguments from 1 to 4 in `f32` and to 6 in `f64`; error of erfc",
        {
            kind: (lambda u: mp.log(erfc(u)), erfc, range(count), 1 - center, end - center)
            for kind, count, end in (("f32", 7, 4), ("f64", 18, 6))
        },
    )
    angle = (0, mp.mpf("0.82") ** 2)
    sine = (reduced_sin, odd(reduced_sin), range(4), *angle)
    table("SIN_SINGLE", "(sin(x) / x - 1) / z with z = x^2 for |x| up to 0.82", "f32", sine)
    cosine = (reduced_cos, lambda z: z * z / mp.cos(mp.sqrt(z)), range(3), *angle)
    table("COS_SINGLE", "(cos(x) - 1 + z / 2) / z^2 with z = x^2 for |x| up to 0.82", "f32", cosine)
    sine = (reduced_sin, odd(reduced_sin), range(7), 0, mp.mpf("0.8") ** 2)
    table("SIN_DOUBLE", "(sin(x) / x - 1) / z with z = x^2 for |x| up to 0.8", "f64", sine)
    cosine = (reduced_cos, lambda z: z * z / mp.cos(mp.sqrt(z)), range(6), 0, mp.mpf("0.8") ** 2)
    table("COS_DOUBLE", "(cos(x) - 1 + z / 2) / z^2 with z = x^2 for |x| up to 0.8", "f64", cosine)
    sinh = (reduced_sinh, odd(reduced_sinh), range(4), 0, 1)
    table("SINH_SINGLE", "(sinh(x) / x - 1) / z with z = x^2 for |x| up to 1", "f32", sinh)
    asin = (reduced_asin, odd(reduced_asin), range(7), 0, mp.mpf(1) / 4)
    table("ASIN_DOUBLE", "(asin(x) / x - 1) / z with z = x^2 for |x| up to 1/2", "f64", asin)
    atan = (reduced_atan, odd(reduced_atan), range(12), 0, 1)
    table("ATAN_DOUBLE", "(atan(x) / x - 1) / z with z = x^2 for |x| up to 1", "f64", atan)
    atan = (reduced_atan, odd(reduced_atan), range(20), 0, 1)
    table("ATAN_LONG", "(atan(x) / x - 1) / z with z = x^2 for |x| up to 1", "f64", atan)
    atanh = (reduced_atanh_twice, lambda z: z * z, range(8), 0, largest_z)
    table("ATANH_LONG", "(atanh(s) / s - 1 - z / 3) / z^2 with z = s^2 for |s| up to 0.1716", "f64", atanh)
    erfc = (reduced_erfc, lambda s: 1 / reduced_erfc(s), range(13), -1, mp.mpf("0.56"))
    table("ERFC_DOUBLE", "(1 + 2 x) e^(x^2) erfc(x) in (x - 3) / (x + 3) for x from 0 to 10.25", "f64", erfc)
    erfinv = (reduced_erfinv, lambda w: 1 / reduced_erfinv(w), range(14), 0, 5)
    table("ERFINV_NEAR", "erfinv(x) / x in w for w = -log(1 - x^2) up to 5", "f64", erfinv)
    tail = lambda s: reduced_erfinv((s + 3) ** 2)
    erfinv = (tail, lambda s: 1 / tail(s), range(15), mp.sqrt(5) - 3, mp.mpf("1.01"))
    table("ERFINV_FAR", "erfinv(x) / x in sqrt(w) - 3 for w from 5 to 16", "f64", erfinv)
    centred = lambda u: reduced_loggamma(u + 2)
    loggamma = (centred, lambda u: 1 / centred(u), range(29), -1, 1)
    table("LOG_GAMMA_DOUBLE", "log(gamma(2 + u)) / (u (u + 1)) for |u| up to 1", "f64", loggamma)
    stirling = (reduced_stirling, lambda v: 1, range(7), 0, mp.mpf(1) / 64)
    table("STIRLING_DOUBLE", "x times the rest of Stirling's formula in 1 / x^2 for x from 8 on", "f64", stirling)
    tanh = (reduced_tanh, odd(reduced_tanh), range(3), 0, mp.mpf(1) / 4)
    table("TANH_SHORT", "(tanh(x) / x - 1) / z with z = x^2 for |x| up to 1/2", "f32", tanh)
    sigmoid = (reduced_sigmoid, mp.sqrt, range(3), 0, 1)
    table("SIGMOID_SHORT", "(1 / (1 + e^-x) - 1/2) / x in x^2 for |x| up to 1, error of the function", "f32", sigmoid)
    log1p = (reduced_log1p, log1p_weight, range(7), 0, 1)
    table("LOG1P_SHORT", "(log(1 + x) - x) / x^2 for x from 0 to 1", "f32", log1p)
    table("ERF_SHORT", "erf(x) / x - 1 in x^2 for |x| up to 1", "f32", (reduced_erf, erf_weight, range(6), 0, 1))
    turns = (reduced_half_turns, lambda z: 1 / reduced_half_turns(z), range(9), 0, mp.mpf(1) / 4)
    table("HALF_TURNS_DOUBLE", "sin(pi t) / t in t^2 for |t| up to 1/2", "f64", turns)


if __name__ == "__main__":
    main()
