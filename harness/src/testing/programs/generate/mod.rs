//! Makes random programs of the block stage that are valid and never go out of bounds.
//!
//! Generation runs backwards from demand: a value of some type is asked for, an op that gives this
//! type is chosen, its operands are asked for in turn. So nearly everything that is made reaches a
//! store. The ops to be covered are dealt to the programs of a run in turns; a program depends on
//! its seed and index alone.

mod accumulators;
mod atomics;
mod combine;
mod control;
mod launch;
mod lookup;
mod map;
mod masks;
mod memory;
mod moves;
mod shapes;
mod tensors;
#[cfg(test)]
mod tests;

use exactile_core::builder::Builder;
use exactile_core::facts::{Facts, Within};
use exactile_core::interp::lane::Timing;
use exactile_core::ir::operand::fragment_sum;
use exactile_core::ir::{
    BinaryOp, CompareOp, DType, Func, Grid, Literal, Op, Parameter, Precision, Region, Shape,
    Stage, Type, UnaryOp, Value, op,
};
use exactile_core::target::{Bounds, Determinism, Target as Gpu};
use exactile_core::verify;

pub use self::launch::{Limits, Program};
use self::launch::{Size, dealt, random_schedule};
use self::lookup::Record;
use self::memory::{Input, Output};
use self::moves::Move;
use super::arguments::Contents;
use super::target::{Structure, Target};
use super::values::{Fill, literal};
use exactile_core::random::Random;

/// Program number `index` of the run with this seed.
pub fn generate(seed: u64, index: usize, limits: Limits) -> Program {
    let (size, usual) = (Size::of(index), limits.targets);
    let limits = size.limits(limits);
    let mut generator = Generator::new(Random::stream(seed, index as u64), limits, size);
    (generator.determinism, generator.targets) = dealt(seed, index, usual, limits.targets);
    let mut program = generator.program();
    let timings = Timing::several(index as u64);
    program.timing = timings[index % timings.len()];
    program
}

/// How deep operands nest below a statement.
const DEPTH: u32 = 3;

/// Instructions after which only what is needed is made.
const BUDGET: usize = 400;

struct Generator {
    builder: Builder,
    random: Random,
    limits: Limits,
    determinism: Determinism,
    targets: Vec<Target>,
    arguments: Vec<Contents>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    scalars: Vec<Value>,
    /// What the program prints to.
    record: Option<Record>,
    grid: Grid,
    /// The linear index of the program.
    program: Value,
    /// Shapes that the program uses most.
    palette: Vec<Shape>,
    /// Values that are visible, oldest first.
    scope: Vec<Value>,
    /// Inside the region of a reduction: the length of the scope outside.
    combiner: Option<usize>,
    /// How many regions of control flow are open.
    nesting: u32,
}

/// The GPUs that compute the matrix products of a program and whose shared memory holds its largest tile, which moves through
/// it from layout to layout. There may be none.
pub fn able(func: &Func) -> Vec<Gpu> {
    let mut asked = Vec::new();
    for inst in func.all_insts() {
        if let Op::Dot(op::Dot { a, precision, .. })
        | Op::DotPromoted(op::DotPromoted { a, precision, .. }) = func.op(inst)
        {
            asked.push((*precision, func.ty(*a).dtype()));
        }
    }
    let tiles = func.all_insts().into_iter();
    let tiles = tiles.flat_map(|inst| &func.inst(inst).results);
    let bytes = tiles.map(|&value| {
        let ty = func.ty(value);
        ty.shape.elements() * ty.dtype().map_or(0, DType::bytes) as usize
    });
    let largest = bytes.max().unwrap_or(0);
    let has_room = |gpu: &&Gpu| largest <= gpu.gpu.shared_bytes as usize;
    let computes = |gpu: &&Gpu| {
        let mut asked = asked.iter();
        asked.all(|&(it, operand)| {
            let known = operand.is_some_and(|operand| fragment_sum(it, operand).is_some());
            it == Precision::Ieee || known && gpu.gpu.mma.contains(&it)
        })
    };
    let able = Gpu::GPUS.iter().filter(has_room).filter(computes);
    able.copied().collect()
}

impl Generator {
    fn new(mut random: Random, limits: Limits, size: Size) -> Self {
        let mut builder = Builder::new("random", Stage::Block);
        let grid = random.pick(size.grids());
        let program = shapes::linear_program(&mut builder, grid);
        let mut generator = Self {
            builder,
            random,
            limits,
            determinism: Determinism::Exact,
            targets: Vec::new(),
            arguments: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            scalars: Vec::new(),
            record: None,
            grid,
            program,
            palette: Vec::new(),
            scope: vec![program],
            combiner: None,
            nesting: 0,
        };
        for _ in 0..3 {
            let shape = match size {
                Size::Huge => generator.largest_shape(),
                Size::Usual | Size::Large | Size::Wide => generator.random_shape(),
            };
            generator.palette.push(shape);
        }
        generator
    }

    fn program(mut self) -> Program {
        while let Some(target) = self.targets.pop() {
            self.statement(target);
        }
        self.fill_outputs();
        let func = self.builder.finish().and_then(verify::block);
        let bounds = self.random.pick(&[Bounds::Checked, Bounds::Unchecked]);
        let facts = self.arguments.iter().map(|it| it.known(&mut self.random));
        let facts = facts.collect();
        // Last, so that a further field leaves the rest of every program as it is.
        let schedule = random_schedule(&mut self.random);
        let func = func.expect("broken invariant: generated programs are valid");
        let able = able(&func);
        let gpu = (!able.is_empty()).then(|| self.random.pick(&able));
        let mut program = Program {
            func,
            grid: self.grid,
            bounds,
            determinism: self.determinism,
            schedule,
            gpu,
            timing: Timing::default(),
            facts: Facts {
                arguments: facts,
                ..Facts::default()
            },
            arguments: self.arguments,
        };
        let least = program.least_warps();
        program.schedule.warps = schedule.warps.map(|warps| warps.max(least));
        let most = program.most_stages();
        program.schedule.stages = schedule.stages.map(|stages| stages.min(most));
        for (parameter, argument) in program.arguments.iter().enumerate() {
            let range = argument.range(&mut self.random);
            if let Some([least, most]) = range.filter(|_| self.random.one_in(3)) {
                program.facts.within.push(Within {
                    parameter,
                    least,
                    most,
                });
            }
        }
        program
    }

    /// Makes `target` and stores what it gives, sometimes inside a branch or a loop.
    fn statement(&mut self, target: Target) {
        let Some(shape) = self.shape_for(target) else {
            return;
        };
        let wrapped = self.nesting == 0 && self.random.one_in(6);
        if wrapped {
            self.wrapped(|generator| generator.plain_statement(target, shape));
        } else {
            self.plain_statement(target, shape);
        }
    }

    fn plain_statement(&mut self, target: Target, shape: Shape) {
        match target {
            Target::Structure(structure, dtype) if target.result().is_none() => {
                let value = self.make(dtype, shape, DEPTH);
                self.spend(structure, value);
            }
            Target::Unary(..)
            | Target::Function(..)
            | Target::Binary(..)
            | Target::Ternary(..)
            | Target::Compare(..)
            | Target::Cast(..)
            | Target::Bitcast(..)
            | Target::Structure(..) => {
                let value = self.emit(target, shape, DEPTH);
                let masked = self.random.one_in(4);
                self.store(value, masked);
            }
        }
    }

    /// Makes an op of this value that gives none.
    fn spend(&mut self, structure: Structure, value: Value) {
        if let Structure::Atomic(op) = structure {
            return self.atomic(op, value);
        }
        if structure == Structure::TileStore {
            return self.tile_store(value);
        }
        if structure == Structure::Assert {
            return self.assert(value);
        }
        if structure == Structure::Print {
            return self.print(value);
        }
        self.store(value, structure == Structure::StoreMasked);
    }

    /// A value of this type; `depth` bounds how deep its operands nest.
    fn make(&mut self, dtype: DType, shape: Shape, depth: u32) -> Value {
        let ty = Type::tile(dtype, shape);
        if self.random.one_in(3)
            && let Some(value) = self.visible(ty)
        {
            return value;
        }
        let full = self.builder.func().inst_count() > BUDGET;
        if depth == 0 || full {
            return self.leaf(ty);
        }
        if self.combiner.is_none() && self.random.one_in(10) {
            return self.through_memory(ty, depth - 1);
        }
        let wanted = self
            .targets
            .iter()
            .rposition(|&target| target.result() == Some(dtype) && self.fits(target, shape));
        if let Some(index) = wanted {
            let target = self.targets.remove(index);
            return self.emit(target, shape, depth - 1);
        }
        match self.any_op(dtype) {
            Some(target) if !self.random.one_in(4) => self.emit(target, shape, depth - 1),
            Some(_) | None => self.leaf(ty),
        }
    }

    /// A random elementwise op that gives `dtype`.
    fn any_op(&mut self, dtype: DType) -> Option<Target> {
        let other = self.random.pick(DType::ALL);
        let target = match self.random.below(6) {
            0 | 1 => Target::Binary(self.random.pick(BinaryOp::ALL), dtype),
            2 => Target::Unary(
                self.random
                    .pick(&[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not, UnaryOp::Sqrt]),
                dtype,
            ),
            3 if dtype == DType::Bool => Target::Compare(self.random.pick(CompareOp::ALL), other),
            4 if other != dtype => Target::Cast(other, dtype),
            _ => Target::Structure(Structure::Select, dtype),
        };
        let accepted = match target {
            Target::Unary(op, dtype) => op.accepts().admits(dtype),
            Target::Function(op, dtype) => op.accepts().admits(dtype),
            Target::Binary(op, dtype) => op.accepts().admits(dtype),
            Target::Ternary(op, dtype) => op.accepts().admits(dtype),
            Target::Compare(op, dtype) => op.accepts().admits(dtype),
            Target::Cast(..) | Target::Bitcast(..) | Target::Structure(..) => true,
        };
        accepted.then_some(target)
    }

    /// A visible value of this type.
    fn visible(&mut self, ty: Type) -> Option<Value> {
        // A combiner sometimes captures a scalar from outside.
        let floor = match self.combiner {
            Some(floor) if !self.random.one_in(16) => floor,
            Some(_) | None => 0,
        };
        let candidates = self.scope[floor..].iter().copied();
        let candidates: Vec<Value> = candidates
            .filter(|&value| self.builder.ty(value) == ty)
            .collect();
        (!candidates.is_empty()).then(|| self.random.pick(&candidates))
    }

    /// A value of this type that takes no operands, or simple ones.
    fn leaf(&mut self, ty: Type) -> Value {
        let Some(dtype) = ty.dtype() else {
            return self.builder.poison();
        };
        let value = match self.random.below(8) {
            0 | 1 => self.constant(dtype, ty.shape),
            2 if self.combiner.is_none() => self.scalar_splat(dtype, ty.shape),
            3 if self.combiner.is_none() => {
                let index = self.index_tile(ty.shape);
                self.builder.cast(index, dtype)
            }
            4.. if self.combiner.is_none() => self.load(dtype, ty.shape, Structure::Load, 0),
            _ => match self.visible(ty) {
                Some(value) => value,
                None => self.constant(dtype, ty.shape),
            },
        };
        self.scope.push(value);
        value
    }

    fn constant(&mut self, dtype: DType, shape: Shape) -> Value {
        let fill = Fill::random(&mut self.random);
        let literal = literal(&mut self.random, dtype, fill);
        self.builder.filled(literal, shape)
    }

    /// A scalar parameter, repeated.
    fn scalar_splat(&mut self, dtype: DType, shape: Shape) -> Value {
        let fill = Fill::random(&mut self.random);
        let literal = literal(&mut self.random, dtype, fill);
        let mut known = self.scalars.iter().copied();
        let known = known.rfind(|&value| self.builder.ty(value) == Type::scalar(dtype));
        let scalar = match known {
            Some(scalar) if self.random.one_in(2) => scalar,
            Some(_) | None => self.scalar_parameter(literal),
        };
        self.builder.splat(scalar, shape)
    }

    /// A new scalar parameter with this argument.
    fn scalar_parameter(&mut self, literal: Literal) -> Value {
        let name = format!("s{}", self.arguments.len());
        let parameter = Parameter::new(&name, exactile_core::ir::Access::Read);
        let value = self
            .builder
            .parameter(parameter, Type::scalar(literal.dtype));
        self.arguments.push(Contents::Scalar(literal));
        self.scalars.push(value);
        value
    }

    /// Makes a value by the op of `target`.
    fn emit(&mut self, target: Target, shape: Shape, depth: u32) -> Value {
        let value = match target {
            Target::Unary(op, dtype) => {
                let x = self.make(dtype, shape, depth);
                self.builder.unary(op, x)
            }
            Target::Function(op, dtype) => {
                let x = self.make(dtype, shape, depth);
                self.builder.function(op, x)
            }
            Target::Binary(op, dtype) => {
                let lhs = self.make(dtype, shape, depth);
                let rhs = self.right_operand(op, dtype, shape, depth);
                self.builder.binary(op, lhs, rhs)
            }
            Target::Ternary(op, dtype) => {
                let [a, b, c] = [0; 3].map(|_| self.make(dtype, shape, depth));
                self.builder.ternary(op, a, b, c)
            }
            Target::Compare(op, dtype) => {
                let [lhs, rhs] = [0; 2].map(|_| self.make(dtype, shape, depth));
                self.builder.compare(op, lhs, rhs)
            }
            Target::Cast(from, to) => {
                let rounds = to.is_float() && from != DType::Bool && self.combiner.is_none();
                let x = if rounds && self.random.one_in(2) {
                    self.filled_load(from, shape, Fill::Ties)
                } else {
                    self.make(from, shape, depth)
                };
                self.builder.cast(x, to)
            }
            Target::Bitcast(from, to) => {
                let x = self.make(from, shape, depth);
                self.builder.bitcast(x, to)
            }
            Target::Structure(structure, dtype) => self.structure(structure, dtype, shape, depth),
        };
        self.scope.push(value);
        value
    }

    /// The right operand of `op`: an amount near the width for most shifts.
    fn right_operand(&mut self, op: BinaryOp, dtype: DType, shape: Shape, depth: u32) -> Value {
        let shifts = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        if !shifts || self.random.one_in(3) {
            return self.make(dtype, shape, depth);
        }
        if self.random.one_in(2) || self.combiner.is_some() {
            let below = Fill::Below(u64::from(dtype.bits()) + 2);
            let literal = literal(&mut self.random, dtype, below);
            return self.builder.filled(literal, shape);
        }
        let amount = self.make(dtype, shape, depth);
        let limit = Literal::from_bits(dtype, u64::from(2 * dtype.bits() - 1));
        let limit = self.builder.filled(limit, shape);
        self.builder.and(amount, limit)
    }

    fn structure(&mut self, structure: Structure, dtype: DType, shape: Shape, depth: u32) -> Value {
        match structure {
            Structure::Constant => self.constant(dtype, shape),
            Structure::Select => {
                let condition = self.make(DType::Bool, shape, depth);
                let [on_true, on_false] = [0; 2].map(|_| self.make(dtype, shape, depth));
                self.builder.select(condition, on_true, on_false)
            }
            Structure::Splat => self.splat(dtype, shape, depth),
            Structure::Move(name) => (Move::named(name).make)(self, dtype, shape, depth),
            Structure::Load | Structure::LoadMasked | Structure::LoadOther => {
                self.load(dtype, shape, structure, depth)
            }
            Structure::Store
            | Structure::StoreMasked
            | Structure::TileStore
            | Structure::Atomic(_)
            | Structure::Assert
            | Structure::Print => {
                let value = self.make(dtype, shape, depth);
                self.spend(structure, value);
                value
            }
            Structure::TileLoad => self.tile_load(dtype, shape, depth),
            Structure::Fetch(op) => self.fetch(op, dtype, shape, depth),
            Structure::ForScalar | Structure::ForTile => self.for_loop(dtype, shape, depth),
            Structure::While => self.while_loop(dtype, shape, depth),
            Structure::If => self.branch(dtype, shape, depth),
            Structure::Reduce(combine) => self.reduce(combine, dtype, shape, depth),
            Structure::Scan(combine) => self.scan(combine, dtype, shape, depth),
            Structure::Accumulate => self.total(dtype, shape, depth),
            Structure::Prefixes => self.prefixes(dtype, shape, depth),
            Structure::Sort => self.sort(dtype, shape, depth),
            Structure::Dot => self.dot(dtype, shape, depth),
            Structure::Histogram => self.histogram(dtype, shape, depth),
            Structure::Gather => self.gather(dtype, shape, depth),
            Structure::Arange => {
                let start = self.random.between(-9, 9);
                let end = start + shape.elements() as i64;
                self.builder.value(Op::Arange(op::Arange { start, end }))
            }
            Structure::ProgramId => {
                let axis = self.grid_axis();
                self.builder.value(Op::ProgramId(op::ProgramId { axis }))
            }
            Structure::NumPrograms => {
                let axis = self.grid_axis();
                self.builder
                    .value(Op::NumPrograms(op::NumPrograms { axis }))
            }
        }
    }

    /// A region of control flow or of a reduction; what it defines is not visible afterwards.
    fn region(
        &mut self,
        parameters: &[Type],
        fill: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> Region {
        let region = self.builder.new_region(parameters);
        let outer = self.builder.enter(region);
        let visible = self.scope.len();
        let values = self.builder.parameters(region);
        self.scope.extend(&values);
        let yielded = fill(self, &values);
        self.builder
            .emit(Op::Yield(op::Yield { values: yielded }), &[]);
        self.scope.truncate(visible);
        self.builder.enter(outer);
        region
    }
}
