//! What happens only where a mask holds, and checks: what is out of bounds is reported and left out.

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder};
use exactile_core::entity::EntityMap;
use exactile_core::ir::{Func, Op, Value, op};

use super::Codegen;
use super::lanes::Repr;

/// For each value whether it is a bounds check whose only use is to be the mask of the access right after it: one branch
/// does for both.
pub(super) fn joined_checks(func: &Func) -> EntityMap<Value, bool> {
    let mut joined = EntityMap::filled(func.value_count(), false);
    let mut uses = EntityMap::filled(func.value_count(), 0_u32);
    for region in func.all_regions() {
        let insts = &func.region(region).insts;
        for &inst in insts {
            func.op(inst)
                .visit_operands(&mut |operand| uses[operand] += 1);
        }
        for pair in insts.windows(2) {
            if let (Op::CheckBounds(_), Some(access)) =
                (func.op(pair[0]), func.op(pair[1]).access())
            {
                let result = func.inst(pair[0]).results[0];
                joined[result] = access.mask == Some(result);
            }
        }
    }
    for value in func.values() {
        joined[value] &= uses[value] == 1;
    }
    joined
}

impl Codegen<'_> {
    /// Begins what happens only where the scalar mask is true; returns the block after it, which `skipped` are
    /// handed to where it is false.
    pub(super) fn enter_masked(
        &mut self,
        mask: Option<Value>,
        skipped: &[clif::Value],
    ) -> Option<clif::Block> {
        let mask = mask?;
        let check = match self.definitions[mask].map(|inst| self.func.op(inst)) {
            Some(Op::CheckBounds(check)) if self.joined[mask] => Some(check),
            Some(_) | None => None,
        };
        let mask = check.map_or(Some(mask), |check| check.mask);
        let within = check.and_then(|check| self.is_inside(check.base, check.offset, check.count));
        if mask.is_none() && within.is_none() {
            return None;
        }
        let after = self.builder.create_block();
        for &value in skipped {
            let ty = self.builder.func.dfg.value_type(value);
            self.builder.append_block_param(after, ty);
        }
        let skipped: Vec<BlockArg> = skipped.iter().map(|&value| value.into()).collect();
        if let Some(mask) = mask {
            let (holds, inside) = (self.single(mask), self.builder.create_block());
            self.builder.ins().brif(holds, inside, &[], after, &skipped);
            self.builder.switch_to_block(inside);
        }
        if let Some((check, (within, length))) = check.zip(within) {
            let inside = self.builder.create_block();
            self.report_unless(within, inside, check, length);
            self.builder.ins().jump(after, &skipped);
            self.builder.switch_to_block(inside);
        }
        Some(after)
    }

    /// Ends what [`Self::enter_masked`] began: what `values` are after it.
    pub(super) fn leave_masked(
        &mut self,
        after: Option<clif::Block>,
        values: &[clif::Value],
    ) -> Vec<clif::Value> {
        let Some(after) = after else {
            return values.to_vec();
        };
        let arguments: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        self.builder.ins().jump(after, &arguments);
        self.builder.switch_to_block(after);
        self.builder.block_params(after).to_vec()
    }

    /// Whether a whole access is in bounds, and the length of its array; `None` for an array that no
    /// launch can make too short.
    pub(super) fn is_inside(
        &mut self,
        base: Value,
        offset: Value,
        count: i64,
    ) -> Option<(clif::Value, clif::Value)> {
        let length = self.lengths[base]?;
        let offset = self.index(offset);
        // As unsigned numbers, those below zero are above all lengths.
        let end = match count {
            1 => length,
            _ => {
                let (end, zero) = (
                    self.builder.ins().iadd_imm_s(length, 1 - count),
                    self.bits(I64, 0),
                );
                self.builder.ins().smax(end, zero)
            }
        };
        let below = IntCC::UnsignedLessThan;
        Some((self.builder.ins().icmp(below, offset, end), length))
    }

    /// Whether a whole access is in bounds.
    pub(super) fn in_bounds(&mut self, op: &op::InBounds) -> Repr {
        Repr::Scalar(match self.is_inside(op.base, op.offset, op.count) {
            Some((inside, _)) => inside,
            None => self.bits(I8, 1),
        })
    }

    /// The mask and that the whole access is in bounds; a violation is recorded.
    pub(super) fn check_bounds(&mut self, op: &op::CheckBounds) -> Repr {
        let mask = op.mask.map(|mask| self.single(mask));
        let Some((inside, length)) = self.is_inside(op.base, op.offset, op.count) else {
            return Repr::Scalar(mask.unwrap_or_else(|| self.bits(I8, 1)));
        };
        let Some(mask) = mask else {
            let after = self.builder.create_block();
            self.report_unless(inside, after, op, length);
            self.builder.ins().jump(after, &[]);
            self.builder.switch_to_block(after);
            return Repr::Scalar(inside);
        };
        let offset = self.index(op.offset);
        let outside = self.builder.ins().bxor_imm_u(inside, 1);
        let wrong = self.builder.ins().band(mask, outside);
        self.report_where(wrong, (op.element, op.site), (offset, length));
        Repr::Scalar(self.builder.ins().band(mask, inside))
    }

    /// Reports an index that is not below its extent.
    pub(super) fn check_index(&mut self, op: &op::CheckIndex) {
        let index = self.single(op.index);
        let above = IntCC::UnsignedGreaterThanOrEqual;
        let wrong = self.builder.ins().icmp_imm_u(above, index, op.extent);
        let extent = self.bits(I64, op.extent as u64);
        self.report_where(wrong, (op.element, op.site), (index, extent));
    }

    /// Reports an assertion that does not hold.
    pub(super) fn check_assertion(&mut self, op: &op::CheckAssertion) {
        let failed = self.single(op.failed);
        let none = self.bits(I64, 0);
        self.report_where(failed, (op.element, op.site), (none, none));
    }

    /// Goes on in `inside` where an access is, and else in the current block, which has recorded it.
    fn report_unless(
        &mut self,
        holds: clif::Value,
        inside: clif::Block,
        op: &op::CheckBounds,
        length: clif::Value,
    ) {
        let report = self.builder.create_block();
        self.builder.ins().brif(holds, inside, &[], report, &[]);
        let offset = self.index(op.offset);
        self.report(report, (op.element, op.site), (offset, length));
    }

    /// Records an access of what has `length` elements where `wrong` holds.
    fn report_where(
        &mut self,
        wrong: clif::Value,
        of: (Value, i64),
        reached: (clif::Value, clif::Value),
    ) {
        let (report, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(wrong, report, &[], after, &[]);
        self.report(report, of, reached);
        self.builder.ins().jump(after, &[]);
        self.builder.switch_to_block(after);
    }

    /// Fills a new block that records an access of what has `length` elements.
    fn report(
        &mut self,
        block: clif::Block,
        (element, site): (Value, i64),
        (offset, length): (clif::Value, clif::Value),
    ) {
        self.builder.set_cold_block(block);
        self.builder.switch_to_block(block);
        let (site, element) = (self.bits(I64, site as u64), self.index(element));
        let (context, program) = (self.entry.context, self.entry.program);
        let arguments = [context, program, site, element, offset, length];
        self.builder
            .ins()
            .call(self.helpers.out_of_bounds, &arguments);
    }
}
