//! Elementwise ops: dispatch over the families, and comparisons.

use exactile_core::ir::{BinaryOp, CompareOp, DType, Inst, Op, TernaryOp, UnaryOp, op};
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, Operand};
use inkwell::{FloatPredicate, IntPredicate};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    /// Emits an elementwise op, a constant, a select or a splat.
    pub(super) fn elementwise(&mut self, inst: Inst, op: &Op) -> Result<()> {
        let elements = match op {
            Op::Constant(op::Constant { value }) => {
                vec![self.literal(*value)?; self.result_elements(inst)]
            }
            Op::Splat(op::Splat { x }) => vec![self.values[*x][0]; self.result_elements(inst)],
            Op::Select(op::Select {
                condition,
                on_true,
                on_false,
            }) => {
                let (condition, on_true, on_false) = (
                    self.get(*condition),
                    self.get(*on_true),
                    self.get(*on_false),
                );
                let choices = condition.iter().zip(on_true.iter().zip(&on_false));
                choices
                    .map(|(condition, (&yes, &no))| {
                        self.select(condition.into_int_value(), yes, no)
                    })
                    .collect::<Result<Elements<'c>>>()?
            }
            _ => self.family(op)?,
        };
        self.define(inst, elements);
        Ok(())
    }

    /// One of two elements. The lesser or greater of two 64-bit integers, by their comparison, is
    /// chosen half by half and out of sight: LLVM and the assembler both make a minimum of it, which
    /// devices do not have at that width, so that a minimum and a maximum would compare twice.
    fn select(
        &self,
        condition: IntValue<'c>,
        yes: BasicValueEnum<'c>,
        no: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let wide = |value: BasicValueEnum<'c>| {
            value.is_int_value() && value.into_int_value().get_type().get_bit_width() == 64
        };
        let compares = condition.as_instruction().is_some_and(|compare| {
            let operand = |index| compare.get_operand(index).and_then(Operand::value);
            let operands = [operand(0), operand(1)];
            compare.get_opcode() == InstructionOpcode::ICmp
                && (operands == [Some(yes), Some(no)] || operands == [Some(no), Some(yes)])
        });
        if !wide(yes) || !compares {
            return self.choose(condition, yes, no);
        }
        let text = "{ .reg .b32 a, b, c, d; mov.b64 {a, b}, $1; mov.b64 {c, d}, $2; \
                    selp.b32 a, a, c, $3; selp.b32 b, b, d, $3; mov.b64 $0, {a, b}; }"
            .to_string();
        let arguments = [yes.into(), no.into(), condition.into()];
        self.inline_ptx(
            Some(yes.get_type()),
            text,
            "=l,l,l,b".to_string(),
            &arguments,
            false,
        )?
        .try_as_basic_value()
        .basic()
        .ok_or_else(|| Error::Llvm("`selp` has no result".to_string()))
    }

    fn result_elements(&self, inst: Inst) -> usize {
        self.func
            .ty(self.func.inst(inst).results[0])
            .shape
            .elements()
    }

    fn family(&mut self, op: &Op) -> Result<Elements<'c>> {
        let operands = op.operands();
        let dtype = self
            .func
            .ty(operands[0])
            .dtype()
            .ok_or_else(|| Error::Unsupported(op.mnemonic().to_string()))?;
        let lanes: Vec<Elements<'c>> = operands.iter().map(|&value| self.get(value)).collect();
        (0..lanes[0].len())
            .map(|lane| match op {
                Op::Unary(op::Unary { op, .. }) => self.unary(*op, dtype, lanes[0][lane]),
                Op::Approximate(op::Approximate { op, .. }) => {
                    let result = self.approximate(*op, lanes[0][lane].into_float_value())?;
                    Ok(result.into())
                }
                Op::Binary(op::Binary { op, .. }) => {
                    self.binary(*op, dtype, lanes[0][lane], lanes[1][lane])
                }
                Op::Raw(op::Raw { op, .. }) => {
                    let operands = (lanes[0][lane], lanes[1][lane]);
                    let (lhs, rhs) = (operands.0.into_int_value(), operands.1.into_int_value());
                    Ok(self.raw(*op, dtype, lhs, rhs)?.into())
                }
                Op::Ternary(op::Ternary { op, .. }) => {
                    let operands = [lanes[0][lane], lanes[1][lane], lanes[2][lane]];
                    self.ternary(*op, dtype, operands)
                }
                Op::Compare(op::Compare { op, .. }) => {
                    self.compare(*op, dtype, lanes[0][lane], lanes[1][lane])
                }
                _ => Err(Error::Unsupported(op.mnemonic().to_string())),
            })
            .collect()
    }

    fn unary(
        &self,
        op: UnaryOp,
        dtype: DType,
        x: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        if dtype.is_float() {
            Ok(self.float_unary(op, dtype, x.into_float_value())?.into())
        } else {
            Ok(self.integer_unary(op, dtype, x.into_int_value())?.into())
        }
    }

    fn binary(
        &self,
        op: BinaryOp,
        dtype: DType,
        lhs: BasicValueEnum<'c>,
        rhs: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        if dtype.is_float() {
            let (lhs, rhs) = (lhs.into_float_value(), rhs.into_float_value());
            Ok(self.float_binary(op, dtype, lhs, rhs)?.into())
        } else {
            let (lhs, rhs) = (lhs.into_int_value(), rhs.into_int_value());
            Ok(self.integer_binary(op, dtype, lhs, rhs)?.into())
        }
    }

    /// `llvm.fma` in the compute type: for `f16` and `bf16` the `f32` result is rounded once more,
    /// which a native half-precision fma would not do.
    fn ternary(
        &self,
        op: TernaryOp,
        dtype: DType,
        operands: [BasicValueEnum<'c>; 3],
    ) -> Result<BasicValueEnum<'c>> {
        let TernaryOp::Fma = op;
        let mut wide = Vec::with_capacity(3);
        for operand in operands {
            wide.push(self.widen(dtype, operand.into_float_value())?.into());
        }
        let ty = self.float_type(dtype.compute());
        let result = self.intrinsic_value("llvm.fma", &[ty.into()], &wide)?;
        Ok(self.narrow(dtype, result.into_float_value())?.into())
    }

    fn compare(
        &self,
        op: CompareOp,
        dtype: DType,
        lhs: BasicValueEnum<'c>,
        rhs: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        if dtype.is_float() {
            let lhs = self.widen(dtype, lhs.into_float_value())?;
            let rhs = self.widen(dtype, rhs.into_float_value())?;
            let predicate = float_predicate(op);
            return Ok(self
                .builder
                .build_float_compare(predicate, lhs, rhs, "")?
                .into());
        }
        let predicate = integer_predicate(op, dtype.is_signed());
        let (lhs, rhs) = (lhs.into_int_value(), rhs.into_int_value());
        Ok(self
            .builder
            .build_int_compare(predicate, lhs, rhs, "")?
            .into())
    }
}

/// Ordered predicates, but "not equal" is true of NaN.
fn float_predicate(op: CompareOp) -> FloatPredicate {
    match op {
        CompareOp::Eq => FloatPredicate::OEQ,
        CompareOp::Ne => FloatPredicate::UNE,
        CompareOp::Lt => FloatPredicate::OLT,
        CompareOp::Le => FloatPredicate::OLE,
        CompareOp::Gt => FloatPredicate::OGT,
        CompareOp::Ge => FloatPredicate::OGE,
    }
}

fn integer_predicate(op: CompareOp, signed: bool) -> IntPredicate {
    match (op, signed) {
        (CompareOp::Eq, _) => IntPredicate::EQ,
        (CompareOp::Ne, _) => IntPredicate::NE,
        (CompareOp::Lt, true) => IntPredicate::SLT,
        (CompareOp::Le, true) => IntPredicate::SLE,
        (CompareOp::Gt, true) => IntPredicate::SGT,
        (CompareOp::Ge, true) => IntPredicate::SGE,
        (CompareOp::Lt, false) => IntPredicate::ULT,
        (CompareOp::Le, false) => IntPredicate::ULE,
        (CompareOp::Gt, false) => IntPredicate::UGT,
        (CompareOp::Ge, false) => IntPredicate::UGE,
    }
}
