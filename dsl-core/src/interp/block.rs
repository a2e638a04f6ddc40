//! Runs a block function over a grid: the executable specification.

mod accumulator;
mod atomic;
mod lookup;

use std::collections::BTreeMap;

use self::slot::Shared;
use super::elements::{Elements, dtype, elementwise, map};
use super::memory::{Buffer, Slot, bind, program_count};
use super::{Fault, FaultKind};
use crate::diagnostic::Loc;
use crate::entity::EntityMap;
use crate::ir::op::{Derived, ShapeOp, TileOp};
use crate::ir::{
    DType, Func, Grid, Inst, Op, Precision, Region, Shape, Trait, Value, op, program_coordinates,
};
use crate::launch::{Argument, LaunchError};
use crate::semantics;
use crate::semantics::dot::{Extents, dot, dot_promoted};
use crate::verify::{BlockFunc, ScheduleFunc};

/// The most iterations of a `while`.
pub const WHILE_LIMIT: u64 = 1 << 26;

/// Runs every program of the grid, axis 0 fastest. What programs before a fault wrote stays.
///
/// As in a checked launch, an access out of bounds is not made (a load gives `other` or zero bits)
/// and its program goes on; the fault is the least one: the first program, then the first access in
/// the text, then the lowest element.
pub fn run(func: &BlockFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<(), Fault> {
    run_all(func, grid, arguments)
}

/// The same for a function of the schedule stage, whose layouts decide nothing. A slot that is read before
/// anything is in it, or while its copies are under way, is a fault.
pub fn run_schedule(
    func: &ScheduleFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
) -> Result<(), Fault> {
    run_all(func, grid, arguments)
}

fn run_all(func: &Func, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<(), Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    launch(func, grid, arguments, 0..count, None)
}

/// Runs some programs of the grid, by linear index, in the order given: for large grids of which a
/// sample is enough.
pub fn run_programs(
    func: &BlockFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    programs: impl IntoIterator<Item = u64>,
) -> Result<(), Fault> {
    launch(func, grid, arguments, programs, None)
}

/// Runs every program of the grid as [`run`] does, for at most `steps` steps: an instruction takes as
/// many as its largest result has numbers, and a `dot` one for each multiplication.
pub fn run_limited(
    func: &BlockFunc,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    steps: u64,
) -> Result<(), Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    launch(func, grid, arguments, 0..count, Some(steps))
}

fn launch(
    func: &Func,
    grid: Grid,
    arguments: &mut [Argument<'_>],
    programs: impl IntoIterator<Item = u64>,
    steps: Option<u64>,
) -> Result<(), Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    let memory = bind(func, arguments).map_err(|error| launch_fault(func, error))?;
    let mut machine = Machine::new(func, grid, memory);
    machine.steps = steps.map(|most| Steps { most, left: most });
    for program in programs {
        if program >= count {
            let message = format!("program {program} is not one of {count}");
            return Err(launch_fault(func, LaunchError::Grid(grid, message)));
        }
        machine.program = program;
        machine.shared = Shared::default();
        let ended = machine.region(func.body(), &[]);
        if let Some(refused) = machine.refused.take() {
            return Err(refused.fault);
        }
        ended?;
        machine.ended()?;
    }
    Ok(())
}

pub(super) fn launch_fault(func: &Func, error: LaunchError) -> Fault {
    Fault {
        kernel: func.name.clone(),
        loc: Loc::none(),
        program: 0,
        kind: FaultKind::Launch(error),
    }
}

/// Writes the bits of an element: takes offset, element and bits.
type Write<'a> = dyn Fn(&mut Buffer<'_>, i64, u64, u64) -> Result<(), FaultKind> + 'a;

struct Machine<'a> {
    func: &'a Func,
    grid: Grid,
    program: u64,
    memory: Vec<Slot<'a>>,
    values: EntityMap<Value, Elements>,
    /// What checked launches check, in the order of the text.
    sites: BTreeMap<Inst, u32>,
    refused: Option<Refused>,
    shared: Shared,
    /// How long the launch may take, where that is limited.
    steps: Option<Steps>,
}

#[derive(Clone, Copy)]
struct Steps {
    most: u64,
    left: u64,
}

/// The least access of the running program that was out of bounds.
struct Refused {
    /// Site, element and offset.
    key: (u32, u64, i64),
    fault: Fault,
}

impl<'a> Machine<'a> {
    fn new(func: &'a Func, grid: Grid, memory: Vec<Slot<'a>>) -> Self {
        let mut values = EntityMap::filled(func.value_count(), Elements::uniform(0));
        for (index, (&value, slot)) in func.arguments().iter().zip(&memory).enumerate() {
            values[value] = match slot {
                Slot::Buffer(_) => Elements::uniform(index as u64),
                Slot::Scalar(bits) => Elements::uniform(*bits),
            };
        }
        Self {
            func,
            grid,
            program: 0,
            memory,
            values,
            sites: func.access_sites(),
            refused: None,
            shared: Shared::default(),
            steps: None,
        }
    }

    fn fault(&self, inst: Inst, kind: FaultKind) -> Fault {
        Fault {
            kernel: self.func.name.clone(),
            loc: self.func.inst(inst).loc.clone(),
            program: self.program,
            kind,
        }
    }

    fn read(&self, value: Value) -> Elements {
        self.values[value].clone()
    }

    fn index(&self, value: Value) -> i64 {
        self.values[value].scalar().cast_signed()
    }

    /// The elements of an operand, or these bits where there is none.
    fn read_or(&self, value: Option<Value>, bits: u64) -> Elements {
        value.map_or(Elements::uniform(bits), |value| self.read(value))
    }

    fn shape(&self, value: Value) -> Shape {
        self.func.ty(value).shape
    }

    fn read_all(&self, values: &[Value]) -> Vec<Elements> {
        values.iter().map(|&value| self.read(value)).collect()
    }

    /// Runs a region; returns what it yields.
    fn region(&mut self, region: Region, arguments: &[Elements]) -> Result<Vec<Elements>, Fault> {
        let data = self.func.region(region);
        for (&parameter, argument) in data.parameters.iter().zip(arguments) {
            self.values[parameter] = argument.clone();
        }
        for &inst in &data.insts {
            if self.func.op(inst).is(Trait::terminator) {
                return self.inst(inst);
            }
            self.spend(inst)?;
            let results = self.inst(inst)?;
            for (&value, result) in self.func.inst(inst).results.iter().zip(results) {
                self.values[value] = result;
            }
        }
        Ok(Vec::new())
    }

    /// Takes the steps of an instruction from those that are left.
    fn spend(&mut self, inst: Inst) -> Result<(), Fault> {
        let Some(Steps { most, left }) = self.steps else {
            return Ok(());
        };
        let data = self.func.inst(inst);
        let numbers = |&value: &Value| {
            let ty = self.func.ty(value);
            let each = ty
                .accumulator()
                .map_or(1, |(_, levels)| usize::from(levels) + 1);
            ty.shape.elements() * each
        };
        let elements = data.results.iter().map(numbers).max();
        let each = if let Op::Dot(op::Dot { a, .. }) | Op::DotPromoted(op::DotPromoted { a, .. }) =
            &data.op
        {
            self.shape(*a)
                .extents()
                .last()
                .map_or(1, |&depth| depth as usize)
        } else {
            1
        };
        let taken = (elements.unwrap_or(1) * each) as u64;
        let Some(left) = left.checked_sub(taken) else {
            return Err(self.fault(inst, FaultKind::TooLong(most)));
        };
        self.steps = Some(Steps { most, left });
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Result<Vec<Elements>, Fault> {
        let func = self.func;
        let results = &func.inst(inst).results;
        let op = func.op(inst).tile();
        let result = match op.expect("broken invariant: the op is one of tiles") {
            TileOp::Elementwise(op) => elementwise(func, op, results[0], &self.values),
            TileOp::Derived(Derived::Function(op::Function { op, x })) => {
                let dtype = dtype(func, *x);
                map([&self.values[*x]], |[x]| semantics::function(*op, dtype, x))
            }
            TileOp::Derived(Derived::Join(op)) => self.join(op, self.shape(results[0])),
            TileOp::Derived(Derived::DotPromoted(op)) => self.dot_promoted(op),
            TileOp::Constant(op::Constant { value }) => Elements::uniform(value.bits),
            TileOp::ProgramId(op::ProgramId { axis }) => {
                Elements::uniform(program_coordinates(self.grid, self.program)[axis.index()])
            }
            TileOp::NumPrograms(op::NumPrograms { axis }) => {
                Elements::uniform(u64::from(self.grid[axis.index()]))
            }
            TileOp::Arange(op::Arange { start, end }) => {
                Elements::new((*start..*end).map(i64::cast_unsigned).collect())
            }
            TileOp::Splat(op::Splat { x }) => self.read(*x),
            TileOp::ShapeOp(op) => self.viewed(op, self.shape(results[0])),
            TileOp::Load(op) => self.load(inst, op)?,
            TileOp::LoadBox(op) => {
                let numbers = [&op.origin[..], &op.extents, &op.strides];
                self.in_box(inst, op.base, numbers, (op.along, self.shape(results[0])))?
            }
            TileOp::StoreBox(op) => return self.store_box(inst, op).map(|()| Vec::new()),
            TileOp::Store(op) => return self.store(inst, op).map(|()| Vec::new()),
            TileOp::AtomicReduce(op) => return self.atomic_reduce(inst, op).map(|()| Vec::new()),
            TileOp::AtomicFetch(op) => self.atomic_fetch(inst, op)?,
            TileOp::Assert(op) => return Ok(self.assert(inst, op)),
            TileOp::Reduce(op) => return self.reduce(op),
            TileOp::Scan(op) => return self.scan(op),
            TileOp::Sort(op) => return Ok(self.sort(op)),
            TileOp::Derived(Derived::Map(op)) => return self.map(op, self.shape(results[0])),
            TileOp::Derived(Derived::Print(op)) => {
                return self.print(inst, op).map(|()| Vec::new());
            }
            TileOp::Derived(Derived::AccumulatorOp(op)) => return self.accumulator(op),
            TileOp::Derived(Derived::TensorOp(op)) => return self.tensor(inst, op),
            TileOp::Dot(op) => self.dot(op),
            TileOp::Histogram(op) => self.histogram(op),
            TileOp::Gather(op) => self.gather(inst, op),
            TileOp::SlotOp(op) => return self.slot_op(inst, op),
            TileOp::OrderOp(op) => return Ok(self.order(op)),
            TileOp::For(op) => return self.for_loop(op),
            TileOp::While(op) => return self.while_loop(inst, op),
            TileOp::If(op) => {
                let taken = self.values[op.condition].scalar() != 0;
                return self.region(if taken { op.on_true } else { op.on_false }, &[]);
            }
            TileOp::Yield(op::Yield { values }) => return Ok(self.read_all(values)),
        };
        Ok(vec![result])
    }

    fn join(&self, op: &op::Join, to: Shape) -> Elements {
        let parts = [self.read(op.a), self.read(op.b)];
        let places = 0..to.elements();
        Elements::new(places.map(|at| parts[at % 2].get(at / 2)).collect())
    }

    fn viewed(&self, op: ShapeOp<'_>, to: Shape) -> Elements {
        let (x, map) = (&self.values[op.x()], op.map(&self.shape(op.x()), &to));
        if map.is_identity() {
            return x.clone();
        }
        x.gather((0..to.elements() as u64).map(|flat| map.apply(flat) as usize))
    }

    fn load(&mut self, inst: Inst, op: &op::Load) -> Result<Elements, Fault> {
        let count = self.shape(op.offsets).elements();
        let (offsets, mask) = (self.read(op.offsets), self.read_or(op.mask, 1));
        let other = self.read_or(op.other, 0);
        let place = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        self.gathered(inst, op.base, count, &place, &other)
    }

    /// The elements of memory at the offsets of `place`, and those of `other` where there is none.
    fn gathered(
        &mut self,
        inst: Inst,
        base: Value,
        count: usize,
        place: &dyn Fn(usize) -> Option<i64>,
        other: &Elements,
    ) -> Result<Elements, Fault> {
        let program = self.program;
        let buffer = self.buffer(base);
        let mut refused = None;
        let loaded: Result<Vec<u64>, FaultKind> = (0..count)
            .map(|element| {
                let Some(index) = place(element) else {
                    return Ok(other.get(element));
                };
                let loaded = buffer.load(program, index, element as u64);
                go_on(loaded, &mut refused, other.get(element))
            })
            .collect();
        self.refuse(inst, refused);
        loaded
            .map(Elements::new)
            .map_err(|kind| self.fault(inst, kind))
    }

    fn store(&mut self, inst: Inst, op: &op::Store) -> Result<(), Fault> {
        let program = self.program;
        let write = |buffer: &mut Buffer<'_>, index, element, bits| {
            buffer.store(program, index, element, bits)
        };
        self.written(inst, op.base, (op.offsets, op.value, op.mask), &write)
    }

    fn written(
        &mut self,
        inst: Inst,
        base: Value,
        (offsets, value, mask): (Value, Value, Option<Value>),
        write: &Write<'_>,
    ) -> Result<(), Fault> {
        let (offsets, mask) = (self.read(offsets), self.read_or(mask, 1));
        let place = |element| (mask.get(element) != 0).then(|| offsets.get(element).cast_signed());
        let (count, value) = (self.shape(value).elements(), self.read(value));
        self.scatter(inst, base, (count, &value), &place, write)
    }

    /// Writes in ascending order at the offsets of `place`: of two equal ones the higher element wins.
    fn scatter(
        &mut self,
        inst: Inst,
        base: Value,
        (count, value): (usize, &Elements),
        place: &dyn Fn(usize) -> Option<i64>,
        write: &Write<'_>,
    ) -> Result<(), Fault> {
        let buffer = self.buffer(base);
        let mut refused = None;
        let written = (0..count).try_for_each(|element| {
            let Some(index) = place(element) else {
                return Ok(());
            };
            let written = write(buffer, index, element as u64, value.get(element));
            go_on(written, &mut refused, ())
        });
        self.refuse(inst, refused);
        written.map_err(|kind| self.fault(inst, kind))
    }

    /// Keeps an access out of bounds or a failed assertion if it is the least so far.
    fn refuse(&mut self, inst: Inst, refused: Option<FaultKind>) {
        let (element, index) = if let Some(FaultKind::OutOfBounds { element, index, .. }) = refused
        {
            (element, index)
        } else if let Some(FaultKind::Assertion { element, .. }) = refused {
            (element, 0)
        } else {
            return;
        };
        // A box that is not in its array breaks what the launch has shown, and has no number.
        let site = self.sites.get(&inst).copied().unwrap_or(u32::MAX);
        let key = (site, element, index);
        if self.refused.as_ref().is_none_or(|least| key < least.key) {
            let fault = refused.map(|kind| self.fault(inst, kind));
            self.refused = fault.map(|fault| Refused { key, fault });
        }
    }

    fn buffer(&mut self, base: Value) -> &mut Buffer<'a> {
        let index = self.values[base].scalar() as usize;
        match &mut self.memory[index] {
            Slot::Buffer(buffer) => buffer,
            Slot::Scalar(_) => unreachable!("broken invariant: a verified base is memory"),
        }
    }

    fn dot(&self, op: &op::Dot) -> Elements {
        let shapes = [op.a, op.b].map(|value| self.shape(value));
        let operand = dtype(self.func, op.a);
        let [a, b] = [op.a, op.b].map(|value| self.read(value));
        self.product((op.precision, operand), shapes, [&a, &b], op.accumulator)
    }

    fn dot_promoted(&self, op: &op::DotPromoted) -> Elements {
        let extents = Extents::of(self.shape(op.a), self.shape(op.b));
        let types = [op.a, op.accumulator].map(|value| dtype(self.func, value));
        let [a, b, c] = [op.a, op.b, op.accumulator].map(|value| self.read(value));
        let operands: [&dyn Fn(usize) -> u64; 3] = [&|i| a.get(i), &|i| b.get(i), &|i| c.get(i)];
        let parts = (op.precision, op.count as usize);
        Elements::new(dot_promoted(parts, types, extents, operands))
    }

    fn product(
        &self,
        (precision, operand): (Precision, DType),
        [left, right]: [Shape; 2],
        [a, b]: [&Elements; 2],
        accumulator: Value,
    ) -> Elements {
        let extents = Extents::of(left, right);
        let (ty, c) = (self.func.ty(accumulator), self.read(accumulator));
        let sum = ty.dtype().or(ty.pending());
        let sum = sum.expect("broken invariant: a verified accumulator is of numbers");
        let operands: [&dyn Fn(usize) -> u64; 3] = [&|i| a.get(i), &|i| b.get(i), &|i| c.get(i)];
        Elements::new(dot(precision, [operand, sum], extents, operands))
    }

    fn for_loop(&mut self, op: &op::For) -> Result<Vec<Elements>, Fault> {
        let upper = self.index(op.upper);
        let mut index = Some(self.index(op.lower));
        let mut carried = self.read_all(&op.init);
        while let Some(now) = index.filter(|&now| now < upper) {
            carried.insert(0, Elements::uniform(now.cast_unsigned()));
            carried = self.region(op.body, &carried)?;
            index = now.checked_add(op.step);
        }
        Ok(carried)
    }

    fn while_loop(&mut self, inst: Inst, op: &op::While) -> Result<Vec<Elements>, Fault> {
        let mut carried = self.read_all(&op.init);
        for _ in 0..WHILE_LIMIT {
            let mut next = self.region(op.before, &carried)?;
            let goes_on = next.remove(0).scalar() != 0;
            if !goes_on {
                return Ok(next);
            }
            carried = self.region(op.body, &next)?;
        }
        Err(self.fault(inst, FaultKind::Endless(WHILE_LIMIT)))
    }
}

/// The result of an access to one element, or `instead` where it is out of bounds.
fn go_on<T>(
    result: Result<T, FaultKind>,
    refused: &mut Option<FaultKind>,
    instead: T,
) -> Result<T, FaultKind> {
    match result {
        Err(kind @ FaultKind::OutOfBounds { .. }) => {
            refused.get_or_insert(kind);
            Ok(instead)
        }
        result => result,
    }
}

mod reduce;
mod slot;
mod sort;
mod tensor;
#[cfg(test)]
mod tests;
