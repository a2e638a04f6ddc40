//! Elementwise ops on whole registers, and lane by lane where the machine has no such instruction.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::FloatCC;
use exactile_core::ir::{BinaryOp, CompareOp, DType, RawOp, TernaryOp, Type, UnaryOp, Value};

use super::Codegen;
use super::half_float::is_half;
use super::lanes::{Repr, lane_type};
use super::scalar::{float_condition, integer_condition};

impl Codegen<'_> {
    /// Applies `scalar` to each lane.
    pub(super) fn per_lane(
        &mut self,
        operands: &[(DType, Repr)],
        result: DType,
        lanes: usize,
        scalar: &mut dyn FnMut(&mut Self, &[clif::Value]) -> clif::Value,
    ) -> Repr {
        let mut singles = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let mut arguments = Vec::with_capacity(operands.len());
            for (dtype, operand) in operands {
                arguments.push(self.extract(operand, *dtype, lane));
            }
            singles.push(scalar(self, &arguments));
        }
        self.gather(result, &singles)
    }

    /// One instruction on a scalar or a piece, where there is one with the op's meaning.
    pub(super) fn unary_piece(
        &mut self,
        op: UnaryOp,
        dtype: DType,
        x: clif::Value,
    ) -> Option<clif::Value> {
        let ty = self.builder.func.dfg.value_type(x);
        if is_half(dtype) {
            let sign = self.bits(ty, 0x8000);
            return match op {
                UnaryOp::Neg => Some(self.builder.ins().bxor(x, sign)),
                UnaryOp::Abs => Some(self.builder.ins().band_not(x, sign)),
                UnaryOp::Not
                | UnaryOp::Sqrt
                | UnaryOp::Floor
                | UnaryOp::Ceil
                | UnaryOp::Trunc
                | UnaryOp::Round => None,
            };
        }
        let wide_vector = ty.is_vector() && ty.lane_bits() == 64;
        let ins = self.builder.ins();
        Some(match (op, dtype.is_float()) {
            (UnaryOp::Neg, true) => ins.fneg(x),
            (UnaryOp::Neg, false) => ins.ineg(x),
            (UnaryOp::Abs, true) => ins.fabs(x),
            (UnaryOp::Abs, false) if !dtype.is_signed() => x,
            (UnaryOp::Abs, false) if wide_vector => return None,
            (UnaryOp::Abs, false) => ins.iabs(x),
            (UnaryOp::Not, false) => ins.bnot(x),
            (UnaryOp::Sqrt, true) => ins.sqrt(x),
            (UnaryOp::Floor, true) => ins.floor(x),
            (UnaryOp::Ceil, true) => ins.ceil(x),
            (UnaryOp::Trunc, true) => ins.trunc(x),
            (UnaryOp::Round, true) => ins.nearest(x),
            _ => return None,
        })
    }

    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, lanes: usize, x: &Repr) -> Repr {
        let pieces = match x {
            Repr::Scalar(x) => return Repr::Scalar(self.unary_scalar(op, dtype, *x)),
            Repr::Mask(bytes, pieces) => {
                let inverted = pieces.iter().map(|&piece| self.builder.ins().bnot(piece));
                return Repr::Mask(*bytes, inverted.collect());
            }
            Repr::Vector(pieces) => pieces,
        };
        let native: Option<Vec<clif::Value>> = pieces
            .iter()
            .map(|&piece| self.unary_piece(op, dtype, piece))
            .collect();
        if let Some(pieces) = native {
            return Repr::Vector(pieces);
        }
        self.per_lane(&[(dtype, x.clone())], dtype, lanes, &mut |codegen, lane| {
            codegen.unary_scalar(op, dtype, lane[0])
        })
    }

    /// One instruction, or a few, on scalars or pieces, with the op's meaning.
    pub(super) fn binary_piece(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: clif::Value,
        y: clif::Value,
    ) -> Option<clif::Value> {
        if dtype.is_float() {
            return self.float_piece(op, x, y);
        }
        let ty = self.builder.func.dfg.value_type(x);
        let (vector, lane_bits) = (ty.is_vector(), ty.lane_bits());
        let signed = dtype.is_signed();
        let ins = self.builder.ins();
        Some(match op {
            BinaryOp::Add => ins.iadd(x, y),
            BinaryOp::Sub => ins.isub(x, y),
            BinaryOp::Mul if vector && lane_bits == 8 => return None,
            BinaryOp::Mul => ins.imul(x, y),
            BinaryOp::And => ins.band(x, y),
            BinaryOp::Or => ins.bor(x, y),
            BinaryOp::Xor => ins.bxor(x, y),
            BinaryOp::Minimum | BinaryOp::Maximum if vector && lane_bits == 64 => {
                let order = if op == BinaryOp::Minimum {
                    CompareOp::Lt
                } else {
                    CompareOp::Gt
                };
                let first = ins.icmp(integer_condition(order, signed), x, y);
                self.builder.ins().bitselect(first, x, y)
            }
            BinaryOp::Minimum if signed => ins.smin(x, y),
            BinaryOp::Minimum => ins.umin(x, y),
            BinaryOp::Maximum if signed => ins.smax(x, y),
            BinaryOp::Maximum => ins.umax(x, y),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => return None,
            BinaryOp::Minnum | BinaryOp::Maxnum => return None,
        })
    }

    fn float_piece(&mut self, op: BinaryOp, x: clif::Value, y: clif::Value) -> Option<clif::Value> {
        let ins = self.builder.ins();
        Some(match op {
            BinaryOp::Add => ins.fadd(x, y),
            BinaryOp::Sub => ins.fsub(x, y),
            BinaryOp::Mul => ins.fmul(x, y),
            BinaryOp::Div => ins.fdiv(x, y),
            BinaryOp::Minimum => ins.fmin(x, y),
            BinaryOp::Maximum => ins.fmax(x, y),
            BinaryOp::Minnum | BinaryOp::Maxnum => return None,
            BinaryOp::Rem | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => return None,
            BinaryOp::Shl | BinaryOp::Shr => return None,
        })
    }

    /// `on_true` where a condition of the same lane width holds.
    pub(super) fn choose(
        &mut self,
        condition: clif::Value,
        on_true: clif::Value,
        on_false: clif::Value,
    ) -> clif::Value {
        let ty = self.builder.func.dfg.value_type(on_true);
        if !ty.is_vector() {
            return self.builder.ins().select(condition, on_true, on_false);
        }
        let mask = self.reinterpret(ty, condition);
        self.builder.ins().bitselect(mask, on_true, on_false)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, ty: Type, lhs: Value, rhs: Value) -> Repr {
        let (dtype, lanes) = (self.dtype(lhs), ty.shape.elements());
        let (x, y) = (self.repr(lhs), self.repr(rhs));
        self.binary_repr(op, dtype, lanes, &x, &y)
    }

    pub(super) fn binary_repr(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        lanes: usize,
        x: &Repr,
        y: &Repr,
    ) -> Repr {
        match (x, y) {
            (Repr::Scalar(x), Repr::Scalar(y)) => {
                return Repr::Scalar(self.binary_scalar(op, dtype, *x, *y));
            }
            (Repr::Mask(bytes, pieces), _) => {
                let others = self.resize_mask(y, *bytes, lanes);
                let pairs = pieces.iter().zip(others);
                let both = pairs.map(|(&x, y)| self.binary_piece(op, DType::I32, x, y));
                let both: Option<Vec<clif::Value>> = both.collect();
                let pieces = both.expect("broken invariant: bool has and, or, xor");
                return Repr::Mask(*bytes, pieces);
            }
            _ => {}
        }
        let pairs = x.pieces().iter().zip(y.pieces());
        let native: Option<Vec<clif::Value>> = pairs
            .map(|(&x, &y)| self.binary_piece(op, dtype, x, y))
            .collect();
        if let Some(pieces) = native {
            return Repr::Vector(pieces);
        }
        let operands = [(dtype, x.clone()), (dtype, y.clone())];
        self.per_lane(&operands, dtype, lanes, &mut |codegen, lane| {
            codegen.binary_scalar(op, dtype, lane[0], lane[1])
        })
    }

    /// The machine's own instruction for each lane.
    pub(super) fn raw(&mut self, op: RawOp, ty: Type, lhs: Value, rhs: Value) -> Repr {
        let (dtype, lanes) = (self.dtype(lhs), ty.shape.elements());
        let (x, y) = (self.repr(lhs), self.repr(rhs));
        if let Some(shifted) = self.shift_by_constant(op, dtype, &x, rhs) {
            return shifted;
        }
        let operands = [(dtype, x), (dtype, y)];
        self.per_lane(&operands, dtype, lanes, &mut |codegen, lane| {
            codegen.raw_scalar(op, dtype, lane[0], lane[1])
        })
    }

    /// A shift of every lane by one constant below the width.
    fn shift_by_constant(
        &mut self,
        op: RawOp,
        dtype: DType,
        x: &Repr,
        amount: Value,
    ) -> Option<Repr> {
        let amount = self.constant(amount)?.bits;
        if amount >= u64::from(dtype.bits()) {
            return None;
        }
        let amount = amount as i64;
        let shift = |piece| {
            let ins = self.builder.ins();
            Some(match (op, dtype.is_signed()) {
                (RawOp::Div | RawOp::Rem, _) => return None,
                (RawOp::Shl, _) => ins.ishl_imm_u(piece, amount),
                (RawOp::Shr, true) => ins.sshr_imm_u(piece, amount),
                (RawOp::Shr, false) => ins.ushr_imm_u(piece, amount),
            })
        };
        let shifted: Option<Vec<clif::Value>> = x.pieces().iter().copied().map(shift).collect();
        let shifted = shifted?;
        Some(match x {
            Repr::Scalar(_) => Repr::Scalar(shifted[0]),
            Repr::Vector(_) | Repr::Mask(..) => Repr::Vector(shifted),
        })
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, ty: Type, operands: &[Repr; 3]) -> Repr {
        let lanes = ty.shape.elements();
        let dtype = ty.dtype().unwrap_or(DType::F32);
        self.ternary_repr(op, dtype, lanes, operands)
    }

    fn ternary_repr(
        &mut self,
        op: TernaryOp,
        dtype: DType,
        lanes: usize,
        operands: &[Repr; 3],
    ) -> Repr {
        if let [Repr::Scalar(a), Repr::Scalar(b), Repr::Scalar(c)] = *operands {
            return Repr::Scalar(self.ternary_scalar(op, dtype, [a, b, c]));
        }
        let TernaryOp::Fma = op;
        if self.has_fma {
            let [a, b, c] = operands.each_ref().map(Repr::pieces);
            let pieces = a.iter().zip(b).zip(c);
            let fused = pieces.map(|((&a, &b), &c)| self.builder.ins().fma(a, b, c));
            return Repr::Vector(fused.collect());
        }
        let operands = operands.each_ref().map(|operand| (dtype, operand.clone()));
        self.per_lane(&operands, dtype, lanes, &mut |codegen, lane| {
            codegen.ternary_scalar(op, dtype, [lane[0], lane[1], lane[2]])
        })
    }

    pub(super) fn compare(&mut self, op: CompareOp, lhs: Value, rhs: Value, lanes: usize) -> Repr {
        let dtype = self.dtype(lhs);
        let (x, y) = (self.repr(lhs), self.repr(rhs));
        self.compare_repr(op, dtype, &x, &y, lanes)
    }

    pub(super) fn compare_repr(
        &mut self,
        op: CompareOp,
        dtype: DType,
        x: &Repr,
        y: &Repr,
        lanes: usize,
    ) -> Repr {
        if let (Repr::Scalar(x), Repr::Scalar(y)) = (x, y) {
            return Repr::Scalar(self.compare_scalar(op, dtype, *x, *y));
        }
        if let Repr::Mask(bytes, _) = x {
            let differ = self.binary_repr(BinaryOp::Xor, DType::Bool, lanes, x, y);
            if op == CompareOp::Ne {
                return differ;
            }
            let same = differ
                .pieces()
                .iter()
                .map(|&piece| self.builder.ins().bnot(piece));
            return Repr::Mask(*bytes, same.collect());
        }
        let pairs = x.pieces().iter().zip(y.pieces());
        let masks = pairs.map(|(&x, &y)| {
            if dtype.is_float() {
                return self.compare_floats(op, x, y);
            }
            let condition = integer_condition(op, dtype.is_signed());
            self.builder.ins().icmp(condition, x, y)
        });
        Repr::Mask(lane_type(dtype).bytes(), masks.collect())
    }

    /// A comparison of scalars or pieces. Minimum and maximum instructions are recognised from "less
    /// than" alone, and a scalar that differs from itself takes one test instead of two.
    pub(super) fn compare_floats(
        &mut self,
        op: CompareOp,
        x: clif::Value,
        y: clif::Value,
    ) -> clif::Value {
        let ins = self.builder.ins();
        if op == CompareOp::Gt {
            ins.fcmp(FloatCC::LessThan, y, x)
        } else if op == CompareOp::Ne && x == y {
            ins.fcmp(FloatCC::Unordered, x, y)
        } else {
            ins.fcmp(float_condition(op), x, y)
        }
    }

    pub(super) fn select(
        &mut self,
        ty: Type,
        condition: &Repr,
        on_true: &Repr,
        on_false: &Repr,
    ) -> Repr {
        let lanes = ty.shape.elements();
        if let (Repr::Scalar(condition), Repr::Scalar(x), Repr::Scalar(y)) =
            (condition, on_true, on_false)
        {
            return Repr::Scalar(self.builder.ins().select(*condition, *x, *y));
        }
        let dtype = ty.dtype().unwrap_or(DType::I64);
        if dtype == DType::Bool {
            let [mask, x, y] =
                [condition, on_true, on_false].map(|repr| self.resize_mask(repr, 1, lanes));
            let pieces = mask.into_iter().zip(x).zip(y);
            let chosen = pieces.map(|((mask, x), y)| self.builder.ins().bitselect(mask, x, y));
            return Repr::Mask(1, chosen.collect());
        }
        let mask = self.resize_mask(condition, lane_type(dtype).bytes(), lanes);
        let pieces = mask
            .into_iter()
            .zip(on_true.pieces())
            .zip(on_false.pieces());
        let chosen = pieces.map(|((mask, &x), &y)| self.choose(mask, x, y));
        Repr::Vector(chosen.collect())
    }
}
