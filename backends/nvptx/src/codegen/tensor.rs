//! Steps of the tensor cores: of a warp on fragments in registers, of four warps on shared memory.

use std::fmt::Write;

use exactile_core::ir::operand::{Side, group_step, may_be_transposed};
use exactile_core::ir::{DType, Inst, Op, Value, op};
use inkwell::attributes::AttributeLoc;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, IntValue};

use super::Emitter;
use super::value::Elements;
use crate::error::{Error, Result};
use crate::memory::element_address;

/// Registers of a lane that hold its part of `a` for the products of one instruction of a group of warps.
const HELD_WORDS: i64 = 4;

/// An operand in shared memory, as its descriptor says (PTX ISA, "Matrix descriptor format").
struct Operand<'c> {
    descriptor: IntValue<'c>,
    side: Side,
}

/// A place of an operand in the units of descriptors.
fn units(dtype: DType, place: usize) -> i64 {
    (place as i64 * i64::from(dtype.bytes())) >> 4
}

impl Operand<'_> {
    /// What a block of 64 rows and a step of products add to the descriptor.
    fn part(&self, block: usize, step: usize) -> i64 {
        let dtype = self.side.dtype;
        let products = group_step(dtype) * step;
        units(
            dtype,
            self.side.place(64 * block, 0) + self.side.place(0, products),
        )
    }
}

impl<'c> Emitter<'_, 'c> {
    /// One `mma.sync.aligned.m16n8k4`, `k8`, `k16` or `k32`.
    pub(super) fn mma(&self, op: &op::Mma) -> Result<Elements<'c>> {
        let dtype = self.dtype(op.a)?;
        let half = dtype == DType::F16;
        let special = [
            (DType::F16, "f32.f32"),
            (DType::F32, "tf32"),
            (DType::I8, "s8"),
        ];
        let form = special.iter().find(|(of, _)| *of == dtype);
        let form = form.map_or(dtype.name(), |(_, form)| form);
        let pair = self.context.f16_type().vec_type(2);
        let mut arguments = Vec::new();
        for operand in [op.a, op.b] {
            if dtype == DType::F64 {
                let held = self.get(operand).into_iter();
                arguments.extend(held.map(BasicMetadataValueEnum::from));
                continue;
            }
            for word in self.words_of(dtype, &self.get(operand))? {
                arguments.push(match half {
                    true => self.builder.build_bit_cast(word, pair, "")?.into(),
                    false => word.into(),
                });
            }
        }
        arguments.extend(
            self.get(op.accumulator)
                .into_iter()
                .map(BasicMetadataValueEnum::from),
        );
        let products = 2 * self.func.ty(op.a).shape.elements();
        let name = format!("llvm.nvvm.mma.m16n8k{products}.row.col.{form}");
        let sums = self
            .intrinsic_value(&name, &[], &arguments)?
            .into_struct_value();
        let element = |at| Ok(self.builder.build_extract_value(sums, at, "")?);
        (0..sums.get_type().count_fields()).map(element).collect()
    }

    /// A product of a group of warps; the first of two that one instruction computes begins with the second.
    pub(super) fn group_mma(&mut self, inst: Inst, op: &op::GroupMma) -> Result<()> {
        if self.adjoined.is_first(inst) {
            return Ok(());
        }
        let first = self.adjoined.firsts.get(&inst).copied();
        let Some((first, Op::GroupMma(front))) = first.map(|it| (it, self.func.op(it))) else {
            let mut sums = self.get(op.accumulator);
            if self.adjoined.any() && !self.is_fresh(&sums) {
                sums = self.moved(&sums)?;
            }
            let sums = self.products(op, op.columns, sums)?;
            self.define(inst, sums);
            return Ok(());
        };
        let [sums, behind] = [front, op].map(|it| self.get(it.accumulator));
        let columns = front.columns + op.columns;
        let blocks = sums.len() * 2 / front.columns as usize;
        let [own, more] = [&sums, &behind].map(|it| it.len() / blocks);
        let parts = sums.chunks(own).zip(behind.chunks(more));
        let all: Elements<'c> = parts.flat_map(|(a, b)| [a, b].concat()).collect();
        let all = self.products(front, columns, all)?;
        let (mut sums, mut behind) = (Vec::new(), Vec::new());
        for block in all.chunks(own + more) {
            sums.extend_from_slice(&block[..own]);
            behind.extend_from_slice(&block[own..]);
        }
        self.define(first, sums);
        self.define(inst, behind);
        Ok(())
    }

    /// `wgmma.mma_async` of so many columns for each 64 rows and 32 bytes of products: one text, so that nothing comes between.
    fn products(
        &self,
        op: &op::GroupMma,
        columns: i64,
        sums: Elements<'c>,
    ) -> Result<Elements<'c>> {
        let dtype = self.func.ty(op.b).pointee().map(|(dtype, _)| dtype);
        let dtype = dtype.ok_or_else(|| Error::Llvm("an operand in no memory".to_string()))?;
        let a = match op.a_offset {
            Some(offset) => {
                Some(self.operand(dtype, (op.a, offset), (op.transposed[0], op.chunks[0]))?)
            }
            None => None,
        };
        let b = self.operand(dtype, (op.b, op.b_offset), (op.transposed[1], op.chunks[1]))?;
        let mut others = vec![b.descriptor];
        others.extend(a.as_ref().map(|a| a.descriptor));
        if a.is_none() {
            others.extend(self.words_of(dtype, &self.get(op.a))?);
        }
        // Instructions begin from +0 by themselves.
        let fresh = self.is_fresh(&sums);
        let count = sums.len() as i64;
        let text = group_text(op, dtype, (a.as_ref(), &b), (columns, count, fresh));
        match fresh {
            true => {
                let unknown = if sums[0].is_float_value() {
                    self.context.f32_type().get_undef().into()
                } else {
                    self.int_type(32).get_undef().into()
                };
                self.on_sums(&vec![unknown; sums.len()], text, &others)
            }
            false => self.on_sums(&sums, text, &others),
        }
    }

    fn is_fresh(&self, sums: &[BasicValueEnum<'c>]) -> bool {
        sums.iter().all(|sum| match sum.is_float_value() {
            true => sum.into_float_value().is_null(),
            false => sum.into_int_value().is_null(),
        })
    }

    /// Sums in other registers: the assembler cannot have products of several widths under way that share some of theirs.
    fn moved(&self, sums: &[BasicValueEnum<'c>]) -> Result<Elements<'c>> {
        let moved = sums.iter().map(|&sum| {
            let (ty, letter) = (sum.get_type(), register_letter(sum));
            let text = "mov.b32 $0, $1;".to_string();
            let constraints = format!("={letter},{letter}");
            let call = self.inline_ptx(Some(ty), text, constraints, &[sum.into()], true)?;
            let value = call.try_as_basic_value().basic();
            value.ok_or_else(|| Error::Llvm("`mov` has no result".to_string()))
        });
        moved.collect()
    }

    /// Emits `settle`: the sums go through, so that nothing reads them before.
    pub(super) fn settle(&self, inst: Inst, sums: Value, pending: i64) -> Result<Elements<'c>> {
        let beside = self.all_words(self.beside.computed.get(&inst))?;
        if !beside.is_empty() || self.beside.parted.contains(&inst) {
            self.behind(&beside)?;
        }
        let held = self.all_words(self.beside.held.get(&inst))?;
        let pending = self.adjoined.pending(inst, pending);
        self.on_sums(&self.get(sums), wait_text(pending), &held)
    }

    pub(super) fn all_words(&self, values: Option<&Vec<Value>>) -> Result<Vec<IntValue<'c>>> {
        let mut words = Vec::new();
        for &value in values.into_iter().flatten() {
            if let Some(dtype) = self.func.ty(value).dtype() {
                words.extend(self.words_of(dtype, &self.get(value))?);
            }
        }
        Ok(words)
    }

    /// A branch that what follows stays behind, and these values before: the assembler keeps to the order of blocks of instructions,
    /// and moves a wait up to where the block begins that it stands in. The branch is taken where a grid has no thread block: never, which the assembler
    /// does not know.
    pub(super) fn behind(&self, values: &[IntValue<'c>]) -> Result<()> {
        let text = "{\n.reg .pred again;\n.reg .b32 blocks;\nread:\nmov.u32 blocks, %nctaid.x;\n\
                    setp.eq.u32 again, blocks, 0;\n@again bra read;\n}";
        let mut constraints = vec!["r"; values.len()];
        constraints.push("~{memory}");
        let values: Vec<BasicMetadataValueEnum<'c>> =
            values.iter().map(|&value| value.into()).collect();
        let text = text.to_string();
        self.inline_ptx(None, text, constraints.join(","), &values, true)?;
        Ok(())
    }

    /// Emits `wait_products`.
    pub(super) fn wait_products(&self, inst: Inst, pending: i64) -> Result<()> {
        let held = self.all_words(self.beside.held.get(&inst))?;
        let mut constraints = vec!["r"; held.len()];
        constraints.push("~{memory}");
        let held: Vec<BasicMetadataValueEnum<'c>> = held.into_iter().map(Into::into).collect();
        let constraints = constraints.join(",");
        let text = wait_text(self.adjoined.pending(inst, pending));
        let call = self.inline_ptx(None, text, constraints, &held, true)?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("convergent"));
        Ok(())
    }

    /// One text that takes the sums, which are `$0` and so on, and integers after them, each sum once; and
    /// gives the sums.
    fn on_sums(
        &self,
        sums: &[BasicValueEnum<'c>],
        text: String,
        others: &[IntValue<'c>],
    ) -> Result<Elements<'c>> {
        let outputs = sums.iter().map(|&sum| format!("={}", register_letter(sum)));
        let inputs = (0..sums.len()).map(|at| at.to_string());
        let numbers = others.iter().map(|other| {
            let long = other.get_type().get_bit_width() == 64;
            if long { "l" } else { "r" }.to_string()
        });
        let constraints = outputs.chain(inputs).chain(numbers);
        let constraints: Vec<String> = constraints.chain(["~{memory}".to_string()]).collect();
        let types: Vec<BasicTypeEnum<'c>> = sums.iter().map(BasicValueEnum::get_type).collect();
        let result = self.context.struct_type(&types, false);
        let mut arguments: Vec<BasicMetadataValueEnum<'c>> =
            sums.iter().map(|&sum| sum.into()).collect();
        arguments.extend(
            others
                .iter()
                .map(|&other| BasicMetadataValueEnum::from(other)),
        );
        let call = self.inline_ptx(
            Some(result.into()),
            text,
            constraints.join(","),
            &arguments,
            true,
        )?;
        call.add_attribute(AttributeLoc::Function, self.enum_attribute("convergent"));
        let found = call.try_as_basic_value().basic();
        let found = found.ok_or_else(|| Error::Llvm("`wgmma` has no result".to_string()))?;
        let found = found.into_struct_value();
        let element = |at| Ok(self.builder.build_extract_value(found, at as u32, "")?);
        (0..sums.len()).map(element).collect()
    }

    /// An operand with 128-byte swizzle: the address, the distance of chunks where it is transposed, and that of 8
    /// indices of the other axis.
    fn operand(
        &self,
        dtype: DType,
        (base, offset): (Value, Value),
        (transposed, chunk): (u32, u32),
    ) -> Result<Operand<'c>> {
        let pointer = self.values[base][0].into_pointer_value();
        let element = self.memory_type(dtype);
        let offset = self.indices(offset)?[0];
        let address = element_address(&self.builder, element, pointer, offset)?;
        let builder = &self.builder;
        let address = builder.build_ptr_to_int(address, self.int_type(64), "")?;
        let place = builder.build_and(address, self.int(64, 0x3ffff), "")?;
        let place = builder.build_right_shift(place, self.int(64, 4), false, "")?;
        let side = Side {
            transposed: transposed == 1,
            chunk: chunk as usize,
            dtype,
        };
        let (leading, stride) = match side.transposed {
            true => (units(dtype, side.chunk), side.place(0, 8)),
            false => (1, side.place(8, 0)),
        };
        let fixed = leading << 16 | units(dtype, stride) << 32 | 1 << 62;
        let descriptor = builder.build_or(place, self.int(64, fixed), "")?;
        Ok(Operand { descriptor, side })
    }
}

/// How a text names the register of a sum.
fn register_letter(sum: BasicValueEnum<'_>) -> &'static str {
    if sum.is_float_value() { "f" } else { "r" }
}

/// How PTX names what groups of warps multiply.
fn operand_name(dtype: DType) -> &'static str {
    let special = [
        (DType::F8E4M3, "e4m3"),
        (DType::F8E5M2, "e5m2"),
        (DType::I8, "s8"),
        (DType::F32, "tf32"),
    ];
    let name = special.iter().find(|(of, _)| *of == dtype);
    name.map_or(dtype.name(), |(_, name)| name)
}

/// `sums` are the numbers of the accumulator in a lane. After them come the descriptor of `b`, and that of `a` or the
/// words that lanes hold of it.
fn group_text(
    op: &op::GroupMma,
    dtype: DType,
    (a, b): (Option<&Operand<'_>>, &Operand<'_>),
    (columns, sums, fresh): (i64, i64, bool),
) -> String {
    let (held, name) = (columns / 2, operand_name(dtype));
    // Floats may be negated, which nothing asks for.
    let (sum, signs) = match dtype.is_float() {
        true => ("f32", ", 1, 1"),
        false => ("s32", ""),
    };
    let products = group_step(dtype);
    let steps = op.products as usize / products;
    let side = |side: Side| match may_be_transposed(dtype) {
        true => format!(", {}", i32::from(side.transposed)),
        false => String::new(),
    };
    let first = 2 * sums + 1;
    let mut text = "{ .reg .b64 a, b; .reg .b32 n; .reg .pred p, q; mov.b32 n, 0; \
                    setp.eq.b32 p, n, 0; setp.ne.b32 q, n, 0; wgmma.fence.sync.aligned;\n"
        .to_string();
    for block in 0..sums / held {
        let registers = (block * held..(block + 1) * held).map(|at| format!("${at}"));
        let registers: Vec<String> = registers.collect();
        for step in 0..steps {
            let (begin, left, flags) = match a {
                Some(a) => {
                    let place = a.part(block as usize, step);
                    (
                        format!("add.s64 a, ${first}, {place}; "),
                        "a".to_string(),
                        side(a.side),
                    )
                }
                None => {
                    let word = first + (block * steps as i64 + step as i64) * HELD_WORDS;
                    let words = (word..word + HELD_WORDS).map(|at| format!("${at}"));
                    let words: Vec<String> = words.collect();
                    (
                        String::new(),
                        format!("{{{}}}", words.join(", ")),
                        String::new(),
                    )
                }
            };
            writeln!(
                text,
                "{begin}add.s64 b, ${}, {}; \
                 wgmma.mma_async.sync.aligned.m64n{columns}k{products}.{sum}.{name}.{name} \
                 {{{}}}, {left}, b, {}{signs}{flags}{};",
                2 * sums,
                b.part(0, step),
                registers.join(", "),
                if fresh && step == 0 { "q" } else { "p" },
                side(b.side),
            )
            .expect("broken invariant: writing to a string succeeds");
        }
    }
    text.push_str("wgmma.commit_group.sync.aligned; }");
    text
}

fn wait_text(pending: i64) -> String {
    format!("wgmma.wait_group.sync.aligned {pending};")
}
