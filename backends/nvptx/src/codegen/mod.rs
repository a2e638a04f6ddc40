//! Lane IR to LLVM IR: the kernel function and the dispatch over ops, one file per op family.
//!
//! A lane value is kept as its elements, each an LLVM scalar; vectors exist only in loads and
//! stores. So `extract`, `vector` and `shuffle_vector` cost nothing, and an elementwise op is
//! stated for one element. No fast-math flag is ever set, and only operations that the NVPTX code
//! generator is known to select are made, because anything else costs a thread, see [`contained`].

mod access;
mod address;
mod adjoined;
mod arithmetic;
mod atomic;
mod attempts;
mod beside;
mod bounds;
mod cast;
mod control;
mod copy;
mod early;
mod exchange;
mod float;
mod grid;
mod inline;
mod integer;
mod kernel;
mod lines;
mod meeting;
mod parts;
mod refusal;
mod roles;
mod tensor;
mod transfer;
mod value;

use exactile_core::entity::EntityMap;
use exactile_core::ir::op::{LaneOp, OrderOp, WarpOp};
use exactile_core::ir::{Inst, Precision, Value, op};
use exactile_core::launch::ArrayMap;
use exactile_core::passes::legalise;
use exactile_core::target::{Native, Target};
use exactile_core::verify::LaneFunc;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::{FunctionValue, IntValue, PointerValue};

use crate::contained::{contained, note_errors};
use crate::error::{Error, Result};
use crate::grid::GridMapping;
use crate::ptx::{Ptx, is_identifier};
use crate::target;
use value::Elements;

/// What code generation may choose without changing bits, and what it keeps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EmitOptions {
    /// The GPU.
    pub target: Target,
    /// The mapping of the grid.
    pub grid: GridMapping,
    /// Whether to keep the LLVM IR as text: for people, at the cost of time and memory.
    pub llvm_ir: bool,
    /// Whether PTX names the lines of the source by `.loc`, for profilers. Its instructions are the same.
    pub lines: bool,
}

impl EmitOptions {
    /// What a launch on `target` has first.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            grid: GridMapping::default(),
            llvm_ir: false,
            lines: false,
        }
    }
}

/// PTX of `func` for `target` with an entry point called `name`.
///
/// The launch must give buffers that do not overlap, unless none of them is written.
pub fn emit(func: &LaneFunc, target: &Target, name: &str) -> Result<Ptx> {
    emit_with(func, name, EmitOptions::new(*target))
}

/// [`emit`] with options.
pub fn emit_with(func: &LaneFunc, name: &str, options: EmitOptions) -> Result<Ptx> {
    if !is_identifier(name) {
        return Err(Error::Llvm(format!("`{name}` is no PTX identifier")));
    }
    let (func, name) = (func.clone(), name.to_string());
    contained(move || made(&func, &name, options))
}

fn made(func: &LaneFunc, name: &str, options: EmitOptions) -> Result<Ptx> {
    let machine = target::machine(&options.target)?;
    let context = Context::create();
    note_errors(&context);
    let module = context.create_module(name);
    target::configure(&module, &machine);
    let mut ptx = Emitter::run(func, &context, &module, name, options)?;
    if options.llvm_ir {
        ptx.llvm_before = module.print_to_string().to_string();
    }
    module.verify().map_err(|error| {
        let reason = error.to_string();
        Error::Llvm(format!("invalid module: {}", reason.trim_end()))
    })?;
    target::optimize(&module, &machine)?;
    if ptx.begins_early {
        early::forget_what_is_constant(&module, name);
    }
    if options.llvm_ir {
        ptx.llvm_after = module.print_to_string().to_string();
    }
    ptx.text = target::write_ptx(&module, &machine)?;
    if ptx.begins_early {
        early::check(&ptx.text)?;
    }
    if options.lines {
        ptx.text = lines::without_sections(&ptx.text);
    }
    Ok(ptx)
}

/// The hidden parameters as LLVM values.
#[derive(Default)]
struct HiddenValues<'c> {
    /// For each parameter that checks look at, its length in elements.
    lengths: Vec<Option<IntValue<'c>>>,
    error_record: Option<PointerValue<'c>>,
    /// Of the grid, where they are not those of the grid of thread blocks.
    extents: [Option<IntValue<'c>>; 3],
    /// The arrays whose boxes are copied, each with the address of its map.
    maps: Vec<(ArrayMap, PointerValue<'c>)>,
}

/// Emits one kernel.
struct Emitter<'a, 'c> {
    func: &'a LaneFunc,
    target: Target,
    grid: GridMapping,
    /// Programs that share a thread block, at most.
    programs: u32,
    context: &'c Context,
    module: &'a Module<'c>,
    builder: Builder<'c>,
    kernel: FunctionValue<'c>,
    values: EntityMap<Value, Elements<'c>>,
    hidden: HiddenValues<'c>,
    /// Coordinates of the program where they are not those of its thread block.
    program: Option<[IntValue<'c>; 3]>,
    shared: Option<PointerValue<'c>>,
    native: Native,
    lanes_part: bool,
    beside: beside::Beside,
    adjoined: adjoined::Adjoined,
    parts: parts::Parts,
    /// Where checks that fail go, made once.
    end: Option<bounds::End<'c>>,
    lines: Option<lines::Lines<'c>>,
}

impl<'c> Emitter<'_, 'c> {
    /// The elements of a value.
    fn get(&self, value: Value) -> Elements<'c> {
        self.values[value].clone()
    }

    /// Gives the only result of `inst` its elements.
    fn define(&mut self, inst: Inst, elements: Elements<'c>) {
        let result = self.func.inst(inst).results[0];
        self.values[result] = elements;
    }

    /// The instructions of a region, without the terminator.
    fn insts(&mut self, insts: &[Inst]) -> Result<()> {
        let mut rest = insts;
        while let [first, ..] = rest {
            if let Some(count) = self.parts.from(*first) {
                self.in_parts(&rest[..count])?;
                rest = &rest[count..];
                continue;
            }
            if let Some((check, place, branch)) = Self::check_before_branch(self.func, rest) {
                self.insts(&rest[1..place])?;
                self.name_line(rest[place]);
                self.checked_branch(Some(check), (rest[place], branch))?;
                rest = &rest[place + 1..];
                continue;
            }
            let stops = bounds::stops_together(self.func, rest);
            rest = &rest[stops.len().max(1)..];
            if stops.len() > 1 {
                self.name_line(*first);
                self.stop_outside(&stops)?;
            } else {
                self.inst(*first)?;
            }
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Result<()> {
        let func = self.func;
        if !legalise::is_legal(func, inst, &self.native) || !self.is_there(inst) {
            return Err(Error::Unsupported(func.op(inst).mnemonic().to_string()));
        }
        self.name_line(inst);
        let elements = match func.lane_op(inst) {
            LaneOp::Elementwise(op) => self.elementwise(op, inst)?,
            LaneOp::Raw(op) => self.raw(op)?,
            LaneOp::RawCast(op) => self.cast(op.x, func.inst(inst).results[0])?,
            LaneOp::Constant(op) => vec![self.literal(op.value)?; self.result_elements(inst)],
            LaneOp::Splat(op) => vec![self.values[op.x][0]; self.result_elements(inst)],
            LaneOp::Extract(op) => vec![self.values[op.vector][op.index as usize]],
            LaneOp::Vector(op::Vector { elements }) => {
                elements.iter().flat_map(|&value| self.get(value)).collect()
            }
            LaneOp::ShuffleVector(op) => {
                let both = [self.get(op.a), self.get(op.b)].concat();
                let picked = op.indices.iter();
                picked.map(|&index| both[index as usize]).collect()
            }
            LaneOp::ProgramId(op) => vec![self.program_index(op.axis.index())?.into()],
            LaneOp::NumPrograms(op) => vec![self.grid_extent(op.axis.index())?.into()],
            LaneOp::Alloc(op) => vec![self.alloc(op)?.into()],
            LaneOp::LaneLoad(op) => self.lane_load(inst, op)?,
            LaneOp::LaneFetch(op) => self.lane_fetch(op)?,
            LaneOp::InBounds(op) => self.in_bounds(op)?,
            LaneOp::WarpOp(op) => return self.warp(inst, op),
            LaneOp::For(op) => return self.for_loop(inst, op),
            LaneOp::If(op) => return self.if_else(inst, op),
            LaneOp::While(op) => return self.while_loop(inst, op),
            LaneOp::Yield(_) => return Ok(()),
            LaneOp::LaneStore(op) => return self.lane_store(op),
            LaneOp::LaneAtomic(op) => return self.lane_atomic(op),
            LaneOp::TransferOp(op) => return self.transfer(inst, op),
            LaneOp::WorkerOp(_) => {
                return Err(Error::Unsupported(func.op(inst).mnemonic().to_string()));
            }
        };
        self.define(inst, elements);
        Ok(())
    }

    /// Says of what follows that it comes from the line of an instruction.
    fn name_line(&mut self, inst: Inst) {
        if let Some(lines) = &mut self.lines {
            let place = lines.at(&self.func.inst(inst).loc);
            self.builder.set_current_debug_location(place);
        }
    }

    /// Whether the GPU has the tensor cores or the copies of boxes that an op asks for.
    fn is_there(&self, inst: Inst) -> bool {
        let (gpu, op) = (&self.target.gpu, self.func.lane_op(inst));
        let moves = matches!(
            op,
            LaneOp::TransferOp(_) | LaneOp::WarpOp(WarpOp::OrderOp(OrderOp::ProxyFence(_)))
        );
        let multiplied = if let LaneOp::WarpOp(WarpOp::Mma(op)) = &op {
            op.precision
        } else if let LaneOp::WarpOp(WarpOp::GroupMma(op)) = &op {
            op.precision
        } else {
            Precision::Ieee
        };
        let multiplies = multiplied == Precision::Ieee || gpu.mma.contains(&multiplied);
        (gpu.copies_boxes || !moves) && multiplies
    }

    fn result_elements(&self, inst: Inst) -> usize {
        let result = self.func.inst(inst).results[0];
        self.func.ty(result).shape.elements()
    }
}
