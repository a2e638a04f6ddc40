//! Numbers as text: floats in hexadecimal so that every bit survives, decimals accepted.

use crate::ir::{Class, DType, Literal, round};

/// The number without its type: `-5`, `true`, `0x1.8p0`, `inf`, `nan`, or `bits:0x7f800001` for a
/// NaN that is not the canonical one.
pub fn format(literal: Literal) -> String {
    match literal.dtype.class() {
        Class::Bool => (literal.bits != 0).to_string(),
        Class::Signed | Class::Unsigned => literal.integer().unwrap_or(0).to_string(),
        Class::Float => format_float(literal),
    }
}

/// By arithmetic on integers and normal numbers alone: a host library may have had subnormals dropped.
fn format_float(literal: Literal) -> String {
    let value = match literal.dtype.format() {
        Some(format) if literal.dtype != DType::F64 => round::exact(format, literal.bits),
        Some(_) | None => f64::from_bits(literal.bits),
    };
    if value.is_nan() {
        return if literal.bits == literal.dtype.canonical_nan() {
            "nan".to_string()
        } else {
            format!("bits:{:#x}", literal.bits)
        };
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let bits = value.abs().to_bits();
    if bits == 0 {
        return format!("{sign}0x0p0");
    }
    let (mut exponent, mut fraction) = ((bits >> 52) as i64 - 1023, bits & ((1 << 52) - 1));
    if exponent == -1023 {
        let shift = fraction.leading_zeros() - 11;
        fraction = (fraction << shift) & ((1 << 52) - 1);
        exponent = -1022 - i64::from(shift);
    }
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x1{point}{digits}p{exponent}")
}

/// Reads a number of type `dtype`: what [`format()`] writes, or a decimal. `None` when it is no such
/// number or an integer out of range.
pub fn parse(dtype: DType, text: &str) -> Option<Literal> {
    match dtype.class() {
        Class::Bool => match text {
            "true" | "1" => Some(Literal::from_bits(dtype, 1)),
            "false" | "0" => Some(Literal::from_bits(dtype, 0)),
            _ => None,
        },
        Class::Signed | Class::Unsigned => Literal::from_integer(dtype, parse_integer(text)?),
        Class::Float => parse_float(dtype, text),
    }
}

fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let magnitude = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -magnitude } else { magnitude })
}

fn parse_float(dtype: DType, text: &str) -> Option<Literal> {
    if let Some(hex) = text.strip_prefix("bits:0x") {
        let bits = u64::from_str_radix(hex, 16).ok()?;
        return (bits & !dtype.mask() == 0).then(|| Literal::from_bits(dtype, bits));
    }
    if text == "nan" {
        return Some(Literal::from_bits(dtype, dtype.canonical_nan()));
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x") {
        let value = parse_hexadecimal(hex)?;
        return Some(Literal::from_f64(
            dtype,
            if unsigned.len() < text.len() {
                -value
            } else {
                value
            },
        ));
    }
    if dtype == DType::F32 {
        let value: f32 = text.parse().ok()?;
        return Some(Literal::from_bits(dtype, u64::from(value.to_bits())));
    }
    Some(Literal::from_f64(dtype, text.parse().ok()?))
}

fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once('p').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if whole.is_empty() || digits.len() > 14 {
        return None;
    }
    let integer = if digits.is_empty() {
        0
    } else {
        u64::from_str_radix(digits, 16).ok()?
    };
    let exponent: i64 = exponent.parse().ok()?;
    let mut exponent = exponent
        .checked_sub(4 * fraction.len() as i64)?
        .clamp(-2200, 2200);
    // Exact while the result is a number of at most 53 bits, which is all that `format` writes:
    // scaling by steps that stay in range rounds at most once, in the last step.
    let mut value = integer as f64;
    while exponent != 0 && value != 0.0 && value.is_finite() {
        let step = exponent.clamp(-1000, 1000);
        value *= power_of_two(step);
        exponent -= step;
    }
    Some(value)
}

fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_float_survives() {
        for dtype in [DType::F16, DType::BF16] {
            for bits in 0..=0xffff {
                let literal = Literal::from_bits(dtype, bits);
                assert_eq!(
                    parse(dtype, &format(literal)),
                    Some(literal),
                    "{}",
                    format(literal)
                );
            }
        }
    }

    #[test]
    fn extremes_of_wide_floats_survive() {
        for bits in [
            0,
            1,
            0x8000_0001,
            0x7f7f_ffff,
            0x0080_0000,
            0x7f80_0000,
            0xffff_ffff,
        ] {
            let literal = Literal::from_bits(DType::F32, bits);
            assert_eq!(
                parse(DType::F32, &format(literal)),
                Some(literal),
                "{}",
                format(literal)
            );
        }
        for bits in [
            1,
            0x000f_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            1 << 63,
            0x3ff8 << 48,
        ] {
            let literal = Literal::from_bits(DType::F64, bits);
            assert_eq!(
                parse(DType::F64, &format(literal)),
                Some(literal),
                "{}",
                format(literal)
            );
        }
    }

    #[test]
    fn integers_out_of_range_are_refused() {
        assert_eq!(parse(DType::I8, "128"), None);
        assert_eq!(parse(DType::U8, "-1"), None);
        assert_eq!(
            parse(DType::I8, "-128").and_then(|literal| literal.integer()),
            Some(-128)
        );
        assert_eq!(
            parse(DType::U64, "18446744073709551615").map(|x| x.bits),
            Some(u64::MAX)
        );
    }
}
