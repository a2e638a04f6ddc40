//! Structured control flow: `for`, `if` and `while` as blocks and phis.

use exactile_core::ir::{CompareOp, Func, Inst, Op, Region, Trait, Type, Value, op};
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, IntValue, PhiValue};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};

/// A phi for each element of each carried value.
type Phis<'c> = Vec<Vec<PhiValue<'c>>>;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn block(&self, name: &str) -> BasicBlock<'c> {
        self.context.append_basic_block(self.kernel, name)
    }

    pub(super) fn current(&self) -> Result<BasicBlock<'c>> {
        self.builder
            .get_insert_block()
            .ok_or_else(|| Error::Llvm("the builder has no block".to_string()))
    }

    fn all(&self, values: &[Value]) -> Vec<Elements<'c>> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    /// Phis like `incoming`, which comes from `from`.
    fn phis(&self, incoming: &[Elements<'c>], from: BasicBlock<'c>) -> Result<Phis<'c>> {
        let mut phis = Vec::with_capacity(incoming.len());
        for elements in incoming {
            let mut lanes = Vec::with_capacity(elements.len());
            for element in elements {
                lanes.push(self.builder.build_phi(element.get_type(), "")?);
            }
            phis.push(lanes);
        }
        connect(&phis, incoming, from);
        Ok(phis)
    }

    fn bind(&mut self, values: &[Value], elements: &[Elements<'c>]) {
        for (&value, elements) in values.iter().zip(elements) {
            self.values[value] = elements.clone();
        }
    }

    /// Runs a region and returns what it yields.
    pub(super) fn region(&mut self, region: Region) -> Result<Vec<Elements<'c>>> {
        let func = self.func;
        self.insts(&func.region(region).insts)?;
        Ok(self.all(func.yielded(region)))
    }

    /// The loop counts trips, computed once without overflow: so a bound near the greatest integer
    /// ends the loop, and LLVM sees the trip count.
    pub(super) fn for_loop(&mut self, inst: Inst, op: &op::For) -> Result<()> {
        let lower = self.values[op.lower][0].into_int_value();
        let upper = self.values[op.upper][0].into_int_value();
        let init = self.all(&op.init);
        let runs = self
            .builder
            .build_int_compare(IntPredicate::SLT, lower, upper, "")?;
        let (entry, preheader) = (self.current()?, self.block("for.enter"));
        let (header, exit) = (self.block("for.body"), self.block("for.end"));
        self.builder
            .build_conditional_branch(runs, preheader, exit)?;

        self.builder.position_at_end(preheader);
        let distance = self.builder.build_int_sub(upper, lower, "")?;
        let last = self.builder.build_int_sub(distance, self.int(64, 1), "")?;
        let last_trip = self
            .builder
            .build_int_unsigned_div(last, self.int(64, op.step), "")?;
        self.builder.build_unconditional_branch(header)?;

        self.builder.position_at_end(header);
        let counters = [lower.into(), self.int(64, 0).into()].map(|start| vec![start]);
        let counters = self.phis(&counters, preheader)?;
        let carried = self.phis(&init, preheader)?;
        let parameters = self.func.region(op.body).parameters.clone();
        self.bind(&parameters[..1], &results(&counters)[..1]);
        self.bind(&parameters[1..], &results(&carried));
        let next = self.region(op.body)?;
        let index = counters[0][0].as_basic_value().into_int_value();
        let trip = counters[1][0].as_basic_value().into_int_value();
        let next_index = self
            .builder
            .build_int_add(index, self.int(64, op.step), "")?;
        let next_trip = self.builder.build_int_nuw_add(trip, self.int(64, 1), "")?;
        let done = self
            .builder
            .build_int_compare(IntPredicate::EQ, trip, last_trip, "")?;
        let latch = self.current()?;
        self.builder.build_conditional_branch(done, exit, header)?;
        connect(
            &counters,
            &[vec![next_index.into()], vec![next_trip.into()]],
            latch,
        );
        connect(&carried, &next, latch);

        self.builder.position_at_end(exit);
        let merged = self.phis(&init, entry)?;
        connect(&merged, &next, latch);
        self.finish(inst, &merged);
        Ok(())
    }

    pub(super) fn if_else(&mut self, inst: Inst, op: &op::If) -> Result<()> {
        self.checked_branch(None, (inst, op))
    }

    /// A branch, and where there is one, what runs before it unless its condition holds: where both conditions hold one jump leads
    /// to the first region, from which the assembler takes fewer registers for it.
    pub(super) fn checked_branch(
        &mut self,
        check: Option<&op::If>,
        (inst, op): (Inst, &op::If),
    ) -> Result<()> {
        let condition = self.values[op.condition][0].into_int_value();
        let (yes, no, join) = (
            self.block("if.true"),
            self.block("if.false"),
            self.block("if.end"),
        );
        if let Some(check) = check {
            let fine = self.values[check.condition][0].into_int_value();
            let both = self.builder.build_and(fine, condition, "")?;
            let (other, wrong) = (self.block("unless.both"), self.block("unless"));
            self.builder.build_conditional_branch(both, yes, other)?;
            self.builder.position_at_end(other);
            self.builder.build_conditional_branch(fine, no, wrong)?;
            self.builder.position_at_end(wrong);
            self.region(check.on_false)?;
        }
        self.builder.build_conditional_branch(condition, yes, no)?;
        self.builder.position_at_end(yes);
        let from_yes = self.region(op.on_true)?;
        let end_of_yes = self.current()?;
        self.builder.build_unconditional_branch(join)?;
        self.builder.position_at_end(no);
        let from_no = self.region(op.on_false)?;
        let end_of_no = self.current()?;
        self.builder.build_unconditional_branch(join)?;
        self.builder.position_at_end(join);
        let merged = self.phis(&from_yes, end_of_yes)?;
        connect(&merged, &from_no, end_of_no);
        self.finish(inst, &merged);
        Ok(())
    }

    /// A check that comes before a branch, with the place of the branch among these instructions: what is between them has no
    /// effect.
    pub(super) fn check_before_branch<'f>(
        func: &'f Func,
        insts: &[Inst],
    ) -> Option<(&'f op::If, usize, &'f op::If)> {
        let (first, rest) = insts.split_first()?;
        let Op::If(check) = func.op(*first) else {
            return None;
        };
        let empty = func.region(check.on_true).insts.len() == 1;
        let between = |inst: &&Inst| func.op(**inst).is(Trait::pure);
        let place = 1 + rest.iter().take_while(between).count();
        let Op::If(branch) = func.op(*insts.get(place)?) else {
            return None;
        };
        (empty && func.inst(*first).results.is_empty()).then_some((check, place, branch))
    }

    pub(super) fn while_loop(&mut self, inst: Inst, op: &op::While) -> Result<()> {
        let op::While { before, body, .. } = *op;
        let init = self.all(&op.init);
        let entry = self.current()?;
        let (header, inner, exit) = (
            self.block("while"),
            self.block("while.body"),
            self.block("while.end"),
        );
        self.builder.build_unconditional_branch(header)?;
        self.builder.position_at_end(header);
        let carried = self.phis(&init, entry)?;
        let mut now = results(&carried);
        if self.counts_to_constant(op) {
            now[0][0] = self.kept_loop(now[0][0].into_int_value())?.into();
        }
        let parameters = self.func.region(before).parameters.clone();
        self.bind(&parameters, &now);
        let mut yielded = self.region(before)?;
        let condition = yielded.remove(0)[0].into_int_value();
        self.builder
            .build_conditional_branch(condition, inner, exit)?;
        self.builder.position_at_end(inner);
        let parameters = self.func.region(body).parameters.clone();
        self.bind(&parameters, &yielded);
        let next = self.region(body)?;
        let latch = self.current()?;
        self.builder.build_unconditional_branch(header)?;
        connect(&carried, &next, latch);
        self.builder.position_at_end(exit);
        let defined = self.func.inst(inst).results.clone();
        self.bind(&defined, &yielded);
        Ok(())
    }

    /// Whether a loop counts up to a constant: a `while` like that is there for its shorter code.
    fn counts_to_constant(&self, op: &op::While) -> bool {
        let func = self.func;
        let Some(&counter) = func.region(op.before).parameters.first() else {
            return false;
        };
        let [bound, compare, _] = func.region(op.before).insts[..] else {
            return false;
        };
        let (compares, end) = (func.op(compare), func.inst(bound).results.first());
        let below = matches!(compares, &Op::Compare(op::Compare { op: CompareOp::Lt, lhs, rhs }) if lhs == counter && Some(&rhs) == end);
        below && matches!(func.op(bound), Op::Constant(_)) && func.ty(counter) == Type::INDEX
    }

    /// Has the assembler leave the loop whose first block this is as it is, and the optimiser know nothing of its counter: it would
    /// unroll the loop, and takes long to look for sums that grow with it.
    fn kept_loop(&self, counter: IntValue<'c>) -> Result<IntValue<'c>> {
        let call = self.inline_ptx(
            Some(self.context.i64_type().into()),
            ".pragma \"nounroll\";\n\tmov.b64 $0, $1;".to_string(),
            "=l,l".to_string(),
            &[counter.into()],
            true,
        )?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("convergent"));
        let number = call.try_as_basic_value().basic();
        let number = number.ok_or_else(|| Error::Llvm("a move has no result".to_string()))?;
        Ok(number.into_int_value())
    }

    fn finish(&mut self, inst: Inst, phis: &Phis<'c>) {
        let defined = self.func.inst(inst).results.clone();
        self.bind(&defined, &results(phis));
    }
}

fn results<'c>(phis: &Phis<'c>) -> Vec<Elements<'c>> {
    let lanes = |phis: &Vec<PhiValue<'c>>| phis.iter().map(|phi| phi.as_basic_value()).collect();
    phis.iter().map(lanes).collect()
}

fn connect<'c>(phis: &Phis<'c>, incoming: &[Elements<'c>], from: BasicBlock<'c>) {
    for (phis, elements) in phis.iter().zip(incoming) {
        for (phi, element) in phis.iter().zip(elements) {
            let element: &BasicValueEnum<'c> = element;
            phi.add_incoming(&[(element, from)]);
        }
    }
}
