//! Lane IR to CLIF, one function at a time.

mod ahead;
mod arithmetic;
mod atomic;
mod cast;
mod control;
mod half_float;
mod lanes;
mod memory;
mod scalar;

use std::collections::BTreeMap;

use cranelift_codegen::ir as clif;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use exactile_core::entity::EntityMap;
use exactile_core::ir::{Axis, DType, Func, Inst, Literal, Op, Region, Type, Value, op};
use exactile_core::passes::legalise;
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
        loops: Vec::new(),
        asked: BTreeMap::new(),
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
    func: &'a Func,
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
    /// The loops around, the innermost last.
    loops: Vec<ahead::Loop>,
    /// For each argument, what asks for its lines.
    asked: BTreeMap<Value, ahead::Asked>,
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
        match self.func.op(self.definitions[value]?) {
            Op::Constant(op::Constant { value }) => Some(*value),
            Op::Splat(op::Splat { x }) => self.constant(*x),
            _ => None,
        }
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
        let data = self.func.inst(inst);
        if matches!(data.op, Op::Constant(_)) {
            return Ok(());
        }
        self.make_constants(&data.op);
        let results = &data.results;
        let ty = results.first().map(|&result| self.ty(result));
        let repr = match (&data.op, ty) {
            (Op::For(_) | Op::If(_) | Op::While(_), _) => {
                return self.control(&data.op, results);
            }
            (
                Op::LaneStore(op::LaneStore {
                    base,
                    offset,
                    value,
                    mask,
                    ..
                }),
                _,
            ) => {
                self.store(*base, *offset, *value, *mask);
                return Ok(());
            }
            (
                Op::LaneAtomic(op::LaneAtomic {
                    base,
                    offset,
                    value,
                    mask,
                    op,
                }),
                _,
            ) => {
                self.combine(*op, (*base, *offset), *value, *mask);
                return Ok(());
            }
            (
                Op::CheckIndex(op::CheckIndex {
                    index,
                    element,
                    extent,
                    site,
                    ..
                }),
                _,
            ) => {
                self.check_index(*index, *element, *extent, *site);
                return Ok(());
            }
            (Op::Yield(_), _) => return Ok(()),
            (_, None) => return Err(Error::Unsupported(data.op.mnemonic())),
            (op, Some(ty)) => self.value(op, results[0], ty)?,
        };
        self.values[results[0]] = Some(repr);
        Ok(())
    }

    /// The value of an instruction with one result.
    fn value(&mut self, op: &Op, result: Value, ty: Type) -> Result<Repr, Error> {
        let lanes = ty.shape.elements();
        Ok(match op {
            Op::ProgramId(op::ProgramId { axis }) => Repr::Scalar(self.coordinates[axis.index()]),
            Op::NumPrograms(op::NumPrograms { axis: Axis(axis) }) => {
                let offset = GRID_OFFSET + i32::from(*axis) * 8;
                let (flags, context) = (memory::flags(), self.entry.context);
                let ins = self.builder.ins();
                Repr::Scalar(ins.load(clif::types::I64, flags, context, offset))
            }
            Op::Splat(op::Splat { x }) => self.splat(*x, lanes),
            Op::Unary(op::Unary { op, x }) => {
                self.unary(*op, self.dtype(*x), lanes, &self.repr(*x))
            }
            Op::Binary(op::Binary { op, lhs, rhs }) if !legalise::needs_guard(*op, ty.dtype()) => {
                self.binary(*op, ty, *lhs, *rhs)
            }
            Op::Raw(op::Raw { op, lhs, rhs }) => self.raw(*op, ty, *lhs, *rhs),
            Op::Ternary(op::Ternary { op, a, b, c }) => {
                let operands = [self.repr(*a), self.repr(*b), self.repr(*c)];
                self.ternary(*op, ty, &operands)
            }
            Op::Compare(op::Compare { op, lhs, rhs }) => self.compare(*op, *lhs, *rhs, lanes),
            Op::Select(op::Select {
                condition,
                on_true,
                on_false,
            }) => {
                let (on_true, on_false) = (self.repr(*on_true), self.repr(*on_false));
                let condition = self.repr(*condition);
                self.select(ty, &condition, &on_true, &on_false)
            }
            Op::Cast(op::Cast { x }) => self.cast(*x, ty),
            Op::Bitcast(op::Bitcast { x }) => self.bitcast(result, *x),
            Op::Alloc(_) => {
                if !matches!(ty.pointee(), Some((_, exactile_core::ir::Space::Scratch))) {
                    return Err(Error::Unsupported("shared memory"));
                }
                // Each access adds the offset: a start for each buffer would be alive through all code.
                Repr::Scalar(self.scratch)
            }
            Op::LaneLoad(op::LaneLoad {
                base,
                offset,
                mask,
                other,
                ..
            }) => self.load(*base, *offset, *mask, *other, ty),
            Op::InBounds(op::InBounds {
                base,
                offset,
                count,
            }) => Repr::Scalar(match self.is_inside((*base, *offset), *count) {
                Some((inside, _)) => inside,
                None => self.bits(clif::types::I8, 1),
            }),
            Op::CheckBounds(op::CheckBounds {
                base,
                offset,
                element,
                mask,
                count,
                site,
            }) => self.check_bounds((*base, *offset), *element, *mask, *count, *site),
            Op::Extract(op::Extract { vector, index }) => {
                let lane = self.extract(&self.repr(*vector), self.dtype(*vector), *index as usize);
                Repr::Scalar(lane)
            }
            Op::Vector(op::Vector { elements }) => {
                let singles: Vec<clif::Value> = elements
                    .iter()
                    .map(|&element| self.single(element))
                    .collect();
                self.gather(self.dtype(elements[0]), &singles)
            }
            Op::ShuffleVector(op::ShuffleVector { a, b, indices }) => self.shuffle(*a, *b, indices),
            op => return Err(Error::Unsupported(op.mnemonic())),
        })
    }
}
