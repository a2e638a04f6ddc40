//! What a function does to its buffers, in order: when each is in use, and who may be late.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::operand::PATTERN;
use crate::ir::{Func, Inst, Op, Region, Value, op};
use crate::verify::left_by_branches;

/// A buffer, as an `alloc` begins it.
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
    pub(super) fn of(func: &Func) -> Self {
        let mut reader = Reader {
            func,
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
            if let Op::GroupMma(op) = op {
                for operand in [op.a, op.b] {
                    if let Some(&number) = self.numbers.get(&operand) {
                        self.buffers[number].align = PATTERN;
                        self.multiplied.insert(number);
                    }
                }
            }
            if let Op::CopyIn(op::CopyIn { target: base, .. })
            | Op::CopyOut(op::CopyOut { source: base, .. }) = op
                && let Some(&number) = self.numbers.get(base)
            {
                self.buffers[number].align = PATTERN;
            }
            if let Op::CopyOut(op) = op {
                self.copied.extend(self.numbers.get(&op.source));
            }
            if let Op::WaitCopiesOut(op::WaitCopiesOut { pending: 0 })
            | Op::WaitCopiesRead(op::WaitCopiesRead { pending: 0 }) = op
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
            if let Op::Barrier(_) = op {
                events.push(Event::Barrier);
            } else if let Op::Alloc(op) = op {
                events.push(Event::Begin(self.buffer(inst, op)));
            } else if let Op::If(op) = op {
                events.push(self.branches(op));
            } else if let Op::For(op) = op {
                events.push(Event::Loop([Vec::new(), self.region(op.body)]));
            } else if let Op::While(op) = op {
                let parts = [op.before, op.body].map(|it| self.region(it));
                events.push(Event::Loop(parts));
            }
        }
        events
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

    /// A new buffer.
    fn buffer(&mut self, alloc: Inst, op: &op::Alloc) -> usize {
        let pointer = self.func.inst(alloc).results[0];
        let pointee = self.func.ty(pointer).pointee();
        self.numbers.insert(pointer, self.buffers.len());
        self.buffers.push(Buffer {
            alloc,
            align: 1,
            bytes: op.count * pointee.map_or(0, |(dtype, _)| i64::from(dtype.bytes())),
            first: 0,
            last: 0,
            lasts: false,
        });
        self.buffers.len() - 1
    }
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
