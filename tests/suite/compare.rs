//! Comparing results with a reference: bits, distances, tolerances.

use exactile::{
    Array, DType, Error, Tolerance, assert_bits_equal, bf16, compare, compare_within, f16,
};

#[test]
fn nan_equals_nan_whatever_its_bits() {
    let negative = f32::from_bits(0xffc0_0001);
    assert_bits_equal(&[negative, 1.0], &[f32::NAN, 1.0]);
    let halves = [f16::from_bits(0xfe01)];
    assert_bits_equal(&halves, &[f16::NAN]);
}

#[test]
fn zeros_of_either_sign_differ_in_bits_at_distance_zero() {
    let comparison = compare(&[-0.0f32], &[0.0f32]).expect("same type and shape");
    assert!(!comparison.bits_equal());
    assert_eq!(comparison.max_ulp, 0);
    assert!(comparison.within_tolerance());
}

#[test]
fn distances_count_numbers_in_between() {
    let next = f32::from_bits(1.0f32.to_bits() + 3);
    let comparison = compare(&[1.0, next], &[1.0, 1.0f32]).expect("same type and shape");
    assert_eq!((comparison.mismatches, comparison.max_ulp), (1, 3));
    assert_eq!(comparison.mean_signed_ulp, 1.5);
    assert_eq!(comparison.first[0].index, [1]);
    let least = f32::from_bits(1);
    let across = compare(&[-least], &[least]).expect("same type and shape");
    assert_eq!(across.max_ulp, 2);
    let integers = compare(&[i64::MIN], &[i64::MAX]).expect("same type and shape");
    assert_eq!(integers.max_ulp, u64::MAX);
}

#[test]
fn nan_on_one_side_is_a_mismatch_outside_every_tolerance() {
    let comparison = compare(&[f32::NAN], &[1.0f32]).expect("same type and shape");
    assert_eq!(comparison.nan_mismatches, 1);
    assert!(!comparison.within_tolerance());
}

#[test]
fn tolerances_are_absolute_plus_relative() {
    let close = compare(&[1000.009f32], &[1000.0f32]).expect("same type and shape");
    assert!(close.within_tolerance() && !close.bits_equal());
    let far = compare(&[1000.02f32], &[1000.0f32]).expect("same type and shape");
    assert!(!far.within_tolerance());
    let halves = compare(&[bf16::from_f32(1.0078125)], &[bf16::ONE]).expect("same type and shape");
    assert!(halves.within_tolerance());
    assert!(
        !compare(&[1i32], &[2])
            .expect("same type and shape")
            .within_tolerance()
    );
    let infinite = compare(&[f32::INFINITY], &[f32::MAX]).expect("same type and shape");
    assert!(!infinite.within_tolerance());
}

/// A tolerance relative to an infinite reference would be infinite.
#[test]
fn only_the_same_infinity_is_close_to_an_infinity() {
    let infinity = f64::INFINITY;
    let close = |got: f64, want: f64| {
        let accepted = |comparison: exactile::Comparison| comparison.within_tolerance();
        let wide = accepted(compare(&[got], &[want]).expect("same type and shape"));
        let [got, want] = [got as f32, want as f32];
        let narrow = accepted(compare(&[got], &[want]).expect("same type and shape"));
        assert_eq!(wide, narrow);
        wide
    };
    for want in [infinity, -infinity] {
        assert!(close(want, want));
        for got in [0.0, 1.0, -1.0, -want, f64::NAN] {
            assert!(!close(got, want), "{got} is not close to {want}");
            assert!(!close(want, got), "{want} is not close to {got}");
        }
    }
}

#[test]
fn tolerances_hold_at_the_ends_of_the_range() {
    let within = |got: f64, want: f64, absolute: f64, relative: f64| {
        let [got, want] = [got, want].map(|x| Array::from_slice([1], &[x]).expect("one element"));
        let tolerance = Tolerance {
            absolute,
            relative,
            nan_equals_nan: true,
        };
        let comparison = compare_within(&got, &want, tolerance).expect("same type and shape");
        comparison.within_tolerance()
    };
    let (least, most) = (f64::from_bits(1), f64::MAX);
    assert!(within(-most, most, 0.0, 2.0));
    assert!(!within(-most, most, 0.0, 1.5), "neither side is infinite");
    assert!(within(least, 0.0, least, 0.0));
    assert!(!within(2.0 * least, 0.0, least, 0.0));
    assert!(!within(f64::INFINITY, most, f64::INFINITY, 0.0));
    for nothing in [f64::NAN, -1.0] {
        assert!(!within(1.0, 2.0, nothing, 0.0) && !within(1.0, 2.0, 0.0, nothing));
        assert!(within(2.0, 2.0, nothing, nothing));
    }
}

#[test]
fn nothing_equals_nothing_of_the_same_shape() {
    let empty: [f32; 0] = [];
    assert_bits_equal(&empty, &empty);
    assert!(compare(&empty, &[1.0f32]).is_err());
}

#[test]
fn nan_can_be_asked_to_differ() {
    let nan = Array::from_slice([1], &[f32::NAN]).expect("one element");
    let mut tolerance = Tolerance::standard(DType::F32);
    tolerance.nan_equals_nan = false;
    let comparison = compare_within(&nan, &nan, tolerance).expect("same type and shape");
    assert!(comparison.bits_equal() && !comparison.within_tolerance());
}

#[test]
fn different_types_or_shapes_are_errors() {
    let types = compare(&[1.0f32], &[1i32]);
    assert!(matches!(
        types,
        Err(Error::DTypeMismatch {
            found: DType::F32,
            ..
        })
    ));
    let shapes = compare(&[1.0f32], &[1.0f32, 2.0]);
    assert!(matches!(shapes, Err(Error::ShapeMismatch { .. })));
}

#[test]
fn the_report_names_the_first_mismatch() {
    let got = Array::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.5, 6.0]).expect("six");
    let want = Array::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("six");
    let report = compare(&got, &want)
        .expect("same type and shape")
        .to_string();
    assert!(
        report.contains("1 of 6 elements of `f32` differ"),
        "{report}"
    );
    assert!(
        report.contains("at [1, 1]: found 5.5e0 (0x40b00000), expected 5e0 (0x40a00000)"),
        "{report}"
    );
}
