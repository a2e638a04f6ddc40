//! The arguments of a launch as an interpreter sees them: typed elements with bounds.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::FaultKind;
use super::handed::Handed;
use super::race::Shadow;
use crate::ir::{Access, AtomicOp, DType, Func, Grid, MemoryOrder, Number, Scope, Space};
use crate::launch::{Argument, LaunchError, Passed, check_arguments, parameters};
use crate::semantics;

/// Reads the number of type `dtype` at the start of `bytes`: its bits, zero above the width. Any
/// nonzero `bool` byte reads as true.
pub fn read_number(dtype: DType, bytes: &[u8]) -> u64 {
    match (dtype, dtype.bytes()) {
        (DType::Bool, _) => u64::from(bytes[0] != 0),
        (_, 1) => u64::from(bytes[0]),
        (_, 2) => u16::read_from(bytes).to_bits(),
        (_, 4) => u32::read_from(bytes).to_bits(),
        _ => u64::read_from(bytes),
    }
}

/// Writes a number of type `dtype` to the start of `bytes`.
pub fn write_number(dtype: DType, bytes: &mut [u8], bits: u64) {
    match dtype.bytes() {
        1 => bytes[0] = bits as u8,
        2 => (bits as u16).write_to(bytes),
        4 => (bits as u32).write_to(bytes),
        _ => bits.write_to(bytes),
    }
}

/// What an atomic access does to a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    op: AtomicOp,
    bits: u64,
    /// What memory must hold.
    expected: Option<u64>,
    /// Whether it gives what was there.
    fetches: bool,
    order: Option<MemoryOrder>,
    scope: Option<Scope>,
}

impl Update {
    /// One without a result.
    pub(super) fn reduce(op: AtomicOp, bits: u64) -> Self {
        Self {
            op,
            bits,
            expected: None,
            fetches: false,
            order: None,
            scope: None,
        }
    }

    /// One with a result.
    pub(super) fn fetch(op: AtomicOp, bits: u64, expected: Option<u64>) -> Self {
        Self {
            op,
            bits,
            expected,
            fetches: true,
            order: None,
            scope: None,
        }
    }

    /// The same with an order and a scope.
    pub(super) fn ordered(self, order: Option<MemoryOrder>, scope: Option<Scope>) -> Self {
        Self {
            order,
            scope,
            ..self
        }
    }

    /// With what it may be at one address: with its own op, and among those with a result with any.
    pub(super) fn kind(&self) -> Option<AtomicOp> {
        Some(self.op).filter(|_| !self.fetches)
    }

    /// Whether it stores anything where memory holds `old`. A NaN is any NaN.
    fn stores(&self, dtype: DType, old: u64) -> bool {
        let bits = |x| semantics::canonical(dtype, x);
        self.expected.is_none_or(|it| bits(it) == bits(old))
    }

    /// What memory that held `old` holds then.
    pub(super) fn of(&self, dtype: DType, old: u64) -> u64 {
        match self.op.binary(dtype) {
            _ if !self.stores(dtype, old) => old,
            Some(op) => semantics::binary(op, dtype, old, self.bits),
            None if self.op == AtomicOp::Load => old,
            None => self.bits,
        }
    }
}

enum Bytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

/// The memory behind one pointer argument.
pub(super) struct Buffer<'a> {
    pub(super) name: String,
    pub(super) dtype: DType,
    /// The alignment in bytes that the launch promises.
    pub(super) align: i64,
    bytes: Bytes<'a>,
    programs: ProgramTable,
    /// Which argument it is, and what programs hand each other.
    argument: usize,
    handed: Rc<RefCell<Handed>>,
    /// Which lanes of the running program touched what.
    pub(super) lanes: Shadow,
    /// Elements that copies under way read, with their lane, and how many of them do.
    pub(super) copied: BTreeMap<(i64, u32), u32>,
}

impl Buffer<'_> {
    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Read(bytes) => bytes,
            Bytes::Write(bytes) => bytes,
        }
    }

    /// Whether the kernel may write it.
    pub(super) fn is_writable(&self) -> bool {
        matches!(self.bytes, Bytes::Write(_))
    }

    /// The length in elements.
    pub(super) fn length(&self) -> u64 {
        (self.bytes().len() / self.dtype.bytes() as usize) as u64
    }

    /// The position of `index` if it is in bounds.
    pub(super) fn position(&self, index: i64, element: u64) -> Result<usize, FaultKind> {
        let length = self.length();
        usize::try_from(index)
            .ok()
            .filter(|&position| (position as u64) < length)
            .ok_or_else(|| FaultKind::OutOfBounds {
                buffer: self.name.clone(),
                element,
                index,
                length,
            })
    }

    /// Reads `[index]` for `program`; `element` names the access in errors.
    pub(super) fn load(
        &mut self,
        program: u64,
        index: i64,
        element: u64,
    ) -> Result<u64, FaultKind> {
        let position = self.position(index, element)?;
        if self.is_writable() {
            let conflict = self.programs.read(
                program,
                position,
                self.length() as usize,
                &self.handed.borrow(),
            );
            self.shared_by(conflict, element, index)?;
        }
        Ok(self.number(position))
    }

    /// The number at a position, for whoever has checked that it may read it.
    pub(super) fn number(&self, position: usize) -> u64 {
        let size = self.dtype.bytes() as usize;
        read_number(self.dtype, &self.bytes()[position * size..])
    }

    /// Writes `[index]` for `program`.
    pub(super) fn store(
        &mut self,
        program: u64,
        index: i64,
        element: u64,
        bits: u64,
    ) -> Result<(), FaultKind> {
        let position = self.position(index, element)?;
        let conflict = self.programs.write(
            program,
            position,
            self.length() as usize,
            &self.handed.borrow(),
        );
        self.shared_by(conflict, element, index)?;
        self.put(position * self.dtype.bytes() as usize, bits)
    }

    /// Combines a number into `[index]` for `(program, element)`; what was there.
    pub(super) fn combine(
        &mut self,
        (program, element): (u64, u64),
        index: i64,
        update: &Update,
    ) -> Result<u64, FaultKind> {
        let position = self.position(index, element)?;
        let length = self.length() as usize;
        let (programs, handed) = (&mut self.programs, &self.handed);
        let place = (self.argument, position);
        let at = position * self.dtype.bytes() as usize;
        let old = match &self.bytes {
            Bytes::Read(bytes) => read_number(self.dtype, &bytes[at..]),
            Bytes::Write(bytes) => read_number(self.dtype, &bytes[at..]),
        };
        let order = update
            .order
            .map(|order| (order, update.stores(self.dtype, old)));
        handed.borrow_mut().touch(program, place, order);
        let conflict = match update.scope {
            Some(Scope::Program) => programs.write(program, position, length, &handed.borrow()),
            None | Some(Scope::System) => {
                programs.combine(program, position, length, update.kind(), &handed.borrow())
            }
        };
        self.shared_by(conflict, element, index)?;
        self.put(at, update.of(self.dtype, old))?;
        Ok(old)
    }

    /// Writes a number at a byte.
    fn put(&mut self, at: usize, bits: u64) -> Result<(), FaultKind> {
        let dtype = self.dtype;
        match &mut self.bytes {
            Bytes::Write(bytes) => write_number(dtype, &mut bytes[at..], bits),
            Bytes::Read(_) => {
                let name = &self.name;
                let message = format!(
                    "broken invariant: argument `{name}` is read-only but the kernel writes it"
                );
                return Err(LaunchError::Arguments(message).into());
            }
        }
        Ok(())
    }

    fn shared_by(
        &self,
        conflict: Option<(u64, &'static str)>,
        element: u64,
        index: i64,
    ) -> Result<(), FaultKind> {
        conflict.map_or(Ok(()), |(other, how)| {
            Err(FaultKind::SharedByPrograms {
                buffer: self.name.clone(),
                element,
                index,
                other,
                how,
            })
        })
    }
}

/// For each element of a writable buffer, which programs read, wrote and combined it.
#[derive(Default)]
struct ProgramTable {
    /// The program that wrote, plus one, and when.
    writers: Vec<(u64, u64)>,
    /// A program that read, plus one; once two programs read, [`SEVERAL`] is added.
    readers: Vec<u64>,
    /// When an element was last read.
    read_at: Vec<u64>,
    combined: Vec<Combined>,
}

/// Who combined numbers into an element.
#[derive(Clone, Copy, Default)]
struct Combined {
    /// The last program that did, plus one.
    last: u64,
    /// Another program that did, plus one.
    other: u64,
    /// What all of them did, unless they did several things; `None` inside for atomics with results.
    op: Option<Option<AtomicOp>>,
}

impl Combined {
    /// A program that did it, other than this one.
    fn by_other(self, program: u64) -> Option<u64> {
        let them = [self.last, self.other].into_iter();
        them.filter(|&them| them != 0)
            .map(|them| them - 1)
            .find(|&them| them != program)
    }

    fn note(&mut self, program: u64, op: Option<AtomicOp>) {
        let first = self.last == 0;
        if self.last != program + 1 {
            self.other = self.last;
            self.last = program + 1;
        }
        self.op = Some(op).filter(|_| first || self.op == Some(op));
    }
}

/// Marks an element that several programs read.
const SEVERAL: u64 = 1 << 63;

impl ProgramTable {
    fn grow(&mut self, length: usize) {
        if self.writers.is_empty() {
            self.writers = vec![(0, 0); length];
            self.readers = vec![0; length];
            self.read_at = vec![0; length];
            self.combined = vec![Combined::default(); length];
        }
    }

    fn read(
        &mut self,
        program: u64,
        position: usize,
        length: usize,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        self.grow(length);
        self.read_at[position] = handed.now();
        let reader = &mut self.readers[position];
        if *reader == 0 {
            *reader = program + 1;
        } else if *reader & !SEVERAL != program + 1 {
            *reader |= SEVERAL;
        }
        self.plainly(program, position, handed)
    }

    /// What another program wrote, unless this one has seen it.
    fn written(
        &self,
        program: u64,
        position: usize,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        let (writer, time) = self.writers[position];
        let other = writer.checked_sub(1).filter(|&other| other != program)?;
        (!handed.has_seen(program, other, time)).then_some((other, "wrote"))
    }

    /// What another program did to an element, other than reading it.
    fn plainly(
        &self,
        program: u64,
        position: usize,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        if let Some(written) = self.written(program, position, handed) {
            return Some(written);
        }
        let other = self.combined[position].by_other(program);
        other.map(|other| (other, "combined"))
    }

    fn read_by_other(
        &self,
        program: u64,
        position: usize,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        let reader = self.readers[position];
        if reader == 0 || reader == program + 1 {
            return None;
        }
        let (other, time) = ((reader & !SEVERAL) - 1, self.read_at[position]);
        let seen = reader & SEVERAL == 0 && handed.has_seen(program, other, time);
        (!seen).then_some((other, "read"))
    }

    /// Combining commutes with combining by the same op, and with nothing else. Atomics that give what memory held
    /// may meet each other, whatever their ops: their results show the order.
    fn combine(
        &mut self,
        program: u64,
        position: usize,
        length: usize,
        op: Option<AtomicOp>,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        self.grow(length);
        let known = self.combined[position];
        self.combined[position].note(program, op);
        if let Some(written) = self.written(program, position, handed) {
            return Some(written);
        }
        if let Some(other) = known.by_other(program)
            && known.op != Some(op)
        {
            return Some((other, "combined by another op"));
        }
        self.read_by_other(program, position, handed)
    }

    fn write(
        &mut self,
        program: u64,
        position: usize,
        length: usize,
        handed: &Handed,
    ) -> Option<(u64, &'static str)> {
        self.grow(length);
        let known = self.plainly(program, position, handed);
        self.writers[position] = (program + 1, handed.now());
        known.or_else(|| self.read_by_other(program, position, handed))
    }
}

/// The arguments of a launch.
pub(super) enum Slot<'a> {
    /// Memory.
    Buffer(Box<Buffer<'a>>),
    /// A number.
    Scalar(u64),
}

/// The arguments of a launch of `func`, checked against its parameters.
pub(super) fn bind<'a>(
    func: &Func,
    arguments: &'a mut [Argument<'_>],
) -> Result<Vec<Slot<'a>>, LaunchError> {
    let passed: Vec<Passed> = arguments.iter().map(Argument::passed).collect();
    check_arguments(&func.name, parameters(func), &passed)?;
    let mut slots = Vec::new();
    let handed = Rc::default();
    for ((argument, parameter), &value) in arguments
        .iter_mut()
        .zip(&func.parameters)
        .zip(func.arguments())
    {
        let bytes = match argument {
            Argument::Scalar(literal) => {
                slots.push(Slot::Scalar(literal.bits));
                continue;
            }
            Argument::Read(bytes) => Bytes::Read(bytes),
            Argument::ReadWrite(bytes) => match parameter.access {
                Access::Read => Bytes::Read(bytes),
                Access::ReadWrite => Bytes::Write(bytes),
            },
        };
        let dtype = match func.ty(value).pointee() {
            Some((dtype, Space::Global)) => dtype,
            Some((_, Space::Shared | Space::Scratch)) | None => {
                return Err(LaunchError::Arguments(format!(
                    "broken invariant: parameter `{}` of kernel `{}` takes no memory",
                    parameter.name, func.name
                )));
            }
        };
        slots.push(Slot::Buffer(Box::new(Buffer {
            name: parameter.name.clone(),
            dtype,
            align: i64::from(dtype.bytes().max(parameter.divisor)),
            bytes,
            programs: ProgramTable::default(),
            argument: slots.len(),
            handed: Rc::clone(&handed),
            lanes: Shadow::default(),
            copied: BTreeMap::new(),
        })));
    }
    Ok(slots)
}

/// The greatest number of programs of a grid.
const MAX_PROGRAMS: u64 = 1 << 40;

/// The number of programs of a grid, or why it is not valid.
pub fn program_count(grid: Grid) -> Result<u64, LaunchError> {
    if grid.contains(&0) {
        return Err(LaunchError::Grid(grid, "an extent is zero".to_string()));
    }
    let count = grid.iter().try_fold(1u64, |count, &extent| {
        count
            .checked_mul(u64::from(extent))
            .filter(|&count| count <= MAX_PROGRAMS)
    });
    count.ok_or_else(|| LaunchError::Grid(grid, "it has too many programs".to_string()))
}
