//! What warps with different roles and bulk copies do together: barriers with phases or numbers, copies of boxes (PTX
//! ISA, "Parallel Synchronization and Communication Instructions" and "Data Movement and Conversion Instructions").

use exactile_core::ir::op::TransferOp;
use exactile_core::ir::{DType, Func, Inst, Op, Value, op};
use exactile_core::launch::ArrayMap;
use exactile_core::target::WARP_LANES;
use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue, PointerValue};

use super::Emitter;
use crate::error::{Error, Result};
use crate::memory::element_address;

/// What one lane of the warp does, always the same one, after all others have come so far.
fn by_one_lane(text: &str) -> String {
    format!("{{ .reg .pred one; bar.warp.sync 0xffffffff; elect.sync _|one, 0xffffffff;\n{text} }}")
}

impl<'c> Emitter<'_, 'c> {
    /// Emits an op of warps that work together, or of bulk copies.
    pub(super) fn transfer(&mut self, inst: Inst, op: TransferOp<'_>) -> Result<()> {
        match op {
            TransferOp::TensorMap(op) => {
                let map = self.map(op)?;
                self.define(inst, vec![map]);
                Ok(())
            }
            TransferOp::Roles(op) => self.roles(op),
            TransferOp::MbarrierInit(op) => {
                let count = op.count;
                let text = format!(
                    "@one mbarrier.init.shared::cta.b64 [$0], {count};\n\
                     @one fence.mbarrier_init.release.cluster;"
                );
                self.on_word((op.word, op.at), &by_one_lane(&text), &[])
            }
            TransferOp::MbarrierExpect(op) => {
                let bytes = op.bytes;
                let text =
                    format!("@one mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], {bytes};");
                self.on_word((op.word, op.at), &by_one_lane(&text), &[])
            }
            TransferOp::MbarrierArrive(op) => {
                let text = by_one_lane("@one mbarrier.arrive.shared::cta.b64 _, [$0];");
                self.on_word((op.word, op.at), &text, &[])
            }
            TransferOp::MbarrierWait(op) => {
                let phase = self.values[op.phase][0].into_int_value();
                let parity = self.builder.build_and(phase, self.int(32, 1), "")?;
                let text = "{ .reg .pred over;\n\
                            again: mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;\n\
                            @!over bra again; }";
                self.on_word((op.word, op.at), text, &[parity])
            }
            TransferOp::NamedSync(op) => self.named("sync", op.id, op.warps),
            TransferOp::NamedArrive(op) => self.named("arrive", op.id, op.warps),
            TransferOp::CopyIn(op) => self.copy_in(op),
            TransferOp::CopySpan(op) => self.copy_span(op),
            TransferOp::CopyOut(op) => self.copy_out(op),
            TransferOp::WaitCopiesRead(op) => self.wait_for_out(".read", op.pending),
            TransferOp::WaitCopiesOut(op) => self.wait_for_out("", op.pending),
        }
    }

    /// A text that all lanes of a warp come to at once; the constraints of the numbers follow from their widths.
    fn together(&self, text: String, numbers: &[IntValue<'c>]) -> Result<()> {
        let constraint = |number: &IntValue<'c>| match number.get_type().get_bit_width() {
            64 => "l".to_string(),
            _ => "r".to_string(),
        };
        let constraints = numbers.iter().map(constraint);
        let constraints: Vec<String> = constraints.chain(["~{memory}".to_string()]).collect();
        let arguments: Vec<BasicMetadataValueEnum<'c>> =
            numbers.iter().map(|&number| number.into()).collect();
        let call = self.inline_ptx(None, text, constraints.join(","), &arguments, true)?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("convergent"));
        Ok(())
    }

    /// The first thread asks for all maps as soon as it runs, so that the first copy by each need not (PTX ISA, "prefetch").
    pub(super) fn fetch_maps(&self) -> Result<()> {
        let text = "{ .reg .pred first; .reg .b32 thread; mov.u32 thread, %tid.x; setp.eq.u32 first, thread, 0;\n\
                    @first prefetch.tensormap [$0]; }";
        for (_, map) in &self.hidden.maps {
            let address = self.builder.build_ptr_to_int(*map, self.int_type(64), "")?;
            self.together(text.to_string(), &[address])?;
        }
        Ok(())
    }

    /// A text on the address of a barrier, which is `$0`.
    fn on_word(&self, word: (Value, Value), text: &str, others: &[IntValue<'c>]) -> Result<()> {
        let word = self.shared_address(DType::U64, word)?;
        self.together(text.to_string(), &[&[word], others].concat())
    }

    /// The address of an element in the window of shared memory.
    fn shared_address(&self, dtype: DType, (base, at): (Value, Value)) -> Result<IntValue<'c>> {
        let pointer = self.values[base][0].into_pointer_value();
        let index = self.indices(at)?[0];
        let address = element_address(&self.builder, self.memory_type(dtype), pointer, index)?;
        let builder = &self.builder;
        let address = builder.build_ptr_to_int(address, self.int_type(64), "")?;
        Ok(builder.build_int_truncate(address, self.int_type(32), "")?)
    }

    fn named(&self, what: &str, id: i64, warps: i64) -> Result<()> {
        let threads = warps * i64::from(WARP_LANES);
        if self.lanes_part {
            self.bring_warp_together()?;
        }
        self.together(format!("barrier.{what} {id}, {threads};"), &[])
    }

    /// The address of the map that the launch hands over.
    fn map(&self, op: &op::TensorMap) -> Result<BasicValueEnum<'c>> {
        let map = ArrayMap::of(self.func, op).ok_or_else(unknown_map)?;
        let at = self.hidden.maps.iter().position(|(it, _)| *it == map);
        let (_, pointer) = &self.hidden.maps[at.ok_or_else(unknown_map)?];
        Ok((*pointer).into())
    }

    /// The address of a map, and the index of the first element of a box along each axis, innermost first. What a
    /// number of 32 bits does not hold is outside of every array.
    fn corner(&self, map: Value, origin: &[Value]) -> Result<Vec<IntValue<'c>>> {
        let map: PointerValue<'c> = self.values[map][0].into_pointer_value();
        let builder = &self.builder;
        let mut numbers = vec![builder.build_ptr_to_int(map, self.int_type(64), "")?];
        for &value in origin.iter().rev() {
            let mut index = self.indices(value)?[0];
            let bounds = [
                (IntPredicate::SLT, i64::from(i32::MIN)),
                (IntPredicate::SGT, i64::from(i32::MAX)),
            ];
            for (beyond, bound) in bounds {
                let bound = self.int(64, bound);
                let is_beyond = builder.build_int_compare(beyond, index, bound, "")?;
                index = self.choose_int(is_beyond, bound, index)?;
            }
            numbers.push(builder.build_int_truncate(index, self.int_type(32), "")?);
        }
        Ok(numbers)
    }

    fn copy_in(&self, op: &op::CopyIn) -> Result<()> {
        let dtype = self.element_of(op.target)?;
        let target = self.shared_address(dtype, (op.target, op.offset))?;
        let word = self.shared_address(DType::U64, (op.word, op.at))?;
        let corner = self.corner(op.map, &op.origin)?;
        let (rank, place) = (op.origin.len(), place(op.origin.len()));
        let text = format!(
            "@one cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile\
             .mbarrier::complete_tx::bytes [$0], {place}, [${}];",
            rank + 2
        );
        let numbers = [vec![target], corner, vec![word]].concat();
        self.together(by_one_lane(&text), &numbers)
    }

    /// One lane says how many bytes come, and starts to copy them.
    fn copy_span(&self, op: &op::CopySpan) -> Result<()> {
        let dtype = self.element_of(op.target)?;
        let target = self.shared_address(dtype, (op.target, op.offset))?;
        let word = self.shared_address(DType::U64, (op.word, op.at))?;
        let builder = &self.builder;
        let base = self.values[op.source][0].into_pointer_value();
        let from = self.indices(op.source_offset)?[0];
        let source = element_address(builder, self.memory_type(dtype), base, from)?;
        let source = builder.build_ptr_to_int(source, self.int_type(64), "")?;
        let count = self.indices(op.count)?[0];
        let bytes = builder.build_int_mul(count, self.int(64, dtype.bytes().into()), "")?;
        let bytes = builder.build_int_truncate(bytes, self.int_type(32), "")?;
        let is_some = builder.build_int_compare(IntPredicate::SGT, count, self.int(64, 0), "")?;
        let is_some = builder.build_int_z_extend(is_some, self.int_type(32), "")?;
        let text = "{ .reg .pred one, some; setp.ne.u32 some, $4, 0;\n\
                    bar.warp.sync 0xffffffff; elect.sync _|one, 0xffffffff;\n\
                    and.pred one, one, some;\n\
                    @one mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$3], $2;\n\
                    @one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes \
                    [$0], [$1], $2, [$3]; }";
        self.together(text.to_string(), &[target, source, bytes, word, is_some])
    }

    fn copy_out(&self, op: &op::CopyOut) -> Result<()> {
        let dtype = self.element_of(op.source)?;
        let source = self.shared_address(dtype, (op.source, op.offset))?;
        let corner = self.corner(op.map, &op.origin)?;
        let (rank, place) = (op.origin.len(), place(op.origin.len()));
        let text = format!(
            "@one cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group {place}, [$0];\n\
             @one cp.async.bulk.commit_group;"
        );
        self.together(by_one_lane(&text), &[vec![source], corner].concat())
    }

    fn wait_for_out(&self, what: &str, pending: i64) -> Result<()> {
        let wait = format!("@one cp.async.bulk.wait_group{what} {pending};");
        let text = by_one_lane(&format!("{wait}\nbar.warp.sync 0xffffffff;"));
        self.together(text, &[])
    }

    fn element_of(&self, base: Value) -> Result<DType> {
        let pointee = self.func.ty(base).pointee();
        let (dtype, _) = pointee.ok_or_else(|| Error::Llvm("a copy of no memory".to_string()))?;
        Ok(dtype)
    }

    /// Each warp runs the region of its role.
    fn roles(&mut self, op: &op::Roles) -> Result<()> {
        let warp = self.warp_id()?;
        let join = self.block("roles.end");
        let mut end = 0;
        let registers = super::roles::registers(self.func, &self.target, op);
        for (at, &(warps, region)) in op.warps.iter().enumerate() {
            end += warps;
            let (own, others) = (self.block("role"), self.block("roles"));
            let last = self.int(32, i64::from(end));
            let builder = &self.builder;
            let is_own = builder.build_int_compare(IntPredicate::ULT, warp, last, "")?;
            builder.build_conditional_branch(is_own, own, others)?;
            self.builder.position_at_end(own);
            if let Some(registers) = &registers {
                self.together(registers[at].clone(), &[])?;
            }
            self.region(region)?;
            self.builder.build_unconditional_branch(join)?;
            self.builder.position_at_end(others);
        }
        self.builder.build_unconditional_branch(join)?;
        self.builder.position_at_end(join);
        Ok(())
    }
}

/// The map and the corner of a box, which follow the first operand.
fn place(rank: usize) -> String {
    let corner: Vec<String> = (2..rank + 2).map(|at| format!("${at}")).collect();
    format!("[$1, {{{}}}]", corner.join(", "))
}

fn unknown_map() -> Error {
    Error::Unsupported("a `tensor_map` of numbers that the launch does not decide".to_string())
}

/// The maps of a function, each once.
pub(super) fn maps(func: &Func) -> Result<Vec<ArrayMap>> {
    let mut maps: Vec<ArrayMap> = Vec::new();
    for inst in func.all_insts() {
        if let Op::TensorMap(op) = func.op(inst) {
            let map = ArrayMap::of(func, op).ok_or_else(unknown_map)?;
            if !maps.contains(&map) {
                maps.push(map);
            }
        }
    }
    Ok(maps)
}
