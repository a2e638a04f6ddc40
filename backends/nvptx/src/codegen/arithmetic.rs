//! Elementwise ops: dispatch over the families, and comparisons.

use std::collections::HashMap;
use std::hash::Hash;

use exactile_core::ir::op::Elementwise;
use exactile_core::ir::{BinaryOp, CompareOp, DType, Inst, TernaryOp, UnaryOp, Value, op};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, InstructionOpcode, IntValue, Operand};
use inkwell::{FloatPredicate, IntPredicate};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};

impl<'c> Emitter<'_, 'c> {
    /// The elements of an elementwise op.
    pub(super) fn elementwise(&self, op: Elementwise<'_>, inst: Inst) -> Result<Elements<'c>> {
        let result = self.func.inst(inst).results[0];
        match op {
            Elementwise::InlinePtx(op) => self.inlined(op, inst),
            Elementwise::Unary(op) => self.each([op.x], |dtype, [x]| self.unary(op.op, dtype, x)),
            Elementwise::Approximate(op) => self.each([op.x], |_, [x]| {
                Ok(self.approximate(op.op, x.into_float_value())?.into())
            }),
            Elementwise::Binary(op) => self.each([op.lhs, op.rhs], |dtype, [lhs, rhs]| {
                self.binary(op.op, dtype, lhs, rhs)
            }),
            Elementwise::Ternary(op) => self.multiply_add(op),
            Elementwise::Compare(op) => self.each([op.lhs, op.rhs], |dtype, [lhs, rhs]| {
                self.compare(op.op, dtype, lhs, rhs)
            }),
            Elementwise::Select(op) => {
                let operands = [op.condition, op.on_true, op.on_false];
                self.each(operands, |_, [condition, yes, no]| {
                    self.select(condition.into_int_value(), yes, no)
                })
            }
            Elementwise::Cast(op) => self.cast(op.x, result),
            Elementwise::Bitcast(op) => {
                let target = self.element_type(self.dtype(result)?);
                self.each([op.x], |_, [x]| {
                    Ok(self.builder.build_bit_cast(x, target, "")?)
                })
            }
        }
    }

    /// The elements of `x` as those of `result`.
    pub(super) fn cast(&self, x: Value, result: Value) -> Result<Elements<'c>> {
        let to = self.dtype(result)?;
        self.each([x], |from, [x]| self.convert(from, to, x))
    }

    pub(super) fn raw(&self, op: &op::Raw) -> Result<Elements<'c>> {
        self.each([op.lhs, op.rhs], |dtype, [lhs, rhs]| {
            let (lhs, rhs) = (lhs.into_int_value(), rhs.into_int_value());
            Ok(self.raw_integer(op.op, dtype, lhs, rhs)?.into())
        })
    }

    /// What an op gives for each element; it is told the data type of the first operand.
    fn each<const N: usize>(
        &self,
        operands: [Value; N],
        emit: impl Fn(DType, [BasicValueEnum<'c>; N]) -> Result<BasicValueEnum<'c>>,
    ) -> Result<Elements<'c>> {
        let dtype = self.dtype(operands[0])?;
        let operands = operands.map(|value| self.get(value));
        (0..operands[0].len())
            .map(|element| emit(dtype, operands.each_ref().map(|operand| operand[element])))
            .collect()
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
        if let Some(limited) = self.limited(condition, yes, no)? {
            return Ok(limited);
        }
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

    /// An `f32` or a limit that is no zero, by whether it is beyond the limit, as the minimum or the maximum
    /// that NaN stays NaN in.
    fn limited(
        &self,
        condition: IntValue<'c>,
        yes: BasicValueEnum<'c>,
        no: BasicValueEnum<'c>,
    ) -> Result<Option<BasicValueEnum<'c>>> {
        let single = BasicTypeEnum::from(self.context.f32_type());
        let Some(compare) = condition.as_instruction() else {
            return Ok(None);
        };
        let operand = |index| compare.get_operand(index).and_then(Operand::value);
        let is_limit = yes.get_type() == single && {
            let number = yes.into_float_value().get_constant();
            number.is_some_and(|(number, _)| number != 0.0 && !number.is_nan())
        };
        if !is_limit || [operand(0), operand(1)] != [Some(no), Some(yes)] {
            return Ok(None);
        }
        let name = match compare.get_fcmp_predicate() {
            Some(FloatPredicate::OLT) => "llvm.maximum",
            Some(FloatPredicate::OGT) => "llvm.minimum",
            _ => return Ok(None),
        };
        let operands = [yes.into(), no.into()];
        self.intrinsic_value(name, &[single], &operands).map(Some)
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

    /// `a * b + c`, each rounded once, in the order of [`serpentine`]. The assembler keeps it, and takes a factor that the
    /// instruction before has read from where that left it: the register file gives less than three operands a clock.
    fn multiply_add(&self, op: &op::Ternary) -> Result<Elements<'c>> {
        let TernaryOp::Fma = op.op;
        let ty = BasicTypeEnum::from(self.float_type(self.dtype(op.a)?));
        let operands = [op.a, op.b, op.c].map(|value| self.get(value));
        let order = serpentine(&operands[0], &operands[1]);
        let mut sums = operands[2].clone();
        for element in order {
            let operands = operands.each_ref().map(|operand| operand[element].into());
            sums[element] = self.intrinsic_value("llvm.fma", &[ty], &operands)?;
        }
        Ok(sums)
    }

    fn compare(
        &self,
        op: CompareOp,
        dtype: DType,
        lhs: BasicValueEnum<'c>,
        rhs: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        if dtype.is_float() {
            let (lhs, rhs) = (lhs.into_float_value(), rhs.into_float_value());
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

/// An order of the pairs in which each shares a side with the one before where all of some rows meet all of some
/// columns: along the first row, back along the second one, and so on.
fn serpentine<T: Copy + Eq + Hash>(rows: &[T], columns: &[T]) -> Vec<usize> {
    let (rows, columns) = (ranks(rows), ranks(columns));
    let place = |&pair: &usize| {
        let back = rows[pair] % 2 == 1;
        let column = columns[pair];
        (rows[pair], if back { -column } else { column })
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(place);
    order
}

/// The number of each value, in the order in which they appear.
fn ranks<T: Copy + Eq + Hash>(values: &[T]) -> Vec<isize> {
    let mut numbers = HashMap::new();
    let mut rank = |&value| {
        let next = numbers.len() as isize;
        *numbers.entry(value).or_insert(next)
    };
    values.iter().map(&mut rank).collect()
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

#[cfg(test)]
mod tests {
    use super::serpentine;

    #[test]
    fn pairs_share_a_side_with_the_one_before() {
        let rows = [4, 4, 5, 5, 6, 6, 4, 5, 6];
        let columns = [7, 8, 7, 8, 7, 8, 9, 9, 9];
        let order = serpentine(&rows, &columns);
        assert_eq!(order, [0, 1, 6, 7, 3, 2, 4, 5, 8]);
        let shares =
            |pair: &[usize]| rows[pair[0]] == rows[pair[1]] || columns[pair[0]] == columns[pair[1]];
        assert!(order.windows(2).all(shares));
    }

    #[test]
    fn pairs_of_one_side_keep_their_order() {
        assert_eq!(serpentine(&[1, 2, 3], &[5, 5, 5]), [0, 1, 2]);
        assert_eq!(serpentine(&[1, 1, 1], &[7, 5, 6]), [0, 1, 2]);
        assert_eq!(serpentine::<u8>(&[], &[]), [0; 0]);
    }
}
