//! Guards of the numeric contract that the machine code can show.

use exactile_core::ir::{Access, Approximate, DType};

use crate::{aligned, assemble, compile, count, lane_offset, load, store};

#[test]
fn a_product_and_a_sum_are_never_fused() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let ptx = compile(&format!("mul_add_{dtype}"), |builder| {
            let input = aligned(builder, "x", dtype, Access::Read);
            let output = aligned(builder, "y", dtype, Access::ReadWrite);
            let offset = lane_offset(builder, 4);
            let x = load(builder, input, offset, 4);
            let product = builder.mul(x, x);
            let sum = builder.add(product, x);
            store(builder, output, offset, sum);
        });
        assert!(!ptx.text().contains("fma"), "{}", ptx.text());
        assert!(!ptx.text().contains("ftz"), "{}", ptx.text());
        let Some(assembled) = assemble(&ptx) else {
            return;
        };
        assert_eq!(
            count(&assembled, "FFMA") + count(&assembled, "DFMA"),
            0,
            "{}",
            assembled.sass
        );
    }
}

#[test]
fn half_precision_fma_rounds_twice() {
    for dtype in [DType::F16, DType::BF16] {
        let ptx = compile(&format!("fma_{dtype}"), |builder| {
            let input = aligned(builder, "x", dtype, Access::Read);
            let output = aligned(builder, "y", dtype, Access::ReadWrite);
            let offset = lane_offset(builder, 1);
            let x = load(builder, input, offset, 1);
            let value = builder.fma(x, x, x);
            store(builder, output, offset, value);
        });
        assert!(ptx.text().contains("fma.rn.f32"), "{}", ptx.text());
        assert!(!ptx.text().contains("fma.rn.f16"), "{}", ptx.text());
        assert!(!ptx.text().contains("fma.rn.bf16"), "{}", ptx.text());
    }
}

/// Conversions in one step, or after an exact one: through `f32` wide numbers would round twice.
#[test]
fn narrowing_rounds_once() {
    let cases = [
        (DType::I64, DType::F16, "cvt.rn.f16.s64"),
        (DType::U64, DType::F16, "cvt.rn.f16.u64"),
        (DType::I32, DType::F16, "cvt.rn.f16.s32"),
        (DType::U32, DType::F16, "cvt.rn.f16.u32"),
        (DType::I64, DType::BF16, "cvt.rn.bf16.f64"),
        (DType::U64, DType::BF16, "cvt.rn.bf16.f64"),
        (DType::I32, DType::BF16, "cvt.rn.bf16.f64"),
        (DType::U32, DType::BF16, "cvt.rn.bf16.f64"),
        (DType::I16, DType::BF16, "cvt.rn.bf16.f32"),
        (DType::U16, DType::BF16, "cvt.rn.bf16.f32"),
        (DType::F64, DType::F16, "cvt.rn.f16.f64"),
        (DType::F64, DType::BF16, "cvt.rn.bf16.f64"),
    ];
    for (from, to, instruction) in cases {
        let ptx = compile(&format!("cast_{from}_{to}"), |builder| {
            let input = aligned(builder, "x", from, Access::Read);
            let output = aligned(builder, "y", to, Access::ReadWrite);
            let offset = lane_offset(builder, 1);
            let x = load(builder, input, offset, 1);
            let value = builder.cast(x, to);
            store(builder, output, offset, value);
        });
        assert!(
            ptx.text().contains(instruction),
            "{instruction}:\n{}",
            ptx.text()
        );
        let through_f32 = ptx.text().contains("cvt.rn.f32");
        assert_eq!(through_f32, from.bits() == 16, "{}", ptx.text());
        assemble(&ptx);
    }
}

#[test]
fn approximate_ops_keep_subnormals() {
    let cases = [
        ("approx_exp2", "ex2.approx.f32"),
        ("approx_log2", "lg2.approx.f32"),
        ("approx_reciprocal", "rcp.approx.f32"),
        ("approx_rsqrt", "rsqrt.approx.f32"),
        ("approx_sin", "sin.approx.f32"),
        ("approx_cos", "cos.approx.f32"),
        ("approx_tanh", "tanh.approx.f32"),
        ("sqrt", "sqrt.rn.f32"),
    ];
    for (name, instruction) in cases {
        let ptx = compile(name, |builder| {
            let input = aligned(builder, "x", DType::F32, Access::Read);
            let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
            let offset = lane_offset(builder, 1);
            let x = load(builder, input, offset, 1);
            let value = match Approximate::from_mnemonic(name) {
                Some(op) => builder.approximate(op, x),
                None => builder.sqrt(x),
            };
            store(builder, output, offset, value);
        });
        assert!(ptx.text().contains(instruction), "{}", ptx.text());
    }
}

#[test]
fn minimum_and_maximum_order_zeros_and_know_nan() {
    let ptx = compile("extremes", |builder| {
        let input = aligned(builder, "x", DType::F32, Access::Read);
        let output = aligned(builder, "y", DType::F32, Access::ReadWrite);
        let offset = lane_offset(builder, 4);
        let x = load(builder, input, offset, 1);
        let one = builder.index(1);
        let next = builder.add(offset, one);
        let y = load(builder, input, next, 1);
        let values = [
            builder.minimum(x, y),
            builder.maximum(x, y),
            builder.minnum(x, y),
            builder.maxnum(x, y),
        ];
        for (place, value) in values.into_iter().enumerate() {
            let place = builder.index(place as i64);
            let at = builder.add(offset, place);
            store(builder, output, at, value);
        }
    });
    for instruction in ["min.NaN.f32", "max.NaN.f32", "min.f32", "max.f32"] {
        assert!(
            ptx.text().contains(instruction),
            "{instruction}:\n{}",
            ptx.text()
        );
    }
}
