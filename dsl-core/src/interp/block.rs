//! Runs a block function over a grid: the executable specification.

mod lookup;

use std::collections::BTreeMap;

use super::elements::{Elements, elementwise};
use super::memory::{Slot, bind, program_coordinates, program_count};
use super::tile;
use super::{Fault, FaultKind};
use crate::backend::{Argument, LaunchError};
use crate::diagnostic::Loc;
use crate::entity::EntityMap;
use crate::ir::{Func, Grid, Inst, Op, Region, Shape, Value, op};
use crate::semantics::dot::{Extents, dot};
use crate::verify::BlockFunc;

/// The most iterations of a `while`.
pub const WHILE_LIMIT: u64 = 1 << 26;

/// Runs every program of the grid, axis 0 fastest. What programs before a fault wrote stays.
///
/// As in a checked launch, an access out of bounds is not made (a load gives `other` or zero bits)
/// and its program goes on; the fault is the least one: the first program, then the first access in
/// the text, then the lowest element.
pub fn run(func: &BlockFunc, grid: Grid, arguments: &mut [Argument<'_>]) -> Result<(), Fault> {
    let count = program_count(grid).map_err(|error| launch_fault(func, error))?;
    run_programs(func, grid, arguments, 0..count)
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
/// many as its largest result has elements, and a `dot` one for each multiplication.
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
    func: &BlockFunc,
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
        let ended = machine.region(func.body(), &[]);
        if let Some(refused) = machine.refused.take() {
            return Err(refused.fault);
        }
        ended?;
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

struct Machine<'a> {
    func: &'a Func,
    grid: Grid,
    program: u64,
    memory: Vec<Slot<'a>>,
    values: EntityMap<Value, Elements>,
    /// What checked launches check, in the order of the text.
    sites: BTreeMap<Inst, usize>,
    refused: Option<Refused>,
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
    key: (usize, u64, i64),
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
        let accesses = func.all_insts().into_iter();
        let accesses = accesses.filter(|&inst| func.op(inst).is_checked());
        Self {
            func,
            grid,
            program: 0,
            memory,
            values,
            sites: accesses
                .enumerate()
                .map(|(site, inst)| (inst, site))
                .collect(),
            refused: None,
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

    fn shape(&self, value: Value) -> Shape {
        self.func.ty(value).shape
    }

    fn read_all(&self, values: &[Value]) -> Vec<Elements> {
        values.iter().map(|&value| self.read(value)).collect()
    }

    /// Runs a region; returns what it yields.
    fn region(&mut self, region: Region, arguments: &[Elements]) -> Result<Vec<Elements>, Fault> {
        let func = self.func;
        let data = func.region(region);
        for (&parameter, argument) in data.parameters.iter().zip(arguments) {
            self.values[parameter] = argument.clone();
        }
        for &inst in &data.insts {
            if let Op::Yield(op::Yield { values }) = func.op(inst) {
                return Ok(self.read_all(values));
            }
            self.spend(inst)?;
            let results = self.inst(inst)?;
            for (&value, result) in func.inst(inst).results.iter().zip(results) {
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
        let results = data.results.iter();
        let elements = results.map(|&value| self.shape(value).elements()).max();
        let each = match &data.op {
            Op::Dot(op::Dot { a, .. }) => self.shape(*a).extent(1),
            _ => 1,
        };
        let taken = (elements.unwrap_or(1) * each) as u64;
        let Some(left) = left.checked_sub(taken) else {
            return Err(self.fault(inst, FaultKind::TooLong(most)));
        };
        self.steps = Some(Steps { most, left });
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Result<Vec<Elements>, Fault> {
        let (func, data) = (self.func, self.func.inst(inst));
        let mnemonic = data.op.mnemonic();
        if let Some(result) = elementwise(func, &data.op, &data.results, |value| self.read(value)) {
            return Ok(vec![result]);
        }
        if let Some(result) = self.shape_op(inst) {
            return Ok(vec![result]);
        }
        match &data.op {
            Op::ProgramId(op::ProgramId { axis }) => {
                let coordinates = program_coordinates(self.grid, self.program);
                Ok(vec![Elements::uniform(coordinates[axis.index()])])
            }
            Op::NumPrograms(op::NumPrograms { axis }) => {
                Ok(vec![Elements::uniform(u64::from(self.grid[axis.index()]))])
            }
            Op::Arange(op::Arange { start, end }) => {
                let elements = (*start..*end).map(i64::cast_unsigned).collect();
                Ok(vec![Elements::new(elements)])
            }
            Op::Load(_) => self.load(inst).map(|result| vec![result]),
            Op::Store(_) | Op::AtomicReduce(_) => self.store(inst).map(|()| Vec::new()),
            Op::Reduce(_) => self.reduce(inst),
            Op::Scan(_) => self.scan(inst),
            Op::Sort(_) => Ok(self.sort(inst)),
            Op::Dot(_) => Ok(vec![self.dot(inst)]),
            Op::Histogram(_) => Ok(vec![self.histogram(inst)]),
            Op::Gather(_) => Ok(vec![self.gather(inst)]),
            Op::For(_) => self.for_loop(inst),
            Op::While(_) => self.while_loop(inst),
            Op::If(op::If {
                condition,
                on_true,
                on_false,
            }) => {
                let taken = self.values[*condition].scalar() != 0;
                self.region(if taken { *on_true } else { *on_false }, &[])
            }
            Op::Constant(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Ternary(_)
            | Op::Compare(_)
            | Op::Function(_)
            | Op::Approximate(_)
            | Op::Cast(_)
            | Op::Bitcast(_)
            | Op::Select(_)
            | Op::Splat(_)
            | Op::Broadcast(_)
            | Op::ExpandDims(_)
            | Op::Reshape(_)
            | Op::Transpose(_)
            | Op::Yield(_) => unreachable!("broken invariant: `{mnemonic}` was handled"),
            Op::Raw(_)
            | Op::LaneId(op::LaneId {})
            | Op::WarpId(op::WarpId {})
            | Op::Alloc(_)
            | Op::LaneLoad(_)
            | Op::LaneStore(_)
            | Op::LaneAtomic(_)
            | Op::CheckBounds(_)
            | Op::StopOutside(_)
            | Op::StopIndex(_)
            | Op::InBounds(_)
            | Op::CheckIndex(_)
            | Op::ShuffleXor(_)
            | Op::ShuffleIndex(_)
            | Op::Barrier(op::Barrier {})
            | Op::StartCopy(_)
            | Op::GroupCopies(op::GroupCopies {})
            | Op::WaitCopies(_)
            | Op::Extract(_)
            | Op::Vector(_)
            | Op::ShuffleVector(_) => {
                unreachable!("broken invariant: `{mnemonic}` is no block op")
            }
        }
    }

    fn shape_op(&self, inst: Inst) -> Option<Elements> {
        let data = self.func.inst(inst);
        match &data.op {
            Op::Splat(op::Splat { x })
            | Op::ExpandDims(op::ExpandDims { x, .. })
            | Op::Reshape(op::Reshape { x }) => Some(self.read(*x)),
            Op::Broadcast(op::Broadcast { x }) => {
                let to = self.shape(data.results[0]);
                Some(tile::broadcast(&self.values[*x], self.shape(*x), to))
            }
            Op::Transpose(op::Transpose { x, permutation }) => Some(tile::transpose(
                &self.values[*x],
                self.shape(*x),
                permutation,
            )),
            _ => None,
        }
    }

    fn load(&mut self, inst: Inst) -> Result<Elements, Fault> {
        let Op::Load(op::Load {
            base,
            offsets,
            mask,
            other,
        }) = self.func.op(inst)
        else {
            unreachable!("broken invariant: called for `load`")
        };
        let count = self.shape(*offsets).elements();
        let offsets = self.read(*offsets);
        let mask = mask.map_or(Elements::uniform(1), |mask| self.read(mask));
        let other = other.map_or(Elements::uniform(0), |other| self.read(other));
        let program = self.program;
        let buffer = self.buffer(*base);
        let mut refused = None;
        let loaded: Result<Vec<u64>, FaultKind> = (0..count)
            .map(|element| {
                if mask.get(element) == 0 {
                    return Ok(other.get(element));
                }
                let index = offsets.get(element).cast_signed();
                let loaded = buffer.load(program, index, element as u64);
                go_on(loaded, &mut refused, other.get(element))
            })
            .collect();
        self.refuse(inst, refused);
        loaded
            .map(Elements::new)
            .map_err(|kind| self.fault(inst, kind))
    }

    fn store(&mut self, inst: Inst) -> Result<(), Fault> {
        let op = self.func.op(inst);
        let (Op::Store(op::Store {
            base,
            offsets,
            value,
            mask,
        })
        | Op::AtomicReduce(op::AtomicReduce {
            base,
            offsets,
            value,
            mask,
            ..
        })) = op
        else {
            unreachable!("broken invariant: called for `store` and `atomic_reduce`")
        };
        let combined = match op {
            Op::AtomicReduce(op::AtomicReduce { op, .. }) => Some(*op),
            _ => None,
        };
        let count = self.shape(*offsets).elements();
        let (offsets, value) = (self.read(*offsets), self.read(*value));
        let mask = mask.map_or(Elements::uniform(1), |mask| self.read(mask));
        let program = self.program;
        let buffer = self.buffer(*base);
        let mut refused = None;
        // In ascending order: of two equal offsets the higher element wins.
        let stored = (0..count)
            .filter(|&element| mask.get(element) != 0)
            .try_for_each(|element| {
                let index = offsets.get(element).cast_signed();
                let (who, bits) = ((program, element as u64), value.get(element));
                let stored = match combined {
                    Some(op) => buffer.combine(who, index, op, bits),
                    None => buffer.store(who.0, index, who.1, bits),
                };
                go_on(stored, &mut refused, ())
            });
        self.refuse(inst, refused);
        stored.map_err(|kind| self.fault(inst, kind))
    }

    /// Keeps an access out of bounds if it is the least so far.
    fn refuse(&mut self, inst: Inst, refused: Option<FaultKind>) {
        let Some(FaultKind::OutOfBounds { element, index, .. }) = refused else {
            return;
        };
        let key = (self.sites[&inst], element, index);
        if self.refused.as_ref().is_none_or(|least| key < least.key) {
            let fault = refused.map(|kind| self.fault(inst, kind));
            self.refused = fault.map(|fault| Refused { key, fault });
        }
    }

    fn buffer(&mut self, base: Value) -> &mut super::memory::Buffer<'a> {
        let index = self.values[base].scalar() as usize;
        match &mut self.memory[index] {
            Slot::Buffer(buffer) => buffer,
            Slot::Scalar(_) => unreachable!("broken invariant: a verified base is memory"),
        }
    }

    fn dot(&self, inst: Inst) -> Elements {
        let Op::Dot(op::Dot {
            a,
            b,
            accumulator,
            precision,
        }) = self.func.op(inst)
        else {
            unreachable!("broken invariant: called for `dot`")
        };
        let (left, right) = (self.shape(*a), self.shape(*b));
        let extents = Extents {
            m: left.extent(0),
            k: left.extent(1),
            n: right.extent(1),
        };
        let dtype = super::elements::dtype(self.func, *a);
        let [a, b, c] = [a, b, accumulator].map(|&value| self.read(value));
        let operands: [&dyn Fn(usize) -> u64; 3] = [&|i| a.get(i), &|i| b.get(i), &|i| c.get(i)];
        Elements::new(dot(*precision, dtype, extents, operands))
    }

    fn for_loop(&mut self, inst: Inst) -> Result<Vec<Elements>, Fault> {
        let Op::For(op::For {
            lower,
            upper,
            init,
            step,
            body,
            ..
        }) = self.func.op(inst)
        else {
            unreachable!("broken invariant: called for `for`")
        };
        let upper = self.index(*upper);
        let mut index = Some(self.index(*lower));
        let mut carried = self.read_all(init);
        while let Some(now) = index.filter(|&now| now < upper) {
            carried.insert(0, Elements::uniform(now.cast_unsigned()));
            carried = self.region(*body, &carried)?;
            index = now.checked_add(*step);
        }
        Ok(carried)
    }

    fn while_loop(&mut self, inst: Inst) -> Result<Vec<Elements>, Fault> {
        let Op::While(op::While { init, before, body }) = self.func.op(inst) else {
            unreachable!("broken invariant: called for `while`")
        };
        let mut carried = self.read_all(init);
        for _ in 0..WHILE_LIMIT {
            let mut next = self.region(*before, &carried)?;
            let goes_on = next.remove(0).scalar() != 0;
            if !goes_on {
                return Ok(next);
            }
            carried = self.region(*body, &next)?;
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
mod sort;
#[cfg(test)]
mod tests;
