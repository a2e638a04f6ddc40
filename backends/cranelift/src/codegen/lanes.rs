//! How lane values lie in registers: scalars, vectors of 128-bit pieces, masks.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{
    F32, F32X4, F64, F64X2, I8, I8X16, I16, I16X8, I32, I32X4, I64, I64X2,
};
use cranelift_codegen::ir::{ConstantData, InstBuilder, MemFlagsData};
use exactile_core::ir::{DType, Literal, Type, Value};

use super::Codegen;

/// A lane value in CLIF.
#[derive(Clone, Debug)]
pub(super) enum Repr {
    /// A scalar or pointer. A `bool` is 0 or 1 in `i8`; narrow floats are their bits.
    Scalar(clif::Value),
    /// A vector of numbers, 128 bits a piece; lanes past the end of the last piece are arbitrary.
    Vector(Vec<clif::Value>),
    /// A vector of `bool`: all bits of a lane are set or clear; lanes have this many bytes.
    Mask(u32, Vec<clif::Value>),
}

impl Repr {
    /// The CLIF values.
    pub(super) fn pieces(&self) -> &[clif::Value] {
        match self {
            Self::Scalar(value) => std::slice::from_ref(value),
            Self::Vector(pieces) | Self::Mask(_, pieces) => pieces,
        }
    }
}

/// The CLIF type of one lane.
pub(super) const fn lane_type(dtype: DType) -> clif::Type {
    match (dtype, dtype.bytes()) {
        (DType::F32, _) => F32,
        (DType::F64, _) => F64,
        (_, 1) => I8,
        (_, 2) => I16,
        (_, 4) => I32,
        _ => I64,
    }
}

/// The CLIF type of a 128-bit piece.
pub(super) fn piece_type(dtype: DType) -> clif::Type {
    let lane = lane_type(dtype);
    lane.by(16 / lane.bytes())
        .expect("broken invariant: 128-bit vectors of every lane exist")
}

/// The CLIF type of a piece of a mask whose lanes have `bytes` bytes.
pub(super) fn mask_type(bytes: u32) -> clif::Type {
    match bytes {
        1 => I8X16,
        2 => I16X8,
        4 => I32X4,
        _ => I64X2,
    }
}

impl Codegen<'_> {
    /// Reinterprets 128-bit pieces, or scalars of one width.
    pub(super) fn reinterpret(&mut self, ty: clif::Type, value: clif::Value) -> clif::Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(clif::Endianness::Little);
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// A scalar from the low bits of a 64-bit slot.
    pub(super) fn scalar_from_bits(&mut self, dtype: DType, slot: clif::Value) -> clif::Value {
        let lane = lane_type(dtype);
        let integer = lane.as_int();
        let bits = if integer == I64 {
            slot
        } else {
            self.builder.ins().ireduce(integer, slot)
        };
        self.reinterpret(lane, bits)
    }

    /// The bits of a scalar in a 64-bit slot, zero above its width.
    pub(super) fn bits_of_scalar(&mut self, dtype: DType, value: clif::Value) -> clif::Value {
        let bits = self.reinterpret(lane_type(dtype).as_int(), value);
        if lane_type(dtype).as_int() == I64 {
            bits
        } else {
            self.builder.ins().uextend(I64, bits)
        }
    }

    /// A constant of a scalar or vector type.
    pub(super) fn bits(&mut self, ty: clif::Type, bits: u64) -> clif::Value {
        let lane = ty.lane_type();
        let integer = lane.as_int();
        let shift = 64 - integer.bits();
        let signed = ((bits << shift) as i64) >> shift;
        let scalar = match lane {
            F32 => self.builder.ins().f32const(f32::from_bits(bits as u32)),
            F64 => self.builder.ins().f64const(f64::from_bits(bits)),
            _ => self.builder.ins().iconst(integer, signed),
        };
        if ty.is_vector() {
            self.builder.ins().splat(ty, scalar)
        } else {
            scalar
        }
    }

    /// A scalar or vector filled with a literal.
    pub(super) fn filled(&mut self, literal: Literal, ty: Type) -> Repr {
        if ty.is_scalar() {
            return Repr::Scalar(self.bits(lane_type(literal.dtype), literal.bits));
        }
        let lanes = ty.shape.elements();
        if literal.dtype == DType::Bool {
            let all = if literal.bits == 0 { 0 } else { u64::MAX };
            let piece = self.bits(I32X4, all);
            return Repr::Mask(4, vec![piece; lanes.div_ceil(4)]);
        }
        let piece = self.bits(piece_type(literal.dtype), literal.bits);
        Repr::Vector(vec![piece; self.piece_count(literal.dtype, lanes)])
    }

    /// How many pieces hold `lanes` lanes.
    pub(super) fn piece_count(&self, dtype: DType, lanes: usize) -> usize {
        (lanes * lane_type(dtype).bytes() as usize).div_ceil(16)
    }

    /// A vector that repeats a scalar.
    pub(super) fn splat(&mut self, x: Value, lanes: usize) -> Repr {
        let (dtype, scalar) = (self.dtype(x), self.single(x));
        if lanes == 1 {
            return Repr::Scalar(scalar);
        }
        if dtype == DType::Bool {
            let wide = self.builder.ins().uextend(I32, scalar);
            let filled = self.builder.ins().ineg(wide);
            let piece = self.builder.ins().splat(I32X4, filled);
            return Repr::Mask(4, vec![piece; lanes.div_ceil(4)]);
        }
        let piece = self.builder.ins().splat(piece_type(dtype), scalar);
        Repr::Vector(vec![piece; self.piece_count(dtype, lanes)])
    }

    /// One lane as a scalar.
    pub(super) fn extract(&mut self, repr: &Repr, dtype: DType, lane: usize) -> clif::Value {
        match repr {
            Repr::Scalar(value) => *value,
            Repr::Vector(pieces) => {
                let per = 16 / lane_type(dtype).bytes() as usize;
                let (piece, lane) = (pieces[lane / per], lane % per);
                let floats = match (lane, lane_type(dtype)) {
                    (0, I32) => Some(F32X4),
                    (0, I64) => Some(F64X2),
                    _ => None,
                };
                // The first lane of floats is the register itself, from which one instruction moves.
                if let Some(vector) = floats {
                    let floats = self.reinterpret(vector, piece);
                    let first = self.builder.ins().extractlane(floats, 0);
                    return self.reinterpret(lane_type(dtype), first);
                }
                self.builder.ins().extractlane(piece, lane as u8)
            }
            Repr::Mask(bytes, pieces) => {
                let per = 16 / *bytes as usize;
                let found = self
                    .builder
                    .ins()
                    .extractlane(pieces[lane / per], (lane % per) as u8);
                self.builder.ins().icmp_imm_s(IntCC::NotEqual, found, 0)
            }
        }
    }

    /// A vector from scalars.
    pub(super) fn gather(&mut self, dtype: DType, singles: &[clif::Value]) -> Repr {
        if let [single] = singles {
            return Repr::Scalar(*single);
        }
        let ty = piece_type(dtype);
        let per = ty.lane_count() as usize;
        let mut pieces = Vec::new();
        for chunk in singles.chunks(per) {
            let lanes = chunk.iter().map(|&single| self.mask_lane(dtype, single));
            let lanes: Vec<clif::Value> = lanes.collect();
            let mut piece = self.builder.ins().splat(ty, lanes[0]);
            for (index, &lane) in lanes.iter().enumerate().skip(1) {
                piece = self.builder.ins().insertlane(piece, lane, index as u8);
            }
            pieces.push(piece);
        }
        if dtype == DType::Bool {
            Repr::Mask(1, pieces)
        } else {
            Repr::Vector(pieces)
        }
    }

    fn mask_lane(&mut self, dtype: DType, single: clif::Value) -> clif::Value {
        if dtype == DType::Bool {
            self.builder.ins().ineg(single)
        } else {
            single
        }
    }

    /// A mask with lanes of `bytes` bytes.
    pub(super) fn resize_mask(
        &mut self,
        repr: &Repr,
        bytes: u32,
        lanes: usize,
    ) -> Vec<clif::Value> {
        let (mut width, mut pieces) = match repr {
            Repr::Mask(width, pieces) => (*width, pieces.clone()),
            Repr::Scalar(_) | Repr::Vector(_) => {
                unreachable!("broken invariant: a vector of bool is a mask")
            }
        };
        while width < bytes {
            let wider = mask_type(width * 2);
            let count = (lanes * width as usize * 2).div_ceil(16);
            let mut widened = Vec::new();
            for piece in pieces {
                widened.push(self.builder.ins().swiden_low(piece));
                widened.push(self.builder.ins().swiden_high(piece));
            }
            debug_assert_eq!(self.builder.func.dfg.value_type(widened[0]), wider);
            widened.truncate(count);
            (width, pieces) = (width * 2, widened);
        }
        while width > bytes {
            let narrowed = pieces.chunks(2).map(|pair| {
                let (low, high) = (pair[0], *pair.last().unwrap_or(&pair[0]));
                self.narrow_pair(low, high)
            });
            (width, pieces) = (width / 2, narrowed.collect());
        }
        pieces
    }

    /// Two pieces of integers to one of half the width, keeping the low half of each lane. Lanes of
    /// 16 and 32 bits must be in range of the signed result.
    pub(super) fn narrow_pair(&mut self, low: clif::Value, high: clif::Value) -> clif::Value {
        if self.builder.func.dfg.value_type(low) == I64X2 {
            let picks: Vec<u8> = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27].into();
            let bytes = self.shuffle_bytes(low, high, &picks);
            return self.reinterpret(I32X4, bytes);
        }
        self.builder.ins().snarrow(low, high)
    }

    /// Picks bytes of `a` followed by `b`.
    pub(super) fn shuffle_bytes(
        &mut self,
        a: clif::Value,
        b: clif::Value,
        picks: &[u8],
    ) -> clif::Value {
        let (a, b) = (self.reinterpret(I8X16, a), self.reinterpret(I8X16, b));
        let mask = self
            .builder
            .func
            .dfg
            .immediates
            .push(ConstantData::from(picks));
        self.builder.ins().shuffle(a, b, mask)
    }

    /// Picks lanes of `a` followed by `b`, both vectors or both scalars.
    pub(super) fn shuffle(&mut self, a: Value, b: Value, indices: &[u32]) -> Repr {
        let dtype = self.dtype(a);
        let lanes = self.ty(a).shape.elements();
        let sources: Vec<Vec<clif::Value>> = [a, b]
            .map(|value| match self.repr(value) {
                Repr::Mask(..) => self.resize_mask(&self.repr(value), 1, lanes),
                Repr::Scalar(value) => vec![self.builder.ins().splat(piece_type(dtype), value)],
                Repr::Vector(pieces) => pieces,
            })
            .into();
        let ty = piece_type(dtype);
        let per = ty.lane_count() as usize;
        let bytes = lane_type(dtype).bytes() as usize;
        let place = |index: u32| {
            let (source, lane) = (index as usize / lanes, index as usize % lanes);
            (sources[source][lane / per], lane % per)
        };
        let mut pieces = Vec::new();
        for chunk in indices.chunks(per) {
            let places: Vec<(clif::Value, usize)> =
                chunk.iter().map(|&index| place(index)).collect();
            let piece = self.pick(&places, bytes);
            pieces.push(self.reinterpret(ty, piece));
        }
        if indices.len() == 1 {
            let vector = Repr::Vector(pieces);
            return Repr::Scalar(self.extract(&vector, dtype, 0));
        }
        if dtype == DType::Bool {
            Repr::Mask(1, pieces)
        } else {
            Repr::Vector(pieces)
        }
    }

    /// A piece whose lane `i` is the lane `places[i].1` of `places[i].0`.
    fn pick(&mut self, places: &[(clif::Value, usize)], bytes: usize) -> clif::Value {
        let mut sources: Vec<clif::Value> = Vec::new();
        for (source, _) in places {
            if !sources.contains(source) {
                sources.push(*source);
            }
        }
        let first = sources[0];
        let second = *sources.get(1).unwrap_or(&first);
        let whole: Vec<u8> = (0..16).collect();
        // Lanes past the end stay where they are, so that the start of a piece is that piece.
        let mut picks = whole.clone();
        for (index, &(source, lane)) in places.iter().enumerate() {
            let start = if source == first { 0 } else { 16 };
            for byte in 0..bytes {
                picks[index * bytes + byte] = (start + lane * bytes + byte) as u8;
            }
        }
        let mut piece = match picks == whole {
            true => first,
            false => self.shuffle_bytes(first, second, &picks),
        };
        for &source in sources.iter().skip(2) {
            let mut picks: Vec<u8> = (0..16).collect();
            for (index, &(from, lane)) in places.iter().enumerate() {
                if from == source {
                    for byte in 0..bytes {
                        picks[index * bytes + byte] = (16 + lane * bytes + byte) as u8;
                    }
                }
            }
            piece = self.shuffle_bytes(piece, source, &picks);
        }
        piece
    }
}
