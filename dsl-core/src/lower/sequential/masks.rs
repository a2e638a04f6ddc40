//! Vectors that a mask lets through whole: one scalar test instead of one for each lane.

use super::index::{Index, Scalar};
use super::lowerer::{Binding, Inline, Lowerer};
use super::pull::Pulled;
use crate::ir::{BinaryOp, CompareOp, DType, Op, Value, op};

/// The least and the greatest of some indices: `base + least` and `base + greatest`.
struct Ends {
    base: Scalar,
    least: i64,
    greatest: i64,
}

impl Lowerer<'_> {
    /// Whether the mask holds for every lane, as one scalar, where the ends of ranges tell.
    pub(super) fn all_true(&mut self, mask: Value, index: &Index) -> Option<Value> {
        match self.bindings.get(&mask) {
            Some(&Binding::Inline(inst, Inline::Computed)) => {
                let op = self.source.op(inst);
                if let &Op::Binary(op::Binary {
                    op: BinaryOp::And,
                    lhs,
                    rhs,
                }) = op
                {
                    let lhs = self.all_true(lhs, index)?;
                    let rhs = self.all_true(rhs, index)?;
                    return Some(self.builder.and(lhs, rhs));
                }
                if let &Op::Binary(op::Binary {
                    op: BinaryOp::Or,
                    lhs,
                    rhs,
                }) = op
                {
                    let [lhs, rhs] = [lhs, rhs].map(|it| self.all_true(it, index));
                    return match lhs.zip(rhs) {
                        Some((lhs, rhs)) => Some(self.builder.or(lhs, rhs)),
                        None => lhs.or(rhs),
                    };
                }
                if let &Op::Compare(op::Compare { op, lhs, rhs }) = op
                    && self.dtype(lhs) == DType::I64
                {
                    let lhs = self.ends(lhs, index)?;
                    let rhs = self.ends(rhs, index)?;
                    return self.compare_ends(op, &lhs, &rhs);
                }
            }
            Some(&Binding::Inline(_, Inline::Shape(op))) => {
                let map = op.map(&self.shape(op.x()), &self.shape(mask));
                if map.axes().is_some() {
                    let before = self.before(&map, index);
                    return self.all_true(op.x(), &before);
                }
            }
            Some(Binding::Inline(..) | Binding::Scalar(_) | Binding::Buffer(_)) | None => {}
        }
        match self.pull(mask, index) {
            Pulled::Uniform(scalar) => Some(self.value(scalar)),
            Pulled::Affine(..) | Pulled::Vector(_) => None,
        }
    }

    fn ends(&mut self, value: Value, index: &Index) -> Option<Ends> {
        match self.pull(value, index) {
            Pulled::Uniform(base) => Some(Ends {
                base,
                least: 0,
                greatest: 0,
            }),
            Pulled::Affine(base, lanes) => Some(Ends {
                base,
                least: lanes.iter().copied().min()?,
                greatest: lanes.iter().copied().max()?,
            }),
            Pulled::Vector(_) => None,
        }
    }

    fn compare_ends(&mut self, op: CompareOp, lhs: &Ends, rhs: &Ends) -> Option<Value> {
        let (lhs_end, rhs_end) = match op {
            CompareOp::Lt | CompareOp::Le => (lhs.greatest, rhs.least),
            CompareOp::Gt | CompareOp::Ge => (lhs.least, rhs.greatest),
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let left = self.add(lhs.base, Scalar::Known(lhs_end));
        let right = self.add(rhs.base, Scalar::Known(rhs_end));
        let (left, right) = (self.value(left), self.value(right));
        let mut holds = self.builder.compare(op, left, right);
        for ends in [lhs, rhs] {
            if ends.least == ends.greatest {
                continue;
            }
            // The range does not wrap: its constant part is far from 2^63.
            if ends.greatest.checked_sub(ends.least)? > 1 << 62 {
                return None;
            }
            let least = self.add(ends.base, Scalar::Known(ends.least));
            let greatest = self.add(ends.base, Scalar::Known(ends.greatest));
            let (least, greatest) = (self.value(least), self.value(greatest));
            let ordered = self.builder.le(least, greatest);
            holds = self.builder.and(holds, ordered);
        }
        Some(holds)
    }
}
