//! The machine's own ops, which are undefined for some operands.

use super::runner::Runner;
use crate::interp::elements::{Elements, dtype};
use crate::interp::mask::Mask;
use crate::interp::{Fault, FaultKind};
use crate::ir::{Inst, Literal, RawOp, op};
use crate::semantics;

impl Runner<'_, '_> {
    /// A division that is undefined for a lane that takes part is a fault. A shift that is undefined
    /// gives a number that no machine gives.
    pub(super) fn raw(
        &self,
        inst: Inst,
        op::Raw { op, lhs, rhs }: &op::Raw,
        mask: Mask,
    ) -> Result<Elements, Fault> {
        let (op, lhs, rhs) = (*op, *lhs, *rhs);
        let dtype = dtype(self.machine.func, lhs);
        let width = self.width(lhs);
        let (x, y) = (self.read(lhs), self.read(rhs));
        let results = self.places(width).map(|(element, lane)| {
            let place = element * self.warp.lanes + lane;
            let (x, y) = (x.get(place), y.get(place));
            match (semantics::raw(op, dtype, x, y), op) {
                (Some(result), _) => Ok(result),
                (None, RawOp::Div | RawOp::Rem) if mask.has(lane) => {
                    let (mnemonic, lane) = (op.mnemonic(), self.warp.lane(lane) as u64);
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
        mask: Mask,
    ) -> Result<Elements, Fault> {
        let result = self.machine.func.inst(inst).results[0];
        let (from, to) = (
            dtype(self.machine.func, *x),
            dtype(self.machine.func, result),
        );
        let (width, x) = (self.width(*x), self.read(*x));
        let results = self.places(width).map(|(element, lane)| {
            let bits = x.get(element * self.warp.lanes + lane);
            let number = Literal::from_bits(from, bits).float();
            if mask.has(lane) && number.is_none_or(f64::is_nan) {
                let (mnemonic, lane) = (
                    self.machine.func.op(inst).mnemonic(),
                    self.warp.lane(lane) as u64,
                );
                return Err(self.fault(inst, FaultKind::Undefined { mnemonic, lane }));
            }
            Ok(semantics::cast(from, to, bits))
        });
        results.collect::<Result<_, _>>().map(Elements::new)
    }
}
