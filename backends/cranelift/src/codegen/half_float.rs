//! `f16` and `bf16` to `f32` and back, by integer arithmetic on bits: the machine may have neither.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I16, I32, I32X4};
use exactile_core::ir::DType;

use super::Codegen;
use super::lanes::Repr;

/// Whether arithmetic of this type is done in `f32`.
pub(super) const fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

const SIGN: u64 = 0x8000_0000;
const INFINITY: u64 = 0x7f80_0000;

impl Codegen<'_> {
    fn float_of(&mut self, bits: clif::Value) -> clif::Value {
        let vector = self.builder.func.dfg.value_type(bits).is_vector();
        self.reinterpret(if vector { F32X4 } else { F32 }, bits)
    }

    fn bits_of(&mut self, float: clif::Value) -> clif::Value {
        let vector = self.builder.func.dfg.value_type(float).is_vector();
        self.reinterpret(if vector { I32X4 } else { I32 }, float)
    }

    fn and(&mut self, x: clif::Value, bits: u64) -> clif::Value {
        let mask = self.bits(self.builder.func.dfg.value_type(x), bits);
        self.builder.ins().band(x, mask)
    }

    fn above(&mut self, x: clif::Value, limit: u64) -> clif::Value {
        let limit = self.bits(self.builder.func.dfg.value_type(x), limit);
        self.builder.ins().icmp(IntCC::SignedGreaterThan, x, limit)
    }

    /// The bits of the `f32` equal to the number whose bits are in the low half of each lane.
    fn widen_bits(&mut self, dtype: DType, bits: clif::Value) -> clif::Value {
        let ty = self.builder.func.dfg.value_type(bits);
        if dtype == DType::BF16 {
            return self.builder.ins().ishl_imm_u(bits, 16);
        }
        let sign = self.and(bits, 0x8000);
        let sign = self.builder.ins().ishl_imm_u(sign, 16);
        let magnitude = self.and(bits, 0x7fff);
        // The fraction lands in place; scaling by 2^112 mends the exponent's bias, exactly, and
        // normalises subnormal numbers on the way.
        let shifted = self.builder.ins().ishl_imm_u(magnitude, 13);
        let unscaled = self.float_of(shifted);
        let scale = self.bits(ty, 0x7780_0000);
        let scale = self.float_of(scale);
        let scaled = self.builder.ins().fmul(unscaled, scale);
        let scaled = self.bits_of(scaled);
        let special = self.above(magnitude, 0x7bff);
        let infinite = self.bits(ty, INFINITY);
        let with_exponent = self.builder.ins().bor(scaled, infinite);
        let unsigned = self.choose(special, with_exponent, scaled);
        self.builder.ins().bor(unsigned, sign)
    }

    /// The low half of each lane: the nearest number of `dtype`, ties to even; NaN stays NaN.
    fn narrow_bits(&mut self, dtype: DType, bits: clif::Value) -> clif::Value {
        let ty = self.builder.func.dfg.value_type(bits);
        let magnitude = self.and(bits, !SIGN & 0xffff_ffff);
        let is_nan = self.above(magnitude, INFINITY);
        if dtype == DType::BF16 {
            let high = self.builder.ins().ushr_imm_u(bits, 16);
            let odd = self.and(high, 1);
            let half = self.bits(ty, 0x7fff);
            let bias = self.builder.ins().iadd(odd, half);
            let rounded = self.builder.ins().iadd(bits, bias);
            let rounded = self.builder.ins().ushr_imm_u(rounded, 16);
            let quiet = self.bits(ty, 0x0040);
            let nan = self.builder.ins().bor(high, quiet);
            return self.choose(is_nan, nan, rounded);
        }
        let sign = self.builder.ins().ushr_imm_u(bits, 16);
        let sign = self.and(sign, 0x8000);
        let normal = {
            let odd = self.builder.ins().ushr_imm_u(magnitude, 13);
            let odd = self.and(odd, 1);
            // Rebias the exponent by 15 - 127 and add just under half of the last kept place.
            let bias = self.bits(ty, 0xc800_0fff);
            let biased = self.builder.ins().iadd(magnitude, bias);
            let biased = self.builder.ins().iadd(biased, odd);
            self.builder.ins().ushr_imm_u(biased, 13)
        };
        let subnormal = {
            // Adding 0.5 leaves units of 2^-24 in the fraction, rounded to nearest even.
            let float = self.float_of(magnitude);
            let half = self.bits(ty, 0x3f00_0000);
            let half_float = self.float_of(half);
            let sum = self.builder.ins().fadd(float, half_float);
            let sum = self.bits_of(sum);
            self.builder.ins().isub(sum, half)
        };
        let is_normal = self.above(magnitude, 0x387f_ffff);
        let finite = self.choose(is_normal, normal, subnormal);
        let overflows = self.above(magnitude, 0x477f_ffff);
        let infinite = self.bits(ty, 0x7c00);
        let number = self.choose(overflows, infinite, finite);
        let nan = self.bits(ty, DType::F16.canonical_nan());
        let unsigned = self.choose(is_nan, nan, number);
        self.builder.ins().bor(unsigned, sign)
    }

    pub(super) fn widen_scalar(&mut self, dtype: DType, x: clif::Value) -> clif::Value {
        let bits = self.builder.ins().uextend(I32, x);
        let wide = self.widen_bits(dtype, bits);
        self.float_of(wide)
    }

    pub(super) fn narrow_scalar(&mut self, dtype: DType, x: clif::Value) -> clif::Value {
        let bits = self.bits_of(x);
        let narrow = self.narrow_bits(dtype, bits);
        self.builder.ins().ireduce(I16, narrow)
    }

    /// A vector of `f32` equal to a vector of `dtype`.
    pub(super) fn widen(&mut self, dtype: DType, x: &Repr, lanes: usize) -> Repr {
        let mut pieces = Vec::new();
        for &piece in x.pieces() {
            let halves = [
                self.builder.ins().uwiden_low(piece),
                self.builder.ins().uwiden_high(piece),
            ];
            for half in halves.into_iter().take(lanes.div_ceil(4) - pieces.len()) {
                let wide = self.widen_bits(dtype, half);
                pieces.push(self.float_of(wide));
            }
        }
        Repr::Vector(pieces)
    }

    /// A vector of `f32`, each lane rounded to `dtype`.
    pub(super) fn narrow(&mut self, dtype: DType, x: &Repr, lanes: usize) -> Repr {
        debug_assert_eq!(x.pieces().len(), lanes.div_ceil(4));
        let mut narrowed = Vec::new();
        for &piece in x.pieces() {
            let bits = self.bits_of(piece);
            narrowed.push(self.narrow_bits(dtype, bits));
        }
        let packed = narrowed.chunks(2).map(|pair| {
            self.builder
                .ins()
                .unarrow(pair[0], *pair.last().unwrap_or(&pair[0]))
        });
        Repr::Vector(packed.collect())
    }
}
