//! What a function does to its buffers, in order: when each is in use, and who may be late.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::operand::{PATTERN, piece_bits};
use crate::ir::{DType, Func, Inst, Op, Region, Value, op};
use crate::verify::left_by_branches;

/// What ops of a schedule function take in shared memory besides its buffers: bytes at once, time after time.
pub(crate) type Exchanges = BTreeMap<Inst, Vec<Vec<i64>>>;

/// A buffer, as an `alloc` begins it, or an op of a schedule function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) alloc: Inst,
    /// What its offset is a multiple of, at least.
    pub(super) align: i64,
    pub(super) bytes: i64,
    /// The first and the last moment at which its bytes are its own.
    pub(super) first: usize,
    pub(super) last: usize,
    /// Whether its bytes stay its own to the end of the function.
    pub(super) lasts: bool,
}

/// Something that happens to buffers, which are named by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    /// All lanes have done what comes before.
    Barrier,
    /// The bytes of a buffer become its own, with nothing in them.
    Begin(usize),
    /// A lane reads or writes a buffer.
    Touch(usize),
    /// One of two.
    Branch([Vec<Event>; 2]),
    /// The first, then the second and the first again, as often as it may be.
    Loop([Vec<Event>; 2]),
}

/// All buffers in the order in which they begin, and what happens to them.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    pub(super) buffers: Vec<Buffer>,
    events: Vec<Event>,
}

impl Usage {
    /// Of a lane function, or of a schedule function with what its ops take besides, each buffer with at most so many slots.
    pub(super) fn of(func: &Func, exchanges: &Exchanges, most_slots: i64) -> Self {
        let mut reader = Reader {
            func,
            exchanges,
            most_slots,
            numbers: BTreeMap::new(),
            buffers: Vec::new(),
            multiplied: BTreeSet::new(),
            copied: BTreeSet::new(),
        };
        let events = reader.region(func.body());
        let mut usage = Self {
            buffers: reader.buffers,
            events,
        };
        let mut clock = 0;
        live(&mut usage.buffers, &usage.events, &mut clock);
        for buffer in usage.buffers.iter_mut().filter(|buffer| buffer.lasts) {
            buffer.last = clock;
        }
        usage
    }

    /// For each buffer those that lanes may still be reading or writing when it begins, if there is a
    /// barrier before each buffer in `waiting`.
    pub(super) fn late(&self, waiting: &BTreeSet<usize>) -> Vec<BTreeSet<usize>> {
        let mut late = vec![BTreeSet::new(); self.buffers.len()];
        pass(
            &self.events,
            &mut BTreeSet::new(),
            &mut |buffer, touched| {
                if waiting.contains(&buffer) {
                    touched.clear();
                }
                late[buffer].extend(touched.iter());
            },
        );
        late
    }
}

struct Reader<'a> {
    func: &'a Func,
    exchanges: &'a Exchanges,
    most_slots: i64,
    numbers: BTreeMap<Value, usize>,
    buffers: Vec<Buffer>,
    /// What products may read that nobody has waited for.
    multiplied: BTreeSet<usize>,
    /// What bulk copies may read so.
    copied: BTreeSet<usize>,
}

impl Reader<'_> {
    fn region(&mut self, region: Region) -> Vec<Event> {
        let func = self.func;
        let mut events = Vec::new();
        for &inst in &func.region(region).insts {
            let op = func.op(inst);
            for operand in op.operands() {
                if let Some(&number) = self.numbers.get(&operand)
                    && events.last() != Some(&Event::Touch(number))
                {
                    events.push(Event::Touch(number));
                }
            }
            self.asynchronous(op, &mut events);
            if let Op::Barrier(_) = op {
                events.push(Event::Barrier);
            } else if let Op::Alloc(op) = op {
                events.push(Event::Begin(self.alloc(inst, op)));
            } else if let Op::CopyRow(op) = op {
                self.row(inst, op, &mut events);
            } else if let Op::Buffer(op) = op {
                self.slots(inst, op, &mut events);
            } else if let Op::If(op) = op {
                events.push(self.branches(op));
            } else if let Op::For(op) = op {
                events.push(Event::Loop([Vec::new(), self.region(op.body)]));
            } else if let Op::While(op) = op {
                let parts = [op.before, op.body].map(|it| self.region(it));
                events.push(Event::Loop(parts));
            }
            for bytes in self.exchanges.get(&inst).into_iter().flatten() {
                let taken = bytes.iter().map(|&bytes| self.buffer(inst, bytes));
                let taken: Vec<usize> = taken.collect();
                events.extend(taken.iter().copied().map(Event::Begin));
                events.extend(taken.into_iter().map(Event::Touch));
            }
        }
        events
    }

    /// What tensor cores and bulk copies read, and the waits for that.
    fn asynchronous(&mut self, op: &Op, events: &mut Vec<Event>) {
        if let Op::GroupMma(op) = op {
            self.multiplied_by([op.a, op.b]);
        }
        if let Op::DotSlots(op) = op {
            self.multiplied_by([op.a, op.b]);
        }
        if let Op::CopyIn(op::CopyIn { target: base, .. })
        | Op::CopyOut(op::CopyOut { source: base, .. })
        | Op::CopyBox(op::CopyBox { buffer: base, .. })
        | Op::CopySlot(op::CopySlot { buffer: base, .. }) = op
            && let Some(&number) = self.numbers.get(base)
        {
            self.buffers[number].align = PATTERN;
            if matches!(op, Op::CopyOut(_) | Op::CopySlot(_)) {
                self.copied.insert(number);
            }
        }
        if let Op::WaitCopiesOut(op::WaitCopiesOut { pending: 0 })
        | Op::WaitCopiesRead(op::WaitCopiesRead { pending: 0 })
        | Op::WaitSlots(op::WaitSlots { pending: 0 })
        | Op::WaitWritten(op::WaitWritten {}) = op
        {
            let read = std::mem::take(&mut self.copied);
            events.extend(read.into_iter().map(Event::Touch));
        }
        if let Op::MbarrierInit(op) = op
            && let Some(&number) = self.numbers.get(&op.word)
        {
            self.buffers[number].lasts = true;
        }
        if let Op::Settle(op::Settle { pending: 0, .. }) = op {
            let read = std::mem::take(&mut self.multiplied);
            events.extend(read.into_iter().map(Event::Touch));
        }
    }

    fn branches(&mut self, op: &op::If) -> Event {
        let before = (self.multiplied.clone(), self.copied.clone());
        let on_true = self.region(op.on_true);
        let multiplied = std::mem::replace(&mut self.multiplied, before.0);
        let copied = std::mem::replace(&mut self.copied, before.1.clone());
        let on_false = self.region(op.on_false);
        self.multiplied.extend(multiplied);
        self.copied = left_by_branches(&before.1, [&copied, &self.copied]);
        Event::Branch([on_true, on_false])
    }

    /// Buffers that the tensor cores read from now on.
    fn multiplied_by(&mut self, operands: [Value; 2]) {
        for operand in operands {
            if let Some(&number) = self.numbers.get(&operand) {
                self.buffers[number].align = PATTERN;
                self.multiplied.insert(number);
            }
        }
    }

    fn alloc(&mut self, alloc: Inst, op: &op::Alloc) -> usize {
        let pointer = self.func.inst(alloc).results[0];
        let pointee = self.func.ty(pointer).pointee();
        let bytes = pointee.map_or(0, |(dtype, _)| i64::from(dtype.bytes()));
        let number = self.buffer(alloc, op.count * bytes);
        self.numbers.insert(pointer, number);
        number
    }

    /// A buffer with slots. Those that lie behind others are a part of these; those that boxes are copied to have words in
    /// which phases are counted.
    fn slots(&mut self, inst: Inst, op: &op::Buffer, events: &mut Vec<Event>) {
        let func = self.func;
        let buffer = func.inst(inst).results[0];
        let bytes = buffer_bytes(func, buffer, self.most_slots);
        if let Some(&front) = op.behind.and_then(|front| self.numbers.get(&front)) {
            self.buffers[front].bytes += bytes;
            self.numbers.insert(buffer, front);
            return;
        }
        let number = self.buffer(inst, bytes);
        self.numbers.insert(buffer, number);
        events.push(Event::Begin(number));
        let insts = func.all_insts();
        let any = |is: &dyn Fn(&Op) -> bool| insts.iter().any(|&it| is(func.op(it)));
        let filled = any(&|op| matches!(op, Op::CopyBox(op) if op.buffer == buffer));
        let released = any(&|op| matches!(op, Op::ReleaseSlot(op) if op.buffer == buffer));
        let slots = func.ty(buffer).buffer().map_or(1, |(_, slots)| slots);
        let words = i64::from(slots).min(self.most_slots) * i64::from(DType::U64.bytes());
        for _ in 0..u8::from(filled) + u8::from(filled && released) {
            let number = self.buffer(inst, words);
            self.buffers[number].lasts = true;
            events.extend([Event::Begin(number), Event::Touch(number)]);
        }
    }

    /// A row and the word in which the phase of its copy is counted.
    fn row(&mut self, inst: Inst, op: &op::CopyRow, events: &mut Vec<Event>) {
        let row = self.func.inst(inst).results[0];
        let dtype = self.func.ty(row).row().unwrap_or(DType::I8);
        let number = self.buffer(
            inst,
            row_elements(dtype, op.room) * i64::from(dtype.bytes()),
        );
        self.numbers.insert(row, number);
        let word = self.buffer(inst, DType::U64.bytes().into());
        self.buffers[word].lasts = true;
        for number in [number, word] {
            events.extend([Event::Begin(number), Event::Touch(number)]);
        }
    }

    /// A new buffer.
    fn buffer(&mut self, alloc: Inst, bytes: i64) -> usize {
        self.buffers.push(Buffer {
            alloc,
            align: 1,
            bytes,
            first: 0,
            last: 0,
            lasts: false,
        });
        self.buffers.len() - 1
    }
}

/// Bytes of a buffer of a schedule function, with at most so many slots.
pub(crate) fn buffer_bytes(func: &Func, buffer: Value, most_slots: i64) -> i64 {
    let (dtype, slots) = func.ty(buffer).buffer().unwrap_or((DType::I8, 1));
    let elements = slot_elements(func, buffer, &run_buffers(func));
    i64::from(slots).min(most_slots) * elements * i64::from(dtype.bytes())
}

/// The buffers to which runs are copied.
pub(crate) fn run_buffers(func: &Func) -> BTreeSet<Value> {
    let insts = func.all_insts().into_iter();
    let buffers = insts.filter_map(|inst| {
        let Op::CopyRun(op) = func.op(inst) else {
            return None;
        };
        Some(op.buffer)
    });
    buffers.collect()
}

/// Elements of a slot of a buffer. A slot of runs has a piece more, as those begin anywhere in a piece.
pub(crate) fn slot_elements(func: &Func, buffer: Value, run_buffers: &BTreeSet<Value>) -> i64 {
    let elements = func
        .layout(buffer)
        .map_or(0, |layout| func.linear(layout).registers());
    let dtype = func
        .ty(buffer)
        .buffer()
        .map_or(DType::I8, |(dtype, _)| dtype);
    i64::from(elements) + (i64::from(run_buffers.contains(&buffer)) << piece_bits(dtype))
}

/// Elements of shared memory for a row of up to `room`, which begins as far behind a multiple of 16 bytes as in
/// memory.
pub(crate) fn row_elements(dtype: DType, room: i64) -> i64 {
    let piece = 1 << piece_bits(dtype);
    (room + piece - 1).div_euclid(piece) * piece + piece
}

/// Notes when buffers begin and when they are used last. What begins before a loop and is used in it
/// is used until its end: the next iteration uses it again.
fn live(buffers: &mut [Buffer], events: &[Event], clock: &mut usize) {
    for event in events {
        *clock += 1;
        match event {
            Event::Barrier => {}
            Event::Begin(buffer) => {
                buffers[*buffer].first = *clock;
                buffers[*buffer].last = *clock;
            }
            Event::Touch(buffer) => buffers[*buffer].last = *clock,
            Event::Branch(parts) => parts.iter().for_each(|part| live(buffers, part, clock)),
            Event::Loop(parts) => {
                let start = *clock;
                parts.iter().for_each(|part| live(buffers, part, clock));
                *clock += 1;
                for buffer in buffers.iter_mut() {
                    if (1..start).contains(&buffer.first) && buffer.last > start {
                        buffer.last = *clock;
                    }
                }
            }
        }
    }
}

/// Follows what lanes may have touched since the last barrier; `begins` sees it where a buffer begins.
fn pass(
    events: &[Event],
    touched: &mut BTreeSet<usize>,
    begins: &mut dyn FnMut(usize, &mut BTreeSet<usize>),
) {
    for event in events {
        match event {
            Event::Barrier => touched.clear(),
            Event::Begin(buffer) => begins(*buffer, touched),
            Event::Touch(buffer) => {
                touched.insert(*buffer);
            }
            Event::Branch([on_true, on_false]) => {
                let mut other = touched.clone();
                pass(on_true, touched, begins);
                pass(on_false, &mut other, begins);
                touched.extend(other);
            }
            Event::Loop([before, body]) => loop {
                let entered = touched.len();
                let mut next = touched.clone();
                pass(before, &mut next, begins);
                let left = next.clone();
                pass(body, &mut next, begins);
                touched.extend(next);
                if touched.len() == entered {
                    *touched = left;
                    break;
                }
            },
        }
    }
}
