//! The machine's own ops, which are undefined for some operands.

use super::Machine;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::interp::{Fault, FaultKind};
use crate::ir::{Inst, Literal, RawOp, op};
use crate::semantics;

impl Machine<'_> {
    /// A division that is undefined for a lane that takes part is a fault. A shift that is undefined
    /// gives a number that no machine gives.
    pub(super) fn raw(
        &self,
        inst: Inst,
        op::Raw { op, lhs, rhs }: &op::Raw,
        mask: &Mask,
    ) -> Result<Elements, Fault> {
        let (op, lhs, rhs) = (*op, *lhs, *rhs);
        let dtype = dtype(self.func, lhs);
        let width = self.width(lhs);
        let (x, y) = (self.read(lhs), self.read(rhs));
        let mut active = vec![false; self.lanes];
        mask.lanes().for_each(|lane| active[lane] = true);
        let results = self.places(width).map(|(element, lane)| {
            let place = element * self.lanes + lane;
            let (x, y) = (x.get(place), y.get(place));
            match (semantics::raw(op, dtype, x, y), op) {
                (Some(result), _) => Ok(result),
                (None, RawOp::Div | RawOp::Rem) if active[lane] => {
                    let (mnemonic, lane) = (op.mnemonic(), lane as u64);
                    Err(self.fault(inst, FaultKind::Undefined { mnemonic, lane }))
                }
                (None, _) => Ok(!semantics::binary(op.defined(), dtype, x, y) & dtype.mask()),
            }
        });
        results.collect::<Result<_, _>>().map(Elements::new)
    }

    /// A NaN of a lane that takes part is a fault.
    pub(super) fn raw_cast(
        &self,
        inst: Inst,
        op::RawCast { x }: &op::RawCast,
        mask: &Mask,
    ) -> Result<Elements, Fault> {
        let result = self.func.inst(inst).results[0];
        let (from, to) = (dtype(self.func, *x), dtype(self.func, result));
        let (width, x) = (self.width(*x), self.read(*x));
        let mut active = vec![false; self.lanes];
        mask.lanes().for_each(|lane| active[lane] = true);
        let results = self.places(width).map(|(element, lane)| {
            let bits = x.get(element * self.lanes + lane);
            let number = Literal::from_bits(from, bits).float();
            if active[lane] && number.is_none_or(f64::is_nan) {
                let (mnemonic, lane) = (self.func.op(inst).mnemonic(), lane as u64);
                return Err(self.fault(inst, FaultKind::Undefined { mnemonic, lane }));
            }
            Ok(semantics::cast(from, to, bits))
        });
        results.collect::<Result<_, _>>().map(Elements::new)
    }
}
