//! Loads and stores.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8X16, I16, I32, I32X4, I64, I64X2};
use cranelift_codegen::ir::{InstBuilder, InstructionData, MemFlagsData, Opcode, ValueDef};
use exactile_core::ir::{Cache, DType, Literal, Op, Type, Value, op};

use super::Codegen;
use super::lanes::{Repr, lane_type, mask_type, piece_type};

/// Flags of every access: it does not trap and need not be aligned.
pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

impl Codegen<'_> {
    pub(super) fn address(&mut self, base: Value, offset: Value, dtype: DType) -> clif::Value {
        let (start, offset) = (self.single(base), self.index(offset));
        let size = i64::from(dtype.bytes());
        // A constant part becomes part of the access; neighbours then share the rest.
        let (varying, constant) = self.constant_apart(offset).unwrap_or((offset, 0));
        let bytes = self.builder.ins().imul_imm_s(varying, size);
        let address = self.builder.ins().iadd(start, bytes);
        match constant
            .wrapping_mul(size)
            .wrapping_add(self.placed_at(base))
        {
            0 => address,
            constant => self.builder.ins().iadd_imm_s(address, constant),
        }
    }

    /// The byte of the scratch memory where a buffer starts; 0 for what has its own address.
    fn placed_at(&self, base: Value) -> i64 {
        let defined = self.definitions[base].map(|inst| self.func.op(inst));
        if let Some(Op::Alloc(it)) = defined {
            it.offset
        } else {
            0
        }
    }

    /// What a constant is added to, and the constant.
    fn constant_apart(&self, sum: clif::Value) -> Option<(clif::Value, i64)> {
        let dfg = &self.builder.func.dfg;
        let defined = |value: clif::Value| match dfg.value_def(dfg.resolve_aliases(value)) {
            ValueDef::Result(inst, _) => Some(dfg.insts[inst]),
            ValueDef::Param(..) | ValueDef::Union(..) => None,
        };
        let InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [varying, added],
        } = defined(sum)?
        else {
            return None;
        };
        let InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } = defined(added)?
        else {
            return None;
        };
        Some((varying, imm.bits()))
    }

    /// A scalar index as `i64`.
    pub(super) fn index(&mut self, value: Value) -> clif::Value {
        let single = self.single(value);
        if self.dtype(value) == DType::I64 {
            single
        } else {
            self.builder.ins().sextend(I64, single)
        }
    }

    /// A load; where the scalar mask is false, `other` or zero.
    pub(super) fn load(&mut self, op: &op::LaneLoad, result: Value) -> Repr {
        let (base, offset, ty) = (op.base, op.offset, self.ty(result));
        let dtype = ty.dtype().unwrap_or(DType::I64);
        self.prefetch((base, offset), dtype, ty.shape.elements(), false);
        let Some(mask) = op.mask else {
            let address = self.address(base, offset, dtype);
            if op.cache != Some(Cache::Volatile) {
                self.note_load(result, base, address);
            }
            return self.load_from(address, dtype, ty.shape.elements());
        };
        let otherwise = match op.other {
            Some(other) => self.repr(other),
            None => self.filled(Literal::from_bits(dtype, 0), ty),
        };
        let otherwise = self.canonical(otherwise, ty);
        let after = self.enter_masked(Some(mask), otherwise.pieces());
        let address = self.address(base, offset, dtype);
        let loaded = self.load_from(address, dtype, ty.shape.elements());
        let loaded = self.canonical(loaded, ty);
        let pieces = self.leave_masked(after, loaded.pieces());
        self.of_parameters(&pieces, ty)
    }

    pub(super) fn load_from(&mut self, address: clif::Value, dtype: DType, lanes: usize) -> Repr {
        if lanes == 1 {
            let lane = self
                .builder
                .ins()
                .load(lane_type(dtype), flags(), address, 0);
            if dtype == DType::Bool {
                return Repr::Scalar(self.builder.ins().icmp_imm_s(IntCC::NotEqual, lane, 0));
            }
            return Repr::Scalar(lane);
        }
        let ty = piece_type(dtype);
        let bytes = lanes * lane_type(dtype).bytes() as usize;
        let mut pieces = Vec::new();
        for start in (0..bytes).step_by(16) {
            pieces.push(self.load_piece(address, start as i32, (bytes - start).min(16), ty));
        }
        if dtype != DType::Bool {
            return Repr::Vector(pieces);
        }
        let zero = self.bits(I8X16, 0);
        let masks = pieces
            .iter()
            .map(|&piece| self.builder.ins().icmp(IntCC::NotEqual, piece, zero));
        Repr::Mask(1, masks.collect())
    }

    fn load_piece(
        &mut self,
        address: clif::Value,
        start: i32,
        bytes: usize,
        ty: clif::Type,
    ) -> clif::Value {
        let (scalar, vector) = match bytes {
            16 => return self.builder.ins().load(ty, flags(), address, start),
            8 => (self.builder.ins().load(I64, flags(), address, start), I64X2),
            4 => (self.builder.ins().load(I32, flags(), address, start), I32X4),
            _ => {
                let narrow = self.builder.ins().load(I16, flags(), address, start);
                (self.builder.ins().uextend(I32, narrow), I32X4)
            }
        };
        let piece = self.builder.ins().scalar_to_vector(vector, scalar);
        self.reinterpret(ty, piece)
    }

    /// A store where the scalar mask is true.
    pub(super) fn store(&mut self, op: &op::LaneStore) {
        let op::LaneStore {
            base,
            offset,
            value,
            mask,
            ..
        } = *op;
        let after = self.enter_masked(mask, &[]);
        let ty = self.ty(value);
        let dtype = self.dtype(value);
        self.prefetch((base, offset), dtype, ty.shape.elements(), true);
        let address = self.address(base, offset, dtype);
        let repr = self.repr(value);
        self.store_to(address, dtype, ty.shape.elements(), &repr);
        self.leave_masked(after, &[]);
    }

    fn store_to(&mut self, address: clif::Value, dtype: DType, lanes: usize, repr: &Repr) {
        let pieces = match repr {
            Repr::Scalar(value) => {
                self.builder.ins().store(flags(), *value, address, 0);
                return;
            }
            Repr::Vector(pieces) => pieces.clone(),
            Repr::Mask(..) => {
                let one = self.bits(I8X16, 1);
                let masks = self.resize_mask(repr, 1, lanes);
                masks
                    .iter()
                    .map(|&mask| self.builder.ins().band(mask, one))
                    .collect()
            }
        };
        let bytes = lanes * lane_type(dtype).bytes() as usize;
        for (index, piece) in pieces.into_iter().enumerate() {
            let start = index * 16;
            self.store_piece(address, start as i32, (bytes - start).min(16), piece);
        }
    }

    fn store_piece(&mut self, address: clif::Value, start: i32, bytes: usize, piece: clif::Value) {
        let lane = match bytes {
            16 => piece,
            8 => self.low_lane(I64X2, piece),
            4 => self.low_lane(I32X4, piece),
            _ => {
                let wide = self.low_lane(I32X4, piece);
                self.builder.ins().ireduce(I16, wide)
            }
        };
        self.builder.ins().store(flags(), lane, address, start);
    }

    fn low_lane(&mut self, ty: clif::Type, piece: clif::Value) -> clif::Value {
        let piece = self.reinterpret(ty, piece);
        self.builder.ins().extractlane(piece, 0)
    }

    /// The form in which values of type `ty` cross blocks: masks have one byte a lane.
    pub(super) fn canonical(&mut self, repr: Repr, ty: Type) -> Repr {
        match repr {
            Repr::Mask(..) => Repr::Mask(1, self.resize_mask(&repr, 1, ty.shape.elements())),
            Repr::Scalar(_) | Repr::Vector(_) => repr,
        }
    }

    /// The CLIF types of the canonical form of `ty`.
    pub(super) fn canonical_types(&self, ty: Type) -> Vec<clif::Type> {
        let Some(dtype) = ty.dtype() else {
            return vec![I64];
        };
        if ty.is_scalar() {
            return vec![lane_type(dtype)];
        }
        let piece = if dtype == DType::Bool {
            mask_type(1)
        } else {
            piece_type(dtype)
        };
        vec![piece; self.piece_count(dtype, ty.shape.elements())]
    }

    /// A value of type `ty` from its canonical form.
    pub(super) fn of_parameters(&self, parameters: &[clif::Value], ty: Type) -> Repr {
        if ty.is_scalar() {
            return Repr::Scalar(parameters[0]);
        }
        if ty.dtype() == Some(DType::Bool) {
            return Repr::Mask(1, parameters.to_vec());
        }
        Repr::Vector(parameters.to_vec())
    }
}
