//! Conversions between data types, of those that a machine has.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::{F32, F32X4, F64, I8X16, I32X4};
use exactile_core::ir::{DType, Literal, Type, Value};

use super::Codegen;
use super::half_float::is_half;
use super::lanes::{Repr, lane_type, piece_type};

impl Codegen<'_> {
    pub(super) fn cast(&mut self, x: Value, ty: Type) -> Repr {
        let from = self.dtype(x);
        let to = ty.dtype().unwrap_or(from);
        let repr = self.repr(x);
        self.cast_repr(from, to, &repr, ty.shape.elements())
    }

    fn cast_repr(&mut self, from: DType, to: DType, x: &Repr, lanes: usize) -> Repr {
        if from == to {
            return x.clone();
        }
        if let Repr::Scalar(x) = x {
            return Repr::Scalar(self.cast_scalar(from, to, *x));
        }
        if let Repr::Mask(..) = x {
            let one = Literal::from_f64(to, 1.0);
            let one = self.bits(piece_type(to).as_int(), one.bits);
            let masks = self.resize_mask(x, lane_type(to).bytes(), lanes);
            let pieces = masks.into_iter().map(|mask| {
                let bits = self.builder.ins().band(mask, one);
                self.reinterpret(piece_type(to), bits)
            });
            return Repr::Vector(pieces.collect());
        }
        if is_half(from) {
            return self.widen(from, x, lanes);
        }
        if is_half(to) {
            return self.narrow(to, x, lanes);
        }
        if from.is_integer() && to.is_integer() {
            return Repr::Vector(self.resize_integers(from, to, x.pieces(), lanes));
        }
        if let Some(pieces) = self.cast_pieces(from, to, x.pieces(), lanes) {
            return Repr::Vector(pieces);
        }
        self.per_lane(&[(from, x.clone())], to, lanes, &mut |codegen, lane| {
            codegen.cast_scalar(from, to, lane[0])
        })
    }

    fn resize_integers(
        &mut self,
        from: DType,
        to: DType,
        pieces: &[clif::Value],
        lanes: usize,
    ) -> Vec<clif::Value> {
        let mut width = from.bytes();
        let mut pieces = pieces.to_vec();
        while width < to.bytes() {
            let count = (lanes * width as usize * 2).div_ceil(16);
            let mut wider = Vec::new();
            for piece in pieces {
                let ins = self.builder.ins();
                if from.is_signed() {
                    wider.push(ins.swiden_low(piece));
                    wider.push(self.builder.ins().swiden_high(piece));
                } else {
                    wider.push(ins.uwiden_low(piece));
                    wider.push(self.builder.ins().uwiden_high(piece));
                }
            }
            wider.truncate(count);
            (width, pieces) = (width * 2, wider);
        }
        while width > to.bytes() {
            let half = width as u8 / 2;
            let picks: Vec<u8> = (0..16u8)
                .map(|byte| byte / half * (2 * half) + byte % half)
                .collect();
            let narrowed = pieces.chunks(2).map(|pair| {
                let bytes = self.shuffle_bytes(pair[0], *pair.last().unwrap_or(&pair[0]), &picks);
                self.reinterpret(super::lanes::mask_type(u32::from(half)), bytes)
            });
            (width, pieces) = (u32::from(half), narrowed.collect());
        }
        pieces
    }

    /// Conversions that have vector instructions.
    fn cast_pieces(
        &mut self,
        from: DType,
        to: DType,
        pieces: &[clif::Value],
        lanes: usize,
    ) -> Option<Vec<clif::Value>> {
        let each = |codegen: &mut Self, f: fn(&mut Self, clif::Value) -> clif::Value| {
            Some(pieces.iter().map(|&piece| f(codegen, piece)).collect())
        };
        match (from, to) {
            (DType::I32, DType::F32) => each(self, |codegen, x| {
                codegen.builder.ins().fcvt_from_sint(F32X4, x)
            }),
            (DType::U32, DType::F32) => each(self, |codegen, x| {
                codegen.builder.ins().fcvt_from_uint(F32X4, x)
            }),
            (DType::F32, DType::I32) => each(self, |codegen, x| {
                codegen.builder.ins().fcvt_to_sint_sat(I32X4, x)
            }),
            (DType::F32, DType::F64) => {
                let mut promoted = Vec::new();
                for &piece in pieces {
                    let high = self.high_half(piece);
                    promoted.push(self.builder.ins().fvpromote_low(piece));
                    promoted.push(self.builder.ins().fvpromote_low(high));
                }
                promoted.truncate(lanes.div_ceil(2));
                Some(promoted)
            }
            (DType::F64, DType::F32) => {
                let demoted = pieces.chunks(2).map(|pair| {
                    let low = self.builder.ins().fvdemote(pair[0]);
                    let high = self
                        .builder
                        .ins()
                        .fvdemote(*pair.last().unwrap_or(&pair[0]));
                    let picks = [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
                    let bytes = self.shuffle_bytes(low, high, &picks);
                    self.reinterpret(F32X4, bytes)
                });
                Some(demoted.collect())
            }
            _ => None,
        }
    }

    fn high_half(&mut self, piece: clif::Value) -> clif::Value {
        let picks = [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15];
        let bytes = self.shuffle_bytes(piece, piece, &picks);
        debug_assert_eq!(self.builder.func.dfg.value_type(bytes), I8X16);
        self.reinterpret(F32X4, bytes)
    }

    pub(super) fn cast_scalar(&mut self, from: DType, to: DType, x: clif::Value) -> clif::Value {
        if from == to {
            return x;
        }
        if is_half(from) {
            return self.widen_scalar(from, x);
        }
        if is_half(to) {
            return self.narrow_scalar(to, x);
        }
        match (from.is_float(), to.is_float()) {
            (false, false) => self.resize_integer(from, to, x),
            (false, true) => self.float_from_integer(from, to, x),
            (true, false) => self.integer_from_float(to, x),
            (true, true) if to == DType::F64 => self.builder.ins().fpromote(F64, x),
            (true, true) => self.builder.ins().fdemote(F32, x),
        }
    }

    fn resize_integer(&mut self, from: DType, to: DType, x: clif::Value) -> clif::Value {
        let (source, target) = (lane_type(from), lane_type(to));
        if source.bits() == target.bits() {
            x
        } else if source.bits() > target.bits() {
            self.builder.ins().ireduce(target, x)
        } else if from.is_signed() {
            self.builder.ins().sextend(target, x)
        } else {
            self.builder.ins().uextend(target, x)
        }
    }

    fn float_from_integer(&mut self, from: DType, to: DType, x: clif::Value) -> clif::Value {
        let target = lane_type(to);
        if from == DType::U64 {
            return self.builder.ins().fcvt_from_uint(target, x);
        }
        let wide = self.resize_integer(from, DType::I64, x);
        self.builder.ins().fcvt_from_sint(target, wide)
    }

    /// Truncates, saturates, and maps NaN to 0.
    fn integer_from_float(&mut self, to: DType, x: clif::Value) -> clif::Value {
        match to.is_signed() {
            true => self.builder.ins().fcvt_to_sint_sat(lane_type(to), x),
            false => self.builder.ins().fcvt_to_uint_sat(lane_type(to), x),
        }
    }

    /// The bits as another type of the same width.
    pub(super) fn bitcast(&mut self, ty: Type, x: Value) -> Repr {
        let from = self.dtype(x);
        let to = ty.dtype().unwrap_or(from);
        let repr = self.repr(x);
        let pieces = match &repr {
            Repr::Mask(..) => return repr,
            Repr::Scalar(_) | Repr::Vector(_) => repr.pieces(),
        };
        let scalar = ty.is_scalar();
        let target = if scalar {
            lane_type(to)
        } else {
            piece_type(to)
        };
        let cast = pieces.iter().map(|&piece| self.reinterpret(target, piece));
        let cast: Vec<clif::Value> = cast.collect();
        if scalar {
            Repr::Scalar(cast[0])
        } else {
            Repr::Vector(cast)
        }
    }
}
