//! `stop_outside`, `stop_index` and `stop_assertion`: the comparison in line, the report of an error at the end.

use exactile_core::ir::{Func, Inst, Op, Value, op};
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, IntValue, PhiValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};
use crate::memory::element_address;
use crate::record;

/// Where programs end that have accessed something out of bounds.
pub(super) struct End<'c> {
    block: BasicBlock<'c>,
    /// Whether the lane did.
    wrong: PhiValue<'c>,
    /// Site, element, offset and length.
    access: Vec<PhiValue<'c>>,
}

/// The most accesses that are checked by one branch. Which of them is the first outside is a chain of selections, and LLVM takes
/// time for the square of its length.
const MOST_TOGETHER: usize = 32;

/// Those of the first instructions that are emitted as one: each `stop_outside` of a later access than the one before. The
/// record keeps the error of the first access, so what lanes find may compete.
pub(super) fn stops_together<'f>(func: &'f Func, insts: &[Inst]) -> Vec<&'f op::StopOutside> {
    let mut found: Vec<&op::StopOutside> = Vec::new();
    for &inst in insts.iter().take(MOST_TOGETHER) {
        let Op::StopOutside(op) = func.op(inst) else {
            break;
        };
        if found.last().is_some_and(|last| last.site >= op.site) {
            break;
        }
        found.push(op);
    }
    found
}

impl<'c> Emitter<'_, 'c> {
    /// Whether a whole access is in bounds, and the length of its array. A negative offset is a large
    /// unsigned one. Nothing is computed of the length alone: in a loop it would take a register.
    pub(super) fn is_inside(
        &mut self,
        base: Value,
        first: IntValue<'c>,
        count: i64,
    ) -> Result<(IntValue<'c>, IntValue<'c>)> {
        let length = self.length(base)?;
        let last = self
            .builder
            .build_int_add(first, self.int(64, count - 1), "")?;
        let mut inside = self
            .builder
            .build_int_compare(IntPredicate::ULT, last, length, "")?;
        if count > 1 {
            let zero = self.int(64, 0);
            let starts = self
                .builder
                .build_int_compare(IntPredicate::SGE, first, zero, "")?;
            inside = self.builder.build_and(starts, inside, "")?;
        }
        Ok((inside, length))
    }

    /// The elements of an `in_bounds`.
    pub(super) fn in_bounds(&mut self, op: &op::InBounds) -> Result<Elements<'c>> {
        let mut elements = Elements::new();
        for first in self.indices(op.offset)? {
            elements.push(self.is_inside(op.base, first, op.count)?.0.into());
        }
        Ok(elements)
    }

    /// Emits `stop_outside`, of several accesses. Nothing is alive where the report is called, so that it costs the rest of
    /// the kernel no register.
    pub(super) fn stop_outside(&mut self, ops: &[&op::StopOutside]) -> Result<()> {
        let mut first: Option<(IntValue<'c>, [IntValue<'c>; 4])> = None;
        for op in ops.iter().rev() {
            let offset = self.index(op.offset)?;
            let (inside, length) = self.is_inside(op.base, offset, op.count)?;
            let mut wrong = self.builder.build_not(inside, "")?;
            if let Some(mask) = op.mask {
                let mask = self.values[mask][0].into_int_value();
                wrong = self.builder.build_and(mask, wrong, "")?;
            }
            let mut access = [
                self.int(64, op.site),
                self.index(op.element)?,
                offset,
                length,
            ];
            if let Some((any, later)) = first {
                for (own, later) in access.iter_mut().zip(later) {
                    *own = self.choose_int(wrong, *own, later)?;
                }
                wrong = self.builder.build_or(wrong, any, "")?;
            }
            first = Some((wrong, access));
        }
        match first {
            Some((wrong, access)) => self.stop_where(None, wrong, access),
            None => Ok(()),
        }
    }

    /// Emits `stop_index`.
    pub(super) fn stop_index(&mut self, op: &op::StopIndex) -> Result<()> {
        let (index, element) = (self.index(op.index)?, self.index(op.element)?);
        let extent = self.int(64, op.extent);
        let wrong = self
            .builder
            .build_int_compare(IntPredicate::UGE, index, extent, "")?;
        let access = [self.int(64, op.site), element, index, extent];
        self.stop_where(op.mask, wrong, access)
    }

    /// Emits `stop_assertion`.
    pub(super) fn stop_assertion(&mut self, op: &op::StopAssertion) -> Result<()> {
        let failed = self.values[op.failed][0].into_int_value();
        let element = self.index(op.element)?;
        let none = self.int(64, 0);
        self.stop_where(None, failed, [self.int(64, op.site), element, none, none])
    }

    /// Where the mask and `wrong` hold, reports site, element and offset of an access, given the
    /// length; then ends the program if both hold in any lane.
    fn stop_where(
        &mut self,
        mask: Option<Value>,
        mut wrong: IntValue<'c>,
        access: [IntValue<'c>; 4],
    ) -> Result<()> {
        if let Some(mask) = mask {
            let mask = self.values[mask][0].into_int_value();
            wrong = self.builder.build_and(mask, wrong, "")?;
        }
        let any = self.meet_any(wrong)?;
        let from = self.current()?;
        let end = match self.end.take() {
            Some(end) => end,
            None => self.end_of_program()?,
        };
        end.wrong.add_incoming(&[(&wrong, from)]);
        for (phi, value) in end.access.iter().zip(access) {
            phi.add_incoming(&[(&value, from)]);
        }
        self.builder.position_at_end(from);
        let next = self.context.append_basic_block(self.kernel, "checked");
        self.builder
            .build_conditional_branch(any, end.block, next)?;
        self.end = Some(end);
        self.builder.position_at_end(next);
        Ok(())
    }

    /// Where all checks that fail go: reports, and ends the program. One place for all of them.
    fn end_of_program(&mut self) -> Result<End<'c>> {
        let record = self
            .hidden
            .error_record
            .ok_or_else(|| Error::Llvm("the kernel has no error record".to_string()))?;
        let block = |name| self.context.append_basic_block(self.kernel, name);
        let (stopped, failed, end) = (block("stopped"), block("out_of_bounds"), block("end"));
        self.builder.position_at_end(stopped);
        let wrong = self.builder.build_phi(self.context.bool_type(), "")?;
        let mut access = Vec::new();
        for _ in 0..4 {
            access.push(self.builder.build_phi(self.context.i64_type(), "")?);
        }
        if self.starts_copies() {
            // Copies may have begun that are in no group yet.
            self.group_copies()?;
            self.wait_copies(0)?;
        }
        let holds = wrong.as_basic_value().into_int_value();
        self.builder.build_conditional_branch(holds, failed, end)?;
        self.builder.position_at_end(failed);
        let found: Vec<IntValue<'c>> = access
            .iter()
            .map(|phi| phi.as_basic_value().into_int_value())
            .collect();
        self.report(record, [found[0], found[1], found[2], found[3]], end)?;
        self.builder.position_at_end(end);
        self.builder.build_return(None)?;
        Ok(End {
            block: stopped,
            wrong,
            access,
        })
    }

    /// Whether copies may be under way.
    fn starts_copies(&self) -> bool {
        let insts = self.func.all_insts();
        let mut insts = insts.iter();
        insts.any(|&inst| matches!(self.func.op(inst), Op::StartCopy(_)))
    }

    /// The number of elements behind a parameter.
    fn length(&self, base: Value) -> Result<IntValue<'c>> {
        self.func
            .parameter_index(base)
            .and_then(|index| self.hidden.lengths[index])
            .ok_or_else(|| Error::Unsupported("check_bounds of shared memory".to_string()))
    }

    /// Keeps the least error, and goes on at `done`. It stands in the kernel, and not in a function of its own, because it is there
    /// once and the assembler takes longer for a call and a second function.
    ///
    /// Lanes of one warp compete for the lock, and the winner must not wait for the others before
    /// it has released it. So one iteration takes and releases the lock, and all lanes meet at its
    /// end; inline PTX hides from the optimiser that the winners leave there.
    fn report(
        &self,
        address: PointerValue<'c>,
        access: [IntValue<'c>; 4],
        done: BasicBlock<'c>,
    ) -> Result<()> {
        let builder = &self.builder;
        let block = |name| self.context.append_basic_block(self.kernel, name);
        let (attempt, locked) = (block("attempt"), block("locked"));
        let (replace, release, meet) = (block("replace"), block("release"), block("meet"));
        let (free, taken) = (self.int(32, 0), self.int(32, 1));
        // A parameter, which takes no register.
        let program = self.linear_program(self.extent_of_report())?;
        let found = self.first_outside(program, access)?;
        let lock = self.word_address(address, record::LOCK)?;
        let (turn, on_host) = self.turn_of(address)?;
        builder.build_unconditional_branch(attempt)?;

        builder.position_at_end(attempt);
        let (acquire, relaxed) = (AtomicOrdering::AcquireRelease, AtomicOrdering::Monotonic);
        let exchanged = builder.build_cmpxchg(lock, free, taken, acquire, relaxed)?;
        let won = builder
            .build_extract_value(exchanged, 1, "")?
            .into_int_value();
        builder.build_conditional_branch(won, locked, meet)?;

        builder.position_at_end(locked);
        builder.build_fence(AtomicOrdering::SequentiallyConsistent, false, "")?;
        let present = self.read_word(address, record::PRESENT)?;
        let absent = builder.build_int_compare(IntPredicate::NE, present, turn, "")?;
        let earlier = self.precedes(address, &found)?;
        let wins = builder.build_or(absent, earlier, "")?;
        builder.build_conditional_branch(wins, replace, release)?;

        builder.position_at_end(replace);
        for record in [address, on_host] {
            self.write_word(record, record::PRESENT, turn)?;
            for (pair, at) in found.chunks_exact(2).zip((record::FIELDS..).step_by(2)) {
                self.write_pair(record, at, [pair[0], pair[1]])?;
            }
        }
        builder.build_unconditional_branch(release)?;

        builder.position_at_end(release);
        builder.build_fence(AtomicOrdering::SequentiallyConsistent, false, "")?;
        builder.build_atomicrmw(AtomicRMWBinOp::Xchg, lock, free, acquire)?;
        builder.build_unconditional_branch(meet)?;

        builder.position_at_end(meet);
        let left = self.opaque_flag(won)?;
        builder.build_conditional_branch(left, done, attempt)?;
        Ok(())
    }

    /// The turn of a record, and the record of the host.
    fn turn_of(&self, record: PointerValue<'c>) -> Result<(IntValue<'c>, PointerValue<'c>)> {
        let pointer = record.get_type();
        let [words, place] = self.read_pair(record, record::TURNS)?;
        let words = self.builder.build_int_to_ptr(words, pointer, "")?;
        let [host, turn] = self.read_pair(words, record::HOST)?;
        let host = self.builder.build_int_add(host, place, "")?;
        Ok((turn, self.builder.build_int_to_ptr(host, pointer, "")?))
    }

    /// `flag`, of which the optimiser knows nothing and which it may not duplicate.
    fn opaque_flag(&self, flag: IntValue<'c>) -> Result<IntValue<'c>> {
        let word = self.context.i32_type();
        let number = self.builder.build_int_z_extend(flag, word, "")?;
        let call = self.inline_ptx(
            Some(word.into()),
            "mov.u32 $0, $1;".to_string(),
            "=r,r".to_string(),
            &[number.into()],
            true,
        )?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("convergent"));
        let number = call
            .try_as_basic_value()
            .basic()
            .ok_or_else(|| Error::Llvm("a move has no result".to_string()))?;
        let (number, zero) = (number.into_int_value(), self.int(32, 0));
        Ok(self
            .builder
            .build_int_compare(IntPredicate::NE, number, zero, "")?)
    }

    /// The fields of the record for an access: of consecutive elements, the first one outside.
    fn first_outside(
        &self,
        program: IntValue<'c>,
        access: [IntValue<'c>; 4],
    ) -> Result<Vec<IntValue<'c>>> {
        let [site, element, offset, length] = access;
        let builder = &self.builder;
        let starts_inside = builder.build_int_compare(IntPredicate::ULT, offset, length, "")?;
        let inside = builder.build_int_sub(length, offset, "")?;
        let skipped = self.choose_int(starts_inside, inside, self.int(64, 0))?;
        let element = builder.build_int_add(element, skipped, "")?;
        let offset = builder.build_int_add(offset, skipped, "")?;
        Ok(vec![program, site, element, offset])
    }

    /// Whether program, site and element of `found`, which order errors, are lexicographically below those in the record.
    fn precedes(&self, address: PointerValue<'c>, found: &[IntValue<'c>]) -> Result<IntValue<'c>> {
        let builder = &self.builder;
        let mut below = self.int(1, 0);
        let [program, site] = self.read_pair(address, record::FIELDS)?;
        let element = self.read_word(address, record::FIELDS + 2)?;
        for (&value, kept) in found.iter().zip([program, site, element]).rev() {
            let less = builder.build_int_compare(IntPredicate::ULT, value, kept, "")?;
            let equal = builder.build_int_compare(IntPredicate::EQ, value, kept, "")?;
            let tied = builder.build_and(equal, below, "")?;
            below = builder.build_or(less, tied, "")?;
        }
        Ok(below)
    }

    fn word_address(&self, base: PointerValue<'c>, word: usize) -> Result<PointerValue<'c>> {
        let index = self.int(64, word as i64);
        Ok(element_address(
            &self.builder,
            self.context.i64_type(),
            base,
            index,
        )?)
    }

    fn read_word(&self, base: PointerValue<'c>, word: usize) -> Result<IntValue<'c>> {
        let loaded = self.read(self.context.i64_type().into(), base, word)?;
        Ok(loaded.into_int_value())
    }

    /// A word of an even number and the one behind it.
    fn read_pair(&self, base: PointerValue<'c>, word: usize) -> Result<[IntValue<'c>; 2]> {
        let ty = self.context.i64_type().vec_type(2);
        let loaded = self.read(ty.into(), base, word)?;
        let words = self.unpack(loaded.into_vector_value())?;
        Ok([words[0].into_int_value(), words[1].into_int_value()])
    }

    /// Volatile, which the memory model of PTX takes for relaxed in the whole system: another multiprocessor wrote it.
    fn read(
        &self,
        ty: BasicTypeEnum<'c>,
        base: PointerValue<'c>,
        word: usize,
    ) -> Result<BasicValueEnum<'c>> {
        let address = self.word_address(base, word)?;
        let loaded = self.builder.build_load(ty, address, "")?;
        if let Some(load) = loaded.as_instruction_value() {
            load.set_volatile(true)?;
        }
        Ok(loaded)
    }

    fn write_word(&self, base: PointerValue<'c>, word: usize, value: IntValue<'c>) -> Result<()> {
        self.write(base, word, value.into())
    }

    /// Writes a word of an even number and the one behind it.
    fn write_pair(
        &self,
        base: PointerValue<'c>,
        word: usize,
        values: [IntValue<'c>; 2],
    ) -> Result<()> {
        let pair = self.pack(&values.map(BasicValueEnum::from))?;
        self.write(base, word, pair.into())
    }

    fn write(&self, base: PointerValue<'c>, word: usize, value: BasicValueEnum<'c>) -> Result<()> {
        let address = self.word_address(base, word)?;
        self.builder
            .build_store(address, value)?
            .set_volatile(true)?;
        Ok(())
    }
}
