//! The kernel function: its parameters, attributes, shared memory and frame.

use std::collections::BTreeSet;

use exactile_core::entity::EntityMap;
use exactile_core::ir::operand::PATTERN;
use exactile_core::ir::{
    Access, Effect, Element, Func, Inst, Op, Parameter, Space, Type, Value, op,
};
use exactile_core::launch::{ArrayMap, Input};
use exactile_core::target::{Target, WARP_LANES};
use exactile_core::verify::LaneFunc;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};

use super::lines::Lines;
use super::transfer::maps;
use super::value::memory_type;
use super::{EmitOptions, Emitter, GridMapping, HiddenValues};
use crate::error::{Error, Result};
use crate::memory::element_address;
use crate::ptx::Ptx;

/// LLVM's calling convention of a PTX entry point.
const PTX_KERNEL: u32 = 71;

/// LLVM's address spaces of PTX.
const GLOBAL: u16 = 1;
const SHARED: u16 = 3;

/// The size of a map of an array, and what its address is a multiple of.
const MAP_SIZE: u32 = 128;
const MAP_ADDRESS: u64 = 64;

/// The most bytes of alignment that a parameter's divisor is taken to promise.
const MOST_PROMISED: u32 = 256;

impl<'a, 'c> Emitter<'a, 'c> {
    /// Emits the kernel; the texts of the result are still empty.
    pub(super) fn run(
        func: &'a LaneFunc,
        context: &'c Context,
        module: &'a Module<'c>,
        name: &str,
        options: EmitOptions,
    ) -> Result<Ptx> {
        check_warps(func, &options.target)?;
        let threads = func.warps * WARP_LANES;
        let programs = func.schedule.programs.unwrap_or(1);
        let shared_bytes = shared_bytes(func, &options.target, programs)?;
        let hidden = hidden_parameters(func, options);
        let maps = maps(func)?;
        let kernel = declare(func, context, module, name, (&hidden, maps.len()))?;
        let mut emitter = Emitter {
            func,
            target: options.target,
            grid: options.grid,
            programs,
            context,
            module,
            builder: context.create_builder(),
            kernel,
            values: EntityMap::filled(func.value_count(), Vec::new()),
            hidden: HiddenValues::default(),
            program: None,
            shared: None,
            native: options.target.native,
            lanes_part: super::meeting::lanes_part(func),
            beside: super::beside::Beside::of(func),
            adjoined: super::adjoined::Adjoined::of(func),
            parts: super::parts::Parts::of(func),
            end: None,
            lines: None,
        };
        emitter.lines = emitter.lines_if(options.lines);
        emitter.annotate(threads);
        let entry = context.append_basic_block(kernel, "entry");
        emitter.builder.position_at_end(entry);
        let begins_early = emitter.begin_early()?;
        emitter.bind_parameters(&hidden, &maps)?;
        emitter.fetch_maps()?;
        emitter.share(shared_bytes)?;
        emitter.find_program()?;
        emitter.insts(&func.region(func.body()).insts)?;
        emitter.builder.build_return(None)?;
        Ok(Ptx {
            name: name.to_string(),
            text: String::new(),
            machine_code: None,
            llvm_before: String::new(),
            llvm_after: String::new(),
            parameters: parameters(func),
            hidden,
            maps,
            threads,
            programs,
            shared_bytes,
            grid: options.grid,
            begins_early,
            reads_registers: reads_registers(func),
        })
    }

    /// Where its instructions come from, if somebody asks.
    fn lines_if(&self, asked: bool) -> Option<Lines<'c>> {
        let lines = || Lines::of(self.func, self.context, self.module, self.kernel);
        asked.then(lines).flatten()
    }

    /// Its shared memory, if it has any.
    fn share(&mut self, bytes: u32) -> Result<()> {
        if bytes > 0 {
            let memory = declare_shared(self.context, self.module, &self.target);
            self.shared = Some(self.own_part(memory, bytes)?);
        }
        Ok(())
    }

    fn annotate(&self, threads: u32) {
        self.kernel.set_call_conventions(PTX_KERNEL);
        // The assembler takes the number at its word, even where the thread block then fits nowhere.
        let fitting = self.target.gpu.registers / (threads * self.programs);
        let schedule = self.func.schedule;
        // A launch says how many programs share its thread blocks.
        let (size, block) = match self.programs {
            1 => ("nvvm.reqntid", threads.to_string()),
            programs => ("nvvm.maxntid", format!("{threads},{programs}")),
        };
        let registers = schedule.registers.map(|most| most.min(fitting));
        // Registers can be dealt out anew where it is known how many a lane has at first.
        let has_roles = self.func.all_insts().into_iter();
        let mut has_roles = has_roles.map(|inst| self.func.op(inst));
        let deals = has_roles.any(|op| matches!(op, Op::Roles(_)));
        let occupancy = schedule.occupancy.or(deals.then_some(1));
        let asked = [
            (size, Some(block)),
            ("nvvm.minctasm", occupancy.map(|it| it.to_string())),
            ("nvvm.maxnreg", registers.map(|it| it.to_string())),
        ];
        for (name, value) in asked {
            let Some(value) = value else { continue };
            let attribute = self.context.create_string_attribute(name, &value);
            self.kernel.add_attribute(AttributeLoc::Function, attribute);
        }
        let nounwind = self.enum_attribute("nounwind");
        self.kernel.add_attribute(AttributeLoc::Function, nounwind);
        let exclusive = exclusive_parameters(self.func);
        for (index, parameter) in self.func.parameters.iter().enumerate() {
            if self
                .func
                .ty(self.func.arguments()[index])
                .pointee()
                .is_none()
            {
                continue;
            }
            let location = AttributeLoc::Param(index as u32);
            let add = |attribute| self.kernel.add_attribute(location, attribute);
            if parameter.access == Access::Read {
                add(self.enum_attribute("readonly"));
            }
            if exclusive.contains(&index) {
                add(self.enum_attribute("noalias"));
            }
            let align = 1 << parameter.divisor.max(1).trailing_zeros();
            add(self.enum_attribute_value("align", u64::from(align.min(MOST_PROMISED))));
        }
    }

    /// Maps are handed over by value, and read where they lie (PTX ISA, "Tensor-map").
    fn annotate_maps(&self, first: usize) {
        let bytes = self.context.i8_type().array_type(MAP_SIZE);
        let by_value = Attribute::get_named_enum_kind_id("byval");
        let by_value = self.context.create_type_attribute(by_value, bytes.into());
        let constant = self
            .context
            .create_string_attribute("nvvm.grid_constant", "");
        for index in 0..self.hidden.maps.len() {
            let location = AttributeLoc::Param((first + index) as u32);
            let align = self.enum_attribute_value("align", MAP_ADDRESS);
            for attribute in [by_value, constant, align] {
                self.kernel.add_attribute(location, attribute);
            }
        }
    }

    fn bind_parameters(&mut self, hidden: &[Input], maps: &[ArrayMap]) -> Result<()> {
        let arguments = self.kernel.get_params();
        let (own, appended) = arguments.split_at(self.func.arguments().len());
        let (appended, addresses) = appended.split_at(hidden.len());
        let addresses = addresses.iter().map(|it| it.into_pointer_value());
        self.hidden.maps = maps.iter().cloned().zip(addresses).collect();
        self.annotate_maps(own.len() + hidden.len());
        for (&value, &argument) in self.func.arguments().iter().zip(own) {
            let is_bool = self.func.ty(value) == Type::BOOL;
            let element = if is_bool {
                self.byte_to_bool(argument)?
            } else {
                argument
            };
            self.values[value] = vec![element];
        }
        self.hidden.lengths = vec![None; own.len()];
        for (kind, &argument) in hidden.iter().zip(appended) {
            match kind {
                Input::Length(index, _) => {
                    self.hidden.lengths[*index] = Some(argument.into_int_value());
                }
                Input::ErrorRecord => {
                    self.hidden.error_record = Some(argument.into_pointer_value());
                }
                &Input::Grid(axis) => {
                    let wide = self.context.i64_type();
                    let extent = argument.into_int_value();
                    let extent = self.builder.build_int_z_extend(extent, wide, "")?;
                    self.hidden.extents[axis] = Some(extent);
                }
                Input::Number(_) | Input::Address(_) => return Err(visible(*kind)),
            }
        }
        Ok(())
    }

    /// A `bool` from its byte in memory: any nonzero byte is true.
    pub(super) fn byte_to_bool(&self, byte: BasicValueEnum<'c>) -> Result<BasicValueEnum<'c>> {
        let byte = byte.into_int_value();
        let zero = byte.get_type().const_zero();
        Ok(self
            .builder
            .build_int_compare(IntPredicate::NE, byte, zero, "")?
            .into())
    }

    /// Emits `alloc`: a fixed address in the shared array.
    pub(super) fn alloc(&self, op: &op::Alloc) -> Result<PointerValue<'c>> {
        let base = self
            .shared
            .ok_or_else(|| Error::Llvm("an alloc without shared memory".to_string()))?;
        let (offset, byte) = (self.int(64, op.offset), self.context.i8_type());
        Ok(element_address(&self.builder, byte, base, offset)?)
    }
}

fn check_warps(func: &Func, target: &Target) -> Result<()> {
    let most_warps = target.gpu.most_warps;
    match (1..=most_warps).contains(&func.warps) {
        true => Ok(()),
        false => Err(Error::Limit(format!(
            "`@{}` is made for {} warps, expected 1 to {most_warps}",
            func.name, func.warps
        ))),
    }
}

/// Bytes of shared memory of a program, of those that share a thread block.
fn shared_bytes(func: &Func, target: &Target, programs: u32) -> Result<u32> {
    let is_scratch = |inst: &Inst| {
        let result = func.inst(*inst).results.first();
        let pointee = result.and_then(|&result| func.ty(result).pointee());
        matches!(func.op(*inst), Op::Alloc(_)) && pointee.is_none_or(|(_, it)| it != Space::Shared)
    };
    if func.all_insts().iter().any(is_scratch) {
        return Err(Error::Unsupported("alloc of scratch memory".to_string()));
    }
    let own = func.shared_bytes();
    let bank = i64::from(target.gpu.bank_bytes);
    let own = match programs {
        1 => own,
        _ => own.saturating_add(bank - 1) / bank * bank,
    };
    let total = own.saturating_mul(i64::from(programs));
    let most = target.gpu.shared_bytes;
    if total > i64::from(most) {
        return Err(Error::Limit(format!(
            "`@{}` needs {total} bytes of shared memory, `{}` has {most}",
            func.name, target.name
        )));
    }
    Ok(own as u32)
}

/// What the code reads of a launch and a launch passes beside its arguments: the lengths of arrays that are checked, a
/// record where a check may fail, and extents of the grid that thread blocks do not tell.
fn hidden_parameters(func: &Func, options: EmitOptions) -> Vec<Input> {
    let (mut checked, mut stops) = (BTreeSet::new(), false);
    for inst in func.all_insts() {
        let op = func.op(inst);
        if let Op::StopOutside(op::StopOutside { base, .. })
        | Op::InBounds(op::InBounds { base, .. }) = op
        {
            checked.extend(func.parameter_index(*base));
        }
        stops |= matches!(
            op,
            Op::StopOutside(_) | Op::StopIndex(_) | Op::StopAssertion(_)
        );
    }
    let length = |index: usize| {
        let (dtype, _) = func.ty(func.arguments()[index]).pointee()?;
        Some(Input::Length(index, dtype))
    };
    let mut hidden: Vec<Input> = checked.into_iter().filter_map(length).collect();
    if stops {
        hidden.push(Input::ErrorRecord);
    }
    let axes = match (options.grid, func.schedule.programs.unwrap_or(1)) {
        (GridMapping::Linear, _) => 3,
        (GridMapping::Direct, 1) => 0,
        // Programs share thread blocks along the first axis alone.
        (GridMapping::Direct, _) => 1,
    };
    hidden.extend((0..axes).map(Input::Grid));
    hidden
}

/// No parameter of the kernel is hidden.
fn visible(input: Input) -> Error {
    Error::Unsupported(format!("the hidden parameter {input:?}"))
}

fn declare<'c>(
    func: &Func,
    context: &'c Context,
    module: &Module<'c>,
    name: &str,
    (hidden, maps): (&[Input], usize),
) -> Result<FunctionValue<'c>> {
    let pointer = context.ptr_type(AddressSpace::from(GLOBAL));
    let mut types: Vec<BasicMetadataTypeEnum<'c>> = Vec::new();
    for &argument in func.arguments() {
        types.push(match func.ty(argument).element {
            Element::Number(dtype) => memory_type(context, dtype).into(),
            Element::Pointer(..) => pointer.into(),
            Element::Accumulator(..)
            | Element::Tensor(..)
            | Element::Buffer(..)
            | Element::Row(_)
            | Element::Pending(_)
            | Element::Poison => {
                return Err(Error::Unsupported(
                    "a parameter that is no argument".to_string(),
                ));
            }
        });
    }
    for &input in hidden {
        types.push(match input {
            Input::Length(..) => context.i64_type().into(),
            Input::ErrorRecord => pointer.into(),
            Input::Grid(_) => context.i32_type().into(),
            Input::Number(_) | Input::Address(_) => return Err(visible(input)),
        });
    }
    let address = BasicMetadataTypeEnum::from(context.ptr_type(AddressSpace::default()));
    types.extend(vec![address; maps]);
    let ty = context.void_type().fn_type(&types, false);
    Ok(module.add_function(name, ty, None))
}

/// The `$` keeps it apart from kernels. One array of unknown length, so that a launch may ask for more than 48 KiB.
///
/// It starts at the first bank, so that every vector and every swizzle does, those of tensor cores too.
fn declare_shared<'c>(
    context: &'c Context,
    module: &Module<'c>,
    target: &Target,
) -> PointerValue<'c> {
    let ty = context.i8_type().array_type(0);
    let global = module.add_global(ty, Some(AddressSpace::from(SHARED)), "exactile$shared");
    global.set_linkage(Linkage::External);
    global.set_alignment(target.gpu.bank_bytes.max(PATTERN as u32));
    global.as_pointer_value()
}

/// The parameters with their types.
fn parameters(func: &Func) -> Vec<(Parameter, Type)> {
    let types = func.arguments().iter().map(|&value| func.ty(value));
    func.parameters.iter().cloned().zip(types).collect()
}

/// Pointer parameters that LLVM may take to be reached through no other pointer *and by no other
/// lane*. With a barrier a lane may read what another lane wrote through the same parameter, and
/// LLVM would move accesses of a `noalias` parameter across the barrier: so a parameter that is
/// written is exclusive only in a function without barriers.
fn exclusive_parameters(func: &Func) -> BTreeSet<usize> {
    let insts = func.all_insts();
    let has_barrier = insts.iter().any(|&inst| {
        matches!(
            func.op(inst),
            Op::Barrier(_) | Op::NamedSync(_) | Op::MbarrierWait(_) | Op::Roles(_)
        )
    });
    let written = |index: usize| {
        let base: Value = func.arguments()[index];
        let mut accesses = insts.iter().filter_map(|&inst| func.op(inst).access());
        accesses.any(|access| access.base == base && access.effect != Effect::Reads)
    };
    (0..func.parameters.len())
        .filter(|&index| !has_barrier || !written(index))
        .collect()
}

/// Whether a product reads an operand from registers.
fn reads_registers(func: &Func) -> bool {
    let mut insts = func.all_insts().into_iter();
    insts.any(|inst| matches!(func.op(inst), Op::GroupMma(op) if op.a_offset.is_none()))
}
