"""Recomputes the results stated in tests/filetests/elementwise by exact rational arithmetic.

The stated results come from the interpreter, whose arithmetic is that of the machine it runs on.
This says that they follow from the definitions: every primitive op, comparison and conversion is
computed as a fraction and rounded once. Derived and approximate functions are left out.

    python tools/check_filetests.py
"""

import glob
import math
import re
import sys
from fractions import Fraction

WIDTH = {"bool": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32,
         "u64": 64, "f8e4m3": 8, "f8e5m2": 8, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
# Fraction bits and exponent bias.
FLOAT = {"f8e4m3": (3, 7), "f8e5m2": (2, 15), "f16": (10, 15), "bf16": (7, 127), "f32": (23, 127),
         "f64": (52, 1023)}
# Formats that have no infinity and one NaN, all bits set: what is too large becomes the greatest number.
FINITE = {"f8e4m3"}
WORD = (1 << 64) - 1


class Special(Exception):
    """A NaN."""


def infinity(dtype, sign):
    """The bits of an infinity, or of what stands for one."""
    fraction, _ = FLOAT[dtype]
    if dtype in FINITE:
        return sign << (WIDTH[dtype] - 1) | (1 << (WIDTH[dtype] - 1)) - 2
    exponents = WIDTH[dtype] - 1 - fraction
    return sign << (WIDTH[dtype] - 1) | ((1 << exponents) - 1) << fraction


def nan(dtype):
    if dtype in FINITE:
        return infinity(dtype, 0) + 1
    return infinity(dtype, 0) | 1 << (FLOAT[dtype][0] - 1)


def decode(dtype, bits):
    """Sign and magnitude; an infinite magnitude is `math.inf`."""
    fraction, bias = FLOAT[dtype]
    exponents = WIDTH[dtype] - 1 - fraction
    sign, exponent = bits >> (WIDTH[dtype] - 1), bits >> fraction & ((1 << exponents) - 1)
    significand = bits & ((1 << fraction) - 1)
    if dtype in FINITE:
        if bits | 1 << (WIDTH[dtype] - 1) == (1 << WIDTH[dtype]) - 1:
            raise Special
    elif exponent == (1 << exponents) - 1:
        if significand:
            raise Special
        return sign, math.inf
    if exponent:
        significand += 1 << fraction
    return sign, Fraction(significand) * Fraction(2) ** (max(exponent, 1) - bias - fraction)


def encode(dtype, sign, magnitude):
    """Rounds once to nearest even."""
    if magnitude == math.inf:
        return infinity(dtype, sign)
    fraction, bias = FLOAT[dtype]
    bits = sign << (WIDTH[dtype] - 1)
    if magnitude == 0:
        return bits
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude
    exponent = max(exponent, 1 - bias)
    significand = round(magnitude / Fraction(2) ** (exponent - fraction))
    return bits | min(((exponent + bias - 1) << fraction) + significand, infinity(dtype, 0))


def is_nan(dtype, bits):
    try:
        decode(dtype, bits)
    except Special:
        return True
    return False


def signed(dtype, bits):
    width = WIDTH[dtype]
    return bits - (1 << width) if dtype[0] == "i" and bits >> (width - 1) else bits


def add(x, y):
    (a, p), (b, q) = x, y
    if math.inf in (p, q):
        if p == q and a != b:
            raise Special
        return x if p == math.inf else y
    total = (-p if a else p) + (-q if b else q)
    return (int(total < 0) if total else a & b), abs(total)


def multiply(x, y):
    (a, p), (b, q) = x, y
    if math.inf in (p, q) and 0 in (p, q):
        raise Special
    return a ^ b, math.inf if math.inf in (p, q) else p * q


def divide(x, y):
    (a, p), (b, q) = x, y
    if p == q and p in (0, math.inf):
        raise Special
    if p == math.inf or q == 0:
        return a ^ b, math.inf
    return a ^ b, Fraction(0) if q == math.inf else p / q


def square_root(x):
    sign, magnitude = x
    if magnitude in (0, math.inf) and not (sign and magnitude):
        return x
    if sign:
        raise Special
    scaled = magnitude * Fraction(4) ** 1200
    root = math.isqrt(scaled.numerator // scaled.denominator)
    # A remainder only says on which side of a tie the root lies.
    inexact = Fraction(root * root) != scaled
    return 0, Fraction(root, 2**1200) + inexact * Fraction(1, 2**1202)


def to_integer(x, towards):
    sign, magnitude = x
    if magnitude == math.inf:
        return x
    return sign, Fraction(abs(towards(-magnitude if sign else magnitude)))


def order(x):
    sign, magnitude = x
    return (-magnitude if sign else magnitude), -sign


def float_op(op, operands):
    negate = lambda x: (1 - x[0], x[1])
    match op, *operands:
        case "add", x, y:
            return add(x, y)
        case "sub", x, y:
            return add(x, negate(y))
        case "mul", x, y:
            return multiply(x, y)
        case "div", x, y:
            return divide(x, y)
        case "fma", x, y, z:
            return add(multiply(x, y), z)
        case "sqrt", x:
            return square_root(x)
        case "floor", x:
            return to_integer(x, math.floor)
        case "ceil", x:
            return to_integer(x, math.ceil)
        case "trunc", x:
            return to_integer(x, math.trunc)
        case "round", x:
            return to_integer(x, round)
        case ("minimum" | "minnum"), x, y:
            return min(x, y, key=order)
        case ("maximum" | "maxnum"), x, y:
            return max(x, y, key=order)
    raise NotImplementedError(op)


def float_bits(op, dtype, operands):
    sign = 1 << (WIDTH[dtype] - 1)
    if op in ("neg", "abs"):
        return operands[0] ^ sign if op == "neg" else operands[0] & ~sign
    if op in ("minnum", "maxnum"):
        kept = [bits for bits in operands if not is_nan(dtype, bits)]
        operands = kept * 2 if len(kept) == 1 else operands
    # Narrow floats: the f32 result, rounded once more.
    wide = "f32" if WIDTH[dtype] < 32 else dtype
    try:
        result = encode(wide, *float_op(op, [decode(dtype, bits) for bits in operands]))
        return result if wide == dtype else encode(dtype, *decode(wide, result))
    except Special:
        return nan(dtype)


def integer_bits(op, dtype, operands):
    width, mask = WIDTH[dtype], (1 << WIDTH[dtype]) - 1
    a, *rest = [signed(dtype, bits) for bits in operands]
    b, amount = (rest[0], operands[1]) if rest else (0, 0)
    quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1) if b else -1
    results = {
        "neg": -a, "abs": abs(a), "not": ~a, "add": a + b, "sub": a - b, "mul": a * b,
        "div": quotient, "rem": a - quotient * b if b else a, "minimum": min(a, b),
        "maximum": max(a, b), "and": a & b, "or": a | b, "xor": a ^ b,
        "shl": a << amount if amount < width else 0, "shr": a >> min(amount, width),
    }
    return results[op] & mask


def compare(op, dtype, operands):
    if dtype in FLOAT:
        if any(is_nan(dtype, bits) for bits in operands):
            return int(op == "ne")
        a, b = (order(decode(dtype, bits))[0] for bits in operands)
    else:
        a, b = (signed(dtype, bits) for bits in operands)
    return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b,
                "ge": a >= b}[op])


def cast(source, target, bits):
    if source in FLOAT:
        if is_nan(source, bits):
            return nan(target) if target in FLOAT else int(target == "bool")
        sign, magnitude = decode(source, bits)
        if target in FLOAT:
            return encode(target, sign, magnitude)
        if target == "bool":
            return int(magnitude != 0)
        half = 1 << (WIDTH[target] - 1)
        least, greatest = (-half, half - 1) if target[0] == "i" else (0, 2 * half - 1)
        value = 2**64 if magnitude == math.inf else int(magnitude)
        return max(least, min(greatest, -value if sign else value)) & (2 * half - 1)
    value = signed(source, bits)
    if target == "bool":
        return int(value != 0)
    if target in FLOAT:
        return encode(target, int(value < 0), Fraction(abs(value)))
    return value & ((1 << WIDTH[target]) - 1)


def bitcast(source, target, bits):
    bits = nan(source) if source in FLOAT and is_nan(source, bits) else bits
    return nan(target) if target in FLOAT and is_nan(target, bits) else bits


def edges(dtype):
    mask = (1 << WIDTH[dtype]) - 1
    sign = mask ^ mask >> 1
    if dtype == "bool":
        return [0, 1]
    if dtype not in FLOAT:
        return [0, 1, mask, sign, sign - 1, 7, WIDTH[dtype], mask - 2]
    return [0, sign, encode(dtype, 0, Fraction(3, 2)), encode(dtype, 1, Fraction(5, 2)),
            infinity(dtype, 0), nan(dtype), 1, infinity(dtype, 0) - 1 | sign]


def random(dtype, count, seed):
    for _ in range(count):
        seed = seed + 0x9E3779B97F4A7C15 & WORD
        bits = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & WORD
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & WORD
        bits ^= bits >> 31
        if dtype in FLOAT:
            value = Fraction(float(signed("i64", bits))) / 2**60
            yield encode(dtype, int(value < 0), abs(value))
        else:
            yield bits & ((1 << WIDTH[dtype]) - 1)


def parse(dtype, text):
    if dtype == "bool":
        return int(text in ("true", "1"))
    if dtype not in FLOAT:
        return int(text, 0) & ((1 << WIDTH[dtype]) - 1)
    if text == "nan":
        return nan(dtype)
    sign, digits = int(text.startswith("-")), text.lstrip("-")
    if digits == "inf":
        return infinity(dtype, sign)
    if not digits.startswith("0x"):
        return encode(dtype, sign, Fraction(digits))
    mantissa, exponent = digits[2:].split("p")
    whole, _, part = mantissa.partition(".")
    value = Fraction(int(whole + part, 16), 16 ** len(part)) * Fraction(2) ** int(exponent)
    return encode(dtype, sign, value)


def numbers(dtype, text):
    if generated := re.match(r"(edges|random)\((\d+), (\d+)\)$", text):
        count, parameter = int(generated[2]), int(generated[3])
        if generated[1] == "random":
            return list(random(dtype, count, parameter))
        cycle = edges(dtype)
        return [cycle[index // parameter % len(cycle)] for index in range(count)]
    return [parse(dtype, item.strip()) for item in text.strip("[]").split(",")]


def expected(op, source, target, operands):
    if op == "cast":
        return cast(source, target, *operands)
    if op == "bitcast":
        return bitcast(source, target, *operands)
    if op in ("eq", "ne", "lt", "le", "gt", "ge"):
        return compare(op, source, operands)
    if source not in FLOAT:
        return integer_bits(op, source, operands)
    bits = float_bits(op, source, operands)
    return nan(source) if is_nan(source, bits) else bits


# Functions are not rounded once; their rows name them. Moves of bits have no arithmetic.
ROWS = open("dsl-core/src/ir/functions.rs").read()
SKIPPED = {*re.findall(r'^ +\w+ "(\w+)" \w+ \w+ \w+ = ', ROWS, re.MULTILINE), "select", "load"}


def main():
    checked = wrong = 0
    for path in sorted(glob.glob("tests/filetests/elementwise/*.bir")):
        types, body, run = {}, None, {}
        for number, line in enumerate(open(path), 1):
            if line.startswith("func "):
                types, body = dict(re.findall(r"%(\w+): ptr<(\w+)>", line)), None
            elif found := re.match(r"  %r = (\w+) .* : tile<\d+x(\w+)>", line):
                body = found.groups()
            elif line.startswith("; run:"):
                run = dict(re.findall(r"(\w)=(\[[^]]*\]|\w+\([^)]*\))", line))
            elif line.startswith("; gives: o=") and body and body[0] not in SKIPPED:
                op, target = body
                inputs = [numbers(types[name], run[name]) for name in "xyz" if name in types]
                for index, got in enumerate(numbers(target, line[len("; gives: o="):].strip())):
                    operands = [values[index] for values in inputs]
                    want = expected(op, types["x"], target, operands)
                    checked += 1
                    if got != want:
                        wrong += 1
                        given = ", ".join(map(hex, operands))
                        print(f"{path}:{number}: {op} of {types['x']} {given}: "
                              f"stated {got:#x}, expected {want:#x}")
    print(f"{checked} results checked, {wrong} wrong")
    return int(wrong > 0 or checked == 0)


if __name__ == "__main__":
    sys.exit(main())
