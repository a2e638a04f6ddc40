//! Lane IR to CLIF, one function at a time.

mod ahead;
mod arithmetic;
mod atomic;
mod cast;
mod checks;
mod control;
mod half_float;
mod lanes;
mod memory;
mod reread;
mod scalar;

use std::collections::BTreeMap;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use exactile_core::entity::EntityMap;
use exactile_core::ir::op::{Elementwise, LaneOp, WorkerOp};
use exactile_core::ir::{Axis, DType, Inst, Literal, Op, Region, Space, Type, Value, op};
use exactile_core::passes::legalise;
use exactile_core::target::Target;
use exactile_core::verify::LaneFunc;

use crate::Error;
use crate::run::{ARGUMENTS_OFFSET, GRID_OFFSET, LENGTHS_OFFSET};
use lanes::Repr;

/// Functions that compiled code calls.
#[derive(Clone, Copy)]
pub(crate) struct Helpers {
    pub(crate) scalar: clif::FuncRef,
    pub(crate) out_of_bounds: clif::FuncRef,
    /// Ask for the cache line at an address, to read and to write, where the machine can.
    pub(crate) prefetch: Option<[clif::FuncRef; 2]>,
}

/// Fills the body of the CLIF function behind `builder`.
pub(crate) fn translate(
    func: &LaneFunc,
    builder: FunctionBuilder<'_>,
    helpers: Helpers,
    isa: &dyn TargetIsa,
) -> Result<(), Error> {
    let mut codegen = Codegen {
        func,
        builder,
        helpers,
        values: EntityMap::filled(func.value_count(), None),
        made_in: EntityMap::filled(func.value_count(), None),
        definitions: func.definitions(),
        entry: Entry {
            context: clif::Value::from_u32(0),
            program: clif::Value::from_u32(0),
        },
        coordinates: [clif::Value::from_u32(0); 3],
        scratch: clif::Value::from_u32(0),
        lengths: EntityMap::filled(func.value_count(), None),
        joined: checks::joined_checks(func),
        loops: Vec::new(),
        asked: BTreeMap::new(),
        loaded: BTreeMap::new(),
        writes: 0,
        has_fma: has_flag(isa, "has_fma"),
    };
    codegen.prologue();
    codegen.region(func.body())?;
    codegen.builder.ins().return_(&[]);
    codegen.builder.seal_all_blocks();
    codegen.builder.finalize(isa.frontend_config());
    Ok(())
}

fn has_flag(isa: &dyn TargetIsa, name: &str) -> bool {
    isa.isa_flags()
        .iter()
        .any(|flag| flag.name == name && flag.as_bool() == Some(true))
}

/// The first parameters of the compiled function.
#[derive(Clone, Copy)]
struct Entry {
    context: clif::Value,
    program: clif::Value,
}

struct Codegen<'a> {
    func: &'a LaneFunc,
    builder: FunctionBuilder<'a>,
    helpers: Helpers,
    values: EntityMap<Value, Option<Repr>>,
    /// The block in which a constant was made last.
    made_in: EntityMap<Value, Option<clif::Block>>,
    definitions: EntityMap<Value, Option<Inst>>,
    entry: Entry,
    coordinates: [clif::Value; 3],
    scratch: clif::Value,
    /// The lengths of arguments, loaded once at the entry.
    lengths: EntityMap<Value, Option<clif::Value>>,
    /// Checks that are no values of their own but part of an access.
    joined: EntityMap<Value, bool>,
    /// The loops around, the innermost last.
    loops: Vec<ahead::Loop>,
    /// For each argument, what asks for its lines.
    asked: BTreeMap<Value, ahead::Asked>,
    /// What was loaded without a mask, and how much that may write there was so far.
    loaded: BTreeMap<Value, reread::Loaded>,
    writes: u32,
    has_fma: bool,
}

impl Codegen<'_> {
    fn prologue(&mut self) {
        let entry = self.builder.create_block();
        self.builder.append_block_params_for_function_params(entry);
        self.builder.switch_to_block(entry);
        let parameters = self.builder.block_params(entry).to_vec();
        self.entry = Entry {
            context: parameters[0],
            program: parameters[1],
        };
        self.coordinates = [parameters[2], parameters[3], parameters[4]];
        self.scratch = parameters[5];
        let flags = memory::flags();
        let load = |codegen: &mut Self, base, offset| {
            codegen
                .builder
                .ins()
                .load(clif::types::I64, flags, base, offset)
        };
        let arguments = load(self, self.entry.context, ARGUMENTS_OFFSET);
        let lengths = load(self, self.entry.context, LENGTHS_OFFSET);
        for (index, &value) in self.func.arguments().iter().enumerate() {
            let offset = index as i32 * 8;
            let slot = load(self, arguments, offset);
            let ty = self.func.ty(value);
            let repr = match ty.dtype() {
                Some(dtype) => self.scalar_from_bits(dtype, slot),
                None => {
                    self.lengths[value] = Some(load(self, lengths, offset));
                    slot
                }
            };
            self.values[value] = Some(Repr::Scalar(repr));
        }
    }

    fn region(&mut self, region: Region) -> Result<(), Error> {
        for &inst in &self.func.region(region).insts {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn repr(&self, value: Value) -> Repr {
        let repr = self.values[value].clone();
        repr.expect("broken invariant: verified operands are defined before their uses")
    }

    /// The one CLIF value of a scalar.
    fn single(&self, value: Value) -> clif::Value {
        match self.repr(value) {
            Repr::Scalar(single) => single,
            Repr::Vector(pieces) | Repr::Mask(_, pieces) => pieces[0],
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.func.ty(value)
    }

    fn dtype(&self, value: Value) -> DType {
        self.ty(value)
            .dtype()
            .expect("broken invariant: verified operands are numbers")
    }

    /// The literal that fills `value`, if it is a constant or repeats one.
    fn constant(&self, value: Value) -> Option<Literal> {
        let op = self.func.op(self.definitions[value]?);
        if let Op::Splat(op::Splat { x }) = op {
            return self.constant(*x);
        }
        let Op::Constant(op::Constant { value }) = op else {
            return None;
        };
        Some(*value)
    }

    /// Makes the constants among an instruction's operands anew in each block that uses them: one made at
    /// the entry would be alive through all code.
    fn make_constants(&mut self, op: &Op) {
        op.visit_operands(&mut |operand| {
            let defined = self.definitions[operand].map(|inst| self.func.op(inst));
            let block = self.builder.current_block();
            if let Some(Op::Constant(it)) = defined
                && self.made_in[operand] != block
            {
                self.values[operand] = Some(self.filled(it.value, self.ty(operand)));
                self.made_in[operand] = block;
            }
        });
    }

    fn inst(&mut self, inst: Inst) -> Result<(), Error> {
        let func = self.func;
        if !legalise::is_legal(func, inst, &Target::CPU.native) {
            return Err(Error::Unsupported(func.op(inst).mnemonic()));
        }
        self.make_constants(func.op(inst));
        self.count_writes(func.op(inst));
        let results = &func.inst(inst).results;
        let ty = results.first().map(|&result| self.ty(result));
        let ty = ty.unwrap_or(Type::BOOL);
        let repr = match func.lane_op(inst) {
            LaneOp::Elementwise(op) => self.elementwise(op, ty)?,
            LaneOp::Raw(op) => self.raw(op.op, ty, op.lhs, op.rhs),
            LaneOp::RawCast(op) => self.cast(op.x, ty),
            LaneOp::ProgramId(op) => Repr::Scalar(self.coordinates[op.axis.index()]),
            LaneOp::NumPrograms(op) => self.num_programs(op.axis),
            LaneOp::Splat(op) => self.splat(op.x, ty.shape.elements()),
            LaneOp::Alloc(_) => self.alloc(ty)?,
            LaneOp::LaneLoad(op) => self.load(op, results[0]),
            LaneOp::LaneFetch(op) => self.fetch(op),
            LaneOp::InBounds(op) => self.in_bounds(op),
            LaneOp::WorkerOp(WorkerOp::CheckBounds(_)) if self.joined[results[0]] => return Ok(()),
            LaneOp::WorkerOp(WorkerOp::CheckBounds(op)) => self.check_bounds(op),
            LaneOp::Extract(op) => {
                let lane = op.index as usize;
                let again = self.reread(op.vector, lane);
                again.unwrap_or_else(|| {
                    let (vector, dtype) = (self.repr(op.vector), self.dtype(op.vector));
                    Repr::Scalar(self.extract(&vector, dtype, lane))
                })
            }
            LaneOp::Vector(op) => self.vector(op),
            LaneOp::ShuffleVector(op) => self.shuffle(op.a, op.b, &op.indices),
            LaneOp::LaneStore(op) => {
                self.store(op);
                return Ok(());
            }
            LaneOp::LaneAtomic(op) => {
                self.combine(op);
                return Ok(());
            }
            LaneOp::WorkerOp(WorkerOp::CheckIndex(op)) => {
                self.check_index(op);
                return Ok(());
            }
            LaneOp::WorkerOp(WorkerOp::CheckAssertion(op)) => {
                self.check_assertion(op);
                return Ok(());
            }
            LaneOp::For(op) => return self.for_loop(op, results),
            LaneOp::If(op) => return self.branch(op, results),
            LaneOp::While(op) => return self.while_loop(op, results),
            LaneOp::Constant(_) | LaneOp::Yield(_) => return Ok(()),
            LaneOp::WarpOp(_) | LaneOp::TransferOp(_) => {
                return Err(Error::Unsupported(func.op(inst).mnemonic()));
            }
        };
        self.values[results[0]] = Some(repr);
        Ok(())
    }

    fn elementwise(&mut self, op: Elementwise<'_>, ty: Type) -> Result<Repr, Error> {
        let lanes = ty.shape.elements();
        Ok(match op {
            Elementwise::Unary(op) => self.unary(op.op, self.dtype(op.x), lanes, &self.repr(op.x)),
            Elementwise::Binary(op) => self.binary(op.op, ty, op.lhs, op.rhs),
            Elementwise::Ternary(op) => {
                let operands = [self.repr(op.a), self.repr(op.b), self.repr(op.c)];
                self.ternary(op.op, ty, &operands)
            }
            Elementwise::Compare(op) => self.compare(op.op, op.lhs, op.rhs, lanes),
            Elementwise::Select(op) => {
                let (on_true, on_false) = (self.repr(op.on_true), self.repr(op.on_false));
                let condition = self.repr(op.condition);
                self.select(ty, &condition, &on_true, &on_false)
            }
            Elementwise::Cast(op) => self.cast(op.x, ty),
            Elementwise::Bitcast(op) => self.bitcast(ty, op.x),
            Elementwise::InlinePtx(op) => self.repr(op.meant()),
            Elementwise::Approximate(op) => return Err(Error::Unsupported(op.op.mnemonic())),
        })
    }

    fn vector(&mut self, op::Vector { elements }: &op::Vector) -> Repr {
        let singles = elements.iter().map(|&element| self.single(element));
        let singles: Vec<clif::Value> = singles.collect();
        self.gather(self.dtype(elements[0]), &singles)
    }

    fn num_programs(&mut self, Axis(axis): Axis) -> Repr {
        let offset = GRID_OFFSET + i32::from(axis) * 8;
        let (flags, context) = (memory::flags(), self.entry.context);
        let ins = self.builder.ins();
        Repr::Scalar(ins.load(clif::types::I64, flags, context, offset))
    }

    /// Each access adds the offset: a start for each buffer would be alive through all code.
    fn alloc(&self, ty: Type) -> Result<Repr, Error> {
        if !matches!(ty.pointee(), Some((_, Space::Scratch))) {
            return Err(Error::Unsupported("shared memory"));
        }
        Ok(Repr::Scalar(self.scratch))
    }
}
