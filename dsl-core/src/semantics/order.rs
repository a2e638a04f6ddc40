//! The total order of numbers that `sort` goes by.

use std::cmp::Ordering;

use crate::ir::{DType, Literal};

/// Numbers by value, -0 before +0, every NaN equal and after all numbers, false before true.
pub fn total_order(dtype: DType, a: u64, b: u64) -> Ordering {
    let [a, b] = [a, b].map(|bits| Literal::from_bits(dtype, bits));
    match (a.float(), b.float()) {
        (Some(a), Some(b)) => {
            let by_value = a.partial_cmp(&b).filter(|order| order.is_ne());
            let nan_last = a.is_nan().cmp(&b.is_nan());
            let negative_first = b.is_sign_negative().cmp(&a.is_sign_negative());
            match by_value {
                Some(order) => order,
                None if a.is_nan() || b.is_nan() => nan_last,
                None => negative_first,
            }
        }
        _ => a.integer().cmp(&b.integer()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_go_from_minus_infinity_to_nan() {
        let numbers = [
            f32::NEG_INFINITY,
            -1.0,
            -1e-45,
            -0.0,
            0.0,
            1e-45,
            1.0,
            f32::INFINITY,
        ];
        let mut bits: Vec<u64> = numbers.iter().map(|x| u64::from(x.to_bits())).collect();
        bits.push(0x7fc0_0000);
        for (i, &a) in bits.iter().enumerate() {
            for (j, &b) in bits.iter().enumerate() {
                assert_eq!(total_order(DType::F32, a, b), i.cmp(&j), "{a:x} {b:x}");
            }
        }
        let order = total_order(DType::F32, 0xff80_0001, 0x7fc0_0000);
        assert_eq!(order, Ordering::Equal);
        assert_eq!(
            total_order(DType::F32, 0xff80_0001, 0xff80_0000),
            Ordering::Greater
        );
    }

    #[test]
    fn integers_go_by_value() {
        assert_eq!(total_order(DType::I8, 0xff, 1), Ordering::Less);
        assert_eq!(total_order(DType::U8, 0xff, 1), Ordering::Greater);
        assert_eq!(total_order(DType::U64, u64::MAX, 1), Ordering::Greater);
        assert_eq!(total_order(DType::Bool, 0, 1), Ordering::Less);
    }
}
